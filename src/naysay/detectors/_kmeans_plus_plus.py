"""k-means of all points, from starting points that lie apart, on one thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SAMPLE = 64  # points a cluster among which it looks for its start


def k_means(points: NDArray[Any], n_clusters: int, rounds: int, starts: int, key: int) -> NDArray[np.float32]:
    """(n_clusters, d) centres by faiss, over all points: the start that ends with the least sum of squared distances.

    It runs where faiss has one thread, in a new one that ends with the call: with more, sums are rounded otherwise.
    """
    import faiss

    generator = np.random.Generator(np.random.Philox(key=key))
    data = np.ascontiguousarray(points, np.float32)
    limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(data)}  # faiss would take 256 a cluster

    def one(start: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        found: Any = faiss.Kmeans(data.shape[1], n_clusters, niter=rounds, **limits)
        found.train(data, init_centroids=start)
        return float(found.obj[-1]), np.array(found.centroids, np.float32)

    with ThreadPoolExecutor(1, initializer=faiss.omp_set_num_threads, initargs=(1,)) as alone:
        begun = (_spread(data, n_clusters, generator) for _ in range(starts))
        return min(alone.map(one, begun), key=lambda found: found[0])[1]


def _spread(points: NDArray[np.float32], n_clusters: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """(n_clusters, d) points to start from, each drawn by its squared distance to the nearest before it, of a sample.

    Arthur, Vassilvitskii. k-means++: The Advantages of Careful Seeding. SODA 2007.
    """
    rows = generator.choice(len(points), min(len(points), _SAMPLE * n_clusters), replace=False)
    sample = points[rows]  # in random order: the first is any
    chosen = np.zeros(n_clusters, np.intp)
    squares = ((sample - sample[0]) ** 2).sum(axis=1, dtype=np.float64)
    for place in range(1, n_clusters):
        reach = np.cumsum(squares)
        chosen[place] = min(np.searchsorted(reach, generator.random() * reach[-1], side="right"), len(sample) - 1)
        np.minimum(squares, ((sample - sample[chosen[place]]) ** 2).sum(axis=1, dtype=np.float64), out=squares)
    return sample[chosen]

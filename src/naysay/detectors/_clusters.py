"""k-means by faiss, one thread for each clustering, so that results do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from naysay._packages import need_faiss
from naysay.arrays import Floats
from naysay.kernels.threads import threads

Vectors = NDArray[np.float32]
Whole = NDArray[np.int64]
Result = TypeVar("Result")
_BLOCK = 1 << 20  # numbers at a time
_PCL_ALPHA = 10  # PCL's smoothing: without it a small cluster would count as dense


def kmeans(vectors: Vectors, k: int, *, iterations: int, restarts: int, seed: int) -> Vectors:
    """(k, d) centroids of Euclidean k-means over all vectors, from random rows; the best of all restarts.

    Call it inside `in_parallel`: with several threads faiss rounds differently.
    """
    faiss = need_faiss()

    # faiss would otherwise take 256 points per centroid, and warn where there are few.
    limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
    clustering = faiss.Kmeans(vectors.shape[1], k, niter=iterations, nredo=restarts, seed=seed, **limits)
    clustering.train(vectors)
    return np.array(clustering.centroids, np.float32)


def nearest(vectors: Vectors, centroids: Vectors) -> Whole:
    """(n,) the nearest centroid of each vector by Euclidean distance. Call it inside `in_parallel`."""
    faiss = need_faiss()

    index = faiss.IndexFlatL2(centroids.shape[1])
    index.add(centroids)
    assigned = np.empty(len(vectors), np.int64)
    for part in blocks(len(vectors), max(centroids.shape)):
        assigned[part] = index.search(vectors[part], 1)[1][:, 0]
    return assigned


def in_parallel(job: Callable[[int], Result], sizes: Sequence[int]) -> list[Result]:
    """[job(0), job(1), ...], the largest of `sizes` first, each in a new thread in which faiss uses one thread."""
    faiss = need_faiss()

    largest_first = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    n_threads = min(threads(), len(sizes))
    with ThreadPoolExecutor(n_threads, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool:
        running = {place: pool.submit(job, place) for place in largest_first}
        return [running[place].result() for place in range(len(sizes))]


def sample_confidence(vectors: Vectors, centroids: Vectors, assigned: Whole, temperature: float) -> Floats:
    """(n,) the softmax of cos(v, c) / t over all centroids, at the ASSIGNED one: Eq. 2 of the paper.

    The nearest centroid by distance need not have the largest cosine. The cosine with a zero centroid is 0.
    """
    faiss = need_faiss()

    centroid_units, centroid_squares = _units(centroids)
    confidence = np.empty(len(vectors))
    for part in blocks(len(vectors), max(centroids.shape)):
        units, squares = _units(vectors[part])
        # faiss's squared distances of unit vectors: a NumPy product would depend on the threads of its BLAS.
        cosines = faiss.pairwise_distances(units, centroid_units)
        np.subtract(squares[:, None] + centroid_squares, cosines, out=cosines)
        cosines /= 2
        largest = cosines.max(axis=1, keepdims=True)
        at_assigned = np.take_along_axis(cosines, assigned[part, None], axis=1).astype(np.float64)
        cosines -= largest
        cosines /= temperature
        total = np.exp(cosines, out=cosines).sum(axis=1, dtype=np.float64)
        confidence[part] = np.exp((at_assigned - largest)[:, 0] / temperature) / total
    return confidence


def cluster_confidence(vectors: Vectors, centroids: Vectors, assigned: Whole) -> Floats:
    """(n,) 1 / (1 + phi) of the sample's cluster, phi = sum of distances to the centroid / (Z log(Z + 10)), Z samples.

    phi is PCL's concentration, small for dense clusters. A cluster of one sample takes the largest, as in PCL's code.
    """
    distances = np.empty(len(vectors))
    for part in blocks(*vectors.shape):
        distances[part] = norms(vectors[part].astype(np.float64) - centroids[assigned[part]])
    sizes = np.bincount(assigned, minlength=len(centroids))
    sums = np.bincount(assigned, weights=distances, minlength=len(centroids))
    phi = sums / np.maximum(sizes, 1) / np.log(sizes + _PCL_ALPHA)
    phi[sizes <= 1] = phi[sizes > 1].max(initial=0.0)
    return np.asarray(1 / (1 + phi))[assigned]


def norms(vectors: NDArray[Any]) -> Floats:
    """(n,) Euclidean norms in float64, NaN or infinite where a row is."""
    lengths = np.empty(len(vectors))
    for part in blocks(*vectors.shape):
        wide = np.asarray(vectors[part], np.float64)
        with np.errstate(over="ignore"):
            lengths[part] = np.sqrt(np.einsum("nd,nd->n", wide, wide))
    return lengths


def blocks(rows: int, width: int) -> list[slice]:
    """Slices of at most _BLOCK numbers, at least one row each."""
    step = max(1, _BLOCK // max(1, width))
    return [slice(start, start + step) for start in range(0, rows, step)]


def _units(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """Rows of norm 1 (a zero row stays), and their squared norms: 1, or 0."""
    lengths = norms(vectors)
    nonzero = lengths > 0
    units = vectors / np.where(nonzero, lengths, 1.0)[:, None]
    return units.astype(np.float32), nonzero.astype(np.float32)

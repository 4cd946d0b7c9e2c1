"""k-means by faiss, each clustering on one thread: no number of threads moves a centroid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, first_bad, refuse
from naysay.kernels.threads import threads

Vectors = NDArray[np.float32]
Answer = TypeVar("Answer")
SHORT, LONG = 1e-15, 1e15  # the squares of lengths between them are far from the ends of float32
BLOCK = 1 << 20  # numbers at a time


def as_features(owner: str, features: Any, rows: int) -> Vectors:
    """(rows, d) finite vectors of some length, as float32; those that are it already, mapped or not, are not copied."""
    given = as_array(owner, "features", to_numpy(features))
    if given.ndim != 2 or len(given) != rows:
        refuse(owner, "features", f"of shape ({rows}, d), a row for each sample", f"shape {given.shape}")
    if given.dtype.kind != "f":
        refuse(owner, "features", "floating numbers", f"dtype {given.dtype}")
    found = lengths(given)
    unfit = ~np.isfinite(found)
    if unfit.any():
        refuse(owner, "features", "finite", first_bad(found, unfit))
    unfit = (found < SHORT) | (found > LONG)
    if unfit.any():
        advice = "A zero vector has no direction: leave the sample out, or look at the encoder."
        refuse(owner, "features", f"of a length between {SHORT:g} and {LONG:g}", first_bad(found, unfit), advice)
    return np.ascontiguousarray(given, np.float32)


def lengths(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) Euclidean lengths in float64, NaN or infinite where a number of the row is."""
    found = np.empty(len(vectors))
    for part in blocks(*vectors.shape):
        wide = np.asarray(vectors[part], np.float64)
        with np.errstate(over="ignore"):
            found[part] = np.sqrt(np.einsum("nd,nd->n", wide, wide))
    return found


def blocks(rows: int, width: int) -> list[slice]:
    """Rows in slices of at most BLOCK numbers, a row at least."""
    step = max(1, BLOCK // max(1, width))
    return [slice(start, start + step) for start in range(0, rows, step)]


def centroids(vectors: Vectors, k: int, *, iterations: int, restarts: int, seed: int) -> Vectors:
    """(k, d) centroids of Euclidean k-means over all vectors: random rows first, then `iterations` of Lloyd's steps.

    A cluster that runs empty takes half of a large one. Of several restarts the one with the least sum of squared
    distances is kept. Call it by `alone`: with more than one thread, faiss rounds differently.
    """
    import faiss

    # The limits on points per centroid are lifted: faiss would otherwise take 256 of them, and warn of few.
    limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
    means = faiss.Kmeans(vectors.shape[1], k, niter=iterations, nredo=restarts, seed=seed, **limits)
    means.train(vectors)
    return np.array(means.centroids, np.float32)


def nearest(vectors: Vectors, means: Vectors) -> NDArray[np.int64]:
    """(n,) the Euclidean nearest centroid of each vector, block by block; call it by `alone`."""
    import faiss

    index = faiss.IndexFlatL2(means.shape[1])
    index.add(means)
    found = np.empty(len(vectors), np.int64)
    for part in blocks(len(vectors), max(means.shape)):
        found[part] = index.search(vectors[part], 1)[1][:, 0]
    return found


def alone(job: Callable[[int], Answer], sizes: Sequence[int]) -> list[Answer]:
    """job(0), job(1), ...: side by side, the largest of `sizes` first, each where faiss has one thread.

    The threads are new and end with the call, so that nobody else's setting of faiss changes.
    """
    import faiss

    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    workers = min(threads(), len(sizes))
    with ThreadPoolExecutor(workers, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool:
        started = {place: pool.submit(job, place) for place in order}
        return [started[place].result() for place in range(len(sizes))]

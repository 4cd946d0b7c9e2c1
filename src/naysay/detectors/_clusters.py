"""k-means by faiss, each clustering on one thread: no number of threads moves a centroid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from threading import Event
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, first_bad, raise_invalid
from naysay.kernels.threads import threads

Vectors = NDArray[np.float32]
Answer = TypeVar("Answer")
Stopped = Callable[[], bool]  # whether somebody has lost interest
SHORT, LONG = 1e-15, 1e15  # the squares of lengths between them are far from the ends of float32
SAME = 1e-5  # of their length: nearer ones differ by the encoder's rounding, and their cosines are equal in float32
BLOCK = 1 << 20  # numbers at a time
_APART = 15486557  # between the seeds of two restarts, as in faiss


def as_features(features: Any, rows: int) -> Vectors:
    """(rows, d) finite vectors of some length, as float32; those that are it already, mapped or not, are not copied.

    A collapsed encoder gives all samples the same features, up to rounding: k-means would call them one class, and a
    loss that believes it would have no negatives left. Refused in O(rows d).
    """
    given = as_array("features", to_numpy(features))
    if given.ndim != 2 or len(given) != rows:
        raise_invalid("features", f"of shape ({rows}, d), a row for each sample", f"shape {given.shape}")
    if given.dtype.kind != "f":
        raise_invalid("features", "floating numbers", f"dtype {given.dtype}")
    found = lengths(given)
    unfit = ~np.isfinite(found)
    if unfit.any():
        raise_invalid("features", "finite", first_bad(found, unfit))
    unfit = (found < SHORT) | (found > LONG)
    if unfit.any():
        advice = "A zero vector has no direction: leave the sample out, or look at the encoder."
        raise_invalid("features", f"of a length between {SHORT:g} and {LONG:g}", first_bad(found, unfit), advice)
    vectors = np.ascontiguousarray(given, np.float32)
    near = SAME * found[0] if rows else 0.0
    if rows > 1 and all((lengths(vectors[part] - vectors[0]) <= near).all() for part in blocks(*vectors.shape)):
        got = f"{rows} rows within {SAME:g} of their length"
        raise_invalid("features", "in more than one place", got, "Is the encoder trained?")
    return vectors


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


def centroids(vectors: Vectors, k: int, *, iterations: int, restarts: int, seed: int, stopped: Stopped) -> Vectors:
    """(k, d) centroids of Euclidean k-means over all vectors: random rows first, then `iterations` of Lloyd's steps.

    Fewer if a step leaves the sum of squared distances as it was. A cluster that runs empty takes half of a large one.
    Of several restarts the one with the least sum is kept. Call it by `alone`: with more than one thread, faiss rounds
    differently. `stopped` is looked at before each step; the centroids are those of one call of faiss for all steps.
    """
    import faiss

    # The limits on points per centroid are lifted: faiss would otherwise take 256 of them, and warn of few.
    limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
    lloyd = faiss.Kmeans(vectors.shape[1], k, niter=1, **limits)
    order, found, least = np.empty(len(vectors), np.int32), vectors[:k], np.inf
    for restart in range(restarts):
        faiss.rand_perm(faiss.swig_ptr(order), len(order), seed + 1 + restart * _APART)  # type: ignore[attr-defined]
        means, before, total = vectors[order[:k]], -1.0, np.inf
        for _ in range(iterations):
            if stopped():
                raise CancelledError
            total = lloyd.train(vectors, init_centroids=means)
            means = np.asarray(lloyd.centroids)
            if total == before:
                break
            before = total
        if restart == 0 or total < least:
            found, least = means, total
    return np.array(found, np.float32)


def nearest(vectors: Vectors, means: Vectors) -> NDArray[np.int64]:
    """(n,) the Euclidean nearest centroid of each vector, block by block; call it by `alone`."""
    import faiss

    index = faiss.IndexFlatL2(means.shape[1])
    index.add(means)
    found = np.empty(len(vectors), np.int64)
    for part in blocks(len(vectors), max(means.shape)):
        found[part] = index.search(vectors[part], 1)[1][:, 0]
    return found


def alone(
    job: Callable[[int, Stopped], Answer], sizes: Sequence[int], tell: Callable[[int], object] | None = None
) -> list[Answer]:
    """job(0, stopped), job(1, stopped), ...: side by side, the largest of `sizes` first, where faiss has one thread.

    The threads are new and end with the call, so that nobody else's setting of faiss changes. tell(1) is called in the
    caller's thread as each job ends. If that or a job fails, or the user interrupts, no further job begins, and
    `stopped` asks those that run to end.
    """
    import faiss

    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    workers = min(threads(), len(sizes))
    stop, begin = Event(), Event()
    pool = ThreadPoolExecutor(workers, initializer=faiss.omp_set_num_threads, initargs=(1,))
    found: dict[int, Answer] = {}

    def begun(place: int) -> Answer:
        begin.wait()  # until all are submitted: interrupted within a submit, the pool forgets the thread that it made
        if stop.is_set():
            raise CancelledError
        return job(place, stop.is_set)

    try:
        started = {pool.submit(begun, place): place for place in order}
        begin.set()
        for done in as_completed(started):
            found[started[done]] = done.result()
            if tell is not None:
                tell(1)
    finally:
        stop.set()
        begin.set()
        pool.shutdown(cancel_futures=True)
    return [found[place] for place in range(len(sizes))]

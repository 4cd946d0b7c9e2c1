"""k-means by faiss, with one thread for each clustering, so that results do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from threading import Event
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from naysay._packages import need_faiss
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, first_bad, raise_invalid
from naysay.kernels.threads import threads

Vectors = NDArray[np.float32]
Result = TypeVar("Result")
Stopped = Callable[[], bool]  # whether to end early
CONFIDENCES = ("sample", "cluster")
MIN_NORM, MAX_NORM = 1e-15, 1e15  # squares of norms between them neither overflow nor vanish in float32
SAME = 1e-5  # vectors within this share of their norm differ by rounding only
BLOCK = 1 << 20  # numbers at a time
_SEED_STEP = 15486557  # between the seeds of two restarts, as in faiss
_SMOOTH = 10  # PCL's alpha: without it a small cluster would count as dense
_SAMPLE = 64  # points per cluster from which k-means++ chooses


def as_features(features: Any, rows: int) -> Vectors:
    """Check (rows, d) features and return them as float32, without a copy if they are float32 already. O(rows d).

    A collapsed encoder gives all samples the same features up to rounding. k-means would put them in one class, and a
    loss would have no negatives left, so that is an error.
    """
    given = as_array("features", to_numpy(features))
    if given.ndim != 2 or len(given) != rows:
        raise_invalid("features", f"of shape ({rows}, d), a row for each sample", f"shape {given.shape}")
    if given.dtype.kind != "f":
        raise_invalid("features", "floating-point numbers", f"dtype {given.dtype}")
    lengths = norms(given)
    check_all("features", lengths, np.isfinite(lengths), "finite")
    bad = (lengths < MIN_NORM) | (lengths > MAX_NORM)
    if bad.any():
        advice = "A zero vector has no direction: leave the sample out, or check the encoder."
        raise_invalid("features", f"of a norm between {MIN_NORM:g} and {MAX_NORM:g}", first_bad(lengths, bad), advice)
    vectors = np.ascontiguousarray(given, np.float32)
    near = SAME * lengths[0] if rows else 0.0
    if rows > 1 and all((norms(vectors[part] - vectors[0]) <= near).all() for part in blocks(*vectors.shape)):
        got = f"{rows} rows within {SAME:g} of their norm"
        raise_invalid("features", "different vectors", got, "Is the encoder trained?")
    return vectors


def norms(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) Euclidean norms in float64, NaN or infinite where a row is."""
    lengths = np.empty(len(vectors))
    for part in blocks(*vectors.shape):
        wide = np.asarray(vectors[part], np.float64)
        with np.errstate(over="ignore"):
            lengths[part] = np.sqrt(np.einsum("nd,nd->n", wide, wide))
    return lengths


def blocks(rows: int, width: int) -> list[slice]:
    """Slices of at most BLOCK numbers, at least one row each."""
    step = max(1, BLOCK // max(1, width))
    return [slice(start, start + step) for start in range(0, rows, step)]


def centroids(vectors: Vectors, k: int, *, iterations: int, restarts: int, seed: int, stopped: Stopped) -> Vectors:
    """(k, d) centroids of Euclidean k-means over all vectors, starting from random rows; the best of all restarts.

    Call it inside `run_alone`: with several threads faiss rounds differently.
    """
    faiss = need_faiss()

    order, found = np.empty(len(vectors), np.int32), []
    for restart in range(restarts):
        faiss.rand_perm(faiss.swig_ptr(order), len(order), seed + 1 + restart * _SEED_STEP)
        found.append(_lloyd(vectors, vectors[order[:k]], iterations, stopped))
    return min(found, key=lambda result: result[0])[1]


def spread_centroids(points: NDArray[Any], k: int, *, iterations: int, restarts: int, key: int) -> Vectors:
    """The same, starting from k-means++, with the restarts in parallel."""
    generator = np.random.Generator(np.random.Philox(key=key))
    data = np.ascontiguousarray(points, np.float32)
    starts = [_spread_start(data, k, generator) for _ in range(restarts)]
    found = run_alone(lambda place, stopped: _lloyd(data, starts[place], iterations, stopped), [k] * restarts)
    return min(found, key=lambda result: result[0])[1]


def _lloyd(vectors: Vectors, means: Vectors, iterations: int, stopped: Stopped) -> tuple[float, Vectors]:
    """The sum of squared distances, and the centroids, after k-means from these means.

    Stops early where an iteration leaves the sum unchanged. An empty cluster takes half of a large one. `stopped` is
    checked before each iteration; the result is that of one faiss call for all iterations.
    """
    faiss = need_faiss()

    # faiss would otherwise take 256 points per centroid, and warn where there are few.
    limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
    step = faiss.Kmeans(vectors.shape[1], len(means), niter=1, **limits)
    before, total = -1.0, np.inf
    for _ in range(iterations):
        if stopped():
            raise CancelledError
        total = float(step.train(vectors, init_centroids=means))
        means = np.array(step.centroids, np.float32)
        if total == before:
            break
        before = total
    return total, means


def _spread_start(points: Vectors, k: int, generator: np.random.Generator) -> Vectors:
    """(k, d) starting points from a sample, each drawn by its squared distance to the nearest one before it.

    Arthur, Vassilvitskii. k-means++: The Advantages of Careful Seeding. SODA 2007.
    """
    rows = generator.choice(len(points), min(len(points), _SAMPLE * k), replace=False)
    sample = points[rows]  # in random order, so the first is a random point
    chosen = np.zeros(k, np.intp)
    squares = ((sample - sample[0]) ** 2).sum(axis=1, dtype=np.float64)
    for place in range(1, k):
        sums = np.cumsum(squares)
        chosen[place] = min(np.searchsorted(sums, generator.random() * sums[-1], side="right"), len(sample) - 1)
        np.minimum(squares, ((sample - sample[chosen[place]]) ** 2).sum(axis=1, dtype=np.float64), out=squares)
    return sample[chosen]


def nearest(vectors: Vectors, means: Vectors) -> NDArray[np.int64]:
    """(n,) the nearest centroid of each vector by Euclidean distance. Call it inside `run_alone`."""
    faiss = need_faiss()

    index = faiss.IndexFlatL2(means.shape[1])
    index.add(means)
    assigned = np.empty(len(vectors), np.int64)
    for part in blocks(len(vectors), max(means.shape)):
        assigned[part] = index.search(vectors[part], 1)[1][:, 0]
    return assigned


def run_alone(
    job: Callable[[int, Stopped], Result],
    sizes: Sequence[int],
    on_progress: Callable[[int], object] | None = None,
) -> list[Result]:
    """[job(0, stopped), job(1, stopped), ...], in parallel, the largest of `sizes` first, with one faiss thread each.

    The threads are new and end with the call, so faiss's global setting stays. on_progress(1) is called in the caller's
    thread as each job ends. If it or a job fails, or on Ctrl-C, no further job starts, and `stopped` becomes true.
    """
    faiss = need_faiss()

    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    stop, begin = Event(), Event()
    pool = ThreadPoolExecutor(min(threads(), len(sizes)), initializer=faiss.omp_set_num_threads, initargs=(1,))
    results: dict[int, Result] = {}

    def run(place: int) -> Result:
        begin.wait()  # until all are submitted: if interrupted within a submit, the pool loses the thread it made
        if stop.is_set():
            raise CancelledError
        return job(place, stop.is_set)

    try:
        started = {pool.submit(run, place): place for place in order}
        begin.set()
        for done in as_completed(started):
            results[started[done]] = done.result()
            if on_progress is not None:
                on_progress(1)
    finally:
        stop.set()
        begin.set()
        pool.shutdown(cancel_futures=True)
    return [results[place] for place in range(len(sizes))]


def sample_confidence(
    vectors: Vectors, means: Vectors, assigned: NDArray[np.int64], temperature: float
) -> NDArray[np.float64]:
    """(n,) the softmax of cos(v, c) / t over all centroids, at the ASSIGNED one: Eq. 2 of the paper.

    The nearest centroid by distance need not have the largest cosine. The cosine with a zero centroid is 0. Works in
    blocks of rows; call it inside `run_alone`.
    """
    faiss = need_faiss()

    units, squares = _units(means)
    confidence = np.empty(len(vectors))
    for part in blocks(len(vectors), max(means.shape)):
        rows, own = _units(vectors[part])
        # faiss's squared distances of unit vectors: a NumPy product would depend on the threads of its BLAS.
        cosines = faiss.pairwise_distances(rows, units)
        np.subtract(own[:, None] + squares, cosines, out=cosines)
        cosines /= 2
        largest = cosines.max(axis=1, keepdims=True)
        mine = np.take_along_axis(cosines, assigned[part, None], axis=1).astype(np.float64)
        cosines -= largest
        cosines /= temperature
        total = np.exp(cosines, out=cosines).sum(axis=1, dtype=np.float64)
        confidence[part] = np.exp((mine - largest)[:, 0] / temperature) / total
    return confidence


def cluster_confidence(vectors: Vectors, means: Vectors, assigned: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) 1 / (1 + phi) of the sample's cluster, phi = sum of distances to the centroid / (Z log(Z + 10)), Z samples.

    phi is PCL's concentration, small for dense clusters: one number per cluster. A cluster of one sample takes the
    largest phi, as in PCL's code. That code also clips phi at its 10th and 90th percentile and scales it, which does
    not change a ranking.
    """
    distances = np.empty(len(vectors))
    for part in blocks(*vectors.shape):
        distances[part] = norms(vectors[part].astype(np.float64) - means[assigned[part]])
    sizes = np.bincount(assigned, minlength=len(means))
    sums = np.bincount(assigned, weights=distances, minlength=len(means))
    phi = sums / np.maximum(sizes, 1) / np.log(sizes + _SMOOTH)
    phi[sizes <= 1] = phi[sizes > 1].max(initial=0.0)
    return np.asarray(1 / (1 + phi))[assigned]


def _units(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """Rows of norm 1 (a zero row stays), and their squared norms: 1, or 0."""
    lengths = norms(vectors)
    nonzero = lengths > 0
    units = vectors / np.where(nonzero, lengths, 1.0)[:, None]
    return units.astype(np.float32), nonzero.astype(np.float32)

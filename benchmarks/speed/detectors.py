"""Detectors and estimates: an update of `Incremental` against faiss's k-means, thresholds of many scores, and K*.

incremental   the baseline is the minimum that any implementation needs: `faiss.Kmeans` with the same k, iterations and
              samples, one thread per k, without assignment, confidence or acceptance. The ratio is of processor time.
thresholds    `choose_thresholds` of an array and of a mapped file against `numpy.partition`: part "held"
estimate      one estimate of the number of negatives, by the length of the curve and the largest k
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.speed.harness import Options, Row, alternate, child, command, timed

DIM, ITERATIONS = 128, 20
PAPER = (100, 300, 1000)
Features = NDArray[np.float32]
FIRST = """
import time
from naysay.quantity import estimate
scores = [0.5 + 0.004 * step for step in range(60)]
start = time.perf_counter()
estimate(0.75, scores)
print(time.perf_counter() - start)
"""


def features(samples: int) -> Features:
    """Unit vectors around 500 centres."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((500, DIM))[rng.integers(0, 500, samples)] + rng.standard_normal((samples, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def floor(vectors: Features, sizes: tuple[int, ...], threads: int) -> None:
    """The k-means of faiss alone: the baseline."""

    def one(k: int) -> None:
        limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
        faiss.Kmeans(DIM, k, niter=ITERATIONS, seed=1, **limits).train(vectors)

    workers = min(threads, len(sizes))
    with ThreadPoolExecutor(workers, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool:
        list(pool.map(one, sorted(sizes, reverse=True)))


def update(samples: int, sizes: tuple[int, ...], threads: int, options: Options) -> Row:
    """Ours and the baseline by turns, the memory of both, and how many slots `suspicion` answers in a second."""
    options = options.use_threads(threads)
    samples, sizes = options.size(samples, 500), tuple(options.size(k, 5) for k in sizes)
    vectors = features(samples)
    found = ns.detectors.Incremental(samples, sizes, iterations=ITERATIONS)
    calls = {"update": lambda: found.update(vectors, 0.5), "kmeans": lambda: floor(vectors, sizes, threads)}
    rows, _ = alternate(calls, min(3, options.repeats), warm=False)
    ids = np.random.default_rng(1).integers(0, samples, (512, 64))
    query, negatives = ns.Query(ids[:, 0]), ns.Negatives(ids)
    asked = min(timed(lambda: found.suspicion(query, negatives))[0]["seconds"] for _ in range(20))
    result: Row = {"samples": samples, "clusters": sizes}
    for name, call in calls.items():
        result[f"{name}_seconds"] = rows[name]["seconds"]
        result[f"{name}_processor_seconds"] = rows[name]["cpu_seconds"]
        result[f"{name}_peak_extra_bytes"] = timed(call, memory=True)[0]["peak_extra_bytes"]
    result["times_of_kmeans"] = rows["update"]["cpu_seconds"] / rows["kmeans"]["cpu_seconds"]
    result |= {"features_bytes": vectors.nbytes, "samples_by_clusters_bytes": 4 * samples * max(sizes)}
    return result | {"suspicion_slots_per_second": ids.size / asked}


def updates(cases: tuple[tuple[int, tuple[int, ...]], ...], options: Options) -> list[Row]:
    """One row a case."""
    return [update(*case, 1, options) for case in cases]


def held(options: Options) -> Row:
    """Scores in memory: an array, a mapped file of it, and numpy.partition."""
    size = options.size(100_000_000, 10_000)
    scores = np.random.default_rng(0).random(size, dtype=np.float32)
    places = [size - 1 - size // 1000, size - 1 - size * 51 // 1000]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npy"
        np.save(file, scores)
        calls: dict[str, Any] = {
            "array": lambda: ns.detectors.choose_thresholds(scores),
            "file": lambda: ns.detectors.choose_thresholds(file),
            "numpy.partition": lambda: np.partition(scores, places),
        }
        rows, _ = alternate(calls, min(3, options.repeats), memory=True, warm=False)
    for row in rows.values():
        row["per_second"] = size / row["seconds"]
    del rows["file"]["peak_extra_bytes"]  # pages of a mapped file count as resident, and the system takes them back
    return {"scores": size, **rows}


def estimates(options: Options) -> list[Row]:
    """Seconds of one estimate."""
    found = []
    for points in (1, 10, 60, 1_000, 10_000)[: options.size(5, 2)]:
        curve = 0.5 + 0.26 * (1 - np.exp(-3 * np.linspace(0, 1, max(points, 2))))[-points:]
        for k_max in (100, 1_000, 10_000, 100_000)[: options.size(4, 1)]:
            call = partial(ns.quantity.estimate, 0.76, curve, k_max=k_max)
            best = min(timed(call)[0]["seconds"] for _ in range(options.size(20, 1)))
            found.append({"points": points, "k_max": k_max, "seconds": best})
    return found


def first_estimate(options: Options) -> float:
    """The first estimate of a new process, at 60 points."""
    return min(float(child(["-c", FIRST]).stdout) for _ in range(options.repeats))


RESULTS = {
    "incremental": {
        "width": DIM,
        "iterations": ITERATIONS,
        "threads": 2,
        "faiss": faiss.__version__,
        "paper": partial(update, 60_000, PAPER, 2),
        "by_samples": partial(updates, tuple((n, (300,)) for n in (15_000, 30_000, 60_000, 120_000))),
        "by_clusters": partial(updates, tuple((60_000, (k,)) for k in (30, 100, 300, 1000))),
    },
    "thresholds": {"held": held},
    "estimate": {"first_seconds": first_estimate, "rows": estimates},
}

if __name__ == "__main__":
    command(__doc__, RESULTS)

"""What an update of `detectors.Incremental` costs: time against faiss's own k-means, its growth, and memory.

python -m benchmarks.detectors.incremental [--threads 2] [--repeats 3]

The baseline is the minimum that any implementation needs: `faiss.Kmeans` with the same k, iterations and samples, one
thread per k and as many k at once as there are threads, without assignment, confidence or acceptance. Both alternate.
Wall time and processor time of all threads are reported; the ratio is of processor time, because wall time varies on a
shared machine. Memory is the peak resident memory of an update above the level before it, without the features.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.harness import write
from benchmarks.peers.memory import peak_extra_bytes
from naysay.detectors.incremental import Incremental

WIDTH, ITERATIONS = 128, 20
PAPER = (100, 300, 1000)
Features = NDArray[np.float32]


def features(samples: int) -> Features:
    """Unit vectors around 500 centres."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((500, WIDTH))[rng.integers(0, 500, samples)] + rng.standard_normal((samples, WIDTH))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def floor(vectors: Features, sizes: tuple[int, ...], threads: int) -> None:
    """The k-means of faiss alone: the baseline."""

    def one(k: int) -> None:
        limits = {"min_points_per_centroid": 1, "max_points_per_centroid": len(vectors)}
        faiss.Kmeans(WIDTH, k, niter=ITERATIONS, seed=1, **limits).train(vectors)

    workers = min(threads, len(sizes))
    with ThreadPoolExecutor(workers, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool:
        list(pool.map(one, sorted(sizes, reverse=True)))


def seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Wall and processor seconds of one call."""
    start, busy = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - busy


def row(samples: int, sizes: tuple[int, ...], threads: int, repeats: int) -> dict[str, Any]:
    """Ours and the baseline alternating, the best of each; then the memory of both."""
    vectors = features(samples)
    found = Incremental(samples, sizes, iterations=ITERATIONS)
    calls = {"update": lambda: found.update(vectors, 0.5), "kmeans": lambda: floor(vectors, sizes, threads)}
    best, busy = dict.fromkeys(calls, float("inf")), dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            clock, processor = seconds(call)
            best[name], busy[name] = min(best[name], clock), min(busy[name], processor)
    peaks = {f"{name}_peak_extra_bytes": peak_extra_bytes(call) for name, call in calls.items()}
    ids = np.random.default_rng(1).integers(0, samples, (512, 64))
    query, negatives = ns.Query(ids[:, 0]), ns.Negatives(ids)
    asked = min(seconds(lambda: found.suspicion(query, negatives))[0] for _ in range(20))
    times = busy["update"] / busy["kmeans"]
    result = {
        "samples": samples,
        "clusters": sizes,
        "update_seconds": best["update"],
        "kmeans_seconds": best["kmeans"],
        "update_processor_seconds": busy["update"],
        "kmeans_processor_seconds": busy["kmeans"],
        "times_of_kmeans": times,
        **peaks,
        "features_bytes": vectors.nbytes,
        "samples_by_clusters_bytes": 4 * samples * max(sizes),
        "suspicion_slots_per_second": ids.size / asked,
    }
    print(
        f"{samples:7d} x {WIDTH}, k = {sizes}: {best['update']:.2f} s, {times:.2f} of k-means alone, "
        f"{(peaks['update_peak_extra_bytes'] or 0) / 1e6:.0f} MB",
        flush=True,
    )
    return result


def main() -> None:
    """Run all sizes and write results/incremental.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    ns.set_threads(args.threads)
    row(2000, (10,), args.threads, 1)  # loads what is loaded once
    result = {
        "width": WIDTH,
        "iterations": ITERATIONS,
        "threads": args.threads,
        "faiss": version("faiss-cpu"),
        "paper": row(60_000, PAPER, args.threads, args.repeats),
        "by_samples": [row(n, (300,), 1, args.repeats) for n in (15_000, 30_000, 60_000, 120_000)],
        "by_clusters": [row(60_000, (k,), 1, args.repeats) for k in (30, 100, 300, 1000)],
    }
    write("incremental", result)


if __name__ == "__main__":
    main()

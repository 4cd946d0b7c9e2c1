"""How the cost of thresholds grows with the number of scores, and the error of the sketch on adversarial streams.

python -m benchmarks.detectors.thresholds [--largest 1000000000] [--adversaries 10000000]

Streams are float32, generated block by block; the time to generate them is measured separately and subtracted. Memory
is the peak resident memory of a call above the level before it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import write
from benchmarks.peers.memory import peak_extra_bytes
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import choose_thresholds

BLOCK = 1 << 18
LOWS, HIGHS = np.linspace(0.9, 0.97, 50), np.linspace(0.98, 1.0, 50)
Scores = NDArray[np.float32]


def stream(size: int) -> Iterator[Scores]:
    """Uniform scores in [0, 1), the same at every call."""
    rng = np.random.default_rng(0)
    for start in range(0, size, BLOCK):
        yield rng.random(min(BLOCK, size - start), dtype=np.float32)


def measured(call: Callable[[], Any]) -> dict[str, Any]:
    """Seconds and memory of one call."""
    start = time.perf_counter()
    extra = peak_extra_bytes(call)
    return {"seconds": time.perf_counter() - start, "peak_extra_bytes": extra}


def growth(size: int) -> dict[str, Any]:
    """A stream of `size` scores: its generation, a grid of 100 values, and the sketch, against exact counts."""
    found: dict[str, Any] = {}

    def by_grid() -> None:
        found["grid"] = choose_thresholds(stream(size), grid=(LOWS, HIGHS))

    def by_sketch() -> None:
        found["sketch"] = choose_thresholds(stream(size))

    making = measured(lambda: deque(stream(size), maxlen=0))
    rows = {"grid": measured(by_grid), "sketch": measured(by_sketch)}
    for row in rows.values():
        row["per_second"] = size / max(row["seconds"] - making["seconds"], 1e-9)
    exact = choose_thresholds(stream(size), grid=([found["sketch"].low, 0], [found["sketch"].high, 1]), hard_share=0.04)
    truth, given = exact.table["low"][0], found["sketch"].table["low"][0]
    error = max(
        abs(int(exact.table["high"][0]["false"]) - int(given["false"])),
        abs(int(truth["easy"]) - int(given["easy"])),
    )
    rows["sketch"] |= {"stated_rank_error": found["sketch"].rank_error, "rank_error": error / size}
    for name, row in rows.items():
        memory = f"{(row['peak_extra_bytes'] or 0) / 1e6:6.0f} MB"
        print(f"{size:13,d} {name:7s} {row['per_second'] / 1e6:7.1f} M/s {memory}", flush=True)
    return {"scores": size, "making_seconds": making["seconds"], **rows}


def held(size: int) -> dict[str, Any]:
    """All scores in memory: an array, a mapped file of it, and numpy.partition for comparison; the best of three."""
    scores = np.concatenate(list(stream(size)))
    kth = [size - 1 - size // 1000, size - 1 - size * 51 // 1000]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npy"
        np.save(file, scores)
        calls: dict[str, Callable[[], Any]] = {
            "array": lambda: choose_thresholds(scores),
            "file": lambda: choose_thresholds(file),
            "numpy.partition": lambda: np.partition(scores, kth),
        }
        rows: dict[str, dict[str, Any]] = {}
        for _ in range(3):
            for name, call in calls.items():
                row = measured(call)
                if name not in rows or row["seconds"] < rows[name]["seconds"]:
                    rows[name] = row | {"per_second": size / row["seconds"]}
    del rows["file"]["peak_extra_bytes"]  # pages of a mapped file count as resident, and the system takes them back
    for name, row in rows.items():
        print(f"{size:13,d} {name:16s} {row['per_second'] / 1e6:7.1f} M/s", flush=True)
    return {"scores": size, **rows}


def adversaries(size: int) -> dict[str, Scores]:
    """Streams that are hard for sketches: order, ties, and extreme floats."""
    rng = np.random.default_rng(1)
    normal = rng.standard_normal(size, dtype=np.float32)
    tiny = np.float32(np.finfo(np.float32).smallest_subnormal)
    ordered = np.sort(normal)
    half = size // 2
    return {
        "in no order": normal,
        "sorted": ordered,
        "reversed": ordered[::-1],
        "from both ends": np.stack([ordered[:half], ordered[: half - 1 : -1][:half]], axis=1).ravel(),
        "constant": np.full(size, 0.3, np.float32),
        "zipf ties": (1 / rng.zipf(1.3, size)).astype(np.float32),
        "denormals": rng.integers(-(1 << 20), 1 << 20, size).astype(np.float32) * tiny,
        "one narrow": np.float32(0.999) + normal * np.float32(1e-6),
    }


def sketched(scores: Scores) -> ScoreSketch:
    """A sketch of scores in this order."""
    sketch = ScoreSketch()
    sketch.update(scores)
    return sketch


def error_of(sketch: ScoreSketch, ordered: Scores) -> dict[str, float]:
    """The largest error of counts at 10,000 scores, and what the sketch states."""
    places = np.unique(ordered[:: max(1, len(ordered) // 10_000)])
    truth = len(ordered) - np.searchsorted(ordered, places)
    error = np.abs(sketch.at_least(places) - truth).max() / len(ordered)
    return {"rank_error": float(error), "stated_rank_error": sketch.rank_error}


def errors(size: int) -> dict[str, Any]:
    """Stated and measured error by stream, whole, and merged from 13 parts."""
    found: dict[str, Any] = {}
    for name, scores in adversaries(size).items():
        ordered = np.sort(scores)
        merged = ScoreSketch()
        for part in np.array_split(scores, 13):
            merged.merge(sketched(part))
        found[name] = {"whole": error_of(sketched(scores), ordered), "merged": error_of(merged, ordered)}
        print(f"{name:16s} {found[name]['whole']} merged {found[name]['merged']}", flush=True)
    return {"scores": size, "streams": found}


def main() -> None:
    """Measure and write results/thresholds.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1_000_000_000)
    parser.add_argument("--held", type=int, default=100_000_000)
    parser.add_argument("--adversaries", type=int, default=10_000_000)
    args = parser.parse_args()
    growth(3_000_000)  # compiles, and loads what stays for ever
    sizes = [size for size in (10**power for power in range(6, 10)) if size <= args.largest]
    result = {
        "block": BLOCK,
        "grid_values": len(LOWS) + len(HIGHS),
        "growth": [growth(size) for size in sizes],
        "held": held(args.held),
        "errors": errors(args.adversaries),
    }
    write("thresholds", result)


if __name__ == "__main__":
    main()

"""The cost of thresholds: of an array, of a mapped file, by a grid, and of numpy.partition.

python -m benchmarks.detectors.thresholds [--held 100000000]

Memory is the peak resident memory of a call above the level before it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import write
from benchmarks.peers.memory import peak_extra_bytes
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


def held(size: int) -> dict[str, Any]:
    """All scores in memory: an array, a mapped file of it, and numpy.partition for comparison; the best of three."""
    scores = np.concatenate(list(stream(size)))
    kth = [size - 1 - size // 1000, size - 1 - size * 51 // 1000]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npy"
        np.save(file, scores)
        calls: dict[str, Callable[[], Any]] = {
            "array": lambda: choose_thresholds(scores),
            "grid": lambda: choose_thresholds(scores, grid=(LOWS, HIGHS)),
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


def main() -> None:
    """Measure and write results/thresholds.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", type=int, default=100_000_000)
    args = parser.parse_args()
    sizes = [size for size in (10**power for power in range(6, 10)) if size <= args.held]
    result = {"block": BLOCK, "grid_values": len(LOWS) + len(HIGHS), "held": [held(size) for size in sizes]}
    write("thresholds", result)


if __name__ == "__main__":
    main()

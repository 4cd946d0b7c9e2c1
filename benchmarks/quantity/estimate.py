"""What one estimate of the number of negatives costs, by the length of the curve and the largest k.

python -m benchmarks.quantity.estimate [--repeats 200]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any

from benchmarks.harness import write
from naysay.quantity import auc, estimate, simulated

POINTS, LARGEST = (1, 10, 60, 1_000, 10_000), (100, 1_000, 10_000, 100_000)
FIRST = """
import time
from naysay.quantity import estimate
scores = [0.5 + 0.004 * step for step in range(60)]
start = time.perf_counter()
estimate(0.75, scores)
print(time.perf_counter() - start)
"""


def seconds(points: int, k_max: int, repeats: int) -> float:
    """The best of `repeats` estimates on a simulated curve; fewer where one takes long."""
    scores = auc(simulated(1.0, max(points, 2)))[-points:]
    best, begun = float("inf"), time.perf_counter()
    for _ in range(repeats):
        start = time.perf_counter()
        estimate(0.76, scores, k_max=k_max)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begun > 5:
            break
    return best


def first_call(repeats: int) -> float:
    """The first estimate of a new process, with the import of SciPy and the table of powers, at 60 points."""
    command = [sys.executable, "-c", FIRST]
    return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(repeats))


def main() -> None:
    """Measure and write results/estimate.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = [
        {"points": points, "k_max": k_max, "seconds": seconds(points, k_max, args.repeats)}
        for points in POINTS
        for k_max in LARGEST
    ]
    for row in rows:
        print(f"{row['points']:6d} points, k_max {row['k_max']:7d}: {1e3 * row['seconds']:8.3f} ms")
    first = first_call(5)
    print(f"the first of a process, 60 points, k_max 1000: {1e3 * first:.1f} ms")
    write("estimate", {"repeats": args.repeats, "first_seconds": first, "rows": rows})


if __name__ == "__main__":
    main()

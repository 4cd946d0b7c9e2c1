"""What a process costs before its first draw: import, --help, and the first call, compiled and from the cache.

python -m benchmarks.speed.startup [--repeats 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import write

DRAW = """
import time
import naysay as ns
start = time.perf_counter()
known = ns.Positives.from_pairs([0, 1], [1, 0], n_items=100)
pool = ns.pools.Everything(known{options})
pool.draw(ns.Query([0, 1]), 4, rng=ns.rng_for(0))
print(time.perf_counter() - start)
"""


def wall(command: list[str], repeats: int) -> float:
    """The least wall time of a command."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


def first_call(options: str, cache: str) -> float:
    """Seconds from the first line to the first answer, in a new process that uses `cache` for compiled code."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    code = DRAW.format(options=options)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def main() -> None:
    """Measure and write results/startup.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    bare = wall([sys.executable, "-c", "pass"], args.repeats)
    result = {
        "bare_python_seconds": bare,
        "import_adds_seconds": wall([sys.executable, "-c", "import naysay"], args.repeats) - bare,
        "import_and_query_adds_seconds": wall([sys.executable, "-c", "import naysay; naysay.Query"], args.repeats)
        - bare,
        "help_seconds": wall([str(Path(sys.executable).parent / "naysay"), "--help"], args.repeats),
        "methods_seconds": wall([str(Path(sys.executable).parent / "naysay"), "methods"], args.repeats),
    }
    for name, options in (("uniform", ""), ("weighted", ", weights=range(100)")):
        with tempfile.TemporaryDirectory() as cache:
            result[f"first_{name}_draw_compiling_seconds"] = first_call(options, cache)
            result[f"first_{name}_draw_cached_seconds"] = min(first_call(options, cache) for _ in range(args.repeats))
    for name, seconds in result.items():
        print(f"{name:42s} {seconds:.3f}")
    write("startup", result)


if __name__ == "__main__":
    main()

"""What a process costs before its first result: import, --help, and the first call, compiled and from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.speed.harness import Options, command

DRAW = """
import time
import naysay as ns
start = time.perf_counter()
known = ns.Positives.from_pairs([0, 1], [1, 0], n_items=100)
pool = ns.pools.Everything(known{options})
pool.draw(ns.Query([0, 1]), 4, rng=ns.rng_for(0))
print(time.perf_counter() - start)
"""
MINE = """
import time
import numpy as np
import naysay as ns
rng = np.random.default_rng(0)
corpus = rng.normal(size=(5000, 64)).astype(np.float32)
own = rng.integers(0, 5000, 2000)
queries = (corpus[own] + 0.5 * rng.normal(size=(2000, 64))).astype(np.float32)
for call in range(3):
    start = time.process_time()
    ns.mine(queries, corpus, own, 8, judge={judge})
    print(time.process_time() - start)
"""


def wall(command: list[str], repeats: int) -> float:
    """The least wall time of a command."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best


def seconds_of(code: str, cache: str) -> list[float]:
    """The seconds that a new process prints, which uses `cache` for compiled code."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return [float(line) for line in done.stdout.split()]


def first_call(options: str, cache: str) -> float:
    """Seconds from the first line to the first answer of a draw."""
    return seconds_of(DRAW.format(options=options), cache)[0]


def first_mine(judge: str, cache: str, repeats: int) -> dict[str, float]:
    """Processor time of the first call of `mine` and of the second, compiled code on disk, and what the first is above.

    2,000 queries, 5,000 corpus rows, 64 numbers. The first call also loads what `import naysay` leaves for later.
    """
    code = MINE.format(judge=judge)
    seconds_of(code, cache)  # compiles
    runs = [seconds_of(code, cache) for _ in range(repeats)]
    first, second = min(run[0] for run in runs), min(min(run[1:]) for run in runs)
    return {"first_seconds": first, "second_seconds": second, "above_seconds": first - second}


def processes(options: Options) -> dict[str, float]:
    """Wall clock seconds of new processes."""
    bare = wall([sys.executable, "-c", "pass"], options.repeats)
    naysay = str(Path(sys.executable).parent / "naysay")
    return {
        "bare_python_seconds": bare,
        "import_adds_seconds": wall([sys.executable, "-c", "import naysay"], options.repeats) - bare,
        "import_and_query_adds_seconds": wall([sys.executable, "-c", "import naysay; naysay.Query"], options.repeats)
        - bare,
        "help_seconds": wall([naysay, "--help"], options.repeats),
        "methods_seconds": wall([naysay, "methods"], options.repeats),
    }


def calls(options: Options) -> dict[str, float]:
    """Seconds of first calls, compiling and from the cache on disk."""
    found: dict[str, float] = {}
    for name, given in (("uniform", ""), ("weighted", ", weights=range(100)")):
        with tempfile.TemporaryDirectory() as cache:
            found[f"first_{name}_draw_compiling_seconds"] = first_call(given, cache)
            found[f"first_{name}_draw_cached_seconds"] = min(first_call(given, cache) for _ in range(options.repeats))
    with tempfile.TemporaryDirectory() as cache:
        for name, judge in (("none", "None"), ("auto", '"auto"')):
            spent = first_mine(judge, cache, options.repeats)
            found |= {f"mine_judge_{name}_{part}": seconds for part, seconds in spent.items()}
    return found


# The table of the page lists the keys of the file itself, so both parts are written flat.
RESULTS = {"startup": {"": lambda options: {**processes(options), **calls(options)}}}

if __name__ == "__main__":
    command(__doc__, RESULTS)

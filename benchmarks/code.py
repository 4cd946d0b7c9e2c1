"""How large the project is, and how much of it runs: `python -m benchmarks.code [--environment DIR] [--out DIR]`.

Lines and files of src by folder beside the budget of the design, without data tables; lines and number of tests; lines
of benchmarks; the files of naysay whose functions `ns.mine` and `naysay mine` enter; calls of functions of
naysay.checks in one `ns.mine` of 60 x 200; seconds of the first `ns.mine` (1,000 x 2,000) and of the first draw in a
fresh compile cache; and, with --environment, the size of that environment's site-packages. Writes results/code.json.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import naysay as ns
from benchmarks.harness import RESULTS, ROOT, write
from benchmarks.speed.harness import child

SOURCE = Path(ns.__file__).parent
# Lines to plan with, of some folders together; "." are the files beside the folders.
BUDGET = {
    (".",): 3000,
    ("kernels",): 2800,
    ("pools",): 2300,
    ("samplers",): 3400,
    ("batches", "data", "distributed"): 1050,
    ("losses",): 2000,
    ("detectors",): 4500,
    ("quantity",): 900,
    ("difficulty",): 930,
    ("search", "encode"): 1500,
    ("formats",): 1100,
    ("mining",): 2900,
    ("jobs",): 1400,
    ("audits", "report"): 2400,
    ("lab",): 3500,
    ("catalog",): 600,
    ("testing",): 1050,
    ("integrations",): 2000,
}
FIRST_MINE = """
import time
import numpy as np
import naysay as ns
world = ns.planted_world(1000, 2000, per_anchor=6, noise=0.2, seed=0)
start = time.perf_counter()
ns.mine(world.anchor_vectors, world.item_vectors, world.known, 8)
print(time.perf_counter() - start)
"""
FIRST_DRAW = """
import time
import naysay as ns
start = time.perf_counter()
pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [1, 0], n_items=100))
pool.draw(ns.Query([0, 1]), 4, rng=ns.rng_for(0))
print(time.perf_counter() - start)
"""


def python_files(folder: Path) -> list[Path]:
    """All of a folder."""
    return [path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts]


def lines(paths: list[Path]) -> int:
    """Of all files together."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def sizes() -> dict[str, dict[str, int | None]]:
    """{folders of src/naysay: lines, files and budget}; folders without a budget are rows of their own."""
    by_folder: dict[str, list[Path]] = {}
    for path in python_files(SOURCE):
        inside = path.relative_to(SOURCE).parts
        by_folder.setdefault(inside[0] if len(inside) > 1 else ".", []).append(path)
    planned = {folder for folders in BUDGET for folder in folders}
    groups = {**BUDGET, **{(folder,): None for folder in sorted(by_folder) if folder not in planned}}
    found: dict[str, dict[str, int | None]] = {}
    for folders, budget in groups.items():
        files = [path for folder in folders for path in by_folder.get(folder, [])]
        found[", ".join(folders)] = {"lines": lines(files), "files": len(files), "budget": budget}
    return found


def n_tests() -> int:
    """Functions and methods whose names begin with test_."""
    nodes = (
        node for path in python_files(ROOT / "tests") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    return sum(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in nodes)


class Watch:
    """The files of naysay that a call enters, and how often its functions are called; imports aside."""

    def __init__(self, call: Callable[[], Any]) -> None:
        """Call it."""
        self.calls: Counter[str] = Counter()
        self.files: set[str] = set()
        sys.setprofile(self._enter)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _enter(self, frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_code.co_filename
        is_function = event == "call" and frame.f_code.co_flags & CO_NEWLOCALS
        if is_function and name.startswith(str(SOURCE)) and not self._at_import(frame):
            file = str(Path(name).relative_to(SOURCE))
            self.files.add(file)
            is_inner = "<locals>" in frame.f_code.co_qualname  # what a decorator wraps around a function, and the like
            self.calls[file] += not is_inner

    def _at_import(self, frame: FrameType | None) -> bool:
        """Whether a function runs because a module is being imported: a decorator, or a call at its top."""
        while frame is not None and frame.f_code is not self.__init__.__func__.__code__:  # type: ignore[misc]
            if frame.f_code.co_name == "<module>":
                return True
            frame = frame.f_back
        return False

    def path(self) -> list[str]:
        """The files, without compiled loops."""
        return sorted(name for name in self.files if not name.startswith("kernels"))


def command_of(folder: Path, world: Any) -> list[str]:
    """A tiny job in files, as the arguments of `naysay mine`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    np.save(folder / "q.npy", world.anchor_vectors)
    np.save(folder / "c.npy", world.item_vectors)
    anchors, items = world.known.pairs()
    pairs = {"anchor": [f"question {row}" for row in anchors], "positive": [f"d{row}" for row in items]}
    pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    names = [f"d{row}" for row in range(len(world.item_vectors))]
    pq.write_table(pa.table({"id": names, "text": [f"text {name}" for name in names]}), folder / "docs.parquet")
    given = {"--corpus": "docs.parquet", "--query-vectors": "q.npy", "--corpus-vectors": "c.npy", "-o": "out.parquet"}
    options = [part for option, name in given.items() for part in (option, str(folder / name))]
    return ["mine", str(folder / "pairs.parquet"), *options, "-k", "4"]


def paths() -> dict[str, Any]:
    """Files on the path of `ns.mine` and of the command, and calls of checks in one `ns.mine`."""
    from naysay.cli import app

    world = ns.planted_world(60, 200, per_anchor=6, noise=0.2, seed=0)
    mined = Watch(lambda: ns.mine(world.anchor_vectors, world.item_vectors, world.known, 4))
    with tempfile.TemporaryDirectory() as folder:
        arguments = command_of(Path(folder), world)
        commanded = Watch(lambda: app(arguments, standalone_mode=False))
    return {
        "ns.mine": mined.path(),
        "naysay mine": commanded.path(),
        "calls of checks in ns.mine": mined.calls["checks.py"],
    }


def first_seconds(code: str) -> float:
    """What a new process prints, with an empty cache for compiled code."""
    with tempfile.TemporaryDirectory() as cache:
        return float(child(["-c", code], env={**os.environ, "NUMBA_CACHE_DIR": cache}).stdout.split()[-1])


def installed_bytes(environment: Path) -> int:
    """The files of an environment's site-packages."""
    folders = list(environment.glob("lib/python*/site-packages"))
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure, print the table, and write results/code.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, help="a virtual environment with naysay installed")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    source, tests, scripts = sizes(), python_files(ROOT / "tests"), python_files(ROOT / "benchmarks")
    found: dict[str, Any] = {
        "source": source,
        "source_lines": sum(row["lines"] or 0 for row in source.values()),
        "source_files": sum(row["files"] or 0 for row in source.values()),
        "test_lines": lines(tests),
        "test_files": len(tests),
        "tests": n_tests(),
        "benchmark_lines": lines(scripts),
        "benchmark_files": len(scripts),
        "paths": paths(),
        "first_mine_seconds": first_seconds(FIRST_MINE),
        "first_draw_seconds": first_seconds(FIRST_DRAW),
        "installed_bytes": installed_bytes(args.environment) if args.environment else None,
    }
    for folder, row in source.items():
        print(f"{folder:28s} {row['lines']:>7,} lines {row['files']:>4} files   budget {row['budget'] or '-'}")
    for name, value in found.items():
        if isinstance(value, (int, float)):
            print(f"{name:24s} {value:,.6g}")
    for name, value in found["paths"].items():
        print(f"{name:28s} {value if isinstance(value, int) else f'{len(value)} files'}")
    write("code", found, args.out)


if __name__ == "__main__":
    main()

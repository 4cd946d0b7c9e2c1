"""What does `naysay compare` say of FB15k-237 with its default arms, before and after a change?

python -m benchmarks.speed.compare_knowledge_graph before|after DATA [--source DIR] [--budget 5m]

Runs the command of the checkout DIR (this one, unless another is given) on the three parts of FB15k-237, and writes
what it printed, how it ended, and how long it took, under "before" or "after" of results/compare_knowledge_graph.json.

DATA has fb15k-237/triples.npz.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, ROOT, write

NAME = "compare_knowledge_graph"
TARGET = RESULTS / f"{NAME}.json"


def write_parts(data: Path, folder: Path) -> None:
    """train.txt, valid.txt and test.txt, as `naysay compare` reads them."""
    with np.load(data / "fb15k-237" / "triples.npz") as file:
        for part in ("train", "valid", "test"):
            np.savetxt(folder / f"{part}.txt", file[part], fmt=["e%d", "r%d", "e%d"], delimiter="\t")


def run(source: Path, data: Path, budget: str) -> dict[str, Any]:
    """One comparison in a process of its own, in one thread."""
    one_thread = {"OMP_NUM_THREADS": "1", "NAYSAY_THREADS": "1", "PYTHONPATH": str(source.resolve() / "src")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_parts(data, folder)
        command = ["compare", str(folder), "--task", "knowledge-graph", "--budget", budget]
        load, start = os.getloadavg(), time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-m", "naysay", *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,  # where it writes its report
            env={**os.environ, **one_thread},
        )
        seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "command": f"naysay compare fb15k-237/ --task knowledge-graph --budget {budget}",
        "exit": ended.returncode,
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "load": {"before": load, "after": os.getloadavg()},
        "printed": ended.stdout.splitlines(),
        "messages": ended.stderr.splitlines()[-20:],
    }


def main() -> None:
    """Run one side, and keep the other of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("before", "after"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--source", type=Path, default=ROOT)
    parser.add_argument("--budget", default="5m")
    args = parser.parse_args()
    found = run(args.source, args.data, args.budget)
    kept = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    sides = {side: kept[side] for side in ("before", "after") if side in kept}
    write(NAME, {**sides, args.side: found})


if __name__ == "__main__":
    main()

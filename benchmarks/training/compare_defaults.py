"""The default arms of `naysay compare` on MovieLens-100K: what one source tree prints, for before and after a change.

    python -m benchmarks.training.compare_defaults before --source other-tree/src --ratings ml-100k/ratings.npz
    python -m benchmarks.training.compare_defaults after --ratings ml-100k/ratings.npz --steps 1000 --folder work

Each call runs the command in a process of its own, on one thread, with the sources of one tree. It adds its table, its
recommendation and what was printed to results/compare_defaults.json, under the label. Ratings of 4 and more are
positives. A run that was stopped continues in its --folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).parents[1] / "results" / "compare_defaults.json"
SOURCE = Path(__file__).parents[2] / "src"
LIKED = "4"
TERMINAL_COLUMNS = "200"  # wide enough for the whole table


def write_table(ratings: Path, target: Path) -> None:
    """Write the ratings of an .npz file as a table that `compare` reads."""
    with np.load(ratings) as stored:
        names = ("user", "item", "rating", "timestamp")
        columns = [stored[name] for name in names]
    np.savetxt(target, np.stack(columns, axis=1), fmt="%d", delimiter=",", header=",".join(names), comments="")


def measured(source: Path, ratings: Path, arguments: list[str], folder: Path) -> dict[str, Any]:
    """Run the command in a folder; return what it printed and wrote."""
    write_table(ratings, folder / "ratings.csv")
    given = ["compare", "ratings.csv", "--liked", LIKED, *arguments, "-o", "out"]
    environment = os.environ | {
        "PYTHONPATH": str(source.resolve()),
        "OMP_NUM_THREADS": "1",
        "NAYSAY_THREADS": "1",
        "COLUMNS": TERMINAL_COLUMNS,
    }
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "naysay", *given],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - began
    written = json.loads((folder / "out" / "results.json").read_text())
    at_the_last_check = sum(
        run["points"][-1]["value"] == max(point["value"] for point in run["points"])
        for arm in written["arms"]
        for run in arm["runs"]
    )
    return {
        "command": " ".join(["naysay", *given]),
        "seconds": round(seconds),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("numpy", "torch")}},
        "settings": written["settings"],
        "k of the arms": {arm["name"]: arm["k"] for arm in written["arms"]},
        "table": written["table"],
        "recommendation": written["recommendation"],
        "notes": written["notes"],
        "runs": sum(len(arm["runs"]) for arm in written["arms"]),
        "runs whose best validation is the last": at_the_last_check,
        "printed": done.stdout.splitlines(),
    }


def main() -> None:
    """Run the command for one label."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("label", help="such as before or after")
    parser.add_argument("--ratings", type=Path, required=True, help="ratings.npz: user, item, rating, timestamp")
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder src of a tree; by default this one's")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--steps", default="", help="in place of --budget")
    parser.add_argument("--folder", type=Path, help="where to work, and to continue; by default a temporary folder")
    parser.add_argument("--methods", default="", help="other than the default arms")
    parser.add_argument("--seeds", default="", help="other than the default number")
    options = parser.parse_args()
    arguments = ["--steps", options.steps] if options.steps else ["--budget", options.budget]
    for name in ("methods", "seeds"):
        if getattr(options, name):
            arguments += [f"--{name}", getattr(options, name)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        found = measured(options.source, options.ratings, arguments, folder)
    known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    known[options.label] = found
    RESULT.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    print("\n".join(found["printed"]))


if __name__ == "__main__":
    main()

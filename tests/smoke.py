"""What must work right after `pip install naysay-*.whl`, without extras: run by `make wheel` in a clean environment.

It uses no test framework, because a clean environment has none.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import naysay as ns


def run(*arguments: str) -> str:
    """Run a command of the installed package and return what it prints."""
    command = [sys.executable, "-m", "naysay", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check(what: str, good: bool) -> None:
    """Stop with exit code 1 if something does not hold."""
    print(("ok      " if good else "FAILED  ") + what)
    if not good:
        sys.exit(1)


def main() -> None:
    """Draw, mine, write, read the catalogue, and estimate, in the installed package."""
    check("the installed package is imported, not the source tree", "site-packages" in ns.__file__)
    check("torch is absent", "torch" not in sys.modules)
    world = ns.planted_world(50, 200)
    anchors = np.arange(50)
    sampler = ns.samplers.Static(ns.pools.Everything(world.known))
    negatives = sampler.sample(ns.Query(anchors), 4, rng=ns.rng_for(0))
    check("a draw has its shape", negatives.shape == (50, 4))
    check("no known positive comes back", not world.known.contains(anchors, negatives.ids).any())
    mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, k=3)
    check("mining returns k ids a row", mined.ids.shape == (50, 3))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.parquet"
        mined.write(path, format="ids")
        audited = ns.audit(path, query_vectors=world.anchor_vectors, corpus_vectors=world.item_vectors)
        check("a file that was written is audited", audited.negatives == int(mined.mask.sum()))
        report = Path(folder) / "report.html"
        mined.report(report)
        check("a report is written", "<html" in report.read_text())
    check("naysay --version", run("--version").strip() == f"naysay {ns.__version__}")
    check("naysay methods", "uniform" in run("methods").lower())
    name = ns.catalog.methods()[0].name
    check(f"naysay methods {name} prints its program", "from naysay.pools import" in run("methods", name))
    check("naysay howmany", run("howmany", "--train-auc", "0.75", "--val-auc", "0.52,0.61,0.66") != "")


if __name__ == "__main__":
    main()

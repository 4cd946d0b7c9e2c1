"""Which rules keep false negatives out, on data where they are known.

    python -m benchmarks.hidden_positives.study DATA [--only scifact cranfield debian codex] [--seeds 5] [--out FILE]

DATA    a folder with scifact/ and scifact-minilm/, cranfield/, debian-desc/ and codex-s/, as readers.py lists

**scifact, cranfield.** For anchors with several positives, half of them are hidden, by the seed. The rest is known and
excluded. All documents are candidates, in exact order; every rule selects the ten hardest that it does not flag. The
measure is the share of hidden positives among them. A rule that selects easier negatives returns fewer without being
better, so each rule's parameter is also varied, and rules are compared where the mean score of their negatives equals
that of a rank window (skip 5, 20, 50): see hardness.py. Thresholds are fitted to anchors that are not evaluated: in
scifact to those with one positive, in cranfield to a random half of those with several. Cranfield's vectors are TF-IDF
reduced to 200 singular vectors; its codes 1 to 4 are positive, and the undocumented code -1 is dropped.

**debian.** Short description against long one. Packages of one source are false negatives of each other, which is the
first truth; equal sets of tags are the second. Vectors are TF-IDF and 256 singular vectors, fitted to the long ones.

**codex.** Held-out true triples must be flagged, verified false ones kept. Thresholds come from validation triples. Two
models score them, one trained and one in closed form; `Labelled` uses the scores of both.

Also: the miss rate that `Calibrated` promised and the observed one, and the upper bounds of `false_negative_rate`. Runs
on one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import naysay as ns
from benchmarks.harness import RESULTS, write
from benchmarks.hidden_positives import packages, readers, text, triples
from benchmarks.hidden_positives.readers import FILES, check_files
from naysay.checks import check_whole, with_option_names
from naysay.errors import NaysayError

MODELS, ANCHORS, STEPS = 3, 3000, 800
_SAYINGS = {"debian": 24}  # how often a part reports, about


class Progress:
    """Progress of a part, with the estimated time left."""

    def __init__(self, part: str, pieces: int) -> None:
        """The clock starts now."""
        self.part, self.pieces, self.done, self.start = part, pieces, 0, time.perf_counter()

    def __call__(self, what: str) -> None:
        """One piece is done."""
        self.done += 1
        left = (time.perf_counter() - self.start) * max(self.pieces - self.done, 0) / self.done / 60
        print(f"{self.part}: {what}; about {left:.1f} minutes left in this part", flush=True)


def run(folder: Path, part: str, seeds: int, anchors: int, steps: int) -> dict[str, Any]:
    """One part of the study, and the seconds that it took."""
    start, models = time.perf_counter(), min(seeds, MODELS)
    pieces = {"scifact": seeds + min(seeds, 2), "cranfield": seeds, "codex": models} | _SAYINGS
    say = Progress(part, pieces[part])
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "scifact": lambda: text.study(readers.scifact(folder), seeds, by="single", say=say),
        "cranfield": lambda: text.study(readers.cranfield(folder), seeds, by="half", say=say),
        "debian": lambda: packages.study(readers.packages(folder), anchors, say=say),
        "codex": lambda: triples.study(readers.triples(folder), readers.relation_names(folder), models, steps, say=say),
    }
    return parts[part]() | {"seconds": round(time.perf_counter() - start, 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen parts and write results/distrust.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument(
        "--only", nargs="+", choices=list(FILES), default=list(FILES), help="parts to run; others stay in the file"
    )
    parser.add_argument("--seeds", type=int, default=5, help="random splits; at most 3 models of triples are trained")
    parser.add_argument("--anchors", type=int, default=ANCHORS, help="packages to evaluate")
    parser.add_argument("--steps", type=int, default=STEPS, help="training steps of each model of triples")
    parser.add_argument("--out", type=Path, help="where to write; results/distrust.json by default")
    args = parser.parse_args(arguments)
    try:
        with with_option_names("hidden_positives", {}):
            for name in ("seeds", "anchors", "steps"):
                check_whole(f"--{name}", getattr(args, name), 1)
            check_files(args.data, args.only)
            ns.set_threads(1)
            torch.set_num_threads(1)
            found = {part: run(args.data, part, args.seeds, args.anchors, args.steps) for part in args.only}
    except NaysayError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    write("distrust", {"seeds": args.seeds, **kept(args.out), **found}, args.out)


def kept(out: Path | None) -> dict[str, Any]:
    """The parts of an earlier run in the same file; those that ran now replace them."""
    target = out or RESULTS / "distrust.json"
    earlier = json.loads(target.read_text()) if target.is_file() else {}
    return {part: earlier[part] for part in FILES if part in earlier}


if __name__ == "__main__":
    main()

"""Records what `naysay demo` prints, for the documentation, and how its settings were chosen.

python -m benchmarks.demo.run           # the full demo, seed 0
python -m benchmarks.demo.run --tune    # its settings, on the validation questions of the same split
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import itertools
import json
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.harness import write
from naysay import mining
from naysay.demo import read_library, run, tutorial
from naysay.demo.tutorial import Encoder, Pairs, Split, Trainer

STEPS = 100
Mine = Callable[[Encoder, Pairs], mining.Mined]


def demonstration() -> None:
    """Run it once for the compiler, once for the record, and write results/demonstration.json."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        run(quick=True, out=out, console=Console(file=io.StringIO()))
        printed, started = io.StringIO(), time.perf_counter()
        run(out=out, console=Console(file=printed, width=80))
        seconds = time.perf_counter() - started
        numbers = json.loads((out / "results.json").read_text())
        text = [line.rstrip().replace(folder + "/", "") for line in printed.getvalue().splitlines()]
    write("demonstration", {"torch": version("torch"), "seconds": seconds, **numbers, "printed": text})


def tune() -> None:
    """Write results/demonstration_tuning.json: every setting that was tried, on validation questions, one seed.

    Learning rate and temperature are chosen where in-batch negatives are best. The arms that mine are for comparison:
    their judge has its default target, and k was not tuned. The passages (their length and overlap, the words of a
    question) were chosen without training, so that the nearest hold many false negatives, nearly equal to the answer.
    """
    torch.set_num_threads(1)
    parts, found = tutorial.split(read_library(), 0), {}
    grid = {}
    for chosen in itertools.product((0.003, 0.01, 0.03), (0.02, 0.05, 0.1)):
        tutorial.RATE, tutorial.TEMPERATURE = chosen
        grid[chosen] = quality_of(parts, None)
        found["in-batch, rate {}, temperature {}".format(*chosen)] = grid[chosen]
        save(parts, found)
    tutorial.RATE, tutorial.TEMPERATURE = max(grid, key=lambda each: grid[each]["ndcg_at_10"])
    for name, mine in judges(tutorial.K).items():
        found[f"{name}, k {tutorial.K}"] = quality_of(parts, mine)
        save(parts, found)


def save(parts: Split, found: dict[str, Any]) -> None:
    """Write what was found so far."""
    write("demonstration_tuning", {"questions": len(parts.validation), "steps": STEPS, "quality": found})


def quality_of(parts: Split, mine: Mine | None) -> dict[str, float]:
    """The quality on validation questions after training with in-batch negatives, and mined ones if there are any."""
    trainer = Trainer(parts.train, STEPS, 0)
    if mine is None:
        trainer.in_batch(STEPS)
    else:
        trainer.mined(STEPS, mine(trainer.encoder, parts.train).negatives())
    return dataclasses.asdict(tutorial.quality(trainer.encoder, parts.validation, parts.train))


def judges(k: int) -> dict[str, Mine]:
    """Ways to mine k negatives; the oracle knows which are false."""

    def by(judge: Any, *, truth: bool = False) -> Mine:
        def mine(encoder: Encoder, pairs: Pairs) -> mining.Mined:
            vectors = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
            return mining.mine(*vectors, pairs.relevant if truth else pairs.known, k, judge=judge)

        return mine

    plain = {"plain hard": by(None), "judged, auto": by("auto")}
    return {**plain, "share 0.95": by("share:0.95"), "oracle": by(None, truth=True)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tune", action="store_true")
    tune() if parser.parse_args().tune else demonstration()

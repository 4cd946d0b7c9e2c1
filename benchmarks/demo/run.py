"""Records what `naysay demo` prints, for the documentation, and how its settings were chosen.

python -m benchmarks.demo.run           # the full demo, seed 0
python -m benchmarks.demo.run --tune    # its settings, on the validation names of the same split
"""

from __future__ import annotations

import argparse
import dataclasses
import io
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
from naysay.detectors import Calibrated

STEPS, SEEDS = 200, 2
Mine = Callable[[Encoder, Split], mining.Mined]


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
    """Write results/demonstration_tuning.json: every setting that was tried, on validation names, mean over seeds."""
    torch.set_num_threads(1)
    parts, found = tutorial.split(read_library(), 0), {}
    chosen = tutorial.RATE, tutorial.TEMPERATURE
    for rate in (0.03, 0.1, 0.3):
        for temperature in (0.05, 0.1, 0.2):
            tutorial.RATE, tutorial.TEMPERATURE = rate, temperature
            found[f"in-batch, rate {rate}, temperature {temperature}"] = mean(parts, lambda seed: in_batch(parts, seed))
    tutorial.RATE, tutorial.TEMPERATURE = chosen
    for k in (4, 8):
        for name, mine in judges(k).items():
            found[f"{name}, k {k}"] = mean(parts, lambda seed, mine=mine: mined(parts, seed, mine))
    write("demonstration_tuning", {"names": len(parts.validation), "seeds": SEEDS, "quality": found})


def mean(parts: Split, trained: Callable[[int], Trainer]) -> dict[str, float]:
    """The quality of each seed's encoder on validation names, averaged."""
    each = [
        dataclasses.asdict(tutorial.quality(trained(seed).encoder, parts.validation, parts.train))
        for seed in range(SEEDS)
    ]
    return {name: sum(one[name] for one in each) / SEEDS for name in each[0]}


def in_batch(parts: Split, seed: int, steps: int = STEPS) -> Trainer:
    """An encoder after so many steps of a run of STEPS."""
    trainer = Trainer(parts.train, STEPS, seed)
    trainer.in_batch(steps)
    return trainer


def mined(parts: Split, seed: int, mine: Mine) -> Trainer:
    """The second half with mined negatives."""
    trainer = in_batch(parts, seed, STEPS // 2)
    for _ in range(tutorial.REFRESHES):
        trainer.mined(STEPS // 2 // tutorial.REFRESHES, mine(trainer.encoder, parts).negatives())
    return trainer


def judges(k: int) -> dict[str, Mine]:
    """Ways to mine k negatives; "held out" fits the threshold to validation positives."""

    def by(judge: Callable[[Encoder, Split], Any]) -> Mine:
        def mine(encoder: Encoder, parts: Split) -> mining.Mined:
            vectors = encoder.vectors(parts.train.queries), encoder.vectors(parts.train.documents)
            return mining.mine(*vectors, parts.train.known, k, judge=judge(encoder, parts))

        return mine

    def held_out(alpha: float) -> Mine:
        return by(lambda encoder, parts: Calibrated(alpha).fit(scores(encoder, parts.validation)))

    def auto(encoder: Encoder, parts: Split) -> mining.Mined:
        vectors = encoder.vectors(parts.train.queries), encoder.vectors(parts.train.documents)
        return mining.mine(*vectors, parts.train.known, k, judge="auto", duplicates=tutorial.duplicates_of(parts.train))

    return {
        "plain hard": lambda encoder, parts: tutorial.nearest(encoder, parts.train, k),
        "judged by duplicates": lambda encoder, parts: tutorial.judged(encoder, parts.train, k),
        "judged by duplicates and auto": auto,
        "judged, held out, alpha 0.05": held_out(0.05),
        "judged, held out, alpha 0.5": held_out(0.5),
    }


def scores(encoder: Encoder, pairs: Pairs) -> Any:
    """(n,) of each name and its own document."""
    return (encoder.vectors(pairs.queries) * encoder.vectors(pairs.documents)).sum(axis=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tune", action="store_true")
    tune() if parser.parse_args().tune else demonstration()

"""A study of claims: its runs, kept in a file and not run again, the choice of settings, and its command."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

import naysay as ns
from benchmarks.claims.training import Row, Settings, trained
from benchmarks.claims.worlds import Make
from benchmarks.harness import RESULTS, write
from benchmarks.training.images import Kept, processor_minutes
from naysay.errors import NaysayError
from naysay.lab import Arm
from naysay.quantity.online import Online

TUNING_SEED = 1000


@dataclass(frozen=True)
class World:
    """A task, the length of its runs, and the settings that are tried."""

    name: str
    read: Callable[[Path], Make]
    steps: int
    every: int
    rates: tuple[float, ...]
    decays: tuple[float, ...]


class UnfinishedError(Exception):
    """A run that is not in the file, and that is not to be made."""


class Runs:
    """The runs of one task. Data is read, and the task of a seed made, when a run first needs it."""

    def __init__(self, world: World, folder: Path, path: Path, only: Sequence[str] | None = None) -> None:
        """Finished runs are lines of the file `path`; if `only` is given, no other arms run."""
        self.world, self.folder, self.path, self.only = world, folder, path, only
        self._make: Make | None = None
        self._task: tuple[int, Any] | None = None

    def settings(self, rate: float, decay: float) -> Settings:
        """Those of one run with which something is chosen."""
        return Settings(self.world.name, self.world.steps, self.world.every, rate, decay, tested=False)

    def run(self, arm: Arm, settings: Settings, seed: int, probes: Online | None = None) -> Row:
        """A run of the file, or a new one, which is then in it; raises UnfinishedError if the arm is not to run."""
        kept = Kept(self.path, asdict(settings))
        found = kept.get(arm.name, seed)
        if found is None and self.only is not None and arm.name not in self.only:
            raise UnfinishedError(arm.name)
        if found is None:
            found = kept.add(arm.name, seed, trained(self._of(seed), arm, settings, seed, probes))
            tested = "".join(f", {key} {value:.4f}" for key, value in list(found.get("test", {}).items())[:2])
            print(
                f"{settings.data}, seed {seed}, {arm.name}, rate {settings.rate:g}, decay {settings.decay:g}: "
                f"validation {found['validation']:.4f} at step {found['best_step']}{tested}, "
                f"{found['processor_seconds']:.0f} s",
                flush=True,
            )
        return found

    def _of(self, seed: int) -> Any:
        """The task of a seed."""
        if self._make is None:
            self._make = self.world.read(self.folder)
        if self._task is None or self._task[0] != seed:
            self._task = seed, self._make(seed)
        return self._task[1]

    def tune(self, arm: Arm) -> tuple[Settings, dict[str, float]]:
        """The settings of an arm that are best by validation on the split of seed 1000, and all that was tried.

        One setting needs no run.
        """
        grid = [self.settings(rate, decay) for rate in self.world.rates for decay in self.world.decays]
        if len(grid) == 1:
            return replace(grid[0], tested=True), {}
        found = [self.run(arm, one, TUNING_SEED)["validation"] for one in grid]
        tried = {f"{one.rate:g}, {one.decay:g}": value for one, value in zip(grid, found, strict=True)}
        return replace(grid[found.index(max(found))], tested=True), tried


Told = Callable[[Row], None]  # gets the summary of a task after each seed
Study = Callable[[Runs, int, Told], None]  # all runs of one task, for so many seeds


@dataclass(frozen=True)
class Claims:
    """What a command runs: results/NAME.json, its documentation, and what was not blind."""

    name: str
    text: str
    worlds: tuple[World, ...]
    study: Study
    not_blind: tuple[str, ...]


def command(claims: Claims, arguments: Sequence[str] | None = None) -> None:
    """Run what is not in the file yet, and write the summary after each seed; other tasks of the file stay."""
    parser = argparse.ArgumentParser(description=claims.text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    names = [world.name for world in claims.worlds]
    parser.add_argument("--task", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", nargs="*", help="run only these; others are in the summary if they are finished")
    parser.add_argument("--out", type=Path, help=f"results/{claims.name}.json by default")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ns.set_threads(1)
    out = args.out or RESULTS / f"{claims.name}.json"
    tasks: dict[str, Row] = json.loads(out.read_text())["tasks"] if out.is_file() else {}

    def told(name: str, found: Row) -> None:
        tasks[name] = {**found, "processor_minutes": processor_minutes(out.with_suffix(".jsonl"), name)}
        write(claims.name, {"not_blind": claims.not_blind, "torch": torch.__version__, "tasks": tasks}, out)

    try:
        for world in claims.worlds:
            if world.name in args.task:
                runs = Runs(world, args.data, out.with_suffix(".jsonl"), args.arms)
                claims.study(runs, args.seeds, partial(told, world.name))
    except NaysayError as error:
        print(error, file=sys.stderr)
        sys.exit(2)

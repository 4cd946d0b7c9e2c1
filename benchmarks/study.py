"""Runs any study: `python -m benchmarks.study NAME --data DIR [--arms A ...] [--seeds S ...] [--quick] [--out DIR]`.

A study is a declaration (`Study`): its protocol, its data, its arms, its seeds, its measures, and its claims, each a
difference of two arms with the side that is claimed. The declarations are in `benchmarks/studies`; `--list` names them.

The protocol is written and committed before the first run. OUT/NAME.json is written after every finished run, and a
second call goes on where the first one stopped. A file that was made by another protocol or other settings is refused,
so that a study cannot change while it runs.

Seeds are in the outer loop: a study that is cut short has all arms of the first seeds. Runs of one seed have the same
data, so differences are paired by seed. Where a study has a grid, each arm's settings are chosen on a seed of its own
(1000) by the measure "validation"; the test part is not looked at there.

`--quick` replaces the settings by tiny ones, runs one seed, and writes to a temporary folder unless --out is given: it
shows that a study works, and says nothing about its claims.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import pkgutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import naysay as ns
from benchmarks import studies
from benchmarks.data import DATA, differs
from benchmarks.harness import RESULTS, read, spread, write

TUNING_SEED = 1000
COST = "processor_seconds"  # of a run, also in the summary of an arm
Settings = Mapping[str, Any]
Found = dict[str, Any]  # what a run measured: numbers by name


@dataclass(frozen=True)
class Claim:
    """A difference of two arms in one measure, and what is claimed of it.

    side     1: the arm is higher; -1: it is lower; 0: they differ by less than `margin`
    margin   how much higher or lower at least
    """

    text: str
    arm: str
    base: str
    measure: str
    side: int = 1
    margin: float = 0.0


@dataclass(frozen=True)
class Job:
    """One run: an arm on the data of a seed.

    earlier   what the finished arms of the same seed found, by name
    folder    where a long run may keep what it needs to go on after a stop; the runner leaves it alone
    """

    world: Any
    arm: Any
    seed: int
    settings: Settings
    earlier: Mapping[str, Found]
    folder: Path = Path()


@dataclass(frozen=True)
class Study:
    """A declaration: all that decides the result.

    protocol     what is run and measured, and how settings are chosen; written before the first run
    data         folders of DIR that it reads; `benchmarks.data` brings them
    world        (DIR, seed, settings) -> the data of a seed
    run          trains and measures one arm
    arms         {name: what `run` gets as `job.arm`}; plain data, so that a change is noticed
    measures     what the summary has of each arm, the first one is the main one
    settings     what all runs share
    quick        what replaces some settings for --quick
    grid         settings to choose from for each arm, by "validation"
    tuned_like   {arm: the arm whose choice it takes}
    base         the arm that others are compared with in the summary: "over_base", in the main measure
    """

    name: str
    protocol: str
    data: tuple[str, ...]
    world: Callable[[Path, int, Settings], Any]
    run: Callable[[Job], Found]
    arms: Mapping[str, Any]
    seeds: tuple[int, ...]
    measures: tuple[str, ...]
    claims: tuple[Claim, ...] = ()
    settings: Settings = field(default_factory=dict)
    quick: Settings = field(default_factory=dict)
    grid: tuple[Settings, ...] = ()
    tuned_like: Mapping[str, str] = field(default_factory=dict)
    base: str = ""

    def fingerprint(self, settings: Settings) -> str:
        """Changes with the protocol, the settings and the grid; arms may be added."""
        parts = json.dumps([self.protocol, dict(settings), [dict(one) for one in self.grid]], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:16]


class Runner:
    """The runs of one study, kept in one file."""

    def __init__(self, study: Study, data: Path, out: Path, *, quick: bool) -> None:
        """Read what is finished; raises SystemExit if the file is of another protocol."""
        self.study, self.data, self.out = study, data, out
        self.settings = {**study.settings, **(study.quick if quick else {})}
        self.grid = study.grid[:1] if quick else study.grid
        self.fingerprint = study.fingerprint(self.settings)
        earlier = read(study.name, out)
        if earlier and earlier["fingerprint"] != self.fingerprint:
            sys.exit(f"{study.name}.json is of another protocol or other settings: move it away")
        self.runs: list[dict[str, Any]] = earlier.get("runs", [])
        # A quick run says nothing about results, so its data is not compared.
        self.changed = [] if quick else [name for name in study.data if differs(name, data)]
        if self.changed:
            print(f"other content than benchmarks.data has: {', '.join(self.changed)}", file=sys.stderr)
        self._world: tuple[int, Any] | None = None

    def finished(self, arm: str, seed: int, chosen: Settings) -> Found | None:
        """What a finished run found."""
        same = {"arm": arm, "is": repr(self.study.arms[arm]), "seed": seed, "chosen": dict(chosen)}
        return next((run["found"] for run in self.runs if same.items() <= run.items()), None)

    def run(self, arm: str, seed: int, chosen: Settings) -> Found:
        """A finished run, or a new one, which is written at once."""
        found = self.finished(arm, seed, chosen)
        if found is not None:
            return found
        if self._world is None or self._world[0] != seed:
            self._world = seed, self.study.world(self.data, seed, self.settings)
        of_seed = {run["arm"]: run["found"] for run in self.runs if run["seed"] == seed}
        unfinished = self.out / f"{self.study.name}-unfinished"
        job = Job(self._world[1], self.study.arms[arm], seed, {**self.settings, **chosen}, of_seed, unfinished)
        wall, processor = time.perf_counter(), time.process_time()
        found = self.study.run(job)
        if seed == TUNING_SEED:  # nothing of the test part is kept
            found = {"validation": found["validation"]}
        cost = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
        identity = {"arm": arm, "is": repr(self.study.arms[arm]), "seed": seed, "chosen": dict(chosen)}
        self.runs.append({**identity, "found": found, **cost})
        shown = ", ".join(
            f"{name} {found[name]:.4g}" for name in (self.study.measures[0], "validation") if name in found
        )
        print(f"{self.study.name}, seed {seed}, {arm}, {dict(chosen)}: {shown}, {cost['seconds']:.0f} s", flush=True)
        self.write()
        return found

    def chosen(self, arm: str) -> Settings:
        """The settings of an arm: the best of the grid by validation on the tuning seed."""
        if len(self.grid) < 2:
            return self.grid[0] if self.grid else {}
        arm = self.study.tuned_like.get(arm, arm)
        return max(self.grid, key=lambda settings: self.run(arm, TUNING_SEED, settings)["validation"])

    def all(self, arms: Sequence[str], seeds: Sequence[int]) -> None:
        """Every arm of every seed."""
        for seed in seeds:
            for arm in arms:
                self.run(arm, seed, self.chosen(arm))

    def write(self) -> None:
        """The summary and the runs."""
        study = self.study
        minutes = sum(run["processor_seconds"] for run in self.runs) / 60
        head = {"protocol": study.protocol, "fingerprint": self.fingerprint, "settings": self.settings}
        head["data"] = {name: "changed" if name in self.changed else DATA[name].digests for name in study.data}
        cost = {"processor_minutes": round(minutes, 2), "torch": torch.__version__}
        write(study.name, {**head, **cost, **summary(study, self.runs), "runs": self.runs}, self.out)


def by_seed(study: Study, runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, Found]]:
    """{arm: {seed: what was found, and its cost}}, without the seed on which settings are chosen."""
    arms: dict[str, dict[int, Found]] = {}
    for name in study.arms:
        own = [run for run in runs if run["arm"] == name and run["seed"] != TUNING_SEED]
        of_arm = {run["seed"]: {**run["found"], COST: run[COST]} for run in own}
        if of_arm:
            arms[name] = of_arm
    return arms


def summary(study: Study, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Arms over their seeds, and the claims with their verdicts."""
    found = by_seed(study, runs)
    arms = {}
    for name, of_arm in found.items():
        rows = [of_arm[seed] for seed in sorted(of_arm)]
        measured = [measure for measure in (*study.measures, COST) if all(measure in row for row in rows)]
        arms[name] = {"seeds": len(rows)} | {measure: spread([row[measure] for row in rows]) for measure in measured}
        over_base = differences(of_arm, found.get(study.base, {}), study.measures[0])
        if over_base and name != study.base:
            arms[name]["over_base"] = spread(over_base)
    claims = []
    for claim in study.claims:
        values = differences(found.get(claim.arm, {}), found.get(claim.base, {}), claim.measure)
        difference = spread(values) if values else None
        claims.append(
            {**vars(claim), "seeds": len(values), "difference": difference, "verdict": verdict(claim, difference)}
        )
    return {"arms": arms, "claims": claims}


def differences(arm: Mapping[int, Found], base: Mapping[int, Found], measure: str) -> list[float]:
    """By seed, of the seeds that both have."""
    return [arm[seed][measure] - base[seed][measure] for seed in sorted(arm) if seed in base]


def verdict(claim: Claim, difference: Mapping[str, Any] | None) -> str:
    """What the 95 % interval of the difference says of a claim."""
    if difference is None or difference["half"] is None:
        return "not run" if difference is None else "one seed"
    low, high = difference["mean"] - difference["half"], difference["mean"] + difference["half"]
    if claim.side == 0:
        inside = -claim.margin <= low and high <= claim.margin
        outside = low > claim.margin or high < -claim.margin
        return "reproduced" if inside else "not: they differ" if outside else "not shown"
    if claim.side < 0:
        low, high = -high, -low
    if low > claim.margin:
        return "reproduced"
    return "not: the opposite" if high < 0 else "not shown"


def declared() -> dict[str, Study]:
    """All studies by name."""
    found: dict[str, Study] = {}
    for module in pkgutil.iter_modules(studies.__path__, f"{studies.__name__}."):
        for study in getattr(importlib.import_module(module.name), "STUDIES", ()):
            found[study.name] = study
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing of a study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--list", action="store_true", help="name all studies, and what they need")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--arms", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    known = declared()
    if args.list:
        for study in known.values():
            print(f"{study.name:32s} {', '.join(study.data):36s} {len(study.arms)} arms, {len(study.seeds)} seeds")
        return
    if args.name not in known:
        parser.error(f"NAME must be one of {', '.join(known)}, got {args.name!r}")
    study = known[args.name]
    unknown = [arm for arm in args.arms or () if arm not in study.arms]
    if unknown:
        parser.error(f"--arms must be some of {', '.join(study.arms)}, got {unknown[0]!r}")
    torch.set_num_threads(1)
    ns.set_threads(1)
    out = args.out or (Path(tempfile.mkdtemp()) if args.quick else RESULTS)
    seeds = args.seeds or (study.seeds[:1] if args.quick else study.seeds)
    runner = Runner(study, args.data, out, quick=args.quick)
    runner.all(args.arms or list(study.arms), seeds)
    runner.write()
    for claim in summary(study, runner.runs)["claims"]:
        print(f"{claim['verdict']:18s} {claim['text']}")


if __name__ == "__main__":
    main()

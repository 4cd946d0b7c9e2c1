"""Does judging pay? Models trained on negatives of several rules, and how many of these negatives are false.

    python -m benchmarks.training.judging DATA [--wordllama SITE] [--task NAME ...] [--arms NAME ...] [--seeds 10]

DATA    a folder with debian-desc/, scifact/, scifact-minilm/, ml-100k/, yelp2018/; a task without data is left out
SITE    a folder of Python packages with wordllama; without it, vectors of packages are those of TF-IDF

Every finished run is a line of results/judging.jsonl (or of the file --runs), and a second call continues. The summary
is written after each seed of a task.

**Text.** An adapter x + x W of fixed vectors is trained with InfoNCE in batches of 64, with k = 10 negatives of its own
for each anchor. `deb` and `debH` are packages of sources of 2 to 20 and of 4 to 20 packages: the short description of
one package of a source against the long ones, and the label is a random package of the source. Sources are split into
training, validation (20 %) and test (30 %); the documents of a part are ranked. `scifact` is split so that no two parts
share a document. `dose` has sources of 6 to 20 packages: of the unlabelled packages of a source, some may be returned
by no arm, so that 0, 5, 10, 20 or 40 % of the nearest are false. `tokens` trains wordllama's token table on `debH`.

**Arms.** `auto` is `naysay.mine(judge="auto")`; `scores only` the same rule without item vectors; `masked` takes the
nearest and leaves those above the cut out of the loss; `attract` does that and makes positives of those with a
posterior of 0.5 or more. `oracle` takes the nearest that are not relevant. `bands` takes the nearest of the hard band
of `choose_thresholds`, and `bands, random` any of it.

**Why a simple rule is ahead.** `oracle below share` and `auto below share` also leave out what scores above 95 % of the
anchor's labelled positive. `oracle, as hard as share` skips as many first ranks for all anchors as it takes for a mean
score like that of `share 0.95`; `auto, from rank 21` is `auto` with rank_range=(21, None).

**Choices.** The learning rate is chosen for each task, temperature and arm on a split of its own (seed 1000), the epoch
in each run, both by nDCG@10 of labelled validation pairs. The test part is evaluated once a run, by all that is
relevant. The rates of `dose` are those of 20 %.

**Likes.** `ml-100k` is in `judging_recommendation`, `yelp2018` in `judging_yelp`.

Differences are paired by seed, with a 95 % CI by Student's t.
"""

from __future__ import annotations

import argparse
import json
import site
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import RESULTS, write
from benchmarks.hidden_positives.readers import FILES
from benchmarks.training import judging_models as models
from benchmarks.training.factorisation import read
from benchmarks.training.judging_arms import ABLATIONS, ALWAYS, ARMS, BANDS, UNTRAINED, Judge
from benchmarks.training.judging_recommendation import GUARDS, IGNORING, one_run
from benchmarks.training.judging_summary import NOT_BLIND, summary
from benchmarks.training.judging_worlds import DOSES, K, Texts, made, read_packages, read_scifact
from benchmarks.training.judging_yelp import one_yelp_run, read_yelp, split
from naysay.lab import split_by_user

TUNING_SEED, TUNED_DOSE, TOKENS, ROUNDS = 1000, 0.2, 64, (3, 5)
STEADY = (UNTRAINED, "random", "in-batch only", "oracle")  # the same at every dose
Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One world, one model, and what is tried."""

    name: str
    world: str
    arms: tuple[str, ...]
    temperatures: tuple[float, ...]
    rates: tuple[float, ...]
    epochs: int
    dose: float | None = None
    tokens: bool = False
    rates_of: str = ""  # the task whose rates are used, if not its own
    late: bool = False  # runs after all others


def _doses(temperature: float, *, late: bool = False) -> tuple[Task, ...]:
    others, how = tuple(arm for arm in ARMS if arm not in STEADY), ((temperature,), (3e-4, 1e-3), 15)
    arms = {dose: (*others, ALWAYS) if dose >= TUNED_DOSE else others for dose in DOSES}
    if late:
        arms |= {dose: (*arms[dose], *ABLATIONS) for dose in (0.05, 0.1, TUNED_DOSE)}
    named = {dose: f"dose {100 * dose:g} %" for dose in (TUNED_DOSE, *DOSES)}  # the tuned one first
    tuned = {dose: "" if dose == TUNED_DOSE else named[TUNED_DOSE] for dose in DOSES}
    doses = (Task(name, "dose", arms[dose], *how, dose, False, tuned[dose], late) for dose, name in named.items())
    return (Task("dose", "dose", STEADY, *how, late=late), *doses)


TASKS = (
    Task("debH", "debH", ARMS, (0.02, 0.05, 0.1), (3e-4, 1e-3), 12),
    Task("scifact", "scifact", ARMS, (0.02, 0.05), (3e-4, 1e-3, 3e-3), 12),
    *_doses(0.05),
    Task("ml-100k", "ml-100k", (*GUARDS, IGNORING), (1.0,), (5e-3, 1e-2), 600),
    Task("deb", "deb", ARMS, (0.02, 0.05, 0.1), (3e-4, 1e-3), 5),
    Task("yelp2018", "yelp2018", GUARDS, (1.0,), (2e-3, 5e-3), 4000),
    Task("debH", "debH", (*ABLATIONS[2:], *BANDS), (0.02, 0.05), (3e-4, 1e-3), 12),
    Task("deb", "deb", (*ABLATIONS, *BANDS), (0.02, 0.05), (3e-4, 1e-3), 5),
    Task("tokens", "debH", ARMS, (0.02, 0.05), (1e-2, 3e-2), 8, tokens=True),
    *_doses(0.02, late=True),
)


class Runs:
    """The finished runs, as lines of a file."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a last line that was cut short does not count."""
        self.path, self.rows = path, []
        for line in path.read_text().splitlines() if path.is_file() else ():
            try:
                self.rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        if path.is_file() and not path.read_text().endswith("\n"):
            path.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        self.done = {_key(row) for row in self.rows}

    def has(self, asked: Row) -> bool:
        """Whether a run of these settings is there."""
        return _key(asked) in self.done

    def add(self, row: Row) -> None:
        """Keep a run at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        self.done.add(_key(row))

    def rate(self, task: str, temperature: float, arm: str) -> float:
        """The learning rate of the best validation in the tuning split."""
        tried = self._tried(task, temperature, arm)
        return float(max(tried, key=lambda row: row.get("chosen", False) or row["validation"])["rate"])

    def is_tuned(self, task: str, temperature: float, arm: str) -> bool:
        """Whether a rate was chosen in earlier runs, of which only the choice was kept."""
        return any(row.get("chosen") for row in self._tried(task, temperature, arm))

    def _tried(self, task: str, temperature: float, arm: str) -> list[Row]:
        same = (task, temperature, arm, TUNING_SEED)
        return [row for row in self.rows if (row["task"], row["temperature"], row["arm"], row["seed"]) == same]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("task", "temperature", "arm", "seed", "rate", "epochs"))


def rows_to_run(task: Task, seed: int, runs: Runs) -> dict[str, list[Row]]:
    """The settings of each arm that are not there yet; the tuning seed tries all rates."""
    asked: dict[str, list[Row]] = {}
    for temperature in task.temperatures:
        for arm in task.arms:
            if seed == TUNING_SEED and runs.is_tuned(task.name, temperature, arm):
                continue
            rates = task.rates if seed == TUNING_SEED else (runs.rate(task.rates_of or task.name, temperature, arm),)
            same = {"task": task.name, "temperature": temperature, "arm": arm, "seed": seed, "epochs": task.epochs}
            asked.setdefault(arm, []).extend(
                row for row in ({**same, "rate": rate} for rate in rates) if not runs.has(row)
            )
    return asked


def one_seed(task: Task, texts: Texts, bags: models.Bags | None, seed: int, runs: Runs) -> None:
    """All arms of a task on one split."""
    asked = rows_to_run(task, seed, runs)
    if not any(asked.values()):
        return
    world = made(task.world, texts, seed, task.dose)
    judge = Judge(world, seed)
    for arm, rows in asked.items():
        if not rows:
            continue
        chosen = judge.chosen(arm)
        measured = judge.measured(chosen)
        for row in rows:
            start = time.process_time()
            model = models.Tokens(bags) if bags is not None else models.Adapter(texts)
            settings = {**row, "epochs": 0} if arm == UNTRAINED else row
            found = models.trained(model, world, chosen, settings, seed)
            runs.add({**row, **found, **measured, "processor_seconds": time.process_time() - start})
        last = runs.rows[-1]
        print(f"{task.name}, seed {seed}, {arm}: {last['ndcg']:.4f}, false {last.get('false_share')}", flush=True)


def one_seed_of_likes(task: Task, likes: Any, seed: int, runs: Runs) -> None:
    """All guards on one split."""
    asked = rows_to_run(task, seed, runs)
    if not any(asked.values()):
        return
    at_yelp = task.world == "yelp2018"
    data = split(likes, seed) if at_yelp else split_by_user(*likes, seed=seed)
    for arm, rows in asked.items():
        for row in rows:
            runs.add({**row, **(one_yelp_run if at_yelp else one_run)(data, row)})
            print(f"{task.name}, seed {seed}, {arm}: {runs.rows[-1]['ndcg']:.4f}", flush=True)


class Data:
    """What the tasks read, each when it is first asked for; None where files or packages are missing."""

    def __init__(self, folder: Path, vectors: Path) -> None:
        """`vectors` keeps those of packages."""
        self.folder, self.vectors = folder, vectors

    @cached_property
    def likes(self) -> Any:
        """Users and items."""
        folder = self.folder / "ml-100k"
        return read(folder) if (folder / "ratings.npz").is_file() else None

    @cached_property
    def yelp(self) -> Any:
        """The same, and those of the test."""
        return read_yelp(self.folder / "yelp2018")

    @cached_property
    def scifact(self) -> Texts | None:
        """Claims and abstracts."""
        return read_scifact(self.folder) if self._has("scifact") else None

    @cached_property
    def packages(self) -> Texts | None:
        """Descriptions."""
        return read_packages(self.folder, self.vectors) if self._has("debian") else None

    @cached_property
    def bags(self) -> models.Bags | None:
        """Tokens of the descriptions."""
        try:
            return None if self.packages is None else models.wordllama_bags(self.packages, TOKENS)
        except ImportError:
            return None

    def _has(self, part: str) -> bool:
        return all((self.folder / name).is_file() for name in FILES[part])


def run_tasks(data: Data, runs: Runs, tasks: Sequence[Task], seeds: int, out: Path | None) -> None:
    """Some seeds of every task, then more of them."""
    early, late = ([task for task in tasks if task.late is flag] for flag in (False, True))
    rounds = [(first, last, early) for first, last in pairwise((0, *ROUNDS, seeds))]
    for first, last, now in (*rounds, (0, seeds, late)):
        for task in now:
            needed = {"ml-100k": "likes", "yelp2018": "yelp", "scifact": "scifact"}.get(task.world, "packages")
            found = getattr(data, needed)
            if found is None or (task.tokens and data.bags is None):
                print(f"{task.name}: no data", file=sys.stderr)
                continue
            tuning = () if task.rates_of else (TUNING_SEED,)
            for seed in (*tuning, *range(first, min(last, seeds))):
                if needed in ("likes", "yelp"):
                    one_seed_of_likes(task, found, seed, runs)
                else:
                    one_seed(task, found, data.bags if task.tokens else None, seed, runs)
            write("judging", _result(runs), out)


def _result(runs: Runs) -> Row:
    """What is written."""
    tuned = {"tuning_seed": TUNING_SEED, "k": K, "batch": models.BATCH, "torch": torch.__version__}
    return {**tuned, "not_blind": NOT_BLIND, "tasks": summary(runs.rows, TUNING_SEED)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not in the file yet, and write results/judging.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--wordllama", type=Path, metavar="SITE")
    names = ", ".join(dict.fromkeys(task.name for task in TASKS)).replace("%", "%%")
    parser.add_argument("--task", nargs="+", help=f"some of {names}")
    parser.add_argument("--arms", nargs="+", help="some of the arms of these tasks")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--runs", type=Path, help="the finished runs; results/judging.jsonl by default")
    parser.add_argument("--out", type=Path, help="where to write; results/judging.json by default")
    args = parser.parse_args(arguments)
    args.runs = args.runs or (args.out or RESULTS / "judging.json").with_suffix(".jsonl")
    if args.wordllama is not None:
        site.addsitedir(str(args.wordllama))
    torch.set_num_threads(1)
    runs = Runs(args.runs)
    chosen = [task for task in TASKS if args.task is None or task.name in args.task]
    if args.arms is not None:
        chosen = [replace(task, arms=tuple(arm for arm in task.arms if arm in args.arms)) for task in chosen]
    args.runs.parent.mkdir(parents=True, exist_ok=True)
    run_tasks(Data(args.data, args.runs.with_suffix(".vectors.npz")), runs, chosen, args.seeds, args.out)


if __name__ == "__main__":
    main()

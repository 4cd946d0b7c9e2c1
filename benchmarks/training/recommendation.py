"""Which negatives, and how many, in recommendation: seven arms with the same budget of gradient steps.

    python -m benchmarks.training.recommendation DATA [--seeds 5] [--steps 1000] [--threads 1] [--out FILE]

DATA    a folder with ratings.npz: user and item (from 1), rating (1 to 5), as of ml-100k

**The task.** Ratings of 4 and 5 are likes, the rest is unknown. A tenth of each user's likes, at random by the seed,
is for validation and a tenth for the test. Negatives are drawn from all that is not among the user's likes of the
training part, so held-out likes can be drawn as false negatives, as in practice. Recall and NDCG at 20 rank all items
that are not in training (for the test: nor in validation), at the step of the best validation recall.

**The same for all arms.** LightGCN with two hops, d = 64, because mixing over hops needs hops; Adam on all vectors;
batches, initial vectors and splits by the seed; `info_nce` at temperature 1, which is BPR for k = 1, and for larger k
the loss of the papers on mixing and K*. No log_q: the effect of the distribution on the model is part of the arm.

**The arms.** Uniform, popularity^0.75, dynamic (the highest of 16) and mixing (MixGCF of 16), with k = 1; uniform with
k = K*, and with k scheduled up to K* and down again. One negative by q teaches log p(item | user) - log q(item), so
popularity is also ranked with its log q restored: the same training, another list.

K* is the paper's: a run with one uniform negative comes first, converged where its validation AUC is highest;
`estimate` gets the training AUC at that step and the validation curve up to it. The cost of that run is not in the
times of the arms that use K*; it is reported separately.

**Tuning.** On a separate split, by validation recall: learning rate and weight decay of the uniform arm, which all
arms then share; and the learning rate of each arm, for a second row where it differs. The last row gives uniform more
steps at the lowest rate, to distinguish slow from worse.

**Times** are of training without evaluation, in processor seconds, which vary little on a shared machine; wall time
is also reported. An arm has reached uniform's best at the first evaluation with a validation recall of at least the
highest of the uniform arm of the same seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

import naysay as ns
from benchmarks.harness import write
from benchmarks.training.factorisation import LIKED, TOP, Ids, read
from benchmarks.training.recommendation_arms import ARMS, BATCH, CANDIDATES, POWER, Arm, Run, Settings, together
from benchmarks.training.seed_summaries import summary
from naysay.checks import with_option_names
from naysay.errors import NaysayError
from naysay.lab import Interactions, split_by_user
from naysay.quantity import Estimate, estimate

RATES, DECAYS, TUNING_SEED = (0.002, 0.005, 0.01, 0.02), (0.0, 1e-6), 1000
UNIFORM, LONGER = ARMS[0], "uniform, longer"


class Left:
    """How long the rest of a stage may take, by how long its beginning took."""

    def __init__(self, stage: str, parts: int) -> None:
        """The clock starts now."""
        self.stage, self.parts, self.start = stage, parts, time.perf_counter()

    def say(self, done: int, what: str = "") -> None:
        """One line: so many parts are done."""
        minutes = (time.perf_counter() - self.start) * (self.parts - done) / done / 60
        print(f"{self.stage}: {done} of {self.parts}, about {minutes:.1f} minutes left in this stage{what}", flush=True)


def begin(threads: int) -> None:
    """The threads of this process."""
    ns.set_threads(threads)
    torch.set_num_threads(threads)


def find_k(data: Interactions, settings: Settings, seed: int, args: argparse.Namespace) -> tuple[Run, Estimate]:
    """A run with one uniform negative, and K* from it, converged where its validation AUC is highest."""
    run = Run(data, UNIFORM, settings, seed, args.steps)
    together([run], args.steps, args.every, with_auc=True)
    curve = [point.validation_auc for point in run.points]
    end = curve.index(max(curve))
    return run, estimate(run.points[end].training_auc, curve[: end + 1])


def try_all(data: Interactions, arm: Arm, grid: list[Settings], k: int, args: argparse.Namespace) -> list[float]:
    """The best validation recall with each of several settings."""
    begin(args.threads)
    runs = [Run(data, arm, settings, TUNING_SEED, args.steps, k) for settings in grid]
    together(runs, args.steps, args.every)
    return [run.best.recall for run in runs]


def tune(
    data: Interactions, args: argparse.Namespace, each: Callable[..., Iterable[Any]]
) -> tuple[dict[str, Settings], dict[str, Any]]:
    """The settings of the uniform arm, then the rate of each other arm with its decay; and all that was tried."""
    tried: dict[str, dict[str, float]] = {}
    chosen: dict[str, Settings] = {}
    left = Left("tuning, arms", len(ARMS))

    def choose(arm: Arm, grid: list[Settings], recalls: list[float]) -> None:
        tried[arm.name] = {f"{s.rate:g}, {s.decay:g}": recall for s, recall in zip(grid, recalls, strict=True)}
        chosen[arm.name] = grid[recalls.index(max(recalls))]
        left.say(len(chosen), f"; {arm.name}: rate {chosen[arm.name].rate:g}")

    grid = [Settings(rate, decay) for rate in RATES for decay in DECAYS]
    parts = each(try_all, *zip(*((data, UNIFORM, [one], 1, args) for one in grid), strict=True))
    choose(UNIFORM, grid, [recall for part in parts for recall in part])
    shared = chosen[UNIFORM.name]
    found = find_k(data, shared, TUNING_SEED, args)[1]
    grid = [Settings(rate, shared.decay) for rate in RATES]
    jobs = [(data, arm, grid, found.k, args) for arm in ARMS[1:]]
    for arm, recalls in zip(ARMS[1:], each(try_all, *zip(*jobs, strict=True)), strict=True):
        choose(arm, grid, recalls)
    return chosen, {"validation_recall": tried, "k": found.k}


def one_seed(data: Interactions, chosen: dict[str, Settings], seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """The run that finds K*, then all arms together, with the shared settings and with their own."""
    begin(args.threads)
    shared = chosen[UNIFORM.name]
    first, found = find_k(data, shared, seed, args)
    runs = {arm.name: Run(data, arm, shared, seed, args.steps, found.k) for arm in ARMS}
    for arm in ARMS:
        if chosen[arm.name] != shared:
            runs[f"{arm.name}, tuned"] = Run(data, arm, chosen[arm.name], seed, args.steps, found.k)
    left = Left(f"seed {seed}, steps", args.steps)

    def told(done: int) -> None:
        if done % (8 * args.every) == 0:
            left.say(done)

    together(list(runs.values()), args.steps, args.every, after=told)
    steps = args.longer * args.steps
    longer = Run(data, UNIFORM, Settings(min(RATES), shared.decay), seed, steps)
    together([longer], steps, args.longer * args.every)
    goal = runs[UNIFORM.name].best.recall
    rows = {name: outcome(run, goal) for name, run in (runs | {LONGER: longer}).items()}
    for name, row in rows.items():
        print(f"  {name:28s} recall {row['recall']:.4f}, best at step {row['best_step']}", flush=True)
    return {
        "k": found.k,
        "k_flat": found.flat,
        "k_notes": found.notes,
        "training_auc": ns.quantity.auc(found.separation),
        "validation_auc": max(point.validation_auc for point in first.points),
        "converged_at_step": first.points[len(found.reached) - 1].step,
        "first_run_processor_seconds": first.processor_seconds,
        "rows": rows,
        "curves": {name: [point.recall for point in run.points] for name, run in runs.items()},
    }


def outcome(run: Run, goal: float) -> dict[str, Any]:
    """What is reported of one run."""
    best, reached = run.best, run.first_at(goal)
    return {
        "recall": run.tested.recall(TOP),
        "ndcg": run.tested.ndcg(TOP),
        "validation_recall": best.recall,
        "last_validation_recall": run.points[-1].recall,
        "best_step": best.step,
        "steps_to_goal": reached.step if reached else None,
        "processor_seconds_to_goal": reached.processor_seconds if reached else None,
        "seconds_to_goal": reached.seconds if reached else None,
        "processor_seconds": run.processor_seconds,
        "seconds": run.seconds,
        "milliseconds_a_step": 1e3 * run.processor_seconds / run.done,
        "false_percent": 100 * sum(point.false_share for point in run.points) / len(run.points),
    }


def study(
    likes: tuple[Ids, Ids, int, int], args: argparse.Namespace, each: Callable[..., Iterable[Any]]
) -> dict[str, Any]:
    """Tune, run all seeds, and sum up; `each` is `map`, or that of some processes."""
    begin(args.threads)
    chosen, tuning = tune(split_by_user(*likes, seed=TUNING_SEED), args, each)
    jobs = [(split_by_user(*likes, seed=seed), chosen, seed, args) for seed in range(args.seeds)]
    seeds, left = [], Left("seeds", args.seeds)
    for found in each(one_seed, *zip(*jobs, strict=True)):
        seeds.append(found)
        left.say(len(seeds))
    return {
        "likes": len(likes[0]),
        "users": likes[2],
        "items": likes[3],
        "liked_from": LIKED,
        "top": TOP,
        "batch": BATCH,
        "candidates": CANDIDATES,
        "power": POWER,
        "steps": args.steps,
        "every": args.every,
        "longer": args.longer,
        "threads": args.threads,
        "workers": args.workers,
        "torch": torch.__version__,
        "tuning": tuning | {"settings": {name: vars(settings) for name, settings in chosen.items()}},
        **summary(seeds, UNIFORM.name),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Tune, run all seeds and write results/recommendation.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=int, default=25, help="steps between two evaluations on the validation part")
    parser.add_argument("--longer", type=int, default=4, help="times the steps for the last row")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="processes, one seed each; they slow each other down")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    try:
        with with_option_names("recommendation", {}):
            likes = read(args.data)
    except NaysayError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if args.workers == 1:
        result = study(likes, args, map)
    else:
        with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as workers:
            result = study(likes, args, workers.map)
    write("recommendation", result, args.out)


if __name__ == "__main__":
    main()

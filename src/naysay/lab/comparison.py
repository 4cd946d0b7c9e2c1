"""Compare kinds of negatives on some data, from the same start, with the same data order and budget."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from naysay._commands import CompareOptions
from naysay._options import takes_options
from naysay.arrays import torch_in_one_thread
from naysay.checks import check_bool, check_device, check_number, check_one_of, check_whole, public, raise_invalid
from naysay.lab import _run
from naysay.lab._domain import Task
from naysay.lab._folder import REPORT, RESULTS, Folder, opened_folder
from naysay.lab._kinds import KINDS, data_of
from naysay.lab.arms import Arm, negatives_of, read_arms, reference_for
from naysay.lab.report import page_of
from naysay.lab.result import LEAST_STEPS, TUNED, ArmResult, Comparison
from naysay.text import counted, versions

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
TIMING_SHARE = 0.05  # of the budget: what timing the arms may take
MARGIN = 1.25  # a budget that is asked for has so much more than the estimate: timing a few steps is not exact

OnProgress = Callable[[str, float], None]  # on_progress(what, share of all the work that is done)


@public
@takes_options(CompareOptions)
def compare(
    data: Any = None,
    *,
    on_progress: OnProgress = lambda what, share: None,
    options: CompareOptions,
) -> Comparison:
    """Compare kinds of negatives on some data, and say which to use.

    All arms have the same first vectors, data order and number of gradient steps, seed by seed. Each has its own
    learning rate, chosen on the validation part by successive halving: five rates for a quarter of the steps, the best
    three for half, the best two for all. The test part is measured once a run, at the step of the best validation
    measure. torch runs in one thread, because sums of several threads depend on their timing.

    A difference counts if its 95 % CI (Student's t over the seeds, paired) excludes 0. It covers the randomness of
    training, not that of the split. Nothing is recommended with fewer than 3 seeds, 100 steps or an epoch, or while the
    validation measure of the best arms still rises at the last step: see `Comparison.withheld`.

    Args:
        data: A path, or data in memory, by task: "recommendation": see `lab.read_interactions`, or `lab.Interactions`;
            "knowledge-graph": `lab.read_triples`, or a `lab.KnowledgeGraph`; "graph": `lab.read_graph`, or a
            `lab.Graph`; "text": `lab.read_texts`, or `lab.TextPairs`; "images": `lab.read_images`, or `lab.Images`.
            None with quick=True.
        on_progress: on_progress(what, share) is called as the work proceeds; share is from 0 to 1.
        options: See `CompareOptions`.

    Returns:
        The arms with all runs, the table, and the recommendation.

    Raises:
        NaysayError: If the data, a method, the budget or the folder is not valid, before any training.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(60, 80, per_anchor=10)
        >>> parts = ns.lab.split_by_user(*world.truth.pairs())
        >>> found = ns.compare(parts, methods=["dynamic"], steps=8, seeds=2)
        >>> [arm.name for arm in found.arms], len(found["dynamic"].runs)
        (['uniform:8', 'dynamic'], 2)
    """
    check_one_of("task", options.task, tuple(KINDS))
    kind = KINDS[options.task]
    model = (options.model,) if options.model else ()
    if model:
        check_one_of("model", options.model, kind.task.models)
    check_bool("quick", options.quick)
    check_device("device", options.device)
    seeds = check_whole("seeds", options.seeds, 1, 1000)
    first_seed = check_whole("seed", options.seed, 0)
    budget = _seconds(options.budget)
    steps = None if options.steps is None else check_whole("steps", options.steps, 4)
    with opened_folder(options.out) as folder, torch_in_one_thread():
        task: Any = kind.task(data_of(kind, data, options), *model, device=options.device)  # type: ignore[misc]
        arms, counts, arm_notes = _arms_of(task, options, first_seed)
        for note in arm_notes:
            on_progress(note.removesuffix("."), 0.0)
        if options.quick and steps is None:
            steps = task.quick_steps
        if steps is None:
            steps = folder.settled_steps(budget) or steps_for(task, arms, seeds, budget, first_seed, on_progress)
        settings = {
            **task.settings(),
            "steps": steps,
            "epochs": round(steps * task.batch / task.pairs, 4),
            "seed": first_seed,
            "decay": task.decay,
            **versions("naysay", "torch"),
        }
        folder.begin(settings, None if options.steps is not None else budget)
        work = _Work(len(arms) * (seeds + TUNED) * steps, on_progress)
        each_seed = range(first_seed, first_seed + seeds)
        done = [_trained(task, arm, k, steps, each_seed, folder, work) for arm, k in zip(arms, counts, strict=True)]
        notes = [*task.data.notes, *arm_notes, *_notes_of_training(task, done, settings)]
        result = Comparison(task.measure, tuple(done), settings, tuple(notes))
        folder.write(RESULTS, result.as_json())
        folder.write(REPORT, page_of(result))
    return result


def _arms_of(task: Task, options: CompareOptions, seed: int) -> tuple[list[Arm], list[int | str], list[str]]:
    """The arms, how many negatives each uses, and sentences about both. Raises if an arm cannot be made."""
    usual = task.quick if options.quick else task.defaults
    parts = {**task.start(seed).parts(), "steps": LEAST_STEPS}
    arms = read_arms(options.methods, parts, usual, task.own, task.k)
    notes = []
    reference = reference_for(arms, parts, usual, task.own)
    if reference is not None:
        arms = [reference, *arms]
    counts = [negatives_of(arm, arm.sampler(parts)) for arm in arms]
    if reference is not None:
        same_k = counts[0] == counts[1]
        of_k = ", with as many negatives." if same_k else f". Their k differ: {counts[0]} and {counts[1]}."
        notes.append(f"{reference.name} was added: one method alone is compared to it{of_k}")
    numbers = sorted({count for count in counts if isinstance(count, int)})
    if len(numbers) > 1:
        different = " and ".join(map(str, numbers))
        notes.append(f"Arms have k of {different}: a difference may come from k, not from the method.")
    return arms, counts, notes


def _notes_of_training(task: Task, arms: list[ArmResult], settings: dict[str, Any]) -> list[str]:
    """Sentences about the length of the runs, what was ranked, and learning rates at the end of their range."""
    steps = counted(settings["steps"], "step")
    notes = [f"{steps} of {counted(task.batch, 'row')}: {settings['epochs']:.1f} epochs."]
    if task.ranked:
        notes.append(f"{task.ranked} They are the same for all arms and seeds.")
    lowest, *_, highest = task.learning_rates
    ends = [arm.name for arm in arms if arm.lr in (lowest, highest)]
    if ends:
        notes.append(f"The best learning rate is the lowest or highest of those tried for {', '.join(ends)}.")
    return notes


class _Work:
    """How much of all steps is done."""

    def __init__(self, all_steps: float, on_progress: OnProgress) -> None:
        self.all_steps, self.done, self.on_progress = all_steps, 0.0, on_progress

    def add(self, what: str, steps: float) -> None:
        """So many more steps."""
        self.done += steps
        self.on_progress(what, min(1.0, self.done / self.all_steps))

    def of_run(self, what: str) -> _run.OnSteps:
        """A function that adds steps of one run, and reports at which step it is."""
        at = 0

        def add(steps: int) -> None:
            nonlocal at
            at += steps
            self.add(f"{what}, step {at:,}", steps)

        return add


def _trained(task: Task, arm: Arm, k: int | str, steps: int, seeds: range, folder: Folder, work: _Work) -> ArmResult:
    """An arm with its learning rate and all its seeds; what is kept is not run again."""
    chosen = folder.kept_lr(arm)
    if chosen is None:
        chosen = _run.choose_lr(task, arm, steps, seeds[0], work.of_run(f"{arm.name}: learning rate"))
        folder.keep_lr(arm, *chosen)
    else:
        work.add(f"{arm.name}: kept", TUNED * steps)
    runs = []
    for place, seed in enumerate(seeds, 1):
        run = folder.kept_run(arm, seed)
        if run is None:
            on_steps = work.of_run(f"{arm.name}: seed {place} of {len(seeds)}")
            run = _run.train_arm(task, arm, chosen[0], steps, seed, on_steps)
            folder.keep_run(arm, run)
        else:
            work.add(f"{arm.name}: kept", steps)
        runs.append(run)
    return ArmResult(arm.name, k, arm.code, *chosen, tuple(runs))


# ---- the budget ------------------------------------------------------------------------------------------------------


def _seconds(budget: Any) -> float:
    """Seconds, from "30m", "2h", "90s" or a number."""
    if isinstance(budget, str):
        read = _BUDGET.fullmatch(budget.strip().casefold())
        if read is None:
            raise_invalid("budget", "a time such as 30m, 2h or 90s", repr(budget))
        budget = float(read[1]) * _SECONDS[read[2]]
    return check_number("budget", budget, above=0, finite=True)


def _as_budget(seconds: float) -> str:
    """A time as `budget` reads it, rounded up."""
    return f"{ceil(seconds)}s" if seconds < 60 else f"{ceil(seconds / 60)}m"


def steps_for(task: Task, arms: list[Arm], seeds: int, budget: float, seed: int, on_progress: OnProgress) -> int:
    """The steps that fit the budget, rounded down to 1, 2 or 5 times a power of ten.

    Raises if the fewest that tell something do not fit. That is found out by the arm that is probably the cheapest,
    before any other is timed. Timing the others ends when it has taken `TIMING_SHARE` of the budget; arms that are not
    timed are taken to be as slow as the slowest.
    """
    began = time.process_time()
    cheapest = min(arms, key=_expected_cost)
    on_progress(f"{cheapest.name}: timing a step and a validation", 0.0)
    step, run = _run.step_seconds(task, cheapest, seed)
    validation = _run.validation_seconds(run)
    plan = _Plan(
        arms=len(arms),
        seeds=seeds,
        budget=budget,
        fewest_steps=max(LEAST_STEPS, ceil(task.pairs / task.batch)),
        validations=validation * _run.POINTS,
        test=validation * task.test_work,
    )
    plan.check([step] * len(arms))
    most = plan.steps([step] * len(arms))
    speed = f"{1e3 * step:.1f} ms a step, {validation:.2f} s a validation"
    on_progress(f"{speed}: at most {most:,} steps fit {_as_budget(budget)}", 0.0)
    timed = [step]
    for arm in arms:
        if arm is not cheapest and time.process_time() - began < TIMING_SHARE * budget:
            on_progress(f"{arm.name}: timing a step", 0.0)
            timed.append(_run.step_seconds(task, arm, seed)[0])
    missing = len(arms) - len(timed)
    if missing:
        on_progress(f"{counted(missing, 'arm')} not timed, taken to be as slow as the slowest", 0.0)
    costs = timed + missing * [max(timed)]
    plan.check(costs)
    return plan.rounded(costs)


def _expected_cost(arm: Arm) -> tuple[bool, int]:
    """Whether an arm does more than draw, and how many negatives it draws: the lowest is probably the cheapest."""
    return not arm.code.startswith("Static("), arm.k


@dataclass(frozen=True)
class _Plan:
    """What a budget is spent on, in processor seconds; `costs` are the seconds of a step of each arm."""

    arms: int
    seeds: int
    budget: float
    fewest_steps: int  # of a run
    validations: float  # seconds of all validations of a run
    test: float  # seconds

    def seconds(self, costs: list[float], steps: float) -> float:
        """The whole comparison: trainings with their validations, and a test for each seed."""
        of_runs = (self.seeds + TUNED) * (steps * sum(costs) + self.arms * self.validations)
        return of_runs + self.seeds * self.arms * self.test

    def steps(self, costs: list[float]) -> int:
        """The most steps of a run that fit the budget."""
        return int((self.budget - self.seconds(costs, 0)) / ((self.seeds + TUNED) * sum(costs)))

    def check(self, costs: list[float]) -> None:
        """Raise unless the fewest steps fit the budget."""
        needed = self.seconds(costs, self.fewest_steps)
        if needed <= self.budget:
            return
        fewer = int(self.arms * self.budget / needed)
        advice = f"Or compare fewer methods or seeds; for this budget {fewer} of {self.arms} methods."
        if fewer < 2:
            advice = f"{counted(self.arms, 'method')} and {counted(self.seeds, 'seed')} are compared; try fewer."
        rule = f"at least {_as_budget(MARGIN * needed)}, enough for {counted(self.fewest_steps, 'step')} of each run"
        raise_invalid("budget", rule, _as_budget(self.budget), advice)

    def rounded(self, costs: list[float]) -> int:
        """The steps that fit, rounded down to 1, 2 or 5 times a power of ten, but not below the fewest."""
        most = self.steps(costs)
        power = int("1" + "0" * (len(str(most)) - 1))
        return max(self.fewest_steps, next(one * power for one in (5, 2, 1) if one * power <= most))

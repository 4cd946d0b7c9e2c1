"""Compare kinds of negatives on some data, from the same start, with the same data order and budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from naysay._commands import CompareOptions
from naysay._options import takes_options
from naysay.arrays import torch_in_one_thread
from naysay.checks import check_bool, check_device, check_number, check_one_of, check_whole, public, raise_invalid
from naysay.lab import _run
from naysay.lab._folder import REPORT, RESULTS, Folder, opened_folder
from naysay.lab._kinds import KINDS, data_of
from naysay.lab._task import Task
from naysay.lab.arms import Arm, parts_of, read_arms, reference_for
from naysay.lab.report import page_of
from naysay.lab.result import LEAST_STEPS, TUNED, ArmResult, Comparison
from naysay.text import counted, versions

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
_MARGIN = 1.25  # a budget that is asked for has so much more than the estimate: timing a few steps is not exact

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
    check_whole("seeds", options.seeds, 1, 1000)
    check_whole("seed", options.seed, 0)
    budget = _seconds(options.budget)
    if options.steps is not None:
        check_whole("steps", options.steps, 4)
    with opened_folder(options.out) as folder, torch_in_one_thread():
        task: Any = kind.task(data_of(kind, data, options), *model, device=options.device)  # type: ignore[misc]
        arms, negatives, arm_notes = _arms_of(task, options)
        for note in arm_notes:
            on_progress(note.removesuffix("."), 0.0)
        steps = options.steps
        if options.quick and steps is None:
            steps = task.quick_steps
        if steps is None:
            steps = folder.settled_steps(budget) or steps_for(task, arms, options, budget, on_progress)
        settings = {
            **task.settings(),
            "steps": steps,
            "epochs": round(steps * task.batch / task.pairs, 4),
            "seed": options.seed,
            "decay": task.decay,
            **versions("naysay", "torch"),
        }
        folder.begin(settings, None if options.steps is not None else budget)
        work = _Work(len(arms) * (options.seeds + TUNED) * steps, on_progress)
        seeds = range(options.seed, options.seed + options.seeds)
        done = [
            _trained(task, arm, used, steps, seeds, folder, work) for arm, used in zip(arms, negatives, strict=True)
        ]
        notes = [*task.data.notes, *arm_notes, *_notes_of_training(task, done, settings)]
        result = Comparison(task.measure, tuple(done), settings, tuple(notes))
        if result.disagreement:
            result = replace(result, notes=(*notes, result.disagreement))
        if folder.path is not None:
            folder.write(RESULTS, result.as_json())
            folder.write(REPORT, page_of(result))
    return result


def _arms_of(task: Task, options: CompareOptions) -> tuple[list[Arm], list[int | str], list[str]]:
    """The arms, how many negatives each uses, and sentences about both. Raises if an arm cannot be made."""
    defaults = task.quick if options.quick else task.defaults
    parts = parts_of(task, options.seed, LEAST_STEPS)
    arms = read_arms(options.methods, task, parts, defaults)
    reference = reference_for(arms[0], task, parts, defaults) if len(arms) == 1 else None
    if reference is not None:
        arms = [reference, *arms]
    used = [arm.negatives_used(arm.sampler(parts)) for arm in arms]
    notes = []
    if reference is not None:
        of_k = ", with as many negatives." if used[0] == used[1] else f". Their k differ: {used[0]} and {used[1]}."
        notes.append(f"{reference.name} was added: one method alone is compared to it{of_k}")
    numbers = sorted({k for k in used if isinstance(k, int)})
    if len(numbers) > 1:
        different = " and ".join(map(str, numbers))
        notes.append(f"Arms have k of {different}: a difference may come from k, not from the method.")
    return arms, used, notes


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
        """So many more steps are done."""
        self.done += steps
        self.on_progress(what, min(1.0, self.done / self.all_steps))


def _trained(task: Task, arm: Arm, k: int | str, steps: int, seeds: range, folder: Folder, work: _Work) -> ArmResult:
    """An arm with its learning rate and all its seeds; what is kept is not run again."""
    rate = folder.rate(arm)
    if rate is None:
        what = f"{arm.name}: learning rate"
        rate = _run.choose_lr(task, arm, steps, seeds[0], partial(work.add, what))
        folder.keep_rate(arm, rate)
    else:
        work.add(f"{arm.name}: kept", TUNED * steps)
    lr, tried = rate
    runs = []
    for place, seed in enumerate(seeds, 1):
        run = folder.run(arm, seed)
        if run is None:
            what = f"{arm.name}: seed {place} of {len(seeds)}"
            run = _run.train_arm(task, arm, lr, steps, seed, partial(work.add, what))
            folder.keep_run(arm, run)
        else:
            work.add(f"{arm.name}: kept", steps)
        runs.append(run)
    return ArmResult(arm.name, k, arm.code, lr, tried, tuple(runs))


# ---- the budget ------------------------------------------------------------------------------------------------------


def _seconds(budget: Any) -> float:
    """Seconds, from "30m", "2h", "90s" or a number."""
    if isinstance(budget, str):
        read = _BUDGET.fullmatch(budget.strip().casefold())
        if read is None:
            raise_invalid("budget", "a time such as 30m, 2h or 90s", repr(budget))
        budget = float(read[1]) * _SECONDS[read[2]]
    return check_number("budget", budget, above=0, finite=True)


def steps_for(task: Task, arms: list[Arm], options: CompareOptions, budget: float, on_progress: OnProgress) -> int:
    """The steps of a run that fit the budget, rounded down to 1, 2 or 5 times a power of ten.

    Raises as soon as the arms that were timed leave no time for the fewest steps that tell something.
    """
    trainings = options.seeds + TUNED  # of each arm
    fewest = max(LEAST_STEPS, ceil(task.pairs / task.batch))
    measures = 0.0  # processor seconds of all validations and tests
    seconds_per_step = 0.0  # of one step of all trainings of the arms so far
    for arm in arms:
        on_progress(f"{arm.name}: timing a step", 0.0)
        step, run = _run.step_seconds(task, arm, options.seed)
        if not measures:
            validation = _run.validation_seconds(run)
            measures = len(arms) * validation * (trainings * _run.POINTS + options.seeds * task.test_work)
        seconds_per_step += trainings * step
        _check_budget(budget, measures + fewest * seconds_per_step, f"{counted(fewest, 'step')} of each run")
    most = int((budget - measures) / seconds_per_step)
    power: int = 10 ** (len(str(most)) - 1)
    return max(fewest, next(times * power for times in (5, 2, 1) if times * power <= most))


def _check_budget(budget: float, needed: float, what: str) -> None:
    if needed > budget:
        rule = f"at least {_as_budget(_MARGIN * needed)}, enough for {what}"
        raise_invalid("budget", rule, _as_budget(budget), "Or compare fewer methods or seeds.")


def _as_budget(seconds: float) -> str:
    """A time as `budget` reads it, rounded up."""
    return f"{ceil(seconds)}s" if seconds < 60 else f"{ceil(seconds / 60)}m"

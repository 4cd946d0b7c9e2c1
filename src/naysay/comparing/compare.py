"""Compare kinds of negatives on some data, from the same start, with the same data order and budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil
from typing import Any

from naysay._commands import CompareOptions
from naysay._options import takes_options
from naysay.arrays import torch_in_one_thread
from naysay.checks import check_bool, check_device, check_number, check_one_of, check_whole, public, raise_invalid
from naysay.comparing import _run
from naysay.comparing._data import KINDS, data_of
from naysay.comparing._folder import REPORT, RESULTS, Folder
from naysay.comparing.arms import Arm, read_arms
from naysay.comparing.report import report_comparison
from naysay.comparing.result import ArmResult, Comparison
from naysay.text import counted, versions

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")

Told = Callable[[str, float], None]  # told(what, share of all the work that is done)


@public
@takes_options(CompareOptions)
def compare(
    data: Any = None,
    *,
    told: Told = lambda what, share: None,
    options: CompareOptions,
) -> Comparison:
    """Compare kinds of negatives on some data, and say which to use.

    All arms have the same first vectors, data order and number of gradient steps, seed by seed. Each has its own
    learning rate, chosen on the validation part by successive halving: five rates for a quarter of the steps, the best
    three for half, the best two for all. The test part is measured once a run, at the step of the best validation
    measure. torch runs in one thread, because sums of several threads depend on their timing.

    A difference counts if its 95 % CI (Student's t over the seeds, paired) excludes 0. It covers the randomness of
    training, not that of the split.

    Args:
        data: A path, or data in memory, by task: "recommendation": see `tasks.read_interactions`, or
            `tasks.Interactions`; "knowledge-graph": `tasks.read_triples`, or a `tasks.KnowledgeGraph`; "graph":
            `tasks.read_graph`, or a `tasks.Graph`; "text": `tasks.read_texts`, or `tasks.TextPairs`; "images":
            `tasks.read_images`, or `tasks.Images`. None with quick=True.
        told: told(what, share) is called as the work proceeds; share is from 0 to 1.
        options: See `CompareOptions`.

    Returns:
        The arms with all runs, the table, and the recommendation.

    Raises:
        NaysayError: If the data, a method, the budget or the folder is not valid, before any training.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(60, 80, per_anchor=10)
        >>> parts = ns.tasks.split_by_user(*world.truth.pairs())
        >>> found = ns.compare(parts, methods=["dynamic"], steps=8, seeds=2)
        >>> [arm.name for arm in found.arms], len(found["dynamic"].runs)
        (['uniform', 'dynamic'], 2)
    """
    check_one_of("task", options.task, tuple(KINDS))
    kind = KINDS[options.task]
    model = (options.model,) if options.model else ()
    if model:
        check_one_of("model", options.model, kind.task.models)
    check_bool("quick", options.quick)
    check_device("device", options.device)
    seeds = check_whole("seeds", options.seeds, 1, 1000)
    first = check_whole("seed", options.seed, 0)
    budget, steps = _budget(options.budget), None if options.steps is None else check_whole("steps", options.steps, 4)
    folder = Folder(options.out)
    with torch_in_one_thread():
        task = kind.task(data_of(kind, data, options), *model, device=options.device)
        usual = task.quick if options.quick else task.defaults
        parts = task.start(first).parts()
        arms = read_arms(options.methods, parts, usual, task.own)
        for arm in arms:
            arm.sampler(parts)  # raises before any training if it cannot be made
        if options.quick and steps is None:
            steps = task.quick_steps
        if steps is None:
            steps = folder.settled_steps(budget) or _steps_for(task, arms, seeds, budget, first, told)
        settings = {
            **task.settings(),
            "steps": steps,
            "seed": first,
            "decay": _run.decay_of(task),
            **versions("naysay", "torch"),
        }
        folder.begin(settings, None if options.steps is not None else budget)
        work = _Work(arms, seeds, steps, told)
        done = [_trained(task, arm, steps, range(first, first + seeds), folder, work) for arm in arms]
    epochs = steps * task.batch / task.pairs
    notes = [*task.data.notes, f"{counted(steps, 'step')} of {counted(task.batch, 'row')}: {epochs:.1f} epochs."]
    rates = _run.rates_of(task)
    ends = [arm.name for arm in done if arm.rate in (rates[0], rates[-1])]
    if ends:
        notes.append(f"The best learning rate is the lowest or highest of those tried for {', '.join(ends)}.")
    result = Comparison(task.measure, tuple(done), settings, tuple(notes))
    if folder.path is not None:
        result.write(folder.path / RESULTS)
        report_comparison(result, folder.path / REPORT)
    return result


class _Work:
    """How much of all steps is done."""

    def __init__(self, arms: list[Arm], seeds: int, steps: int, told: Told) -> None:
        self.whole, self.done, self.told = len(arms) * (seeds + _run.TUNED) * steps, 0.0, told

    def add(self, what: str, steps: float) -> None:
        """So many more steps."""
        self.done += steps
        self.told(what, min(1.0, self.done / self.whole))

    def of_run(self, what: str) -> Callable[[int], None]:
        """A function that adds steps of one run, and tells at which step it is."""
        at = 0

        def add(steps: int) -> None:
            nonlocal at
            at += steps
            self.add(f"{what}, step {at:,}", steps)

        return add


def _trained(task: Any, arm: Arm, steps: int, seeds: range, folder: Folder, work: _Work) -> ArmResult:
    """An arm with its learning rate and all its seeds; what is kept is not run again."""
    found = folder.rate(arm)
    if found is None:
        found = _run.choose_rate(task, arm, steps, seeds[0], work.of_run(f"{arm.name}: learning rate"))
        folder.keep_rate(arm, *found)
    else:
        work.add(f"{arm.name}: kept", _run.TUNED * steps)
    runs = []
    for seed in seeds:
        run = folder.run(arm, seed)
        if run is None:
            what = f"{arm.name}: seed {seed - seeds[0] + 1} of {len(seeds)}"
            run = _run.train_arm(task, arm, found[0], steps, seed, work.of_run(what))
            folder.keep_run(arm, run)
        else:
            work.add(f"{arm.name}: kept", steps)
        runs.append(run)
    return ArmResult(arm.name, arm.k, arm.code, *found, tuple(runs))


def _budget(text: Any) -> float:
    """Seconds, from "30m", "2h", "90s" or a number."""
    if isinstance(text, str):
        read = _BUDGET.fullmatch(text.strip().casefold())
        if read is None:
            raise_invalid("budget", "a time such as 30m, 2h or 90s", repr(text))
        text = float(read[1]) * _UNITS[read[2]]
    return check_number("budget", text, above=0, finite=True)


def _steps_for(task: Any, arms: list[Arm], seeds: int, budget: float, seed: int, told: Told) -> int:
    """The steps that fit the budget, rounded down to 1, 2 or 5 times a power of ten; at least an epoch.

    A few steps of each arm are timed first.
    """
    steps, looks = 0.0, 0.0
    for arm in arms:
        told(f"{arm.name}: timing a step", 0.0)
        step, look = _run.cost_of(task, arm, seed)
        steps, looks = steps + step, looks + look
    runs = seeds + _run.TUNED
    epoch: int = ceil(task.pairs / task.batch)
    found = (budget / runs - looks * _run.POINTS) / steps
    if found < epoch:
        needed = runs * (looks * _run.POINTS + 1.25 * epoch * steps)
        rule = f"enough for an epoch of {counted(epoch, 'step')}, about {ceil(needed / 60)}m"
        advice = f"Or compare fewer than {counted(len(arms), 'method')} or {counted(seeds, 'seed')}."
        raise_invalid("budget", rule, f"{budget:g} seconds", advice)
    scale = int("1" + "0" * (len(str(int(found))) - 1))
    rounded = next(one * scale for one in (5, 2, 1) if one * scale <= found)
    return max(epoch, rounded)

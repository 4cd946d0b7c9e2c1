"""Compare kinds of negatives on some data, from the same start, with the same data order and budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from naysay._commands import CompareOptions
from naysay._options import takes_options
from naysay.arrays import torch_in_one_thread
from naysay.checks import check_bool, check_number, check_one_of, check_whole, public, raise_invalid, shown
from naysay.comparing import _run
from naysay.comparing._folder import REPORT, RESULTS, Folder
from naysay.comparing.arms import Arm, read_arms
from naysay.comparing.report import report_comparison
from naysay.comparing.result import ArmResult, Comparison
from naysay.rng import rng_for
from naysay.tasks.interactions import Interactions, split_by_user
from naysay.tasks.knowledge_graph import KnowledgeGraph, read_triples, split_triples
from naysay.tasks.link_prediction import LinkPrediction
from naysay.tasks.reading import read_interactions
from naysay.tasks.recommendation import Recommendation
from naysay.testing.worlds import planted_world
from naysay.text import counted, versions

TASKS: dict[str, Any] = {one.name: one for one in (Recommendation, LinkPrediction)}
QUICK_STEPS = 160
_NOT_QUICK = ("budget", "validation", "test", "split", "liked")  # quick=True does not use them
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")

Told = Callable[[str, float], None]  # told(what, share of all the work that is done)


@public
@takes_options(CompareOptions)
def compare(
    data: str | Path | Interactions | KnowledgeGraph | None = None,
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
        data: A table of interactions, see `tasks.read_interactions`, or `tasks.Interactions`; for a knowledge graph
            triples, see `tasks.read_triples`, or a `tasks.KnowledgeGraph`; None with quick=True.
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
    check_one_of("task", options.task, tuple(TASKS))
    kind = TASKS[options.task]
    model = options.model or kind.models[0]
    check_one_of("model", model, kind.models)
    check_bool("quick", options.quick)
    seeds = check_whole("seeds", options.seeds, 1, 1000)
    first = check_whole("seed", options.seed, 0)
    budget, steps = _budget(options.budget), None if options.steps is None else check_whole("steps", options.steps, 4)
    folder = Folder(options.out)
    with torch_in_one_thread():
        task = kind(_data(data, options), model)
        arms = read_arms(options.methods, task.start(first).parts(), task.quick if options.quick else task.defaults)
        if options.quick and steps is None:
            steps = QUICK_STEPS
        if steps is None:
            steps = folder.settled_steps(budget) or _steps_for(task, arms, seeds, budget, first, told)
        settings = {
            **task.settings(),
            "steps": steps,
            "seed": first,
            "decay": _run.DECAY,
            **versions("naysay", "torch"),
        }
        folder.begin(settings, None if options.steps is not None else budget)
        work = _Work(arms, seeds, steps, told)
        done = [_trained(task, arm, steps, range(first, first + seeds), folder, work) for arm in arms]
    epochs = steps * task.batch / task.pairs
    notes = [*task.data.notes, f"{counted(steps, 'step')} of {counted(task.batch, 'row')}: {epochs:.1f} epochs."]
    ends = [arm.name for arm in done if arm.rate in (_run.RATES[0], _run.RATES[-1])]
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


def _trained(task: Any, arm: Arm, steps: int, seeds: range, folder: Folder, work: _Work) -> ArmResult:
    """An arm with its learning rate and all its seeds; what is kept is not run again."""
    found = folder.rate(arm)
    if found is None:
        found = _run.choose_rate(task, arm, steps, seeds[0], partial(work.add, f"{arm.name}: learning rate"))
        folder.keep_rate(arm, *found)
    else:
        work.add(f"{arm.name}: kept", _run.TUNED * steps)
    runs = []
    for seed in seeds:
        run = folder.run(arm, seed)
        if run is None:
            what = f"{arm.name}: seed {seed - seeds[0] + 1} of {len(seeds)}"
            run = _run.train_arm(task, arm, found[0], steps, seed, partial(work.add, what))
            folder.keep_run(arm, run)
        else:
            work.add(f"{arm.name}: kept", steps)
        runs.append(run)
    return ArmResult(arm.name, arm.k, arm.code, *found, tuple(runs))


def _data(data: Any, options: CompareOptions) -> Interactions | KnowledgeGraph:
    """The interactions or triples: given, read, or generated."""
    graph = options.task == LinkPrediction.name
    if options.quick:
        usual = CompareOptions()
        for name, value in {"data": data, **{name: getattr(options, name) for name in _NOT_QUICK}}.items():
            if value != getattr(usual, name, None):
                raise_invalid(name, "left out with `quick`", shown(value))
        return _generated_graph(options.seed) if graph else _generated_interactions(options.seed)
    if data is None:
        raise_invalid("data", "a table, or a folder of triples", "nothing", "Or pass `quick`.")
    if isinstance(data, KnowledgeGraph if graph else Interactions):
        given: Interactions | KnowledgeGraph = data
        return given
    parts = {"validation": options.validation, "test": options.test}
    if not graph:
        return read_interactions(data, **parts, split=options.split, liked=options.liked, seed=options.seed)
    if options.liked is not None or options.split != "auto":
        raise_invalid("liked" if options.liked is not None else "split", "left out for a knowledge graph", "a value")
    return read_triples(data, **parts, seed=options.seed)


def _generated_interactions(seed: int) -> Interactions:
    """500 users and 1,500 items in clusters, of different popularity."""
    world = planted_world(500, 1500, per_anchor=24, noise=0.3, spread=0.8)
    return split_by_user(*world.truth.pairs(), seed=seed)


def _generated_graph(seed: int) -> KnowledgeGraph:
    """400 entities are points, and each of 8 relations is a step: its tails are the four nearest to the end of it."""
    rng = rng_for(seed=0)
    places, steps = rng.standard_normal((400, 5)), rng.standard_normal((8, 5))
    away = np.linalg.norm((places[:, None] + steps)[:, :, None] - places, axis=3)
    return split_triples(np.argwhere(away <= np.sort(away, axis=2)[:, :, 3:4]), 400, 8, seed=seed)


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

"""The result of a comparison: runs, differences with intervals, and the recommendation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, isnan, nan
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.checks import public
from naysay.difficulty.study import Mean, mean_of
from naysay.files import as_path, check_target, write_whole
from naysay.text import counted, json_file, percent, short_repr

# With two seeds Student's t has one degree of freedom: its 95 % CI is 12.7 standard errors to each side, and has no
# width at all where both differences happen to agree. With three it is 4.3.
LEAST_SEEDS = 3
# A run is validated 20 times. With fewer than five steps between two of them, the order of the arms is that of the
# first steps: it depends on the start, not on the negatives.
LEAST_STEPS = 100
# Fewer epochs leave out positives, others for each seed.
LEAST_EPOCHS = 1.0
# A curve that still rises is run for twice the steps. Learning curves flatten: over the next N steps one gains at most
# twice what it gained over the last N / 2.
LONGER = 2
_NAMED = 3  # arms that a sentence names; the table has them all
TUNED = 5 / 4 + 3 / 4 + 2 / 2  # whole runs that choosing the learning rate of an arm costs


@final
@dataclass(frozen=True, slots=True)
class Point:
    """A measure during training.

    `hardness` is the mean of sigmoid(negative - positive) since the last point, 0.5 if both score the same; NaN without
    negatives. `false_share` is that of the last batch's negatives, as far as the task knows; NaN if it does not.
    """

    step: int  # gradient steps so far
    seconds: float  # of training so far, without measuring
    processor_seconds: float
    value: float  # the measure on the validation part
    hardness: float
    false_share: float


@final
@dataclass(frozen=True, slots=True)
class RunResult:
    """One seed of an arm."""

    seed: int  # of the start, the data order and the draws
    points: tuple[Point, ...]
    test: dict[str, float]  # {measure: value} on the test part, at the point of the best validation measure

    __repr__ = short_repr

    @property
    def best(self) -> Point:
        """The point with the best validation measure, the first of equals."""
        return max(self.points, key=lambda point: point.value)

    @property
    def rising(self) -> bool:
        """Whether the best validation measure is that of the last check: a longer run would have been better."""
        return len(self.points) > 1 and self.best is self.points[-1]

    @property
    def late_gain(self) -> float:
        """How much the best validation measure rose in the second half of the run."""
        half = self.points[-1].step / 2
        return self.best.value - max((point.value for point in self.points if point.step <= half), default=0.0)

    def first_at(self, value: float) -> Point | None:
        """The first point whose validation measure is that high."""
        return next((point for point in self.points if point.value >= value), None)

    def best_within(self, processor_seconds: float) -> float:
        """The best validation measure within so many processor seconds; NaN if there was none yet."""
        return max((point.value for point in self.points if point.processor_seconds <= processor_seconds), default=nan)


@final
@dataclass(frozen=True, slots=True)
class ArmResult:
    """An arm over all seeds.

    `k` is the number of negatives per positive. For a method that uses others, it is what the method uses: "all",
    "batch", "queue", "none", or the batch and k drawn ones, "batch + 8" for k = 8.
    """

    name: str
    k: int | str
    code: str  # its composition
    lr: float  # the learning rate that was chosen
    tried: dict[str, float]  # {learning rate: best validation measure, NaN if training diverged}
    runs: tuple[RunResult, ...]  # one per seed, in the order of the seeds

    __repr__ = short_repr

    def values(self, measure: str) -> list[float]:
        """The test measure of each seed."""
        return [run.test[measure] for run in self.runs]

    @property
    def runs_rising(self) -> int:
        """How many of the runs have their best validation measure at the last check."""
        return sum(run.rising for run in self.runs)

    @property
    def still_rises(self) -> bool:
        """Whether most runs do. One of many may by chance, after the curve is flat."""
        return 2 * self.runs_rising > len(self.runs)

    @property
    def milliseconds_per_step(self) -> float:
        """Processor milliseconds of a step, over all seeds."""
        ends = [run.points[-1] for run in self.runs]
        return 1e3 * sum(end.processor_seconds for end in ends) / sum(end.step for end in ends)


@final
@public
@dataclass(frozen=True, eq=False)
class Comparison:
    """Which negatives are best on some data.

    Args:
        measure: The measure that decides, on the test part.
        arms: All arms; the others are compared to the first.
        settings: {name: value} of what decides the result.
        notes: Sentences about the data and the run.

    Example: see `compare`.
    """

    measure: str
    arms: tuple[ArmResult, ...]
    settings: dict[str, Any]
    notes: tuple[str, ...] = field(default=())

    __repr__ = short_repr

    def __getitem__(self, name: str) -> ArmResult:
        """An arm by its name."""
        return next(arm for arm in self.arms if arm.name == name)

    def mean(self, arm: ArmResult, measure: str | None = None) -> Mean:
        """The mean of a test measure over the seeds, with its 95 % CI by Student's t; NaN with one seed."""
        return mean_of(arm.values(measure or self.measure))

    def difference(self, arm: ArmResult, other: ArmResult, measure: str | None = None) -> Mean:
        """The mean difference of two arms, paired by seed, with its 95 % CI."""
        name = measure or self.measure
        return mean_of(np.subtract(arm.values(name), other.values(name)))

    @cached_property
    def disagreement(self) -> str | None:
        """A sentence if labels prefer another arm than a measure by which unlabelled positives count; else None.

        They disagree if the best arm by labels is worse than another one by the other measure, and the 95 % CI of
        that difference does not include 0.
        """
        for name in self.arms[0].runs[0].test:
            if name.startswith(f"{self.measure}, ") and name.endswith("positives too"):
                other = max(self.arms, key=lambda arm: self.mean(arm, name).mean)
                gap = self.difference(other, self.best, name)
                if gap.low > 0:
                    return (
                        f"The measures disagree: by labels alone {self.best.name} is best, but by {name} {other.name} "
                        f"is better by {mean_text(gap, sign='+')}. Labels alone prefer negatives that push unlabelled "
                        "positives away; review some pairs before you decide."
                    )
        return None

    @cached_property
    def best(self) -> ArmResult:
        """The arm with the highest mean."""
        return max(self.arms, key=lambda arm: self.mean(arm).mean)

    @cached_property
    def tied(self) -> tuple[ArmResult, ...]:
        """The best arm, and all arms whose difference to it has a 95 % CI that includes 0, or none."""
        return tuple(arm for arm in self.arms if arm is self.best or not self.difference(self.best, arm).low > 0)

    @property
    def winner(self) -> str | None:
        """The name of the best arm if it is better than every other by the 95 % CI; None if not, or if `withheld`."""
        return self.best.name if len(self.tied) == 1 and not self.withheld else None

    @property
    def steps(self) -> int:
        """Gradient steps of a run."""
        return max(run.points[-1].step for arm in self.arms for run in arm.runs)

    @cached_property
    def unsettled(self) -> tuple[ArmResult, ...]:
        """The arms that decide and whose validation measure still rises in most runs.

        An arm decides if it is the best or tied with it, or if it could reach the validation measure of the best in
        twice the steps: its own plus twice what it gained in the second half of its runs.
        """
        to_reach = _mean_best(self.best)
        decisive = (
            arm
            for arm in self.arms
            if arm in self.tied or _mean_best(arm) + LONGER * _mean(run.late_gain for run in arm.runs) >= to_reach
        )
        return tuple(arm for arm in decisive if arm.still_rises)

    @cached_property
    def withheld(self) -> str | None:
        """Why nothing is recommended: too few seeds, steps or epochs, or curves that still rise. None: it is."""
        seeds, epochs = len(self.arms[0].runs), self.settings.get("epochs", LEAST_EPOCHS)
        reasons = []
        if seeds < LEAST_SEEDS:
            reasons.append(f"{counted(seeds, 'seed')} cannot tell arms apart, run at least {LEAST_SEEDS}")
        if self.steps < LEAST_STEPS:
            reasons.append(f"{counted(self.steps, 'step')} are too few, run at least {LEAST_STEPS}")
        if epochs < LEAST_EPOCHS:
            least = ceil(self.steps * LEAST_EPOCHS / epochs)
            reasons.append(f"{epochs:.2f} epochs leave out positives, run at least {counted(least, 'step')}")
        if self.unsettled:
            names = [arm.name for arm in self.unsettled]
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            arms = ", ".join(names[:_NAMED]) + more
            steps = max(LEAST_STEPS, LONGER * self.steps)
            longer = f"run longer, at least {counted(steps, 'step')}, {self._training_time(steps / self.steps)}"
            reasons.append(f"still rising at the last step: {arms}; {longer}")
        return "; ".join(reasons) or None

    @property
    def recommended(self) -> ArmResult | None:
        """The arm with the highest mean; None if nothing is recommended, see `withheld`."""
        return None if self.withheld else self.best

    def goals(self) -> list[float]:
        """The best validation measure of the first arm, for each seed."""
        return [run.best.value for run in self.arms[0].runs]

    def reached(self, arm: ArmResult) -> list[Point]:
        """For each seed that reached the best validation measure of the first arm, the point where it did."""
        points = (run.first_at(goal) for run, goal in zip(arm.runs, self.goals(), strict=True))
        return [point for point in points if point is not None]

    def at_equal_time(self, arm: ArmResult) -> Mean:
        """The best validation measure within the processor seconds of the first arm's whole run of the same seed."""
        limits = [run.points[-1].processor_seconds for run in self.arms[0].runs]
        return mean_of([run.best_within(limit) for run, limit in zip(arm.runs, limits, strict=True)])

    @property
    def recommendation(self) -> str:
        """What to use, in one sentence with its evidence; or why nothing is recommended, and what to run."""
        best, base = self.best, self.arms[0]
        seeds = counted(len(best.runs), "seed")
        value = f"{self.measure} {self.mean(best).mean:.4f}"
        gap = "" if best is base else f", {self._gap(best)} over {base.name}"
        if self.withheld:
            return f"No recommendation: {self.withheld}. So far {best.name} has the highest mean: {value}{gap}."
        if len(self.arms) == 1:
            return f"Use {best.name}: {value} ({seeds}); nothing else was compared."
        others = [arm.name for arm in self.tied if arm is not best]
        if others:
            return (
                f"Tie: {best.name} has the highest mean, {value}{gap} ({seeds}), but the 95 % CI of its difference to "
                f"{', '.join(others)} includes 0; run more seeds."
            )
        if best is base:
            rival = max((arm for arm in self.arms if arm is not base), key=lambda arm: self.mean(arm).mean)
            gap = f", the nearest is {rival.name}, {self._gap(rival)}"
        return (
            f"Use {best.name}: {value}{gap} ({seeds}){self._speed(best)}, better than every other arm by its 95 % CI."
        )

    def _training_time(self, times: float) -> str:
        """The processor time of the training of all arms, learning rates included, with so many times the steps."""
        trained = sum(run.points[-1].processor_seconds for arm in self.arms for run in arm.runs)
        seeds = len(self.arms[0].runs)
        minutes = ceil(times * trained * (seeds + TUNED) / seeds / 60)
        return f"about {counted(minutes, 'minute')} of training"

    def _gap(self, arm: ArmResult) -> str:
        gap = self.difference(arm, self.arms[0])
        return f"{gap.mean:+.4f}" + ("" if isnan(gap.low) else f" (95 % CI {gap.low:+.4f} to {gap.high:+.4f})")

    def _speed(self, arm: ArmResult) -> str:
        """How soon the arm reached the best of the first arm, if it did with every seed."""
        points, whole = self.reached(arm), [run.best.processor_seconds for run in self.arms[0].runs]
        if arm is self.arms[0] or len(points) < len(arm.runs) or not sum(whole):
            return ""
        share = sum(point.processor_seconds for point in points) / sum(whole)
        time = f"{percent(share)} of" if share < 1 else f"{share:.1f} times"
        return f", reaching the best of {self.arms[0].name} in {time} its time"

    def table(self) -> list[dict[str, str]]:
        """{heading: text} of each arm, best first."""
        base = self.arms[0]
        second = next(name for name in base.runs[0].test if name != self.measure)
        return [
            {
                "negatives": arm.name,
                "k": str(arm.k),
                self.measure: mean_text(self.mean(arm)),
                f"minus {base.name}": "" if arm is base else mean_text(self.difference(arm, base), sign="+"),
                second: mean_text(self.mean(arm, second)),
                "validation at equal time": f"{self.at_equal_time(arm).mean:.4f}",
                f"steps to best of {base.name}": self._to_goal(arm, "step", ",.0f"),
                f"seconds to best of {base.name}": self._to_goal(arm, "processor_seconds", ".1f"),
                "ms per step": f"{arm.milliseconds_per_step:.1f}",
                "lr": f"{arm.lr:g}",
                "still rising": f"{arm.runs_rising} of {len(arm.runs)}",
            }
            for arm in sorted(self.arms, key=lambda arm: -self.mean(arm).mean)
        ]

    def _to_goal(self, arm: ArmResult, attribute: str, form: str) -> str:
        """The mean over the seeds that reached the best of the first arm, and how many did if not all."""
        values = [getattr(point, attribute) for point in self.reached(arm)]
        if not values:
            return "never"
        reached = "" if len(values) == len(arm.runs) else f" ({len(values)} of {len(arm.runs)})"
        return f"{np.mean(values):{form}}{reached}"

    def rows(self) -> list[tuple[str, ...]]:
        """The table as texts, best first; the headings are `columns`."""
        return [tuple(row.values()) for row in self.table()]

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of `rows`."""
        return tuple(self.table()[0])

    def __str__(self) -> str:
        """The table, then the recommendation."""
        table = [self.columns, *self.rows()]
        widths = [max(len(row[place]) for row in table) for place in range(len(self.columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        return "\n".join([*lines, "", self.recommendation])

    def write(self, path: str | Path) -> None:
        """Write all results as a JSON file."""
        target = as_path("path", path)
        check_target("path", target)
        write_whole("path", target, self.as_json())

    def as_json(self) -> bytes:
        """All results as the bytes of a JSON file."""
        whole = {
            "measure": self.measure,
            "recommendation": self.recommendation,
            "withheld": self.withheld,
            "winner": self.winner,
            "tied": [arm.name for arm in self.tied],
            "settings": self.settings,
            "notes": self.notes,
            "table": self.table(),
            "arms": self.arms,
        }
        return json_file(whole)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _mean_best(arm: ArmResult) -> float:
    """The mean over seeds of the best validation measure."""
    return _mean(run.best.value for run in arm.runs)


def mean_text(found: Mean, sign: str = "") -> str:
    """'0.1234 ± 0.0012', half of the 95 % CI; without it for one seed.

    Examples:
        >>> mean_text(mean_of([0.40, 0.42, 0.41]))
        '0.4100 ± 0.0248'
    """
    half = "" if isnan(found.low) else f" ± {found.high - found.mean:.4f}"
    return f"{found.mean:{sign}.4f}{half}"

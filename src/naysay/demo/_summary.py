"""Several seeds as a mean with an interval, and what they say of who won."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

LEVEL = 0.95


@final
@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of one number a seed, and half the width of its interval, t s / sqrt(n), by Student's t; NaN for one."""

    mean: float
    half: float

    @property
    def tells(self) -> bool:
        """Whether the interval leaves 0 out."""
        return abs(self.mean) > self.half

    def __str__(self) -> str:
        """In points of a hundred: '41.9 ± 0.6'."""
        shown = f"{100 * self.mean:.1f}"
        return shown if math.isnan(self.half) else f"{shown} ± {100 * self.half:.1f}"


def mean_of(values: Sequence[float]) -> Mean:
    """The mean over seeds and its interval of 95 %.

    Example:
        >>> str(mean_of([0.40, 0.42, 0.41]))
        '41.0 ± 2.5'
    """
    from scipy.stats import t  # here, so that looking at the command's help does not load it

    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return Mean(float(array.mean()), math.nan)
    half = t.ppf((1 + LEVEL) / 2, len(array) - 1) * array.std(ddof=1) / math.sqrt(len(array))
    return Mean(float(array.mean()), float(half))


def difference(mine: Sequence[float], theirs: Sequence[float]) -> Mean:
    """By how much mine are higher, seed by seed: what two arms of one seed share falls out."""
    return mean_of([one - other for one, other in zip(mine, theirs, strict=True)])


def verdict(values: Mapping[str, Sequence[float]], measure: str, arm: str, rivals: Sequence[str]) -> str:
    """Who has the highest mean, and how the arm stands against each rival, in sentences made from the numbers.

    Args:
        values: {arm: one number a seed} of the measure.
    """
    means = {name: mean_of(found).mean for name, found in values.items()}
    best = max(means, key=lambda name: means[name])
    sentences = [f"By {measure}, {best} has the highest mean, {100 * means[best]:.1f}."]
    for rival in rivals:
        gap = difference(values[arm], values[rival])
        points = f"{abs(100 * gap.mean):.1f} points {'above' if gap.mean >= 0 else 'below'} {rival}"
        if math.isnan(gap.half):
            doubt = "one seed cannot say whether that is chance"
        else:
            low, high = 100 * (gap.mean - gap.half), 100 * (gap.mean + gap.half)
            doubt = f"the interval of {LEVEL:.0%}, {low:.1f} to {high:.1f}, "
            doubt += "leaves 0 out" if gap.tells else "has 0 in it, so it may be chance"
        sentences.append(f"{arm} is {points} ({doubt}).")
    return " ".join(sentences)

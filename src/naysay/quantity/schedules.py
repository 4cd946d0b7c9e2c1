"""The number of negatives through a run: quickly up to the best k, slowly down again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.checks import check_whole, refuse
from naysay.quantity.numbers import allow, numbers, one_number, plain


def check_peak(owner: str, peak: Any) -> float:
    """The largest k of a schedule, as a float."""
    largest = one_number(owner, "peak", peak)
    if not 1 <= largest < np.inf:
        refuse(owner, "peak", "finite and at least 1", largest, "Take the k of an estimate.")
    return largest


@final
@dataclass(frozen=True, slots=True, repr=False)
class Adaptive:
    """A schedule that `adaptive` made: call it with a step, or an array of steps. It can be pickled and printed."""

    peak: float
    steps: int
    turning: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what makes no schedule, and keep plain numbers."""
        owner = "adaptive"
        turning = one_number(owner, "turning", self.turning)
        if not 0 <= turning <= 1:
            refuse(owner, "turning", "between 0 and 1", turning, "It is the share of steps in which k rises.")
        object.__setattr__(self, "peak", check_peak(owner, self.peak))
        object.__setattr__(self, "steps", check_whole(owner, "steps", self.steps, 1))
        object.__setattr__(self, "turning", turning)

    def __call__(self, step: Any) -> Any:
        """The k of a step: a float for a number, else a float64 array of its shape; 1 for steps beyond the last."""
        at = numbers("adaptive", "step", step)
        allow("adaptive", "step", at, at >= 0, "at least 0")
        last = self.steps - 1
        turn = min(self.turning * self.steps, last)
        rise = at / turn if turn > 0 else np.ones_like(at)
        fall = (last - at) / (last - turn) if last > turn else np.where(at <= last, 1.0, 0.0)
        return plain(np.asarray(1 + (self.peak - 1) * np.clip(np.minimum(rise, fall), 0, 1)))

    def __repr__(self) -> str:
        return f"adaptive(peak={self.peak}, steps={self.steps}, turning={self.turning})"


def adaptive(peak: float, steps: int, turning: float = 0.1) -> Adaptive:
    """A function of the step: 1 at step 0, up to `peak` at turning * steps, down to 1 at the last step, steps - 1.

    peak      the largest k, at least 1: the k of an `estimate`
    steps     how many steps the run has. Beyond them k stays 1
    turning   the share of steps in which k rises, from 0 (begin at the peak) to 1 (end at it)

    Adaptive negative sampling: Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? Its k
    "quickly grows" to the best and "slowly declines" to 1; straight lines are our reading of its Fig. 8. The turning
    point at 10 % is the paper's, found by trial (its Fig. 12); `turning_sweep` asks the model. k is a float, and
    samplers realise it per row (`realise`).

    >>> k_at = adaptive(peak=12, steps=101)
    >>> k_at(0), round(k_at(5), 2), round(k_at(10.1), 2), round(k_at(55.05), 2), k_at(100)
    (1.0, 6.45, 12.0, 6.5, 1.0)
    """
    return Adaptive(peak, steps, turning)

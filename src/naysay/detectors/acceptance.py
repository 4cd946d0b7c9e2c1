"""Schedules of acceptance: which share of pseudo-labels to accept, as training progresses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, public

Accept = float | Callable[[float], float]
_ROUNDING = 1e-14  # 0.29 * 100 counts as 29, not 28.999..., and a third of 300 as 100


@final
@public
@dataclass(frozen=True, slots=True)
class LinearAcceptance:
    """A share that grows linearly from `initial` to `final` over training: the schedule of the paper.

    The paper's Table 6 compares finals of 0.25, 0.5, 0.75 and 1, of which 1 was best.

    Args:
        final: The share at the end of training, from 0 to 1.
        initial: The share at its start, from 0 to 1.

    Examples:
        >>> accept = LinearAcceptance(final=0.5)
        >>> accept(0.0), accept(0.5), accept(1.0)
        (0.0, 0.25, 0.5)
    """

    final: float = 1.0
    initial: float = 0.0

    def __post_init__(self) -> None:
        _check_shares(self)

    def __call__(self, progress: float) -> float:
        """Return the share at a progress in [0, 1]."""
        return (1.0 - progress) * self.initial + progress * self.final  # exact at both ends


@final
@public
@dataclass(frozen=True, slots=True)
class StepAcceptance:
    """No labels before `start`, then a constant share `rate`: a warm-up, then all labels, as in PCL.

    Args:
        start: The progress from which labels are accepted, from 0 to 1.
        rate: The share from there on, from 0 to 1.

    Examples:
        >>> accept = StepAcceptance()
        >>> accept(0.09), accept(0.1), accept(1.0)
        (0.0, 1.0, 1.0)
    """

    start: float = 0.1
    rate: float = 1.0

    def __post_init__(self) -> None:
        _check_shares(self)

    def __call__(self, progress: float) -> float:
        """Return the share at a progress in [0, 1]."""
        return self.rate if progress >= self.start else 0.0


def _check_shares(schedule: LinearAcceptance | StepAcceptance) -> None:
    """Raise unless all numbers are from 0 to 1."""
    for field in fields(schedule):
        share = check_number(field.name, getattr(schedule, field.name), at_least=0, at_most=1)
        object.__setattr__(schedule, field.name, share)


def accepted(confidence: NDArray[np.float64], rate: float) -> NDArray[np.bool_]:
    """(n,) True for the floor(rate n) most confident; ties go to the lower id. A higher rate accepts a superset."""
    chosen = np.zeros(len(confidence), np.bool_)
    count = math.floor((rate + _ROUNDING) * len(confidence))
    chosen[np.argsort(-confidence, kind="stable")[:count]] = True
    return chosen

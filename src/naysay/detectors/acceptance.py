"""Which pseudo-labels are accepted: the most confident, more of them as training goes on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import public, raise_invalid, shown

Accept = float | Callable[[float], float]
_ROUNDING = 1e-14  # of a rate: 0.29 * 100 is 29, not 28.999..., and a third of 300 is 100


def as_rate(parameter: str, value: Any) -> float:
    """A number in [0, 1] as a float, or a refusal."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise_invalid(parameter, "a number between 0 and 1", shown(value))
    return float(value)


@final
@public
@dataclass(frozen=True, slots=True)
class LinearAcceptance:
    """From `initial` at the start of training to `final` at its end, in a straight line: the paper's own.

    The paper's Table 6 has finals of 0.25, 0.5, 0.75 and 1, of which 1 was the best.

    Example:
        >>> accept = LinearAcceptance(final=0.5)
        >>> accept(0.0), accept(0.5), accept(1.0)
        (0.0, 0.25, 0.5)
    """

    final: float = 1.0
    initial: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name in ("final", "initial"):
            object.__setattr__(self, name, as_rate(name, getattr(self, name)))

    def __call__(self, progress: float) -> float:
        """The share at a progress in [0, 1]."""
        return (1.0 - progress) * self.initial + progress * self.final  # exact at both ends


@final
@public
@dataclass(frozen=True, slots=True)
class StepAcceptance:
    """Nothing before `start`, a share `rate` from there on: a warm-up, then all labels, as PCL does.

    Example:
        >>> accept = StepAcceptance()
        >>> accept(0.09), accept(0.1), accept(1.0)
        (0.0, 1.0, 1.0)
    """

    start: float = 0.1
    rate: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name in ("start", "rate"):
            object.__setattr__(self, name, as_rate(name, getattr(self, name)))

    def __call__(self, progress: float) -> float:
        """The share at a progress in [0, 1]."""
        return self.rate if progress >= self.start else 0.0


def accepted(confidence: NDArray[np.float64], rate: float) -> NDArray[np.bool_]:
    """(n,) True for the floor(rate n) most confident, of equal ones those of the lower id.

    A higher rate accepts the same ones and more. What is missing to a whole number by rounding is not missed.
    """
    chosen = np.zeros(len(confidence), np.bool_)
    count = math.floor((rate + _ROUNDING) * len(confidence))
    chosen[np.argsort(-confidence, kind="stable")[:count]] = True
    return chosen

"""Curricula: a parameter that moves with the step. Any function of the step will do; these are the usual ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.checks import check_whole, refuse, shown


def at_step(parameter: Any, step: int) -> Any:
    """The parameter at a step: what it answers if it is a function, itself otherwise."""
    return parameter(step) if callable(parameter) else parameter


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """From `start` at step 0 to `stop` at `steps` and beyond, in a straight line; whole if both ends are.

    >>> hardness = Linear(1.0, 0.5, steps=100)
    >>> hardness(0), hardness(50), hardness(100), hardness(1000)
    (1.0, 0.75, 0.5, 0.5)
    >>> Linear(1, 64, steps=100)(50)
    33
    """

    start: float
    stop: float
    steps: int

    def __post_init__(self) -> None:
        """Refuse what is no number."""
        for name in ("start", "stop"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            if not number or not math.isfinite(value):
                refuse("Linear", name, "a finite number", shown(value))
        check_whole("Linear", "steps", self.steps, 1)

    def __call__(self, step: int) -> float:
        """The value at a step; halves are rounded up where it is whole."""
        share = min(max(step / self.steps, 0.0), 1.0)
        value = (1.0 - share) * self.start + share * self.stop  # exact at both ends
        whole = all(isinstance(end, int | np.integer) for end in (self.start, self.stop))
        return math.floor(value + 0.5) if whole else float(value)

"""Curricula: a parameter that moves with the step. Any function of the step will do; these are the usual ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

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
            if isinstance(value, bool) or not isinstance(value, int | float):
                refuse("Linear", name, "a number", shown(value))
        check_whole("Linear", "steps", self.steps, 1)

    def __call__(self, step: int) -> float:
        """The value at a step."""
        share = min(max(step / self.steps, 0.0), 1.0)
        value = self.start + (self.stop - self.start) * share
        whole = isinstance(self.start, int) and isinstance(self.stop, int)
        return int(value + 0.5) if whole else value

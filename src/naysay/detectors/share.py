"""A share that was estimated without knowing the truth, with its interval and its assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from naysay.checks import public
from naysay.text import percent


@final
@public
@dataclass(frozen=True, slots=True)
class Share:
    """An estimated share, its confidence interval, and what it assumes.

    Args:
        what: What the share is of, in words.
        estimate: The share, from 0 to 1; NaN if it is unknown.
        low: The lower end of the interval, which contains the true share with this confidence if the assumptions hold.
        high: The upper end of the interval.
        confidence: The confidence of the interval.
        n: The number of independent observations.
        assumptions: One sentence for each assumption.
        notes: One sentence for each limitation.
        bound: Whether only the upper bound `high` is claimed. `estimate` is then the bound without sampling error.

    Examples:
        >>> print(Share("false negatives", 0.02, 0.01, 0.04, 0.95, 300, ("the judge is right",)))
        false negatives: 2.0 % (95% CI 1.0 to 4.0, n = 300)
        assumes: the judge is right
    """

    what: str
    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    bound: bool = False

    def __str__(self) -> str:
        """The share and its interval, then the assumptions and notes, one a line."""
        level, n = f"{self.confidence:.0%}", f"n = {self.n:,}"
        if self.bound:
            estimate = f"{percent(self.estimate)} without sampling error"
            lines = [f"{self.what}: at most {percent(self.high)} ({level} confidence, {n}; {estimate})"]
        else:
            interval = f"{level} CI {percent(self.low, sign='')} to {percent(self.high, sign='')}, {n}"
            lines = [f"{self.what}: {percent(self.estimate)} ({interval})"]
        lines += [f"assumes: {sentence}" for sentence in self.assumptions]
        return "\n".join(lines + [f"note: {sentence}" for sentence in self.notes])

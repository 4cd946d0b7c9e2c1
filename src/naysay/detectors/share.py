"""A share that was estimated without knowing the truth: with its interval, and with what it takes for granted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Share:
    """An estimate that says how sure it is, and what it rests on.

    Args:
        what: Of what, in words.
        estimate: The share, from 0 to 1.
        low: The interval that holds the true share with the confidence asked for, if the assumptions hold.
        high: The interval that holds the true share with the confidence asked for, if the assumptions hold.
        confidence: How sure that is.
        n: How many independent looks it rests on.
        assumptions: A sentence for each thing that is taken for granted.
        notes: A sentence for each thing that makes it less sure, or that it cannot tell.
        bound: Whether only `high` is claimed: the share is at most that, and `estimate` is what the bound would be
            without an allowance for chance.
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
        """The figure in one line, then what it assumes and what to know about it."""
        sure, n = f"{self.confidence:.0%}", f"n = {self.n:,}"
        if self.bound:
            chance = f"{_percent(self.estimate)} % without an allowance for chance"
            lines = [f"{self.what}: at most {_percent(self.high)} % ({sure} confidence, {n}; {chance})"]
        else:
            interval = f"{sure} interval {_percent(self.low)} to {_percent(self.high)}, {n}"
            lines = [f"{self.what}: {_percent(self.estimate)} % ({interval})"]
        lines += [f"assumes: {sentence}" for sentence in self.assumptions]
        return "\n".join(lines + [f"note: {sentence}" for sentence in self.notes])


def _percent(share: float) -> str:
    """Per cent with two figures that say something: 12.3, 1.2, 0.012."""
    return f"{100 * share:.1f}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}"

"""Rows of counts for thresholds, and the share of pairs that a budget of negatives means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid

Rows = NDArray[np.void]
Counts = NDArray[np.int64]
KINDS = ("positive", "false", "hard", "easy")
NAMED = {"high": "false", "low": "false or hard"}  # what a negative is that reaches a threshold
_ROW = np.dtype(
    [("value", np.float64)]
    + [(kind, np.int64) for kind in KINDS]
    + [(f"{kind}_share", np.float64) for kind in KINDS[1:]]
)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Thresholds, the rows of counts by high and by low value, and what makes the choice less sure."""

    low: Any
    high: Any
    by_high: Rows
    by_low: Rows
    notes: tuple[str, ...] = ()


def budget(share: Fraction, pairs: int) -> int:
    """floor(share pairs), for a share in decimals: 0.29 of 100 is 29, which floating point makes 28."""
    return floor(share * pairs)


def check_differ(n: int, smallest: float, largest: float) -> None:
    """Refuse scores that are all one number: no threshold tells them apart."""
    if smallest == largest:
        raise_invalid("scores", "of more than one value", f"{n} times {smallest:g}", "Is the encoder trained?")


def chosen(by_low: Rows, low: Any) -> tuple[int, int, int]:
    """How many negatives are false, hard and easy by the choice; of all anchors, where each has its own."""
    rows = by_low if np.ndim(low) else by_low[by_low["value"] == low][:1]
    false, hard, easy = (int(rows[kind].sum()) for kind in KINDS[1:])
    return false, hard, easy


def note_of_ties(where: str, name: str, reach: int, allowed: int) -> str:
    """That equal scores keep negatives from reaching `name`, which is high or low."""
    none = "" if reach else f", so no negative is {NAMED[name]}"
    return f"Equal scores{where}: {reach} negatives reach {name}, where {allowed} were allowed{none}."


def counted(values: Any, low: Any, high: Any, negatives: Any, positives: Any) -> Rows:
    """Rows of counts, read-only.

    Args:
        values: (r,) the threshold of each row.
        low: (r,) or one: how many scores are at or above low and high; a low above its high counts as that high.
        high: (r,) or one: how many scores are at or above low and high; a low above its high counts as that high.
        negatives: (r,) or one: how many there are.
        positives: (r,) or one: how many there are.
    """
    rows = np.empty(len(values), _ROW)
    rows["value"], rows["positive"], rows["false"] = values, positives, high
    rows["easy"] = negatives - np.maximum(low, high)
    rows["hard"] = negatives - rows["easy"] - rows["false"]
    for kind in KINDS[1:]:
        rows[f"{kind}_share"] = rows[kind] / (np.asarray(negatives) + positives)
    rows.flags.writeable = False
    return rows

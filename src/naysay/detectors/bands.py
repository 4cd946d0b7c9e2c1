"""Bands: easy, hard and false negatives by two thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.arrays import Floats, to_numpy
from naysay.checks import as_array, check_all, check_number, public, raise_invalid
from naysay.detectors._suspicion import as_suspicion, check_scored, in_precision_of, like, rounded, slot_scores
from naysay.text import described
from naysay.types import Array, Negatives, Query, check_query

NAMES = ("easy", "hard", "false")


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """The bands of negatives: easy below `low`, hard from there up to `high`, false at or above `high`.

        flag       0 if score < low, 1 if low <= score < high, 2 if score >= high
        suspicion  1 if score >= high, else 0

    `choose_thresholds` finds both numbers by shares of pairs. A threshold is compared in the precision of the scores,
    as NumPy and torch compare an array with a number; bfloat16 is compared as float32.

    Args:
        low: The threshold of hard negatives.
        high: The threshold of false negatives, at least `low`. Infinity means none.

    Examples:
        >>> Bands(0.2, 0.6).flag([0.1, 0.2, 0.5, 0.6]).tolist()
        [0, 1, 1, 2]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        high = check_number("high", self.high)
        object.__setattr__(self, "low", check_number("low", self.low, at_most=high))
        object.__setattr__(self, "high", high)

    def flag(self, scores: Any) -> Array:
        """0 easy, 1 hard, 2 false for each score: int8 in the shape and array type of `scores`."""
        values = as_array("scores", to_numpy(scores))
        if values.dtype.kind not in "iuf":
            raise_invalid("scores", "numbers", f"dtype {getattr(scores, 'dtype', values.dtype)}")
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        check_all("scores", values, ~np.isnan(values), "a number")
        low, high = rounded(self.low, values.dtype), rounded(self.high, values.dtype)
        return like(np.add(values >= low, values >= high, dtype=np.int8), scores)

    def count(self, scores: Any) -> dict[str, int]:
        """The number of easy, hard and false scores."""
        flags = np.asarray(to_numpy(self.flag(scores)))
        return dict(zip(NAMES, np.bincount(flags.ravel(), minlength=3).tolist(), strict=True))

    def threshold(self, query: Query) -> Floats:
        """(B,) the score from which slots of each row are suspected: `high`."""
        check_query(query)
        return np.full(len(query), self.high)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): 1 for slots that score at or above `high`, else 0. Empty slots are 0."""
        check_scored(query, negatives)
        return as_suspicion(self.unchecked_suspicion(query, negatives), negatives)

    def unchecked_suspicion(self, query: Query, negatives: Negatives) -> Floats:
        """`suspicion` without checks, for negatives that naysay made."""
        high = in_precision_of(negatives.scores, self.high)
        return (slot_scores(negatives) >= high).astype(np.float64)

    __repr__ = described

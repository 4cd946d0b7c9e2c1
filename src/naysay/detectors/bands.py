"""Bands: easy, hard and false negatives by two thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_floats, check_all, check_range, public, raise_invalid, whole_numbers
from naysay.detectors._scores import in_precision_of, plain_scores, rounded
from naysay.detectors._slots import as_suspicion, check_query_and_negatives, like, query_anchors, slot_scores
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

    Cost: O(1) per score.

    Args:
        low: The threshold of hard negatives: a number, or (n_anchors,) with a threshold for each anchor.
        high: The threshold of false negatives, in the shape of `low` and nowhere below it. Infinity means none.

    Examples:
        >>> Bands(0.2, 0.6).flag([0.1, 0.2, 0.5, 0.6]).tolist()
        [0, 1, 1, 2]
    """

    low: Any
    high: Any

    def __post_init__(self) -> None:
        """Check both thresholds, and make them read-only."""
        low, high = (as_floats(name, value) for name, value in (("low", self.low), ("high", self.high)))
        if low.ndim > 1 or low.shape != high.shape:
            raise_invalid("low", "a number like high, or (n_anchors,) like high", f"shapes {low.shape}, {high.shape}")
        check_all("low", low, low <= high, "at most high")
        for name, value in (("low", low), ("high", high)):
            value.flags.writeable = False
            object.__setattr__(self, name, value if value.ndim else value.item())

    def flag(self, scores: Array, anchors: Array = None) -> Array:
        """The band of each score.

        Args:
            scores: Any shape. With thresholds for each anchor, a row for each anchor.
            anchors: (B,) ids of the rows, with thresholds for each anchor. By default all anchors in order.

        Returns:
            0 easy, 1 hard, 2 false: int8 in the shape and array type of `scores`.
        """
        values = plain_scores(scores)
        if values.dtype.kind not in "iuf":
            raise_invalid("scores", "numbers", f"dtype {getattr(scores, 'dtype', values.dtype)}")
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        check_all("scores", values, ~np.isnan(values), "a number")
        low, high = (rounded(self._thresholds(name, values.shape, anchors), values.dtype) for name in ("low", "high"))
        return like(np.add(values >= low, values >= high, dtype=np.int8), scores)

    def count(self, scores: Array, anchors: Array = None) -> dict[str, int]:
        """The number of easy, hard and false scores."""
        flags = np.asarray(to_numpy(self.flag(scores, anchors)))
        return dict(zip(NAMES, np.bincount(flags.ravel(), minlength=3).tolist(), strict=True))

    def threshold(self, query: Query) -> NDArray[np.float64]:
        """(B,) the score from which slots of each row are suspected: `high`."""
        check_query(query)
        high = np.asarray(self.high)
        return np.full(len(query), high) if high.ndim == 0 else high[query_anchors(query, len(high))]

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): 1 for slots that score at or above `high`, else 0. Empty slots are 0."""
        check_query_and_negatives(query, negatives)
        scores = slot_scores(negatives)
        anchors = query.anchors if np.ndim(self.high) else None
        high = in_precision_of(negatives.scores, self._thresholds("high", scores.shape, anchors))
        return as_suspicion((scores >= high).astype(np.float64), negatives)

    def _thresholds(self, name: str, shape: tuple[int, ...], anchors: Array) -> NDArray[np.float64]:
        """The `low` or `high` that broadcasts with scores of `shape`."""
        values: NDArray[np.float64] = np.asarray(getattr(self, name))
        if values.ndim == 0:
            if anchors is not None:
                raise_invalid("anchors", "left out, as all anchors have one low and high", f"shape {np.shape(anchors)}")
            return values
        if anchors is not None:
            ids = whole_numbers("anchors", to_numpy(anchors), "(B,)")
            check_range("anchors", ids, len(values), "anchors")
            values = values[ids]
        if not shape or shape[0] != len(values):
            raise_invalid("scores", f"of {len(values)} rows, one for each anchor", f"shape {tuple(shape)}")
        return values.reshape(-1, *[1] * (len(shape) - 1))

    __repr__ = described

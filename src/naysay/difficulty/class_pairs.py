"""Scores by pair of classes: which are close, which are opposite, and which are unrelated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_whole, public
from naysay.difficulty.consistency import class_sums
from naysay.difficulty.curves import HARD, Floats, check_hard, rank, read_labels, read_scores
from naysay.kernels import percentiles as kernels
from naysay.text import short_repr


@final
@dataclass(frozen=True, slots=True)
class ClassPair:
    """One class of anchors and one of negatives.

    Attributes:
        anchor: The class of the anchors.
        negative: The class of the negatives.
        mean: The mean score.
        below_zero: The share of pairs with a score below 0.
        hard: The share of pairs that are hard.
        pairs: The number of pairs.

    Example: see `class_pairs`.
    """

    anchor: int
    negative: int
    mean: float
    below_zero: float
    hard: float
    pairs: int


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class ClassPairs:
    """A table of classes of anchors by classes of negatives.

    Attributes:
        classes: (c,) the labels, ascending.
        pairs: (c, c) int64: the number of pairs, a row for each class of anchors.
        mean: (c, c) the mean score; NaN where there is no pair.
        below_zero: (c, c) the share of scores below 0; NaN where there is no pair.
        hard: (c, c) the share of pairs that are hard; NaN where there is no pair.

    Example: see `class_pairs`.
    """

    classes: NDArray[np.int64]
    pairs: NDArray[np.int64]
    mean: Floats
    below_zero: Floats
    hard: Floats

    __repr__ = short_repr

    def correlated(self, many: int = 10) -> list[ClassPair]:
        """The pairs of different classes with the highest mean score, the highest first."""
        return self._first(-self.mean, many)

    def anti_correlated(self, many: int = 10) -> list[ClassPair]:
        """The pairs of different classes with the lowest mean score, the lowest first."""
        return self._first(self.mean, many)

    def orthogonal(self, many: int = 10) -> list[ClassPair]:
        """The pairs of different classes with a mean score nearest to 0."""
        return self._first(np.abs(self.mean), many)

    def _first(self, key: Floats, many: Any) -> list[ClassPair]:
        count = check_whole("many", many, 1)
        usable = ~np.isnan(key) & ~np.eye(len(key), dtype=np.bool_)
        order = np.argsort(np.where(usable, key, np.inf), axis=None, kind="stable")[: min(count, int(usable.sum()))]
        rows, columns = np.unravel_index(order, key.shape)
        tables = (self.mean, self.below_zero, self.hard, self.pairs)
        parts = (self.classes[rows], self.classes[columns], *(table[rows, columns] for table in tables))
        return [ClassPair(*values) for values in zip(*(part.tolist() for part in parts), strict=True)]


def mean_table(classes: NDArray[np.int64], totals: Floats) -> ClassPairs:
    """The table of labels (c,), from the `class_sums` of anchors added up by class (c, 4, c)."""
    pairs, hard, scores, below = totals.transpose(1, 0, 2)
    with np.errstate(invalid="ignore"):
        return ClassPairs(classes, pairs.astype(np.int64), scores / pairs, below / pairs, hard / pairs)


@public
def class_pairs(scores: Any, labels: Any, negative_labels: Any, mask: Any = None, *, hard: float = HARD) -> ClassPairs:
    """Return the mean scores of all pairs of classes (Tables A3 to A5 of Cai et al. 2020).

    Cost: O(B m + classes^2).

    Args:
        scores: (B, m), where column j is the same negative for all anchors.
        labels: (B,) classes of the anchors.
        negative_labels: (m,) classes of the negatives.
        mask: (B, m) bool, True where a pair counts; None: all do.
        hard: The share of hard negatives; above 0 and below 1.

    Examples:
        >>> found = class_pairs([[0.9, -0.5], [-0.3, 0.2]], [0, 1], [0, 1])
        >>> [(pair.anchor, pair.negative, pair.mean) for pair in found.anti_correlated()]
        [(0, 1, -0.5), (1, 0, -0.3)]
    """
    hard_share = check_hard(hard)
    ranked = rank(*read_scores(scores, mask))
    rows, width = ranked.order.shape
    own = read_labels("labels", labels, rows, "anchors")
    theirs = read_labels("negative_labels", negative_labels, width, "negatives")
    classes, places = np.unique(np.concatenate([own, theirs]), return_inverse=True)
    totals = np.zeros((len(classes), 4, len(classes)))
    kernels.add_rows(places[:rows], class_sums(ranked, places[rows:], len(classes), hard_share), totals)
    return mean_table(classes, totals)

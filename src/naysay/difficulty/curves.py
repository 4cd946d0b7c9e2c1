"""Means by percentile, with their errors over anchors, and the sums behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.difficulty._ranked import Floats, Intervals, Ranked
from naysay.kernels import percentiles as kernels


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A mean for each interval of percentiles, the easiest first.

    Attributes:
        low: (g,) start of the interval [low, high), 0.0 the easiest.
        high: (g,) end of the interval, 1.0 the hardest.
        mean: (g,) over all pairs in it; NaN where there is none.
        error: (g,) its standard error over anchors, for these negatives: pairs of an anchor are one observation.
            NaN with fewer than two anchors.
        pairs: (g,) int64: the number of pairs.

    Example: see `mean_score`.
    """

    low: Floats
    high: Floats
    mean: Floats
    error: Floats
    pairs: NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """Hard negatives, with the hardest, against easy ones of the same anchor.

    Attributes:
        hard: The mean over hard pairs.
        easy: The mean over easy pairs.
        difference: The mean over anchors of the difference; NaN if no anchor has both.
        low: Lower end of its 95 % CI, by Student's t over anchors.
        high: Upper end.
        anchors: The number of anchors that have both.

    Example: see `Study.gaps`.
    """

    hard: float
    easy: float
    difference: float
    low: float
    high: float
    anchors: int


@final
class CurveSums:
    """The sums of one measure, for each group of percentiles.

    Args:
        groups: (low, high) each.
        shares: True: the sum over a group counts as a share of the anchor's whole, not as a mean over pairs.
    """

    def __init__(self, groups: list[tuple[float, float]], *, shares: bool = False) -> None:
        """Start with no pairs."""
        self.groups, self.shares = np.array(groups), shares
        self.intervals = Intervals.of([*groups, (0.0, 1.0)])
        self.moments = np.zeros((len(groups), 6))
        self.pairs = np.zeros(len(groups), np.int64)

    def add(self, ranked: Ranked, values: NDArray[Any]) -> tuple[Floats, Floats]:
        """Add a block of anchors, values (B, m); return the sums (B, g) and the number of pairs in each."""
        sums, sizes = self.intervals.sums(ranked, values), self.intervals.sizes(ranked.counts)
        self.pairs += sizes[:, :-1].sum(axis=0).astype(np.int64)
        if self.shares:
            whole = sums[:, -1:]
            sums = sums / np.where(whole > 0, whole, 1.0)
            sizes = np.broadcast_to(whole > 0, sums.shape).astype(np.float64)
        kernels.add_moments(sums[:, :-1], sizes[:, :-1], self.moments)
        return sums[:, :-1], sizes[:, :-1]

    def curve(self, groups: slice) -> Curve:
        """The means of some of the groups."""
        low, high = self.groups[groups].T
        mean, error = ratio(self.moments[groups])
        return Curve(low, high, mean, error, self.pairs[groups])


@final
class GapSums:
    """The sums of the difference between two groups of a measure, at the indices `easy` and `hard` of its groups."""

    def __init__(self, easy: int, hard: int) -> None:
        """Start with no pairs."""
        self.chosen = [easy, hard]
        self.moments, self.sides = np.zeros((1, 6)), np.zeros((2, 6))

    def add(self, sums: Floats, sizes: Floats) -> None:
        """Add a block, as returned by `CurveSums.add`."""
        part, whole = sums[:, self.chosen], sizes[:, self.chosen]
        kernels.add_moments(part, whole, self.sides)
        means = part / np.maximum(whole, 1)
        both = (whole > 0).all(axis=1, keepdims=True).astype(np.float64)
        kernels.add_moments(means[:, 1:] - means[:, :1], both, self.moments)

    def gap(self) -> Gap:
        """The difference, with its interval."""
        from scipy.special import stdtrit

        easy, hard = ratio(self.sides)[0].tolist()
        anchors = int(self.moments[0, 0])
        difference, error = (part.item() for part in ratio(self.moments))
        half = float(stdtrit(anchors - 1, 0.975)) * error if anchors > 1 else np.nan
        return Gap(hard, easy, difference, difference - half, difference + half, anchors)


def ratio(moments: Floats) -> tuple[Floats, Floats]:
    """sum(part) / sum(whole) of `moments` (g, 6), and its linearised standard error over rows.

    The variance over n rows is n / (n - 1) sum (part - R whole)^2 / (sum whole)^2.
    """
    rows, whole, part, squares, products, parts = moments.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = part / whole
        spread = np.maximum(parts - 2 * mean * products + mean * mean * squares, 0.0)
        error = np.where(rows > 1, np.sqrt(spread * rows / (rows - 1)) / whole, np.nan)
    return mean, error

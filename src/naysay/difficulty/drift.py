"""How much difficulty changes between two checkpoints of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import to_numpy
from naysay.checks import as_array, public, raise_invalid
from naysay.difficulty.curves import HARD, Floats, Ranked, check_hard, cut, rank, read_scores
from naysay.kernels import percentiles as kernels
from naysay.kernels.threads import in_rows
from naysay.text import short_repr


@final
@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over anchors, with its 95 % CI.

    Attributes:
        mean: NaN without anchors.
        low: Lower end of the 95 % CI, by Student's t.
        high: Upper end.
        anchors: The number of anchors.

    Example: see `drift`.
    """

    mean: float
    low: float
    high: float
    anchors: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """The agreement of two checkpoints.

    Attributes:
        correlations: (n,) Spearman's rank correlation of an anchor's two rows of scores, with mean ranks for ties;
            NaN where a row is constant.
        overlaps: (n,) the share of an anchor's hard negatives that are hard for both; NaN where there are none.
        correlation: The mean of `correlations`.
        overlap: The mean of `overlaps`.
        by_chance: The expected overlap if one checkpoint were shuffled: the hard share.

    Example: see `drift`.
    """

    correlations: Floats
    overlaps: Floats
    correlation: Mean
    overlap: Mean
    by_chance: float

    __repr__ = short_repr


@public
def drift(scores: Any, other: Any, mask: Any = None, *, hard: float = HARD) -> Drift:
    """Compare two checkpoints: for each anchor, the rank correlation of its scores and the overlap of hard negatives.

    Cost: O(B K).

    Args:
        scores: (B, K) of one model.
        other: (B, K) of the other model, for the same pairs.
        mask: (B, K) bool, True where a slot counts; None: all do.
        hard: The share of hard negatives; above 0 and below 1.

    Examples:
        >>> found = drift([[0.1, 0.2, 0.3, 0.4]], [[0.2, 0.1, 0.3, 0.4]], hard=0.5)
        >>> found.correlations.round(6).tolist(), found.overlaps.tolist(), found.by_chance
        ([0.8], [1.0], 0.5)
    """
    hard_share = check_hard(hard)
    first, kept = read_scores(scores, mask)
    again = as_array("other", to_numpy(other))
    if again.ndim == 2 and again.shape != first.shape:
        raise_invalid("other", f"of shape {first.shape}, like the scores", f"shape {again.shape}")
    second, _ = read_scores(again, mask, parameter="other")
    one, two = rank(first, kept), rank(second, kept)
    return summary(*agreement(one, two, hard_share), one.counts, hard_share)


def agreement(one: Ranked, two: Ranked, hard: float) -> tuple[Floats, Floats]:
    """(B,) correlations and (B,) overlaps of a block."""
    rows, width = one.order.shape
    correlations, overlaps = np.empty(rows), np.empty(rows)
    arguments = (one.scores, one.order, two.scores, two.order, one.counts, hard, correlations, overlaps)
    in_rows(kernels.compare_orders, rows, 4 * rows * width, *arguments)
    return correlations, overlaps


def summary(correlations: Floats, overlaps: Floats, counts: NDArray[np.int64], hard: float) -> Drift:
    """Average over all anchors."""
    known = ~np.isnan(overlaps)
    chance = cut(counts[known], hard) / counts[known]
    by_chance = float(chance.mean()) if len(chance) else np.nan
    return Drift(frozen(correlations), frozen(overlaps), mean_of(correlations), mean_of(overlaps), by_chance)


def mean_of(values: Any) -> Mean:
    """The mean of what is not NaN."""
    from scipy.special import stdtrit

    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    size = len(known)
    if not size:
        return Mean(np.nan, np.nan, np.nan, 0)
    middle = float(known.mean())
    half = float(stdtrit(size - 1, 0.975) * known.std(ddof=1) / size**0.5) if size > 1 else np.nan
    return Mean(middle, middle - half, middle + half, size)

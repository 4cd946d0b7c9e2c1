"""Confidence intervals of a share, for observations that are independent and for those that share an anchor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, raise_invalid, shown

Floats = NDArray[np.float64]
CONFIDENCE = 0.95


def check_confidence(confidence: Any) -> float:
    """A number between 0 and 1, both excluded."""
    return check_number("confidence", confidence, above=0, below=1)


def check_representative(representative_anchors: Any) -> bool:
    """True or False."""
    if not isinstance(representative_anchors, bool | np.bool_):
        raise_invalid("representative_anchors", "True or False", shown(representative_anchors))
    return bool(representative_anchors)


def least_share(hits: float, n: float, error: float) -> float:
    """The lower bound of Clopper and Pearson: above the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, n - hits + 1, error)) if hits > 0 else 0.0


def most_share(hits: float, n: float, error: float) -> float:
    """The upper bound of Clopper and Pearson: below the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, n - hits, 1 - error)) if hits < n else 1.0


def exact_interval(hits: float, n: float, confidence: float) -> tuple[float, float]:
    """(low, high) of a share by `hits` of n independent trials. Coverage is at least `confidence` for every n.

    Clopper and Pearson. The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial. 1934.
    """
    error = (1 - confidence) / 2
    return least_share(hits, n, error), most_share(hits, n, error)


def moments(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """(..., 6) sums over anchors, of which `part` of `whole` (..., B) slots are hits. Sums of batches add up.

    They are the number of rows with slots, then the sums of whole, part, whole^2, whole part and part^2.
    """
    p, w = part.astype(np.float64), whole.astype(np.float64)
    return np.stack([(w > 0).sum(-1), w.sum(-1), p.sum(-1), (w * w).sum(-1), (w * p).sum(-1), (p * p).sum(-1)], axis=-1)


def effective_size(sums: Floats, slots: float, error: float, *, representative_anchors: bool = True) -> float:
    """The number of independent observations that the share sum(part) / sum(whole) of these `moments` is worth.

    Slots of one anchor tend to be hit or missed together, so B anchors with K slots are worth less than B K
    observations. The linearised variance of the share R over n anchors is
    n / (n - 1) sum (part - R whole)^2 / (sum whole)^2. The size is R (1 - R) over it, at most one observation for each
    of the `slots`, and at least (sum whole)^2 / sum whole^2, where all slots of an anchor agree. Few anchors estimate
    their variance badly, so the size is multiplied by (z / t)^2, the quantiles of Normal and Student at a tail of
    `error`. One anchor is worth 0.

    This takes the spread of the anchors at hand for the spread of all. If one anchor in a hundred is unlike the
    others, a hundred anchors may hold none of its kind, and the interval is too short. representative_anchors=False
    treats each anchor as one observation (conservative), (sum whole)^2 / sum whole^2 in all: no distribution of shares
    from 0 to 1 spreads more than hit or miss. That holds for anchors of one weight; where weights differ, a heavy one
    may be missing too.

    Korn and Graubard. Confidence Intervals for Proportions with Small Expected Number of Positive Counts. 1998.
    """
    from scipy.special import ndtri, stdtrit

    rows, whole, part, squares, products, parts = sums.tolist()
    if not representative_anchors:
        return whole * whole / squares if rows else 0.0
    if rows < 2:
        return 0.0
    share = part / whole
    spread = max(parts - 2 * share * products + share * share * squares, 0.0) * rows / (rows - 1)
    fewest = whole * whole / squares
    size = share * (1 - share) * whole * whole / spread if spread > 0 else slots if 0 < share < 1 else fewest
    return float(np.clip(size, fewest, max(slots, fewest)) * (ndtri(error) / stdtrit(rows - 1, error)) ** 2)

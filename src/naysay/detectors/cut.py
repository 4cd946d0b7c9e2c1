"""Cut: the largest threshold of the posterior at which what is returned has a wanted share of false negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_number, check_whole, first_bad, public, raise_invalid

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The largest threshold of the posterior at which the returned set has the wanted share of false negatives.

    Args:
        tau: Candidates with a posterior of at most tau are kept. 1 if nothing need be dropped.
        kept: (A, M): the k nearest candidates of each anchor with a posterior of at most tau.
        before: The mean posterior of the k nearest.
        after: The mean posterior of the kept.
        hardness_before: The mean score of the k nearest; NaN without scores.
        hardness_after: The mean score of the kept; NaN without scores.
        dropped: How many of the k nearest have a posterior above tau.
        short: How many anchors have fewer than k kept.

    Examples:
        >>> found = cut([[0.5, 0.1, 0.0], [0.25, 0.0, 0.0]], k=2, false_share=0.1)
        >>> found.tau, round(found.before, 4), round(found.after, 4), found.kept.tolist()
        (0.25, 0.2125, 0.0875, [[False, True, True], [True, True, False]])
    """

    tau: float
    kept: Mask
    before: float
    after: float
    hardness_before: float
    hardness_after: float
    dropped: int
    short: int


@public
def cut(posterior: Any, k: int, false_share: float, *, scores: Any = None) -> Cut:
    """Find the largest tau such that the mean posterior of "the k nearest with posterior <= tau" is at most a target.

    One tau for all anchors. The mean never falls with tau: what a larger tau adds has a larger posterior than all that
    is kept, and replaces something smaller. So a bisection over the posteriors is exact: O(A M log A M).

    Args:
        posterior: (A, M) from 0 to 1, nearest first; NaN where a slot is empty.
        k: Negatives per anchor.
        false_share: The target.
        scores: (A, M) scores of the slots, to report hardness.

    Returns:
        The cut. If even the smallest posterior is above the target, tau is 0 and nothing is kept.

    Raises:
        NaysayError: If an argument is invalid.

    Examples:
        >>> cut([[0.5, 0.125, 0.0]], k=2, false_share=0.0625).tau
        0.125
    """
    p = as_array("posterior", to_numpy(posterior))
    if p.ndim != 2 or p.dtype.kind not in "iuf":
        raise_invalid("posterior", "numbers of shape (A, M)", f"{p.dtype} of shape {p.shape}")
    p = p.astype(np.float64)
    filled = ~np.isnan(p)
    bad = filled & ~((p >= 0) & (p <= 1))
    if bad.any():
        raise_invalid("posterior", "from 0 to 1, or NaN where a slot is empty", first_bad(p, bad))
    count, target = check_whole("k", k, 1), check_number("false_share", false_share, at_least=0, at_most=1)
    values = None
    if scores is not None:
        values = as_array("scores", to_numpy(scores))
        if values.shape != p.shape or values.dtype.kind not in "iuf":
            rule = f"numbers of shape {p.shape}, like `posterior`"
            raise_invalid("scores", rule, f"{values.dtype} of shape {values.shape}")
        values = values.astype(np.float64)
    return cut_at(np.where(filled, p, 2.0), count, target, values)


def cut_at(p: Floats, k: int | NDArray[np.int64], target: float, scores: Floats | None) -> Cut:
    """The cut of (A, M) posteriors, 2 where a slot is empty; k is one number, or (A,) one for each row."""
    near, kept = nearest_below(p, k, 1.0), np.zeros(p.shape, bool)
    tau, levels = 1.0, np.unique(p[p <= 1])
    if near.any() and mean_of(p, near) <= target:
        kept = near
    elif len(levels):
        low, high = -1, len(levels) - 1  # the mean at levels[low] is at most the target, that at levels[high] is not
        while high - low > 1:
            middle = (low + high) // 2
            if mean_of(p, nearest_below(p, k, levels[middle])) <= target:
                low = middle
            else:
                high = middle
        tau = float(levels[low]) if low >= 0 else 0.0
        kept = nearest_below(p, k, tau) if low >= 0 else kept
    hardness = [mean_of(scores, mask) if scores is not None else np.nan for mask in (near, kept)]
    dropped, short = int((near & (p > tau)).sum()), int((kept.sum(axis=1) < k).sum())
    return Cut(tau, kept, mean_of(p, near), mean_of(p, kept), hardness[0], hardness[1], dropped, short)


def nearest_below(p: Floats, k: int | NDArray[np.int64], tau: float) -> Mask:
    """(A, M): the first k slots of each row with p <= tau."""
    below = p <= tau
    return np.asarray(below & (np.cumsum(below, axis=1) <= np.reshape(k, (-1, 1))))


def mean_of(values: Floats, mask: Mask) -> float:
    """The mean over a mask; 0 if it is empty."""
    return float(values[mask].sum() / max(1, np.count_nonzero(mask)))

"""From a table of candidates to what a page says of it: a sample that it holds, and how many negatives are false."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.rate import false_negative_rate
from naysay.detectors.share import Share
from naysay.report.scores import MOST, Sample

Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """Candidates that a line decides about, and one known positive of each anchor.

    Args:
        scores: (n, m) of all that was found.
        mask: (n, m) those that the line decides about.
        k: (n,) negatives of each anchor.
        positives: (n,) the score of one known positive of each anchor, NaN where there is none.
        listed: (n,) whether the search would have found it, had nobody labelled it: only then does it say something
            about what the search finds.
        suspicion: (n, m) where the line is one of suspicion; None: it is one of scores.
    """

    scores: NDArray[np.float32]
    mask: Mask
    k: NDArray[np.int64]
    positives: NDArray[np.float32]
    listed: Mask
    suspicion: NDArray[np.float32] | None = None


def sample_of(
    given: Decided,
    line: float,
    *,
    rng: np.random.Generator,
    share: float = nan,
    of_anchors: int = 0,
    command: str = "",
) -> Sample | None:
    """A `Sample` of at most 40,000 numbers, of whole anchors; None if there is no candidate, or an anchor has more.

    Every anchor is as likely.

    Args:
        share: Of unlabelled positives among the candidates, see `share_of`.
        of_anchors: How many anchors there are in all, if these are a part; 0: these.
    """
    rows = rng.permutation(len(given.scores))
    most = MOST if given.suspicion is None else MOST // 2  # a line of suspicion takes two numbers a candidate
    rows = np.sort(rows[np.cumsum(np.count_nonzero(given.mask[rows], axis=1)) <= most])
    if not given.mask[rows].any():
        return None
    scores, mask, order = _sorted(given.scores[rows], given.mask[rows])
    values = scores if given.suspicion is None else np.take_along_axis(given.suspicion[rows], order, axis=1)
    told = np.flatnonzero(~np.isnan(given.positives[rows]))
    return Sample(
        anchors=np.nonzero(mask)[0],
        scores=scores[mask],
        values=values[mask],
        k=np.asarray(given.k[rows]),
        line=line,
        by="score" if given.suspicion is None else "suspicion",
        positives=given.positives[rows][told],
        positive_anchors=told,
        listed=given.listed[rows][told],
        share=share,
        of_anchors=of_anchors or len(given.scores),
        command=command,
    )


def share_of(given: Decided) -> Share | None:
    """How many of the candidates are unlabelled positives, at most; None where it cannot be told."""
    return _rate(given, given.scores, given.mask, given.mask, np.ones(len(given.scores), np.bool_))


def rate_of(given: Decided, line: float) -> Share | None:
    """How many of the negatives that a line gives are false, at most, as `moved` has it; None where it cannot be told.

    It is `false_negative_rate`, with its interval, of all candidates at hand. O(n m).
    """
    scores, mask, _ = _sorted(given.scores, given.mask)
    below = mask & (scores.astype(np.float64) < line)
    taken = below & (np.cumsum(below, axis=1) <= given.k[:, None])
    if not taken.any():
        return None
    full = np.count_nonzero(taken, axis=1) >= given.k
    lowest = np.where(taken, scores, np.float32(np.inf)).min(axis=1)
    known = given.positives.astype(np.float64)
    return _rate(given, scores, mask, taken, (known < line) & ((known >= lowest) | ~full))


def _rate(given: Decided, scores: NDArray[np.float32], mask: Mask, taken: Mask, passed: Mask) -> Share | None:
    """`false_negative_rate` of the candidates taken; `passed` (n,) says which positives would be taken as well."""
    known = given.listed & ~np.isnan(given.positives)
    if given.suspicion is not None or not known.any() or not mask.any():
        return None
    if np.ptp(np.concatenate([scores[mask], given.positives[known]])) == 0:
        return None
    table = np.where(mask, scores, np.float32(0))
    return false_negative_rate(table, given.positives[known], taken, kept_positives=passed[known], mask=mask)


def _sorted(scores: NDArray[np.float32], mask: Mask) -> tuple[NDArray[np.float32], Mask, NDArray[np.int64]]:
    """Both with the candidates of each row first, the highest score first, and the order that does it."""
    order = np.argsort(np.where(mask, -scores, np.inf), axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(mask, order, axis=1), order

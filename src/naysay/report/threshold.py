"""What another threshold would give: figures on a sample of candidates, as the page's slider computes them, too."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_kind, check_number, public
from naysay.detectors.rate import false_negative_rate
from naysay.detectors.share import Share
from naysay.report.scores import MAX_NUMBERS, Sample

Mask = NDArray[np.bool_]


@final
@public
@dataclass(frozen=True, slots=True)
class AtThreshold:
    """The figures at one threshold. Counts are scaled to all anchors.

    Args:
        threshold: The threshold.
        suspected: Candidates at or above the threshold.
        negatives: The k highest candidates below it, per anchor.
        empty: Slots that stay empty.
        mean_score: Mean score of the negatives; NaN if there are none.
        mean_percentile: Mean share of its anchor's candidates below a negative; NaN if there are none.
        miss_rate: Share of the known positives below the threshold: an estimate of the share of unlabelled positives
            that are missed. NaN if unknown.
        false_rate: Estimated upper bound of the share of false negatives; NaN if unknown.

    Example: see `at_threshold`.
    """

    threshold: float
    suspected: float
    negatives: float
    empty: float
    mean_score: float
    mean_percentile: float
    miss_rate: float
    false_rate: float


@public
def at_threshold(sample: Sample, threshold: float) -> AtThreshold:
    """Compute what a threshold would give: the k highest scores below it, for each anchor. O(candidates).

    The share of false negatives is that of `detectors.false_negative_rate`,

        share * P_pos(taken) / P_cand(taken)

    where P_pos(taken) is the share of the known positives, of those that the search would retrieve, that the same rule
    would take as negatives if they were not labelled: below the threshold, and not below the lowest score of a full
    row.

    Args:
        sample: The candidates.
        threshold: The threshold, a score or a suspicion as `sample.by` says.

    Examples:
        >>> sample = Sample([0, 0, 0], [0.9, 0.5, 0.1], [0.9, 0.5, 0.1], [1], threshold=0.6)
        >>> now = at_threshold(sample, 0.6)
        >>> now.suspected, now.negatives, now.mean_score, at_threshold(sample, 1.0).suspected
        (1.0, 1.0, 0.5, 0.0)
    """
    check_kind("sample", sample, Sample, "a Sample")
    threshold = check_number("threshold", threshold)
    scale = sample.of_anchors / len(sample.k)
    taken, per_anchor = _taken(sample, threshold)
    negatives, scores = int(taken.sum()), sample.scores.astype(np.float64)
    size = np.bincount(sample.anchors, minlength=len(sample.k))
    end = np.cumsum(size)
    share_below = (end[sample.anchors] - np.arange(len(scores)) - 1) / size[sample.anchors]
    known = sample.by == "score" and len(sample.positives) > 0
    rate = nan
    if known and negatives > 0 and np.any(sample.retrieved):
        passed = _taken_positives(sample, threshold, taken, per_anchor)
        rate = sample.share * float(passed.mean()) * len(scores) / negatives
    return AtThreshold(
        threshold=threshold,
        suspected=scale * int(np.count_nonzero(sample.values.astype(np.float64) >= threshold)),
        negatives=scale * negatives,
        empty=scale * int((sample.k - per_anchor).sum()),
        mean_score=float(scores[taken].mean()) if negatives else nan,
        mean_percentile=float(share_below[taken].mean()) if negatives else nan,
        miss_rate=float((sample.positives.astype(np.float64) < threshold).mean()) if known else nan,
        false_rate=min(rate, 1.0),
    )


def _taken(sample: Sample, threshold: float) -> tuple[Mask, NDArray[np.int64]]:
    """Return (c,) which candidates are negatives at a threshold, and (a,) how many each anchor has."""
    below = sample.values.astype(np.float64) < threshold
    counted = np.concatenate([[0], np.cumsum(below)])
    first = np.searchsorted(sample.anchors, np.arange(len(sample.k)))  # where each anchor starts
    before = counted[:-1] - counted[first][sample.anchors]  # candidates of the same anchor that come first
    taken = below & (before < sample.k[sample.anchors])
    return taken, np.bincount(sample.anchors[taken], minlength=len(sample.k))


def _taken_positives(sample: Sample, threshold: float, taken: Mask, per_anchor: NDArray[np.int64]) -> Mask:
    """Return (q,) which of the retrieved positives the same rule would take if they were candidates."""
    lowest = np.full(len(sample.k), np.inf)
    np.minimum.at(lowest, sample.anchors[taken], sample.scores[taken].astype(np.float64))
    lowest[per_anchor < sample.k] = -np.inf  # a row that is not full takes any
    scores, anchors = sample.positives[sample.retrieved].astype(np.float64), sample.positive_anchors[sample.retrieved]
    return np.asarray((scores < threshold) & (scores >= lowest[anchors]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """Candidates that a threshold decides about, and one known positive of each anchor."""

    scores: NDArray[np.float32]  # (n, m) of all candidates
    mask: Mask  # (n, m) those that the threshold decides about
    k: NDArray[np.int64]  # (n,) negatives of each anchor
    positives: NDArray[np.float32]  # (n,) the score of one known positive of each anchor, NaN where there is none
    # (n,) whether the search would have found it, had it not been labelled. Only then is it comparable with what
    # the search found
    retrieved: Mask
    # (n, m) if the threshold is one of suspicion; None: it is one of scores
    suspicion: NDArray[np.float32] | None = None


def sample_of(
    given: Decided,
    threshold: float,
    *,
    rng: np.random.Generator,
    share: float = nan,
    of_anchors: int = 0,
    command: str = "",
) -> Sample | None:
    """Draw a `Sample` of at most 40,000 numbers, of whole anchors, each equally likely.

    None if there is no candidate, or an anchor has more. For the other arguments see `Sample`.
    """
    rows = rng.permutation(len(given.scores))
    numbers = 1 if given.suspicion is None else 2  # per candidate
    rows = np.sort(rows[numbers * np.cumsum(np.count_nonzero(given.mask[rows], axis=1)) <= MAX_NUMBERS])
    if not given.mask[rows].any():
        return None
    scores, mask, order = _sorted(given.scores[rows], given.mask[rows])
    values = scores if given.suspicion is None else np.take_along_axis(given.suspicion[rows], order, axis=1)
    labelled = np.flatnonzero(~np.isnan(given.positives[rows]))
    return Sample(
        anchors=np.nonzero(mask)[0],
        scores=scores[mask],
        values=values[mask],
        k=np.asarray(given.k[rows]),
        threshold=threshold,
        by="score" if given.suspicion is None else "suspicion",
        positives=given.positives[rows][labelled],
        positive_anchors=labelled,
        retrieved=given.retrieved[rows][labelled],
        share=share,
        of_anchors=of_anchors or len(given.scores),
        command=command,
    )


def share_of(given: Decided) -> Share | None:
    """Bound the share of the candidates that are unlabelled positives; None if unknown."""
    return _rate(given, given.scores, given.mask, given.mask, np.ones(len(given.scores), np.bool_))


def rate_of(given: Decided, threshold: float) -> Share | None:
    """Bound the share of false negatives at a threshold, by `false_negative_rate` of all candidates; None if unknown.

    `at_threshold` has the same estimate on a sample, without the interval. O(n m).
    """
    scores, mask, _ = _sorted(given.scores, given.mask)
    below = mask & (scores.astype(np.float64) < threshold)
    taken = below & (np.cumsum(below, axis=1) <= given.k[:, None])
    if not taken.any():
        return None
    full = np.count_nonzero(taken, axis=1) >= given.k
    lowest = np.where(taken, scores, np.float32(np.inf)).min(axis=1)
    known = given.positives.astype(np.float64)
    return _rate(given, scores, mask, taken, (known < threshold) & ((known >= lowest) | ~full))


def _rate(given: Decided, scores: NDArray[np.float32], mask: Mask, taken: Mask, passed: Mask) -> Share | None:
    """`false_negative_rate` of the candidates taken; `passed` (n,): positives that would be taken as well."""
    known = given.retrieved & ~np.isnan(given.positives)
    if given.suspicion is not None or not known.any() or not mask.any():
        return None
    if np.ptp(np.concatenate([scores[mask], given.positives[known]])) == 0:
        return None
    table = np.where(mask, scores, np.float32(0))
    return false_negative_rate(table, given.positives[known], taken, kept_positives=passed[known], mask=mask)


def _sorted(scores: NDArray[np.float32], mask: Mask) -> tuple[NDArray[np.float32], Mask, NDArray[np.int64]]:
    """Sort each row: candidates first, the highest score first. Return both arrays and the order."""
    order = np.argsort(np.where(mask, -scores, np.inf), axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(mask, order, axis=1), order

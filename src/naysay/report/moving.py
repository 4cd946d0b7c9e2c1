"""Move the line: what a sample of candidates says at any threshold. The page computes the same, in JavaScript."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.report.scores import Sample


@final
@dataclass(frozen=True, slots=True)
class Moved:
    """The figures at one line.

    Args:
        line: As asked.
        suspected: Candidates at or above the line, scaled to all anchors.
        negatives: The k best below it, scaled to all anchors.
        empty: Slots that stay empty, scaled to all anchors.
        score: Hardness: the mean score of the negatives; NaN if there are none.
        percentile: Hardness: the mean share of its anchor's candidates below a negative; NaN if there are none.
        let_through: The share of known positives below the line: so many unlabelled ones would be let through; NaN
            unknown.
        false_rate: At most this share of the negatives is false, as an estimate; NaN unknown.
    """

    line: float
    suspected: float
    negatives: float
    empty: float
    score: float
    percentile: float
    let_through: float
    false_rate: float


def moved(sample: Sample, line: float) -> Moved:
    """What the line would give at this value: the highest k scores below it, for each anchor.

    The share of false negatives is that of `detectors.false_negative_rate`,

        share * P_pos(taken) / P_cand(taken)

    with P_pos(taken) the part of the known positives, of those that the search would find, that the same rule would
    take as negatives, had nobody labelled them: below the line, and not below the lowest score of a full row.

    O(candidates).

    Example:
        >>> sample = Sample([0, 0, 0], [0.9, 0.5, 0.1], [0.9, 0.5, 0.1], [1], line=0.6)
        >>> found = moved(sample, 0.6)
        >>> found.suspected, found.negatives, found.score, moved(sample, 1.0).suspected
        (1.0, 1.0, 0.5, 0.0)
    """
    scale = sample.of_anchors / len(sample.k)
    taken, each = taken_at(sample, line)
    negatives, scores = int(taken.sum()), sample.scores.astype(np.float64)
    size = np.bincount(sample.anchors, minlength=len(sample.k))
    first = np.cumsum(size) - size
    under = (size + first)[sample.anchors] - np.arange(len(scores)) - 1
    share = under / size[sample.anchors]
    known = sample.by == "score" and len(sample.positives) > 0
    told = known and negatives > 0 and bool(np.any(sample.listed))
    passed = known_below(sample, line, taken, each) if told else np.zeros(0, np.bool_)
    rate = sample.share * float(passed.mean()) * len(scores) / negatives if told else nan
    return Moved(
        line=float(line),
        suspected=scale * int(np.count_nonzero(sample.values.astype(np.float64) >= line)),
        negatives=scale * negatives,
        empty=scale * int((sample.k - each).sum()),
        score=float(scores[taken].mean()) if negatives else nan,
        percentile=float(share[taken].mean()) if negatives else nan,
        let_through=float((sample.positives.astype(np.float64) < line).mean()) if known else nan,
        false_rate=min(rate, 1.0),
    )


def taken_at(sample: Sample, line: float) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """(c,) which candidates are negatives at a line, and (a,) how many each anchor has."""
    below = sample.values.astype(np.float64) < line
    counted = np.concatenate([[0], np.cumsum(below)])
    first = np.searchsorted(sample.anchors, np.arange(len(sample.k)))  # where each anchor starts
    place = counted[:-1] - counted[first][sample.anchors]  # how many of its anchor are taken before it
    taken = below & (place < sample.k[sample.anchors])
    return taken, np.bincount(sample.anchors[taken], minlength=len(sample.k))


def known_below(sample: Sample, line: float, taken: NDArray[np.bool_], each: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(q,) which of the known positives that are listed the same rule would have taken, had they been candidates.

    Args:
        taken: (c,) which candidates are negatives.
        each: (a,) how many of each anchor.
    """
    lowest = np.full(len(sample.k), np.inf)
    np.minimum.at(lowest, sample.anchors[taken], sample.scores[taken].astype(np.float64))
    lowest[each < sample.k] = -np.inf  # a row that is short would have taken it, however low
    scores, whose = sample.positives[sample.listed].astype(np.float64), sample.positive_anchors[sample.listed]
    return np.asarray((scores < line) & (scores >= lowest[whose]))

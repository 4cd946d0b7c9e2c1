"""The scores that a report shows, and the sample of candidates on which its line can be moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_lengths,
    check_number,
    check_one_of,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    whole_numbers,
)

MOST = 40_000  # numbers of candidates in a page: some 400 kB
BY = ("score", "suspicion")
AnyFloats = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Candidates of some anchors, with all that it takes to draw the line elsewhere.

    Candidates are those that the line decides about: not known pairs, nor what was dropped for another reason.

    Args:
        anchors: (c,) whose candidate it is: 0 to a - 1, ascending.
        scores: (c,) float32, of an anchor's candidates the highest first.
        values: (c,) what the line is compared with: the scores again (`by` = "score"), or the suspicions.
        k: (a,) how many negatives each anchor gets.
        line: Where the line is; infinity where nothing is suspected.
        by: "score" or "suspicion".
        positives: (p,) scores of known positives, one of an anchor; empty if there are none.
        positive_anchors: (p,) whose: 0 to a - 1.
        listed: (p,) which of them the search would have found, had nobody labelled them; empty: all.
        share: At most this share of all candidates are unlabelled positives (`unlabelled_share`); NaN unknown.
        of_anchors: How many anchors there are in all; counts are scaled by of_anchors / a.
        command: Python that draws the line for good, with LINE where its value goes.
    """

    anchors: Ids
    scores: NDArray[np.float32]
    values: NDArray[np.float32]
    k: Ids
    line: float
    by: str = "score"
    positives: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    positive_anchors: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    listed: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    share: float = nan
    of_anchors: int = 0
    command: str = ""

    def __post_init__(self) -> None:
        """Refuse lengths that differ, an order that the page cannot follow, and too many."""
        check_one_of("by", self.by, BY)
        for name in ("anchors", "k", "positive_anchors"):
            ids = whole_numbers(name, to_numpy(getattr(self, name))).astype(np.int64)
            object.__setattr__(self, name, ids)
        for name in ("scores", "values", "positives"):
            object.__setattr__(self, name, score_array(name, getattr(self, name)).astype(np.float32))
        check_lengths(scores=len(self.scores), values=len(self.values), anchors=len(self.anchors))
        check_lengths(positives=len(self.positives), positive_anchors=len(self.positive_anchors))
        listed = np.asarray(self.listed) if np.size(self.listed) else np.ones(len(self.positives), np.bool_)
        if listed.shape != self.positives.shape or listed.dtype != np.bool_:
            raise_invalid("listed", "True or False for each of the positives", f"shape {listed.shape} {listed.dtype}")
        object.__setattr__(self, "listed", listed)
        most = MOST if self.by == "score" else MOST // 2
        if not 0 < len(self.scores) <= most:
            raise_invalid("scores", f"of 1 to {most:,} candidates", f"{len(self.scores):,}", "Take fewer anchors.")
        for name in ("anchors", "positive_anchors"):
            ids = getattr(self, name)
            outside = (ids < 0) | (ids >= len(self.k))
            if outside.any():
                raise_invalid(name, f"from 0 to {len(self.k) - 1}, the places in k", first_bad(ids, outside))
        step = np.diff(self.anchors)
        wrong = (step < 0) | ((step == 0) & (np.diff(self.scores) > 0))
        if wrong.any():
            rule = "sorted: by anchor, then the highest score first"
            raise_invalid("anchors", rule, f"another order from row {int(np.flatnonzero(wrong)[0]) + 1} on")
        object.__setattr__(self, "line", check_number("line", self.line))
        total = check_whole("of_anchors", self.of_anchors or len(self.k), len(self.k))
        object.__setattr__(self, "of_anchors", total)
        if not (isnan(self.share) or 0 <= self.share <= 1):
            raise_invalid("share", "from 0 to 1, or NaN where it is unknown", self.share)


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of three kinds, and the lines between them.

    Distributions are counted from all of these, not from a part; the page holds the counts, not the scores.

    Args:
        positives: (p,) of known positives.
        kept: (m,) of the negatives.
        dropped: (r,) of what was found and left out.
        why: (r,) int: for which of `reasons`.
        reasons: Their names.
        low: The lines: hard from low on, suspected from high on; NaN: no such line.
        high: The lines: hard from low on, suspected from high on; NaN: no such line.
        sample: On which the line can be moved; None: it cannot.
    """

    positives: AnyFloats
    kept: AnyFloats
    dropped: AnyFloats
    why: NDArray[np.integer[Any]]
    reasons: tuple[str, ...] = ()
    low: float = nan
    high: float = nan
    sample: Sample | None = None

    def __post_init__(self) -> None:
        """Refuse what is no score, and a reason without a name."""
        for name in ("positives", "kept", "dropped"):
            object.__setattr__(self, name, score_array(name, getattr(self, name)))
        object.__setattr__(self, "why", whole_numbers("why", to_numpy(self.why)))
        object.__setattr__(self, "reasons", tuple(map(str, self.reasons)))
        check_lengths(dropped=len(self.dropped), why=len(self.why))
        outside = (self.why < 0) | (self.why >= len(self.reasons))
        if outside.any():
            raise_invalid("why", f"the place of one of {len(self.reasons)} reasons", first_bad(self.why, outside))
        if not isinstance(self.sample, Sample | None):
            raise_invalid("sample", "a Sample, or None", type(self.sample).__name__)


def score_array(parameter: str, values: Any) -> AnyFloats:
    """Scores (n,), finite; in their own precision, so that many are not held twice."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim != 1:
        raise_invalid(parameter, "of shape (n,)", f"shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise_invalid(parameter, "scores", f"dtype {array.dtype}")
    found: AnyFloats = array if array.dtype.kind == "f" else array.astype(np.float64)
    if not np.isfinite(found).all():
        raise_invalid(parameter, "finite", first_bad(found, ~np.isfinite(found)))
    return found

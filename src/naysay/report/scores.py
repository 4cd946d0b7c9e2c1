"""The scores that a report shows, and the sample of candidates on which its threshold can be moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_lengths,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)

MAX_NUMBERS = 40_000  # numbers of candidates in a page: about 400 kB
BY = ("score", "suspicion")
AnyFloats = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Candidates of some anchors, with all that is needed to evaluate another threshold.

    Candidates are those that the threshold decides about: not known pairs, nor what was dropped for another reason.

    Args:
        anchors: (c,) the anchor of each candidate: 0 to a - 1, ascending.
        scores: (c,) float32, descending within an anchor.
        values: (c,) what the threshold is compared with: the scores again (`by` = "score"), or the suspicions.
        k: (a,) negatives of each anchor.
        threshold: The threshold in use; infinity if nothing is suspected.
        by: "score" or "suspicion".
        positives: (p,) scores of known positives, one per anchor; empty if there are none.
        positive_anchors: (p,) their anchors: 0 to a - 1.
        retrieved: (p,) which of them the search would have found, had they not been labelled; empty: all.
        share: Upper bound of the share of candidates that are unlabelled positives (`unlabelled_share`); NaN unknown.
        of_anchors: How many anchors there are in all; counts are scaled by of_anchors / a.
        command: Python that applies a threshold, with THRESHOLD in place of its value.

    Examples:
        >>> len(Sample([0, 0, 1], [0.9, 0.5, 0.7], [0.9, 0.5, 0.7], k=[1, 1], threshold=0.8).scores)
        3
    """

    anchors: Ids
    scores: NDArray[np.float32]
    values: NDArray[np.float32]
    k: Ids
    threshold: float
    by: str = "score"
    positives: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    positive_anchors: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    retrieved: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    share: float = nan
    of_anchors: int = 0
    command: str = ""

    def __post_init__(self) -> None:
        """Check lengths, order and ranges."""
        check_one_of("by", self.by, BY)
        for name in ("anchors", "k", "positive_anchors"):
            ids = whole_numbers(name, to_numpy(getattr(self, name))).astype(np.int64)
            object.__setattr__(self, name, ids)
        for name in ("scores", "values", "positives"):
            object.__setattr__(self, name, score_array(name, getattr(self, name)).astype(np.float32))
        check_lengths(scores=len(self.scores), values=len(self.values), anchors=len(self.anchors))
        check_lengths(positives=len(self.positives), positive_anchors=len(self.positive_anchors))
        retrieved = np.asarray(self.retrieved) if np.size(self.retrieved) else np.ones(len(self.positives), np.bool_)
        if retrieved.shape != self.positives.shape or retrieved.dtype != np.bool_:
            got = f"shape {retrieved.shape} {retrieved.dtype}"
            raise_invalid("retrieved", "True or False for each of the positives", got)
        object.__setattr__(self, "retrieved", retrieved)
        limit = MAX_NUMBERS if self.by == "score" else MAX_NUMBERS // 2
        if not 0 < len(self.scores) <= limit:
            raise_invalid("scores", f"of 1 to {limit:,} candidates", f"{len(self.scores):,}", "Take fewer anchors.")
        for name in ("anchors", "positive_anchors"):
            check_range(name, getattr(self, name), len(self.k), "values of k")
        step = np.diff(self.anchors)
        wrong = (step < 0) | ((step == 0) & (np.diff(self.scores) > 0))
        if wrong.any():
            rule = "sorted by anchor, then by descending score"
            raise_invalid("anchors", rule, f"another order from row {int(np.flatnonzero(wrong)[0]) + 1} on")
        object.__setattr__(self, "threshold", check_number("threshold", self.threshold))
        total = check_whole("of_anchors", self.of_anchors or len(self.k), len(self.k))
        object.__setattr__(self, "of_anchors", total)
        if not isnan(self.share):
            check_number("share", self.share, at_least=0, at_most=1, advice="NaN if it is unknown.")
        if self.command and "THRESHOLD" not in self.command:
            raise_invalid("command", "a text with THRESHOLD in place of the value", repr(self.command))


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of positives, kept and dropped candidates, and the thresholds between them.

    Distributions are counted from all of these; the page holds the counts, not the scores.

    Args:
        positives: (p,) scores of known positives.
        kept: (m,) scores of the negatives.
        dropped: (r,) scores of candidates that were left out.
        why: (r,) int: place of the reason in `reasons`.
        reasons: Names of the reasons.
        low: Threshold of the hard band; NaN if there is none.
        high: Threshold of the suspected band; NaN if there is none.
        sample: Candidates on which the page's threshold can be moved; None: it cannot.

    Examples:
        >>> Scores([0.9], [0.5], [0.8], [0], ("suspicious",), high=0.7).reasons
        ('suspicious',)
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
        """Check lengths, scores and reasons."""
        for name in ("positives", "kept", "dropped"):
            object.__setattr__(self, name, score_array(name, getattr(self, name)))
        object.__setattr__(self, "why", whole_numbers("why", to_numpy(self.why)))
        object.__setattr__(self, "reasons", tuple(map(str, self.reasons)))
        check_lengths(dropped=len(self.dropped), why=len(self.why))
        check_range("why", self.why, len(self.reasons), "reasons")
        if not isinstance(self.sample, Sample | None):
            raise_invalid("sample", "a Sample, or None", type(self.sample).__name__)


def score_array(parameter: str, values: Any) -> AnyFloats:
    """Return scores (n,), finite, in their own precision, so that many are not held twice."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim != 1:
        raise_invalid(parameter, "of shape (n,)", f"shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise_invalid(parameter, "scores", f"dtype {array.dtype}")
    floats: AnyFloats = array if array.dtype.kind == "f" else array.astype(np.float64)
    check_all(parameter, floats, np.isfinite(floats), "finite")
    return floats

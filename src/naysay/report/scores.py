"""The scores that a report shows, and the sample of candidates on which its threshold can be moved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_kind,
    check_lengths,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    is_number,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.text import short_repr

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

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_one_of("by", self.by, BY)
        check_texts(command=self.command)
        total = check_whole("of_anchors", self.of_anchors, 0)
        given: dict[str, Any] = {"threshold": check_number("threshold", self.threshold)}
        for name in ("anchors", "k", "positive_anchors"):
            given[name] = whole_numbers(name, to_numpy(getattr(self, name))).astype(np.int64)
        for name in ("scores", "values", "positives"):
            given[name] = score_array(name, getattr(self, name)).astype(np.float32)
        retrieved = as_array("retrieved", to_numpy(self.retrieved))
        given["retrieved"] = retrieved if retrieved.size else np.ones(len(given["positives"]), np.bool_)
        given["of_anchors"] = check_whole("of_anchors", total or len(given["k"]), len(given["k"]))
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self._check_fit()
        if not isnan(number_or_nan("share", self.share)):
            check_number("share", self.share, at_least=0, at_most=1, advice="NaN if it is unknown.")
        if self.command and "THRESHOLD" not in self.command:
            raise_invalid("command", "a text with THRESHOLD in place of the value", repr(self.command))

    def _check_fit(self) -> None:
        """Check lengths, order and ranges."""
        check_lengths(scores=len(self.scores), values=len(self.values), anchors=len(self.anchors))
        check_lengths(positives=len(self.positives), positive_anchors=len(self.positive_anchors))
        if self.retrieved.shape != self.positives.shape or self.retrieved.dtype != np.bool_:
            got = f"shape {self.retrieved.shape} {self.retrieved.dtype}"
            raise_invalid("retrieved", "True or False for each of the positives", got)
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

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in ("positives", "kept", "dropped"):
            object.__setattr__(self, name, score_array(name, getattr(self, name)))
        object.__setattr__(self, "why", whole_numbers("why", to_numpy(self.why)))
        object.__setattr__(self, "reasons", tuple_of("reasons", self.reasons, str))
        check_lengths(dropped=len(self.dropped), why=len(self.why))
        check_range("why", self.why, len(self.reasons), "reasons")
        number_or_nan("low", self.low)
        number_or_nan("high", self.high)
        check_kind("sample", self.sample, Sample | None, "a Sample, or None")


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


def number_or_nan(parameter: str, value: Any) -> float:
    """Return a number, NaN where there is none, as a float."""
    return float(value) if is_number(value) and isnan(value) else check_number(parameter, value)


def check_texts(**texts: object) -> None:
    """Raise if a value is not a string."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise_invalid(name, "a text", shown(text))


def tuple_of(parameter: str, given: Any, kind: Any) -> tuple[Any, ...]:
    """Return parts of one type as a tuple. A string is not accepted as a sequence of characters."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise_invalid(parameter, "a tuple", shown(given))
    parts = tuple(given)
    for place, part in enumerate(parts):
        if not isinstance(part, kind) or isinstance(part, str) != (kind is str):
            raise_invalid(f"{parameter}[{place}]", f"of type {kind.__name__}", type(part).__name__)
    return parts

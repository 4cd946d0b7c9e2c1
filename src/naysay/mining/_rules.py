"""Rules: a judge read from text, chosen by the data where it is "auto", and the threshold that it sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, raise_invalid, shown
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.detectors.absolute import Absolute
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.combined import Combined
from naysay.detectors.margin import Margin, ShareOfPositive
from naysay.detectors.thresholds import choose_thresholds
from naysay.errors import NaysayError
from naysay.mining.judge import combined, score_thresholds
from naysay.types import Query

ALPHA, FALSE_SHARE, HARD_SHARE = 0.05, 0.001, 0.05
_NONE = float(np.finfo(np.float32).max)  # in place of a positive's score where there is none: nothing is above it
Floats32 = NDArray[np.float32]

# {name: (how many numbers it takes, maker(numbers, lowest positive score of each anchor))}
_JUDGES: dict[str, tuple[int, Callable[[list[float], Floats32], Any]]] = {
    "auto": (0, lambda numbers, lowest: "auto"),
    "none": (0, lambda numbers, lowest: None),
    "calibrated": (1, lambda numbers, lowest: Calibrated(*numbers)),
    "margin": (1, lambda numbers, lowest: Margin(numbers[0], lowest)),
    "share": (1, lambda numbers, lowest: ShareOfPositive(lowest, *numbers)),
    "absolute": (1, lambda numbers, lowest: Absolute(numbers[0])),
    "bands": (2, lambda numbers, lowest: Bands(*numbers)),
}
_BY_POSITIVE = ("margin", "share")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Threshold:
    """What is suspected, and what is too easy, for all anchors of a job."""

    detector: Any  # None if nothing is suspected, or if rescored pairs have yet to decide
    rule: str  # what it does, in a sentence
    min_score: float | None  # the lowest score of a negative
    drop_at: float = SUSPICION_THRESHOLD  # the suspicion at which a candidate is dropped


@final
@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Scores of random pairs that are not known."""

    scores: Floats32
    n_positives: int  # known positives among the pairs drawn; they count where shares of all pairs are taken
    whole: bool  # whether these are all pairs

    @property
    def varies(self) -> bool:
        """Whether there is more than one score, so that shares mean something."""
        return len(self.scores) > 0 and bool(self.scores.min() < self.scores.max())


def check_judge_text(parameter: str, text: str) -> None:
    """Raise unless `text` names a judge, with numbers that it can have."""
    name, numbers = _parsed(text)
    check_one_of(parameter, name, tuple(_JUDGES))
    count, maker = _JUDGES[name]
    if numbers is None or (len(numbers) != count and not (name == "calibrated" and not numbers)):
        how = {0: f"{name} by itself", 1: f"{name} and a number, such as {name}:0.05", 2: "bands:LOW,HIGH"}[count]
        raise_invalid(parameter, how, shown(text))
    try:
        maker(numbers, np.ones(1, np.float32))
    except NaysayError as error:
        what = error.args[0].replace("`", "").rstrip(".")
        raise_invalid(parameter, "a judge with numbers that it can have", f"{shown(text)} ({what})")


def _parsed(text: str) -> tuple[str, list[float] | None]:
    """The name of a judge and its numbers, None if they are none: "margin:0.05" is ("margin", [0.05])."""
    name, _, rest = text.partition(":")
    try:
        return name, [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        return name, None


def judge_of(judge: Any, lowest: Floats32) -> Any:
    """Return a judge that is given as text as a detector; "auto", None and detectors as they are.

    `Margin` and `ShareOfPositive` without scores get `lowest`, (n,) the lowest score of each anchor's known positives,
    NaN without one: nothing is suspected then.
    """
    known = np.where(np.isnan(lowest), np.float32(_NONE), lowest)
    if isinstance(judge, str):
        name, numbers = _parsed(judge)
        return _JUDGES[name][1](numbers or [], known)
    if not _needs_scores(judge):
        return judge
    if isinstance(judge, Combined):
        return Combined(judge_of(judge.detectors, lowest), judge.rule)
    if isinstance(judge, Mapping):
        return {name: judge_of(part, lowest) if _needs_scores(part) else part for name, part in judge.items()}
    return Margin(judge.margin, known) if isinstance(judge, Margin) else ShareOfPositive(known, judge.share)


def _needs_scores(judge: Any) -> bool:
    """Whether this is a rule by the positives' scores that has none, or has such a part."""
    if isinstance(judge, Mapping | Combined):
        parts = judge.detectors if isinstance(judge, Combined) else judge
        return any(_needs_scores(part) for part in parts.values())
    return isinstance(judge, Margin | ShareOfPositive) and judge.positive_scores is None


def without_positive(judge: Any, lowest: Floats32) -> str:
    """What a rule by the anchor's own positive does about anchors that have none, in a sentence; else nothing."""
    count = int(np.isnan(lowest).sum())
    by_positive = _parsed(judge)[0] in _BY_POSITIVE if isinstance(judge, str) else _needs_scores(judge)
    if not count or not by_positive:
        return ""
    return f" {count:,} anchors have no positive, and nothing of them is suspected."


def limits_of(detector: Any, query: Query, lowest: Floats32) -> NDArray[np.float64]:
    """(n,) as `score_thresholds`; NaN without a detector, and infinity for an anchor without a positive to go by."""
    if detector is None:
        return np.full(len(query), np.nan)
    found = score_thresholds(detector, query)
    if isinstance(detector, Margin | ShareOfPositive):
        found[np.isnan(lowest)] = np.inf
    return found


def check_judge(judge: Any, labelled: int, *, auto_k: bool, duplicates: Any, rescored: bool) -> None:
    """Raise if what `judge_of` returned cannot be applied, or not calibrated; `labelled` anchors have a positive."""
    if judge is None:
        if auto_k:
            raise_invalid("k", "a number without a judge", "'auto'", "Only a judge sets the highest score.")
        if duplicates is not None:
            advice = "judge=Duplicates(...) drops duplicates and nothing else."
            raise_invalid("duplicates", "left out without a judge", type(duplicates).__name__, advice)
        return
    if isinstance(judge, str):
        if rescored and labelled < least_positives(ALPHA):
            rule = f"a detector where fewer than {least_positives(ALPHA)} anchors have a positive to rescore"
            raise_invalid("judge", rule, f"'auto' with {labelled}", "Shares of rescored pairs would need all of them.")
        return
    combined(judge, "judge")
    if isinstance(judge, Calibrated) and judge.n == 0:
        if judge.standardise:
            raise_invalid("judge", "fitted, where it is standardised", "none", "Call fit(scores, anchors, background).")
        if labelled < least_positives(judge.alpha):
            rule = f"fitted, or {least_positives(judge.alpha)} anchors must have a positive"
            raise_invalid("judge", rule, f"{labelled} that have")


def is_detector(judge: Any) -> bool:
    """Whether a judge is given as an object, which may read vectors; those given as text use scores."""
    return judge is not None and not isinstance(judge, str)


def is_fitted_here(judge: Any) -> bool:
    """Whether the data decide what is suspected: "auto", and a `Calibrated` without scores."""
    return isinstance(judge, str) or (isinstance(judge, Calibrated) and judge.n == 0)


def decide(judge: Any, scores: Floats32, sample: Callable[[], Background] | None) -> tuple[Any, str]:
    """Return the detector and what it does, in a sentence; for "auto", what takes the place of a posterior.

    `scores` are those of one known positive of each anchor that has some. `sample` scores random pairs; it is called
    only if the threshold is set by shares of all pairs, and None if that is not possible.
    """
    if judge is None or not is_fitted_here(judge):
        return judge, rule_of(judge)
    alpha = judge.alpha if isinstance(judge, Calibrated) else ALPHA
    fitted = calibrated(alpha, scores)
    if fitted is not None:
        return fitted, fitted.describe()
    if sample is None or isinstance(judge, Calibrated):
        raise_invalid("judge", "another, where all positives score the same", f"{len(scores)} equal scores")
    drawn = sample()
    bands = by_shares(drawn)
    return bands, _shares_sentence(bands, drawn, len(scores), alpha)


def lowest_score(
    judge: Any, min_score: float | None, sample: Callable[[], Background], *, auto_k: bool
) -> float | None:
    """Return the lowest score of a negative, or None. Where k is "auto", there always is one."""
    if min_score is not None or not auto_k:
        return min_score
    return float(judge.low) if isinstance(judge, Bands) else by_shares(sample()).low


def rule_of(judge: Any) -> str:
    """What a detector does, in a sentence; None suspects nothing."""
    if judge is None:
        return "Nothing is suspected: the nearest are taken."
    describe = getattr(judge, "describe", None)
    return str(describe()) if callable(describe) else f"Suspected by {judge!r}."


def calibrated(alpha: float, scores: NDArray[Any]) -> Calibrated | None:
    """Fit `Calibrated` to one positive score of each anchor; None if these cannot guarantee alpha."""
    if len(scores) < least_positives(alpha) or scores.min() == scores.max():
        return None
    return Calibrated(alpha).fit(scores)


def by_shares(sample: Background) -> Bands:
    """Return the bands with 0.1 % of all pairs as false and 5 % as hard. If all scores are equal, all are easy."""
    if not sample.varies:
        return Bands(np.inf, np.inf)
    chosen = choose_thresholds(
        sample.scores, n_positives=sample.n_positives, false_share=FALSE_SHARE, hard_share=HARD_SHARE
    )
    return Bands(chosen.low, chosen.high)


def _shares_sentence(bands: Bands, sample: Background, labelled: int, alpha: float) -> str:
    if not sample.varies:
        return "Nothing is suspected: the scores of all pairs are equal."
    pairs = len(sample.scores) + sample.n_positives
    kind = "pairs" if sample.whole else "random pairs"
    return (
        f"Threshold {bands.high:.4g}: suspects {FALSE_SHARE:.1%} of {pairs:,} {kind}. This is a guess about the data: "
        f"{labelled} anchors with a positive cannot guarantee a miss rate of {alpha:.0%} "
        f"({least_positives(alpha)} can)."
    )

"""Judge: a detector scores the candidates, and those it suspects are dropped. Judges can be given as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_one_of, raise_invalid, shown, with_parameter
from naysay.detectors._suspicion import SUSPICION_THRESHOLD, on_its_side, suspicion_of, suspicion_of_made, threshold_of
from naysay.detectors.bands import Bands
from naysay.detectors.by_threshold import Margin, MaxScore, RankWindow, ShareOfPositive
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.combined import Combined
from naysay.detectors.posterior import Posterior
from naysay.errors import NaysayError
from naysay.mining.candidates import Candidates, Floats32, Ids, Mask, Reason
from naysay.mining.fit import FittedPosterior
from naysay.positives import Positives
from naysay.types import Detector, Negatives, Query, unchecked

_NO_POSITIVE = float(np.finfo(np.float32).max)  # as the score of a positive where there is none: nothing is above it

# {name: (how many numbers it takes, maker(numbers, lowest positive score of each anchor))}
_JUDGES: dict[str, tuple[int, Callable[[list[float], Any], Any]]] = {
    "auto": (0, lambda numbers, lowest: "auto"),
    "none": (0, lambda numbers, lowest: None),
    "calibrated": (1, lambda numbers, lowest: Calibrated(*numbers)),
    "margin": (1, lambda numbers, lowest: Margin(numbers[0], lowest)),
    "share": (1, lambda numbers, lowest: ShareOfPositive(lowest, *numbers)),
    "max_score": (1, lambda numbers, lowest: MaxScore(numbers[0])),
    "bands": (2, lambda numbers, lowest: Bands(*numbers)),
}
_BY_POSITIVE = ("margin", "share")


# ---- what is suspected ----------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """What is suspected, for all anchors of a problem."""

    detector: Any  # None: nothing is suspected
    rule: str  # what it does, in a sentence
    drop_at: float = SUSPICION_THRESHOLD  # the suspicion from which a candidate is dropped
    share_limit: ShareOfPositive | None = None  # what scores above it is dropped, too
    fitted: FittedPosterior | None = None  # that of judge="auto", also where another judge takes its place
    policy: Policy | None = None  # that of judge="auto"
    left_out: Positives | None = None  # pairs that a review found to be false

    @staticmethod
    def by(detector: Any, about: str = "", fitted: FittedPosterior | None = None) -> Judge:
        """The judge that drops what a detector suspects; `about` is added to its rule."""
        drop_at = SUSPICION_THRESHOLD if detector is None else threshold_of(detector)
        return Judge(detector, rule_of(detector) + about, drop_at, fitted=fitted)

    def apply(self, candidates: Candidates, query: Query, slots: Mask | None = None) -> Candidates:
        """Store the suspicion of candidates in some slots, by default of all that are left, and drop the suspected.

        A `Posterior` goes by rank, so it is shown all that was found but for known pairs and duplicates.
        """
        if self.detector is None:
            return candidates
        slots = candidates.kept if slots is None else slots
        asked = candidates.eligible if _goes_by_rank(self.detector) else slots
        negatives = _negatives(candidates, asked)
        suspicion = suspicion_of_made("judge", self.detector, query, negatives)
        is_suspected = suspicion >= self.drop_at
        if self.share_limit is not None:
            is_suspected |= negatives.scores > self.share_limit.unchecked_threshold(query)[:, None]
        rounded = on_its_side(suspicion, suspicion >= SUSPICION_THRESHOLD)  # on the same side of 0.5 in float32
        stored = np.where(slots, rounded, candidates.suspicion).astype(np.float32)
        return replace(candidates, suspicion=stored).drop(slots & is_suspected, Reason.SUSPICIOUS)

    def describe(self, ids: Ids, scores: Floats32) -> str:
        """What it does, in a sentence; with "auto" also what it leaves of false negatives in what is returned."""
        return f"{self.rule}{self.own_threshold}" if self.policy is None else self.policy.describe(self, ids, scores)

    @property
    def own_threshold(self) -> str:
        """The suspicion from which it drops, in a sentence; nothing if that is the detector's."""
        return f" Dropped at a suspicion of {self.drop_at:g} or more." if self._is_moved else ""

    @property
    def _is_moved(self) -> bool:
        return self.detector is not None and self.drop_at != threshold_of(self.detector)

    @property
    def reads(self) -> int:
        """How many candidates of each list the detector must be shown: a posterior reads ranks, and the next one."""
        if isinstance(self.detector, Posterior):
            return self.detector.depth + 1
        return int(getattr(self.detector, "reads", 0))

    @property
    def suspects_all_behind(self) -> bool:
        """Whether all candidates behind those that the detector reads are suspected, so that none is searched."""
        if not isinstance(self.detector, Posterior):
            return False
        return self.detector.beyond >= self.drop_at

    def limits(self, query: Query, lowest: Floats32) -> NDArray[np.float64]:
        """(n,) the score from which candidates are suspected, or above which; NaN if the detector has no such score.

        Above it for `Margin`, `ShareOfPositive` and `MaxScore`, from it on for `Bands` and `Calibrated`. Infinity for
        an anchor without a positive, where the detector goes by that.
        """
        detector = self.detector if self.share_limit is None else self.share_limit
        if detector is None or (detector is self.detector and self._is_moved):
            return np.full(len(query), np.nan)
        limits = score_thresholds(detector, query)
        if isinstance(detector, Margin | ShareOfPositive):
            limits[np.isnan(lowest)] = np.inf
        return limits


class Policy(Protocol):
    """One way of judge="auto" to decide what is suspected."""

    def usable(self) -> bool:
        """Whether the data allow it."""

    def judge(self) -> Judge:
        """The judge."""

    def describe(self, judge: Judge, ids: Ids, scores: Floats32) -> str:
        """What the judge does, and what is known of the negatives (n, k) that are returned."""


def suspected(candidates: Candidates, detector: Any, query: Query) -> Mask:
    """(n, m): the candidates that a detector suspects, of those that are left. Nothing is stored."""
    suspicion = suspicion_of("duplicates", detector, query, _negatives(candidates, candidates.kept))
    return np.asarray(suspicion >= threshold_of(detector))


def _negatives(candidates: Candidates, mask: Mask) -> Negatives:
    """Some candidates as a detector reads them: -1 and score 0 in every other slot."""
    ids = np.where(mask, candidates.ids, -1)
    return unchecked(Negatives, ids=ids, scores=np.where(mask, candidates.scores, np.float32(0)))


def _goes_by_rank(detector: Any) -> bool:
    if isinstance(detector, Combined):
        return any(map(_goes_by_rank, detector.detectors.values()))
    return isinstance(detector, Posterior) or hasattr(detector, "reads")


def score_thresholds(detector: Any, query: Query) -> NDArray[np.float64]:
    """(n,) the score from which candidates of each row are suspected, or above which; NaN if there is no such score.

    Detectors by score have one: `threshold` of the query, or `high`. Several detectors have none.
    """
    if isinstance(detector, Combined) and len(detector.detectors) == 1:
        (detector,) = detector.detectors.values()
    limits = np.nan
    if callable(getattr(detector, "threshold", None)):
        limits = detector.threshold(query)
    elif hasattr(detector, "high"):
        limits = detector.high
    return np.broadcast_to(np.asarray(to_numpy(limits), np.float64), len(query)).copy()


def rule_of(detector: Any) -> str:
    """What a detector does, in a sentence; None suspects nothing."""
    if detector is None:
        return "Nothing is suspected: the nearest are taken."
    if isinstance(detector, Posterior):  # its `describe` is about the lists that it was fitted to
        tau = min(detector.summary.tau, 0.999)
        return f"Candidates whose probability of being false negatives is above {tau:.3g} are dropped, by a posterior."
    describe = getattr(detector, "describe", None)
    return str(describe()) if callable(describe) else f"Suspected by {detector!r}."


# ---- judges as they are given ---------------------------------------------------------------------------------------


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


def judge_of(judge: Any, lowest: Floats32 | Callable[[Query], Any]) -> Any:
    """Return a judge that is given as text, or as {name: detector}, as a detector; "auto", None and others as they are.

    `Margin` and `ShareOfPositive` without scores get `lowest`, (n,) the lowest score of each anchor's known positives,
    NaN without one: nothing is suspected then. Or a function of the query, as they take it.
    """
    known = lowest if callable(lowest) else np.where(np.isnan(lowest), np.float32(_NO_POSITIVE), lowest)
    if isinstance(judge, str):
        name, numbers = _parsed(judge)
        return _JUDGES[name][1](numbers or [], known)
    if isinstance(judge, Mapping):
        with with_parameter("judge", instead_of="detectors"):
            several = Combined(judge)
        return judge_of(several, lowest)
    if not _needs_scores(judge):
        return judge
    if isinstance(judge, Combined):
        return Combined({name: judge_of(part, lowest) for name, part in judge.detectors.items()}, judge.rule)
    return Margin(judge.margin, known) if isinstance(judge, Margin) else ShareOfPositive(known, judge.share)


def _needs_scores(judge: Any) -> bool:
    """Whether this is a rule by the positives' scores that has none, or has such a part."""
    if isinstance(judge, Mapping | Combined):
        parts = judge if isinstance(judge, Mapping) else judge.detectors
        return any(map(_needs_scores, parts.values()))
    return isinstance(judge, Margin | ShareOfPositive) and judge.positive_scores is None


def anchors_without_positive(judge: Any, lowest: Floats32) -> str:
    """What a rule by the anchor's own positive does about anchors that have none, in a sentence; else nothing."""
    count = int(np.isnan(lowest).sum())
    by_positive = _parsed(judge)[0] in _BY_POSITIVE if isinstance(judge, str) else _needs_scores(judge)
    if not count or not by_positive:
        return ""
    return f" {count:,} anchors have no positive, and nothing of them is suspected."


def check_detector(parameter: str, detector: Any) -> None:
    """Raise unless this is a detector, or several, and none that ranks what it is given."""
    if isinstance(detector, Combined):
        for part in detector.detectors.values():
            if is_yet_to_fit(part):
                advice = "Call its fit(positive_scores)."
                raise_invalid(parameter, "made of detectors that are fitted", "a Calibrated without scores", advice)
            check_detector(parameter, part)
    if isinstance(detector, type) or not isinstance(detector, Detector):
        wanted = "a detector with a method suspicion(query, negatives)"
        raise_invalid(parameter, wanted, shown(detector) if isinstance(detector, str) else type(detector).__name__)
    if isinstance(detector, RankWindow):
        advice = f"Use rank_range=({detector.skip + 1}, None)."
        raise_invalid(parameter, "a detector that does not rank the candidates that are left", "RankWindow", advice)


def check_judge(judge: Any, labelled: int, *, auto_k: bool, duplicates: Any, rescored: bool) -> None:
    """Raise if what `judge_of` returned cannot be applied, or not calibrated; `labelled` anchors have a positive."""
    if judge is None:
        if auto_k:
            raise_invalid("k", "a number without a judge", "'auto'", "Only a judge sets the highest score.")
        if duplicates is not None:
            advice = "judge=Duplicates(...) drops duplicates and nothing else."
            raise_invalid("duplicates", "left out without a judge", type(duplicates).__name__, advice)
    elif isinstance(judge, str):
        if rescored and not labelled:
            raise_invalid("judge", "a detector where no anchor has a positive to rescore", "'auto'")
    elif isinstance(judge, Calibrated) and judge.n == 0:
        if judge.standardise:
            raise_invalid("judge", "fitted, where it is standardised", "none", "Call fit(scores, anchors, background).")
        if labelled < least_positives(judge.alpha):
            rule = f"fitted, or {least_positives(judge.alpha)} anchors must have a positive"
            raise_invalid("judge", rule, f"{labelled} that have")
    else:
        check_detector("judge", judge)


def is_detector(judge: Any) -> bool:
    """Whether a judge is given as an object, which may read vectors; those given as text use scores."""
    return judge is not None and not isinstance(judge, str)


def is_yet_to_fit(judge: Any) -> bool:
    """Whether the data decide what is suspected: "auto", and a `Calibrated` without scores."""
    return isinstance(judge, str) or (isinstance(judge, Calibrated) and judge.n == 0)

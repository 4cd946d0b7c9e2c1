"""Judge: a detector scores the candidates, and those it suspects are dropped. Judges can be given as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_lengths, check_number, check_one_of, public, raise_invalid, shown
from naysay.detectors._slots import SUSPICION_THRESHOLD, on_its_side, threshold_of
from naysay.detectors.bands import Bands
from naysay.detectors.by_threshold import Margin, MaxScore, RankWindow, ShareOfPositive
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.combined import Combined
from naysay.detectors.posterior import Posterior
from naysay.errors import NaysayError
from naysay.mining.candidates import Candidates, Floats32, Mask, Reason, check_candidates
from naysay.types import Detector, Negatives, Query

Fit = Any  # that of `mining.auto`, which is built on this module
ALPHA = 0.05  # the miss rate of a `Calibrated` that takes the place of a posterior
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


@final
@dataclass(frozen=True, eq=False)
class Judge:
    """What is suspected, for all anchors of a problem."""

    detector: Any  # None: nothing is suspected
    rule: str  # what it does, in a sentence
    drop_at: float = SUSPICION_THRESHOLD  # the suspicion from which a candidate is dropped
    fit: Fit | None = None  # the posterior of judge="auto" and its lists, also where another judge takes its place

    def apply(self, candidates: Candidates, query: Query) -> Candidates:
        """Store the suspicion of the candidates that are left, and drop those that are suspected."""
        return self.apply_to(candidates, query, candidates.kept)

    def apply_to(self, candidates: Candidates, query: Query, slots: Mask) -> Candidates:
        """The same for the candidates in some slots; the others stay as they are."""
        if self.detector is None:
            return candidates
        return judged(candidates, self._combined, self.drop_at, query, slots)

    @cached_property
    def _combined(self) -> Combined:
        return combined(self.detector)

    def describe(self) -> str:
        """What it does, in a sentence; and the suspicion from which it drops, if that is not the detector's own."""
        return f"{self.rule} Dropped at a suspicion of {self.drop_at:g} or more." if self._is_moved else self.rule

    @property
    def _is_moved(self) -> bool:
        return self.detector is not None and self.drop_at != drops_at(self.detector)

    @property
    def reads(self) -> int:
        """How many candidates of each list the detector must be shown: a posterior reads ranks, and the next one."""
        return self.detector.depth + 1 if isinstance(self.detector, Posterior) else 0

    @property
    def suspects_all_behind(self) -> bool:
        """Whether all candidates behind those that the detector reads are suspected, so that none is searched."""
        if not isinstance(self.detector, Posterior):
            return False
        return bool(self.detector.state()["beyond"] >= self.drop_at)

    def limits(self, query: Query, lowest: Floats32) -> NDArray[np.float64]:
        """(n,) the score at or above which candidates are suspected; NaN if the detector does not go by scores.

        Infinity for an anchor without a positive, where the detector goes by that.
        """
        if self.detector is None or self._is_moved:
            return np.full(len(query), np.nan)
        found = score_thresholds(self.detector, query)
        if isinstance(self.detector, Margin | ShareOfPositive):
            found[np.isnan(lowest)] = np.inf
        return found


@public
def judge(
    candidates: Candidates, detector: Any, *, threshold: float | None = None, query: Query | None = None
) -> Candidates:
    """Apply a detector to the candidates that are left, store its suspicion, and drop those that it suspects.

    Dropped candidates are counted as "suspicious". `Posterior` goes by rank, so it is shown all that was found but for
    known pairs and duplicates. `RankWindow` raises an error, since some candidates are gone by now. Use `window`. Cost:
    the detector's.

    Args:
        candidates: What was found.
        detector: An object with suspicion(query, negatives), or {name: detector}: any that flags.
        threshold: Candidates with this suspicion or more are dropped. By default the detector's own.
        query: What the detector is given; by default the row numbers, 0 to n - 1.

    Examples:
        >>> from types import SimpleNamespace
        >>> from naysay.detectors import MaxScore
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]]))
        >>> left = judge(Candidates.of(found), MaxScore(0.6))
        >>> left.ids[left.kept].tolist(), left.dropped["suspicious"].tolist()
        ([2, 7], [1])
    """
    check_candidates(candidates)
    several = combined(detector)
    drop_at = drops_at(detector) if threshold is None else check_number("threshold", threshold, at_least=0, at_most=1)
    return judged(candidates, several, drop_at, query_of(candidates, query), candidates.kept)


def judged(candidates: Candidates, several: Combined, drop_at: float, query: Query, slots: Mask) -> Candidates:
    """Judge the candidates in some slots; the others stay as they are."""
    by_rank = any(isinstance(part, Posterior) for part in several.detectors.values())
    asked = candidates.eligible if by_rank else slots
    suspicion = several.judge(query, _negatives(candidates, asked)).suspicion
    rounded = on_its_side(suspicion, suspicion >= SUSPICION_THRESHOLD)  # on the same side of 0.5 in float32
    stored = np.where(slots, rounded, candidates.suspicion).astype(np.float32)
    return replace(candidates, suspicion=stored).drop(slots & (suspicion >= drop_at), Reason.SUSPICIOUS)


def suspected(candidates: Candidates, detector: Any, query: Query) -> Mask:
    """(n, m): the candidates that a detector suspects, of those that are left. Nothing is stored."""
    found = combined(detector).judge(query, _negatives(candidates, candidates.kept)).suspicion
    return np.asarray(found >= threshold_of(detector))


def _negatives(candidates: Candidates, mask: Mask) -> Negatives:
    """Some candidates as a detector reads them: -1 and score 0 in every other slot."""
    return Negatives(np.where(mask, candidates.ids, -1), scores=np.where(mask, candidates.scores, np.float32(0)))


def drops_at(detector: Any) -> float:
    """The suspicion from which candidates are dropped: the detector's own, which is 0.5 for several together."""
    return threshold_of(Combined(detector) if isinstance(detector, Mapping) else detector)


def check_detector(parameter: str, detector: Any) -> None:
    """Raise unless this is a detector, and not one that ranks what it is given."""
    if isinstance(detector, type) or not isinstance(detector, Detector):
        wanted = "a detector with a method suspicion(query, negatives)"
        raise_invalid(parameter, wanted, shown(detector) if isinstance(detector, str) else type(detector).__name__)
    if isinstance(detector, RankWindow):
        advice = f"Use window(candidates, first={detector.skip + 1}), or rank_range=({detector.skip + 1}, None)."
        raise_invalid(parameter, "a detector that does not rank the candidates that are left", "RankWindow", advice)


def combined(detector: Any, parameter: str = "detector") -> Combined:
    """Return one detector or several as one `Combined`."""
    if isinstance(detector, Mapping) and detector:
        several = Combined(detector)
    elif isinstance(detector, Combined):
        several = detector
    else:
        check_detector(parameter, detector)
        return Combined({type(detector).__name__.lower(): detector})
    for part in several.detectors.values():
        check_detector(parameter, part)
    return several


def score_thresholds(detector: Any, query: Query) -> NDArray[np.float64]:
    """(n,) the score at or above which candidates of each row are suspected; NaN if the detector has no such score.

    Detectors by score have one: `threshold` of the query, or `high`. Several detectors have none.
    """
    if isinstance(detector, Mapping | Combined):
        parts = list(detector.values() if isinstance(detector, Mapping) else detector.detectors.values())
        return score_thresholds(parts[0], query) if len(parts) == 1 else np.full(len(query), np.nan)
    found = np.nan
    if callable(getattr(detector, "threshold", None)):
        found = detector.threshold(query)
    elif hasattr(detector, "high"):
        found = detector.high
    return np.broadcast_to(np.asarray(to_numpy(found), np.float64), len(query)).copy()


def query_of(candidates: Candidates, query: Query | None) -> Query:
    """The query of a stage that a user calls; by default the row numbers."""
    given = Query(np.arange(len(candidates))) if query is None else query
    if not isinstance(given, Query):
        raise_invalid("query", "a Query, or None", type(given).__name__)
    check_lengths(query=len(given), candidates=len(candidates))
    return given


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
    """Return a judge that is given as text as a detector; "auto", None and detectors as they are.

    `Margin` and `ShareOfPositive` without scores get `lowest`, (n,) the lowest score of each anchor's known positives,
    NaN without one: nothing is suspected then. Or a function of the query, as they take it.
    """
    known = lowest if callable(lowest) else np.where(np.isnan(lowest), np.float32(_NO_POSITIVE), lowest)
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


def anchors_without_positive(judge: Any, lowest: Floats32) -> str:
    """What a rule by the anchor's own positive does about anchors that have none, in a sentence; else nothing."""
    count = int(np.isnan(lowest).sum())
    by_positive = _parsed(judge)[0] in _BY_POSITIVE if isinstance(judge, str) else _needs_scores(judge)
    if not count or not by_positive:
        return ""
    return f" {count:,} anchors have no positive, and nothing of them is suspected."


def check_judge(judge: Any, labelled: int, *, auto_k: bool, duplicates: Any, rescored: bool) -> None:
    """Raise if what `judge_of` returned cannot be applied, or not calibrated; `labelled` anchors have a positive."""
    if judge is None:
        if auto_k:
            raise_invalid("k", "a number without a judge", "'auto'", "Only a judge sets the highest score.")
        if duplicates is not None:
            advice = "judge=Duplicates(...) drops duplicates and nothing else."
            raise_invalid("duplicates", "left out without a judge", type(duplicates).__name__, advice)
    elif isinstance(judge, str):
        if rescored and labelled < least_positives(ALPHA):
            rule = f"a detector where fewer than {least_positives(ALPHA)} anchors have a positive to rescore"
            raise_invalid("judge", rule, f"'auto' with {labelled}", "Shares of rescored pairs would need all of them.")
    elif isinstance(judge, Calibrated) and judge.n == 0:
        if judge.standardise:
            raise_invalid("judge", "fitted, where it is standardised", "none", "Call fit(scores, anchors, background).")
        if labelled < least_positives(judge.alpha):
            rule = f"fitted, or {least_positives(judge.alpha)} anchors must have a positive"
            raise_invalid("judge", rule, f"{labelled} that have")
    else:
        combined(judge, "judge")


def is_detector(judge: Any) -> bool:
    """Whether a judge is given as an object, which may read vectors; those given as text use scores."""
    return judge is not None and not isinstance(judge, str)


def is_yet_to_fit(judge: Any) -> bool:
    """Whether the data decide what is suspected: "auto", and a `Calibrated` without scores."""
    return isinstance(judge, str) or (isinstance(judge, Calibrated) and judge.n == 0)


def rule_of(detector: Any) -> str:
    """What a detector does, in a sentence; None suspects nothing."""
    if detector is None:
        return "Nothing is suspected: the nearest are taken."
    if isinstance(detector, Posterior):  # its `describe` is about the lists that it was fitted to
        tau = min(detector.summary.tau, 0.999)
        return f"Candidates whose probability of being false negatives is above {tau:.3g} are dropped, by a posterior."
    describe = getattr(detector, "describe", None)
    return str(describe()) if callable(describe) else f"Suspected by {detector!r}."

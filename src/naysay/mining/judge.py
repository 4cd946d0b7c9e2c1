"""Judge: a detector scores the candidates, and those it suspects are dropped; and judges that are given as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
from naysay.mining.candidates import Candidates, Mask, check_candidates, listed
from naysay.types import Detector, Negatives, Query

SUSPICIOUS, ALPHA = "suspicious", 0.05
_NONE = float(np.finfo(np.float32).max)  # in place of a positive's score where there is none: nothing is above it
Floats32 = NDArray[np.float32]

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
@dataclass(frozen=True, slots=True, eq=False)
class Threshold:
    """What is suspected, and what is too easy, for all anchors of a job."""

    detector: Any  # None if nothing is suspected, or if rescored pairs have yet to decide
    rule: str  # what it does, in a sentence
    min_score: float | None  # the lowest score of a negative
    drop_at: float = SUSPICION_THRESHOLD  # the suspicion at which a candidate is dropped


@public
def judge(
    candidates: Candidates, detector: Any, *, threshold: float | None = None, query: Query | None = None
) -> Candidates:
    """Apply a detector to the candidates that are left, store its suspicion, and drop those that it suspects.

    Dropped candidates are counted as "suspicious"; with several detectors as "suspicious: NAME", the one with the
    highest suspicion. The suspicion of every candidate is kept, so that `rejudged` can apply another threshold without
    asking again. Cost: the detector's.

    `Posterior` goes by rank, so it is shown all that was found but for known pairs and duplicates. `RankWindow` raises
    an error, since some candidates are gone by now. Use `window`.

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
    combined(detector)
    at = drop_at(detector) if threshold is None else check_number("threshold", threshold, at_least=0, at_most=1)
    return judged_slots(candidates, detector, at, query, candidates.kept)


def judged_slots(
    candidates: Candidates, detector: Any, threshold: float, query: Query | None, slots: Mask
) -> Candidates:
    """Judge some of the candidates that are left: as `judge`, with the others as they are."""
    several = combined(detector)
    by_rank = any(isinstance(part, Posterior) for part in several.detectors.values())
    asked = listed(candidates) if by_rank else slots
    negatives = Negatives(np.where(asked, candidates.ids, -1), scores=np.where(asked, candidates.scores, np.float32(0)))
    found = several.judge(_query_of(candidates, query), negatives)
    sides = on_its_side(found.suspicion, found.suspicion >= SUSPICION_THRESHOLD)  # in 32 bits, too
    candidates = replace(candidates, suspicion=np.where(slots, sides, candidates.suspicion).astype(np.float32))
    flagged = slots & (found.suspicion >= threshold)
    if not isinstance(detector, Mapping | Combined):
        return candidates.drop(flagged, SUSPICIOUS)
    for place, name in enumerate(found.names):
        candidates = candidates.drop(flagged & (found.blame == place), f"{SUSPICIOUS}: {name}")
    return candidates


def drop_at(detector: Any) -> float:
    """The suspicion at which candidates are dropped: the detector's own, which is 0.5 for several together."""
    return threshold_of(Combined(detector) if isinstance(detector, Mapping) else detector)


def was_suspicious(candidates: Candidates) -> NDArray[np.bool_]:
    """(n, m): candidates that a judge dropped."""
    return candidates.dropped_for([reason for reason in candidates.reasons if reason.split(":")[0] == SUSPICIOUS])


@public
def rejudged(candidates: Candidates, threshold: float) -> Candidates:
    """Apply another threshold to the stored suspicion, without calling a detector.

    Suspicious candidates below the threshold come back, and those at or above it are dropped.
    """
    check_number("threshold", threshold, at_least=0, at_most=1)
    flagged = candidates.suspicion >= np.float32(threshold)
    return candidates.restored(was_suspicious(candidates) & ~flagged).drop(flagged, SUSPICIOUS)


def ask(candidates: Candidates, detector: Any, query: Query | None) -> NDArray[np.float64]:
    """(n, m) the suspicion of the candidates that are left; 0 elsewhere. Nothing is dropped."""
    return combined(detector).judge(_query_of(candidates, query), candidates.negatives()).suspicion


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
        for part in detector.values():
            check_detector(parameter, part)
        return Combined(detector)
    if isinstance(detector, Combined):
        for part in detector.detectors.values():
            check_detector(parameter, part)
        return detector
    check_detector(parameter, detector)
    return Combined({type(detector).__name__.lower(): detector})


@public
def score_thresholds(detector: Any, query: Query) -> NDArray[np.float64]:
    """(n,) the score at or above which candidates of each row are suspected; NaN if the detector has no such score.

    Detectors by score have one: `threshold` of the query, or `high`. Several detectors have none.
    """
    none = np.full(len(query), np.nan)
    if isinstance(detector, Mapping | Combined):
        parts = list(detector.values() if isinstance(detector, Mapping) else detector.detectors.values())
        return score_thresholds(parts[0], query) if len(parts) == 1 else none
    if callable(getattr(detector, "threshold", None)):
        found = detector.threshold(query)
    elif hasattr(detector, "high"):
        found = detector.high
    else:
        return none
    return np.broadcast_to(np.asarray(to_numpy(found), np.float64), len(query)).copy()


def _query_of(candidates: Candidates, query: Query | None) -> Query:
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
    known = lowest if callable(lowest) else np.where(np.isnan(lowest), np.float32(_NONE), lowest)
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

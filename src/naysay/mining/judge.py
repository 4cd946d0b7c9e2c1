"""Judge: a detector scores the candidates, and those it suspects are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_lengths, check_number, public, raise_invalid, shown
from naysay.detectors._slots import SUSPICION_THRESHOLD, on_its_side
from naysay.detectors.combined import Combined
from naysay.detectors.posterior import Posterior
from naysay.detectors.rank_window import RankWindow
from naysay.mining.candidates import Candidates, Mask, check_candidates, listed
from naysay.types import Detector, Negatives, Query

SUSPICIOUS = "suspicious"


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
        threshold: Candidates with this suspicion or more are dropped. By default 0.5; a `Posterior` has its own.
        query: What the detector is given; by default the row numbers, 0 to n - 1.

    Examples:
        >>> from types import SimpleNamespace
        >>> from naysay.detectors import Absolute
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]]))
        >>> left = judge(Candidates.of(found), Absolute(0.6))
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
    """The suspicion at which candidates are dropped: that of the cut for a `Posterior`, else 0.5."""
    return detector.threshold if isinstance(detector, Posterior) else SUSPICION_THRESHOLD


def was_suspicious(candidates: Candidates) -> NDArray[np.bool_]:
    """(n, m): candidates that a judge dropped."""
    return candidates.dropped_for([reason for reason in candidates.reasons if reason.split(":")[0] == SUSPICIOUS])


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

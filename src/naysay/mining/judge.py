"""Judge: a detector looks at the candidates, and those it suspects are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_lengths, public, raise_invalid, shown
from naysay.detectors._slots import SUSPICION_THRESHOLD, on_its_side
from naysay.detectors.combined import Combined
from naysay.detectors.rank_window import RankWindow
from naysay.mining.candidates import Candidates, check_candidates
from naysay.samplers._numbers import check_number
from naysay.types import Detector, Query

SUSPICIOUS = "suspicious"


@public
def judge(
    candidates: Candidates, detector: Any, *, line: float = SUSPICION_THRESHOLD, query: Query | None = None
) -> Candidates:
    """Ask a detector about what is in play, keep its suspicion, and drop what it suspects.

    Dropped candidates are counted as "suspicious"; of several detectors as "suspicious: NAME", the one that suspects
    most. Suspicion stays beside every candidate that was asked about, so that `rejudged` draws another line without
    asking again. Cost: the detector's.

    `RankWindow` is refused: it ranks what it is asked about, and by now some are gone. `window` knows the ranks.

    Args:
        detector: Anything with suspicion(query, negatives), or {name: detector}: any that flags.
        line: The suspicion from which on a candidate is dropped.
        query: What the detector is asked; by default the rows' numbers, 0 to n - 1.

    Example:
        >>> from types import SimpleNamespace
        >>> from naysay.detectors import Absolute
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]]))
        >>> left = judge(Candidates.of(found), Absolute(0.6))
        >>> left.ids[left.kept].tolist(), left.dropped["suspicious"].tolist()
        ([2, 7], [1])
    """
    check_candidates(candidates)
    several = combined(detector)
    check_line(line)
    asked, kept = _question(candidates, query), candidates.kept
    found = several.judge(asked, candidates.negatives())
    sides = on_its_side(found.suspicion, found.suspicion >= SUSPICION_THRESHOLD)  # in 32 bits, too
    candidates = replace(candidates, suspicion=np.where(kept, sides, candidates.suspicion).astype(np.float32))
    flagged = found.suspicion >= line
    if not isinstance(detector, Mapping | Combined):
        return candidates.drop(flagged, SUSPICIOUS)
    for place, name in enumerate(found.names):
        candidates = candidates.drop(flagged & (found.blame == place), f"{SUSPICIOUS}: {name}")
    return candidates


@public
def rejudged(candidates: Candidates, line: float) -> Candidates:
    """The same as judged at another line, by the suspicion that is kept: no detector is asked.

    What was dropped as suspicious below the line comes back into play, and what is at or above it goes.
    """
    check_candidates(candidates)
    check_line(line)
    flagged = candidates.suspicion >= np.float32(line)
    return candidates.restored(was_suspicious(candidates) & ~flagged).drop(flagged, SUSPICIOUS)


def was_suspicious(candidates: Candidates) -> NDArray[np.bool_]:
    """(n, m): candidates that a judge dropped."""
    return candidates.dropped_for([reason for reason in candidates.reasons if reason.split(":")[0] == SUSPICIOUS])


def ask(candidates: Candidates, detector: Any, query: Query | None) -> NDArray[np.float64]:
    """(n, m) the suspicion of what is in play; 0 elsewhere. Nothing is dropped."""
    return combined(detector).judge(_question(candidates, query), candidates.negatives()).suspicion


def check_detector(parameter: str, detector: Any) -> None:
    """Refuse what cannot be asked, and ranks of what is left over."""
    if isinstance(detector, type) or not isinstance(detector, Detector):
        wanted = "a detector with a method suspicion(query, negatives)"
        raise_invalid(parameter, wanted, shown(detector) if isinstance(detector, str) else type(detector).__name__)
    if isinstance(detector, RankWindow):
        advice = f"Use window(candidates, first={detector.skip + 1}), or ranks=({detector.skip + 1}, None)."
        raise_invalid(parameter, "a detector that does not rank what is left over", "RankWindow", advice)


def combined(detector: Any, parameter: str = "detector") -> Combined:
    """One detector or several, as one that says who is to blame."""
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


def check_line(line: float) -> None:
    """Refuse a line that is no suspicion."""
    check_number("line", line, "a number from 0 to 1", lambda number: 0 <= number <= 1)


@public
def lines_of(detector: Any, query: Query) -> NDArray[np.float64]:
    """(n,) the score from which on, or above which, each row's candidates are suspected; NaN where there is no such.

    Detectors by score have one: `threshold` of the query or its anchors, or `high`. Of several none is the line.
    """
    none = np.full(len(query), np.nan)
    if isinstance(detector, Mapping | Combined):
        parts = list(detector.values() if isinstance(detector, Mapping) else detector.detectors.values())
        return lines_of(parts[0], query) if len(parts) == 1 else none
    if callable(getattr(detector, "threshold", None)):
        found = detector.threshold(query)
    elif hasattr(detector, "high"):
        found = detector.high
    else:
        return none
    return np.broadcast_to(np.asarray(to_numpy(found), np.float64), len(query)).copy()


def _question(candidates: Candidates, query: Query | None) -> Query:
    asked = Query(np.arange(len(candidates))) if query is None else query
    if not isinstance(asked, Query):
        raise_invalid("query", "a Query, or None", type(asked).__name__)
    check_lengths(query=len(asked), candidates=len(candidates))
    return asked

"""From which score on a negative is suspected, and which thresholds the data suggest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.auditing._corpus_sample import Look
from naysay.auditing._scored import Scored
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import least_positives
from naysay.detectors.thresholds import Thresholds, choose_thresholds
from naysay.mining._threshold import FALSE_SHARE, HARD_SHARE, calibrated


@final
@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """What the scores say.

    Args:
        judge: `Calibrated` on one positive of each anchor, or `Bands` by shares, where those are too few.
        high: The score from which on it suspects.
        rule: In a sentence.
        suggested: {"calibrated": the calibrated line, "low": hard from here on, "high": false from here on}; the
            last two by shares of uniform pairs, where there are vectors.
        shares: The choice behind the last two, or None.
    """

    judge: Any
    high: float
    rule: str
    suggested: Mapping[str, float]
    shares: Thresholds | None


def line(scored: Scored, seen: Look | None, alpha: float) -> Line:
    """A line with a bound if the labels allow it, else one by shares of pairs, which is a guess about the data."""
    positives = scored.positives[scored.one]
    shares = None
    if seen is not None and np.ptp(seen.scores[seen.free]) > 0:
        shares = _by_shares(seen.scores[seen.free], int((~seen.free).sum()))
    suggested = {} if shares is None else {"low": float(shares.low), "high": float(shares.high)}
    judge: Any = calibrated(alpha, positives.astype(np.float64))
    if judge is not None:
        return Line(judge, judge.high, judge.describe(), {"calibrated": judge.high} | suggested, shares)
    own = scored.negatives[scored.filled]
    choice = shares or (_by_shares(own, len(positives)) if np.ptp(own) > 0 else None)
    if choice is None:
        return Line(Bands(np.inf, np.inf), np.inf, "Nothing is suspected: all scores are equal.", suggested, None)
    high = float(choice.high)
    of = "uniform pairs" if shares is not None else "the set's own pairs"
    rule = (
        f"Suspected from {high:.4g} on, so that {FALSE_SHARE:.1%} of {of} are: a guess about the data, because "
        f"{len(positives)} anchors with a scored positive cannot hold a bound of {alpha:.0%} "
        f"({least_positives(alpha)} that differ can)."
    )
    return Line(Bands(min(float(choice.low), high), high), high, rule, suggested, shares)


def _by_shares(scores: Any, n_positives: int) -> Thresholds:
    return choose_thresholds(scores, n_positives=n_positives, false_share=FALSE_SHARE, hard_share=HARD_SHARE)

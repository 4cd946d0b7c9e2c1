"""From a rule's own line to the one that all share: suspicion that reaches 0.5 where the rule flags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._slots import LINE
from naysay.quantity._weight import Floats

UNDER = float(np.nextafter(np.float32(LINE), np.float32(0)))  # below the line, also once it is read in 32 bits
_MOST = 1e300  # the difference of two finite scores may be infinite, and infinity has no ratio


def by_distance(scores: Floats, line: Floats) -> Floats:
    """Suspicion by how far a score is above its line: 0.5 + 0.5 d / (1 + |d|), d = score - line.

    A score above the line is flagged, one on it is not: it gets the largest number below 0.5. To move the line by d
    later, take 0.5 + 0.5 d / (1 + |d|) in place of 0.5. Shapes broadcast.
    """
    with np.errstate(over="ignore"):
        distance = np.clip(scores - line, -_MOST, _MOST)
    return on_its_side(LINE + LINE * distance / (1 + np.abs(distance)), scores > line)


def by_share(share: Floats, limit: Floats, flagged: NDArray[np.bool_]) -> Floats:
    """Suspicion by a share u in [0, 1] whose line is at `limit`; `flagged` says which side a slot is on.

    Below the limit u / (2 limit), above it 0.5 + 0.5 (u - limit) / (1 - limit). Shapes broadcast.
    """
    below = LINE * share / np.maximum(limit, np.finfo(np.float64).tiny)
    above = LINE + LINE * (share - limit) / np.maximum(1 - limit, np.finfo(np.float64).tiny)
    return on_its_side(np.where(share < limit, below, above), flagged)


def on_its_side(suspicion: Floats, flagged: NDArray[np.bool_]) -> Floats:
    """At least 0.5 where `flagged`, and below it elsewhere: rounding near the line moves no slot across it."""
    return np.where(flagged, np.clip(suspicion, LINE, 1.0), np.clip(suspicion, 0.0, UNDER))

"""From slots to suspicion: scores in NumPy, suspicion by a threshold, and the result in the slots' array type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import raise_invalid
from naysay.detectors._score_blocks import first_slot
from naysay.quantity.separation import Floats
from naysay.types import Array, Negatives, Query, check_query

# Every detector maps its own threshold to this suspicion. Policies act on slots at or above it by default.
SUSPICION_THRESHOLD = 0.5
UNDER = float(np.nextafter(np.float32(SUSPICION_THRESHOLD), np.float32(0)))  # below it, also if read in 32 bits
_MAX_DISTANCE = 1e300  # the difference of two finite scores may be infinite, and infinity has no ratio


def check_asked(query: object, negatives: object) -> None:
    """Raise unless these are a query, and negatives with as many rows."""
    check_query(query)
    if not isinstance(negatives, Negatives):
        raise_invalid("negatives", "Negatives", type(negatives).__name__, "Pass what a sampler returned.")
    if isinstance(query, Query) and len(query) != negatives.shape[0]:
        raise_invalid("negatives", f"of {len(query)} rows, like the query", f"{negatives.shape[0]} rows")


def query_rows(query: Query, chosen: NDArray[Any]) -> Query:
    """The query of some rows."""
    parts = {name: getattr(query, name) for name in ("anchors", "positives", "vectors")}
    return replace(query, **{name: part[chosen] for name, part in parts.items() if part is not None})


def filled_slots(negatives: Negatives) -> NDArray[np.bool_]:
    """(B, K): slots that hold an id, whatever their relation."""
    return np.asarray(to_numpy(negatives.ids)) >= 0


def slot_scores(negatives: Negatives) -> NDArray[np.float64]:
    """(B, K) the scores of the slots as float64, 0 where a slot is empty. NaN and infinity elsewhere are an error."""
    if negatives.scores is None:
        advice = "Use a sampler that scores, or pass dataclasses.replace(negatives, scores=...)."
        raise_invalid("negatives.scores", "given", None, advice)
    scores = np.asarray(to_numpy(negatives.scores)).astype(np.float64)
    filled = filled_slots(negatives)
    bad = ~np.isfinite(scores) & filled
    if bad.any():
        raise_invalid("negatives.scores", "finite", first_slot(scores, bad))
    return np.where(filled, scores, 0.0)


def as_suspicion(values: NDArray[Any], negatives: Negatives) -> Array:
    """(B, K) values as suspicion: 0 where a slot is empty, in the array type and on the device of the negatives."""
    suspicion = np.where(filled_slots(negatives), values, 0.0)
    return to_torch(suspicion, negatives.ids.device) if is_torch(negatives.ids) else suspicion


def by_distance(scores: Floats, threshold: Floats) -> Floats:
    """Suspicion by the distance of a score from its threshold: 0.5 + 0.5 d / (1 + |d|), d = score - threshold.

    A score above the threshold gets at least 0.5. One equal to it gets the largest number below 0.5. To move the
    threshold by d later, use 0.5 + 0.5 d / (1 + |d|) in place of 0.5. Shapes broadcast.
    """
    with np.errstate(over="ignore"):
        distance = np.clip(scores - threshold, -_MAX_DISTANCE, _MAX_DISTANCE)
    return on_its_side(0.5 + 0.5 * distance / (1 + np.abs(distance)), scores > threshold)


def by_share(share: Floats, limit: Floats, flagged: NDArray[np.bool_]) -> Floats:
    """Suspicion by a share u in [0, 1] with the threshold `limit`; `flagged` says on which side of it a slot is.

    Below the limit u / (2 limit), above it 0.5 + 0.5 (u - limit) / (1 - limit). Shapes broadcast.
    """
    below = 0.5 * share / np.maximum(limit, np.finfo(np.float64).tiny)
    above = 0.5 + 0.5 * (share - limit) / np.maximum(1 - limit, np.finfo(np.float64).tiny)
    return on_its_side(np.where(share < limit, below, above), flagged)


def on_its_side(suspicion: Floats, flagged: NDArray[np.bool_]) -> Floats:
    """Suspicion clipped to at least 0.5 where `flagged` and below 0.5 elsewhere, whatever rounding does."""
    return np.where(flagged, np.clip(suspicion, SUSPICION_THRESHOLD, 1.0), np.clip(suspicion, 0.0, UNDER))

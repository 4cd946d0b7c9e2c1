"""The truth about slots, given as a table, a function or classes; and the checked suspicion of a detector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_range, raise_invalid, shown, whole_numbers
from naysay.detectors._score_blocks import first_slot
from naysay.detectors._slots import filled_slots
from naysay.types import Detector, Negatives, Query, anchor_ids

# (B, K) bool; or truth(anchors (B,), ids (B, K)) -> (B, K) bool; or the class of each sample (n_samples,)
Truth = NDArray[Any] | Callable[[NDArray[np.int64], NDArray[np.int64]], Any] | Any


@dataclass(frozen=True, slots=True, eq=False)
class SlotTruth:
    """Which slots are false negatives.

    Args:
        false: (B, K) whether a slot holds a false negative.
        known: (B, K) whether the truth is known: the slot is filled, and both classes are known.
    """

    false: NDArray[np.bool_]
    known: NDArray[np.bool_]


def slot_truth(query: Query, negatives: Negatives, truth: Truth) -> SlotTruth:
    """Return the truth about each slot, in whichever of the three forms it was given."""
    filled = filled_slots(negatives)
    ids = np.asarray(to_numpy(negatives.ids))
    if callable(truth):
        if not filled.any():
            return SlotTruth(filled, filled)
        return SlotTruth(_table(truth(anchor_ids(query), np.maximum(ids, 0)), filled.shape) & filled, filled)
    table = as_array("truth", to_numpy(truth))
    if table.ndim != 1:
        return SlotTruth(_table(table, filled.shape) & filled, filled)
    classes, anchors = whole_numbers("truth", table, "(n_samples,)"), anchor_ids(query)
    if anchors.ndim != 1:
        raise_invalid("truth", "a table or a function for triples", "one class for each sample")
    check_range("query.anchors", anchors, len(classes), "labels")
    check_range("negatives.ids", ids, len(classes), "labels", least=-1)
    own = classes[anchors][:, None]
    theirs = classes[np.maximum(ids, 0)] if len(classes) else np.full(ids.shape, -1)
    known = filled & (own >= 0) & (theirs >= 0)
    return SlotTruth((own == theirs) & known, known)


def _table(answer: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Check that the answer is one bool for each slot."""
    table = as_array("truth", to_numpy(answer))
    if table.shape != shape:
        rule = f"of shape {shape}, like negatives.ids, or (n_samples,) class labels"
        raise_invalid("truth", rule, f"shape {table.shape}")
    if table.dtype != bool:
        raise_invalid("truth", "True or False for each slot", f"dtype {table.dtype}")
    return table


def suspicion_of(parameter: str, detector: object, query: Query, negatives: Negatives) -> NDArray[np.float64]:
    """Return the suspicion of a detector as (B, K) float64. Errors name `parameter`."""
    if not isinstance(detector, Detector):
        raise_invalid(parameter, "an object with suspicion(query, negatives)", shown(detector))
    suspicion = np.asarray(to_numpy(detector.suspicion(query, negatives)))
    rule = f"a detector that returns numbers from 0 to 1 of shape {negatives.shape}"
    if suspicion.shape != negatives.shape or suspicion.dtype.kind not in "iuf":
        raise_invalid(parameter, rule, f"shape {suspicion.shape} {suspicion.dtype}")
    outside = ~((suspicion >= 0) & (suspicion <= 1))
    if outside.any():
        raise_invalid(parameter, rule, first_slot(suspicion, outside))
    return suspicion.astype(np.float64)

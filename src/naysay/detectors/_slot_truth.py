"""What is known of candidates by those who judge a detector: a table, a function, or the classes of all samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_range, first_bad, raise_invalid, shown, whole_numbers
from naysay.detectors._slots import filled_slots
from naysay.types import Detector, Negatives, Query, anchor_ids

# (B, K) bool; or truth(anchors (B,), ids (B, K)) -> (B, K) bool; or the class of each sample (n_samples,)
Truth = NDArray[Any] | Callable[[NDArray[np.int64], NDArray[np.int64]], Any] | Any


@dataclass(frozen=True, slots=True, eq=False)
class SlotTruth:
    """What is true of the slots.

    Args:
        false: (B, K) whether a slot holds a false negative.
        known: (B, K) whether that can be said: the slot is filled, and both classes are known.
    """

    false: NDArray[np.bool_]
    known: NDArray[np.bool_]


def slot_truth(query: Query, negatives: Negatives, truth: Truth) -> SlotTruth:
    """The truth about each slot, whichever way it was given; refused if it does not fit."""
    filled = filled_slots(negatives)
    ids = np.asarray(to_numpy(negatives.ids))
    if callable(truth):
        if not filled.any():
            return SlotTruth(filled, filled)
        return SlotTruth(_table(truth(anchor_ids(query), np.maximum(ids, 0)), filled.shape) & filled, filled)
    table = as_array("truth", to_numpy(truth))
    if table.ndim != 1:
        return SlotTruth(_table(table, filled.shape) & filled, filled)
    labels, anchors = whole_numbers("truth", table, "(n_samples,)"), anchor_ids(query)
    if anchors.ndim != 1:
        raise_invalid("truth", "a table or a function for triples", "one class for each sample")
    check_range("query.anchors", anchors, len(labels), "labels")
    check_range("negatives.ids", ids, len(labels), "labels", least=-1)
    own = labels[anchors][:, None]
    # With no sample there is no label to look up, and no slot that would.
    theirs = labels[np.maximum(ids, 0)] if len(labels) else np.full(ids.shape, -1)
    known = filled & (own >= 0) & (theirs >= 0)
    return SlotTruth((own == theirs) & known, known)


def _table(answer: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """True or False for each slot."""
    table = as_array("truth", to_numpy(answer))
    if table.shape != shape:
        rule = f"of shape {shape}, like negatives.ids, or (n_samples,) class labels"
        raise_invalid("truth", rule, f"shape {table.shape}")
    if table.dtype != bool:
        raise_invalid("truth", "True or False for each slot", f"dtype {table.dtype}")
    return table


def answered(detector: object, query: Query, negatives: Negatives) -> NDArray[np.float64]:
    """(B, K) the suspicion of a detector in NumPy; refused unless it is one number from 0 to 1 for each slot."""
    if not isinstance(detector, Detector):
        raise_invalid("detector", "an object with suspicion(query, negatives)", shown(detector))
    found = np.asarray(to_numpy(detector.suspicion(query, negatives)))
    if found.shape != negatives.shape or found.dtype.kind != "f":
        rule = f"a detector that answers with {negatives.shape} floats"
        raise_invalid("detector", rule, f"{found.shape} {found.dtype}")
    bad = ~((found >= 0) & (found <= 1))
    if bad.any():
        raise_invalid("detector", "a detector that answers within 0 and 1", first_bad(found, bad))
    return found.astype(np.float64)

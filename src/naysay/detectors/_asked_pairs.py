"""Slots as pairs for a function that a user brings, and its answer in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, need_torch, to_numpy, to_torch
from naysay.checks import as_array, raise_invalid, shown
from naysay.errors import NaysayError
from naysay.types import Array, Negatives, Query, anchor_ids

# of_pairs(anchors (n,), ids (n,)) -> (n,) or (n, f);  of triples of_pairs(triples (n, 3), corrupted (n, 3))
OfPairs = Callable[[Array, Array], Any]
Sides = tuple[NDArray[np.int64], NDArray[np.int64]]


def slot_pairs(query: Query, negatives: Negatives, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> Sides:
    """The anchors and the ids of some slots, (S,) each; of triples (S, 3) each, as they are, and corrupted."""
    anchors, ids = anchor_ids(query)[rows], np.asarray(to_numpy(negatives.ids))[rows, slots].astype(np.int64)
    if anchors.ndim == 1:
        return anchors, ids
    if negatives.side is None:
        raise_invalid("negatives.side", "given with triples", None)
    corrupted = anchors.copy()
    corrupted[np.arange(len(ids)), np.asarray(to_numpy(negatives.side))[rows, slots]] = ids
    return anchors, corrupted


def answers_of(parameter: str, function: OfPairs, query: Query, sides: Sides, rule: str) -> NDArray[np.float64]:
    """The numbers that the function says of pairs. It is asked in the array type of the query, without gradients."""
    given: list[Any] = [np.ascontiguousarray(side) for side in sides]
    in_torch = is_torch(query.anchors)
    if in_torch:
        given = [to_torch(side, query.device) for side in given]
    try:
        with need_torch().no_grad() if in_torch else nullcontext():
            answer = function(*given)
    except Exception as error:
        ends = f"from {pair_named(sides, 0)} to {pair_named(sides, -1)}"
        message = f"`{parameter}` must be {rule}, got {type(error).__name__}: {error}, {ends}."
        raise NaysayError(message) from error
    numbers = as_array(parameter, to_numpy(answer))
    if numbers.dtype.kind not in "biuf":
        raise_invalid(parameter, rule, f"{shown(answer)}, from {pair_named(sides, 0)} on")
    return numbers.astype(np.float64)


def pair_named(sides: Sides, place: int) -> str:
    """One pair as people read it."""
    anchor, item = (side[place].tolist() for side in sides)
    return f"triple {anchor} corrupted to {item}" if sides[0].ndim == 2 else f"anchor {anchor}, id {item}"

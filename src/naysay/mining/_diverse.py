"""Diverse selections: the best of each group in turn, and maximal marginal relevance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_range, raise_invalid, whole_numbers
from naysay.kernels.relevance import marginal
from naysay.kernels.threads import in_rows
from naysay.mining.candidates import Candidates, Mask

# similar(ids (r, m)) -> (r, m, d): the vectors of items; -1 may be answered with anything
Similar = Callable[[NDArray[np.int64]], Any]
_NUMBERS = 1 << 24  # of vectors that are held at a time


def by_groups(candidates: Candidates, order: NDArray[np.int64], mask: Mask, groups: Any) -> NDArray[np.int64]:
    """(n, m) slots so that the best of each group come first, then the second of each; `order` decides within."""
    labels = whole_numbers("groups", to_numpy(groups)).astype(np.int64)
    check_range("candidates", candidates.ids, len(labels), "groups of items", least=-1)
    inside = np.take_along_axis(mask, order, axis=1)
    label = (
        labels[np.take_along_axis(candidates.ids, order, axis=1)] if len(labels) else np.zeros(order.shape, np.int64)
    )
    by_label = np.argsort(label, axis=1, kind="stable")
    ordered, counted = (np.take_along_axis(values, by_label, axis=1) for values in (label, inside))
    starts = np.ones(label.shape, np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # How many of the group stand before, in the mask: the running count less the count where the group starts.
    running = np.cumsum(counted, axis=1, dtype=np.int64)
    before = running - counted.astype(np.int64)
    at_start = np.maximum.accumulate(np.where(starts, before, -1), axis=1)
    turn = np.empty(label.shape, np.int64)
    np.put_along_axis(turn, by_label, before - at_start, axis=1)
    turn = np.where(inside, turn, label.shape[1])
    return np.take_along_axis(order, np.argsort(turn, axis=1, kind="stable"), axis=1)


def by_relevance(
    candidates: Candidates,
    order: NDArray[np.int64],
    mask: Mask,
    counts: NDArray[np.int64],
    similar: Similar,
    balance: float,
) -> Mask:
    """(n, m): the slots that maximal marginal relevance takes, in blocks of rows."""
    chosen = np.zeros(mask.shape, np.bool_)
    width = int(np.count_nonzero(mask, axis=1).max(initial=0))
    if width == 0 or not counts.any():
        return chosen
    slots, there = order[:, :width], np.count_nonzero(mask, axis=1)
    ids, scores = (np.take_along_axis(values, slots, axis=1) for values in (candidates.ids, candidates.scores))
    wanted = np.minimum(counts, there)
    start, step = 0, 1
    while start < len(ids):
        block = slice(start, start + step)
        vectors = _vectors(similar, np.where(mask[np.arange(len(ids))[block, None], slots[block]], ids[block], 0))
        taken = np.zeros(ids[block].shape, np.bool_)
        steps = int(wanted[block].sum()) * width * vectors.shape[2]
        parts = (frozen(vectors), frozen(scores[block].astype(np.float64)), frozen(there[block]), frozen(wanted[block]))
        in_rows(marginal, len(taken), steps, *parts, balance, taken)
        np.put_along_axis(chosen[block], slots[block], taken, axis=1)
        start, step = start + step, max(1, _NUMBERS // max(1, width * vectors.shape[2]))
    return chosen


def _vectors(similar: Similar, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """(r, m, d) float64 vectors of unit length; a vector of zeros stays, and is like nothing."""
    vectors = as_array("similar", to_numpy(similar(ids)))
    if vectors.ndim != 3 or vectors.shape[:2] != ids.shape or vectors.dtype.kind not in "iuf":
        rule = f"a function that answers with vectors of shape ({ids.shape[0]}, {ids.shape[1]}, d)"
        raise_invalid("similar", rule, f"shape {vectors.shape} {vectors.dtype}")
    vectors = vectors.astype(np.float64)
    if not np.isfinite(vectors).all():
        raise_invalid("similar", "a function that answers with finite vectors", "NaN or infinity")
    length = np.sqrt((vectors * vectors).sum(axis=2, keepdims=True))
    return np.ascontiguousarray(vectors / np.where(length > 0, length, 1.0))

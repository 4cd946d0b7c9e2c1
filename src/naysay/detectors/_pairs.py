"""Slots as pairs for a user's function, its checked output, and a cache of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, need_torch, to_numpy, to_torch
from naysay.checks import as_array, raise_invalid, shown, whole_numbers
from naysay.errors import NaysayError
from naysay.types import Array, Negatives, Query, anchor_ids

# of_pairs(anchors (n,), ids (n,)) -> (n,) or (n, f);  for triples of_pairs(triples (n, 3), corrupted (n, 3))
OfPairs = Callable[[Array, Array], Any]
Sides = tuple[NDArray[np.int64], NDArray[np.int64]]
Pairs = NDArray[np.int64]  # (n, 2) anchor and id; (n, 6) triple and corrupted triple
Floats = NDArray[np.float64]


def slot_pairs(query: Query, negatives: Negatives, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> Sides:
    """The anchors and ids of some slots, (S,) each; for triples the triples and corrupted triples, (S, 3) each."""
    anchors, ids = anchor_ids(query)[rows], np.asarray(to_numpy(negatives.ids))[rows, slots].astype(np.int64)
    if anchors.ndim == 1:
        return anchors, ids
    if negatives.side is None:
        raise_invalid("negatives.side", "given with triples", None)
    corrupted = anchors.copy()
    corrupted[np.arange(len(ids)), np.asarray(to_numpy(negatives.side))[rows, slots]] = ids
    return anchors, corrupted


def numbers_of(parameter: str, function: OfPairs, query: Query, sides: Sides, rule: str) -> Floats:
    """Call a user's function with pairs in the array type of the query, without gradients; return float64."""
    arguments: list[Any] = [np.ascontiguousarray(side) for side in sides]
    in_torch = is_torch(query.anchors)
    if in_torch:
        arguments = [to_torch(side, query.device) for side in arguments]
    try:
        with need_torch().no_grad() if in_torch else nullcontext():
            output = function(*arguments)
    except Exception as error:
        ends = f"from {pair_name(sides, 0)} to {pair_name(sides, -1)}"
        message = f"`{parameter}` must be {rule}, got {type(error).__name__}: {error}, {ends}."
        raise NaysayError(message) from error
    numbers = as_array(parameter, to_numpy(output))
    if numbers.dtype.kind not in "biuf":
        raise_invalid(parameter, rule, f"{shown(output)}, from {pair_name(sides, 0)} on")
    return numbers.astype(np.float64)


def check_each(parameter: str, sides: Sides, values: Floats, good: NDArray[np.bool_], rule: str) -> None:
    """Raise unless all rows of values (n,) or (n, f) are good: with the first bad value, its pair, and the count."""
    bad = ~good.reshape(len(good), -1)
    if bad.any():
        rows = bad.any(axis=1)
        first = int(rows.argmax())
        value = values.reshape(bad.shape)[first][bad[first]][0]
        raise_invalid(parameter, rule, f"{value} for {pair_name(sides, first)} ({rows.sum()} such)")


def pair_name(sides: Sides, place: int) -> str:
    """One pair, for a message."""
    anchor, item = (side[place].tolist() for side in sides)
    return f"triple {anchor} corrupted to {item}" if sides[0].ndim == 2 else f"anchor {anchor}, id {item}"


@final
class ScoreCache:
    """Pairs and their scores, oldest first."""

    def __init__(self) -> None:
        """Start empty."""
        self.pairs: Pairs = np.empty((0, 2), np.int64)
        self.scores: Floats = np.empty(0)

    def look_up(self, pairs: Pairs) -> Floats:
        """(n,) the scores of distinct pairs, NaN for those that are not cached. Sorts both."""
        scores = np.full(len(pairs), np.nan)
        if len(self.pairs) == 0 or len(pairs) == 0 or self.pairs.shape[1] != pairs.shape[1]:
            return scores
        both = np.concatenate([self.pairs, pairs])
        _, first, place = np.unique(both, axis=0, return_index=True, return_inverse=True)
        first = first[place.reshape(-1)[len(self.pairs) :]]
        cached = first < len(self.pairs)
        scores[cached] = self.scores[first[cached]]
        return scores

    def add(self, pairs: Pairs, scores: Floats) -> None:
        """Add pairs that are not cached yet. Triples replace pairs, and pairs triples."""
        if self.pairs.shape[1] != pairs.shape[1]:
            self.pairs, self.scores = pairs[:0], scores[:0]
        self.pairs = np.concatenate([self.pairs, pairs])
        self.scores = np.concatenate([self.scores, scores])

    def trim(self, size: int) -> None:
        """Keep the newest `size` pairs."""
        start = max(len(self.pairs) - size, 0)
        self.pairs, self.scores = self.pairs[start:].copy(), self.scores[start:].copy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Both arrays."""
        return {"pairs": self.pairs.copy(), "scores": self.scores.copy()}


def read_cache(state: Mapping[str, Any]) -> ScoreCache:
    """The cache whose `state` this is."""
    cache = ScoreCache()
    pairs = whole_numbers("pairs", to_numpy(state["pairs"]), "(n, w)").astype(np.int64)
    scores = as_array("scores", to_numpy(state["scores"]))
    if scores.shape != (len(pairs),) or scores.dtype.kind != "f" or not np.isfinite(scores).all():
        raise_invalid("scores", f"{len(pairs)} finite numbers, like pairs", f"shape {scores.shape} {scores.dtype}")
    if pairs.shape[1] not in (2, 6):
        raise_invalid("pairs", "of shape (n, 2), or (n, 6) for triples", f"shape {pairs.shape}")
    cache.pairs, cache.scores = pairs, scores.astype(np.float64)
    return cache

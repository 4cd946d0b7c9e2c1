"""Ranked candidates with one labelled positive inserted in each list, and the features of their slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, first_bad, raise_invalid

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
FEATURES = 3  # score, log(1 + rank), gap to the next score
_HASHED = 8  # nearest scores of an anchor that tell it from others


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Candidates of some anchors, nearest first.

    Args:
        scores: (A, M) descending, NaN where a list has ended.
        positives: (A,) the score of one labelled positive of each anchor, NaN without one.
        alike: (A, M) the largest cosine of a candidate to its anchor's labelled positives, NaN where unknown; or None.
    """

    scores: Floats
    positives: Floats
    alike: Floats | None

    @property
    def filled(self) -> Mask:
        """(A, M): slots with a candidate."""
        return ~np.isnan(self.scores)

    def take(self, rows: slice | NDArray[Any]) -> Lists:
        """Some anchors."""
        return Lists(self.scores[rows], self.positives[rows], None if self.alike is None else self.alike[rows])

    def nearest(self, k: int) -> Mask:
        """(A, M): the k nearest candidates of each anchor."""
        return self.filled & (np.arange(self.scores.shape[1]) < k)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The lists with their labelled positives in place.

    Args:
        features: (3, A, M + 1) score, log(1 + rank), gap.
        filled: (A, M + 1): slots that hold a candidate or a labelled positive.
        places: (A,) where the labelled positive is, -1 where it is outside of the list or there is none.
    """

    features: Floats
    filled: Mask
    places: Whole

    @property
    def labelled(self) -> Mask:
        """(A, M + 1): the slot of the labelled positive."""
        return np.asarray(np.arange(self.filled.shape[1]) == self.places[:, None])

    def of_candidates(self, values: NDArray[Any]) -> NDArray[Any]:
        """(..., A, M) of (..., A, M + 1): without the labelled positives."""
        width = values.shape[-1] - 1
        slots = np.arange(width) + ((self.places[:, None] >= 0) & (np.arange(width) >= self.places[:, None]))
        return np.take_along_axis(values, np.broadcast_to(slots, (*values.shape[:-1], width)), axis=-1)


def read_lists(scores: Any, positive_scores: Any, alike: Any = None) -> tuple[Lists, Whole]:
    """Check lists, and sort each by score; also return (A, M) the column that each slot came from.

    -inf and NaN mark slots without a candidate. Equal scores keep their order.
    """
    values = _numbers("scores", scores, 2)
    values = np.where(values == -np.inf, np.nan, values)
    if np.isinf(values).any():
        raise_invalid("scores", "finite, or -inf or NaN where a slot is empty", first_bad(values, np.isinf(values)))
    rows = len(values)
    positives = np.full(rows, np.nan) if positive_scores is None else _numbers("positive_scores", positive_scores, 1)
    if positives.shape != (rows,):
        raise_invalid("positive_scores", f"of {rows} anchors, like `scores`", f"{len(positives)}")
    positives = np.where(np.isfinite(positives), positives, np.nan)
    order = np.argsort(-values, axis=1, kind="stable")  # NaN comes last
    similar = None
    if alike is not None:
        similar = _numbers("alike", alike, 2)
        if similar.shape != values.shape:
            raise_invalid("alike", f"of shape {values.shape}, like `scores`", f"shape {similar.shape}")
        similar = np.take_along_axis(np.where(np.isfinite(similar), similar, np.nan), order, axis=1)
    return Lists(np.take_along_axis(values, order, axis=1), positives, similar), order


def _numbers(parameter: str, values: Any, dimensions: int) -> Floats:
    array = as_array(parameter, to_numpy(values))
    if array.ndim != dimensions or array.dtype.kind not in "iuf":
        shape = "(A, M)" if dimensions == 2 else "(A,)"
        raise_invalid(parameter, f"numbers of shape {shape}", f"{array.dtype} of shape {array.shape}")
    return array.astype(np.float64) + 0.0  # -0.0 becomes 0.0


def pool_of(lists: Lists, seed: int, depth: int | None = None) -> Pool:
    """Insert the labelled positives by score; among equal scores at random.

    Args:
        lists: The candidates.
        seed: Of the random places among equal scores.
        depth: Use so many candidates of each list. A positive behind them is outside, and not inserted. None: all.
    """
    width = lists.scores.shape[1] if depth is None else min(depth, lists.scores.shape[1])
    listed, positives = lists.scores[:, :width], lists.positives[:, None]
    with np.errstate(invalid="ignore"):
        above, equal = (listed > positives).sum(axis=1), (listed == positives).sum(axis=1)
    places = above + (_chances(lists, seed) * (equal + 1)).astype(np.int64)
    whole = np.isnan(listed).any(axis=1) if width else np.ones(len(listed), bool)  # nothing is behind its end
    inside = ~np.isnan(lists.positives) & ((places < width) | whole)
    places = np.where(inside, places, -1)
    # One column more than is used, for the gap behind the last slot.
    padded = np.pad(lists.scores[:, : width + 2], [(0, 0), (0, max(0, width + 2 - lists.scores.shape[1]))])
    padded[:, lists.scores.shape[1] :] = np.nan
    slots, at = np.arange(width + 2), places[:, None]
    merged = np.take_along_axis(padded, slots - ((at >= 0) & (slots > at)), axis=1)
    merged = np.where(slots == at, positives, merged)
    filled = ~np.isnan(merged[:, :-1])
    filled[:, width] &= inside
    return Pool(_features(merged), filled, places)


def _features(merged: Floats) -> Floats:
    """(3, A, M) of merged scores (A, M + 1). A slot without a next one has the gap of the slot before it."""
    scores = merged[:, :-1]
    with np.errstate(over="ignore"):
        gaps = scores - merged[:, 1:]
    before = np.concatenate([np.zeros((len(gaps), 1)), gaps[:, :-1]], axis=1)[:, : gaps.shape[1]]
    gaps = np.where(np.isnan(gaps), before, gaps)
    ranks = np.broadcast_to(np.log1p(np.arange(scores.shape[1])), scores.shape)
    return np.stack([np.where(np.isnan(part), 0.0, part) for part in (scores, ranks, gaps)])


def folds_of(lists: Lists, inside: Mask, n_folds: int, seed: int) -> Whole:
    """(A,) the fold of each anchor, by its scores and the seed, not by its place.

    Anchors whose positive is listed, and the others, are spread evenly.
    """
    folds = np.empty(len(inside), np.int64)
    chances = _chances(lists, seed + 1)
    for part in (np.flatnonzero(inside), np.flatnonzero(~inside)):
        order = part[np.argsort(chances[part], kind="stable")]
        folds[order] = np.arange(len(order)) % n_folds
    return folds


def _chances(lists: Lists, seed: int) -> Floats:
    """(A,) numbers in [0, 1) that depend on an anchor's scores and the seed alone (SplitMix64)."""
    parts = np.concatenate([lists.positives[:, None], lists.scores[:, :_HASHED]], axis=1)
    bits = np.where(np.isnan(parts), 0.5, parts).view(np.uint64)
    state = np.full(len(parts), np.uint64(seed), np.uint64)
    with np.errstate(over="ignore"):
        for column in bits.T:
            state = (state ^ column) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53

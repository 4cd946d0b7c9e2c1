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
FEATURES = 5  # score, log(1 + rank), gap to the next score, score above the background, richness
RICH = 10  # nearest slots whose mean score above the background is the richness of an anchor
_BACKGROUND = 0.6  # of the list is nearer than its background
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

    def cut(self, width: int) -> Lists:
        """The first candidates of each anchor."""
        return Lists(self.scores[:, :width], self.positives, None if self.alike is None else self.alike[:, :width])

    def levels(self, depth: int) -> tuple[Floats, Floats]:
        """(A,) the background of each anchor and its richness, which do not depend on which positive is labelled.

        The background is the mean score of the last 40 % of the first `depth` candidates. The richness is the mean
        score of the ten nearest, labelled positive included, above that: large for an anchor with many positives.
        """
        scores = self.scores[:, :depth]
        filled = ~np.isnan(scores)
        first = (_BACKGROUND * filled.sum(axis=1)).astype(np.int64)
        background = _mean(scores, filled & (np.arange(scores.shape[1]) >= first[:, None]))
        near = np.concatenate([scores[:, :RICH], self.positives[:, None]], axis=1)
        near = -np.sort(-near, axis=1)[:, :RICH]  # NaN comes last
        with np.errstate(invalid="ignore"):
            return background, _mean(near, ~np.isnan(near)) - background


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The lists with their labelled positives in place.

    Args:
        features: (5, A, M + 1) score, log(1 + rank), gap, score above the background, richness.
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


def _mean(values: Floats, mask: Mask) -> Floats:
    """(A,) the mean over a mask of each row, 0 where it is empty."""
    with np.errstate(over="ignore"):
        return np.asarray(np.where(mask, values, 0.0).sum(axis=1) / np.maximum(mask.sum(axis=1), 1))


def read_lists(scores: Any, positive_scores: Any, alike: Any = None) -> tuple[Lists, Whole | None]:
    """Check lists, and sort each by score; also return the order, for `sorted_by` and `in_place`.

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
    similar, order = None, _order(values)
    if alike is not None:
        similar = _numbers("alike", alike, 2)
        if similar.shape != values.shape:
            raise_invalid("alike", f"of shape {values.shape}, like `scores`", f"shape {similar.shape}")
        similar = sorted_by(np.where(np.isfinite(similar), similar, np.nan), order)
    return Lists(sorted_by(values, order), positives, similar), order


def _order(values: Floats) -> Whole | None:
    """(A, M) the order of descending scores, NaN last; None if they are in order already."""
    with np.errstate(invalid="ignore"):
        behind = (values[:, 1:] <= values[:, :-1]) | np.isnan(values[:, 1:])
    return None if behind.all() else np.argsort(-values, axis=1, kind="stable")


def sorted_by(values: NDArray[Any], order: Whole | None) -> NDArray[Any]:
    """(A, M) values in the order that `read_lists` found."""
    return values if order is None else np.take_along_axis(values, order, axis=1)


def in_place(values: NDArray[Any], order: Whole | None) -> NDArray[Any]:
    """(A, M) the inverse of `sorted_by`."""
    if order is None:
        return values
    found = np.empty_like(values)
    np.put_along_axis(found, order, values, axis=1)
    return found


def _numbers(parameter: str, values: Any, dimensions: int) -> Floats:
    array = as_array(parameter, to_numpy(values))
    if array.ndim != dimensions or array.dtype.kind not in "iuf":
        shape = "(A, M)" if dimensions == 2 else "(A,)"
        raise_invalid(parameter, f"numbers of shape {shape}", f"{array.dtype} of shape {array.shape}")
    return array.astype(np.float64) + 0.0  # -0.0 becomes 0.0


def _places(lists: Lists, seed: int, width: int) -> Whole:
    """(A,) where the labelled positive stands among the first candidates, at random among equal scores.

    -1 without one, and where it is behind candidates that are not listed.
    """
    listed, positives = lists.scores[:, :width], lists.positives[:, None]
    with np.errstate(invalid="ignore"):
        above, equal = (listed > positives).sum(axis=1), (listed == positives).sum(axis=1)
    places = above + (_chances(lists, seed) * (equal + 1)).astype(np.int64)
    whole = np.isnan(listed[:, -1]) if width else np.ones(len(listed), bool)  # nothing is behind its end
    return np.where(~np.isnan(lists.positives) & ((places < width) | whole), places, -1)


def pool_of(lists: Lists, seed: int, depth: int) -> Pool:
    """Insert the labelled positives by score, among the first `depth` candidates; one behind them is outside."""
    width = min(depth, lists.scores.shape[1])
    places = _places(lists, seed, width)
    # One column more than is used, for the gap behind the last slot.
    padded = np.pad(lists.scores[:, : width + 2], [(0, 0), (0, max(0, width + 2 - lists.scores.shape[1]))])
    padded[:, lists.scores.shape[1] :] = np.nan
    slots, at = np.arange(width + 2), places[:, None]
    merged = np.take_along_axis(padded, slots - ((at >= 0) & (slots > at)), axis=1)
    merged = np.where(slots == at, lists.positives[:, None], merged)
    scores, filled = merged[:, :-1], ~np.isnan(merged[:, :-1])
    filled[:, width] &= places >= 0
    with np.errstate(over="ignore"):
        gaps = scores - merged[:, 1:]
    before = np.concatenate([np.zeros((len(gaps), 1)), gaps[:, :-1]], axis=1)
    gaps = np.where(np.isnan(gaps), before, gaps)  # a slot without a next one has the gap of the slot before it
    background, richness = lists.levels(depth)
    ranks = np.broadcast_to(np.log1p(np.arange(scores.shape[1])), scores.shape)
    rich = np.broadcast_to(richness[:, None], scores.shape)
    with np.errstate(invalid="ignore"):
        parts = (scores, ranks, gaps, scores - background[:, None], rich)
    known = [np.where(filled & ~np.isnan(part), part, 0.0) for part in parts]
    return Pool(np.stack(known), filled, places)


def candidate_features(lists: Lists, seed: int, depth: int) -> tuple[list[Floats], Mask]:
    """The features of candidates as `pool_of` gives them, each (A, M) or (A, 1), and (A, M): those behind `depth`."""
    scores, positives, columns = lists.scores, lists.positives[:, None], np.arange(lists.scores.shape[1])
    at = _places(lists, seed, len(columns))[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.full(scores.shape, np.nan)
        gaps[:, :-1] = scores[:, :-1] - scores[:, 1:]
        gaps = np.where(at == columns + 1, scores - positives, gaps)
        before = np.concatenate([np.zeros((len(scores), 1)), scores[:, :-1] - scores[:, 1:]], axis=1)[:, : len(columns)]
        before = np.where(at == columns, positives - scores, before)
        gaps = np.where(np.isnan(gaps), before, gaps)
        background, richness = lists.levels(depth)
        above = scores - background[:, None]
    ranks = columns + ((at >= 0) & (at <= columns))
    logs = np.log1p(np.arange(len(columns) + 1))[ranks]
    return [scores, logs, gaps, above, richness[:, None]], np.asarray(ranks > depth)


def folds_of(lists: Lists, seed: int, depth: int, n_folds: int) -> Whole:
    """(A,) the fold of each anchor, by its scores and the seed, not by its place.

    Anchors whose positive is listed, and the others, are spread evenly.
    """
    inside = _places(lists, seed, min(depth, lists.scores.shape[1])) >= 0
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

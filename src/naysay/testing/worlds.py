"""A planted world: anchors, items and all true pairs, so that every false negative is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._rows import index_type
from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import MOST_ROWS, check_number, check_whole, public, raise_invalid
from naysay.kernels.compile import compiled
from naysay.kernels.random import number, row_state
from naysay.kernels.threads import in_rows
from naysay.positives import Positives
from naysay.rng import key_from, rng_for

_CLUSTER = 50  # items around one centre
_POPULARITY = 0.05  # the mean bonus of an item in every score, exponential: a few items have several times as much
_LUCK = 0.1  # the score of each pair is changed by up to this much, up or down
_BLOCK = 1 << 24  # scores at a time

# Five encoders, by the mean score of positives and of all pairs that they give where each anchor has 8 true items among
# 3,000: from wide scores around 0 to narrow ones near 1, as real encoders have. One rule has to serve them all.
ENCODERS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        ".80 / .00": {"spread": 0.5, "noise": 0.2},
        ".95 / .78": {"spread": 0.5, "noise": 0.2, "anisotropy": 0.78},
        ".985 / .93": {"spread": 0.5, "noise": 0.2, "anisotropy": 0.93},
        ".50 / .00": {"spread": 0.7, "noise": 0.68},
        ".94 / .91": {"spread": 0.7, "noise": 1.05, "anisotropy": 0.91},
    }
)


@final
@public
@dataclass(frozen=True, eq=False)
class World:
    """Anchors and items with vectors, all true pairs, and the part of them that is known.

    Args:
        known: The pairs a training set would have; what a pool excludes.
        truth: All true pairs, known ones included.
        anchor_vectors: (n_anchors, d) float32, unit length: what an encoder makes of the anchors.
        item_vectors: (n_items, d) float32, unit length.
    """

    known: Positives
    truth: Positives
    anchor_vectors: NDArray[np.float32]
    item_vectors: NDArray[np.float32]

    def scores(self, anchors: Any, ids: Any) -> Any:
        """(B, K) dot products of the anchors (B,) with the items (B, K), 0 for -1; in torch if `ids` are."""
        rows, items = np.asarray(to_numpy(anchors)), np.asarray(to_numpy(ids))
        dots = np.einsum("bd,bkd->bk", self.anchor_vectors[rows], self.item_vectors[np.maximum(items, 0)])
        dots = np.where(items >= 0, dots, np.float32(0))
        return to_torch(dots, ids.device) if is_torch(ids) else dots

    def is_false_negative(self, anchors: ArrayLike, ids: ArrayLike) -> NDArray[np.bool_]:
        """(B, K): true pairs that are not known; -1 is False."""
        return self.truth.contains(anchors, ids) & ~self.known.contains(anchors, ids)

    def false_negative_rate(self, anchors: ArrayLike, ids: ArrayLike) -> float:
        """The share of false negatives among the filled slots; 0 if there are none."""
        filled = int(np.count_nonzero(np.asarray(to_numpy(ids)) >= 0))
        return float(self.is_false_negative(anchors, ids).sum()) / max(filled, 1)


@public
def planted_world(
    n_anchors: int = 2000,
    n_items: int = 1000,
    dimensions: int = 32,
    per_anchor: int = 20,
    known_share: float = 0.7,
    noise: float = 1.0,
    seed: int = 0,
    *,
    spread: float = 0.7,
    anisotropy: float = 0.0,
) -> World:
    """Make a world in which every false negative is known.

    Anchors and items are unit vectors around shared centres, one per 50 items, so that every item has similar ones.
    The true items of an anchor are the `per_anchor` best by cosine + popularity of the item + noise of the pair. Which
    of them are known is random and does not depend on their score. O(n_anchors n_items dimensions) time, a matrix
    product in blocks of 64 MB.

    Args:
        n_anchors: The number of anchors.
        n_items: The number of items.
        dimensions: The dimension of the vectors.
        per_anchor: The number of true positives of each anchor.
        known_share: The share of them that is known, rounded per anchor; the rest are the false negatives.
        noise: The error of the encoder. At 0 the vectors are those that made the truth. At 1 noise of the same length
            is added to each, an encoder of cosine 0.7 with the truth.
        seed: Of all random numbers.
        spread: The distance of members from their centre, which has length 1. The lower, the higher positives score.
        anisotropy: The cosine that this encoder gives to unrelated vectors, from 0 to below 1: a vector of length
            sqrt(anisotropy / (1 - anisotropy)) is added to all, and they are normalised again. A score s becomes about
            anisotropy + (1 - anisotropy) s. The truth does not depend on it.

    Returns:
        The world, with `known` and `truth` positives and the vectors of the encoder.

    Examples:
        >>> world = planted_world(200, 100, per_anchor=10, known_share=0.5)
        >>> len(world.known), len(world.truth)
        (1000, 2000)
    """
    sizes = {"n_anchors": n_anchors, "n_items": n_items, "dimensions": dimensions, "per_anchor": per_anchor}
    for name, size in sizes.items():
        check_whole(name, size, 1, MOST_ROWS)
    if per_anchor > n_items:
        raise_invalid("per_anchor", f"at most `n_items`, {n_items}", per_anchor)
    check_number("known_share", known_share, at_least=0, at_most=1)
    check_number("noise", noise, at_least=0, finite=True)
    check_number("spread", spread, at_least=0, finite=True)
    check_number("anisotropy", anisotropy, at_least=0, below=1, advice="At 1 all vectors would be equal.")
    if anisotropy and dimensions == 1:
        raise_invalid("dimensions", "at least 2 for an anisotropic encoder", dimensions)
    rng = rng_for(seed)
    centres = _around(np.zeros((-(-n_items // _CLUSTER), dimensions), np.float32), 1.0, rng)
    anchors = _around(centres[rng.integers(0, len(centres), n_anchors)], spread, rng)
    items = _around(centres[rng.integers(0, len(centres), n_items)], spread, rng)
    popularity = (_POPULARITY * rng.standard_exponential(n_items)).astype(np.float32)
    true = _best(anchors, items, popularity, per_anchor, key_from(rng))
    rng.permuted(true, axis=1, out=true)
    n_known = round(known_share * per_anchor)
    anchors, items = _around(anchors, noise, rng), _around(items, noise, rng)
    if anisotropy:
        common = _around(np.zeros((1, dimensions), np.float32), 1.0, rng)
        anchors, items = (_shifted(vectors, common, anisotropy) for vectors in (anchors, items))
    return World(_positives(true[:, :n_known], n_items), _positives(true, n_items), anchors, items)


def _around(centres: NDArray[np.float32], spread: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Unit vectors: each centre with a random vector of length about `spread` added."""
    step = np.float32(spread / np.sqrt(centres.shape[1]))
    moved = centres + step * rng.standard_normal(centres.shape, dtype=np.float32)
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)


def _shifted(vectors: NDArray[np.float32], common: NDArray[np.float32], cosine: float) -> NDArray[np.float32]:
    """Unit vectors with a common one added, so long that vectors without a relation have this cosine."""
    moved = vectors + np.float32(np.sqrt(cosine / (1 - cosine))) * common
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)


def _positives(ids: NDArray[Any], n_items: int) -> Positives:
    rows, width = ids.shape
    return Positives.from_csr(np.arange(rows + 1) * width, ids.ravel(), n_items)


def _best(
    anchors: NDArray[np.float32],
    items: NDArray[np.float32],
    popularity: NDArray[np.float32],
    per_anchor: int,
    key: np.uint64,
) -> NDArray[Any]:
    """(n_anchors, per_anchor) the best items of each anchor, in no order."""
    best = np.empty((len(anchors), per_anchor), index_type(len(items)))
    size = max(1, _BLOCK // len(items))
    for first in range(0, len(anchors), size):
        scores = anchors[first : first + size] @ items.T
        scores += popularity
        part = best[first : first + size]
        in_rows(_best_of_rows, len(part), scores.size, key, first, _LUCK, scores, part)
    return best


@compiled
def _best_of_rows(start: Any, stop: Any, key: Any, first: Any, luck: Any, scores: Any, best: Any) -> None:
    """The items of each row with the highest score + luck. Luck is bounded, so most items need not draw theirs."""
    kept = best.shape[1]
    values = np.empty(kept, np.float64)
    for row in range(start, stop):
        state = row_state(key, first + row)
        weakest, limit = 0, -np.inf
        for item in range(scores.shape[1]):
            if scores[row, item] + luck <= limit:
                continue
            value = scores[row, item] + luck * (2.0**-63 * np.float64(number(state, item)) - 1.0)
            if item >= kept and value <= limit:
                continue
            place = item if item < kept else weakest
            values[place] = value
            best[row, place] = item
            if item >= kept - 1:
                weakest = int(np.argmin(values))
                limit = values[weakest]

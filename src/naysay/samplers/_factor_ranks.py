"""Items ranked by each factor of their vectors: the item of a rank, and the exact chances of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.positives import Positives

_BLOCK = 1 << 21  # numbers held at once by an exact draw
_BELOW_ONE = 1 - 1e-12  # the next row begins at 1


@final
@dataclass(frozen=True, slots=True, eq=False)
class FactorRanks:
    """order (d, n): the items of each factor, highest value first, equal ones by id; spread (d,): its deviation."""

    order: NDArray[Any]
    spread: NDArray[np.float64]

    @classmethod
    def of(cls, factors: NDArray[Any]) -> FactorRanks:
        """The ranks of item vectors (n, d)."""
        columns = np.ascontiguousarray(factors.T, np.float64)
        order = np.argsort(-columns, axis=1, kind="stable")
        small = np.int32 if columns.shape[1] < 1 << 31 else np.int64
        return cls(order.astype(small), columns.std(axis=1))

    def shares(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """(B, d) |v_f| sigma_f; 1 for every factor where a row has nothing but zeros."""
        shares = np.abs(vectors) * self.spread
        return np.where(shares.any(axis=1, keepdims=True), shares, 1.0)

    def items(
        self,
        vectors: NDArray[np.float64],
        rows: NDArray[np.int64],
        ranks: NDArray[np.int64],
        chances: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """(m,) the item of rank `ranks` (m,), from 0, on a factor of the anchor in `rows` (m,), drawn by `chances`."""
        until = np.cumsum(self.shares(vectors), axis=1)
        until = until[rows]
        factor = np.count_nonzero(until <= (chances * until[:, -1])[:, None], axis=1)
        factor = np.minimum(factor, until.shape[1] - 1)
        rising = vectors[rows, factor] > 0
        place = np.where(rising, ranks, self.order.shape[1] - 1 - ranks)
        return np.asarray(self.order[factor, place], np.int64)


def ranks_below(n: int, scale: float, chances: NDArray[np.float64]) -> NDArray[np.int64]:
    """(m,) ranks from 0 to n - 1, in proportion to exp(-rank / scale), by inversion: O(1) each."""
    steps = -scale * np.log1p(chances * np.expm1(-n / scale))
    return np.asarray(np.minimum(steps, n - 1), np.int64)


def exact_items(
    ranks: FactorRanks,
    positives: Positives,
    anchors: NDArray[np.int64],
    vectors: NDArray[np.float64],
    scale: float,
    rows: NDArray[np.int64],
    chances: NDArray[np.float64],
) -> NDArray[np.int64]:
    """(m,) items drawn from sum_f p(f) p(rank_f) over what is not known: O(d n) per anchor, a block of them at a time.

    rows (m,) are the anchors of the draws, by place, ascending; chances (m,) a number in [0, 1) for each.
    """
    distinct, which = np.unique(rows, return_inverse=True)
    items = np.empty(len(rows), np.int64)
    size = max(1, _BLOCK // positives.n_items)
    for start in range(0, len(distinct), size):
        block = distinct[start : start + size]
        weights = _weights(ranks, positives, anchors[block], vectors[block], scale)
        until = np.cumsum(weights, axis=1)
        until /= until[:, -1:]
        until += np.arange(len(block))[:, None]
        mine = (which >= start) & (which < start + len(block))
        local = which[mine] - start
        places = np.searchsorted(until.ravel(), np.minimum(chances[mine], _BELOW_ONE) + local, side="right")
        items[mine] = places - local * positives.n_items
    return items


def _weights(
    ranks: FactorRanks,
    positives: Positives,
    anchors: NDArray[np.int64],
    vectors: NDArray[np.float64],
    scale: float,
) -> NDArray[np.float64]:
    """(R, n) chances up to a number for each row, 0 for what is known.

    Ranks count from the best that is free: else all could vanish, where the known items rank high and scale is small.
    """
    n = positives.n_items
    every = np.broadcast_to(np.arange(n), (len(anchors), n))
    free = ~positives.contains(anchors, every, relation="any")
    shares = ranks.shares(vectors)
    shares = shares / shares.sum(axis=1, keepdims=True)
    best = np.full((len(anchors), 1), n)
    for rank, share in _signed(ranks, vectors, shares):
        there = free & (share[:, None] > 0)
        best = np.minimum(best, np.where(there, rank, n).min(axis=1, keepdims=True))
    weights = np.zeros((len(anchors), n))
    for rank, share in _signed(ranks, vectors, shares):
        weights += share[:, None] * np.exp(np.minimum(best - rank, 0) / scale)
    return np.where(free, weights, 0.0)


def _signed(ranks: FactorRanks, vectors: NDArray[np.float64], shares: NDArray[np.float64]) -> Any:
    """For each factor: (R, n) the rank of every item in the direction of each anchor, and (R,) the factor's share."""
    n = ranks.order.shape[1]
    for factor, order in enumerate(ranks.order):
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        yield np.where(vectors[:, factor, None] > 0, rank, n - 1 - rank), shares[:, factor]

"""Steps of random walks over weighted edges, many at a time, and the rejection of what may not be drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import Rows
from naysay.checks import as_floats, check_all, raise_invalid
from naysay.pools._slots import shortfall
from naysay.types import Negatives

_ROUND = 4  # walks of a round for each slot

Ids = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class EdgeSteps:
    """Edges as CSR with the cumulated weights of all edges, so that a step is one binary search."""

    indptr: Ids
    indices: NDArray[Any]
    cumulated: NDArray[np.float64]  # (edges + 1,)

    def next(self, nodes: Ids, uniform: NDArray[np.float64]) -> Ids:
        """One step from each node, by the weights of its edges; -1 from -1 and from a node without edges."""
        start, stop = self.indptr[np.maximum(nodes, 0)], self.indptr[np.maximum(nodes, 0) + 1]
        low, high = self.cumulated[start], self.cumulated[stop]
        place = np.searchsorted(self.cumulated, low + uniform * (high - low), "right") - 1
        stuck = (nodes < 0) | (high <= low)
        place = np.where(stuck, 0, np.clip(place, start, np.maximum(stop - 1, start)))
        return np.where(stuck, -1, self.indices[place] if len(self.indices) else -1)

    def matrix(self) -> NDArray[np.float64]:
        """(n, n) the probabilities of a step, dense, for small graphs; a row of zeros for a node without edges."""
        n = len(self.indptr) - 1
        rows = np.repeat(np.arange(n), np.diff(self.indptr))
        weights = np.zeros((n, n))
        np.add.at(weights, (rows, self.indices), np.diff(self.cumulated))
        total = weights.sum(axis=1, keepdims=True)
        return np.asarray(weights / np.where(total > 0, total, 1.0))


def edge_steps(edges: Rows, weights: Any) -> EdgeSteps:
    """Check the weights of edges, one for each in the order of the rows; None for equal ones."""
    indptr, indices = edges.indptr, edges.indices
    if weights is None:
        return EdgeSteps(indptr, indices, np.arange(len(indices) + 1.0))
    given = as_floats("weights", weights)
    if given.shape != (len(indices),):
        raise_invalid("weights", f"of shape ({len(indices)},), one for each edge", f"shape {given.shape}")
    check_all("weights", given, np.isfinite(given) & (given >= 0), "finite and at least 0")
    return EdgeSteps(indptr, indices, np.concatenate([[0.0], np.cumsum(given)]))


def generator(key: np.uint64, round_: int) -> np.random.Generator:
    """The generator of a round of a call."""
    return np.random.Generator(np.random.Philox(key=[int(key), round_]))


def first_allowed(
    propose: Callable[[np.random.Generator, int], Ids],
    forbidden: Callable[[Ids], NDArray[np.bool_]],
    counts: Ids,
    width: int,
    *,
    key: np.uint64,
    walks: int,
    distinct: bool,
    on_short: str,
) -> Negatives:
    """The first proposals of each row that are allowed, and new in a distinct row; at most `walks` proposals each.

    `propose` makes (B, m) ids, -1 for none; `forbidden` is called with ids of at least 0.
    """
    ids = np.full((len(counts), width), -1, np.int64)
    many = max(_ROUND * width, 1)
    for round_ in range(-(-walks // many)):
        if not width or (np.count_nonzero(ids >= 0, axis=1) >= counts).all():
            break
        fresh = propose(generator(key, round_), min(many, walks - round_ * many))
        good = fresh >= 0
        good[good] = ~forbidden(np.maximum(fresh, 0))[good]
        both = np.concatenate([ids, np.where(good, fresh, -1)], axis=1)
        if distinct:
            both[repeated(both)] = -1
        ids = np.take_along_axis(both, np.argsort(both < 0, axis=1, kind="stable"), axis=1)[:, :width]
    ids[np.arange(width) >= counts[:, None]] = -1
    return Negatives(ids, dropped=shortfall(on_short, ids, counts))


def repeated(ids: Ids) -> NDArray[np.bool_]:
    """(B, n) whether an id was in an earlier slot of its row."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    later = np.zeros(ids.shape, bool)
    np.put_along_axis(later, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return later

"""disagreement: neighbours by distance that are no neighbours along the data, and the reverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_floats, check_number, check_whole, public, raise_invalid
from naysay.search.exact import search

_CLOSE = 1e-6  # the residual of a solution, relative to its right-hand side
_ROUNDS = 200  # of conjugate gradients, at most
_SMALLEST = 1e-300  # in place of a norm of 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Disagreement:
    """Lists of ids for each sample, -1 at the end of a row.

    Attributes:
        negatives: (n, k) near by cosine, far along the data: hard negatives, for `pools.Local`.
        positives: (n, k) near along the data, far by cosine: hard positives.
    """

    negatives: NDArray[np.int64]
    positives: NDArray[np.int64]


@public
def disagreement(vectors: Any, *, k: int, graph: int = 30, alpha: float = 0.99) -> Disagreement:
    """Compare each sample's k nearest by cosine with its k nearest by diffusion over a graph of neighbours.

    The graph connects samples that are each among the other's `graph` nearest, with weight cosine^3 where that is
    positive. S is its adjacency matrix, divided by the roots of both degrees. The likeness along the data of all
    samples to sample r is f of (I - alpha S) f = e_r, solved by conjugate gradients. No labels are used.

    Iscen, Tolias, Avrithis, Chum. Mining on Manifolds. CVPR 2018. Cost: an exact search, and O(n^2) for the solutions.

    Args:
        vectors: (n, d), other than 0.
        k: How many nearest of both kinds are compared.
        graph: Neighbours of the graph.
        alpha: How far likeness spreads, in [0, 1).

    Returns:
        Both lists; they share no id.

    Examples:
        >>> angle = np.linspace(0, 3.1, 40)
        >>> disagreement(np.stack([np.cos(angle), np.sin(angle)], axis=1), k=5, graph=4).negatives.shape
        (40, 5)
    """
    points = as_floats("vectors", to_numpy(vectors))
    if points.ndim != 2:
        raise_invalid("vectors", "of shape (n, d)", f"shape {points.shape}")
    check_whole("k", k, 1)
    check_whole("graph", graph, 1)
    check_number("alpha", alpha, at_least=0, below=1)
    n = len(points)
    nearest = _others(search(points, points, min(max(k, graph) + 1, n)).ids) if n else np.empty((0, 0), np.int64)
    adjacency = _mutual(points, nearest[:, :graph])
    by_cosine = np.full((n, k), -1, np.int64)
    by_cosine[:, : nearest.shape[1]] = nearest[:, :k]
    along = np.full((n, k), -1, np.int64)
    for sample in range(n):
        likeness = _diffused(adjacency, sample, alpha)
        likeness[sample] = 0.0
        order = np.argsort(-likeness, kind="stable")[:k]
        along[sample, : len(order)] = np.where(likeness[order] > 0, order, -1)
    return Disagreement(_without(by_cosine, along), _without(along, by_cosine))


def _others(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, m - 1) the same without the sample itself, or without the last where it is not among them."""
    is_self = ids == np.arange(len(ids))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    return np.asarray(ids[~is_self].reshape(len(ids), ids.shape[1] - 1), np.int64)


def _mutual(vectors: NDArray[np.float64], nearest: NDArray[np.int64]) -> Any:
    """S: samples that are nearest each other, with their weights, as a sparse matrix."""
    from scipy.sparse import csr_array  # here, because `mine` loads this module and seldom those

    n = len(vectors)
    rows, columns = np.repeat(np.arange(n), nearest.shape[1]), nearest.ravel()
    filled = columns >= 0
    is_near = csr_array((np.ones(filled.sum()), (rows[filled], columns[filled])), shape=(n, n))
    rows, columns = (is_near * is_near.T).nonzero()
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _SMALLEST)
    weights = np.maximum((units[rows] * units[columns]).sum(axis=1), 0.0) ** 3
    degree = np.bincount(rows, weights, n)
    scale = np.sqrt(np.where(degree > 0, degree, 1.0))
    return csr_array((weights / (scale[rows] * scale[columns]), (rows, columns)), shape=(n, n))


def _diffused(adjacency: Any, sample: int, alpha: float) -> NDArray[np.float64]:
    """(n,) the solution of (I - alpha S) f = e_r, by conjugate gradients."""
    from scipy.sparse.linalg import LinearOperator, cg

    n = adjacency.shape[0]
    start = np.zeros(n)
    start[sample] = 1.0
    operator = LinearOperator((n, n), matvec=lambda values: values - alpha * (adjacency @ values), dtype=np.float64)
    solution, _ = cg(operator, start, rtol=_CLOSE, maxiter=_ROUNDS)
    return np.asarray(solution, np.float64)


def _without(ids: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, k) the ids that are not among the row's others, to the left."""
    kept = np.where((ids[:, :, None] == others[:, None]).any(axis=2), -1, ids)
    return np.take_along_axis(kept, np.argsort(kept < 0, axis=1, kind="stable"), axis=1)

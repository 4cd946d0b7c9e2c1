"""Euclid: every metric as a Euclidean distance of float32 vectors, which is all that an index knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.kernels.dots import COSINE, DOT
from naysay.search._unresolved_pairs import norms_of

Block = NDArray[np.float32]
_FAR = 1e15  # times the corpus's norms: what float32 can square


@final
@dataclass(frozen=True, slots=True)
class Euclid:
    """The map of rows to a space where the nearest is the best.

    cosine   x / |x|: |a - b|^2 = 2 - 2 cos
    l2       x / M, M the largest norm of the corpus
    dot      a corpus row becomes (x, sqrt(M^2 - |x|^2)) / M, a query (x, 0) / |x|: then |a - b|^2 = 2 - 2 q.c / (|q| M)

    Bachrach et al. Speeding Up the Xbox Recommender System Using a Euclidean Transformation for Inner-Product Spaces.
    RecSys 2014.
    """

    metric: int
    largest: float

    def width(self, width: int) -> int:
        """The width of a row after it."""
        return width + (self.metric == DOT)

    def corpus(self, rows: NDArray[Any]) -> Block:
        """(n, width) corpus rows, float32 or float64, in the space."""
        norms = norms_of(rows)
        if self.metric == COSINE:
            return _divided(rows, norms)
        scaled = _divided(rows, np.full(len(rows), self.largest or 1.0))
        if self.metric == DOT:
            rest = np.sqrt(np.maximum(0.0, 1 - (norms / (self.largest or 1.0)) ** 2))
            return np.column_stack([scaled, rest.astype(np.float32)])
        return scaled

    def queries(self, rows: NDArray[np.float64], norms: NDArray[np.float64]) -> Block:
        """(n, width) queries in the space."""
        if self.metric == COSINE:
            return _divided(rows, norms)
        if self.metric == DOT:
            scaled = _divided(rows, np.where(norms > 0, norms, 1.0))
            return np.column_stack([scaled, np.zeros(len(rows), np.float32)])
        return _divided(rows, np.full(len(rows), self.largest or 1.0))

    def check_queries(self, largest: float) -> None:
        """Refuse queries so far away that float32 cannot tell the corpus rows apart."""
        if self.metric not in (COSINE, DOT) and largest > _FAR * (self.largest or 1.0):
            rule = f"of norms up to {_FAR:g} times those of the corpus"
            raise_invalid("queries", rule, f"{largest:.3g} and {self.largest:.3g}", "Search exactly.")


def _divided(rows: NDArray[Any], by: NDArray[np.float64]) -> Block:
    return np.ascontiguousarray((rows / by[:, None]).astype(np.float32))

"""The pairs of a block of queries that no bound has ruled out yet, in buffers that are used again."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.kernels import bounds_scan as opens
from naysay.kernels import dots
from naysay.search._bounds import Units
from naysay.search.vectors import Vectors

FETCHED = 2048  # rows of a file that are scored exactly at a time


@final
class Exact:
    """The fixed kernel over a corpus: scores of listed pairs, wherever the corpus lies."""

    def __init__(self, units: Units, corpus: Vectors, norms: NDArray[np.float64] | None) -> None:
        """`norms` are those of the rows, where the corpus is in memory."""
        self.metric, self.corpus, self.norms = units.metric, corpus, norms

    def gathered(
        self, queries: NDArray[np.float64], query_norms: NDArray[np.float64], counts: Any, ids: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """The scores of counts[row] ascending ids of each row; those of a file are fetched, some at a time."""
        out = np.empty(ids.shape, np.float32)
        whole, norms = self.corpus.whole, self.norms
        if whole is not None and norms is not None:
            arguments = (queries, query_norms, frozen(whole), frozen(norms), 0, counts, ids, out)
            dots.listed_scores(0, len(ids), self.metric, *arguments)
            return out
        used = np.arange(ids.shape[1]) < counts[:, None]
        wanted, inverse = np.unique(ids[used], return_inverse=True)
        places = np.zeros_like(ids)
        places[used] = inverse
        for first in range(0, len(wanted), FETCHED):
            rows = floats(self.corpus.take(wanted[first : first + FETCHED].astype(np.int64)))
            arguments = (queries, query_norms, frozen(rows), frozen(norms_of(rows)), first, counts, places, out)
            dots.listed_scores(0, len(ids), self.metric, *arguments)
        return out


@final
class OpenPairs:
    """Per query: a limit, and ids with their upper and lower bounds, ascending by id.

    Args:
        wanted: How many of the best are asked for.
        room: How many pairs a query can have open; where more would be, they are scored exactly at once.
    """

    def __init__(self, rows: int, wanted: int, room: int) -> None:
        """Room for a block of queries."""
        self.wanted, self.room = wanted, room
        self.limits, self.counts = np.empty(rows, np.float32), np.empty(rows, np.int64)
        self.above = np.empty(rows, np.int64)
        self.ids = np.empty((rows, room), np.int32)
        self.uppers, self.lowers = np.empty((rows, room), np.float32), np.empty((rows, room), np.float32)

    def reset(self) -> None:
        """Forget all pairs."""
        self.limits[:], self.counts[:], self.above[:] = -np.inf, 0, 0

    def part(self, start: int, stop: int) -> tuple[NDArray[Any], ...]:
        """limits, counts, ids, uppers, lowers of some queries, as the loops take them."""
        part = slice(start, stop)
        return self.limits[part], self.counts[part], self.ids[part], self.uppers[part], self.lowers[part]

    def resolve(
        self,
        rows: NDArray[np.int64],
        exact: Exact,
        units: Units,
        queries: NDArray[np.float64],
        norms: NDArray[np.float64],
        caps: NDArray[np.float32],
        at_once: int,
    ) -> None:
        """Score all open pairs of these queries exactly and keep the best within the caps: equal ones of larger ids go.

        This is what bounds the memory where thousands of corpus rows are alike. `at_once` queries are done together.
        """
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            counts, ids = self.counts[some], self.ids[some]
            scores = exact.gathered(queries[some], norms[some], counts, ids)
            above = self.above[some]
            opens.drop_above(0, len(some), caps[some], above, counts, ids, scores)
            self.above[some] = above
            best = np.empty((len(some), self.wanted), np.int64)
            best_scores = np.empty(best.shape, np.float32)
            opens.best(0, len(some), counts, ids, scores, best, best_scores)
            left = np.minimum(counts, self.wanted)
            order = np.argsort(np.where(best < 0, np.iinfo(np.int64).max, best), axis=1)
            self.ids[some, : self.wanted] = np.take_along_axis(best, order, 1)
            bounds = units.of_scores(np.take_along_axis(best_scores, order, 1), norms[some, None])
            self.uppers[some, : self.wanted] = self.lowers[some, : self.wanted] = bounds
            # The lowest of as many as are wanted; with fewer than that the limit is what it was.
            self.limits[some] = np.where(left == self.wanted, bounds.min(axis=1), self.limits[some])
            self.counts[some] = left


def floats(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows as the loops read them: float32 or float64, in C order."""
    kind = np.float32 if rows.dtype == np.float16 else rows.dtype
    return np.ascontiguousarray(rows, kind)


def norms_of(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The norms of rows, by the fixed kernel."""
    found = np.empty(len(rows))
    dots.norms(0, len(rows), frozen(rows), found)
    return found

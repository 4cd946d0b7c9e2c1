"""Exact scores of listed pairs, by the one kernel that scores everything: float64 sums in index order, then float32."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.kernels import dots
from naysay.kernels.threads import in_rows
from naysay.search.vectors import Vectors

Ids = NDArray[np.int64]
METRICS: Mapping[str, int] = MappingProxyType({"dot": dots.DOT, "cosine": dots.COSINE, "l2": dots.L2})
FETCHED = 2048  # rows of a file that are scored at a time
_NUMBERS = 1 << 22  # numbers of vectors that are held at a time, on either side


def floats(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows as the kernels read them: float32 or float64, in C order."""
    kind = np.float32 if rows.dtype == np.float16 else rows.dtype
    return np.ascontiguousarray(rows, kind)


def norms_of(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the norms of rows."""
    norms = np.empty(len(rows))
    dots.norms(0, len(rows), frozen(rows), norms)
    return norms


@final
class ExactScores:
    """Scores of listed pairs of query vectors and rows of a corpus, in memory or in a file.

    Args:
        metric: DOT, COSINE or L2.
        corpus: The corpus.
        norms: The norms of its rows where it is in memory, else None.
    """

    def __init__(self, metric: int, corpus: Vectors, norms: NDArray[np.float64] | None) -> None:
        self.metric, self.corpus, self.norms = metric, corpus, norms

    def of(
        self, queries: NDArray[np.float64], query_norms: NDArray[np.float64], counts: Any, ids: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """(n, m) scores of the first counts[row] ids of each row, which ascend; the rest is undefined."""
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


def pair_scores(queries: Vectors, corpus: Vectors, anchors: Ids, items: Ids, metric: str) -> NDArray[np.float32]:
    """(p,) the score of each pair (query row, corpus row), as a search gives it.

    Pairs are scored in the order of their items, so that a corpus on disk is read once. O(p d).
    """
    scores = np.empty(len(items), np.float32)
    order = np.argsort(items, kind="stable")
    step = max(1, _NUMBERS // max(1, corpus.width))
    for start in range(0, len(order), step):
        part = order[start : start + step]
        sides = [frozen(taken(side, ids[part])) for side, ids in ((queries, anchors), (corpus, items))]
        lengths = []
        for side in sides:
            length = np.empty(len(part))
            in_rows(dots.norms, len(part), side.size, side, length)
            lengths.append(frozen(length))
        out = np.empty((len(part), 1), np.float32)
        own, one = frozen(np.arange(len(part))[:, None]), frozen(np.ones(len(part), np.int64))
        arguments = (METRICS[metric], sides[0], lengths[0], sides[1], lengths[1], 0, one, own, out)
        in_rows(dots.listed_scores, len(part), sides[0].size, *arguments)
        scores[part] = out[:, 0]
    return scores


def taken(vectors: Vectors, ids: Ids) -> NDArray[Any]:
    """(p, d) the rows of these ids, which may repeat, as float32 or float64."""
    wanted, places = np.unique(ids, return_inverse=True)
    rows = np.asarray(vectors.take(wanted))
    kind = np.float64 if rows.dtype == np.float64 else np.float32
    return np.ascontiguousarray(rows.astype(kind, copy=False)[places.reshape(-1)])


def lowest_of(anchors: Ids, scores: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """(n,) the lowest score of each anchor, NaN where it has none."""
    lowest = np.full(n, np.inf, np.float32)
    np.minimum.at(lowest, anchors, scores)
    return np.where(np.isinf(lowest), np.float32(np.nan), lowest)

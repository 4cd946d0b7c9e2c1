"""Scores in plain NumPy: small searches, norms, and few pairs. Loops that are compiled would take seconds to compile.

A score is the float64 sum over the coordinates in index order, each product and each sum rounded, then rounded to
float32 once: the same bytes as in `kernels.dots`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats
from naysay.kernels.dots import COSINE, L2
from naysay.search.vectors import Vectors, floats

_CELLS = 1 << 17  # scores of a block, 1 MB of float64: what a processor's cache holds
_NUMBERS = 1 << 17  # coordinates of a block of either side, 1 MB of float64
_CELL = 44  # bytes of a score of a block: sum, term, score and sorting keys
_NORM_NUMBERS = 1 << 16  # coordinates whose squares stay in the cache
_EMPTY = np.uint64(0xFFFFFFFF)  # the id of an empty slot in a sorting key


def fill_norms(start: int, stop: int, rows: NDArray[Any], out: Floats) -> None:
    """out[row] = the square root of the sum of squares in index order, for the rows from start to stop."""
    at_once = max(1, _NORM_NUMBERS // max(1, rows.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):  # a survey finds such rows by their norms
        for first in range(start, stop, at_once):
            last = min(first + at_once, stop)
            squares = np.array(rows[first:last].T, np.float64, order="C")
            squares *= squares
            # NumPy adds the coordinates, which are the rows here, one after another.
            np.sqrt(np.add.reduce(squares, axis=0), out=out[first:last])


def norms(rows: NDArray[Any]) -> Floats:
    """(n,) the norms of rows (n, d)."""
    found = np.empty(len(rows))
    fill_norms(0, len(rows), rows, found)
    return found


def rounded(metric: int, totals: Floats, query_norms: Floats, row_norms: Floats) -> NDArray[np.float32]:
    """The float32 scores of float64 sums; adding 0 turns -0 into 0, so that equal scores are equal bytes."""
    if metric == COSINE:
        with np.errstate(invalid="ignore", divide="ignore"):  # a zero vector has no cosine: NaN, as in the loops
            totals = totals / (query_norms * row_norms)
    elif metric == L2:
        totals = -np.sqrt(totals)
    return np.asarray((totals + 0.0).astype(np.float32))


def pair_scores(
    metric: int, queries: NDArray[Any], query_norms: Floats, rows: NDArray[Any], row_norms: Floats
) -> NDArray[np.float32]:
    """(p,) the score of queries[i] and rows[i], both (p, d)."""
    totals = np.zeros(len(queries))
    columns = (np.ascontiguousarray(side.T, np.float64) for side in (queries, rows))
    for one, other in zip(*columns, strict=True):
        totals += (one - other) ** 2 if metric == L2 else one * other
    return rounded(metric, totals, query_norms, row_norms)


def all_scores(
    metric: int, queries: NDArray[Any], query_norms: Floats, columns: Floats, row_norms: Floats
) -> NDArray[np.float32]:
    """(n, m) the score of every pair; `columns` are the rows of the corpus transposed, (d, m) float64."""
    totals = np.zeros((len(queries), columns.shape[1]))
    term = np.empty_like(totals)
    coordinates = queries.astype(np.float64)
    for place, column in enumerate(columns):
        coordinate = coordinates[:, place, None]
        if metric == L2:
            np.subtract(coordinate, column, out=term)
            np.multiply(term, term, out=term)
        else:
            np.multiply(coordinate, column, out=term)
        totals += term
    return rounded(metric, totals, query_norms[:, None], row_norms)


def top(ids: NDArray[Any], scores: NDArray[np.float32], depth: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(n, min(m, depth)) the best of each row: score descending, id ascending; -1 where a score is -inf.

    `ids` are (m,) or (n, m), below 2^32 - 1. No score is NaN or -0. A key has the score, as a number that sorts
    downwards, in its upper half and the id below, so that one sort of numbers gives the order.
    """
    bits = np.ascontiguousarray(scores).view(np.uint32)
    falling = np.where(bits >> np.uint32(31), bits, np.uint32(0x7FFFFFFF) - bits)
    keys = falling.astype(np.uint64) << np.uint64(32)
    keys |= np.where(np.isneginf(scores), _EMPTY, ids.astype(np.uint64))
    if keys.shape[1] > depth:
        keys.partition(depth - 1, axis=1)
        keys = keys[:, :depth].copy()
    keys.sort(axis=1)
    low = keys & _EMPTY
    falling = (keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(falling >> np.uint32(31), falling, np.uint32(0x7FFFFFFF) - falling)
    return np.where(low == _EMPTY, -1, low.astype(np.int64)), bits.view(np.float32)


def _sizes(n_queries: int, corpus: Vectors) -> tuple[int, int]:
    """Queries and corpus rows of a block."""
    items = min(corpus.n, max(1, _NUMBERS // corpus.width))
    queries = min(n_queries, max(1, min(_CELLS // max(1, items), _NUMBERS // corpus.width)))
    return queries, items


def search_bytes(n_queries: int, corpus: Vectors) -> int:
    """The memory of a search beside its result."""
    queries, items = _sizes(n_queries, corpus)
    return (queries + items) * corpus.width * (2 * corpus.dtype.itemsize + 8) + queries * items * _CELL


def search(
    metric: int,
    queries: Vectors,
    query_norms: Floats | None,
    corpus: Vectors,
    corpus_norms: Floats | None,
    excluded: tuple[NDArray[np.int64], NDArray[Any]],
    found_ids: NDArray[np.int64],
    found_scores: NDArray[np.float32],
    on_progress: Callable[[float], None] | None,
) -> None:
    """Fill ids and scores by the scores of all pairs. `excluded` is (indptr, indices) of rows that are left out."""
    depth = found_ids.shape[1]
    queries_at_once, items_at_once = _sizes(queries.n, corpus)
    for first in range(0, corpus.n, items_at_once):
        last = min(first + items_at_once, corpus.n)
        items = floats(corpus.rows(first, last))
        item_norms = norms(items) if corpus_norms is None else corpus_norms[first:last]
        columns = np.array(items.T, np.float64, order="C")
        ids = np.arange(first, last)
        for start in range(0, queries.n, queries_at_once):
            stop = min(start + queries_at_once, queries.n)
            rows = floats(queries.rows(start, stop))
            row_norms = norms(rows) if query_norms is None else query_norms[start:stop]
            scores = all_scores(metric, rows, row_norms, columns, item_norms)
            _exclude(scores, excluded, start, first)
            best_ids, best_scores = top(ids, scores, depth)
            if first > 0:
                best_ids = np.concatenate([found_ids[start:stop], best_ids], axis=1)
                best_scores = np.concatenate([found_scores[start:stop], best_scores], axis=1)
                best_ids, best_scores = top(best_ids, best_scores, depth)
            width = best_ids.shape[1]
            found_ids[start:stop, :width], found_scores[start:stop, :width] = best_ids, best_scores
            if on_progress is not None:
                on_progress((stop - start) * (last - first) / corpus.n)


def _exclude(
    scores: NDArray[np.float32], excluded: tuple[NDArray[np.int64], NDArray[Any]], first_query: int, first_item: int
) -> None:
    """Set the scores of excluded pairs of a block to -inf."""
    indptr, indices = excluded
    ends = indptr[first_query : first_query + len(scores) + 1]
    rows = np.repeat(np.arange(len(scores)), np.diff(ends))
    columns = indices[ends[0] : ends[-1]].astype(np.int64) - first_item
    inside = (columns >= 0) & (columns < scores.shape[1])
    scores[rows[inside], columns[inside]] = -np.inf

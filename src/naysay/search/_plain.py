"""Small searches in plain NumPy: the same bytes as the compiled loops, which take seconds to compile.

A score is the float64 sum over the coordinates in index order, each product and each sum rounded, then rounded to
float32 once: see `kernels.dots`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats
from naysay.kernels import dots
from naysay.kernels.dots import COSINE, L2
from naysay.kernels.threads import in_rows

_CELLS = 1 << 17  # scores of a block, 1 MB of float64: what a processor's cache holds
FEW_NUMBERS = 1 << 22  # coordinates up to which NumPy takes some milliseconds, and compiling a loop a second


def norms(rows: NDArray[Any]) -> Floats:
    """The norms of rows (n, d)."""
    found = np.empty(len(rows))
    if rows.size > FEW_NUMBERS:
        in_rows(dots.norms, len(rows), rows.size, rows, found)
        return found
    found[:] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # a survey finds such rows by their norms
        for column in np.ascontiguousarray(rows.T, np.float64):
            found += column * column
        return np.asarray(np.sqrt(found))


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


def is_few(*sides: NDArray[Any]) -> bool:
    """Whether the coordinates of some sides are few enough for `pair_scores`."""
    return sum(side.size for side in sides) <= FEW_NUMBERS


def best_rows(
    metric: int,
    queries: NDArray[Any],
    corpus: NDArray[Any],
    corpus_norms: Floats,
    excluded: tuple[NDArray[Any], ...],
    caps: NDArray[np.float32],
    found: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]],
    on_progress: Callable[[float], None] | None,
) -> None:
    """Fill `found`, (ids, scores, above), of a search: score descending, id ascending, at most the caps.

    Args:
        metric: DOT, COSINE or L2.
        queries: (n, d).
        corpus: (m, d).
        corpus_norms: (m,).
        excluded: (indptr, indices, filter): corpus rows that each query may not get.
        caps: (n,) the highest score that each query may get.
        found: (ids (n, depth), scores (n, depth), above (n,)), all to be written.
        on_progress: Gets the number of further queries done.
    """
    ids, scores, above = found
    indptr, indices = excluded[:2]
    columns = np.ascontiguousarray(corpus.T, np.float64)
    query_norms = norms(queries)
    queries_at_once = max(1, _CELLS // len(corpus))
    for start in range(0, len(queries), queries_at_once):
        block = slice(start, min(start + queries_at_once, len(queries)))
        all_scores = _all_scores(metric, queries[block], query_norms[block], columns, corpus_norms)
        degrees = np.diff(indptr[block.start : block.stop + 1])
        known_rows = np.repeat(np.arange(len(degrees)), degrees)
        known_items = indices[indptr[block.start] : indptr[block.stop]]
        all_scores[known_rows, known_items] = -np.inf
        too_high = all_scores > caps[block, None]
        above[block] = too_high.sum(axis=1)
        all_scores[too_high] = -np.inf
        ids[block], scores[block] = _highest(all_scores, ids.shape[1])
        if on_progress is not None:
            on_progress(block.stop - block.start)


def _all_scores(
    metric: int, queries: NDArray[Any], query_norms: Floats, columns: Floats, corpus_norms: Floats
) -> NDArray[np.float32]:
    """(n, m) the score of every pair; `columns` is the corpus transposed, (d, m)."""
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
    return rounded(metric, totals, query_norms[:, None], corpus_norms)


def _highest(scores: NDArray[np.float32], depth: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(n, depth) the ids and scores of the highest scores of each row in order; -1 and -inf where there are fewer."""
    rows, columns = scores.shape
    ids = np.full((rows, depth), -1, np.int64)
    best = np.full((rows, depth), -np.inf, np.float32)
    kept = min(depth, columns)
    lowest = np.partition(scores, columns - kept, axis=1)[:, columns - kept]
    row, column = np.nonzero((scores >= lowest[:, None]) & (scores > -np.inf))
    value = scores[row, column]
    order = np.lexsort((column, -value, row))
    row, column, value = row[order], column[order], value[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)  # within its row
    within = place < depth
    ids[row[within], place[within]] = column[within]
    best[row[within], place[within]] = value[within]
    return ids, best

"""The one kernel that defines the score of a pair: float64, in index order, rounded to float32 once.

Sums run over the coordinates in order, each product and each sum rounded to float64: no reordering, no fused steps, so
the same bytes come out on every machine. Speed comes from eight rows side by side, each with a sum of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels._intrinsics import EIGHT, eight_products, eight_squares
from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound

DOT, COSINE, L2 = 0, 1, 2


@inlined
def _score(metric: Any, total: Any, query_norm: Any, norm: Any) -> Any:
    """The float32 score; adding 0 turns -0 into 0, so that equal scores are equal bytes."""
    if metric == COSINE:
        total = total / (query_norm * norm)
    elif metric == L2:
        total = -np.sqrt(total)
    return np.float32(total + 0.0)


@compiled
def norms(start: Any, stop: Any, rows: Any, out: Any) -> None:
    """out[row] = the square root of the sum of squares, in index order."""
    for row in range(start, stop, 4):
        # Past the last row the same row is done again: one loop, and no case for what is left over.
        second, third, fourth = min(row + 1, stop - 1), min(row + 2, stop - 1), min(row + 3, stop - 1)
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for i in range(rows.shape[1]):
            one, two = np.float64(rows[row, i]), np.float64(rows[second, i])
            three, four = np.float64(rows[third, i]), np.float64(rows[fourth, i])
            a += one * one
            b += two * two
            c += three * three
            d += four * four
        out[row], out[second], out[third], out[fourth] = np.sqrt(a), np.sqrt(b), np.sqrt(c), np.sqrt(d)


@compiled
def all_scores(
    start: Any, stop: Any, metric: Any, queries: Any, query_norms: Any, rows: Any, row_norms: Any, out: Any
) -> None:
    """out[query, row] = the score of every pair."""
    every = np.arange(len(rows))
    query = np.empty(queries.shape[1], np.float64)
    for q in range(start, stop):
        query[:] = queries[q]
        _score_listed(metric, query, query_norms[q], rows, row_norms, 0, every, out[q])


@inlined
def _score_listed(
    metric: Any, query: Any, query_norm: Any, rows: Any, norms: Any, first: Any, ids: Any, out: Any
) -> None:
    """out[slot] = the score of rows[ids[slot] - first], eight at a time; past the end the last one is done again."""
    places, sums, width = np.empty(2 * EIGHT, np.int64), np.empty(EIGHT, np.float64), len(query)
    for slot in range(0, len(ids), EIGHT):
        for i in range(2 * EIGHT):
            places[i] = ids[min(slot + i, len(ids) - 1)] - first
        if metric == L2:
            eight_squares(query, rows, places, sums)
        else:
            eight_products(query, rows, places, sums)
        for i in range(min(EIGHT, len(ids) - slot)):
            total, row = sums[i], rows[places[i]]
            for last in range(width - width % EIGHT, width):
                value = np.float64(row[last])
                total += (query[last] - value) * (query[last] - value) if metric == L2 else query[last] * value
            out[slot + i] = _score(metric, total, query_norm, norms[places[i]])


@compiled
def listed_scores(
    start: Any,
    stop: Any,
    metric: Any,
    queries: Any,
    query_norms: Any,
    rows: Any,
    row_norms: Any,
    first: Any,
    counts: Any,
    ids: Any,
    out: Any,
) -> None:
    """out[query, slot] = the score of the pair (query, ids[query, slot]), where the id is among `rows`.

    `rows` are those from the id `first` on. A query has counts[query] ids, ascending; others are left as they are.
    """
    query = np.empty(queries.shape[1], np.float64)
    for q in range(start, stop):
        slot = lower_bound(ids[q], 0, counts[q], first)
        end = lower_bound(ids[q], slot, counts[q], first + len(rows))
        if slot < end:
            query[:] = queries[q]
            _score_listed(metric, query, query_norms[q], rows, row_norms, first, ids[q, slot:end], out[q, slot:end])

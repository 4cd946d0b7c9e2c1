"""The one kernel that defines the score of a pair: float64, in index order, rounded to float32 once.

Sums run over the coordinates in order, each product and each sum rounded to float64: no reordering, no fused steps, so
the same bytes come out on every machine. Speed comes from four rows side by side, each with a sum of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound

DOT, COSINE, L2 = 0, 1, 2


@inlined
def _dot(query: Any, row: Any) -> Any:
    total = 0.0
    for i in range(len(query)):
        total += query[i] * np.float64(row[i])
    return total


@inlined
def _dots(query: Any, one: Any, two: Any, three: Any, four: Any) -> Any:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(len(query)):
        value = query[i]
        a += value * np.float64(one[i])
        b += value * np.float64(two[i])
        c += value * np.float64(three[i])
        d += value * np.float64(four[i])
    return a, b, c, d


@inlined
def _apart(query: Any, row: Any) -> Any:
    total = 0.0
    for i in range(len(query)):
        gap = query[i] - np.float64(row[i])
        total += gap * gap
    return total


@inlined
def _aparts(query: Any, one: Any, two: Any, three: Any, four: Any) -> Any:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(len(query)):
        value = query[i]
        first, second = value - np.float64(one[i]), value - np.float64(two[i])
        third, fourth = value - np.float64(three[i]), value - np.float64(four[i])
        a += first * first
        b += second * second
        c += third * third
        d += fourth * fourth
    return a, b, c, d


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
    width = rows.shape[1]
    row = start
    while row + 4 <= stop:
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for i in range(width):
            one, two = np.float64(rows[row, i]), np.float64(rows[row + 1, i])
            three, four = np.float64(rows[row + 2, i]), np.float64(rows[row + 3, i])
            a += one * one
            b += two * two
            c += three * three
            d += four * four
        out[row], out[row + 1], out[row + 2], out[row + 3] = np.sqrt(a), np.sqrt(b), np.sqrt(c), np.sqrt(d)
        row += 4
    while row < stop:
        total = 0.0
        for i in range(width):
            value = np.float64(rows[row, i])
            total += value * value
        out[row] = np.sqrt(total)
        row += 1


@compiled
def all_scores(
    start: Any, stop: Any, metric: Any, queries: Any, query_norms: Any, rows: Any, row_norms: Any, out: Any
) -> None:
    """out[query, row] = the score of every pair."""
    query = np.empty(queries.shape[1], np.float64)
    for q in range(start, stop):
        query[:] = queries[q]
        for row in range(len(rows)):
            total = _apart(query, rows[row]) if metric == L2 else _dot(query, rows[row])
            out[q, row] = _score(metric, total, query_norms[q], row_norms[row])


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
    last = first + len(rows)
    query = np.empty(queries.shape[1], np.float64)
    for q in range(start, stop):
        line = ids[q]
        slot = lower_bound(line, 0, counts[q], first)
        end = lower_bound(line, slot, counts[q], last)
        if slot == end:
            continue
        query[:] = queries[q]
        norm = query_norms[q]
        while slot + 4 <= end:
            i, j, k, m = line[slot] - first, line[slot + 1] - first, line[slot + 2] - first, line[slot + 3] - first
            if metric == L2:
                a, b, c, d = _aparts(query, rows[i], rows[j], rows[k], rows[m])
            else:
                a, b, c, d = _dots(query, rows[i], rows[j], rows[k], rows[m])
            out[q, slot] = _score(metric, a, norm, row_norms[i])
            out[q, slot + 1] = _score(metric, b, norm, row_norms[j])
            out[q, slot + 2] = _score(metric, c, norm, row_norms[k])
            out[q, slot + 3] = _score(metric, d, norm, row_norms[m])
            slot += 4
        while slot < end:
            i = line[slot] - first
            total = _apart(query, rows[i]) if metric == L2 else _dot(query, rows[i])
            out[q, slot] = _score(metric, total, norm, row_norms[i])
            slot += 1

"""The one kernel that defines the score of a pair: float64, in index order, rounded to float32 once.

Sums run over the coordinates in order, each product and each sum rounded to float64: no reordering, no fused steps, so
the same bytes come out on every machine. Speed comes from eight rows side by side, each with a sum of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound

DOT, COSINE, L2 = 0, 1, 2


@inlined
def _sums(metric: Any, query: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """Of eight rows: the dot products with the query, or for L2 the squared distances from it."""
    s, t, u, v, w, x, y, z = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if metric == L2:
        for i in range(len(query)):
            value = query[i]
            first, second = value - np.float64(a[i]), value - np.float64(b[i])
            third, fourth = value - np.float64(c[i]), value - np.float64(d[i])
            s += first * first
            t += second * second
            u += third * third
            v += fourth * fourth
            first, second = value - np.float64(e[i]), value - np.float64(f[i])
            third, fourth = value - np.float64(g[i]), value - np.float64(h[i])
            w += first * first
            x += second * second
            y += third * third
            z += fourth * fourth
    else:
        for i in range(len(query)):
            value = query[i]
            s += value * np.float64(a[i])
            t += value * np.float64(b[i])
            u += value * np.float64(c[i])
            v += value * np.float64(d[i])
            w += value * np.float64(e[i])
            x += value * np.float64(f[i])
            y += value * np.float64(g[i])
            z += value * np.float64(h[i])
    return s, t, u, v, w, x, y, z


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
        _score_listed(metric, query, query_norms[q], rows, row_norms, every, 0, len(rows), 0, out[q])


@inlined
def _score_listed(
    metric: Any, query: Any, norm: Any, rows: Any, norms: Any, ids: Any, slot: Any, end: Any, first: Any, out: Any
) -> None:
    """out[slot:end] = the scores of rows[ids[slot:end] - first], eight at a time; past the end the last once more."""
    last = end - 1
    while slot < end:
        p, q, r, s = slot, min(slot + 1, last), min(slot + 2, last), min(slot + 3, last)
        t, u, v, w = min(slot + 4, last), min(slot + 5, last), min(slot + 6, last), min(slot + 7, last)
        i, j, k, m = ids[p] - first, ids[q] - first, ids[r] - first, ids[s] - first
        a, b, c, d = ids[t] - first, ids[u] - first, ids[v] - first, ids[w] - first
        sums = _sums(metric, query, rows[i], rows[j], rows[k], rows[m], rows[a], rows[b], rows[c], rows[d])
        out[p], out[q] = _score(metric, sums[0], norm, norms[i]), _score(metric, sums[1], norm, norms[j])
        out[r], out[s] = _score(metric, sums[2], norm, norms[k]), _score(metric, sums[3], norm, norms[m])
        out[t], out[u] = _score(metric, sums[4], norm, norms[a]), _score(metric, sums[5], norm, norms[b])
        out[v], out[w] = _score(metric, sums[6], norm, norms[c]), _score(metric, sums[7], norm, norms[d])
        slot += 8


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
            _score_listed(metric, query, query_norms[q], rows, row_norms, ids[q], slot, end, first, out[q])

"""The score of a pair: a float64 sum in index order, each step rounded, then rounded to float32 once.

That definition gives the same bytes on every machine, but a sum in a fixed order cannot use the vector units. So a sum
in any order is taken first, with a bound on how far it can be from the sum in index order. If both ends of that
interval round to the same float32, that is the score. Otherwise, about once in 100,000 pairs, the sum in index order is
taken.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound

DOT, COSINE, L2 = 0, 1, 2
# Each of two sums of d terms, in any order and fused or not, is within (d + 1) 2^-53 of the exact sum, relative to the
# sum of absolute terms. They differ by twice that at most; doubled again for the rounding of the bound itself.
_STEP_ERROR = 2.0**-51


@partial(compiled, reorder=True)
def _four_dots(query: Any, rows: Any, places: Any) -> Any:
    """Sums of products in any order. Four rows at a time: they come from random places of memory."""
    one, two, three, four = rows[places[0]], rows[places[1]], rows[places[2]], rows[places[3]]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(len(query)):
        value = query[i]
        a += value * one[i]
        b += value * two[i]
        c += value * three[i]
        d += value * four[i]
    return a, b, c, d


@partial(compiled, reorder=True)
def _four_squares(query: Any, rows: Any, places: Any) -> Any:
    """Sums of squared differences in any order."""
    one, two, three, four = rows[places[0]], rows[places[1]], rows[places[2]], rows[places[3]]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(len(query)):
        value = query[i]
        a += (value - one[i]) * (value - one[i])
        b += (value - two[i]) * (value - two[i])
        c += (value - three[i]) * (value - three[i])
        d += (value - four[i]) * (value - four[i])
    return a, b, c, d


@compiled
def _sum_in_order(metric: Any, query: Any, row: Any) -> Any:
    """The sum that defines a score."""
    total = 0.0
    for i in range(len(query)):
        gap = query[i] - row[i]
        total += gap * gap if metric == L2 else query[i] * row[i]
    return total


@inlined
def _rounded(metric: Any, total: Any, query_norm: Any, norm: Any) -> Any:
    """The float32 score of a sum: a monotone function. Adding 0 turns -0 into 0: equal scores are equal bytes."""
    if metric == COSINE:
        total = total / (query_norm * norm)
    elif metric == L2:
        total = -np.sqrt(total)
    return np.float32(total + 0.0)


@inlined
def _score(metric: Any, total: Any, query: Any, query_norm: Any, row: Any, norm: Any) -> Any:
    """The score of a pair whose sum in any order is `total`."""
    size = total if metric == L2 else query_norm * norm  # at least the sum of absolute terms
    error = (len(query) + 2) * _STEP_ERROR * size
    low = _rounded(metric, total - error, query_norm, norm)
    high = _rounded(metric, total + error, query_norm, norm)
    if low == high:
        return low
    return _rounded(metric, _sum_in_order(metric, query, row), query_norm, norm)


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
    starts: Any,
    ends: Any,
    ids: Any,
    out: Any,
) -> None:
    """out[slot] = the score of a query and the row of ids[slot], where that id is among `rows`.

    `rows` are those from the id `first` on. The slots of queries[q] are those from starts[q] to ends[q], with ids that
    ascend. Slots of other ids stay as they are.
    """
    query = np.empty(queries.shape[1], np.float64)  # aligned to cache lines, which rows of `queries` need not be
    for q in range(start, stop):
        for i in range(len(query)):
            query[i] = queries[q, i]
        begin = lower_bound(ids, starts[q], ends[q], first)
        end = lower_bound(ids, begin, ends[q], first + len(rows))
        for slot in range(begin, end, 4):
            # Past the end the last row is taken again: one loop, and no case for what is left over.
            last = end - 1
            one, two = ids[slot] - first, ids[min(slot + 1, last)] - first
            three, four = ids[min(slot + 2, last)] - first, ids[min(slot + 3, last)] - first
            if metric == L2:
                totals = _four_squares(query, rows, (one, two, three, four))
            else:
                totals = _four_dots(query, rows, (one, two, three, four))
            for i in range(min(4, end - slot)):
                place = ids[slot + i] - first
                out[slot + i] = _score(metric, totals[i], query, query_norms[q], rows[place], row_norms[place])

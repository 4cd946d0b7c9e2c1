"""The loop over a block of products that keeps all pairs which the error bounds cannot rule out.

A pair (query, corpus row) has an upper and a lower bound of its score:

    upper = product * query.scale * row.scale + query.lost * row.size + query.size * row.lost + row.offset + query.slack

`limits[query]` is a number that the lower bounds of as many pairs as are wanted reach. A pair whose upper bound does
not pass it cannot be among the best. Ids come in ascending order, so a later pair that equals the limit loses to the
earlier ones. Pairs that pass are the open pairs of the query: ids, uppers and lowers, counts[query] of each.

Arrays are filled by plain loops here: numba takes seconds to compile assignments to slices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound

_CHUNK = 32  # columns that are compared together, a bit for each
_GROUPS = 64  # groups of columns come in multiples of this, as the processor compares many at a time
_FRESH = 64  # with so many open pairs more than twice those wanted, their lower bounds give a limit for the next block
_F = np.float32
_WIDEN = np.float32(2.0**-17)  # the offset of L2 is widened by 2^-18 on each side
_DOUBT, _TINY = np.float32(2.0**-22), np.float32(1e-44)  # more than the float32 arithmetic of a limit rounds
# The lowest set bit of 32, by its product with a de Bruijn sequence.
_DE_BRUIJN = np.uint32(0x077CB531)
_BIT_PLACES = np.empty(32, np.int64)
_BIT_PLACES[[(0x077CB531 << bit & 0xFFFFFFFF) >> 27 for bit in range(32)]] = np.arange(32)


@inlined
def _upper(product: Any, a: Any, b: Any, c: Any, scale: Any, size: Any, lost: Any, offset: Any) -> Any:
    """An upper bound but for the query's slack; a, b, c are scale, lost and size of the query."""
    return _F(product) * (a * scale) + (b * size + c * lost) + offset


@inlined
def _lower(upper: Any, b: Any, c: Any, slack: Any, size: Any, lost: Any, offset: Any) -> Any:
    """The lower bound that goes with an upper one."""
    return upper - _F(2.0) * ((b * size + c * lost) + slack) + _WIDEN * offset


@inlined
def _at_place(values: Any, count: Any, place: Any) -> Any:
    """The value at a place of the ascending order of values[:count], by quickselect; the values are moved about."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]


@compiled
def _first_limit(
    products: Any, a: Any, b: Any, c: Any, slack: Any, rows: Any, groups: Any, reached: Any, maxima: Any
) -> Any:
    """A number that the lower bounds of `reached` columns reach: the highest ones of as many groups of columns do.

    There are at least twice as many groups, each of two columns or more: with fewer, the lowest of their maxima would
    be far below the best of all.
    """
    for group in range(groups):
        maxima[group] = -np.inf
    for first in range(0, len(products) - groups + 1, groups):
        # Slices, because with an index that may be negative for all that the compiler knows it compares one at a time.
        part, scale, size = (
            products[first : first + groups],
            rows[0][first : first + groups],
            rows[1][first : first + groups],
        )
        lost, offset = rows[2][first : first + groups], rows[3][first : first + groups]
        for i in range(groups):
            upper = _upper(part[i], a, b, c, scale[i], size[i], lost[i], offset[i])
            value = _lower(upper, b, c, slack, size[i], lost[i], offset[i])
            maxima[i] = value if value > maxima[i] else maxima[i]
    limit = _at_place(maxima, groups, groups - reached)
    return limit - (abs(limit) * _DOUBT + _TINY)  # a bit lower: a pair that equals it has not been found before


@compiled
def _passing(products: Any, a: Any, b: Any, c: Any, rows: Any, first: Any, limit: Any, hits: Any) -> Any:
    """List in `hits` the columns from `first` on whose upper bound passes the limit, and count them.

    A chunk becomes 32 bits without a branch, many columns at a time; mostly none of them is set.
    """
    found, width = 0, len(products)
    while first + _CHUNK <= width:
        part, scale, size = (
            products[first : first + _CHUNK],
            rows[0][first : first + _CHUNK],
            rows[1][first : first + _CHUNK],
        )
        lost, offset = rows[2][first : first + _CHUNK], rows[3][first : first + _CHUNK]
        bits = np.uint32(0)
        for i in range(_CHUNK):
            upper = _upper(part[i], a, b, c, scale[i], size[i], lost[i], offset[i])
            bits |= np.uint32(upper > limit) << np.uint32(i)
        while bits:
            lowest = bits & (~bits + np.uint32(1))
            hits[found] = first + _BIT_PLACES[np.uint32(lowest * _DE_BRUIJN) >> np.uint32(27)]
            found += 1
            bits ^= lowest
        first += _CHUNK
    for j in range(first, width):
        hits[found] = j
        found += _upper(products[j], a, b, c, rows[0][j], rows[1][j], rows[2][j], rows[3][j]) > limit
    return found


@compiled
def _tightened(count: Any, wanted: Any, limit: Any, ids: Any, uppers: Any, lowers: Any, scratch: Any) -> Any:
    """The limit by the lower bounds of the open pairs, and how many of them stay open; their order is kept."""
    if count >= wanted:
        for slot in range(count):
            scratch[slot] = lowers[slot]
        limit = max(limit, _at_place(scratch, count, count - wanted))
    kept = 0
    for slot in range(count):
        ids[kept], uppers[kept], lowers[kept] = ids[slot], uppers[slot], lowers[slot]
        kept += uppers[slot] >= limit
    return limit, kept


@compiled
def tighten(start: Any, stop: Any, wanted: Any, limits: Any, counts: Any, ids: Any, uppers: Any, lowers: Any) -> None:
    """Drop from each query what the lower bounds of its own open pairs rule out."""
    scratch = np.empty(ids.shape[1], np.float32)
    for q in range(start, stop):
        limits[q], counts[q] = _tightened(counts[q], wanted, limits[q], ids[q], uppers[q], lowers[q], scratch)


@compiled
def scan(
    start: Any,
    stop: Any,
    products: Any,
    first_id: Any,
    queries: Any,
    rows: Any,
    wanted: Any,
    indptr: Any,
    indices: Any,
    columns: Any,
    limits: Any,
    counts: Any,
    ids: Any,
    uppers: Any,
    lowers: Any,
) -> None:
    """Append to the open pairs of each query those of a block of corpus rows, from the column columns[query] on.

    Args:
        start: The first query.
        stop: The last one but one.
        products: (queries, columns); the column j is the corpus row first_id + j.
        first_id: The corpus row of the first column.
        queries: (scale, lost, size, slack), each of a number per query.
        rows: (scale, size, lost, offset), each of a number per column.
        wanted: How many of the best pairs of a query are wanted.
        indptr: Where the excluded ids of each query begin in `indices`, and the end.
        indices: Excluded ids, ascending within a query.
        columns: Set to the number of columns, or to -1 - j if the query stopped before the column j because its open
            pairs fill its buffer: they have to be scored exactly before it can go on there.
        limits: The limit of each query, -inf at first.
        counts: How many open pairs each query has.
        ids: (queries, capacity) of the open pairs, like `uppers` and `lowers`.
        uppers: Their upper bounds.
        lowers: Their lower bounds.
    """
    row_scale, row_size, row_lost, row_offset = rows
    width, capacity = products.shape[1], ids.shape[1]
    maxima, hits = np.empty(width, np.float32), np.empty(width + 1, np.int64)
    scratch = np.empty(capacity, np.float32)
    for q in range(start, stop):
        if columns[q] >= width:
            continue
        line, open_ids, open_uppers, open_lowers = products[q], ids[q], uppers[q], lowers[q]
        a, b, c, slack = queries[0][q], queries[1][q], queries[2][q], queries[3][q]
        excluded, end = indptr[q], indptr[q + 1]
        count, limit = counts[q], limits[q]
        reached = wanted + (end - excluded)  # some of them may be excluded
        groups = (2 * reached + _GROUPS - 1) // _GROUPS * _GROUPS
        if count == 0 and limit == -np.inf and width >= 2 * groups:
            limit = _first_limit(line, a, b, c, slack, rows, groups, reached, maxima)
        elif columns[q] == 0 and count >= 2 * wanted + _FRESH:
            limit, count = _tightened(count, wanted, limit, open_ids, open_uppers, open_lowers, scratch)
        to_pass = limit - slack - abs(limit) * _DOUBT
        excluded = lower_bound(indices, excluded, end, first_id + columns[q])
        stopped = width
        for hit in range(_passing(line, a, b, c, rows, columns[q], to_pass, hits)):
            j = hits[hit]
            upper = _upper(line[j], a, b, c, row_scale[j], row_size[j], row_lost[j], row_offset[j])
            while excluded < end and indices[excluded] < first_id + j:
                excluded += 1
            is_excluded = excluded < end and indices[excluded] == first_id + j
            if is_excluded or not upper > to_pass:  # the limit may have risen meanwhile
                continue
            upper += slack
            open_ids[count], open_uppers[count] = first_id + j, upper
            open_lowers[count] = _lower(upper, b, c, slack, row_size[j], row_lost[j], row_offset[j])
            count += 1
            if count == capacity:
                limit, count = _tightened(count, wanted, limit, open_ids, open_uppers, open_lowers, scratch)
                to_pass = limit - slack - abs(limit) * _DOUBT
                if count > capacity - (capacity - wanted) // 4:
                    stopped = -1 - (j + 1)
                    break
        columns[q], limits[q], counts[q] = stopped, limit, count

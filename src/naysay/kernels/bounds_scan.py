"""Which pairs stay open: the loop over a block of products that keeps all that a bound cannot rule out.

A pair has an upper and a lower bound of its score. `limits[row]` is a number that as many lower bounds as are wanted
reach; a pair whose upper bound does not pass it cannot be among the best. Ids come in ascending order, so a later pair
that only equals the limit loses to the earlier ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels._intrinsics import lowest_bit
from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound

_CHUNK = 32  # columns that are compared together, a bit for each
_GROUPS = 64  # groups come in so many, as the processor compares: the rest would be one number at a time
_FRESH = 64  # with so many open pairs more than twice those wanted, their lower bounds give a limit for the next block
_F = np.float32
_WIDEN = np.float32(2.0**-17)
_DOUBT, _TINY = np.float32(2.0**-22), np.float32(1e-44)


@inlined
def _upper(product: Any, a: Any, b: Any, c: Any, scale: Any, size: Any, error: Any, offset: Any) -> Any:
    """An upper bound but for the row's slack."""
    return _F(product) * (a * scale) + (b * size + c * error) + offset


@inlined
def _lower(upper: Any, b: Any, c: Any, slack: Any, size: Any, error: Any, offset: Any) -> Any:
    """The lower bound that goes with an upper one; the offset is -|c|^2 or 0, widened by 2^-18 on each side."""
    return upper - _F(2.0) * ((b * size + c * error) + slack) + _WIDEN * offset


@inlined
def _at_place(values: Any, place: Any) -> Any:
    """The value at a place of the ascending order, by halving what is left; `values` are moved about."""
    low, high = 0, len(values) - 1
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
def _first_limit(line: Any, a: Any, b: Any, c: Any, slack: Any, sides: Any, cap: Any, maxima: Any, reached: Any) -> Any:
    """A number that the lower bounds of `reached` columns reach: so many of the highest in groups of columns do.

    There are at least twice as many groups, of two columns or more: the lowest of as many as are wanted would be
    far below the best of all. Columns that may be above the cap do not count.
    """
    groups = len(maxima)
    maxima[:] = -np.inf
    for first in range(0, len(line) - groups + 1, groups):
        # Slices, because an index that may be negative for all that the compiler knows is one number at a time.
        part = line[first : first + groups]
        scale, size = sides[0][first : first + groups], sides[1][first : first + groups]
        error, offset = sides[2][first : first + groups], sides[3][first : first + groups]
        for i in range(groups):
            upper = _upper(part[i], a, b, c, scale[i], size[i], error[i], offset[i])
            value = _lower(upper, b, c, slack, size[i], error[i], offset[i])
            maxima[i] = value if value > maxima[i] and upper + slack <= cap else maxima[i]
    return _at_place(maxima, groups - reached)


@compiled
def _passing(line: Any, a: Any, b: Any, c: Any, sides: Any, first: Any, limit: Any, hits: Any) -> Any:
    """List in `hits` the columns from `first` on whose upper bound passes the limit, and count them.

    A chunk becomes 32 bits without a branch, many columns at a time; most have none that is set.
    """
    found, width = 0, len(line)
    while first + _CHUNK <= width:
        part, scale, size = (
            line[first : first + _CHUNK],
            sides[0][first : first + _CHUNK],
            sides[1][first : first + _CHUNK],
        )
        error, offset = sides[2][first : first + _CHUNK], sides[3][first : first + _CHUNK]
        above = np.uint32(0)
        for i in range(_CHUNK):
            upper = _upper(part[i], a, b, c, scale[i], size[i], error[i], offset[i])
            above |= np.uint32(upper > limit) << np.uint32(i)
        while above:
            hits[found] = first + np.int64(lowest_bit(above))
            found += 1
            above &= above - np.uint32(1)
        first += _CHUNK
    for j in range(first, width):
        hits[found] = j
        found += _upper(line[j], a, b, c, sides[0][j], sides[1][j], sides[2][j], sides[3][j]) > limit
    return found


@compiled
def _settle(count: Any, wanted: Any, limit: Any, ids: Any, uppers: Any, lowers: Any) -> Any:
    """The limit by the lower bounds that there are, and how many pairs stay open; their order is kept."""
    if count >= wanted:
        limit = max(limit, _at_place(lowers[:count].copy(), count - wanted))
    kept = 0
    for slot in range(count):
        ids[kept], uppers[kept], lowers[kept] = ids[slot], uppers[slot], lowers[slot]
        kept += uppers[slot] >= limit
    return limit, kept


@compiled
def settle(start: Any, stop: Any, wanted: Any, limits: Any, counts: Any, ids: Any, uppers: Any, lowers: Any) -> None:
    """Drop from each row what its own lower bounds rule out."""
    for row in range(start, stop):
        found = _settle(counts[row], wanted, limits[row], ids[row], uppers[row], lowers[row])
        limits[row], counts[row] = found


@compiled
def scan(
    start: Any,
    stop: Any,
    products: Any,
    first_id: Any,
    first_row: Any,
    row_sides: Any,
    sides: Any,
    wanted: Any,
    known: Any,
    caps: Any,
    columns: Any,
    above: Any,
    limits: Any,
    counts: Any,
    ids: Any,
    uppers: Any,
    lowers: Any,
) -> None:
    """Append to each row's open pairs those of a block, from the column columns[row] on.

    Args:
        products: (rows, columns); the row r of it is the query first_row + r, the column j the id first_id + j.
        row_sides: (a, b, c, slack) per row, sides (scale, size, error, offset) per column: upper = product a scale
            + b size + c error + offset + slack.
        known: (indptr, indices, filter): pairs that are left out.
        caps: (rows, 2): a pair whose upper bound is at most the first is not above the cap, one whose lower bound
            is above the second is. The latter are counted in `above` and left out; what may be either stays open,
            without a say in the limit.
        columns: Set to the number of columns, or to -2 - j if the row stopped at column j because its open pairs
            fill its buffer: they have to be scored exactly before it can go on.
    """
    row_scale, row_error, row_size, slacks = row_sides
    scale, size, error, offset = sides
    indptr, indices, _ = known
    width, room = products.shape[1], ids.shape[1]
    maxima, hits = np.empty(width, np.float32), np.empty(width + 1, np.int64)
    for row in range(start, stop):
        if columns[row] >= width:
            continue
        line, open_ids, open_uppers, open_lowers = products[row], ids[row], uppers[row], lowers[row]
        a, b, c, slack = row_scale[row], row_error[row], row_size[row], slacks[row]
        begin, end = indptr[first_row + row], indptr[first_row + row + 1]
        count, limit = counts[row], limits[row]
        reached = wanted + (end - begin)
        groups = (2 * reached + _GROUPS - 1) // _GROUPS * _GROUPS
        if count == 0 and limit == -np.inf and width >= 2 * groups:
            # A hair lower, because a pair that equals it has not been found before.
            limit = _first_limit(line, a, b, c, slack, sides, caps[row, 0], maxima[:groups], reached)
            limit -= abs(limit) * _DOUBT + _TINY
        elif columns[row] == 0 and count >= 2 * wanted + _FRESH:
            limit, count = _settle(count, wanted, limit, open_ids, open_uppers, open_lowers)
        to_pass = limit - slack - abs(limit) * _DOUBT
        column, under, over, passed = width, caps[row, 0], caps[row, 1], above[row]
        own = lower_bound(indices, begin, end, first_id + columns[row])
        for hit in range(_passing(line, a, b, c, sides, columns[row], to_pass, hits)):
            j = hits[hit]
            upper = _upper(line[j], a, b, c, scale[j], size[j], error[j], offset[j])
            while own < end and indices[own] < first_id + j:
                own += 1
            if upper > to_pass and not (own < end and indices[own] == first_id + j):
                upper += slack
                lower = _lower(upper, b, c, slack, size[j], error[j], offset[j])
                if lower > over:
                    passed += 1
                    continue
                open_ids[count], open_uppers[count] = first_id + j, upper
                open_lowers[count] = lower if upper <= under else _F(-np.inf)
                count += 1
                if count == room:
                    limit, count = _settle(count, wanted, limit, open_ids, open_uppers, open_lowers)
                    to_pass = limit - slack - abs(limit) * _DOUBT
                    if count > room - (room - wanted) // 4:
                        column = -2 - int(j)
                        break
        columns[row], limits[row], counts[row], above[row] = column, limit, count, passed


@compiled
def drop_above(start: Any, stop: Any, caps: Any, above: Any, counts: Any, ids: Any, scores: Any) -> None:
    """Drop from each row's scored ids those above the row's cap, a score, and count them; the order is kept."""
    for row in range(start, stop):
        kept = 0
        for slot in range(counts[row]):
            ids[row, kept], scores[row, kept] = ids[row, slot], scores[row, slot]
            kept += scores[row, slot] <= caps[row]
        above[row] += counts[row] - kept
        counts[row] = kept


@compiled
def best(start: Any, stop: Any, counts: Any, ids: Any, scores: Any, out_ids: Any, out_scores: Any) -> None:
    """The best of each row's scored ids in order: score descending, id ascending; then -1 and -inf.

    Ids are ascending, so the slot identifies the id: a key is the score turned to a number that sorts downwards,
    and below it the slot. No score is NaN or -0.
    """
    room, wanted = ids.shape[1], out_ids.shape[1]
    keys = np.empty(room, np.uint64)
    line = np.empty(1, np.float32)
    bits = line.view(np.uint32)
    for row in range(start, stop):
        count = counts[row]
        for slot in range(count):
            line[0] = scores[row, slot]
            bit = bits[0]
            falling = bit if bit >> np.uint32(31) else np.uint32(0x7FFFFFFF) - bit
            keys[slot] = (np.uint64(falling) << np.uint64(32)) | np.uint64(slot)
        keys[:count].sort()
        found = min(count, wanted)
        for place in range(found):
            from_slot = np.int64(keys[place] & np.uint64(0xFFFFFFFF))
            out_ids[row, place] = ids[row, from_slot]
            out_scores[row, place] = scores[row, from_slot]
        out_ids[row, found:] = -1
        out_scores[row, found:] = -np.inf

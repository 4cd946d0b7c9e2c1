"""Loops over sorted CSR rows: build, membership, and the rank of a non-member.

Beside the sorted ids, each row of d ids has a Bloom filter of 8 d bits, two per id (one byte per pair, at the
same offset as the row). A clear bit proves that an id is not in the row: for 95 % of non-members, where a
binary search would take log2 d steps. A row of -1 is an empty row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined, prefetch

HASH_A, HASH_B = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)
_U32, _U3, _U7 = np.uint64(32), np.uint64(3), np.uint64(7)
_INSERTION = 24


@inlined
def filter_bit(item: Any, degree: Any, multiplier: Any) -> Any:
    """One of the two bits of `item` in the filter of a row of `degree` ids: a number in [0, 8 degree)."""
    hashed = np.uint64(np.uint32(np.uint32(item ^ (item >> 32)) * multiplier))
    return (hashed * (np.uint64(degree) << _U3)) >> _U32


@inlined
def bit_at(bits: Any, start: Any, bit: Any) -> Any:
    """0 or 1: a bit of the filter of the row that begins at `start`."""
    return (np.uint64(bits[start + np.int64(bit >> _U3)]) >> (bit & _U7)) & np.uint64(1)


@inlined
def may_contain(bits: Any, start: Any, degree: Any, item: Any) -> Any:
    """1 if `item` may be in the row, 0 if it is certainly not. The row must not be empty."""
    one = bit_at(bits, start, filter_bit(item, degree, HASH_A))
    return one & bit_at(bits, start, filter_bit(item, degree, HASH_B))


@inlined
def prefetch_row(anchors: Any, ahead: Any, indptr: Any, indices: Any, bits: Any) -> None:
    """Prefetch the filter and the ids of the row that is `ahead` in the batch."""
    if ahead < len(anchors):
        start = indptr[anchors[ahead]]
        prefetch(bits, start)
        prefetch(indices, start)
        prefetch(indices, start + 16)
        prefetch(indices, start + 32)


@inlined
def lower_bound(indices: Any, start: Any, stop: Any, item: Any) -> Any:
    """The first position in [start, stop) whose id is at least `item`, found without a branch to mispredict."""
    length = stop - start
    while length > 1:
        half = length >> 1
        start += half * np.int64(indices[start + half - 1] < item)
        length -= half
    return start + np.int64(length == 1 and indices[start] < item)


@inlined
def row_contains(indices: Any, bits: Any, start: Any, stop: Any, item: Any) -> Any:
    """Whether `item` is in the row: the filter first, then a binary search."""
    if start == stop or may_contain(bits, start, stop - start, item) == 0:
        return False
    position = lower_bound(indices, start, stop, item)
    return position < stop and indices[position] == item


@inlined
def shifted(indices: Any, start: Any, stop: Any, rank: Any) -> Any:
    """The id of the rank-th non-member: rank + #{j : p_j - j <= rank} over the row's sorted p."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] - (middle - start) <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + (low - start)


@inlined
def sort_on(line: Any, used: Any, stop: Any, ordered: Any) -> None:
    """line[:stop] in ascending order, to ordered[:stop], where ordered[:used] is in order already; both may be one."""
    for i in range(used, stop):
        value, j = line[i], i
        while j > 0 and ordered[j - 1] > value:
            ordered[j] = ordered[j - 1]
            j -= 1
        ordered[j] = value


@compiled
def scatter(anchors: Any, items: Any, cursor: Any, out: Any) -> None:
    """Counting sort by anchor; `cursor` holds each row's start and is moved to its end."""
    for pair in range(len(anchors)):
        anchor = anchors[pair]
        out[cursor[anchor]] = items[pair]
        cursor[anchor] += 1


@compiled
def sort_rows(start: Any, stop: Any, indptr: Any, indices: Any, kept: Any) -> None:
    """Sort each row, move its distinct ids to its front, and write their number to `kept`."""
    for row in range(start, stop):
        low, high = indptr[row], indptr[row + 1]
        ids = indices[low:high]
        if high - low <= _INSERTION:
            sort_on(ids, 0, high - low, ids)
        else:
            ids.sort()
        count = 0
        for i in range(high - low):
            if i == 0 or ids[i] != ids[count - 1]:
                ids[count] = ids[i]
                count += 1
        kept[row] = count


@compiled
def pack_rows(sources: Any, indptr: Any, indices: Any, out: Any) -> None:
    """Copy the first indptr[r + 1] - indptr[r] ids of each row, which began at sources[r]."""
    for row in range(len(indptr) - 1):
        low, high = indptr[row], indptr[row + 1]
        for i in range(high - low):
            out[low + i] = indices[sources[row] + i]


@compiled
def fill_filter(start: Any, stop: Any, indptr: Any, indices: Any, bits: Any) -> None:
    """Set the filter bits of rows start to stop."""
    for row in range(start, stop):
        low, high = indptr[row], indptr[row + 1]
        for position in range(low, high):
            for multiplier in (HASH_A, HASH_B):
                bit = filter_bit(indices[position], high - low, multiplier)
                bits[low + np.int64(bit >> _U3)] |= np.uint8(1 << np.int64(bit & _U7))


@compiled
def damaged_rows(start: Any, stop: Any, n_items: Any, indptr: Any, indices: Any, bits: Any, relation: Any) -> Any:
    """The first row that breaks what all other loops rely on, and how many such rows there are.

    Its offsets fall, its ids are not ascending numbers below `n_items`, or a filter bit or a relation is wrong.

    Args:
        relation: (0,) if all pairs are positive.
    """
    first, damaged = stop, 0
    for row in range(start, stop):
        low, high = indptr[row], indptr[row + 1]
        wrong = low < 0 or high < low or high > len(indices)
        if not wrong and low < high:
            ids, related = indices[low:high], relation[low:high]
            wrong = ids[0] < 0 or ids[-1] >= n_items
            for i in range(1, len(ids)):
                wrong |= ids[i] <= ids[i - 1]
            for i in range(len(related)):
                wrong |= related[i] < 1 or related[i] > 2
            held = np.uint64(1)
            for i in range(len(ids)):
                held &= may_contain(bits, low, high - low, ids[i])
            wrong |= held == 0
        if wrong:
            first = min(first, row)
            damaged += 1
    return first, damaged


@compiled
def contains(start: Any, stop: Any, anchors: Any, items: Any, known: Any, out: Any) -> None:
    """out[i] = position of items[i] in the row of anchors[i], or -1; known = (indptr, indices, filter)."""
    indptr, indices, bits = known
    for i in range(start, stop):
        anchor, item = anchors[i], items[i]
        out[i] = -1
        if anchor < 0 or item < 0:
            continue
        low, high = indptr[anchor], indptr[anchor + 1]
        if row_contains(indices, bits, low, high, item):
            out[i] = lower_bound(indices, low, high, item)


@compiled
def nth_negative(
    start: Any, stop: Any, anchors: Any, ranks: Any, indptr: Any, indices: Any, n_items: Any, out: Any
) -> None:
    """out[i] = the id of the ranks[i]-th item outside the row of anchors[i], or -1 past the last."""
    for i in range(start, stop):
        low, high = indptr[anchors[i]], indptr[anchors[i] + 1]
        rank = ranks[i]
        out[i] = -1 if rank >= n_items - (high - low) else shifted(indices, low, high, rank)


@compiled
def merge_rows(
    start: Any, stop: Any, one: Any, other: Any, indptr: Any, indices: Any, relation: Any, kept: Any
) -> None:
    """Merge the sorted rows of two CSRs; where both have an id the smaller relation number wins.

    Args:
        one: (indptr, indices, relation), the last of length 0 if all pairs are positive.
        other: The same.
        indptr: Where the rows begin in `indices`.
        indices: The merged ids, or (0,) to count them only: kept[row] is the number of distinct ids.
        relation: Those of the merged pairs, or (0,).
    """
    ptr_a, ids_a, rel_a = one
    ptr_b, ids_b, rel_b = other
    for row in range(start, stop):
        i, j, count = ptr_a[row], ptr_b[row], 0
        while i < ptr_a[row + 1] or j < ptr_b[row + 1]:
            take_a = i < ptr_a[row + 1] and (j == ptr_b[row + 1] or ids_a[i] <= ids_b[j])
            take_b = j < ptr_b[row + 1] and (i == ptr_a[row + 1] or ids_b[j] <= ids_a[i])
            if len(indices):
                indices[indptr[row] + count] = ids_a[i] if take_a else ids_b[j]
            if len(relation):
                kind_a = np.int8(127) if not take_a else (rel_a[i] if len(rel_a) else np.int8(1))
                kind_b = np.int8(127) if not take_b else (rel_b[j] if len(rel_b) else np.int8(1))
                relation[indptr[row] + count] = min(kind_a, kind_b)
            i += take_a
            j += take_b
            count += 1
        kept[row] = count

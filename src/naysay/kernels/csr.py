"""Loops over sorted CSR rows: membership, and the rank of a non-member.

Beside the sorted ids, each row of d ids has a Bloom filter of 8 d bits, two per id (one byte per pair, at the
same offset as the row). A clear bit proves that an id is not in the row: for 95 % of non-members, where a
binary search would take log2 d steps. A row of -1 is an empty row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined

HASH_A, HASH_B = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)
_U32, _U3, _U7 = np.uint64(32), np.uint64(3), np.uint64(7)


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

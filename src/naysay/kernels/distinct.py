"""Keeping a row distinct: what repeats, which ranks are unused, and a shuffle if more than half is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.random import below, number

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HASHED_BITS = np.uint64(36)


@inlined
def power_of_two(least: Any) -> Any:
    """The smallest power of two that is at least `least` and 64."""
    size = 64
    while size < least:
        size *= 2
    return size


@inlined
def table_size(width: Any) -> Any:
    """Places of a hash table for `width` ids, at most a quarter of which are used."""
    return power_of_two(4 * width)


@inlined
def hashed(item: Any, size: Any) -> Any:
    """A number below `size`, which is a power of two."""
    return np.int64((np.uint64(item) * _GOLDEN) >> _HASHED_BITS) & (size - 1)


@inlined
def seen_or_entered(item: Any, table: Any) -> Any:
    """Whether `item` is in the table, where -1 is an empty place. If it is not, it is entered."""
    place = hashed(item, len(table))
    while table[place] != -1:
        if table[place] == item:
            return True
        place = (place + 1) & (len(table) - 1)
    table[place] = item
    return False


@inlined
def may_repeat(line: Any, wanted: Any, bitmap: Any) -> Any:
    """Whether two of line[:wanted] have the same hash. If not, none repeats; no branch to mispredict.

    The bitmap has power_of_two(width) words: few hashes of different ids are the same.
    """
    bitmap[:] = 0
    met = np.uint64(0)
    for slot in range(wanted):
        place = hashed(line[slot], 64 * len(bitmap))
        word, bit = place >> 6, np.uint64(place & 63)
        met |= (bitmap[word] >> bit) & np.uint64(1)
        bitmap[word] |= np.uint64(1) << bit
    return met != np.uint64(0)


@inlined
def put_in_order(line: Any, used: Any, stop: Any, ordered: Any) -> None:
    """line[:stop] in ascending order, to ordered[:stop], where ordered[:used] is in order already; both may be one."""
    for i in range(used, stop):
        value, j = line[i], i
        while j > 0 and ordered[j - 1] > value:
            ordered[j] = ordered[j - 1]
            j -= 1
        ordered[j] = value


@compiled
def unused_rank(bits: Any, ranks: Any, used: Any, free: Any) -> Any:
    """A uniform rank in [0, free) outside ranks[:used], which is put in order on the way."""
    put_in_order(ranks, 0, used, ranks)
    rank = below(bits, free - used)
    for i in range(used):
        if ranks[i] <= rank:
            rank += 1
    return rank


@inlined
def shuffle_ranks(state: Any, wanted: Any, free: Any, ranks: Any) -> None:
    """The first `wanted` of a random order of 0 ... free - 1, to ranks[:wanted] (Fisher and Yates)."""
    for i in range(free):
        ranks[i] = i
    for slot in range(wanted):
        other = slot + below(number(state, slot), free - slot)
        ranks[slot], ranks[other] = ranks[other], ranks[slot]

"""Keeping a row distinct: what repeats, which ranks are unused, and a shuffle if more than half is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import inlined
from naysay.kernels.csr import sort_on
from naysay.kernels.random import below, number

# Up to this many slots all pairs are compared for repeats; beyond that a hash table is used.
_COMPARE = 32
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inlined
def table_size(width: Any) -> Any:
    """Room for `width` ids at quarter load, a power of two; 0 where comparing all pairs is quicker."""
    if width <= _COMPARE:
        return 0
    room = 1
    while room < 4 * width:
        room *= 2
    return room


@inlined
def repeats(line: Any, wanted: Any) -> Any:
    """Whether line[:wanted] has an id twice; compares all pairs, vectorised."""
    found = False
    for slot in range(1, wanted):
        for earlier in range(slot):
            found |= line[earlier] == line[slot]
    return found


@inlined
def hashed(item: Any, table: Any) -> Any:
    """Where the search for an item starts in a table, whose length is a power of two."""
    return np.int64((np.uint64(item) * _GOLDEN) >> np.uint64(36)) & (len(table) - 1)


@inlined
def seen_or_entered(line: Any, slot: Any, item: Any, table: Any) -> Any:
    """Whether `item` is in line[:slot]. With a table, a new item is entered."""
    if len(table) == 0:
        found = False
        for earlier in range(slot):
            found |= line[earlier] == item
        return found
    place = hashed(item, table)
    while table[place] != -1:
        if table[place] == item:
            return True
        place = (place + 1) & (len(table) - 1)
    table[place] = item
    return False


@inlined
def unused_rank(bits: Any, ranks: Any, used: Any, free: Any) -> Any:
    """A uniform rank in [0, free) outside ranks[:used], which is put in order on the way."""
    sort_on(ranks, 0, used, ranks)
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


@inlined
def bitmap_size(width: Any) -> Any:
    """Words of a bitmap of at least 64 bits for each of `width` slots, a power of two."""
    words = 64
    while words < width:
        words *= 2
    return words


@inlined
def met_before(bitmap: Any, code: Any) -> Any:
    """1 if a code of the same hash was met before, which is then noted: it may repeat. 0: it is new for certain."""
    place = ((np.uint64(code) * _GOLDEN) >> np.uint64(36)) & np.uint64(64 * len(bitmap) - 1)
    word, bit = np.int64(place >> np.uint64(6)), place & np.uint64(63)
    met = np.uint8((bitmap[word] >> bit) & np.uint64(1))
    bitmap[word] |= np.uint64(1) << bit
    return met


@inlined
def mark_collisions(codes: Any, wanted: Any, bitmap: Any, doubtful: Any) -> Any:
    """doubtful[slot] = 1 if the hash of codes[slot] was met before in the row: it may repeat, all others do not.

    Returns how many are doubtful.
    """
    bitmap[:] = 0
    found = 0
    for slot in range(wanted):
        doubtful[slot] = met_before(bitmap, codes[slot])
        found += doubtful[slot]
    return found

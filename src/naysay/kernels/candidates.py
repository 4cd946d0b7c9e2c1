"""The candidates of one side of a triple: all its ids ("open", `begin` -1), or the list of a relation ("listed").

A candidate is free if it is neither in the known row indices[low:high] nor the triple's own id.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound, row_contains, shifted
from naysay.kernels.random import below


@compiled
def count_listed_known(
    start: Any, stop: Any, relations: Any, indptr: Any, indices: Any, list_ptr: Any, lists: Any, out: Any
) -> None:
    """out[row] = how many known ids of a row are in the list of its relation."""
    for row in range(start, stop):
        begin, end = list_ptr[relations[row]], list_ptr[relations[row] + 1]
        count = 0
        for i in range(indptr[row], indptr[row + 1]):
            begin = lower_bound(lists, begin, end, indices[i])
            count += begin < end and lists[begin] == indices[i]
        out[row] = count


@inlined
def is_extra(indices: Any, bits: Any, low: Any, high: Any, own: Any, lists: Any, begin: Any, end: Any) -> Any:
    """1 if the triple's own id is a candidate that is not known, so that it must be left out as well."""
    if row_contains(indices, bits, low, high, own):
        return 0
    if begin < 0:
        return 1
    position = lower_bound(lists, begin, end, own)
    return np.int64(position < end and lists[position] == own)


@inlined
def free_at_rank(indices: Any, bits: Any, low: Any, high: Any, own: Any, rank: Any) -> Any:
    """The rank-th id of an open side that is neither known nor own."""
    if not row_contains(indices, bits, low, high, own):
        own_rank = own - (lower_bound(indices, low, high, own) - low)
        if rank >= own_rank:
            rank += 1
    return shifted(indices, low, high, rank)


@inlined
def lay_out(
    indices: Any, bits: Any, low: Any, high: Any, own: Any, free: Any, lists: Any, begin: Any, end: Any, deck: Any
) -> None:
    """All candidates of a side, ascending, to deck[:free]."""
    if begin < 0:
        for rank in range(free):
            deck[rank] = free_at_rank(indices, bits, low, high, own, rank)
        return
    dealt = 0
    for i in range(begin, end):
        item = np.int64(lists[i])
        if item != own and not row_contains(indices, bits, low, high, item):
            deck[dealt] = item
            dealt += 1


@inlined
def tried_id(
    bits64: Any, indices: Any, bits: Any, low: Any, high: Any, own: Any, size: Any, free: Any, lists: Any, begin: Any
) -> Any:
    """One try: a candidate that is neither known nor own, or -1."""
    if begin < 0:
        if 2 * (high - low) > size:
            return free_at_rank(indices, bits, low, high, own, below(bits64, free))
        item = below(bits64, size)
    else:
        item = np.int64(lists[begin + below(bits64, size)])
    if item == own or row_contains(indices, bits, low, high, item):
        return np.int64(-1)
    return item


@inlined
def counted_id(
    rank: Any,
    indices: Any,
    bits: Any,
    low: Any,
    high: Any,
    own: Any,
    size: Any,
    lists: Any,
    begin: Any,
    codes: Any,
    used: Any,
    side: Any,
) -> Any:
    """The rank-th candidate that is neither known, nor own, nor in the row already, by counting from the first."""
    for i in range(size):
        item = np.int64(i) if begin < 0 else np.int64(lists[begin + i])
        if item == own or row_contains(indices, bits, low, high, item):
            continue
        taken = False
        for earlier in range(used):
            taken |= codes[earlier] == 3 * item + side
        if not taken:
            if rank == 0:
                return item
            rank -= 1
    return np.int64(-1)

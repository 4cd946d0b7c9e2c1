"""The candidates of one side of a triple: all its ids ("open"), or the list of a relation ("listed").

A candidate is free if it is neither in the known row nor the triple's own id. Here row = (indices, filter, low, high)
and listed = (lists, begin, end), where `begin` is -1 for an open side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import lower_bound, row_contains, shifted
from naysay.kernels.random import below


@compiled
def count_listed_known(start: Any, stop: Any, relations: Any, known: Any, pointer: Any, lists: Any, out: Any) -> None:
    """out[row] = how many known ids of a row are in the list of its relation; known = (indptr, indices)."""
    indptr, indices = known
    for row in range(start, stop):
        begin, end = pointer[relations[row]], pointer[relations[row] + 1]
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
def free_at_rank(row: Any, own: Any, rank: Any) -> Any:
    """The rank-th id of an open side that is neither known nor own."""
    indices, bits, low, high = row
    own_rank = own - (lower_bound(indices, low, high, own) - low)
    if rank >= own_rank and not row_contains(indices, bits, low, high, own):
        rank += 1
    return shifted(indices, low, high, rank)


@inlined
def lay_out(row: Any, own: Any, free: Any, listed: Any, deck: Any) -> None:
    """All candidates of a side, ascending, to deck[:free]."""
    indices, bits, low, high = row
    lists, begin, end = listed
    if begin < 0:
        for rank in range(free):
            deck[rank] = free_at_rank(row, own, rank)
        return
    dealt = 0
    for i in range(begin, end):
        item = np.int64(lists[i])
        if item != own and not row_contains(indices, bits, low, high, item):
            deck[dealt] = item
            dealt += 1


@inlined
def tried_id(bits64: Any, row: Any, own: Any, span: Any, free: Any, listed: Any) -> Any:
    """One try among the `span` ids of a side: a candidate that is neither known nor own, or -1."""
    indices, bits, low, high = row
    lists, begin, _ = listed
    if begin < 0:
        if 2 * (high - low) > span:
            return free_at_rank(row, own, below(bits64, free))
        item = below(bits64, span)
    else:
        item = np.int64(lists[begin + below(bits64, span)])
    return np.int64(-1) if item == own or row_contains(indices, bits, low, high, item) else item


@inlined
def counted_id(rank: Any, row: Any, own: Any, span: Any, listed: Any, codes: Any, used: Any, side: Any) -> Any:
    """The rank-th candidate that is neither known, nor own, nor in the row already, by counting from the first."""
    indices, bits, low, high = row
    lists, begin, _ = listed
    for i in range(span):
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

"""Corrupted triples, drawn with replacement, without a look-up of what is known of each triple.

A side and an id are drawn as in `corrupt`. Most draws make a triple that is not known, which one word of a filter of
all known triples proves. Only the others, a few in a hundred, are looked up: if the id is known it is drawn again, and
if its side has no candidate, the side is drawn again, among those that have one. So the draws are those of `corrupt` in
distribution, and mostly in value. log_q is not computed: it needs the number of known ids of every row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.candidates import is_extra
from naysay.kernels.compile import compiled, inlined
from naysay.kernels.corrupt import row_of, set_bounds, settle
from naysay.kernels.csr import row_contains
from naysay.kernels.random import below, mixed, number, retry, row_state

PER_WORD = 4  # triples for each 64 bits of the filter: 16 bits for one, of which three are set
_GOLDEN, _S32, _ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(32), np.uint64(1)
_SIX, _ELEVEN, _TWELVE, _LAST = np.uint64(6), np.uint64(11), np.uint64(12), np.uint64(63)
_UNIT = 2.0**-53
_SIDE = 4095  # the number of a slot's tries that draws another side: beyond all other tries


@inlined
def hash_of(head: Any, relation: Any, tail: Any) -> Any:
    """64 bits of a triple."""
    return mixed(((np.uint64(head) << _S32) | np.uint64(tail)) + np.uint64(relation) * _GOLDEN)


@inlined
def bits_of(hashed: Any) -> Any:
    """The bits of a triple in its word of the filter, which the upper half of the hash chooses."""
    one = _ONE << (hashed & _LAST)
    return one | (_ONE << ((hashed >> _SIX) & _LAST)) | (_ONE << ((hashed >> _TWELVE) & _LAST))


@compiled
def fill_filter(triples: Any, words: Any) -> None:
    """Set the bits of all triples (n, 3)."""
    for i in range(len(triples)):
        hashed = hash_of(triples[i, 0], triples[i, 1], triples[i, 2])
        words[below(hashed, len(words))] |= bits_of(hashed)


@compiled
def fill_bounds(chance: Any, bounds: Any) -> None:
    """Where the sides of each relation end on the scale of random numbers, if all have a candidate."""
    for relation in range(len(chance)):
        set_bounds(chance[relation], bounds[relation])


@inlined
def candidates_of(triple: Any, s: Any, sizes: Any, index: Any, candidates: Any) -> Any:
    """(row, own, span, free, listed) of a side as in `candidates`; index and candidates as in `draw`."""
    search, (indptr, indices, bits) = index
    covered, pointers, lists, _ = candidates
    layout = search[2]
    row = row_of(triple[layout[s, 0]], triple[layout[s, 1]], s, search)
    own, low, high = triple[3 - layout[s, 0] - layout[s, 1]], indptr[row], indptr[row + 1]
    begin, end, span = np.int64(-1), np.int64(-1), sizes[s]
    if pointers[s, 0] >= 0:
        begin, end = pointers[s, triple[1]], pointers[s, triple[1] + 1]
        span = end - begin
    free = span - covered[row] - is_extra(indices, bits, low, high, own, lists, begin, end)
    return (indices, bits, low, high), own, span, free, (lists, begin, end)


@inlined
def free_side(bits64: Any, triple: Any, sizes: Any, chance: Any, index: Any, candidates: Any) -> Any:
    """A side by its chance, of those that have a candidate; -1 if none has."""
    total = 0.0
    for s in range(len(sizes)):
        if candidates_of(triple, s, sizes, index, candidates)[3] > 0:
            total += chance[triple[1], s]
    left = np.float64(bits64 >> _ELEVEN) * _UNIT * total
    found: Any = np.int64(-1)
    for s in range(len(sizes)):
        if left >= 0.0 and candidates_of(triple, s, sizes, index, candidates)[3] > 0:
            found = s
            left -= chance[triple[1], s]
    return found


@compiled
def looked_up(state: Any, slot: Any, item: Any, s: Any, tries: Any, triple: Any, parts: Any, known: Any) -> Any:
    """(side, id) of a slot whose first try may be known: that try if it is not, else another; -1 if there is none."""
    sizes, chance, _ = parts
    index, candidates = known
    row, own, span, free, listed = candidates_of(triple, s, sizes, index, candidates)
    first, nothing = 1, np.empty(0, np.int64)
    if free > 0 and item != own and not row_contains(row[0], row[1], row[2], row[3], item):
        return s, item
    if free <= 0:  # the tries of this side decided nothing, so all of them serve another
        s, first = free_side(retry(state, slot, _SIDE), triple, sizes, chance, index, candidates), 0
        if s < 0:
            return s, np.int64(-1)
        row, own, span, free, listed = candidates_of(triple, s, sizes, index, candidates)
    # A list of which little is free deserves more tries: going through it is dearer than them.
    most = tries * min(64, max(1, span // (4 * free))) if listed[1] >= 0 else tries
    return s, settle(state, slot, (first, most, True), free, (row, own, span, free, listed), nothing, 0, nothing)


@compiled
def draw(start: Any, stop: Any, how: Any, triples: Any, parts: Any, known: Any, words: Any, out: Any) -> None:
    """Fill (B, K, 3) with corrupted triples, none known, nor the triple itself; -1 where no side has a candidate.

    Args:
        how: (key, tries).
        triples: (B, 3).
        parts: (sizes (S,) ids on each side, chance (relations, S), bounds (relations, S) of `fill_bounds`).
        known: (index, candidates): index = (`SideIndex.search`, (indptr, indices, filter)), candidates as in `corrupt`.
        words: The filter of all known triples.
    """
    key, tries = how
    sizes, _, bounds = parts
    layout, pointers, lists = known[0][0][2], known[1][1], known[1][2]
    for row in range(start, stop):
        state = row_state(key, row)
        head, relation, tail = triples[row, 0], triples[row, 1], triples[row, 2]
        for slot in range(out.shape[1]):
            random = number(state, slot)
            s: Any = 0
            for bound in range(len(sizes) - 1):
                s += np.int64(random > bounds[relation, bound])
            side = 3 - layout[s, 0] - layout[s, 1]
            item = triples[row, side]  # in place of a try, if the list is empty
            if pointers[s, 0] < 0:
                item = below(retry(state, slot, 0), sizes[s])
            elif pointers[s, relation] < pointers[s, relation + 1]:
                begin, end = pointers[s, relation], pointers[s, relation + 1]
                item = np.int64(lists[begin + below(retry(state, slot, 0), end - begin)])
            new_head, new_tail = (item if side == 0 else head), (item if side == 2 else tail)
            new_relation = item if side == 1 else relation
            hashed = hash_of(new_head, new_relation, new_tail)
            mine = bits_of(hashed)
            out[row, slot, 0], out[row, slot, 1], out[row, slot, 2] = new_head, new_relation, new_tail
            if item == triples[row, side] or words[below(hashed, len(words))] & mine == mine:
                s, item = looked_up(state, slot, item, s, tries, triples[row], parts, known)
                for part in range(3):
                    out[row, slot, part] = triples[row, part] if item >= 0 else -1
                if item >= 0:
                    out[row, slot, 3 - layout[s, 0] - layout[s, 1]] = item

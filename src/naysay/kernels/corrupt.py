"""Corruption of triples: replace the head, the relation or the tail by an id that makes no known triple.

A slot first draws its side, by `chance`, among the sides that still have a candidate; then an id on that side. What
is known of a side is a row of one CSR over all sides. Candidates are all ids of the side ("open"), or a list for
each relation ("listed"). A side with few candidates left is listed and shuffled (a deck);
otherwise an id is tried until it is neither known, nor the triple's own, nor (distinct) in the row already.

Here row = (indices, filter, low, high) is what is known of one side of a triple, and listed = (lists, begin, end) are
its candidates, where `begin` is -1 for an open side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import HASH_A, HASH_B, bit_at, filter_bit, lower_bound, row_contains, shifted
from naysay.kernels.distinct import may_repeat, power_of_two, seen_or_entered, table_size
from naysay.kernels.random import below, number, retry, row_state

_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_SCALE = 18446744073709549568.0  # the largest double below 2^64


@inlined
def row_of(major: Any, minor: Any, s: Any, index: Any) -> Any:
    """The row of what is known of side s, by the other two parts; the last row, which is empty, if they never occur.

    index = (keys, starts, layout) as in `SideIndex`.
    """
    keys, starts, layout = index
    key = major * layout[s, 2] + minor
    part = layout[s, 3] + (major >> layout[s, 4])
    end = starts[part + 1]
    place = lower_bound(keys, starts[part], end, key)
    return place if place < end and keys[place] == key else np.int64(len(keys))


@compiled
def find_rows(start: Any, stop: Any, triples: Any, index: Any, out: Any) -> None:
    """out[i, s] = the row of what is known of side s of triples[i]."""
    layout = index[2]
    for i in range(start, stop):
        for s in range(len(layout)):
            out[i, s] = row_of(triples[i, layout[s, 0]], triples[i, layout[s, 1]], s, index)


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


@compiled
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


@compiled
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


@inlined
def set_bounds(weight: Any, bounds: Any) -> Any:
    """Where each side ends on a scale of 2^64: a draw exceeds as many bounds as there are sides before its own."""
    total = weight.sum()
    reached = 0.0
    for s in range(len(weight)):
        reached += weight[s]
        last = not (weight[s + 1 :] > 0.0).any()
        bounds[s] = _FULL if last or total == 0.0 else np.uint64(reached / total * _SCALE)
    return total


@inlined
def pick_side(bits64: Any, bounds: Any) -> Any:
    """A side by weight."""
    side: Any = 0
    for s in range(len(bounds) - 1):
        side += np.int64(bits64 > bounds[s])
    return side


@inlined
def of_side(side: Any, first: Any, second: Any, third: Any) -> Any:
    """One of three values, as selections that the compiler can do several at a time."""
    return first if side == 0 else (second if side == 1 else third)


@inlined
def first_tries(state: Any, wanted: Any, parts: Any, known: Any, which: Any, items: Any, scratch: Any) -> None:
    """The side and the first try of every slot at once, for a row of open sides; an item of -1 is known or own.

    parts = (bounds, sizes, owns, lows, highs) of the sides; known = (indices, filter).
    """
    bounds, sizes, owns, lows, highs = parts
    indices, bits = known
    one, other, marked = scratch
    b, c = min(1, len(sizes) - 1), len(sizes) - 1  # fewer sides than three: the last is used, and never picked
    bound_1, bound_2 = bounds[0], bounds[b]
    size_1, size_2, size_3 = sizes[0], sizes[b], sizes[c]
    own_1, own_2, own_3 = owns[0], owns[b], owns[c]
    degree_1, degree_2, degree_3 = highs[0] - lows[0], highs[b] - lows[b], highs[c] - lows[c]
    for slot in range(wanted):
        random = number(state, slot)
        side = np.int64(random > bound_1) + np.int64(random > bound_2)
        item = below(retry(state, slot, 0), of_side(side, size_1, size_2, size_3))
        degree = of_side(side, degree_1, degree_2, degree_3)
        which[slot] = side
        items[slot] = -1 if item == of_side(side, own_1, own_2, own_3) else item
        one[slot] = filter_bit(item, degree, HASH_A)
        other[slot] = filter_bit(item, degree, HASH_B)
    suspects: Any = 0
    for slot in range(wanted):
        low = lows[which[slot]]
        marked[suspects] = slot
        suspects += np.int64(bit_at(bits, low, one[slot]) & bit_at(bits, low, other[slot]))
    for i in range(suspects):
        slot = marked[i]
        low, high = lows[which[slot]], highs[which[slot]]
        position = lower_bound(indices, low, high, items[slot])
        if position < high and indices[position] == items[slot]:
            items[slot] = -1


@compiled
def settle(state: Any, slot: Any, attempts: Any, left: Any, part: Any, codes: Any, side: Any, table: Any) -> Any:
    """An id for a slot: by trial, then by counting through what is left.

    attempts = (first, end, repeat); part = (row, own, span, free, listed) as in `candidates`.
    """
    first, end, repeat = attempts
    row, own, span, free, listed = part
    for i in range(first, end):
        item = tried_id(retry(state, slot, i), row, own, span, free, listed)
        if item >= 0 and (repeat or not seen_or_entered(3 * item + side, table)):
            return item
    rank, used = below(retry(state, slot, end), left), 0 if repeat else slot
    item = counted_id(rank, row, own, span, listed, codes, used, side)
    if not repeat:
        seen_or_entered(3 * item + side, table)
    return item


@compiled
def draw(start: Any, stop: Any, how: Any, queries: Any, parts: Any, known: Any, candidates: Any, out: Any) -> None:
    """Fill counts[row] slots with (id, side), distinct as pairs unless `repeat`, and P(side) P(id | side), 1 if empty.

    Args:
        how: (key, tries, repeat).
        queries: (triples (B, 3), counts (B,), rows (B, S) the known row of each side).
        parts: (sides (S,) which part each side replaces, sizes (S,) ids on each side, chance (relations, S)).
        known: (indptr, indices, filter).
        candidates: (covered (all rows,) how many candidates a row knows, starts (S, relations + 1) into `lists`, first
            entry -1 for an open side, lists, the length of the longest).
        out: (ids, sides, chances).
    """
    key, tries, repeat = how
    triples, counts, rows = queries
    sides, sizes, chance = parts
    indptr, indices, bits = known
    covered, list_ptr, lists, longest = candidates
    out_ids, out_side, out_chance = out
    width, n_sides = out_ids.shape[1], len(sides)
    codes, which, items = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width, np.int64)
    marked, one, other = np.empty(width + 1, np.int64), np.empty(width, np.uint64), np.empty(width, np.uint64)
    table, bitmap = np.empty(table_size(width), np.int64), np.empty(power_of_two(width), np.uint64)
    deck = np.empty((n_sides, max(longest, 2 * width)), np.int64)
    weight, bounds = np.empty(n_sides, np.float64), np.empty(n_sides, np.uint64)
    free, used, spans, owns = np.empty((4, n_sides), np.int64)
    lows, highs, begins, ends = np.empty((4, n_sides), np.int64)
    dealt = np.empty(n_sides, np.bool_)
    for row in range(start, stop):
        wanted = counts[row]
        relation = triples[row, 1]
        plain = tries > 0
        for s in range(n_sides):
            lows[s], highs[s] = indptr[rows[row, s]], indptr[rows[row, s] + 1]
            owns[s] = triples[row, sides[s]]
            begins[s], ends[s], spans[s] = -1, -1, sizes[s]
            if list_ptr[s, 0] >= 0:
                begins[s], ends[s] = list_ptr[s, relation], list_ptr[s, relation + 1]
                spans[s] = ends[s] - begins[s]
            free[s] = spans[s] - covered[rows[row, s]]
            free[s] -= is_extra(indices, bits, lows[s], highs[s], owns[s], lists, begins[s], ends[s])
            used[s] = 0
            weight[s] = chance[relation, s] if free[s] > 0 else 0.0
            dealt[s] = (not repeat and free[s] < 2 * wanted) or (begins[s] >= 0 and 4 * free[s] < wanted)
            if dealt[s] and free[s] > 0:
                mine, listed = (indices, bits, lows[s], highs[s]), (lists, begins[s], ends[s])
                lay_out(mine, owns[s], free[s], listed, deck[s])
            plain &= begins[s] < 0 and not dealt[s] and 0 < 2 * (highs[s] - lows[s]) <= sizes[s] and weight[s] > 0.0
        total = set_bounds(weight, bounds)
        state = row_state(key, row)
        check = not repeat  # whether an id has to be compared with the earlier ones
        if plain:
            open_sides = (bounds, sizes, owns, lows, highs)
            first_tries(state, wanted, open_sides, (indices, bits), which, items, (one, other, marked))
            rejected = False
            for slot in range(wanted):
                codes[slot] = 3 * items[slot] + sides[which[slot]]
                rejected |= items[slot] < 0
            check = check and (rejected or may_repeat(codes, wanted, bitmap))
        if check:
            table[:] = -1
        for slot in range(wanted):
            if total == 0.0:
                wanted = slot
                break
            s = which[slot] if plain else pick_side(number(state, slot), bounds)
            item = items[slot] if plain else np.int64(-1)
            side, left = sides[s], free[s] - used[s]
            if dealt[s]:
                place = used[s] + below(retry(state, slot, 0), left)
                item = deck[s, place]
                if not repeat:
                    deck[s, place], deck[s, used[s]] = deck[s, used[s]], item
            elif item < 0 or (check and seen_or_entered(3 * item + side, table)):
                mine, listed = (indices, bits, lows[s], highs[s]), (lists, begins[s], ends[s])
                # A list of which little is free deserves more tries: going through it is dearer than them.
                most = tries * min(64, max(1, spans[s] // (4 * free[s]))) if begins[s] >= 0 else tries
                part = (mine, owns[s], spans[s], free[s], listed)
                item = settle(state, slot, (int(plain), most, repeat), left, part, codes, side, table)
            codes[slot] = 3 * item + side
            out_ids[row, slot] = item
            out_side[row, slot] = side
            out_chance[row, slot] = weight[s] / (total * left)
            if repeat:
                continue
            used[s] += 1
            if left == 1:  # this side is used up: the others share its chance
                weight[s] = 0.0
                total = set_bounds(weight, bounds)
        for slot in range(wanted, width):
            out_ids[row, slot] = -1
            out_side[row, slot] = -1
            out_chance[row, slot] = 1.0

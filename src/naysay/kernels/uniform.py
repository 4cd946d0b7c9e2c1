"""Uniform draws from all items but a row's known ones: with replacement, or distinct within the row.

Rows go through each step in blocks, because a read of a row's known ids from memory has to be waited for: the reads of
a block overlap. First each slot gets a candidate; the row's filter shows which of them may be known (5 %), and only
those are searched for. A candidate that is known, or repeats an earlier slot, is redrawn, which keeps what is accepted
uniform, and after `tries` tries the rank shift gives an exact draw at once: work is bounded. Rows that are mostly
known, or of which a distinct draw takes more than half of what is free, never try.

Here row = (indices, filter, low, high): the known ids of a row are indices[low:high].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import HASH_A, HASH_B, bit_at, filter_bit, lower_bound, may_contain, row_contains, shifted
from naysay.kernels.distinct import may_repeat, power_of_two, seen_or_entered, shuffle_ranks, table_size, unused_rank
from naysay.kernels.random import below, number, retry, row_state

TRIES = 32
_BLOCK = 32  # rows


@inlined
def known_slots(row: Any, line: Any, wanted: Any, marked: Any) -> Any:
    """Write the slots of line[:wanted] with a known id to `marked`, in order; return their number."""
    indices, bits, low, high = row
    suspects: Any = 0
    if low < high:
        for slot in range(wanted):
            marked[suspects] = slot
            suspects += np.int64(may_contain(bits, low, high - low, line[slot]))
    known: Any = 0
    for i in range(suspects):
        item = line[marked[i]]
        position = lower_bound(indices, low, high, item)
        if position < high and indices[position] == item:
            marked[known] = marked[i]
            known += 1
    return known


@compiled
def free_item(state: Any, slot: Any, attempt: Any, tries: Any, row: Any, size: Any) -> Any:
    """A uniform id outside the row, from the slot's tries from `attempt` on."""
    indices, bits, low, high = row
    if 2 * (high - low) <= size:
        for i in range(tries):
            item = below(retry(state, slot, attempt + i), size)
            if not row_contains(indices, bits, low, high, item):
                return item
    return shifted(indices, low, high, below(retry(state, slot, attempt + tries), size - (high - low)))


@compiled
def new_item(state: Any, slot: Any, tries: Any, row: Any, size: Any, line: Any, table: Any, ranks: Any) -> Any:
    """A uniform id that is neither known nor in line[:slot], whose ids are in the table, as it then is."""
    for i in range(tries):
        item = free_item(state, slot, i * (tries + 1), tries, row, size)
        if not seen_or_entered(item, table):
            return item
    indices, _, low, high = row  # all tries failed: count past the earlier slots instead
    for earlier in range(slot):
        ranks[earlier] = line[earlier] - (lower_bound(indices, low, high, line[earlier]) - low)
    rank = unused_rank(retry(state, slot, tries * (tries + 1)), ranks, slot, size - (high - low))
    item = shifted(indices, low, high, rank)
    seen_or_entered(item, table)
    return item


@inlined
def first_items(state: Any, row: Any, size: Any, out: Any, place: Any, one: Any, other: Any, r: Any) -> None:
    """Uniform ids to all slots of out[place], and to one[r] and other[r] where their bits are in the row's filter.

    Eight slots at a time: no branch, no read of the row.
    """
    degree = row[3] - row[2]
    for slot in range(out.shape[1]):
        item = below(number(state, slot), size)
        out[place, slot] = item
        one[r, slot] = filter_bit(item, degree, HASH_A)
        other[r, slot] = filter_bit(item, degree, HASH_B)


@inlined
def free_by_rank(state: Any, wanted: Any, row: Any, size: Any, repeat: Any, line: Any, ranks: Any) -> None:
    """Uniform free ids to line[:wanted] by their ranks; if not `repeat`, by a shuffle of all ranks."""
    indices, _, low, high = row
    free = size - (high - low)
    if not repeat and 2 * wanted > free:
        shuffle_ranks(state, wanted, free, ranks)
        for slot in range(wanted):
            line[slot] = shifted(indices, low, high, ranks[slot])
    else:
        for slot in range(wanted):
            line[slot] = shifted(indices, low, high, below(number(state, slot), free))


@inlined
def search_all(indices: Any, items: Any, lows: Any, lengths: Any, n: Any) -> None:
    """Move each lows[i] to where items[i] is among the `lengths[i]` ids from there, if it is one of them.

    All take each step together, so that no read from memory is waited for by the next search.
    """
    longest = 0
    for i in range(n):
        longest = max(longest, lengths[i])
    while longest > 1:
        for i in range(n):
            half = lengths[i] >> 1
            lows[i] += half * np.int64(indices[max(0, lows[i] + half - 1)] < items[i])
            lengths[i] -= half
        longest -= longest >> 1


@compiled
def draw(start: Any, stop: Any, how: Any, rows: Any, known: Any, size: Any, out: Any, numbers: Any) -> Any:
    """Uniform draws, distinct unless `repeat`; -1 in slots that are not wanted or not free.

    Args:
        how: (key, tries, repeat).
        rows: (anchors, counts).
        known: (indptr, indices, filter) of the known ids.
        numbers: With `repeat` (B, 1), the chance 1 / free of each draw. Of distinct draws (B, K), their log_q
            -log(free - slot), the chance given the row's earlier slots; or (B, 0) if it is not needed.

    Returns:
        Nothing of use: the sum of what was read ahead, which the compiler would leave out otherwise.
    """
    key, tries, repeat = how
    anchors, counts = rows
    indptr, indices, bits = known
    width = out.shape[1]
    lows, highs, wanted = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    one, other = np.empty((_BLOCK, width), np.uint64), np.empty((_BLOCK, width), np.uint64)
    # Candidates that may be known: their slots, and what a search for them needs. Those of a row end at ends[r].
    slots, items = np.empty(_BLOCK * width + 1, np.int64), np.empty(_BLOCK * width, np.int64)
    places, lengths = np.empty(_BLOCK * width, np.int64), np.empty(_BLOCK * width, np.int64)
    ends = np.empty(_BLOCK, np.int64)
    marked, ranks = np.empty(width + 1, np.int64), np.empty(2 * width, np.int64)
    table, bitmap = np.empty(table_size(width), np.int64), np.empty(power_of_two(width), np.uint64)
    touched: Any = 0
    for first in range(start, stop, _BLOCK):
        block = min(_BLOCK, stop - first)
        for r in range(block):
            lows[r], highs[r] = indptr[anchors[first + r]], indptr[anchors[first + r] + 1]
            if lows[r] < highs[r]:
                touched += bits[lows[r]] + bits[highs[r] - 1]
        suspects: Any = 0
        for r in range(block):
            row, low, degree = first + r, lows[r], highs[r] - lows[r]
            state, mine = row_state(key, row), (indices, bits, lows[r], highs[r])
            wanted[r] = min(counts[row], size - degree)
            if repeat:
                wanted[r] = counts[row] if degree < size else 0
            # Rows that are mostly known, or of which more than half is drawn, take ids that are free for certain.
            if 2 * degree > size or (not repeat and 2 * wanted[r] > size - degree):
                free_by_rank(state, wanted[r], mine, size, repeat, out[row], ranks)
            else:
                first_items(state, mine, size, out, row, one, other, r)
                for slot in range(wanted[r] if degree > 0 else 0):
                    slots[suspects] = slot
                    suspects += np.int64(bit_at(bits, low, one[r, slot]) & bit_at(bits, low, other[r, slot]))
            ends[r] = suspects
        begin: Any = 0
        for r in range(block):
            for i in range(begin, ends[r]):
                items[i], places[i], lengths[i] = out[first + r, slots[i]], lows[r], highs[r] - lows[r]
            begin = ends[r]
        search_all(indices, items, places, lengths, suspects)
        begin = 0
        for r in range(block):
            row, free = first + r, size - (highs[r] - lows[r])
            line, state, mine = out[row], row_state(key, row), (indices, bits, lows[r], highs[r])
            n_known: Any = 0
            for i in range(begin, ends[r]):
                marked[n_known] = slots[i]
                n_known += np.int64(indices[places[i]] == items[i])
            begin = ends[r]
            if repeat:
                numbers[row, 0] = 1.0 / max(free, 1)
                for i in range(n_known):
                    line[marked[i]] = free_item(state, marked[i], 0, tries, mine, size)
            elif n_known > 0 or may_repeat(line, wanted[r], bitmap):
                marked[n_known] = -1
                table[:] = -1
                next_known = 0
                for slot in range(wanted[r]):
                    is_known = marked[next_known] == slot
                    next_known += is_known
                    if is_known or seen_or_entered(line[slot], table):
                        line[slot] = new_item(state, slot, tries, mine, size, line, table, ranks)
            for slot in range(wanted[r], width):
                line[slot] = -1
            if not repeat and numbers.shape[1] > 0:
                fill_log_q(numbers[row], wanted[r], free)
    return touched


@compiled
def fill_log_q(line: Any, wanted: Any, free: Any) -> None:
    """line[j] = -log(free - j) for j < wanted, else 0.

    Up to a tenth of what is free -log(1 - x) = 2 atanh(y), y = x / (2 - x), by its series, several slots at a time; the
    first term that is left out is below 1e-15.
    """
    if wanted > 0:
        base = -math.log(free)
        if wanted <= 0.1 * free:
            for slot in range(wanted):
                y = slot / (2.0 * free - slot)
                z = y * y
                line[slot] = base + 2.0 * y * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9)))))
        else:
            for slot in range(wanted):
                line[slot] = -math.log(free - slot)
    for slot in range(wanted, len(line)):
        line[slot] = 0.0

"""Uniform draws from all items but a row's known ones: with replacement, or distinct within the row.

Each slot's first candidate is drawn in one vectorised pass; only those that the row's filter lets through (5 %)
are searched for. A candidate that is known, or repeats an earlier slot, is redrawn, which keeps what is
accepted uniform, and after `tries` tries the rank shift gives an exact draw at once: work is bounded. Rows that
are mostly known, or of which a distinct draw takes more than half of what is free, never try.

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
_AHEAD = 32  # rows whose known ids are read from memory at once, while nothing waits for them


@inlined
def truly_known(indices: Any, low: Any, high: Any, line: Any, marked: Any, suspects: Any) -> Any:
    """Keep in `marked` only the slots whose id is in the row, by binary search; their number is returned."""
    known = 0
    for i in range(suspects):
        item = line[marked[i]]
        position = lower_bound(indices, low, high, item)
        if position < high and indices[position] == item:
            marked[known] = marked[i]
            known += 1
    return known


@inlined
def known_slots(row: Any, line: Any, wanted: Any, marked: Any) -> Any:
    """Write the slots of line[:wanted] with a known id to `marked`, in order; return their number."""
    indices, bits, low, high = row
    suspects: Any = 0
    if low < high:
        for slot in range(wanted):
            marked[suspects] = slot
            suspects += np.int64(may_contain(bits, low, high - low, line[slot]))
    return truly_known(indices, low, high, line, marked, suspects)


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


@compiled
def draw_independent(start: Any, stop: Any, how: Any, rows: Any, known: Any, size: Any, out: Any, chance: Any) -> Any:
    """Independent uniform draws, and the chance 1 / free of each in chance (B, 1); the arguments are those of `draw`.

    Rows go through each step in blocks, so that the reads of a block from memory overlap: one after another each would
    wait. Returns nothing of use, as `draw` does.
    """
    key, tries, _ = how
    anchors, counts = rows
    indptr, indices, bits = known
    width = out.shape[1]
    one, other = np.empty((_AHEAD, width), np.uint64), np.empty((_AHEAD, width), np.uint64)
    lows, highs = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.int64)
    suspect_rows, suspect_slots = np.empty(_AHEAD * width + 1, np.int64), np.empty(_AHEAD * width + 1, np.int64)
    touched: Any = 0
    for first in range(start, stop, _AHEAD):
        block = min(_AHEAD, stop - first)
        for r in range(block):
            lows[r], highs[r] = indptr[anchors[first + r]], indptr[anchors[first + r] + 1]
            if lows[r] < highs[r]:
                touched += bits[lows[r]] + bits[highs[r] - 1]
        for r in range(block):
            row, degree = first + r, highs[r] - lows[r]
            free = size - degree
            chance[row, 0] = 1.0 / max(free, 1)
            wanted = counts[row] if free > 0 else 0
            state = row_state(key, row)
            if 2 * degree > size:  # a row that is mostly known: free items by their rank
                for slot in range(wanted):
                    out[row, slot] = shifted(indices, lows[r], highs[r], below(number(state, slot), free))
            else:
                for slot in range(wanted):
                    item = below(number(state, slot), size)
                    out[row, slot] = item
                    one[r, slot] = filter_bit(item, degree, HASH_A)
                    other[r, slot] = filter_bit(item, degree, HASH_B)
            for slot in range(wanted, width):
                out[row, slot] = -1
        suspects: Any = 0
        for r in range(block):
            degree = highs[r] - lows[r]
            if degree == 0 or 2 * degree > size:
                continue
            for slot in range(counts[first + r]):
                suspect_rows[suspects], suspect_slots[suspects] = r, slot
                suspects += np.int64(bit_at(bits, lows[r], one[r, slot]) & bit_at(bits, lows[r], other[r, slot]))
        for i in range(suspects):
            touched += indices[(lows[suspect_rows[i]] + highs[suspect_rows[i]]) >> 1]
        for i in range(suspects):
            r, slot = suspect_rows[i], suspect_slots[i]
            row, low, high = first + r, lows[r], highs[r]
            position = lower_bound(indices, low, high, out[row, slot])
            if position < high and indices[position] == out[row, slot]:
                out[row, slot] = free_item(row_state(key, row), slot, 0, tries, (indices, bits, low, high), size)
    return touched


@compiled
def draw(start: Any, stop: Any, how: Any, rows: Any, known: Any, size: Any, out: Any, log_q: Any) -> Any:
    """Uniform draws: distinct ones, or independent ones if `repeat`; -1 in slots that are not wanted or not free.

    Args:
        how: (key, tries, repeat).
        rows: (anchors, counts).
        known: (indptr, indices, filter) of the known ids.
        log_q: Of distinct draws (B, K) -log(free - slot), the chance given the row's earlier slots, or (B, 0) if it is
            not needed; of independent ones (B, 1), the chance 1 / free of each.

    Returns:
        Nothing of use: the sum of what was read ahead, which the compiler would leave out otherwise.
    """
    key, tries, repeat = how
    anchors, counts = rows
    indptr, indices, bits = known
    width = out.shape[1]
    line, one, other = np.empty(width, np.int64), np.empty(width, np.uint64), np.empty(width, np.uint64)
    marked, ranks = np.empty(width + 1, np.int64), np.empty(2 * width, np.int64)
    table, bitmap = np.empty(table_size(width), np.int64), np.empty(power_of_two(width), np.uint64)
    touched: Any = 0
    for row in range(start, stop):
        if (row - start) % _AHEAD == 0:  # the reads of so many rows overlap; one after another each would wait
            for ahead in range(row, min(row + _AHEAD, stop)):
                place = indptr[anchors[ahead]]
                if place < len(indices):
                    touched += bits[place] + indices[place]
        low, high = indptr[anchors[row]], indptr[anchors[row] + 1]
        degree = high - low
        free = size - degree
        mine = (indices, bits, low, high)
        state = row_state(key, row)
        wanted = min(counts[row], free)
        if repeat:
            wanted = counts[row] if free > 0 else 0
            log_q[row, 0] = 1.0 / max(free, 1)
        if 2 * wanted > free and not repeat:  # more than half: shuffle all, at most twice as many
            shuffle_ranks(state, wanted, free, ranks)
            for slot in range(wanted):
                line[slot] = shifted(indices, low, high, ranks[slot])
        else:
            n_known = 0
            if 2 * degree > size:  # a row that is mostly known: free items by their rank
                for slot in range(wanted):
                    line[slot] = shifted(indices, low, high, below(number(state, slot), free))
            else:
                for slot in range(wanted):  # eight slots at a time: no branch, no read of the row
                    item = below(number(state, slot), size)
                    line[slot] = item
                    one[slot] = filter_bit(item, degree, HASH_A)
                    other[slot] = filter_bit(item, degree, HASH_B)
                if degree > 0:
                    suspects: Any = 0
                    for slot in range(wanted):
                        marked[suspects] = slot
                        suspects += np.int64(bit_at(bits, low, one[slot]) & bit_at(bits, low, other[slot]))
                    n_known = truly_known(indices, low, high, line, marked, suspects)
            if repeat:
                for i in range(n_known):
                    line[marked[i]] = free_item(state, marked[i], 0, tries, mine, size)
            elif n_known > 0 or may_repeat(line, wanted, bitmap):
                marked[n_known] = -1
                table[:] = -1
                next_known = 0
                for slot in range(wanted):
                    is_known = marked[next_known] == slot
                    next_known += is_known
                    if is_known or seen_or_entered(line[slot], table):
                        line[slot] = new_item(state, slot, tries, mine, size, line, table, ranks)
        for slot in range(width):
            out[row, slot] = line[slot] if slot < wanted else -1
        if not repeat and log_q.shape[1] > 0:
            fill_log_q(log_q[row], wanted, free)
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

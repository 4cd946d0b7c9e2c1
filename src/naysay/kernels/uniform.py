"""Uniform draws from all items but a row's known ones: with replacement, or distinct within the row.

Each slot's first candidate is drawn in one vectorised pass; only those that the row's filter lets through (5 %)
are searched for. A candidate that is known, or repeats an earlier slot, is redrawn, which keeps what is
accepted uniform, and after `tries` tries the rank shift gives an exact draw at once: work is bounded. Rows that
are mostly known, or of which a distinct draw takes more than half of what is free, never try.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels import csr, distinct
from naysay.kernels.compile import compiled, inlined
from naysay.kernels.random import below, number, retry, row_state

TRIES = 32
# Why a slot of a distinct row is checked again: 1, it may repeat an earlier one; or this, it is known.
KNOWN = np.uint8(2)
# Beyond this many slots so many repeat that a table of the row is quicker than comparing with all earlier slots.
_WIDE = 2048


@inlined
def truly_known(indices: Any, low: Any, high: Any, line: Any, marked: Any, suspects: Any) -> Any:
    """Keep in `marked` only the slots whose id is in the row, by binary search; their number is returned."""
    known = 0
    for i in range(suspects):
        item = line[marked[i]]
        position = csr.lower_bound(indices, low, high, item)
        if position < high and indices[position] == item:
            marked[known] = marked[i]
            known += 1
    return known


@inlined
def known_slots(indices: Any, bits: Any, low: Any, high: Any, line: Any, wanted: Any, marked: Any) -> Any:
    """Write the slots of line[:wanted] with a known id to `marked`, in order; return their number."""
    suspects: Any = 0
    if low < high:
        for slot in range(wanted):
            marked[suspects] = slot
            suspects += np.int64(csr.may_contain(bits, low, high - low, line[slot]))
    return truly_known(indices, low, high, line, marked, suspects)


@inlined
def drawn_and_hashed(state: Any, wanted: Any, size: Any, degree: Any, line: Any, one: Any, other: Any) -> None:
    """The first candidate of each slot, any item, and its two bits in the filter: eight slots at a time."""
    for slot in range(wanted):
        item = below(number(state, slot), size)
        line[slot] = item
        one[slot] = csr.filter_bit(item, degree, csr.HASH_A)
        other[slot] = csr.filter_bit(item, degree, csr.HASH_B)


@inlined
def suspect_slots(bits: Any, low: Any, wanted: Any, one: Any, other: Any, marked: Any) -> Any:
    """The slots whose two bits are both set go to `marked`; their number is returned. No branch to mispredict."""
    suspects: Any = 0
    for slot in range(wanted):
        marked[suspects] = slot
        suspects += np.int64(csr.bit_at(bits, low, one[slot]) & csr.bit_at(bits, low, other[slot]))
    return suspects


@inlined
def free_item(
    state: Any, slot: Any, attempt: Any, tries: Any, indices: Any, bits: Any, low: Any, high: Any, size: Any
) -> Any:
    """A uniform id outside the row, from the slot's tries from `attempt` on."""
    if 2 * (high - low) <= size:
        for i in range(tries):
            item = below(retry(state, slot, attempt + i), size)
            if not csr.row_contains(indices, bits, low, high, item):
                return item
    return csr.shifted(indices, low, high, below(retry(state, slot, attempt + tries), size - (high - low)))


@inlined
def make_distinct(state: Any, tries: Any, row: Any, size: Any, line: Any, wanted: Any, scratch: Any) -> None:
    """Redraw, slot by slot, what is known (doubtful is KNOWN) or repeats an earlier slot (it may where doubtful).

    A redrawn slot puts later slots with its new id in doubt. Most new ids are not in the bitmap of
    the row's, so that no slot need be compared. With a table, of wide rows, every slot is looked up instead.

    row = (indices, filter, low, high); scratch = (bitmap, doubtful, table, ranks).
    """
    indices, bits, low, high = row
    bitmap, doubtful, table, ranks = scratch
    table[:] = -1
    wide = len(table) > 0
    for slot in range(wanted):
        if doubtful[slot] == 0 and not wide:
            continue
        if doubtful[slot] != KNOWN and not distinct.seen_or_entered(line, slot, line[slot], table):
            continue
        settled, met = False, np.uint8(1)
        for i in range(tries):
            line[slot] = free_item(state, slot, i * (tries + 1), tries, indices, bits, low, high, size)
            met = np.uint8(1) if wide else distinct.met_before(bitmap, line[slot])
            settled = met == 0 or not distinct.seen_or_entered(line, slot, line[slot], table)
            if settled:
                break
        if not settled:  # all tries failed: count past the earlier slots instead
            for earlier in range(slot):
                ranks[earlier] = line[earlier] - (csr.lower_bound(indices, low, high, line[earlier]) - low)
            rank = distinct.unused_rank(retry(state, slot, tries * (tries + 1)), ranks, slot, size - (high - low))
            line[slot] = csr.shifted(indices, low, high, rank)
            distinct.seen_or_entered(line, slot, line[slot], table)  # enters it in the table
            distinct.met_before(bitmap, line[slot])
        if met != 0 and not wide:
            for later in range(slot + 1, wanted):
                doubtful[later] |= line[later] == line[slot]


@compiled
def draw(start: Any, stop: Any, how: Any, rows: Any, known: Any, size: Any, out: Any, log_q: Any) -> None:
    """Uniform draws: distinct ones, or independent ones if `repeat`; -1 in slots that are not wanted or not free.

    Args:
        how: (key, tries, repeat).
        rows: (anchors, counts).
        known: (indptr, indices, filter) of the known ids.
        log_q: Of distinct draws (B, K) -log(free - slot), the chance given the row's earlier slots, or (B, 0) if it is
            not needed; of independent ones (B, 1), the chance 1 / free of each.
    """
    key, tries, repeat = how
    anchors, counts = rows
    indptr, indices, bits = known
    width = out.shape[1]
    line, one, other = np.empty(width, np.int64), np.empty(width, np.uint64), np.empty(width, np.uint64)
    marked, ranks = np.empty(width + 1, np.int64), np.empty(2 * width, np.int64)
    bitmap, doubtful = np.empty(distinct.bitmap_size(width), np.uint64), np.empty(width, np.uint8)
    table = np.empty(distinct.table_size(width) if width > _WIDE and not repeat else 0, np.int64)
    for row in range(start, stop):
        low, high = indptr[anchors[row]], indptr[anchors[row] + 1]
        free = size - (high - low)
        wanted = min(counts[row], free)
        if repeat:
            wanted = counts[row] if free > 0 else 0
            log_q[row, 0] = 1.0 / max(free, 1)
        state = row_state(key, row)
        if 2 * wanted > free and not repeat:  # more than half: shuffle all, at most twice as many
            distinct.shuffle_ranks(state, wanted, free, ranks)
            for slot in range(wanted):
                line[slot] = csr.shifted(indices, low, high, ranks[slot])
        else:
            n_known = 0
            if 2 * (high - low) > size:  # a row that is mostly known: free items by their rank
                for slot in range(wanted):
                    line[slot] = csr.shifted(indices, low, high, below(number(state, slot), free))
            else:
                drawn_and_hashed(state, wanted, size, high - low, line, one, other)
                if low < high:
                    suspects = suspect_slots(bits, low, wanted, one, other, marked)
                    n_known = truly_known(indices, low, high, line, marked, suspects)
            if repeat:
                for i in range(n_known):
                    line[marked[i]] = free_item(state, marked[i], 0, tries, indices, bits, low, high, size)
            else:
                doubtful[:] = 0
                if len(table) > 0 or distinct.mark_collisions(line, wanted, bitmap, doubtful) + n_known > 0:
                    for i in range(n_known):
                        doubtful[marked[i]] = KNOWN
                    mine, scratch = (indices, bits, low, high), (bitmap, doubtful, table, ranks)
                    make_distinct(state, tries, mine, size, line, wanted, scratch)
        for slot in range(width):
            out[row, slot] = line[slot] if slot < wanted else -1
        if not repeat and log_q.shape[1] > 0:
            fill_log_q(log_q[row], wanted, free)


@inlined
def fill_log_q(line: Any, wanted: Any, free: Any) -> None:
    """line[j] = -log(free - j) for j < wanted, else 0.

    Up to a tenth of what is free -log(1 - x) = 2 atanh(y), y = x / (2 - x), by its series, several slots at a time; the
    first term that is left out is below 1e-15.
    """
    if wanted > 0:
        base = -np.log(free)
        if wanted <= 0.1 * free:
            for slot in range(wanted):
                y = slot / (2.0 * free - slot)
                z = y * y
                line[slot] = base + 2.0 * y * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9)))))
        else:
            for slot in range(wanted):
                line[slot] = -np.log(free - slot)
    for slot in range(wanted, len(line)):
        line[slot] = 0.0

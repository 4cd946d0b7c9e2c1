"""Draws from lists: entries of a list per row, and entries of one list that all rows share.

A list per row (its candidates, its cache) holds no known id, so a place below its length is all that is drawn. One list
for all rows (a batch, a memory) holds entries (item, owner), and each candidate is checked: may the row use it? After
`tries` rejections the row's usable entries are listed once and drawn from exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import row_contains
from naysay.kernels.distinct import may_repeat, power_of_two, seen_or_entered, shuffle_ranks, table_size, unused_rank
from naysay.kernels.random import below, number, retry, row_state
from naysay.kernels.uniform import TRIES, fill_log_q, known_slots


@inlined
def distinct_places(state: Any, wanted: Any, size: Any, line: Any, bitmap: Any, table: Any, ranks: Any) -> None:
    """`wanted` distinct numbers below `size`, in random order, to line[:wanted]; `ranks` has room for 2 wanted."""
    if 2 * wanted > size:  # more than half: shuffle all, at most twice as many
        shuffle_ranks(state, wanted, size, ranks)
        line[:wanted] = ranks[:wanted]
        return
    for slot in range(wanted):
        line[slot] = below(number(state, slot), size)
    if not may_repeat(line, wanted, bitmap):
        return
    table[:] = -1
    for slot in range(wanted):
        repeats = seen_or_entered(line[slot], table)
        for attempt in range(TRIES):
            if not repeats:
                break
            line[slot] = below(retry(state, slot, attempt), size)
            repeats = seen_or_entered(line[slot], table)
        if repeats:  # all tries failed: count past the earlier slots instead
            ranks[:slot] = line[:slot]
            line[slot] = unused_rank(retry(state, slot, TRIES), ranks, slot, size)
            seen_or_entered(line[slot], table)


@compiled
def draw_places(start: Any, stop: Any, key: Any, repeat: Any, counts: Any, lists: Any, out: Any, log_q: Any) -> None:
    """counts[row] entries of the row's list, at places that are distinct unless `repeat`, then -1; and their log_q.

    lists = (begins, sizes, values): the list of row r is values[begins[r] : begins[r] + sizes[r]]. log_q is -log(size)
    with repetition and -log(size - slot) without. Sizes are below 2^32.
    """
    begins, sizes, values = lists
    width = out.shape[1]
    line = np.empty(width, np.int64)
    ranks = np.empty(2 * width, np.int64)
    table, bitmap = np.empty(table_size(width), np.int64), np.empty(power_of_two(width), np.uint64)
    for row in range(start, stop):
        size = sizes[row]
        state = row_state(key, row)
        if repeat:
            wanted = counts[row] if size > 0 else 0
            for slot in range(wanted):
                line[slot] = below(number(state, slot), size)
                log_q[row, slot] = -math.log(size)
            log_q[row, wanted:] = 0.0
        else:
            wanted = min(counts[row], size)
            distinct_places(state, wanted, size, line, bitmap, table, ranks)
            if row > start and size == sizes[row - 1] and counts[row] == counts[row - 1]:
                log_q[row] = log_q[row - 1]  # most rows ask alike: their logarithms are taken once
            else:
                fill_log_q(log_q[row], wanted, size)
        for slot in range(wanted):
            out[row, slot] = values[begins[row] + line[slot]]
        out[row, wanted:] = -1


@compiled
def keep_first(start: Any, stop: Any, given: Any, leave_out: Any, out: Any) -> None:
    """Move the ids of a row that are not -1, left out or repeated to its front, in order; -1 behind them."""
    table = np.empty(table_size(given.shape[1]), np.int64)
    for row in range(start, stop):
        table[:] = -1
        kept = 0
        for slot in range(given.shape[1]):
            item = given[row, slot]
            if item >= 0 and not leave_out[row, slot] and not seen_or_entered(item, table):
                out[row, kept] = item
                kept += 1
        out[row, kept:] = -1


@inlined
def known_row(indptr: Any, anchor: Any) -> Any:
    """Where the known items of an anchor are; an anchor past the last row has none."""
    if anchor + 1 < len(indptr):
        return indptr[anchor], indptr[anchor + 1]
    return np.int64(0), np.int64(0)


@inlined
def may_use(item: Any, owner: Any, anchor: Any, positive: Any, indices: Any, bits: Any, low: Any, high: Any) -> Any:
    """Whether a row may use an entry: not its own item, not its own anchor's, and not known of its anchor."""
    return item != positive and owner != anchor and not row_contains(indices, bits, low, high, item)


@compiled
def all_entries(start: Any, stop: Any, batch: Any, known: Any, out: Any, excluded: Any) -> None:
    """out[row, j] = items[j] where the row may use entry j, else -1.

    excluded[row] counts the others: the same item, else the same anchor, else known. `batch` is (anchors, positives,
    items, owners), `known` is (indptr, indices, filter).
    """
    anchors, positives, items, owners = batch
    indptr, indices, bits = known
    marked = np.empty(len(items) + 1, np.int64)
    for row in range(start, stop):
        anchor, positive = anchors[row], positives[row]
        same_item, same_anchor, n_known = 0, 0, 0
        for j in range(len(items)):
            mine, own = items[j] == positive, owners[j] == anchor
            out[row, j] = -1 if mine or own else items[j]
            same_item += mine
            same_anchor += own and not mine
        low, high = known_row(indptr, anchor)
        for i in range(known_slots((indices, bits, low, high), items, len(items), marked)):
            n_known += out[row, marked[i]] >= 0
            out[row, marked[i]] = -1
        excluded[row, 0], excluded[row, 1], excluded[row, 2] = same_item, same_anchor, n_known


@compiled
def draw_entries(start: Any, stop: Any, how: Any, counts: Any, batch: Any, known: Any, out: Any, places: Any) -> None:
    """counts[row] usable entries, uniform; unless `repeat`, uniform over those whose item is not in the row yet.

    Items go to `out` and the entries' places to `places`, -1 in both once nothing is left. `how` is (key, tries,
    repeat); batch and known are those of `all_entries`.
    """
    key, tries, repeat = how
    anchors, positives, items, owners = batch
    indptr, indices, bits = known
    held = len(items)
    table = np.empty(table_size(out.shape[1]), np.int64)
    usable = np.empty(held, np.int64)
    for row in range(start, stop):
        anchor, positive = anchors[row], positives[row]
        low, high = known_row(indptr, anchor)
        state, spare = row_state(key, row), row_state(~key, row)
        table[:] = -1
        out[row, :] = -1
        places[row, :] = -1
        left: Any = -1  # how many usable entries are listed; -1: they are not yet
        taken = 0  # random numbers used on the list
        for slot in range(counts[row] if held > 0 else 0):
            place = -1
            few = repeat or 4 * slot < held  # later on many tries would hit what the row has
            for attempt in range(tries if left < 0 and few else 0):
                bits_here = number(state, slot) if attempt == 0 else retry(state, slot, attempt)
                entry = below(bits_here, held)
                if may_use(items[entry], owners[entry], anchor, positive, indices, bits, low, high) and (
                    repeat or not seen_or_entered(items[entry], table)
                ):
                    place = entry
                    break
            if place < 0 and left < 0:
                left = 0
                for entry in range(held):
                    usable[left] = entry
                    fits = may_use(items[entry], owners[entry], anchor, positive, indices, bits, low, high)
                    left += np.int64(fits)
            # An entry whose item the row holds leaves the list when it comes up: all slots together check it once.
            while place < 0 and left > 0:
                chosen = below(number(spare, taken), left)
                taken += 1
                entry = usable[chosen]
                if not repeat:
                    left -= 1
                    usable[chosen] = usable[left]
                if repeat or not seen_or_entered(items[entry], table):
                    place = entry
            if place < 0:
                break
            out[row, slot] = items[place]
            places[row, slot] = place

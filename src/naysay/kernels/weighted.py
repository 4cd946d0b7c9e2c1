"""Weighted draws from all items but a row's known ones: with replacement, or distinct within the row.

Weights are whole numbers that add up to about 2^62, so every sum is exact, also for a row whose known items carry
all but a trillionth of the weight. `cumulative` (n + 1,) holds their running sum; `alias` (2 n,) holds, for each
cell, a threshold out of 2^64 and the item beyond it (Walker 1977, Vose 1991).

A light row draws from the alias table and tries again on a known item. A heavy one (known items carry more than
half) maps a number x below its free weight past the known items: j = #{j : C(p_j) - P_j <= x}, with C the running
sum of all weights and P_j that of the row's first j known items; the item is where C passes x + P_j. After
`tries` repetitions within a distinct row, the same walk goes past the earlier slots too. All are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.csr import row_contains
from naysay.kernels.distinct import may_repeat, power_of_two, put_in_order, seen_or_entered, table_size
from naysay.kernels.random import below, below_wide, number, retry, row_state
from naysay.kernels.uniform import known_slots


@compiled
def build_alias(weights: Any, total: Any, alias: Any) -> None:
    """Vose's construction: cells filled to the mean, each with at most one other item beyond its threshold."""
    n = len(weights)
    share = np.empty(n, np.float64)
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    n_small, n_large = 0, 0
    for i in range(n):
        share[i] = weights[i] * (n / total)
        if share[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        cell, giver = small[n_small], large[n_large - 1]
        alias[2 * cell] = np.uint64(share[cell] * 18446744073709549568.0)  # the largest double below 2^64
        alias[2 * cell + 1] = np.uint64(giver)
        share[giver] -= 1.0 - share[cell]
        if share[giver] < 1.0:
            n_large -= 1
            small[n_small] = giver
            n_small += 1
    while n_small + n_large > 0:  # full up to rounding: no other item in these cells
        if n_large > 0:
            n_large -= 1
            cell = large[n_large]
        else:
            n_small -= 1
            cell = small[n_small]
        alias[2 * cell] = np.uint64(0xFFFFFFFFFFFFFFFF)
        alias[2 * cell + 1] = np.uint64(cell)


@inlined
def alias_item(bits: Any, size: Any, alias: Any) -> Any:
    """One draw from all items: the high part of bits * size is the cell, the low part the place within it."""
    cell = below(bits, size)
    inside = bits * np.uint64(size) < alias[2 * cell]
    return cell if inside else np.int64(alias[2 * cell + 1])


@inlined
def item_at(cumulative: Any, x: Any) -> Any:
    """The item whose share of the running sum holds x."""
    low: Any = 0
    length = len(cumulative) - 1
    while length > 1:
        half = length >> 1
        low += half * np.int64(cumulative[low + half] <= x)
        length -= half
    return low


@inlined
def heavy_item(x: Any, cumulative: Any, row: Any, before: Any) -> Any:
    """The item at weight x of the free ones; before[j] is the weight of the row's first j known items."""
    indices, _, low, high = row
    first, last = 0, high - low
    while first < last:
        middle = (first + last) >> 1
        if cumulative[indices[low + middle]] - before[middle] <= x:
            first = middle + 1
        else:
            last = middle
    return item_at(cumulative, x + before[first])


@compiled
def walked_item(x: Any, cumulative: Any, row: Any, taken: Any) -> Any:
    """The same, going past the known items and the sorted ids `taken` one by one."""
    indices, _, position, high = row
    skipped, earlier = 0, 0
    while position < high or earlier < len(taken):
        if earlier == len(taken) or (position < high and indices[position] < taken[earlier]):
            item = np.int64(indices[position])
            position += 1
        else:
            item = taken[earlier]
            earlier += 1
        if cumulative[item] - skipped > x:
            break
        skipped += cumulative[item + 1] - cumulative[item]
    return item_at(cumulative, x + skipped)


@compiled
def sums_before(cumulative: Any, row: Any) -> Any:
    """before[j] = the weight of the row's first j known items."""
    indices, _, low, high = row
    before = np.zeros(high - low + 1, np.int64)
    for j in range(high - low):
        item = indices[low + j]
        before[j + 1] = before[j] + cumulative[item + 1] - cumulative[item]
    return before


@compiled
def free_item(state: Any, slot: Any, attempt: Any, tries: Any, row: Any, weights: Any, before: Any) -> Any:
    """An item outside the row by weight, from the slot's tries from `attempt` on; `before` is empty in a light row.

    weights = (cumulative, alias, the free weight of the row).
    """
    indices, bits, low, high = row
    cumulative, alias, free = weights
    if len(before) > 0:
        return heavy_item(below_wide(retry(state, slot, attempt), free), cumulative, row, before)
    for i in range(tries):
        item = alias_item(retry(state, slot, attempt + i), len(cumulative) - 1, alias)
        if not row_contains(indices, bits, low, high, item):
            return item
    return walked_item(below_wide(retry(state, slot, attempt + tries), free), cumulative, row, before)


@compiled
def new_item(state: Any, slot: Any, tries: Any, row: Any, weights: Any, before: Any, table: Any) -> Any:
    """An item by weight that is neither known nor in the table, where it is entered; -1 if all tries failed."""
    for i in range(tries):
        item = free_item(state, slot, i * (tries + 1), tries, row, weights, before)
        if not seen_or_entered(item, table):
            return item
    return np.int64(-1)


@compiled
def draw(start: Any, stop: Any, how: Any, rows: Any, known: Any, weights: Any, out: Any, chance: Any) -> None:
    """counts[row] draws by weight, distinct unless `repeat`, then -1, each with its exact chance (1 in empty slots).

    The chance is w_i / W_free of the item, of distinct rows w_i / (W_free - sum of the earlier w).

    Args:
        how: (key, tries, repeat).
        rows: (anchors, counts).
        known: (indptr, indices, filter) of the known ids.
        weights: (cumulative, alias, known weight of each anchor).
    """
    key, tries, repeat = how
    anchors, counts = rows
    indptr, indices, bits = known
    cumulative, alias, known_weight = weights
    width, size, total = out.shape[1], len(cumulative) - 1, cumulative[-1]
    line, taken, marked = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width + 1, np.int64)
    nothing = np.empty(0, np.int64)
    table, bitmap = np.empty(table_size(width), np.int64), np.empty(power_of_two(width), np.uint64)
    for row in range(start, stop):
        mine = (indices, bits, indptr[anchors[row]], indptr[anchors[row] + 1])
        free = total - known_weight[anchors[row]]
        of_free = (cumulative, alias, free)
        wanted = counts[row] if free > 0 else 0
        state = row_state(key, row)
        before = nothing
        n_known = 0
        if free < total - free:  # not 2 * free, which may reach 2^63
            before = sums_before(cumulative, mine)
            for slot in range(wanted):
                line[slot] = heavy_item(below_wide(number(state, slot), free), cumulative, mine, before)
        else:
            for slot in range(wanted):
                line[slot] = alias_item(number(state, slot), size, alias)
            n_known = known_slots(mine, line, wanted, marked)
        if repeat:
            for i in range(n_known):
                line[marked[i]] = free_item(state, marked[i], 0, tries, mine, of_free, before)
        check = not repeat and (n_known > 0 or may_repeat(line, wanted, bitmap))
        if check:
            marked[n_known] = -1
            table[:] = -1
        next_known, n_taken = 0, 0
        left = free
        for slot in range(wanted):
            if left == 0:  # items of weight 0 are no candidates
                wanted = slot
                break
            if check:
                is_known = marked[next_known] == slot
                next_known += is_known
                if is_known or seen_or_entered(line[slot], table):
                    line[slot] = new_item(state, slot, tries, mine, of_free, before, table)
                if line[slot] < 0:  # all tries failed: walk past the earlier slots instead
                    put_in_order(line, n_taken, slot, taken)
                    n_taken = slot
                    x = below_wide(retry(state, slot, tries * (tries + 1)), left)
                    line[slot] = walked_item(x, cumulative, mine, taken[:slot])
                    seen_or_entered(line[slot], table)
            item = line[slot]
            weight = cumulative[item + 1] - cumulative[item]
            out[row, slot] = item
            chance[row, slot] = weight / left
            if not repeat:
                left -= weight
        for slot in range(wanted, width):
            out[row, slot] = -1
            chance[row, slot] = 1.0

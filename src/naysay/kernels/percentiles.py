"""Rows of scores by difficulty: their order, sums over intervals of it, and what two orders have in common.

All sums of a row run from its hardest candidate on, and rows are added up in order by `add_moments`, `add_rows` and
`add_hard`, which are not split: so no result depends on threads or on how rows were cut into blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined

ROUNDING = 1e-9  # (1 - 0.9) * 10 is 0.9999999999999998: what a cut may miss and still be whole
_TILE = 256  # negatives that are scored side by side, by four anchors: their sums stay in the nearest cache


@inlined
def cut(size: Any, share: Any) -> Any:
    """How many of `size` candidates are the hardest `share` of them: rounded down."""
    return min(np.int64(np.floor(share * size + ROUNDING)), size)


@compiled
def pair_scores(
    start: Any, stop: Any, cosine: Any, anchors: Any, anchor_norms: Any, columns: Any, norms: Any, out: Any
) -> None:
    """out[anchor, negative] = their dot product or cosine, the same bytes as `dots.all_scores`.

    Each sum is float64, over the coordinates in order. `columns` (d, m) are the negatives, a coordinate per row: many
    sums advance at once.
    """
    width, many = columns.shape
    sums = np.empty((4, _TILE), np.float64)
    for first in range(0, many, _TILE):
        size = min(_TILE, many - first)
        for row in range(start, stop, 4):
            # Past the last row the same row is done again: one loop, and no case for what is left over.
            b, c, d = min(row + 1, stop - 1), min(row + 2, stop - 1), min(row + 3, stop - 1)
            sums[:] = 0.0
            for i in range(width):
                line = columns[i, first : first + size]
                one, two = np.float64(anchors[row, i]), np.float64(anchors[b, i])
                three, four = np.float64(anchors[c, i]), np.float64(anchors[d, i])
                for j in range(size):
                    value = line[j]
                    sums[0, j] += one * value
                    sums[1, j] += two * value
                    sums[2, j] += three * value
                    sums[3, j] += four * value
            for place in range(min(4, stop - row)):
                for j in range(size):
                    total = sums[place, j]
                    if cosine:
                        total = total / (anchor_norms[row + place] * norms[first + j])
                    out[row + place, first + j] = np.float32(total + 0.0)  # adding 0 turns -0 into 0


@compiled
def hardest_first(start: Any, stop: Any, bits: Any, kept: Any, order: Any, counts: Any) -> None:
    """order[row] = the slots by score, highest first, of equal scores the earlier slot first, then -1.

    A radix sort, a byte at a time: stable, and of the same cost whatever the scores are.

    Args:
        bits: (rows, m) the scores' bits as uint32 or uint64; no NaN and no -0.
        kept: (rows, m) bool, or (0, 0) where all count; counts[row] is how many of a row do.
    """
    width, passes = bits.shape[1], bits.itemsize
    masked = kept.shape[0] > 0
    sign = np.uint64(1) << np.uint64(8 * passes - 1)
    keys, next_keys = np.empty(width, np.uint64), np.empty(width, np.uint64)
    slots, next_slots = np.empty(width, np.int32), np.empty(width, np.int32)
    tallies = np.empty((passes, 256), np.int64)
    byte = np.uint64(255)
    for row in range(start, stop):
        found = 0
        tallies[:] = 0
        for slot in range(width):
            if masked and not kept[row, slot]:
                continue
            value = np.uint64(bits[row, slot])
            # Bits of floats rise with the number, but fall below zero; here the highest score has the lowest key.
            key = value if value >= sign else sign - np.uint64(1) - value
            keys[found], slots[found] = key, slot
            found += 1
            for step in range(passes):
                tallies[step, np.int64((key >> np.uint64(8 * step)) & byte)] += 1
        for step in range(passes):
            shift, tally = np.uint64(8 * step), tallies[step]
            if found > 0 and tally[np.int64((keys[0] >> shift) & byte)] == found:
                continue  # all alike in this byte
            begin = 0
            for digit in range(256):
                here = tally[digit]
                tally[digit] = begin
                begin += here
            for i in range(found):
                bin_of = np.int64((keys[i] >> shift) & byte)
                place = tally[bin_of]
                tally[bin_of] = place + 1
                next_keys[place], next_slots[place] = keys[i], slots[i]
            keys, next_keys = next_keys, keys
            slots, next_slots = next_slots, slots
        order[row, :found] = slots[:found]
        order[row, found:] = -1
        counts[row] = found


@compiled
def interval_sums(
    start: Any, stop: Any, order: Any, counts: Any, values: Any, ends: Any, begins: Any, stops: Any, out: Any
) -> None:
    """out[row, group] = the sum of values[row, slot] over the slots of a group of intervals of difficulty.

    Args:
        ends: (s + 1,) from 0.0, the easiest, to 1.0: interval i is [ends[i], ends[i + 1]).
        begins: (g,) a group is the intervals from begins[g] to stops[g], the last not included.
        stops: (g,) a group is the intervals from begins[g] to stops[g], the last not included.
    """
    intervals = len(ends) - 1
    sums = np.empty(intervals, np.float64)
    for row in range(start, stop):
        for i in range(intervals):
            first = cut(counts[row], 1.0 - ends[i + 1])
            last = cut(counts[row], 1.0 - ends[i])
            total = 0.0
            for place in range(first, last):
                total += values[row, order[row, place]]
            sums[i] = total
        for group in range(len(begins)):
            total = 0.0
            for i in range(begins[group], stops[group]):
                total += sums[i]
            out[row, group] = total


@compiled
def class_sums(start: Any, stop: Any, scores: Any, order: Any, counts: Any, hard: Any, classes: Any, out: Any) -> None:
    """out[row, :, c] = of negatives of class c: how many, how many hard, the sum of scores, how many below 0."""
    for row in range(start, stop):
        out[row] = 0.0
        top = cut(counts[row], hard)
        for place in range(counts[row]):
            slot = order[row, place]
            name, score = classes[slot], scores[row, slot]
            out[row, 0, name] += 1
            out[row, 1, name] += place < top
            out[row, 2, name] += score
            out[row, 3, name] += score < 0


@inlined
def _middle_ranks(line: Any, order: Any, size: Any, ranks: Any) -> None:
    """ranks[slot] = the place of the slot less the middle of all places; equal scores share the middle of theirs."""
    first = 0
    while first < size:
        last = first
        while last + 1 < size and line[order[last + 1]] == line[order[first]]:
            last += 1
        for place in range(first, last + 1):
            ranks[order[place]] = 0.5 * (first + last) - 0.5 * (size - 1)
        first = last + 1


@compiled
def compare_orders(
    start: Any,
    stop: Any,
    scores: Any,
    order: Any,
    others: Any,
    other_order: Any,
    counts: Any,
    hard: Any,
    correlation: Any,
    overlap: Any,
) -> None:
    """correlation[row] = Spearman's, of the two rows of scores; overlap[row] = the share of hard ones that both have.

    NaN where all scores of a row are equal, and where no candidate is hard. Both rows have the same candidates.
    """
    width = order.shape[1]
    one, two = np.empty(width, np.float64), np.empty(width, np.float64)
    marked = np.zeros(width, np.bool_)
    for row in range(start, stop):
        size = counts[row]
        _middle_ranks(scores[row], order[row], size, one)
        _middle_ranks(others[row], other_order[row], size, two)
        both, first, second = 0.0, 0.0, 0.0
        for place in range(size):
            slot = order[row, place]
            both += one[slot] * two[slot]
            first += one[slot] * one[slot]
            second += two[slot] * two[slot]
        correlation[row] = both / np.sqrt(first * second) if first > 0 and second > 0 else np.nan
        top = cut(size, hard)
        for place in range(top):
            marked[order[row, place]] = True
        shared = 0
        for place in range(top):
            shared += marked[other_order[row, place]]
        for place in range(top):
            marked[order[row, place]] = False
        overlap[row] = shared / top if top > 0 else np.nan


@compiled
def add_hard(order: Any, counts: Any, hard: Any, tally: Any) -> None:
    """tally[slot] += 1 for each row in which the slot is hard."""
    for row in range(len(order)):
        for place in range(cut(counts[row], hard)):
            tally[order[row, place]] += 1


@compiled
def add_moments(part: Any, whole: Any, sums: Any) -> None:
    """sums[group] += rows that have something, and whole, part, whole^2, whole part and part^2 of each, row by row."""
    for row in range(len(part)):
        for group in range(part.shape[1]):
            p, w = part[row, group], whole[row, group]
            if w > 0:
                sums[group, 0] += 1
                sums[group, 1] += w
                sums[group, 2] += p
                sums[group, 3] += w * w
                sums[group, 4] += w * p
                sums[group, 5] += p * p


@compiled
def add_rows(names: Any, rows: Any, totals: Any) -> None:
    """totals[names[row]] += rows[row], row by row: (q, c) tables, of which each row has one name."""
    for row in range(len(rows)):
        for i in range(rows.shape[1]):
            for j in range(rows.shape[2]):
                totals[names[row], i, j] += rows[row, i, j]

"""The two loops of a sketch: a radix sort of keys, and the merge of two sorted runs that keeps every second key."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled

DIGIT = 11  # bits: the 2,048 counters of a digit stay in the nearest cache
_BITS, _LAST = np.uint64(DIGIT), np.uint64((1 << DIGIT) - 1)


@compiled
def sort_keys(keys: Any, spare: Any, digits: int) -> None:
    """Sort unsigned keys digit by digit, the lowest first: to and fro, so an odd number of digits ends in `spare`."""
    place = np.empty(1 << DIGIT, np.int64)
    for digit in range(digits):
        shift = np.uint64(digit) * _BITS
        place[:] = 0
        for key in keys:
            place[np.int64((np.uint64(key) >> shift) & _LAST)] += 1
        start = np.int64(0)
        for value in range(len(place)):
            count = place[value]
            place[value] = start
            start += count
        for key in keys:
            found = np.int64((np.uint64(key) >> shift) & _LAST)
            spare[place[found]] = key
            place[found] += 1
        keys, spare = spare, keys


@compiled
def halve(one: Any, other: Any, first: int, out: Any) -> None:
    """Merge two sorted runs and write every second key to `out`: places first, first + 2, and so on; first is 0 or 1.

    Args:
        out: One longer than half of both runs: every key is written, and the right one of two is written last.
    """
    i, j, late = np.int64(0), np.int64(0), 1 - first
    while i < len(one) and j < len(other):
        left, right = one[i], other[j]
        from_one = np.int64(left <= right)
        out[(i + j + late) >> 1] = left if from_one else right
        i += from_one
        j += 1 - from_one
    for rest in range(i, len(one)):
        out[(rest + j + late) >> 1] = one[rest]
    for rest in range(j, len(other)):
        out[(i + rest + late) >> 1] = other[rest]

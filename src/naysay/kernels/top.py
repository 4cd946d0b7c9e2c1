"""The highest of each row, in order: few of them, so that a short list kept in order beats a partial sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined


@inlined
def lower_limit(line: Any, maxima: Any) -> Any:
    """A number that at least len(maxima) scores of the line reach: the lowest of the maxima of as many groups."""
    groups = len(maxima)
    for group in range(groups):
        maxima[group] = line[group]
    for first in range(groups, len(line) - groups + 1, groups):
        for group in range(groups):
            value = line[first + group]
            maxima[group] = value if value > maxima[group] else maxima[group]
    lowest = maxima[0]
    for group in range(1, groups):
        lowest = maxima[group] if maxima[group] < lowest else lowest
    return lowest


@compiled
def highest(start: Any, stop: Any, scores: Any, order: Any) -> None:
    """order[row] = the slots of the row's highest scores, highest first; of equal scores the earlier slot comes first.

    Scores below a limit that enough of them reach are left out, several at a time and without a branch; the others go
    through a list kept in order. There are at least as many scores as places, and none is NaN.
    """
    width, slots = order.shape[1], scores.shape[1]
    values, maxima = np.empty(width, scores.dtype), np.empty(width, scores.dtype)
    kept = np.empty(slots + 1, np.int64)
    for row in range(start, stop):
        line = scores[row]
        limit = lower_limit(line, maxima) if 1 < width <= slots // 2 else line.dtype.type(-np.inf)
        found = 0
        for slot in range(slots):
            kept[found] = slot
            found += line[slot] >= limit
        for i in range(found):
            slot = kept[i]
            value = line[slot]
            if i >= width and not value > values[width - 1]:
                continue
            place = min(i, width - 1)
            while place > 0 and values[place - 1] < value:
                values[place] = values[place - 1]
                order[row, place] = order[row, place - 1]
                place -= 1
            values[place] = value
            order[row, place] = slot

"""The highest of each row, in order: few of them, so that a short list kept in order beats a partial sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined


@inlined
def lower_limit(line: Any, maxima: Any, width: Any) -> Any:
    """A lower bound of the `width` highest scores of a row: the highest group maximum that `width` maxima reach.

    Args:
        line: The scores of a row.
        maxima: Working memory, one number per group; at least `width` groups. With twice as many the bound is tighter.
        width: How many scores must reach it.
    """
    groups = len(maxima)
    for group in range(groups):
        maxima[group] = line[group]
    for first in range(groups, len(line) - groups + 1, groups):
        for group in range(groups):
            value = line[first + group]
            maxima[group] = value if value > maxima[group] else maxima[group]
    limit = line.dtype.type(-np.inf)
    for group in range(groups):
        value, reached = maxima[group], np.int32(0)
        for other in range(groups):
            reached += np.int32(maxima[other] >= value)
        limit = value if reached >= width and value > limit else limit
    return limit


@inlined
def order_line(line: Any, order: Any, values: Any, maxima: Any, kept: Any) -> None:
    """Write the slots of a row's highest scores to `order`, highest first; of equal ones the earlier comes first.

    Scores below a limit that enough scores reach are skipped without a branch; the others go through a list kept in
    order. There are at least as many scores as places, and none is NaN.

    Args:
        line: The scores of a row.
        order: The result.
        values: Working memory of len(order) scores.
        maxima: Working memory of 2 len(order) scores.
        kept: Working memory of len(line) + 1 slots.
    """
    width, slots = len(order), len(line)
    limit = lower_limit(line, maxima, width) if width > 1 and 4 * width <= slots else line.dtype.type(-np.inf)
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
            order[place] = order[place - 1]
            place -= 1
        values[place] = value
        order[place] = slot


@compiled
def highest(start: Any, stop: Any, scores: Any, order: Any) -> None:
    """order[row] = the slots of the row's highest scores, as `order_line` has them."""
    width, slots = order.shape[1], scores.shape[1]
    values, maxima = np.empty(width, scores.dtype), np.empty(2 * width, scores.dtype)
    kept = np.empty(slots + 1, np.int64)
    for row in range(start, stop):
        order_line(scores[row], order[row], values, maxima, kept)

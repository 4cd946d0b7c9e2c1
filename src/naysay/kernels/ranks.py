"""How many negatives score above each wanted item of a row, in one pass over the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined


@inlined
def _first_not_below(thresholds: Any, score: Any) -> Any:
    """The number of thresholds, which ascend, that are below a score."""
    low, high = 0, len(thresholds)
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def count_above(
    start: Any,
    stop: Any,
    scores: Any,
    anchors: Any,
    wanted_start: Any,
    wanted: Any,
    known_start: Any,
    known: Any,
    candidates: Any,
    first_pair: Any,
    above: Any,
    equal: Any,
    free: Any,
) -> None:
    """above, equal, free (pairs,): negatives of the row that score higher, the same, and how many there are.

    Negatives are the items, or the candidates of the row, that are neither wanted nor known.

    Args:
        scores: (b, m) of the anchors (b,).
        wanted_start: The start of each anchor's row in `wanted`, whose items ascend; the same for `known`.
        candidates: (b, c) ids, or (b, 0) if all items are ranked; -1 is an empty slot. A repeated id counts again.
        first_pair: (b,) where the pairs of a row start in the outputs.
    """
    items = scores.shape[1]
    sampled = candidates.shape[1] > 0
    role = np.zeros(items, np.bool_)  # whether an item of this row is wanted or known
    for row in range(start, stop):
        anchor = anchors[row]
        mine = wanted[wanted_start[anchor] : wanted_start[anchor + 1]]
        theirs = known[known_start[anchor] : known_start[anchor + 1]]
        line, size = scores[row], len(mine)
        order = np.empty(size, np.float64)
        for i in range(size):
            order[i] = line[mine[i]]
            role[mine[i]] = True
        thresholds = np.sort(order)
        for item in theirs:
            role[item] = True
        higher, same = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
        count = 0
        for place in range(candidates.shape[1] if sampled else items):
            item = candidates[row, place] if sampled else place
            if item < 0 or role[item]:
                continue
            count += 1
            score = np.float64(line[item])
            if score < thresholds[0]:
                continue
            below = _first_not_below(thresholds, score)
            higher[below] += 1
            if below < size and thresholds[below] == score:
                same[below] += 1
        for i in range(size):
            place = _first_not_below(thresholds, order[i])
            total = 0
            for later in range(place + 1, size + 1):
                total += higher[later]
            pair = first_pair[row] + i
            above[pair], equal[pair], free[pair] = total, same[place], count
            role[mine[i]] = False
        for item in theirs:
            role[item] = False

"""How many negatives score above each wanted item of a row, in one pass over the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined

_FEW = 4  # wanted items of a row, up to which a pass over the row for each of them is faster


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


@inlined
def _count_in_line(line: Any, threshold: Any) -> Any:
    """How many scores of a line are above a threshold, and how many equal it: loops without branches, so vectorised."""
    above, equal = 0, 0
    for place in range(len(line)):
        above += line[place] > threshold
    for place in range(len(line)):
        equal += line[place] == threshold
    return above, equal


@inlined
def _counts_of_few(line: Any, wanted: Any, known: Any, above: Any, equal: Any) -> Any:
    """The counts of a row with few wanted items: those of all items, less what is wanted or known. Returns the rest.

    A branch for each item, as `count_above` has for many, takes several times as long as a pass for each wanted item.
    """
    for i in range(len(wanted)):
        above[i], equal[i] = _count_in_line(line, line[wanted[i]])
    free = len(line) - len(wanted)
    for other in wanted:
        for i in range(len(wanted)):
            above[i] -= line[other] > line[wanted[i]]
            equal[i] -= line[other] == line[wanted[i]]
    for item in known:
        if _holds(wanted, item):
            continue
        free -= 1
        for i in range(len(wanted)):
            above[i] -= line[item] > line[wanted[i]]
            equal[i] -= line[item] == line[wanted[i]]
    return free


@inlined
def _holds(items: Any, item: Any) -> Any:
    """Whether an item is one of a few."""
    found = False
    for one in items:
        found |= one == item
    return found


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
        pair = first_pair[row]
        if size <= _FEW and not sampled:
            places = slice(pair, pair + size)
            free[places] = _counts_of_few(line, mine, theirs, above[places], equal[places])
            continue
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
            above[pair + i], equal[pair + i], free[pair + i] = total, same[place], count
            role[mine[i]] = False
        for item in theirs:
            role[item] = False

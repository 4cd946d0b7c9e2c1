"""The nodes of a graph at a given distance from an anchor, and uniform draws from a list of candidates.

Edges are CSR rows (indptr, indices) on one set of n nodes, followed from row to column. What is left out of a row's
answer is the anchor and its row of a second CSR, the known pairs. Scratch is an argument, one set per thread: arrays
of n that are never cleared, only written where a row goes, so a row costs the part of the graph that it reaches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.random import below, number, row_state
from naysay.kernels.uniform import fill_log_q


@inlined
def pick(state: Any, wanted: Any, repeat: Any, pool: Any, size: Any, line: Any, log_q: Any) -> None:
    """Uniform draws from pool[:size] to line, then -1, with their log_q; distinct ones reorder the pool."""
    if repeat:
        filled = wanted if size > 0 else 0
        chance = -np.log(max(size, 1))
        for slot in range(filled):
            line[slot] = pool[below(number(state, slot), size)]
            log_q[slot] = chance
        log_q[filled:] = 0.0
    else:
        filled = min(wanted, size)
        for slot in range(filled):  # the first steps of Fisher and Yates: slot j depends on no later one
            other = slot + below(number(state, slot), size - slot)
            pool[slot], pool[other] = pool[other], pool[slot]
            line[slot] = pool[slot]
        fill_log_q(log_q, filled, size)
    line[filled:] = -1


@compiled
def candidates(mark: Any, anchor: Any, row: Any, own: Any, distances: Any, edges: Any, scratch: Any) -> Any:
    """The unknown nodes at distance nearest ... farthest go to queue[:size], in order of visit; size is returned.

    Args:
        row: The anchor's row of the known pairs.
        own: One more node that counts as known; the anchor itself if there is none.
        distances: (nearest, farthest).
        edges: ((indptr, indices) of the edges, (indptr, indices, filter) of the known pairs).
        scratch: (stamps, queue). stamps (n,): `mark` on a known node that was not visited, mark + 1 on a visited one,
            less on any other. queue (n + 1,): the visited nodes, level after level; a known one is kept as ~node.
    """
    nearest, farthest = distances
    (indptr, indices), (known_indptr, known_indices, _) = edges
    stamps, queue = scratch
    for position in range(known_indptr[row], known_indptr[row + 1]):
        stamps[known_indices[position]] = mark
    stamps[own] = mark
    stamps[anchor] = mark + 1
    queue[0] = anchor
    first, begin = 1, 0
    end: Any = 1
    for distance in range(1, farthest + 1):
        reached = end
        for i in range(begin, end):
            node = queue[i] if queue[i] >= 0 else ~queue[i]
            for position in range(indptr[node], indptr[node + 1]):
                other = indices[position]
                seen = stamps[other]
                stamps[other] = mark + 1
                # Written in any case and kept if it is new: no branch to mispredict. Hence the one place more.
                queue[reached] = ~other if seen == mark else other
                reached += np.int64(seen <= mark)
        begin, end = end, reached
        if distance <= nearest:
            first = begin
        if begin == end:
            break
    size: Any = 0
    for i in range(first, end):
        node = queue[i]
        queue[size] = node
        size += np.int64(node >= 0)
    return size


@compiled
def draw_at_distance(
    start: Any, stop: Any, scratch: Any, how: Any, starts: Any, counts: Any, distances: Any, edges: Any, out: Any
) -> None:
    """Uniform draws from the unknown nodes at the distances (nearest, farthest); the stamps must be zeros.

    how = (key, repeat); starts = (anchors, rows, owns), as `candidates` takes them; out = (ids, log_q).
    """
    key, repeat = how
    anchors, rows, owns = starts
    ids, log_q = out
    for row in range(start, stop):
        mark = 2 * (row - start) + 1  # above all that earlier rows left: nothing is to be cleared
        size = candidates(mark, anchors[row], rows[row], owns[row], distances, edges, scratch)
        pick(row_state(key, row), counts[row], repeat, scratch[1], size, ids[row], log_q[row])

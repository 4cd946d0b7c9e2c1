"""Personalised PageRank by forward push, and draws from a window of its ranks.

Edges and known pairs are those of `hops`. The push (Andersen, Chung and Lang 2006) keeps, for each node that it
reached, a score p and a residual r with

    pagerank(anchor) = p + sum over u of r(u) pagerank(u)

and a push at u turns restart * r(u) into score and hands the rest to u's neighbours in equal parts; from a node without
edges it all goes back to the anchor. It ends when r(u) <= tolerance * max(1, degree(u)) at every u: each push moves at
least restart * tolerance * degree(u) of a mass of 1, so there are at most 1 / (restart * tolerance) edge steps, besides
those of the first push, which is made in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled, inlined
from naysay.kernels.hops import pick
from naysay.kernels.random import row_state

# The scratch of a thread; only `nodes` and `queue` may hold anything before a push:
#   nodes      (n,) int32: the reached ones, in order of first reach
#   queue      (at least n + 1, a power of two) int32: a ring of the nodes whose residual is above its bound, each once
#   score      (n,) float64
#   residual   (2 n,) float64: of each node, and then what it may be at the end; 0 there means not reached


@compiled
def pagerank(anchor: Any, restart: Any, tolerance: Any, indptr: Any, indices: Any, scratch: Any) -> Any:
    """The scores of all that the push reaches; the number of those nodes is returned."""
    nodes, queue, score, residual = scratch
    wrap = len(queue) - 1
    residual[2 * anchor] = 1.0
    residual[2 * anchor + 1] = tolerance * max(1, indptr[anchor + 1] - indptr[anchor])
    nodes[0] = anchor
    queue[0] = anchor
    reached, head = 1, 0
    tail: Any = 1
    while head < tail:
        node = np.int64(queue[head & wrap])
        head += 1
        mass = residual[2 * node]
        score[node] += restart * mass
        residual[2 * node] = 0.0
        low, high = indptr[node], indptr[node + 1]
        share = (1.0 - restart) * mass / max(1, high - low)
        for position in range(low, max(high, low + 1)):
            other = np.int64(indices[position]) if low < high else anchor
            before, bound = residual[2 * other], residual[2 * other + 1]
            after = before + share
            residual[2 * other] = after
            if bound == 0.0:
                bound = tolerance * max(1, indptr[other + 1] - indptr[other])
                residual[2 * other + 1] = bound
                nodes[reached] = other
                reached += 1
            # Written in any case and kept if the bound was passed just now: no branch to mispredict.
            queue[tail & wrap] = other
            tail += np.int64(before <= bound) & np.int64(after > bound)
    for i in range(reached):  # from any node a walk stops at once with chance `restart`: still a lower bound
        score[nodes[i]] += restart * residual[2 * nodes[i]]
    return reached


@inlined
def comes_first(one: Any, other: Any, score: Any) -> Any:
    """Whether node `one` ranks before `other`: score descending, id ascending."""
    return score[one] > score[other] or (score[one] == score[other] and one < other)


@inlined
def part_at(rank: Any, low: Any, high: Any, order: Any, score: Any) -> None:
    """Put in front of order[rank], within order[low:high], exactly those that rank before it (Hoare's selection)."""
    if rank in (low, high):
        return
    last = high - 1
    while low < last:
        pivot = order[(low + last) >> 1]
        i, j = low, last
        while i <= j:
            while comes_first(order[i], pivot, score):
                i += 1
            while comes_first(pivot, order[j], score):
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if rank <= j:
            last = j
        elif rank >= i:
            low = i
        else:
            break


@compiled
def draw_ranks(
    start: Any, stop: Any, scratch: Any, how: Any, rows: Any, accuracy: Any, window: Any, edges: Any, out: Any
) -> None:
    """Uniform draws from ranks low ... high - 1 of each anchor's unknown nodes, or from shares of their number.

    Args:
        how: (key, repeat).
        rows: (anchors, counts).
        accuracy: (restart, tolerance).
        window: (low, high, whether they are shares).
        edges: As in `hops`.
        out: (ids, log_q).
    """
    key, repeat = how
    anchors, counts = rows
    restart, tolerance = accuracy
    low, high, shares = window
    (indptr, indices), (known_indptr, known_indices, _) = edges
    out_ids, log_q = out
    nodes, queue, score, residual = scratch
    for row in range(start, stop):
        anchor = anchors[row]
        reached = pagerank(anchor, restart, tolerance, indptr, indices, scratch)
        score[anchor] = -1.0
        for position in range(known_indptr[anchor], known_indptr[anchor + 1]):
            node = known_indices[position]
            if residual[2 * node + 1] > 0.0:
                score[node] = -1.0
        ranked: Any = 0
        for i in range(reached):
            queue[ranked] = nodes[i]
            ranked += np.int64(score[nodes[i]] >= 0.0)
        first = min(ranked, np.int64(low * ranked if shares else low))
        last = min(ranked, np.int64(high * ranked if shares else high))
        part_at(first, 0, ranked, queue, score)
        part_at(last, first, ranked, queue, score)
        pick(row_state(key, row), counts[row], repeat, queue[first:last], last - first, out_ids[row], log_q[row])
        for i in range(reached):  # as clean as it came: the next row starts from zeros
            score[nodes[i]] = 0.0
            residual[2 * nodes[i]] = 0.0
            residual[2 * nodes[i] + 1] = 0.0

"""Scores of queries and entities, by products or by distances, and their gradients, without copies of the vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from naysay.kernels.compile import compiled

_TAIL = 2  # of types.TAIL


@partial(compiled, reorder=True)
def side_scores(
    start: Any, stop: Any, heads: Any, tails: Any, entities: Any, ids: Any, sides: Any, distances: Any, out: Any
) -> None:
    """out[b, k] = score of entity ids[b, k] with query tails[b] where sides[b, k] is the tail, else heads[b]."""
    width, many = entities.shape[1], ids.shape[1]
    for b in range(start, stop):
        for k in range(many):
            query, other = tails[b] if sides[b, k] == _TAIL else heads[b], entities[ids[b, k]]
            if distances:
                gap = query[0] - other[0]
                total = gap * gap
                for place in range(1, width):
                    gap = query[place] - other[place]
                    total += gap * gap
                out[b, k] = -np.sqrt(total + 1e-12)  # which has a gradient at 0
            else:
                total = query[0] * other[0]
                for place in range(1, width):
                    total += query[place] * other[place]
                out[b, k] = total


@compiled
def add_side_gradients(
    heads: Any,
    tails: Any,
    entities: Any,
    ids: Any,
    sides: Any,
    distances: Any,
    scores: Any,
    slopes: Any,
    head_out: Any,
    tail_out: Any,
    entity_out: Any,
) -> None:
    """Add the gradients of side_scores, which gave `scores`, for slopes (B, K), row after row."""
    width, many = entities.shape[1], ids.shape[1]
    for b in range(len(ids)):
        for k in range(many):
            if slopes[b, k] == 0:
                continue
            tail = sides[b, k] == _TAIL
            query, query_out = (tails[b], tail_out[b]) if tail else (heads[b], head_out[b])
            other, other_out = entities[ids[b, k]], entity_out[ids[b, k]]
            if distances:
                slope = slopes[b, k] / scores[b, k]
                for place in range(width):
                    step = slope * (query[place] - other[place])
                    query_out[place] += step
                    other_out[place] -= step
            else:
                slope = slopes[b, k]
                for place in range(width):
                    query_out[place] += slope * other[place]
                for place in range(width):
                    other_out[place] += slope * query[place]

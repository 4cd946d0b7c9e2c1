"""Scores of triples with a head or a tail replaced, and their gradients, without copies of the vectors.

A query is what the missing entity is compared with: see `tasks.TripleModel`. COMPLEX is both ComplEx and RotatE, whose
relations are complex numbers of modulus 1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from naysay.kernels.compile import compiled

TRANSLATION, PRODUCT, COMPLEX = 0, 1, 2  # how a relation changes an entity into a query
_TAIL = 2  # of types.TAIL


@partial(compiled, reorder=True)
def make_queries(
    start: Any, stop: Any, triples: Any, entities: Any, relations: Any, kind: Any, heads: Any, tails: Any
) -> None:
    """heads[b] and tails[b] = the queries for the head and for the tail of triples[b]."""
    width = entities.shape[1]
    half = width // 2
    for b in range(start, stop):
        head, between, tail = entities[triples[b, 0]], relations[triples[b, 1]], entities[triples[b, 2]]
        head_query, tail_query = heads[b], tails[b]
        if kind == TRANSLATION:
            for place in range(width):
                head_query[place] = tail[place] - between[place]
                tail_query[place] = head[place] + between[place]
        elif kind == PRODUCT:
            for place in range(width):
                head_query[place] = tail[place] * between[place]
                tail_query[place] = head[place] * between[place]
        else:
            for real in range(half):
                imaginary = real + half
                by_real, by_imaginary = between[real], between[imaginary]
                head_query[real] = tail[real] * by_real + tail[imaginary] * by_imaginary
                head_query[imaginary] = tail[imaginary] * by_real - tail[real] * by_imaginary
                tail_query[real] = head[real] * by_real - head[imaginary] * by_imaginary
                tail_query[imaginary] = head[real] * by_imaginary + head[imaginary] * by_real


@compiled
def add_query_gradients(
    triples: Any,
    entities: Any,
    relations: Any,
    kind: Any,
    head_slopes: Any,
    tail_slopes: Any,
    entity_out: Any,
    relation_out: Any,
) -> None:
    """Add the gradients of make_queries for slopes (B, d) of both queries, row after row."""
    width = entities.shape[1]
    half = width // 2
    for b in range(len(triples)):
        head, between, tail = entities[triples[b, 0]], relations[triples[b, 1]], entities[triples[b, 2]]
        head_out, between_out = entity_out[triples[b, 0]], relation_out[triples[b, 1]]
        tail_out = entity_out[triples[b, 2]]
        of_head, of_tail = head_slopes[b], tail_slopes[b]
        # One array at a time: the head and the tail may be the same row, and then a joint loop would not vectorise.
        if kind == TRANSLATION:
            for place in range(width):
                head_out[place] += of_tail[place]
            for place in range(width):
                tail_out[place] += of_head[place]
            for place in range(width):
                between_out[place] += of_tail[place] - of_head[place]
        elif kind == PRODUCT:
            for place in range(width):
                head_out[place] += of_tail[place] * between[place]
            for place in range(width):
                tail_out[place] += of_head[place] * between[place]
            for place in range(width):
                between_out[place] += of_tail[place] * head[place] + of_head[place] * tail[place]
        else:
            for real in range(half):
                imaginary = real + half
                by_real, by_imaginary = between[real], between[imaginary]
                head_out[real] += of_tail[real] * by_real + of_tail[imaginary] * by_imaginary
                head_out[imaginary] += of_tail[imaginary] * by_real - of_tail[real] * by_imaginary
            for real in range(half):
                imaginary = real + half
                by_real, by_imaginary = between[real], between[imaginary]
                tail_out[real] += of_head[real] * by_real - of_head[imaginary] * by_imaginary
                tail_out[imaginary] += of_head[real] * by_imaginary + of_head[imaginary] * by_real
            for real in range(half):
                imaginary = real + half
                between_out[real] += of_tail[real] * head[real] + of_tail[imaginary] * head[imaginary]
                between_out[real] += of_head[real] * tail[real] + of_head[imaginary] * tail[imaginary]
                between_out[imaginary] += of_tail[imaginary] * head[real] - of_tail[real] * head[imaginary]
                between_out[imaginary] += of_head[real] * tail[imaginary] - of_head[imaginary] * tail[real]


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

"""The positive of each row, for samplers that look at it: its id, its score, and how like it the candidates are."""

from __future__ import annotations

import numpy as np

from naysay.arrays import is_torch, need_torch, to_numpy, to_torch
from naysay.checks import first_bad, raise_invalid
from naysay.samplers._scored import Score, score_slots
from naysay.types import HEAD, RELATION, SIDES, Array, Negatives, Query, positive_ids


def partners(query: Query) -> Array:
    """(B,) the positives of a query in its array type, on its device; refused where one is missing."""
    ids = positive_ids(query)
    if ids.size and ids.min() < 0:
        raise_invalid("query.positives", "at least 0", first_bad(ids, ids < 0))
    return ids if query.device is None else to_torch(ids, query.device)


def partner_scores(score: Score, query: Query) -> Array:
    """(B,) how close each row's positive is, without gradients: score(anchors, positives (B, 1)).

    A triple is its own positive, and is scored as it stands: score(triples (B, 3), triples (B, 1, 3)).
    """
    if query.anchors.ndim == 1:
        return score_slots(score, query, partners(query)[:, None])[:, 0]
    heads = query.anchors[:, :1]
    heads = heads.long() if is_torch(heads) else heads.astype(np.int64)
    return score_slots(score, query, heads, heads * 0 + HEAD)[:, 0]


def sides_of(drawn: Negatives) -> list[int]:
    """The sides that candidates of triples replace; the head if there is no candidate."""
    sides = np.asarray(to_numpy(drawn.side))[np.asarray(to_numpy(drawn.ids)) >= 0]
    return [int(side) for side in np.unique(sides)] or [HEAD]


def likeness(score: Score, query: Query, drawn: Negatives) -> Array:
    """(B, n) how close each candidate is to what it stands in for: score(positives (B,), ids (B, n)).

    That is the row's positive; of triples the part that the candidate replaces, and the function is called once for
    each side. It cannot tell relations from entities, so one pool does not replace both.
    """
    if drawn.side is None:
        return score_slots(score, Query(partners(query), step=query.step), drawn.ids)
    sides = sides_of(drawn)
    if RELATION in sides and len(sides) > 1:
        advice = "Make two pools, with a sampler each, and put them into Mixed."
        raise_invalid("pool", "one that replaces relations or entities", [SIDES[side] for side in sides], advice)
    torch = need_torch() if is_torch(drawn.ids) else None
    found = None
    for side in sides:
        ids = drawn.ids + 0
        ids[drawn.side != side] = -1
        scores = score_slots(score, Query(query.anchors[:, side], step=query.step), ids)
        # Elsewhere it is -inf, so the larger of two is the one that was scored.
        found = scores if found is None else (np.maximum if torch is None else torch.maximum)(found, scores)
    return found

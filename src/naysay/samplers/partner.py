"""The positive of each row, for samplers that look at it: its id and its score."""

from __future__ import annotations

import numpy as np

from naysay.arrays import is_torch, to_torch
from naysay.checks import first_bad, refuse
from naysay.samplers.scored import Score, score_slots
from naysay.types import HEAD, Array, Query


def partners(owner: str, query: Query) -> Array:
    """(B,) the positives of a query in its array type, on its device; refused where one is missing."""
    ids = query.positive_ids(owner)
    if ids.size and ids.min() < 0:
        refuse(owner, "query.positives", "at least 0", first_bad(ids, ids < 0))
    return ids if query.device is None else to_torch(ids, query.device)


def partner_scores(owner: str, score: Score, query: Query) -> Array:
    """(B,) how close each row's positive is, without gradients: score(anchors, positives (B, 1)).

    A triple is its own positive, and is scored as it stands: score(triples (B, 3), triples (B, 1, 3)).
    """
    if query.anchors.ndim == 1:
        return score_slots(owner, score, query, partners(owner, query)[:, None])[:, 0]
    heads = query.anchors[:, :1]
    heads = heads.long() if is_torch(heads) else heads.astype(np.int64)
    return score_slots(owner, score, query, heads, heads * 0 + HEAD)[:, 0]

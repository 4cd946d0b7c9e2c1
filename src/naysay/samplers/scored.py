"""Candidates and their scores: what every sampler that looks at the model begins with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import numpy as np

from naysay.arrays import is_torch, need_torch, to_numpy
from naysay.checks import check_whole, first_bad, refuse
from naysay.pools.slots import asked, shortfall
from naysay.quantity.realise import slots
from naysay.samplers.choose import gather
from naysay.types import Array, Negatives, Pool, Query, check_query

Score = Callable[[Array, Array], Array]  # score(anchors (B,), ids (B, n)) -> (B, n), higher is closer
_NOT_PER_SLOT = ("ids", "source_names", "dropped", "log_q", "scores")


def check_score(owner: str, score: object) -> None:
    """Refuse what cannot be called."""
    if not callable(score):
        refuse(owner, "score", "a function score(anchors, ids)", type(score).__name__)


def candidates_of(owner: str, pool: Pool, query: Query, n: Any, rng: np.random.Generator) -> Negatives:
    """(B, n) candidates of the pool in the query's array type."""
    check_query(owner, query)
    check_whole(owner, "candidates", n, 1)
    return pool.draw(query, n, rng=rng).like(query)


def score_slots(owner: str, score: Score, query: Query, ids: Array) -> Array:
    """(B, n) scores of candidates, without gradients; -inf where a slot is empty. The function never sees -1."""
    torch = need_torch(owner) if is_torch(ids) else None
    empty = ids < 0
    shown = ids.clamp(min=0) if torch is not None else np.maximum(ids, 0)
    with torch.no_grad() if torch is not None else nullcontext():
        scores = score(query.anchors, shown)
    kind = "a tensor" if torch is not None else "a NumPy array"
    if is_torch(scores) != is_torch(ids) or not hasattr(scores, "shape"):
        refuse(owner, "score", f"a function that answers with {kind}, like the query", f"a {type(scores).__name__}")
    if tuple(scores.shape) != tuple(ids.shape):
        refuse(owner, "score", f"a function that answers with shape {tuple(ids.shape)}", f"shape {tuple(scores.shape)}")
    if torch is not None:
        scores = scores.detach()
        found = (scores if scores.is_floating_point() else scores.float()).masked_fill(empty, -torch.inf)
        bad = found.isnan() | found.isposinf() | (found.isneginf() & ~empty)
    else:
        found = np.where(empty, -np.inf, scores if scores.dtype.kind == "f" else scores.astype(np.float64))
        bad = ~np.isfinite(found) & ~empty
    if bad.any():
        refuse(
            owner, "score", "a function that answers with finite numbers", first_bad(to_numpy(scores), to_numpy(bad))
        )
    return found


def wanted_slots(owner: str, k: Any, rows: int, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], int]:
    """The slots of each row (B,) and K: ceil(k) for one k, else the largest."""
    counts, width = asked(owner, slots(k, rows, rng, owner), rows)
    return counts, max(width, int(np.ceil(float(to_numpy(k))))) if np.ndim(to_numpy(k)) == 0 else width


def take(
    owner: str,
    drawn: Negatives,
    order: Array,
    kept: Array,
    counts: np.ndarray[Any, Any],
    width: int,
    on_short: str,
    scores: Array = None,
) -> Negatives:
    """The slots of `drawn` in `order` (B, w), of which `kept` (B, w) hold; wide as `width`, counts[b] to a row.

    What is kept must stand first in its row. log_q is None: a choice after the draw has no exact probability.
    """
    torch = need_torch(owner) if is_torch(order) else None
    missing = width - order.shape[1]
    if missing > 0:  # fewer candidates than slots
        pad = (0, missing)
        if torch is not None:
            order, kept = (torch.nn.functional.pad(value, pad) for value in (order, kept))
        else:
            order, kept = (np.pad(value, ((0, 0), pad)) for value in (order, kept))
    order, kept = order[:, :width], kept[:, :width]
    if torch is not None:
        limits = torch.from_numpy(np.array(counts)).to(order.device)
        kept = kept & (torch.arange(width, device=order.device) < limits[:, None])
    else:
        kept = kept & (np.arange(width) < counts[:, None])
    where = torch.where if torch is not None else np.where
    chosen = {
        field.name: gather(getattr(drawn, field.name), order)
        for field in fields(Negatives)
        if field.name not in _NOT_PER_SLOT and getattr(drawn, field.name) is not None
    }
    ids = where(kept, gather(drawn.ids, order), -1)
    found = None if scores is None else where(kept, gather(scores, order), 0.0)
    dropped = shortfall(owner, on_short, to_numpy(ids), counts)
    return replace(drawn, ids=ids, scores=found, log_q=None, dropped=dropped, **chosen)

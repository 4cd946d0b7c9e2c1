"""Candidates and their scores: what every sampler that looks at the model begins with."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import numpy as np

from naysay.arrays import dtype_for, is_torch, need_torch, to_numpy
from naysay.checks import check_whole, first_bad, raise_invalid
from naysay.pools._slots import asked, shortfall
from naysay.quantity.realise import slots
from naysay.samplers._choose import gather
from naysay.samplers._draw import EMPTY
from naysay.types import Array, Negatives, Pool, Query, check_query

# score(anchors (B,), ids (B, n)) -> (B, n), higher is closer; of triples score(triples (B, 3), corrupted (B, n, 3))
Score = Callable[[Array, Array], Array]
_NOT_PER_SLOT = ("ids", "source_names", "dropped", "log_q", "scores")


def check_score(score: object) -> None:
    """Refuse what cannot be called."""
    if not callable(score):
        raise_invalid("score", "a function score(anchors, ids)", type(score).__name__)


def candidates_of(pool: Pool, query: Query, n: Any, rng: np.random.Generator) -> Negatives:
    """(B, n) candidates of the pool in the query's array type, to choose among.

    A pool may have draw_candidates(query, n, *, rng) beside draw: the same without log_q, which no choice can keep.
    """
    check_query(query)
    check_whole("candidates", n, 1)
    draw: Callable[..., Negatives] = getattr(pool, "draw_candidates", pool.draw)
    return draw(query, n, rng=rng).like(query)


def score_slots(score: Score, query: Query, ids: Array, side: Array = None) -> Array:
    """(B, n) scores of candidates, without gradients; -inf where a slot is empty. The function never sees -1.

    Half precision is read as float32, so that noise can be added; whole numbers as float64.

    Args:
        side: (B, n) which part of a triple each id replaces, as `Corruption` says. Ids alone would not tell heads
            from tails, so the function then sees the corrupted triples: score(triples (B, 3), corrupted (B, n, 3))
            -> (B, n).
    """
    torch = need_torch() if is_torch(ids) else None
    short = ids.shape[0] * ids.shape[1] > 0 and bool(ids.min() < 0)
    shown = ids if not short else ids.clamp(min=0) if torch is not None else np.maximum(ids, 0)
    # An empty list of anchors is an array of floats, which no model looks up.
    anchors = query.anchors if len(query) else ids[:, :0].reshape(query.anchors.shape)
    with torch.no_grad() if torch is not None else nullcontext():
        scores = score(anchors, shown if side is None else corrupted_triples(anchors, shown, side))
    found = _as_scores(scores, ids)
    if short:
        found = found.masked_fill(ids < 0, -np.inf) if torch is not None else np.where(ids < 0, -np.inf, found)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(found.sum())
    # NaN and infinity do not leave a sum finite: one pass, and a second look only if it is not.
    if not math.isfinite(total):
        bad = ~(found.isfinite() if torch is not None else np.isfinite(found)) & (ids >= 0)
        if bad.any():
            rule = "a function that answers with finite numbers"
            raise_invalid("score", rule, first_bad(to_numpy(scores), to_numpy(bad)))
    return found


def _as_scores(scores: Any, ids: Array) -> Array:
    """What a score function answered, as 32 bits or more; refused unless it is of the ids' type, device and shape."""
    kind = "a tensor" if is_torch(ids) else "a NumPy array"
    answers = "a function that answers with"
    if is_torch(scores) != is_torch(ids) or not hasattr(scores, "shape"):
        raise_invalid("score", f"{answers} {kind}, like the query", f"a {type(scores).__name__}")
    if tuple(scores.shape) != tuple(ids.shape):
        raise_invalid("score", f"{answers} shape {tuple(ids.shape)}", f"shape {tuple(scores.shape)}")
    if not is_torch(ids):
        if scores.dtype.kind not in "biuf":
            raise_invalid("score", f"{answers} real numbers", f"dtype {scores.dtype}")
        return scores.astype(np.result_type(scores.dtype, np.float32), copy=False)
    if scores.device != ids.device:
        raise_invalid("score", f"{answers} a tensor on {ids.device}, like the query", f"one on {scores.device}")
    if scores.is_complex():
        raise_invalid("score", f"{answers} real numbers", f"dtype {scores.dtype}")
    torch, found = need_torch(), scores.detach()
    if not found.is_floating_point():
        return found.to(dtype_for(ids.device, torch.float64))
    return found.float() if found.dtype in (torch.float16, torch.bfloat16) else found


def corrupted_triples(triples: Array, ids: Array, side: Array) -> Array:
    """(B, n, 3): each triple with the part `side` replaced; where a slot is empty, with id 0 for its head."""
    if not is_torch(ids):
        found = np.repeat(triples[:, None, :].astype(np.int64), ids.shape[1], axis=1)
        np.put_along_axis(found, np.maximum(side, 0).astype(np.int64)[:, :, None], ids[:, :, None], axis=2)
        return found
    found = triples.long()[:, None, :].repeat(1, ids.shape[1], 1)
    return found.scatter_(2, side.long().clamp(min=0)[:, :, None], ids[:, :, None])


def wanted_slots(k: Any, rows: int, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], int]:
    """The slots of each row (B,) and K: ceil(k) for one k, else the largest."""
    counts, width = asked(slots(k, rows, rng), rows)
    return counts, max(width, int(np.ceil(float(to_numpy(k))))) if np.ndim(to_numpy(k)) == 0 else width


def per_slot(drawn: Negatives) -> dict[str, Array]:
    """{name: (B, n, ...)} what a pool says of each candidate beside its id: its side, its source."""
    names = (field.name for field in fields(Negatives) if field.name not in _NOT_PER_SLOT)
    return {name: getattr(drawn, name) for name in names if getattr(drawn, name) is not None}


def take(
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
    torch = need_torch() if is_torch(order) else None
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
    chosen: dict[str, Array] = {}
    for name, given in per_slot(drawn).items():
        values = gather(given, order)
        filled = kept.reshape(*kept.shape, *(1,) * (values.ndim - 2))
        chosen[name] = where(filled, values, EMPTY.get(name, 0))
    ids = where(kept, gather(drawn.ids, order), -1)
    found = None if scores is None else where(kept, gather(scores, order), 0.0)
    dropped = shortfall(on_short, to_numpy(ids), counts)
    return replace(drawn, ids=ids, scores=found, log_q=None, dropped=dropped, **chosen)

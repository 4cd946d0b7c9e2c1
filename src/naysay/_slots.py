"""Arrays with one value for each slot, in NumPy or torch: what samplers and detectors share.

A slot is one place (b, j) of a (B, n) array of candidates or negatives. An id of -1 marks an empty slot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import dtype_for, is_torch, need_torch, to_numpy, to_torch
from naysay.checks import check_exact, check_not_masked, check_range, first_bad, raise_invalid
from naysay.types import PER_SLOT as PER_SLOT
from naysay.types import Array, Negatives, Query, changed, positive_ids

# score(anchors (B,), ids (B, n)) -> (B, n), higher is closer; for triples score(triples (B, 3), corrupted (B, n, 3))
Score = Callable[[Array, Array], Array]
# The value of an empty slot, where it is not 0.
EMPTY = {"ids": -1, "parents": -1, "side": -1, "source": -1}


# ---- arrays ---------------------------------------------------------------------------------------------


def gather(values: Array, order: Array) -> Array:
    """values[row, order[row]] for every row: (B, K, ...) from (B, n, ...) and (B, K)."""
    beyond = (1,) * (values.ndim - 2)
    if not is_torch(values):
        return np.take_along_axis(values, order.reshape(*order.shape, *beyond), axis=1)
    return values.gather(1, order.reshape(*order.shape, *beyond).expand(*order.shape, *values.shape[2:]))


def where(condition: Array, values: Array, other: float) -> Array:
    """`values` where the condition holds, the number `other` elsewhere, in the type of `values`."""
    if is_torch(values):
        return need_torch().where(condition, values, other)
    return np.where(condition, values, values.dtype.type(other))


def of_kind(array: Array, like: Array) -> Array:
    """An array in the number type of `like`, which is of the same array type."""
    return array.to(like.dtype) if is_torch(array) else array.astype(like.dtype, copy=False)


def like_query(array: Any, query: Query) -> Array:
    """An array, NumPy or torch, in the array type of a query's anchors and on their device."""
    return to_torch(array, query.device) if is_torch(query.anchors) else to_numpy(array)


def constant(like: Array, width: int, value: int) -> Array:
    """(B, width, ...) of one value, in the array type and number type of `like` (B, 0, ...)."""
    shape = (like.shape[0], width, *like.shape[2:])
    return like.new_full(shape, value) if is_torch(like) else np.full(shape, value, like.dtype)


def blanked(negatives: Negatives) -> Negatives:
    """The same, with every array reset in empty slots: -1 for ids, parents, side and source, 0 for the rest."""
    empty = negatives.ids < 0
    select = need_torch().where if is_torch(negatives.ids) else np.where
    reset: dict[str, Array] = {}
    for name in PER_SLOT[1:]:
        array = getattr(negatives, name)
        if array is not None:
            mark = empty.reshape(*empty.shape, *(1,) * (array.ndim - 2))
            reset[name] = select(mark, constant(array[:, :0], array.shape[1], EMPTY.get(name, 0)), array)
    return changed(negatives, **reset)


def repeated(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(B, n) whether an id was in an earlier slot of its row; also of -1."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    later = np.zeros(ids.shape, np.bool_)
    np.put_along_axis(later, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return later


def partners(query: Query) -> Array:
    """(B,) the positives of a query in its array type, on its device. Raises NaysayError if one is missing."""
    ids = positive_ids(query)
    if ids.size and ids.min() < 0:
        raise_invalid("query.positives", "at least 0", first_bad(ids, ids < 0))
    return ids if query.device is None else to_torch(ids, query.device)


def check_ids(parameter: str, ids: NDArray[np.int64], size: int | None, what: str, *, least: int = 0) -> None:
    """Raise if ids are outside [least, size); the size may be unknown."""
    if size is not None:
        check_range(parameter, ids, size, what, least=least)
    elif ids.size and ids.min() < least:
        raise_invalid(parameter, f"at least {least}", first_bad(ids, ids < least))


# ---- scores ---------------------------------------------------------------------------------------------


def check_score(score: object) -> None:
    """Raise if `score` cannot be called."""
    if not callable(score):
        raise_invalid("score", "a function score(anchors, ids)", type(score).__name__)


def score_slots(score: Score, query: Query, ids: Array, side: Array = None) -> Array:
    """(B, n) scores of candidates, without gradients; -inf where a slot is empty. The function never gets -1.

    Half precision becomes float32, so that noise can be added. Whole numbers become float64.

    Args:
        score: The user's function.
        query: The anchors.
        ids: (B, n) the candidates.
        side: (B, n) which part of a triple each id replaces, as in `Negatives.side`, or None. With it, the function
            gets the corrupted triples: score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
    """
    torch = need_torch() if is_torch(ids) else None
    short = ids.shape[0] * ids.shape[1] > 0 and bool(ids.min() < 0)
    valid = ids if not short else ids.clamp(min=0) if torch is not None else np.maximum(ids, 0)
    # An empty list of anchors is an array of floats, which cannot index a table.
    anchors = query.anchors if len(query) else ids[:, :0].reshape(query.anchors.shape)
    with torch.no_grad() if torch is not None else nullcontext():
        answer = score(anchors, valid if side is None else corrupted_triples(anchors, valid, side))
    scores = _as_scores(answer, ids)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(scores.sum())
    # NaN or infinity makes the sum non-finite: one pass, and a second one only if it is.
    if not math.isfinite(total):
        bad = ~(scores.isfinite() if torch is not None else np.isfinite(scores)) & (ids >= 0)
        if bad.any():
            rule = "a function that returns finite numbers"
            raise_invalid("score", rule, first_bad(to_numpy(answer), to_numpy(bad)))
    if short:
        scores = scores.masked_fill(ids < 0, -np.inf) if torch is not None else np.where(ids < 0, -np.inf, scores)
    return scores


def _as_scores(answer: Any, ids: Array) -> Array:
    """What a score function returned, with at least 32 bits. It must have the ids' array type, device and shape."""
    kind = "a tensor" if is_torch(ids) else "a NumPy array"
    returns = "a function that returns"
    if is_torch(answer) != is_torch(ids) or not hasattr(answer, "shape"):
        raise_invalid("score", f"{returns} {kind}, like the query", f"a {type(answer).__name__}")
    if tuple(answer.shape) != tuple(ids.shape):
        raise_invalid("score", f"{returns} shape {tuple(ids.shape)}", f"shape {tuple(answer.shape)}")
    if not is_torch(ids):
        check_not_masked("score", answer)
        if answer.dtype.kind not in "biuf":
            raise_invalid("score", f"{returns} real numbers", f"dtype {answer.dtype}")
        check_exact("score", answer)
        return answer.astype(np.result_type(answer.dtype, np.float32), copy=False)
    if answer.device != ids.device:
        raise_invalid("score", f"{returns} a tensor on {ids.device}, like the query", f"one on {answer.device}")
    if answer.is_complex():
        raise_invalid("score", f"{returns} real numbers", f"dtype {answer.dtype}")
    torch, scores = need_torch(), answer.detach()
    if not scores.is_floating_point():
        check_exact("score", np.asarray(to_numpy(scores)))
        return scores.to(dtype_for(ids.device, torch.float64))
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def corrupted_triples(triples: Array, ids: Array, side: Array) -> Array:
    """(B, n, 3): each triple with the part `side` replaced. In an empty slot the head becomes id 0."""
    if not is_torch(ids):
        corrupted = np.repeat(triples[:, None, :].astype(np.int64), ids.shape[1], axis=1)
        np.put_along_axis(corrupted, np.maximum(side, 0).astype(np.int64)[:, :, None], ids[:, :, None], axis=2)
        return corrupted
    corrupted = triples.long()[:, None, :].repeat(1, ids.shape[1], 1)
    return corrupted.scatter_(2, side.long().clamp(min=0)[:, :, None], ids[:, :, None])

"""Vectors of anchors and items: what samplers that mix in embedding space share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from naysay._slots import gather, like_query, of_kind
from naysay.arrays import is_torch, module_of, of_type, to_numpy, to_torch
from naysay.checks import check_kind, check_not_masked, first_bad, raise_invalid
from naysay.rng import generator_of
from naysay.samplers._top_k import top, uniform_on_device
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query, Sampler

Embed = Callable[[Array], Array]  # embed(ids (...)) -> (..., d) or (..., layers, d), in the array type of the ids


class FromSampler(MadeOf):
    """What samplers that change the vectors of another sampler's negatives share."""

    base: Sampler

    def _check_base(self) -> None:
        check_kind("base", self.base, Sampler, "a sampler, with a method sample(query, k, *, rng)")

    @property
    def distinct(self) -> bool | None:
        """The sampler's."""
        return getattr(self.base, "distinct", None)

    def __repr__(self) -> str:
        return described(self)


def with_vectors(drawn: Negatives, vectors: Array) -> Negatives:
    """Negatives with vectors (B, K, d) that were made of each, 0 in empty slots; their parents are the item, twice."""
    empty = (drawn.ids < 0)[:, :, None]
    made = vectors.masked_fill(empty, 0.0) if is_torch(vectors) else np.where(empty, 0.0, vectors)
    return replace(drawn, vectors=made, parents=stack_last(drawn.ids, drawn.ids))


def check_embed(parameter: str, embed: object, *, optional: bool = False) -> None:
    """Raise if `embed` cannot be called; with `optional` it may be None."""
    if not callable(embed) and not (optional and embed is None):
        raise_invalid(parameter, "a function of ids that returns vectors", type(embed).__name__)


def anchor_vectors(query: Query, embed_anchors: Embed | None) -> Array:
    """(B, d) the query's own vectors, or `embed_anchors` of its anchors, in the query's array type."""
    if query.vectors is not None:
        both = is_torch(query.vectors) and is_torch(query.anchors)  # then on any device
        vectors = query.vectors if both else like_query(query.vectors, query)
    elif embed_anchors is None:
        advice = "Pass Query(anchors, vectors=...), or embed_anchors to the sampler."
        raise_invalid("query.vectors", "given", None, advice)
    else:
        vectors = embed_anchors(query.anchors)
    return checked("query.vectors", vectors, query.anchors, (len(query),), 2)


def item_vectors(embed: Embed, ids: Array, *, layers: bool, first: int = 0) -> Array:
    """embed(ids), (..., d), or with `layers` (..., layers, d), where (..., d) is one layer; embed never gets -1.

    Errors count rows from `first`.
    """
    vectors = embed(ids.clamp(min=0) if is_torch(ids) else np.maximum(ids, 0))
    if layers and hasattr(vectors, "ndim") and vectors.ndim == ids.ndim + 1:
        vectors = vectors[..., None, :]
    return checked("embed", vectors, ids, tuple(ids.shape), ids.ndim + (2 if layers else 1), first)


def checked(parameter: str, vectors: Any, like: Array, shape: tuple[int, ...], ndim: int, first: int = 0) -> Array:
    """Vectors of a user's function. Raises if their array type or shape differs, or they are not finite."""
    check_not_masked(parameter, vectors)
    kind = "a tensor" if is_torch(like) else "a NumPy array"
    if is_torch(vectors) != is_torch(like) or not hasattr(vectors, "shape"):
        raise_invalid(parameter, f"vectors in {kind}, like the query", f"a {type(vectors).__name__}")
    beyond = "layers, d" if ndim == len(shape) + 2 else "d"
    if vectors.ndim != ndim or tuple(vectors.shape[: len(shape)]) != shape:
        wanted = ", ".join([*map(str, shape), beyond])
        raise_invalid(parameter, f"vectors of shape ({wanted})", f"shape {tuple(vectors.shape)}")
    floating = vectors.is_floating_point() if is_torch(vectors) else vectors.dtype.kind == "f"
    if not floating:
        raise_invalid(parameter, "vectors of floating numbers", f"dtype {vectors.dtype}")
    finite = module_of(vectors).isfinite(vectors)
    if not finite.all():
        raise_invalid(parameter, "finite", first_bad(to_numpy(vectors), ~to_numpy(finite), first))
    return vectors


def check_width(anchors: Array, width: int) -> None:
    """Raise if the anchors' vectors have another dimension than the items'."""
    if anchors.shape[1] != width:
        raise_invalid("query.vectors", f"of dimension {width}, like the items'", anchors.shape[1])


def uniform(shape: tuple[int, ...], key: np.uint64, like: Array, interval: tuple[float, float] = (0.0, 1.0)) -> Array:
    """Uniform numbers in [low, high) in the array type, number type and device of `like`; low if both are equal.

    On a CPU they are NumPy's for both array types, so that both draw the same; another device has its own generator.
    """
    low, high = interval
    if is_torch(like) and like.device.type != "cpu":
        return low + (high - low) * uniform_on_device(shape, key, like)
    return of_type(low + (high - low) * generator_of(key).random(shape), like)


def stack_last(first: Array, second: Array) -> Array:
    """(B, K, 2) of two (B, K)."""
    return module_of(first).stack([first, second], 2)


def two_places(first: Array, second: Array, counts: Array) -> tuple[Array, Array]:
    """Two different places among 0 ... counts - 1, from two uniform numbers (B, K) each and counts (B, 1).

    The second is the first plus 1 ... counts - 1, modulo counts. For a count of 0 or 1 both are 0.
    """
    minimum = module_of(first).minimum
    one = minimum(of_kind(first * counts, counts), (counts - 1).clip(min=0))
    move = 1 + minimum(of_kind(second * (counts - 1), counts), (counts - 2).clip(min=0))
    return one, (one + move) % counts.clip(min=1)


def hard_pairs(
    scores: Array, n_hard: int, counts: Any, width: int, key: np.uint64, like: Array
) -> tuple[Array, Array, Array, Array]:
    """(B, K) each: two different slots of a row's n_hard highest, whether there is one, and a uniform number.

    Scores (B, n) are -inf in empty slots. Numbers are in the number type of `like`.
    """
    hard = top(scores, min(n_hard, scores.shape[1]))
    n_found = (gather(scores, hard) > -np.inf).sum(1)[:, None]
    draws = uniform((len(scores), width, 3), key, like)
    first, second = (gather(hard, places) for places in two_places(draws[:, :, 0], draws[:, :, 1], n_found))
    wanted = np.arange(width) < counts[:, None]
    used = (to_torch(wanted, scores.device) if is_torch(scores) else wanted) & (n_found > 0)
    return first, second, used, draws[:, :, 2]


def rows_of(vectors: Array, order: Array) -> Array:
    """vectors[row, order[row]], (B, K, d): from (B, n, d), or from (n, d) that all rows share."""
    return vectors[order] if vectors.ndim == 2 else gather(vectors, order)


def products(anchors: Array, vectors: Array) -> Array:
    """(B, n) dot products of anchors (B, d) with (B, n, d), or with (n, d) that all rows share."""
    if vectors.ndim == 2:
        return anchors @ vectors.T
    return (vectors @ anchors[:, :, None])[:, :, 0]


def unit(vectors: Array) -> Array:
    """Vectors of length 1 along the last axis; a zero vector stays zero."""
    lengths = module_of(vectors).sqrt((vectors * vectors).sum(-1)[..., None])
    return vectors / (lengths + (lengths == 0))

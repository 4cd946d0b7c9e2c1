"""Vectors of anchors and items: what users' functions return, checked, and products of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay._slots import like_query
from naysay.arrays import is_torch, module_of, need_torch, to_numpy
from naysay.checks import check_not_masked, first_bad, raise_invalid
from naysay.samplers._settings import Embed
from naysay.types import Array, Query


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


def item_vectors(embed: Embed, ids: Array, *, layers: bool = False, first: int = 0) -> Array:
    """embed(ids), (..., d), or with `layers` (..., layers, d), where (..., d) is one layer; embed never gets -1.

    Errors count rows from `first`.
    """
    vectors = embed(ids.clip(min=0))
    if layers and hasattr(vectors, "ndim") and vectors.ndim == ids.ndim + 1:
        vectors = vectors[..., None, :]
    return checked("embed", vectors, ids, tuple(ids.shape), ids.ndim + (2 if layers else 1), first)


def checked(parameter: str, vectors: Any, like: Array, shape: tuple[int, ...], ndim: int, first: int = 0) -> Array:
    """Vectors of a user's function. Raises if their array type or shape differs, or they are not finite."""
    check_not_masked(parameter, vectors)
    kind = "a tensor" if is_torch(like) else "a NumPy array"
    if is_torch(vectors) != is_torch(like) or not hasattr(vectors, "shape"):
        raise_invalid(parameter, f"vectors in {kind}, like the query", f"a {type(vectors).__name__}")
    if vectors.ndim != ndim or tuple(vectors.shape[: len(shape)]) != shape:
        beyond = "layers, d" if ndim == len(shape) + 2 else "d"
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


def one_copy(vectors: Array) -> Array:
    """(n, d) of vectors (B, n, d) that are a view which all rows share, not copied; others as they are."""
    step: Any = vectors.stride(0) if is_torch(vectors) else vectors.strides[0]
    return vectors[0] if len(vectors) > 1 and step == 0 else vectors


def in_one_type(anchors: Array, vectors: Array) -> tuple[Array, Array]:
    """Both in the wider of their number types. NumPy does so by itself in products, torch does not."""
    if not is_torch(vectors):
        return anchors, vectors
    wider = need_torch().promote_types(anchors.dtype, vectors.dtype)
    return anchors.to(wider), vectors.to(wider)


def products(anchors: Array, vectors: Array) -> Array:
    """(B, n) dot products of anchors (B, d) with (B, n, d), or with (n, d) that all rows share."""
    if vectors.ndim == 2:
        return anchors @ vectors.T
    return (vectors @ anchors[:, :, None])[:, :, 0]


def unit(vectors: Array) -> Array:
    """Vectors of length 1 along the last axis; a zero vector stays zero."""
    lengths = module_of(vectors).sqrt((vectors * vectors).sum(-1)[..., None])
    return vectors / (lengths + (lengths == 0))


def stack_last(first: Array, second: Array) -> Array:
    """(B, K, 2) of two (B, K)."""
    return module_of(first).stack([first, second], 2)


def detached(values: Array) -> Array:
    """The same without gradients."""
    return values.detach() if is_torch(values) else values


def zero_where_empty(vectors: Array, ids: Array) -> Array:
    """Vectors (B, K, d), 0 in slots without an id."""
    empty = (ids < 0)[:, :, None]
    return vectors.masked_fill(empty, 0.0) if is_torch(vectors) else np.where(empty, 0.0, vectors)

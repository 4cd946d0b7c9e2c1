"""What users' functions get and return: pairs to score, and ids to embed, with products of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats, to_numpy, without_gradients
from naysay.checks import as_array, check_all, check_exact, first_bad, raise_invalid, shown
from naysay.detectors._slots import filled_slots, like
from naysay.errors import NaysayError
from naysay.types import Array, Negatives, Query, anchor_ids

# of_pairs(anchors (n,), ids (n,)) -> (n,) or (n, f);  for triples of_pairs(triples (n, 3), corrupted (n, 3))
OfPairs = Callable[[Array, Array], Any]
Sides = tuple[NDArray[np.int64], NDArray[np.int64]]
Embed = Callable[[Array], Array]  # embed(ids (...)) -> (..., d), in the array type of the ids
_BLOCK = 1 << 22  # numbers at a time


def slot_pairs(query: Query, negatives: Negatives, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> Sides:
    """The anchors and ids of some slots, (S,) each; for triples the triples and corrupted triples, (S, 3) each."""
    anchors, ids = anchor_ids(query)[rows], np.asarray(to_numpy(negatives.ids))[rows, slots].astype(np.int64)
    if anchors.ndim == 1:
        return anchors, ids
    if negatives.side is None:
        raise_invalid("negatives.side", "given with triples", None)
    corrupted = anchors.copy()
    corrupted[np.arange(len(ids)), np.asarray(to_numpy(negatives.side))[rows, slots]] = ids
    return anchors, corrupted


def numbers_of(parameter: str, function: OfPairs, query: Query, sides: Sides, rule: str) -> Floats:
    """Call a user's function with pairs in the array type of the query, without gradients; return float64."""
    arguments = [like(np.ascontiguousarray(side), query.anchors) for side in sides]
    try:
        with without_gradients(query.anchors):
            output = function(*arguments)
    except Exception as error:
        ends = f"from {pair_name(sides, 0)} to {pair_name(sides, -1)}"
        message = f"`{parameter}` must be {rule}, got {type(error).__name__}: {error}, {ends}."
        raise NaysayError(message) from error
    numbers = as_array(parameter, to_numpy(output))
    if numbers.dtype.kind not in "biuf":
        raise_invalid(parameter, rule, f"{shown(output)}, from {pair_name(sides, 0)} on")
    check_exact(parameter, numbers)
    return numbers.astype(np.float64)


def check_each(parameter: str, sides: Sides, values: Floats, good: NDArray[np.bool_], rule: str) -> None:
    """Raise unless all rows of values (n,) or (n, f) are good: with the first bad value, its pair, and the count."""
    bad = ~good.reshape(len(good), -1)
    if bad.any():
        rows = bad.any(axis=1)
        first = int(rows.argmax())
        value = values.reshape(bad.shape)[first][bad[first]][0]
        raise_invalid(parameter, rule, f"{value} for {pair_name(sides, first)} ({rows.sum()} such)")


def pair_name(sides: Sides, place: int) -> str:
    """One pair, for a message."""
    anchor, item = (side[place].tolist() for side in sides)
    return f"triple {anchor} corrupted to {item}" if sides[0].ndim == 2 else f"anchor {anchor}, id {item}"


def check_function(parameter: str, function: object, rule: str = "a function from ids to vectors") -> None:
    """Raise unless `function` is None or callable."""
    if function is not None and not callable(function):
        raise_invalid(parameter, rule, type(function).__name__)


def embedded(function: Embed, ids: Array) -> Any:
    """Call a user's function with ids, without gradients; returns NumPy."""
    with without_gradients(ids):
        return to_numpy(function(ids))


def as_vectors(parameter: str, values: Any, shape: tuple[int | str, ...]) -> NDArray[Any]:
    """Check finite floating-point numbers of a shape, where a letter is any length above 0. float16 becomes float32."""
    vectors = to_numpy(values)
    wanted = f"vectors of shape ({', '.join(map(str, shape))})"
    if not isinstance(vectors, np.ndarray):
        raise_invalid(parameter, wanted, f"a {type(vectors).__name__}")
    if vectors.ndim != len(shape) or not all(
        length > 0 if isinstance(size, str) else length == size
        for size, length in zip(shape, vectors.shape, strict=True)
    ):
        raise_invalid(parameter, wanted, f"shape {vectors.shape}")
    if vectors.dtype.kind != "f":
        raise_invalid(parameter, "vectors of floating-point numbers", f"dtype {vectors.dtype}")
    check_all(parameter, vectors, np.isfinite(vectors), "finite")
    return vectors if vectors.dtype.itemsize >= 4 else vectors.astype(np.float32)


def slot_vectors(negatives: Negatives, embed: Embed | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """(n, d) vectors, and (B, K) the index of each slot's vector, 0 for empty slots. n is 0 if all slots are empty.

    `embed` is called with each id once. Without it, the vectors are `negatives.vectors`.
    """
    filled = filled_slots(negatives)
    places = np.zeros(filled.shape, np.intp)
    if not filled.any():
        return np.zeros((0, 1)), places
    if embed is not None:
        ids, places[filled] = np.unique(np.asarray(to_numpy(negatives.ids))[filled], return_inverse=True)
        return as_vectors("embed", embedded(embed, like(ids, negatives.ids)), (len(ids), "d")), places
    if negatives.vectors is None:
        advice = "Pass `embed` to the detector, or use a sampler that returns vectors."
        raise_invalid("negatives.vectors", "given without `embed`", None, advice)
    vectors = np.asarray(to_numpy(negatives.vectors))
    if vectors.strides[0] == 0 and len(vectors) > 1:  # a view that all rows share: not copied for each
        slots = filled.any(axis=0)
        places[:] = np.maximum(np.cumsum(slots) - 1, 0)
        vectors = vectors[0, slots]
    else:
        places[filled] = np.arange(np.count_nonzero(filled))
        vectors = vectors[filled]
    return as_vectors("negatives.vectors", vectors, (len(vectors), "d")), places


def check_width(parameter: str, vectors: NDArray[Any], width: int, of: str) -> None:
    """Raise unless vectors have the dimension of those they are compared with."""
    if vectors.shape[-1] != width:
        raise_invalid(parameter, f"vectors of dimension {width}, like {of}", vectors.shape[-1])


def unit(parameter: str, vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors of norm 1 along the last axis. A zero vector raises an error."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if (lengths == 0).any():
        raise_invalid(parameter, "vectors other than 0", first_bad(lengths[..., 0], lengths[..., 0] == 0))
    return np.asarray(vectors / lengths)


def best_products(views: NDArray[Any], vectors: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """(B, K) the largest dot product of a row's views (B, S, d) with the vector of each slot, in blocks of rows."""
    rows, n_views, width = views.shape
    best = np.zeros(places.shape, np.result_type(views, vectors))
    size = max(1, _BLOCK // max(1, places.shape[1] * (width + n_views)))
    for first in range(0, rows if best.size else 0, size):
        part = slice(first, first + size)
        products = vectors[places[part]] @ views[part].transpose(0, 2, 1)
        best[part] = products.max(axis=2)
    return best

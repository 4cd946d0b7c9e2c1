"""Sorted CSR rows as plain arrays: build, merge, and the read-only form that compiled loops expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.kernels import csr
from naysay.kernels.threads import in_rows

_IGNORE = 2
_NO_RELATION: NDArray[np.int8] = np.empty(0, np.int8)


class Rows(NamedTuple):
    """CSR rows: offsets (rows + 1,), ids (pairs,), and the relation of each pair, or None if all are positive."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    relation: NDArray[np.int8] | None = None


def check_sound(arrays: Mapping[str, NDArray[Any]], n_items: int) -> None:
    """Raise if saved arrays are damaged: a wrong id or offset could crash a compiled loop.

    Types and lengths are checked, then every offset, id, filter bit and relation in one pass.
    """
    rule, indptr, indices = "a folder of matching arrays", arrays["indptr"], arrays["indices"]
    types = {"indptr": np.int64, "indices": index_type(n_items), "filter": np.uint8, "relation": np.int8}
    for name, kind in types.items():
        array = arrays.get(name)
        if array is None:
            continue
        if array.ndim != 1 or array.dtype != kind or (name != "indptr" and array.size != indices.size):
            raise_invalid("path", rule, f"{name}: {array.shape} {array.dtype}")
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        raise_invalid("path", rule, f"indptr: not from 0 to {len(indices)}")
    whole = [arrays.get(name, _NO_RELATION) for name in ("indptr", "indices", "filter", "relation")]
    steps = 4 * (len(indices) + len(indptr))
    raise_damaged(
        f"ascending ids below {n_items} in every row", csr.damaged_rows, len(indptr) - 1, steps, n_items, *whole
    )


def raise_damaged(of: str, loop: Callable[..., Any], rows: int, steps: int, *arguments: Any) -> None:
    """Raise if `loop`, which returns the first damaged row and their number, finds any in a saved folder."""
    found: list[tuple[int, int]] = []
    given = [frozen(value) if isinstance(value, np.ndarray) else value for value in arguments]
    in_rows(lambda start, stop: found.append(loop(start, stop, *given)), rows, steps)
    damaged = sum(count for _, count in found)
    if damaged:
        row = min(first for first, count in found if count)
        got = f"row {row} damaged ({damaged} such row{'s' if damaged > 1 else ''})"
        raise_invalid("path", f"a folder of {of}", got)


def index_type(n_items: int) -> type[np.int32] | type[np.int64]:
    """The smallest type that holds every id."""
    return np.int32 if n_items <= np.iinfo(np.int32).max else np.int64


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values (n,), ascending. np.unique has a hash table, which is far slower if most are distinct."""
    ordered = np.sort(values)
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return np.asarray(ordered[fresh])


def offsets(counts: NDArray[Any]) -> NDArray[np.int64]:
    """(n,) counts to (n + 1,) row starts."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view. All rows are read-only, so that compiled loops have one type, mapped from disk or not."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def refrozen(value: Any) -> Any:
    """A state, or a part of one, with its arrays read-only again, which pickles and deep copies of arrays are not."""
    if isinstance(value, np.ndarray):
        return frozen(value)
    if isinstance(value, dict):
        return {name: refrozen(part) for name, part in value.items()}
    return tuple(map(refrozen, value)) if type(value) is tuple else value


def grouped(anchors: NDArray[Any], items: NDArray[Any], n_anchors: int, n_items: int) -> Rows:
    """Group pairs into rows by one counting sort; the ids of a row are in no order."""
    indptr = offsets(np.bincount(anchors, minlength=n_anchors))
    indices = np.empty(len(items), index_type(n_items))
    csr.scatter(anchors, items, indptr[:-1].copy(), indices)
    return Rows(indptr, indices)


def tidied(indptr: NDArray[np.int64], indices: NDArray[Any]) -> tuple[Rows, int]:
    """Rows ascending and distinct, and how many duplicates were merged. `indices` is used up."""
    kept = np.empty(len(indptr) - 1, np.int64)
    in_rows(csr.sort_rows, len(kept), 8 * len(indices), indptr, indices, kept)
    packed = offsets(kept)
    duplicates = len(indices) - int(packed[-1])
    if duplicates == 0:
        return Rows(indptr, indices), 0
    out = np.empty(packed[-1], indices.dtype)
    csr.pack_rows(indptr, packed, indices, out)
    return Rows(packed, out), duplicates


def positions(
    indptr: NDArray[np.int64],
    indices: NDArray[Any],
    bits: NDArray[np.uint8],
    anchors: NDArray[Any],
    items: NDArray[Any],
) -> NDArray[np.int64]:
    """The position of each pair in tidy rows with the filter `bits`, -1 if it is not there; shaped like `items`."""
    found = np.empty(items.size, np.int64)
    flat = (anchors.ravel(), items.ravel(), (indptr, indices, bits), found)
    in_rows(csr.contains, items.size, 2 * items.size, *flat)
    return found.reshape(items.shape)


def nth_negatives(
    indptr: NDArray[np.int64], indices: NDArray[Any], n_items: int, anchors: NDArray[Any], ranks: NDArray[Any]
) -> NDArray[np.int64]:
    """The rank-th id below `n_items` that is not in the row, -1 past the last; shaped like `ranks`."""
    found = np.empty(ranks.size, np.int64)
    flat = (anchors.ravel(), ranks.ravel(), indptr, indices, n_items, found)
    in_rows(csr.nth_negative, ranks.size, 4 * ranks.size, *flat)
    return found.reshape(ranks.shape)


def counts_of_kind(
    relation: NDArray[np.int8], starts: NDArray[np.int64], stops: NDArray[np.int64], kind: int
) -> NDArray[np.int64]:
    """How many pairs of the rows from `starts` to `stops` have a relation; the cost is that of these rows."""
    ends = offsets(stops - starts)
    if ends[-1] >= len(relation):  # in place is cheaper than a copy of as much
        before = offsets(relation == kind)
        return np.asarray(before[stops] - before[starts])
    places = np.repeat(starts - ends[:-1], stops - starts) + np.arange(ends[-1])
    return np.diff(offsets(relation[places] == kind)[ends])


def filter_of(indptr: NDArray[np.int64], indices: NDArray[Any]) -> NDArray[np.uint8]:
    """The membership filter of tidy rows: one byte per pair."""
    bits = np.zeros(len(indices), np.uint8)
    in_rows(csr.fill_filter, len(indptr) - 1, 2 * len(indices), frozen(indptr), frozen(indices), bits)
    return bits


def merged(one: Rows, other: Rows, n_anchors: int, n_items: int) -> Rows:
    """The union of tidy rows, row by row; if a pair is in both, positive wins over ignore."""
    a, b = _prepared(one, n_anchors, n_items), _prepared(other, n_anchors, n_items)
    kept = np.empty(n_anchors, np.int64)
    steps = len(one.indices) + len(other.indices)
    kind = index_type(n_items)
    in_rows(csr.merge_rows, n_anchors, steps, a, b, kept, np.empty(0, kind), np.empty(0, np.int8), kept)
    indptr = offsets(kept)
    indices = np.empty(indptr[-1], kind)
    related = one.relation is not None or other.relation is not None
    relation = np.empty(len(indices) if related else 0, np.int8)
    in_rows(csr.merge_rows, n_anchors, steps, a, b, indptr, indices, relation, kept)
    return Rows(indptr, indices, relation if (relation == _IGNORE).any() else None)


def _prepared(rows: Rows, n_anchors: int, n_items: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Offsets with empty rows appended, ids of the common type, and relations, for the merging loops."""
    indptr = np.pad(rows.indptr, (0, n_anchors + 1 - len(rows.indptr)), mode="edge")
    relation = _NO_RELATION if rows.relation is None else rows.relation
    return frozen(indptr), frozen(rows.indices.astype(index_type(n_items), copy=False)), frozen(relation)

"""Sorted CSR rows as plain arrays: build, look up, merge, and the read-only form that compiled loops expect.

All of this is NumPy, so that a first call compiles nothing. A pair is sorted as one number, anchor * n_items + item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.kernels import csr
from naysay.kernels.threads import in_rows

_POSITIVE, _IGNORE = 1, 2
_COMPILED_FROM = 1 << 17  # pairs from which on looking them up by a compiled loop saves a millisecond and more
_CHECKED_AT_ONCE = 1 << 20  # pairs


class Rows(NamedTuple):
    """CSR rows: offsets (rows + 1,), ids (pairs,), and the relation of each pair, or None if all are positive."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    relation: NDArray[np.int8] | None = None


# ---- Small helpers ---------------------------------------------------------------------------------------------------


def index_type(n_items: int) -> type[np.int32] | type[np.int64]:
    """The smallest type that holds every id."""
    return np.int32 if n_items <= np.iinfo(np.int32).max else np.int64


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values (n,), ascending. np.unique has a hash table, which is far slower if most are distinct."""
    ordered = np.sort(values)
    return np.asarray(ordered[_first_of_equals(ordered)])


def _first_of_equals(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each of some sorted values differs from the one before it."""
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


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


# ---- Build -----------------------------------------------------------------------------------------------------------


def sorted_rows(
    anchors: NDArray[Any],
    items: NDArray[Any],
    n_anchors: int,
    n_items: int,
    ignored: NDArray[np.bool_] | None = None,
) -> Rows:
    """Rows of ascending, distinct items from pairs in any order. A pair that is also positive is not ignored."""
    if n_anchors * n_items < 1 << 62:
        keys = anchors.astype(np.int64) * np.int64(n_items) + items
        if ignored is not None:  # the positive one of two equal pairs comes first
            keys = 2 * keys + ignored
        keys.sort()
        pairs = keys if ignored is None else keys >> 1
        first = _first_of_equals(pairs)
        if not first.all():
            keys, pairs = keys[first], pairs[first]
        kept_ignored = None if ignored is None else (keys & 1).astype(np.bool_)
        indptr = np.searchsorted(pairs, np.arange(n_anchors + 1) * np.int64(n_items))
        kept_items = pairs - np.repeat(np.arange(n_anchors) * np.int64(n_items), np.diff(indptr))
    else:  # numbers too large for one key
        marks = np.zeros(len(items), np.bool_) if ignored is None else ignored
        order = np.lexsort((marks, items, anchors))
        anchors, items, marks = anchors[order], items[order], marks[order]
        first = _first_of_equals(anchors) | _first_of_equals(items)
        indptr = offsets(np.bincount(anchors[first], minlength=n_anchors))
        kept_items = items[first]
        kept_ignored = marks[first]
    relation = None
    if kept_ignored is not None and kept_ignored.any():
        relation = np.where(kept_ignored, _IGNORE, _POSITIVE).astype(np.int8)
    return Rows(indptr.astype(np.int64, copy=False), kept_items.astype(index_type(n_items), copy=False), relation)


def from_csr(indptr: NDArray[np.int64], indices: NDArray[Any], n_items: int) -> Rows:
    """The same of rows whose ids are in any order."""
    n_anchors = len(indptr) - 1
    return sorted_rows(np.repeat(np.arange(n_anchors), np.diff(indptr)), indices, n_anchors, n_items)


def filter_of(indptr: NDArray[np.int64], indices: NDArray[Any]) -> NDArray[np.uint8]:
    """The membership filter of sorted rows: one byte per pair, see `kernels.csr`."""
    bits = np.zeros(8 * len(indices), np.bool_)
    for multiplier in (csr.HASH_A, csr.HASH_B):
        bits[_filter_places(indptr, indices, multiplier)] = True
    return np.packbits(bits, bitorder="little")


def _filter_places(indptr: NDArray[np.int64], indices: NDArray[Any], multiplier: np.uint32) -> NDArray[np.int64]:
    """The place of one of the two bits of each pair among the bits of all rows."""
    ids = indices.astype(np.int64)
    folded = (ids ^ (ids >> 32)).astype(np.uint32)
    hashed = (folded * multiplier).astype(np.uint64)
    degrees = np.diff(indptr)
    within_row = (hashed * np.repeat(8 * degrees, degrees).astype(np.uint64)) >> np.uint64(32)
    return np.repeat(8 * indptr[:-1], degrees) + within_row.astype(np.int64)


# ---- Look up ---------------------------------------------------------------------------------------------------------


def positions(
    indptr: NDArray[np.int64],
    indices: NDArray[Any],
    bits: NDArray[np.uint8],
    anchors: NDArray[Any],
    items: NDArray[Any],
) -> NDArray[np.int64]:
    """The position of each pair in sorted rows with the filter `bits`, -1 if it is not there; shaped like `items`."""
    flat_anchors, flat_items = anchors.ravel(), items.ravel()
    if items.size >= _COMPILED_FROM:
        found = np.empty(items.size, np.int64)
        in_rows(csr.contains, items.size, 2 * items.size, flat_anchors, flat_items, (indptr, indices, bits), found)
        return found.reshape(items.shape)
    valid = (flat_anchors >= 0) & (flat_items >= 0)
    rows = np.where(valid, flat_anchors, 0) if len(indptr) > 1 else np.zeros(0, np.int64)
    if not len(rows) or not len(indices):
        return np.full(items.shape, -1, np.int64)
    starts, stops = indptr[rows], indptr[rows + 1]
    at = lower_bounds(indices, starts, stops, flat_items)
    inside = valid & (at < stops)
    equal = inside & (indices[np.where(inside, at, 0)] == flat_items)
    return np.where(equal, at, -1).reshape(items.shape)


def lower_bounds(
    ordered: NDArray[Any], starts: NDArray[np.int64], stops: NDArray[np.int64], wanted: NDArray[Any]
) -> NDArray[np.int64]:
    """The first place in [start, stop) whose value is at least the wanted one."""
    return _first_places(starts, stops, lambda places: ordered[np.minimum(places, len(ordered) - 1)] < wanted)


def nth_negatives(
    indptr: NDArray[np.int64], indices: NDArray[Any], n_items: int, anchors: NDArray[Any], ranks: NDArray[Any]
) -> NDArray[np.int64]:
    """The rank-th id below `n_items` that is not in the row, -1 past the last; shaped like `ranks`.

    It is rank + j, where j is the number of ids p_j of the row with p_j - j <= rank.
    """
    rows, wanted = anchors.ravel(), ranks.ravel()
    starts, stops = indptr[rows], indptr[rows + 1]
    last = max(len(indices) - 1, 0)
    ends = _first_places(starts, stops, lambda places: indices[np.minimum(places, last)] - (places - starts) <= wanted)
    ids = wanted + (ends - starts)
    return np.where(wanted < n_items - (stops - starts), ids, -1).reshape(ranks.shape)


def _first_places(
    starts: NDArray[np.int64], stops: NDArray[np.int64], is_before: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
) -> NDArray[np.int64]:
    """The first place in each [start, stop) for which `is_before` is False: a binary search of all at once."""
    low, high = starts.copy(), stops.copy()
    while (low < high).any():
        middle = (low + high) >> 1
        before = (low < high) & is_before(middle)
        high = np.where(before | (low >= high), high, middle)
        low = np.where(before, middle + 1, low)
    return low


def counts_of_kind(
    relation: NDArray[np.int8], starts: NDArray[np.int64], stops: NDArray[np.int64], kind: int
) -> NDArray[np.int64]:
    """How many pairs of the rows from `starts` to `stops` have a relation; the cost is that of these rows."""
    ends = offsets(stops - starts)
    places = np.repeat(starts - ends[:-1], stops - starts) + np.arange(ends[-1])
    return np.diff(offsets(relation[places] == kind)[ends])


# ---- Check what was saved --------------------------------------------------------------------------------------------


def check_sound(arrays: Mapping[str, NDArray[Any]], n_items: int) -> None:
    """Raise if saved arrays are damaged: a wrong id or offset could crash a compiled loop.

    Types and lengths are checked, then every offset, id, filter bit and relation, in blocks of rows.
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
    falls = np.diff(indptr) < 0
    damaged = np.flatnonzero(falls) if falls.any() else _damaged_rows(arrays, n_items)
    raise_damaged(f"ascending ids below {n_items} in every row", damaged)


def _damaged_rows(arrays: Mapping[str, NDArray[Any]], n_items: int) -> NDArray[np.int64]:
    """The rows that break what all loops rely on: a wrong id, filter bit or relation. Offsets rise."""
    indptr, indices, bits, relation = (arrays.get(name) for name in ("indptr", "indices", "filter", "relation"))
    if indptr is None or indices is None:
        return np.empty(0, np.int64)
    damaged = []
    first = 0
    while first < len(indptr) - 1:
        # As many rows as have the pairs that are checked at once, and one row at least.
        last = max(int(np.searchsorted(indptr, indptr[first] + _CHECKED_AT_ONCE)), first + 1)
        last = min(last, len(indptr) - 1)
        pairs = slice(int(indptr[first]), int(indptr[last]))
        ids = np.asarray(indices[pairs])
        starts = np.asarray(indptr[first : last + 1]) - pairs.start
        wrong = (ids < 0) | (ids >= n_items)
        rising = np.ones(len(ids), np.bool_)
        rising[1:] = ids[1:] > ids[:-1]
        rising[starts[:-1][starts[:-1] < len(ids)]] = True
        wrong |= ~rising
        if relation is not None:
            wrong |= (relation[pairs] < _POSITIVE) | (relation[pairs] > _IGNORE)
        if bits is not None:
            for multiplier in (csr.HASH_A, csr.HASH_B):
                places = _filter_places(starts, ids, multiplier)
                wrong |= (np.asarray(bits[pairs])[places >> 3] >> (places & 7).astype(np.uint8)) & 1 == 0
        damaged.append(first + np.unique(np.searchsorted(starts, np.flatnonzero(wrong), side="right") - 1))
        first = last
    return np.concatenate([*damaged, np.empty(0, np.int64)]).astype(np.int64)


def raise_damaged(of: str, damaged: NDArray[np.int64]) -> None:
    """Raise if rows of a saved folder are damaged."""
    if len(damaged):
        got = f"row {damaged[0]} damaged ({len(damaged)} such row{'s' if len(damaged) > 1 else ''})"
        raise_invalid("path", f"a folder of {of}", got)

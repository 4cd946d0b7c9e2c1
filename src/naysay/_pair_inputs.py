"""The arguments of `Positives`, checked and as arrays: ids, names, CSR, sparse matrices, edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay import tables
from naysay.arrays import to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    check_bool,
    check_lengths,
    check_range,
    check_whole,
    first_bad,
    raise_invalid,
    whole_numbers,
)
from naysay.vocabulary import Vocabulary, warn_of_gaps

Ids = NDArray[np.int64]
_MANY = 1 << 27  # rows that cost a gigabyte
_MOST_ITEMS = (1 << 62) - 1
TO_NUMBER = {
    "anchors": "anchor_names=True for a vocabulary of those that occur",
    "items": "item_names=True for a vocabulary of those that occur",
}


def check_names(**given: object) -> None:
    """Raise if one of the named parameters is not a vocabulary, True or None."""
    for parameter, names in given.items():
        if names is not None and not isinstance(names, Vocabulary | bool):
            advice = "Pass Vocabulary(names), or True to make one."
            raise_invalid(parameter, "a Vocabulary", type(names).__name__, advice)


def size_of(name: str, of: str, given: int | None, ids: NDArray[Any], names: Vocabulary | None = None) -> int:
    """The number of anchors, items or nodes: as given, by the vocabulary, or the largest id plus one; no id above."""
    if given is None and names is None:
        if ids.size and ids.min() < 0:
            raise_invalid(of, "at least 0", first_bad(ids, ids < 0))
        size = (int(ids.max()) if ids.size else -1) + 1
        if size > _MANY and size > 100 * ids.size:  # e.g. hashes: most rows would be empty
            advice = f"Pass {name}, or {TO_NUMBER.get(of, 'number those that occur from 0')}."
            raise_invalid(of, "numbered from 0 without wide gaps", f"{size - 1} among {ids.size} ids", advice)
        return size
    most = _MOST_ITEMS if name == "n_items" else MOST_ROWS  # only anchors and nodes have a row each
    size = check_whole(name, len(names) if given is None and names is not None else given, 0, most)
    check_range(of, ids, size, name.removeprefix("n_"))
    return size


def aligned(
    name: str,
    anchors: ArrayLike,
    others: ArrayLike,
    n_anchors: int,
    anchor_names: Vocabulary | None,
    names: Vocabulary | None = None,
) -> tuple[Ids, Ids]:
    """Anchors and a partner array, ids or names, broadcast to one shape; (B,) goes with (B, K) row by row."""
    owners = as_array("anchors", to_numpy(anchors))
    partners = as_array(name, to_numpy(others))
    owners = tables.look_up("anchors", owners.ravel(), anchor_names).reshape(owners.shape)
    partners = tables.look_up(name, partners.ravel(), names).reshape(partners.shape)
    check_range("anchors", owners.ravel(), n_anchors, "anchors")
    shapes = f"shapes {owners.shape} and {partners.shape}"
    if owners.ndim == 1 and partners.ndim == 2:
        owners = owners[:, None]
    try:
        if owners.shape != partners.shape:
            owners, partners = (part.copy() for part in np.broadcast_arrays(owners, partners))
    except ValueError:
        raise_invalid(name, "of shape (B,) or (B, K) for anchors (B,)", shapes)
    return owners.astype(np.int64, copy=False), partners.astype(np.int64, copy=False)


def csr_rows(indptr: ArrayLike, indices: ArrayLike, n_items: int | None) -> tuple[Ids, NDArray[Any], int]:
    """Row starts that rise from 0 to the number of ids, the ids, and the number of items; neither is written to."""
    starts = whole_numbers("indptr", to_numpy(indptr)).astype(np.int64)
    ids = whole_numbers("indices", to_numpy(indices))
    rule, falls = f"a rising sequence from 0 to the {len(ids)} indices", np.diff(starts) < 0
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(ids):
        got = f"{len(starts)} values, {starts[:1].tolist()} to {starts[-1:].tolist()}"
        raise_invalid("indptr", rule, got)
    if falls.any():
        raise_invalid("indptr", rule, f"a decrease to {first_bad(starts[1:], falls)}")
    return starts, ids, size_of("n_items", "indices", n_items, ids)


def sparse_pairs(matrix: Any) -> tuple[NDArray[Any], NDArray[Any], tuple[int, int]]:
    """(anchors, items, shape) of the entries of a scipy.sparse matrix, explicit zeros left out."""
    if not hasattr(matrix, "tocsr"):
        raise_invalid("matrix", "a scipy.sparse matrix", type(matrix).__name__)
    if len(matrix.shape) != 2:
        raise_invalid("matrix", "of two dimensions, anchors x items", f"shape {matrix.shape}")
    entries = matrix.tocoo()  # which keeps repeated entries
    kept = entries.data != 0
    n_anchors, n_items = map(int, matrix.shape)
    return entries.row[kept], entries.col[kept], (n_anchors, n_items)


def edge_ends(
    sources: ArrayLike, targets: ArrayLike | None, n_nodes: int | None, *, directed: bool
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Both ends of each edge, each edge both ways unless directed, and the number of nodes."""
    check_bool("directed", directed)
    if targets is None:
        edges = as_array("sources", to_numpy(sources))
        if edges.ndim != 2 or edges.shape[1] != 2:
            advice = "Pass targets, or one array of edges (n, 2)."
            if edges.ndim == 2 and edges.shape[0] == 2:
                advice = "Pass the two rows apart: from_edges(*edge_index)."
            raise_invalid("sources", "of shape (n, 2) if there are no targets", f"shape {edges.shape}", advice)
        sources, targets = edges[:, 0], edges[:, 1]
    starts = whole_numbers("sources", to_numpy(sources))
    ends = whole_numbers("targets", to_numpy(targets))
    check_lengths(sources=len(starts), targets=len(ends))
    size = max(size_of("n_nodes", "sources", n_nodes, starts), size_of("n_nodes", "targets", n_nodes, ends))
    if n_nodes is None:
        advice = "number those that occur from 0"
        warn_of_gaps("n_nodes", "node", size, np.concatenate([starts, ends]), advice)
    if directed:
        return starts, ends, size
    return np.concatenate([starts, ends]), np.concatenate([ends, starts]), size

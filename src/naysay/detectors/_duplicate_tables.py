"""What duplicates are compared by: keys and signatures of texts, unit vectors, and known pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen, offsets
from naysay.checks import check_all, raise_invalid
from naysay.detectors._slots import as_scores
from naysay.detectors._text_hash import folded_blocks, keys_of, signatures
from naysay.positives import POSITIVE, Positives

Ids = NDArray[np.int64]


class Table(NamedTuple):
    """A row for each item, followed by one for each anchor.

    Args:
        n_items: The number of items.
        n_anchors: The number of rows for anchors.
        values: Vectors (n, d) float32, or keys (n,) uint64.
        signed: (n, P) uint32 the signatures of texts, or None.
    """

    n_items: int
    n_anchors: int
    values: NDArray[Any]
    signed: NDArray[np.uint32] | None = None


def text_table(items: list[Any], anchors: list[Any], shingle: int, size: int | None, *, punctuation: bool) -> Table:
    """Keys of the folded texts, and signatures of `size` hashes unless it is None."""
    keys, signed = [np.empty(0, np.uint64)], [np.empty((0, size or 0), np.uint32)]
    for block in folded_blocks([*items, *anchors], punctuation=punctuation):
        keys.append(keys_of(block))
        if size is not None:
            signed.append(signatures(block, shingle, size))
    all_signed = frozen(np.concatenate(signed)) if size is not None else None
    return Table(len(items), len(anchors), frozen(np.concatenate(keys)), all_signed)


def vector_table(items: Any, anchors: Any) -> Table:
    """Vectors of norm 1, float32."""
    units = _unit("item_vectors", items)
    others = units[:0] if anchors is None else _unit("anchor_vectors", anchors)
    if units.shape[1] != others.shape[1]:
        raise_invalid("anchor_vectors", f"of dimension {units.shape[1]}, like `item_vectors`", others.shape[1])
    return Table(len(units), len(others), frozen(np.concatenate([units, others])))


def _unit(parameter: str, values: Any) -> NDArray[np.float32]:
    """Vectors of norm 1. Raises for zero vectors."""
    vectors = as_scores(parameter, values)
    if vectors.ndim != 2 or not len(vectors):
        raise_invalid(parameter, "numbers of shape (n, d), n at least 1", f"shape {vectors.shape}")
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    check_all(parameter, largest[:, 0], largest[:, 0] > 0, "vectors other than 0")
    vectors /= largest  # so that no square overflows, or vanishes
    units: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return units


class KnownRows:
    """The positives of each anchor, and `both_ways` the anchors of each item, without pairs to ignore.

    There are at least `n_anchors` rows; an anchor without positives has an empty one.
    """

    def __init__(self, positives: Positives, n_anchors: int, *, both_ways: bool) -> None:
        anchors, items = positives.pairs()
        if positives.relation is not None:
            kept = positives.relation == POSITIVE
            anchors, items = anchors[kept], items[kept]
        self.n_anchors = max(positives.n_anchors, n_anchors)
        known = Positives.from_pairs(anchors, items, self.n_anchors, positives.n_items)
        self.indptr, self.indices, self.filter = known.indptr, known.indices, known.filter
        self.item_indptr: Ids = np.zeros(1, np.int64)
        self.item_anchors: NDArray[Any] = np.empty(0, np.int32)
        if both_ways:
            inverted = Positives.from_pairs(items, anchors, positives.n_items, self.n_anchors)
            self.item_indptr, self.item_anchors = inverted.indptr, inverted.indices

    def __repr__(self) -> str:
        return f"{len(self.indices)} pairs"


def references(known: KnownRows | None, anchors: Ids, positives: Ids | None) -> tuple[Ids, Ids]:
    """The references of each row, as CSR: the known positives of its anchor, and the query's positive."""
    none = np.zeros(len(anchors), np.int64)
    starts, stops = (none, none) if known is None else (known.indptr[anchors], known.indptr[anchors + 1])
    counts = stops - starts
    indptr = offsets(counts + (positives is not None))
    rows = np.repeat(np.arange(len(anchors)), np.diff(indptr))
    place = np.arange(len(rows)) - indptr[rows]
    items = np.empty(len(rows), np.int64) if positives is None else positives[rows]
    if known is not None:
        inside = place < counts[rows]
        items[inside] = known.indices[(starts[rows] + place)[inside]]
    return frozen(indptr), frozen(items)

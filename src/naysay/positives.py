"""Positives: who is known to belong to whom. Built once, sorted, and the only code that excludes.

A row per anchor, in CSR form: `indptr` (n_anchors + 1,) int64 and `indices` (pairs,) int32 (int64 from 2^31 items
on), each row ascending and free of duplicates, with a filter of one byte per pair that answers most membership
questions at once: 5 bytes per pair and 8 per anchor. A second relation, ignore (neither positive nor
negative), is excluded like a positive and kept apart by one more byte per pair, only where it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay import inputs, rows, storage, tables
from naysay.arrays import to_numpy
from naysay.checks import check_lengths, check_one_of, check_range, refuse, whole_numbers
from naysay.kernels import csr
from naysay.kernels.threads import in_rows
from naysay.types import HEAD, RELATION, TAIL
from naysay.vocabulary import Vocabulary, shared_names

if TYPE_CHECKING:
    import pyarrow as pa

POSITIVE, IGNORE = 1, 2
_RELATIONS = {"positive": (POSITIVE,), "ignore": (IGNORE,), "any": (POSITIVE, IGNORE)}


@final
class Positives:
    """Known pairs of (anchor, item).

    Make one with `from_pairs`, `from_csr`, `from_scipy`, `from_parquet`, `from_csv`, `from_arrow`, `from_edges`,
    `from_triples` or `load`. `naysay.Triples` knows (head, relation, tail) from every side.

    n_anchors, n_items   the sizes; an id is in [0, size)
    indptr, indices      the rows, read-only
    filter               one byte per pair, beside `indices`
    relation             (pairs,) int8, 1 positive and 2 ignore; None while everything is positive
    duplicates           how many given pairs were merged into an equal one
    anchor_names, item_names   the vocabularies, where ids were given as strings
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[Any],
        n_items: int,
        *,
        filter: NDArray[np.uint8] | None = None,
        relation: NDArray[np.int8] | None = None,
        duplicates: int = 0,
        anchor_names: Vocabulary | None = None,
        item_names: Vocabulary | None = None,
    ) -> None:
        """Take sorted, duplicate-free rows as they are. Users call `from_csr`, which sorts and checks."""
        self.indptr = rows.frozen(indptr)
        self.indices = rows.frozen(indices)
        self.n_anchors = len(indptr) - 1
        self.n_items = n_items
        self.relation = None if relation is None else rows.frozen(relation)
        self.duplicates = duplicates
        self.anchor_names = anchor_names
        self.item_names = item_names
        self.filter = rows.frozen(rows.filter_of(indptr, indices) if filter is None else filter)

    # ---- making one -------------------------------------------------------------------------------------

    @classmethod
    def from_pairs(
        cls, anchors: ArrayLike, items: ArrayLike, n_anchors: int | None = None, n_items: int | None = None
    ) -> Positives:
        """From two arrays of equal length, in any order, with duplicates; ids are whole numbers or strings.

        Sizes default to the largest id plus one. O(pairs + n_anchors) plus the sorting of each row.

        >>> known = Positives.from_pairs([0, 0, 1], [4, 2, 4], n_items=6)
        >>> known.contains([0, 0, 1], [2, 3, 4]).tolist()
        [True, False, True]
        """
        owner = "Positives.from_pairs"
        anchor_ids, anchor_names = tables.encode(owner, "anchors", to_numpy(anchors))
        item_ids, item_names = tables.encode(owner, "items", to_numpy(items))
        check_lengths(owner, anchors=len(anchor_ids), items=len(item_ids))
        n_anchors = inputs.size_of(owner, "n_anchors", "anchors", n_anchors, anchor_ids, anchor_names)
        n_items = inputs.size_of(owner, "n_items", "items", n_items, item_ids, item_names)
        unsorted = rows.grouped(anchor_ids, item_ids, n_anchors, n_items)
        tidy, duplicates = rows.tidied(unsorted.indptr, unsorted.indices)
        known = cls(tidy.indptr, tidy.indices, n_items, duplicates=duplicates)
        known.anchor_names, known.item_names = anchor_names, item_names
        return known

    @classmethod
    def from_csr(cls, indptr: ArrayLike, indices: ArrayLike, n_items: int | None = None) -> Positives:
        """From CSR arrays; rows need not be sorted, duplicates are merged."""
        owner = "Positives.from_csr"
        starts, ids = inputs.csr_arrays(owner, indptr, indices)
        size = inputs.size_of(owner, "n_items", "indices", n_items, ids)
        tidy, duplicates = rows.tidied(starts, ids.astype(rows.index_type(size)))
        return cls(tidy.indptr, tidy.indices, size, duplicates=duplicates)

    @classmethod
    def from_scipy(cls, matrix: Any) -> Positives:
        """From a scipy.sparse matrix or array, anchors x items: its non-zero entries."""
        return cls.from_csr(*inputs.sparse_arrays("Positives.from_scipy", matrix))

    @classmethod
    def from_arrow(cls, table: pa.Table, *, anchors: str, items: str) -> Positives:
        """From two named columns of an Arrow table; string columns get a vocabulary."""
        columns = tables.columns("Positives.from_arrow", table, anchors=anchors, items=items)
        return cls.from_pairs(columns["anchors"], columns["items"])

    @classmethod
    def from_parquet(cls, path: str | Path, *, anchors: str, items: str) -> Positives:
        """From two named columns of a Parquet file; other columns are not read."""
        table = tables.read_parquet("Positives.from_parquet", path, anchors=anchors, items=items)
        return cls.from_arrow(table, anchors=anchors, items=items)

    @classmethod
    def from_csv(cls, path: str | Path, *, anchors: str, items: str, delimiter: str = ",") -> Positives:
        """From two named columns of a CSV file with a header line."""
        table = tables.read_csv("Positives.from_csv", path, delimiter, anchors=anchors, items=items)
        return cls.from_arrow(table, anchors=anchors, items=items)

    @classmethod
    def from_edges(
        cls,
        sources: ArrayLike,
        targets: ArrayLike | None = None,
        n_nodes: int | None = None,
        *,
        directed: bool = False,
        self_pairs: bool = False,
    ) -> Positives:
        """From the edges of a graph on one set of nodes, each edge both ways unless `directed`.

        sources, targets   the two ends (n,) of each edge, or `sources` alone as edges (n, 2)
        self_pairs         whether a node may be drawn as a negative of itself; if not, (v, v) is ignored
        """
        starts, ends, size = inputs.edge_ends("Positives.from_edges", sources, targets, n_nodes, directed=directed)
        graph = cls.from_pairs(starts, ends, size, size)
        return graph if self_pairs else graph.with_ignored(np.arange(size), np.arange(size))

    @classmethod
    def from_triples(
        cls, triples: ArrayLike, n_entities: int | None = None, n_relations: int | None = None
    ) -> Positives:
        """From (n, 3) head, relation, tail: the tails known of each (head, relation).

        The anchor of (h, r) is h * n_relations + r. `naysay.Triples` answers from every side.
        """
        owner = "Positives.from_triples"
        array = inputs.triple_array(owner, triples)
        entities, relations = inputs.triple_sizes(owner, array, n_entities, n_relations)
        anchors = array[:, HEAD] * relations + array[:, RELATION]
        return cls.from_pairs(anchors, array[:, TAIL], entities * relations, entities)

    # ---- asking -----------------------------------------------------------------------------------------

    def contains(self, anchors: ArrayLike, items: ArrayLike, *, relation: str = "positive") -> NDArray[np.bool_]:
        """Whether each pair is known; anchors (B,) go with items (B,) or (B, K). An item of -1 is never known.

        relation   "positive", "ignore", or "any" of the two, which is what a pool excludes
        """
        check_one_of("Positives.contains", "relation", relation, tuple(_RELATIONS))
        owners, asked = inputs.aligned("Positives.contains", "items", anchors, items, self.n_anchors)
        check_range("Positives.contains", "items", asked, self.n_items, "items", least=-1)
        positions = np.empty(asked.size, np.int64)
        flat = (owners.ravel(), asked.ravel(), self.indptr, self.indices, self.filter, positions)
        in_rows(csr.contains, asked.size, 2 * asked.size, *flat)
        known = positions >= 0
        if relation != "any" and self.relation is not None:
            known &= self.relation[positions] == _RELATIONS[relation][0]
        elif relation == "ignore":
            known[:] = False
        return known.reshape(asked.shape)

    def count(self, anchors: ArrayLike | None = None, *, relation: str = "positive") -> NDArray[np.int64]:
        """How many items are known of each anchor (B,), or of all anchors in order."""
        check_one_of("Positives.count", "relation", relation, tuple(_RELATIONS))
        chosen = np.arange(self.n_anchors)
        if anchors is not None:
            chosen = whole_numbers("Positives.count", "anchors", to_numpy(anchors))
            check_range("Positives.count", "anchors", chosen, self.n_anchors, "anchors")
        starts, stops = self.indptr[chosen], self.indptr[chosen + 1]
        if relation == "any" or (relation == "positive" and self.relation is None):
            return np.asarray(stops - starts)
        of_kind = np.zeros(len(self)) if self.relation is None else self.relation == _RELATIONS[relation][0]
        before = rows.offsets(of_kind)
        return np.asarray(before[stops] - before[starts])

    def item_counts(self) -> NDArray[np.int64]:
        """How many anchors each item is a positive of, (n_items,): the popularity of the review's PNS."""
        ids = self.indices if self.relation is None else self.indices[self.relation == POSITIVE]
        return np.bincount(ids, minlength=self.n_items)

    def nth_negative(self, anchors: ArrayLike, ranks: ArrayLike) -> NDArray[np.int64]:
        """The rank-th item, counted from 0 in ascending order, that is not known of the anchor; -1 past the last.

        i = rank + #{j : p_j - j <= rank} over the sorted known items p of the anchor: exact, O(log of the row).
        """
        owners, wanted = inputs.aligned("Positives.nth_negative", "ranks", anchors, ranks, self.n_anchors)
        if wanted.size and wanted.min() < 0:
            refuse("Positives.nth_negative", "ranks", "at least 0", int(wanted.min()))
        found = np.empty(wanted.size, np.int64)
        flat = (owners.ravel(), wanted.ravel(), self.indptr, self.indices, self.n_items, found)
        in_rows(csr.nth_negative, wanted.size, 4 * wanted.size, *flat)
        return found.reshape(wanted.shape)

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All known pairs as (anchors, items), in order."""
        anchors = np.repeat(np.arange(self.n_anchors), np.diff(self.indptr))
        return anchors, self.indices.astype(np.int64)

    @property
    def nbytes(self) -> int:
        """The memory that the arrays take; names not counted."""
        relation = 0 if self.relation is None else self.relation.nbytes
        return self.indptr.nbytes + self.indices.nbytes + self.filter.nbytes + relation

    def __len__(self) -> int:
        """The number of known pairs, ignored ones included."""
        return len(self.indices)

    def __repr__(self) -> str:
        """The sizes in one line."""
        return f"Positives({len(self):,} pairs, {self.n_anchors:,} anchors x {self.n_items:,} items)"

    # ---- combining --------------------------------------------------------------------------------------

    def union(self, other: Positives) -> Positives:
        """All pairs of both, in one merge of sorted rows; a pair that one calls positive is positive.

        This is how positives are added: the large part is not sorted again. Sizes grow to the larger of the two.
        """
        if not isinstance(other, Positives):
            refuse("Positives.union", "other", "a Positives", type(other).__name__)
        n_anchors, n_items = max(self.n_anchors, other.n_anchors), max(self.n_items, other.n_items)
        owner = "Positives.union"
        anchor_names = shared_names(owner, "anchor", self.anchor_names, other.anchor_names, n_anchors)
        item_names = shared_names(owner, "item", self.item_names, other.item_names, n_items)
        mine, theirs = (rows.Rows(known.indptr, known.indices, known.relation) for known in (self, other))
        both = rows.merged(mine, theirs, n_anchors, n_items)
        relation = both.relation if both.relation is not None and (both.relation == IGNORE).any() else None
        union = Positives(both.indptr, both.indices, n_items, relation=relation)
        union.duplicates = self.duplicates + other.duplicates
        union.anchor_names, union.item_names = anchor_names, item_names
        return union

    def with_ignored(self, anchors: ArrayLike, items: ArrayLike) -> Positives:
        """The same, with pairs that are neither positive nor negative: never drawn, and not counted as positive.

        Pairs are ids, or names where there is a vocabulary.
        """
        owner = "Positives.with_ignored"
        anchor_ids = tables.look_up(owner, "anchors", to_numpy(anchors), self.anchor_names)
        item_ids = tables.look_up(owner, "items", to_numpy(items), self.item_names)
        check_lengths(owner, anchors=len(anchor_ids), items=len(item_ids))
        check_range(owner, "anchors", anchor_ids, self.n_anchors, "anchors")
        check_range(owner, "items", item_ids, self.n_items, "items")
        added = Positives.from_pairs(anchor_ids, item_ids, self.n_anchors, self.n_items)
        ignore = np.full(len(added), IGNORE, np.int8)
        return self.union(Positives(added.indptr, added.indices, self.n_items, filter=added.filter, relation=ignore))

    # ---- keeping ----------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a folder of plain .npy arrays, a JSON header and the names; it appears whole or not at all."""
        parts = ("indptr", "indices", "filter", "relation")
        arrays = {name: getattr(self, name) for name in parts if getattr(self, name) is not None}
        names = {"anchor_names": self.anchor_names, "item_names": self.item_names}
        for name, vocabulary in names.items():
            if vocabulary is not None:
                arrays |= vocabulary.arrays(name)
        storage.save_folder(path, "positives", {"n_items": self.n_items, "duplicates": self.duplicates}, arrays)

    @classmethod
    def load(cls, path: str | Path, *, mmap: bool = True) -> Positives:
        """Read what `save` wrote, memory-mapped unless `mmap=False`: pages come in as draws touch them."""
        owner, numbers, needed = "Positives.load", ("n_items", "duplicates"), ("indptr", "indices", "filter")
        header, arrays = storage.load_folder(owner, path, "positives", mmap=mmap, numbers=numbers, needed=needed)
        rows.check_sound(owner, arrays, header["n_items"])
        return cls(
            arrays["indptr"],
            arrays["indices"],
            header["n_items"],
            filter=arrays["filter"],
            relation=arrays.get("relation"),
            duplicates=header["duplicates"],
            anchor_names=Vocabulary.from_arrays(arrays, "anchor_names"),
            item_names=Vocabulary.from_arrays(arrays, "item_names"),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrive read-only in a worker: pickles and deep copies of arrays forget that they were."""
        arrays = {name: rows.frozen(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        self.__dict__.update(state | arrays)

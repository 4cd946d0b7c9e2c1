"""Positives: the known pairs. Built once, sorted, and the only code that excludes."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay import _interactions as interactions
from naysay import _rows as rows
from naysay import files, tables
from naysay.arrays import to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    check_bool,
    check_kind,
    check_lengths,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.rng import key_from, rng_for
from naysay.vocabulary import (
    Vocabulary,
    arrays_of_names,
    ids_of_names,
    joined_names,
    shown_extras,
    unused_ids,
    warn_of_gaps,
)

__all__ = ["Positives", "Split"]
POSITIVE, IGNORE = 1, 2
Names = Vocabulary | bool | None  # True makes a vocabulary, also of whole numbers
_ARRAYS, _NAMES = ("indptr", "indices", "filter", "relation"), ("anchor_names", "item_names")
_NUMBERS = ("n_items", "duplicates", "unused_items")
Ids = NDArray[np.int64]
_MANY = 1 << 27  # rows that cost a gigabyte
_MOST_ITEMS = (1 << 62) - 1
_TO_NUMBER = {
    "anchors": "anchor_names=True for a vocabulary of those that occur",
    "items": "item_names=True for a vocabulary of those that occur",
}
_RELATIONS = {"positive": POSITIVE, "ignore": IGNORE, "any": 0}


@final
@public
class Positives:
    """Known pairs of (anchor, item).

    Make one with `from_pairs`, `from_table`, `from_parquet` or another of the methods called `from_...`, or `load`,
    which check and sort; the constructor takes sorted rows without duplicates as they are. Ids are in [0, n_anchors)
    and [0, n_items). Memory: 5 bytes per pair (9 from 2^31 items on) and 8 per anchor; one byte per pair more if some
    pairs are ignored.

    If n_items is not given, `unused_items` is the number of ids below the largest that are in no pair; a pool of all
    items can draw them. A NaysayWarning is issued if there are at least 100, and more than a tenth of all ids.

    Args:
        indptr: (n_anchors + 1,) int64, the start of each row.
        indices: (pairs,) int32, or int64 from 2^31 items on: the items of each row, ascending and distinct.
        n_items: The number of items.
        filter: (pairs,) one byte per pair that settles most membership tests; computed by default.
        relation: (pairs,) int8, 1 positive and 2 ignore, which is excluded like a positive; None if all are positive.
        duplicates: How many of the given pairs were repeats; a union has the sum.
        anchor_names: The vocabulary of anchors, if they have names.
        item_names: The vocabulary of items, if they have names.

    Examples:
        >>> known = Positives.from_pairs([0, 0, 1], [4, 2, 4], n_items=6)
        >>> known.contains([0, 0, 1], [2, 3, 4]).tolist()
        [True, False, True]
    """

    _mapped: tuple[str, tuple[Any, ...]] | None = None  # the folder that it was mapped from, as `files.stamped`

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
        self.indptr, self.indices = rows.frozen(indptr), rows.frozen(indices)
        self.n_anchors, self.n_items = len(indptr) - 1, n_items
        self.relation = None if relation is None else rows.frozen(relation)
        self.duplicates, self.unused_items = duplicates, 0
        self.anchor_names, self.item_names = anchor_names, item_names
        self.filter = rows.frozen(rows.filter_of(indptr, indices) if filter is None else filter)

    @classmethod
    def from_pairs(
        cls,
        anchors: ArrayLike,
        items: ArrayLike,
        n_anchors: int | None = None,
        n_items: int | None = None,
        *,
        anchor_names: Names = None,
        item_names: Names = None,
    ) -> Positives:
        """From two arrays of equal length, in any order; duplicates are merged. O(pairs + n_anchors), and sorting rows.

        Args:
            anchors: (n,) ids or strings.
            items: (n,) ids or strings.
            n_anchors: By default the number of names, or the largest id plus one.
            n_items: The same for items.
            anchor_names: The vocabulary of the strings, so that splits can share one; by default a new one. True makes
                one of whole numbers, too, which numbers those that occur: `known.anchor_names.ids(given)`.
            item_names: The same for items.
        """
        return cls._of_pairs(anchors, items, n_anchors, n_items, anchor_names, item_names)

    @classmethod
    def from_table(
        cls,
        table: Any,
        anchors: str | None = None,
        items: str | None = None,
        *,
        times: str | None = None,
        before: Any = None,
        n_anchors: int | None = None,
        n_items: int | None = None,
        anchor_names: Names = None,
        item_names: Names = None,
    ) -> Positives:
        """From two named columns of a table: pandas (2.2 or newer), Polars, pyarrow, DuckDB, or a `datasets` data set.

        Args:
            table: Anything with `__arrow_c_stream__`, or one split of a data set. Collect a lazy frame first.
            anchors: The column of anchors: whole numbers or strings, without missing values.
            items: The column of items, the same.
            times: The column of times: numbers, dates or times. Only needed for `before`.
            before: If given, only rows with an earlier time are known. A number, a date, a time, or text such as
                "2024-05-01".
            n_anchors: As in `from_pairs`.
            n_items: As in `from_pairs`.
            anchor_names: The vocabulary of another split, of which the column has names, also as whole numbers; True
                makes one. By default strings get a new one, and whole numbers are ids.
            item_names: The same for items; True is for raw ids with gaps.
        """
        if (times is None) != (before is None):
            missing, given = ("times", "before") if times is None else ("before", "times")
            raise_invalid(missing, f"given along with `{given}`", None)
        check_names(anchor_names=anchor_names, item_names=item_names)
        wanted = {"anchors": anchors, "items": items} | ({} if times is None else {"times": times})
        columns = tables.columns(table, **wanted)
        if before is not None:
            columns = interactions.rows_of(columns, interactions.earlier(columns["times"], before))
        return cls._of_columns(columns, n_anchors, n_items, anchor_names, item_names)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        anchors: str | None = None,
        items: str | None = None,
        *,
        n_anchors: int | None = None,
        n_items: int | None = None,
        anchor_names: Names = None,
        item_names: Names = None,
    ) -> Positives:
        """From two named columns of Parquet: a file, a folder, a glob or a URL. Other columns are not read."""
        table = tables.read_parquet(path, anchors=anchors, items=items)
        columns = tables.columns(table, anchors=anchors, items=items)
        return cls._of_columns(columns, n_anchors, n_items, anchor_names, item_names)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        anchors: str | None = None,
        items: str | None = None,
        *,
        delimiter: str = ",",
        n_anchors: int | None = None,
        n_items: int | None = None,
        anchor_names: Names = None,
        item_names: Names = None,
    ) -> Positives:
        """From two named columns of a CSV file with a header line; a column with a vocabulary is read as names."""
        text = [name for name, names in ((anchors, anchor_names), (items, item_names)) if names is not None]
        table = tables.read_csv(path, delimiter, text, anchors=anchors, items=items)
        columns = tables.columns(table, anchors=anchors, items=items)
        return cls._of_columns(columns, n_anchors, n_items, anchor_names, item_names)

    @classmethod
    def from_recbole(
        cls,
        path: str | Path,
        *,
        liked: float | None = None,
        before: Any = None,
        anchor_names: Vocabulary | bool = True,
        item_names: Vocabulary | bool = True,
    ) -> Positives:
        """From an atomic file of RecBole: tabs, and headings such as user_id:token.

        Ids of RecBole are tokens, also where they look like numbers. So anchors and items are numbered in the order of
        their first appearance, and `anchor_names` and `item_names` have the tokens.

        Args:
            path: The file that ends in .inter, or the folder NAME with the file NAME.inter.
            liked: If given, only rows with a rating of at least this are known.
            before: If given, only rows with an earlier timestamp are known.
            anchor_names: The vocabulary of another split, or True for a new one; False keeps whole numbers as they are.
            item_names: The same for items.
        """
        file = files.as_path("path", path)
        file = file / f"{file.name}.inter" if file.is_dir() else file
        if file.suffix.lower() != ".inter":
            raise_invalid("path", "a file that ends in .inter, or its folder", repr(str(path)))
        tokens = [name for name, names in (("user", anchor_names), ("item", item_names)) if names is not False]
        found, _ = interactions.read_interaction_file("path", file, tokens)
        if liked is not None:
            found = interactions.liked_rows(found, check_number("liked", liked, finite=True))
        if before is not None:
            if "time" not in found:
                raise_invalid("before", "left out for a table without a column of times", shown(before))
            found = interactions.rows_of(found, interactions.earlier(found["time"], before))
        return cls._of_pairs(found["user"], found["item"], None, None, anchor_names or None, item_names or None)

    @classmethod
    def from_csr(cls, indptr: ArrayLike, indices: ArrayLike, n_items: int | None = None) -> Positives:
        """From CSR arrays. Rows need not be sorted; duplicates are merged."""
        starts, items, size = _csr_rows(indptr, indices, n_items)
        anchors = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        advice = "number those that occur from 0" if n_items is None else ""
        return cls._of_ids(anchors, items, len(starts) - 1, size, advice=advice)

    @classmethod
    def from_scipy(cls, matrix: Any) -> Positives:
        """From the stored non-zeros of a scipy.sparse matrix, anchors x items. Repeats are merged, never summed."""
        anchors, items, (n_anchors, n_items) = _sparse_pairs(matrix)
        return cls._of_ids(anchors, items, n_anchors, n_items)

    @classmethod
    def _of_pairs(
        cls,
        anchors: Any,
        items: Any,
        n_anchors: int | None,
        n_items: int | None,
        anchor_names: Names,
        item_names: Names,
    ) -> Positives:
        """From ids or names, which are checked."""
        check_names(anchor_names=anchor_names, item_names=item_names)
        anchor_ids, known_anchors = tables.encode("anchors", to_numpy(anchors), anchor_names)
        item_ids, known_items = tables.encode("items", to_numpy(items), item_names)
        check_lengths(anchors=len(anchor_ids), items=len(item_ids))
        n_rows = _size_of("n_anchors", "anchors", n_anchors, anchor_ids, known_anchors)
        size = _size_of("n_items", "items", n_items, item_ids, known_items)
        advice = _TO_NUMBER["items"] if n_items is None and known_items is None else ""
        built = cls._of_ids(anchor_ids, item_ids, n_rows, size, advice=advice)
        built.anchor_names, built.item_names = known_anchors, known_items
        return built

    @classmethod
    def _of_columns(
        cls, columns: dict[str, Any], n_anchors: int | None, n_items: int | None, anchor_names: Names, item_names: Names
    ) -> Positives:
        """From columns of a table, in which whole numbers are names if there is a vocabulary."""
        for parameter, names in (("anchors", anchor_names), ("items", item_names)):
            if isinstance(names, Vocabulary) and not tables.is_text(columns[parameter]):
                columns[parameter] = ids_of_names(names, parameter, columns[parameter])
        return cls._of_pairs(columns["anchors"], columns["items"], n_anchors, n_items, anchor_names, item_names)

    @classmethod
    def _of_ids(
        cls, anchors: NDArray[Any], items: NDArray[Any], n_anchors: int, n_items: int, *, advice: str = ""
    ) -> Positives:
        """From ids below the sizes. With `advice`, unused items are counted, and warned of if they are many."""
        known = rows.sorted_rows(anchors, items, n_anchors, n_items)
        built = cls(known.indptr, known.indices, n_items, duplicates=len(items) - len(known.indices))
        if advice:
            built.unused_items = warn_of_gaps("n_items", "item", n_items, built.indices, advice)
        return built

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

        Args:
            sources: (n,) the first node of each edge, as in `from_edges(*edge_index)`; or (n, 2) edges.
            targets: (n,) the second node of each edge; None with (n, 2) edges.
            n_nodes: By default the largest id plus one.
            directed: Whether an edge counts in one direction only.
            self_pairs: Whether a node may be a negative of itself; if not, (v, v) is ignored.
        """
        check_bool("self_pairs", self_pairs)
        starts, ends, size = _edge_ends(sources, targets, n_nodes, directed=directed)
        graph = cls.from_pairs(starts, ends, size, size)
        return graph if self_pairs else graph.with_ignored(np.arange(size), np.arange(size))

    def contains(self, anchors: ArrayLike, items: ArrayLike, *, relation: str = "positive") -> NDArray[np.bool_]:
        """Whether each pair is known, in the shape of `items`. An item of -1 is never known.

        Args:
            anchors: (B,) ids, or names if there is a vocabulary.
            items: (B,) or (B, K) ids, or names if there is a vocabulary.
            relation: "positive", "ignore", or "any" of the two, which is what a pool excludes.
        """
        check_one_of("relation", relation, tuple(_RELATIONS))
        row, item = aligned("items", anchors, items, self.n_anchors, self.anchor_names, self.item_names)
        check_range("items", item, self.n_items, "items", least=-1)
        positions = rows.positions(self.indptr, self.indices, self.filter, row, item)
        known = positions >= 0
        if relation != "any" and self.relation is not None:
            known &= self.relation[positions] == _RELATIONS[relation]
        elif relation == "ignore":
            known[...] = False
        return known

    def count(self, anchors: ArrayLike | None = None, *, relation: str = "positive") -> NDArray[np.int64]:
        """The number of known items of each anchor (B,), ids or names; of all anchors by default."""
        check_one_of("relation", relation, tuple(_RELATIONS))
        starts, stops = self.indptr[:-1], self.indptr[1:]
        if anchors is not None:
            chosen = tables.look_up("anchors", to_numpy(anchors), self.anchor_names)
            check_range("anchors", chosen, self.n_anchors, "anchors")
            starts, stops = starts[chosen], stops[chosen]
        if relation != "any" and self.relation is not None:
            return rows.counts_of_kind(self.relation, starts, stops, _RELATIONS[relation])
        return np.asarray(stops - starts) * (relation != "ignore")

    def item_counts(self) -> NDArray[np.int64]:
        """(n_items,) the number of anchors that each item is a positive of: its popularity."""
        ids = self.indices if self.relation is None else self.indices[self.relation == POSITIVE]
        return np.bincount(ids, minlength=self.n_items)

    def nth_negative(self, anchors: ArrayLike, ranks: ArrayLike) -> NDArray[np.int64]:
        """The rank-th item, from 0 in ascending order, that is not known of the anchor, or -1: O(log of the row)."""
        row, wanted = aligned("ranks", anchors, ranks, self.n_anchors, self.anchor_names)
        if wanted.size and wanted.min() < 0:
            raise_invalid("ranks", "at least 0", int(wanted.min()))
        return rows.nth_negatives(self.indptr, self.indices, self.n_items, row, wanted)

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All known pairs as (anchors, items), in order."""
        return np.repeat(np.arange(self.n_anchors), np.diff(self.indptr)), self.indices.astype(np.int64)

    @property
    def _rows(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The known ids of each anchor as compiled loops take them."""
        return self.indptr, self.indices, self.filter

    @property
    def _ignored(self) -> NDArray[np.bool_]:
        """(pairs,) which of them are ignored."""
        return np.zeros(len(self), np.bool_) if self.relation is None else self.relation == IGNORE

    @property
    def nbytes(self) -> int:
        """The memory that the arrays take; names not counted."""
        return sum(getattr(self, name).nbytes for name in _ARRAYS if getattr(self, name) is not None)

    def __len__(self) -> int:
        """The number of known pairs, ignored ones included."""
        return len(self.indices)

    def __repr__(self) -> str:
        sizes = f"{len(self):,} pairs, {self.n_anchors:,} anchors x {self.n_items:,} items"
        ignored = "" if self.relation is None else ", some ignored"
        return f"Positives({sizes}{ignored}{shown_extras(self, ('duplicates', 'unused_items', *_NAMES))})"

    def union(self, other: Positives) -> Positives:
        """All pairs of both, also of new anchors and items. A pair that is positive in one is positive.

        The ids of these pairs stay as they are. If both have names, the new names of `other` follow, and its pairs get
        the ids of their names here. Without names, equal ids are the same anchor or item.
        """
        check_kind("other", other, Positives, "a Positives")
        anchor_names, anchor_ids = joined_names(self.anchor_names, other.anchor_names)
        item_names, item_ids = joined_names(self.item_names, other.item_names)
        n_anchors = _joined_size("anchor", self.n_anchors, other.n_anchors, anchor_names)
        n_items = _joined_size("item", self.n_items, other.n_items, item_names)
        their_anchors, their_items = other.pairs()
        their_anchors = their_anchors if anchor_ids is None else anchor_ids[their_anchors]
        their_items = their_items if item_ids is None else item_ids[their_items]
        anchors, items = (np.concatenate(both) for both in zip(self.pairs(), (their_anchors, their_items), strict=True))
        ignored = np.concatenate([self._ignored, other._ignored])
        both = rows.sorted_rows(anchors, items, n_anchors, n_items, ignored if ignored.any() else None)
        union = Positives(
            both.indptr,
            both.indices,
            n_items,
            relation=both.relation,
            duplicates=self.duplicates + other.duplicates,
            anchor_names=anchor_names,
            item_names=item_names,
        )
        if max(self, other, key=lambda known: known.n_items).unused_items:  # the number of items was not given
            union.unused_items = unused_ids(n_items, union.indices)
        return union

    def with_ignored(self, anchors: ArrayLike, items: ArrayLike) -> Positives:
        """The same with pairs (ids or names) that are neither positive nor negative: never drawn, not counted."""
        anchor_ids = tables.look_up("anchors", to_numpy(anchors), self.anchor_names)
        item_ids = tables.look_up("items", to_numpy(items), self.item_names)
        added = Positives._of_pairs(anchor_ids, item_ids, self.n_anchors, self.n_items, None, None)
        ignore = np.full(len(added), IGNORE, np.int8)
        return self.union(Positives(added.indptr, added.indices, self.n_items, relation=ignore))

    def split(self, share: float = 0.1, *, rng: np.random.Generator, keep_one: bool = False) -> Split:
        """Hide a share of the positives, each with the same probability, whatever else its anchor has.

        Of c positives of an anchor floor(c share + u) are hidden, u uniform in [0, 1): c share on average. So hidden
        positives represent all known ones, and an anchor with one positive may lose it. O(pairs log pairs).

        Args:
            share: The share to hide, above 0 and below 1.
            rng: The generator of the choice.
            keep_one: Whether every anchor keeps at least one positive, for detectors that need it. Hidden positives
                then represent anchors with several only, which are often easier, and `hidden_positives` promises too
                much.

        Returns:
            (kept, hidden), with the same sizes and names. Ignored pairs are kept.

        Examples:
            >>> known = Positives.from_pairs([0, 0, 0, 0, 1], [3, 5, 6, 8, 3])
            >>> kept, hidden = known.split(0.5, rng=np.random.default_rng(0))
            >>> len(kept), len(hidden), hidden.count().tolist()
            (2, 3, [2, 1])
        """
        part = check_number("share", share, above=0, below=1)
        generator = rng_for(int(key_from(rng)))
        counts = self.count()
        most = np.maximum(counts - 1, 0) if check_bool("keep_one", keep_one) else counts
        n_hidden = np.minimum(np.floor(counts * part + generator.random(len(counts))), most)
        order = generator.random(len(self))
        if self.relation is not None:
            order[self.relation != POSITIVE] = 1.0  # above any random number: ignored pairs come last, and are kept
        anchors = np.repeat(np.arange(self.n_anchors), np.diff(self.indptr))
        ranked = np.lexsort((order, anchors))
        hidden = np.zeros(len(self), bool)
        hidden[ranked] = np.arange(len(self)) - self.indptr[anchors] < n_hidden[anchors]
        return Split(self._part(~hidden, anchors), self._part(hidden, anchors))

    def _part(self, chosen: NDArray[np.bool_], anchors: NDArray[np.int64]) -> Positives:
        """The chosen pairs, with the same sizes and names."""
        relation = None if self.relation is None else self.relation[chosen]
        return Positives(
            rows.offsets(np.bincount(anchors[chosen], minlength=self.n_anchors)),
            self.indices[chosen],
            self.n_items,
            relation=None if relation is None or (relation == POSITIVE).all() else relation,
            anchor_names=self.anchor_names,
            item_names=self.item_names,
        )

    def save(self, path: str | Path) -> None:
        """Write a folder of .npy arrays, a JSON header and the names, atomically."""
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        header = {name: getattr(self, name) for name in _NUMBERS}
        files.save_folder(path, "positives", header, arrays | arrays_of_names(self, _NAMES))

    def shared(self, path: str | Path) -> Positives:
        """Save to a folder and map it: the same pairs, which all processes of a machine share.

        A mapped Positives, also inside a sampler, is sent to a spawned process (a worker of a DataLoader,
        torch.multiprocessing) as a path, so that the pairs are in memory once. Forked processes share all memory
        anyway. `pickle` itself writes the pairs.

        Args:
            path: A new folder, or one that `save` wrote. In /dev/shm it is memory, elsewhere the cache of the disk.
        """
        self.save(path)
        return Positives.load(path)

    @classmethod
    def load(cls, path: str | Path, *, mmap: bool = True) -> Positives:
        """Read what `save` wrote, memory-mapped unless `mmap=False`, and check every id in one pass."""
        return cls._loaded(path, mmap=mmap, check=True)

    @classmethod
    def _loaded(cls, path: str | Path, *, mmap: bool, check: bool) -> Positives:
        header, arrays = files.load_folder(path, "positives", mmap=mmap, numbers=_NUMBERS[:2], needed=_ARRAYS[:3])
        if check:
            rows.check_sound(arrays, header["n_items"])
        parts: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        names: dict[str, Any] = {name: Vocabulary.from_arrays(arrays, name) for name in _NAMES}
        loaded = cls(**parts, **names, **{name: header[name] for name in _NUMBERS[:2]})
        loaded.unused_items = header.get("unused_items", 0)  # which folders of 0.1 do not have
        if mmap:
            loaded._mapped = files.stamped(path)
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_mapped"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(rows.refrozen(state))


def _by_path(known: Positives) -> Any:
    """How multiprocessing sends Positives: mapped ones by their path, so that all processes share one copy."""
    if known._mapped is None or files.stamped(known._mapped[0]) != known._mapped:
        return known.__reduce_ex__(2)
    return _mapped_again, known._mapped


def _mapped_again(path: str, stamp: tuple[Any, ...]) -> Positives:
    if files.stamped(path) != (path, stamp):
        got = f"{path!r}, which is gone or was replaced"
        raise_invalid("path", "the folder that was mapped", got, "Load it again.")
    return Positives._loaded(path, mmap=True, check=False)


ForkingPickler.register(Positives, _by_path)  # of spawned workers and queues; a pickle in a file has the arrays


def _joined_size(kind: str, one: int, other: int, names: Vocabulary | None) -> int:
    """The number of anchors or items of a union. Raises if some have an id but no name, where others have names."""
    if names is None:
        return max(one, other)
    if max(one, other) > len(names):
        rule = f"of at most {len(names)} {kind}s, as many as have a name"
        raise_invalid("other", rule, f"{max(one, other)} in all", f"Pass {kind} names to its maker, too.")
    return len(names)


class Split(NamedTuple):
    """Known pairs in two parts: `Positives.split` makes it.

    Attributes:
        kept: The pairs that stay known, ignored pairs included: fit, train and exclude with these.
        hidden: The positives to treat as unknown.
    """

    kept: Positives
    hidden: Positives


# ---- Arguments, checked and as arrays --------------------------------------------------------------------------------


def check_names(**given: object) -> None:
    """Raise if one of the named parameters is not a vocabulary, True or None."""
    for parameter, names in given.items():
        if names is not None and not isinstance(names, Vocabulary | bool):
            advice = "Pass Vocabulary(names), or True to make one."
            raise_invalid(parameter, "a Vocabulary", type(names).__name__, advice)


def _size_of(name: str, of: str, given: int | None, ids: NDArray[Any], names: Vocabulary | None = None) -> int:
    """The number of anchors, items or nodes: as given, by the vocabulary, or the largest id plus one; no id above."""
    if given is None and names is None:
        if ids.size and ids.min() < 0:
            raise_invalid(of, "at least 0", first_bad(ids, ids < 0))
        size = (int(ids.max()) if ids.size else -1) + 1
        if size > _MANY and size > 100 * ids.size:  # e.g. hashes: most rows would be empty
            advice = f"Pass {name}, or {_TO_NUMBER.get(of, 'number those that occur from 0')}."
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


def _csr_rows(indptr: ArrayLike, indices: ArrayLike, n_items: int | None) -> tuple[Ids, NDArray[Any], int]:
    """Row starts that rise from 0 to the number of ids, the ids, and the number of items; neither is written to."""
    starts = whole_numbers("indptr", to_numpy(indptr)).astype(np.int64)
    ids = whole_numbers("indices", to_numpy(indices))
    rule, falls = f"a rising sequence from 0 to the {len(ids)} indices", np.diff(starts) < 0
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(ids):
        got = f"{len(starts)} values, {starts[:1].tolist()} to {starts[-1:].tolist()}"
        raise_invalid("indptr", rule, got)
    if falls.any():
        raise_invalid("indptr", rule, f"a decrease to {first_bad(starts[1:], falls)}")
    return starts, ids, _size_of("n_items", "indices", n_items, ids)


def _sparse_pairs(matrix: Any) -> tuple[NDArray[Any], NDArray[Any], tuple[int, int]]:
    """(anchors, items, shape) of the entries of a scipy.sparse matrix, explicit zeros left out."""
    if not hasattr(matrix, "tocsr"):
        raise_invalid("matrix", "a scipy.sparse matrix", type(matrix).__name__)
    if len(matrix.shape) != 2:
        raise_invalid("matrix", "of two dimensions, anchors x items", f"shape {matrix.shape}")
    entries = matrix.tocoo()  # which keeps repeated entries
    kept = entries.data != 0
    n_anchors, n_items = map(int, matrix.shape)
    return entries.row[kept], entries.col[kept], (n_anchors, n_items)


def _edge_ends(
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
    size = max(_size_of("n_nodes", "sources", n_nodes, starts), _size_of("n_nodes", "targets", n_nodes, ends))
    if n_nodes is None:
        advice = "number those that occur from 0"
        warn_of_gaps("n_nodes", "node", size, np.concatenate([starts, ends]), advice)
    if directed:
        return starts, ends, size
    return np.concatenate([starts, ends]), np.concatenate([ends, starts]), size

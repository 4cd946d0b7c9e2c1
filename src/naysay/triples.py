"""Triples: known (head, relation, tail), looked up from any side. The exclusion code of knowledge graphs.

For a side, each pair of the other two parts that occurs is a row of known ids: (head, relation) has tails, (relation,
tail) has heads, (head, tail) has relations. The rows of the sides in use are one `Positives`, so a draw needs neither a
hash of triples nor a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay import files, tables
from naysay._rows import frozen, offsets, raise_damaged
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_whole, first_bad, public, raise_invalid, whole_numbers
from naysay.kernels import corrupt
from naysay.kernels.threads import draw_in_rows
from naysay.positives import Positives, check_names
from naysay.types import HEAD, RELATION, SIDES, TAIL
from naysay.vocabulary import Vocabulary, arrays_of_names, joined_names, shown_extras, unused_ids, warn_of_gaps

__all__ = ["Triples"]
_NUMBERS = ("n_entities", "n_relations", "duplicates", "unused_entities")
_NAMES = ("entity_names", "relation_names")
Ids = NDArray[np.int64]
Named = tuple[Ids, Vocabulary | None, Vocabulary | None]  # triples, and the names of entities and relations
# For each side: the part that a row lists, and the two parts that make its key.
_KEY_PARTS = {HEAD: (TAIL, RELATION), RELATION: (HEAD, TAIL), TAIL: (HEAD, RELATION)}


@final
@public
class Triples:
    """Known triples of head, relation and tail. Duplicates are merged, and counted in `duplicates`.

    If n_entities is not given, `unused_entities` is the number of ids below the largest that are in no triple;
    corruption can draw them. A NaysayWarning is issued if there are at least 100, and more than a tenth of all ids.

    Args:
        triples: (n, 3) head, relation, tail: ids, or names, which get vocabularies.
        n_entities: The number of entities, by default the number of names, or the largest id plus one.
        n_relations: The same for relations.
        entity_names: The vocabulary of the names of heads and tails, to share between splits; by default a new one.
            True makes one of whole numbers, too.
        relation_names: The same for relations.

    Examples:
        >>> known = Triples([["ann", "knows", "bob"], ["ann", "knows", "eve"]])
        >>> known.contains(known.ids([["ann", "knows", "eve"], ["bob", "knows", "eve"]])).tolist()
        [True, False]
    """

    def __init__(
        self,
        triples: Any,
        n_entities: int | None = None,
        n_relations: int | None = None,
        *,
        entity_names: Vocabulary | bool | None = None,
        relation_names: Vocabulary | bool | None = None,
    ) -> None:
        """Check, sort and merge: O(n log n)."""
        self._keep(_named_triples(triples, entity_names, relation_names), n_entities, n_relations)

    def _keep(self, named: Named, n_entities: int | None, n_relations: int | None) -> Triples:
        """The constructor, for triples that are ids already."""
        given, self.entity_names, self.relation_names = named
        self.n_entities, self.n_relations = _triple_sizes(named, n_entities, n_relations)
        self.unused_entities = 0
        if n_entities is None and self.entity_names is None:
            advice = "entity_names=True for a vocabulary of those that occur"
            found = warn_of_gaps("n_entities", "entity", self.n_entities, given[:, [HEAD, TAIL]], advice)
            self.unused_entities = found
        self.array: NDArray[np.int64] = _sorted_distinct(given)
        self.duplicates = len(given) - len(self.array)
        self._indexes: dict[tuple[int, ...], SideIndex] = {}
        return self

    @classmethod
    def from_table(
        cls,
        table: Any,
        heads: str = "head",
        relations: str = "relation",
        tails: str = "tail",
        *,
        n_entities: int | None = None,
        n_relations: int | None = None,
        entity_names: Vocabulary | bool | None = None,
        relation_names: Vocabulary | bool | None = None,
    ) -> Triples:
        """From three named columns of a table that `Positives.from_table` takes, of ids or of names."""
        named = _named_columns(table, (heads, relations, tails), entity_names, relation_names)
        return cls.__new__(cls)._keep(named, n_entities, n_relations)

    @classmethod
    def from_tsv(
        cls,
        path: str | Path,
        *,
        delimiter: str = "\t",
        entity_names: Vocabulary | None = None,
        relation_names: Vocabulary | None = None,
    ) -> Triples:
        """From a text file of lines "head, relation, tail" without a header, as FB15k-237 and WN18RR have them.

        All parts are names, also those that look like numbers: WN18RR has entities like 00260881.
        """
        table = tables.read_lines(path, delimiter, SIDES)
        return cls.__new__(cls)._keep(_named_columns(table, SIDES, entity_names, relation_names), None, None)

    def ids(self, names: Any) -> NDArray[np.int64]:
        """(n, 3) the ids of triples given by names. Raises NaysayError if a name is unknown."""
        if self.entity_names is None or self.relation_names is None:
            raise_invalid("names", "of triples that were made from names", "triples that were made from ids")
        return _named_triples(names, self.entity_names, self.relation_names)[0]

    def names(self, ids: ArrayLike) -> list[tuple[str, str, str]]:
        """The names of triples (n, 3)."""
        if self.entity_names is None or self.relation_names is None:
            raise_invalid("ids", "of triples that were made from names", "triples that were made from ids")
        array = _triple_array(ids)
        check_parts(array, self.n_entities, self.n_relations)
        heads, tails = (self.entity_names.names(array[:, side]) for side in (HEAD, TAIL))
        return list(zip(heads, self.relation_names.names(array[:, RELATION]), tails, strict=True))

    def contains(self, triples: ArrayLike) -> NDArray[np.bool_]:
        """(B,) whether each triple of (B, 3) is known; ids, or names if there are vocabularies."""
        array = _triple_array(triples) if self.entity_names is None else self.ids(triples)
        check_parts(array, self.n_entities, self.n_relations)
        index = self.index((TAIL,))
        return index.known.contains(index.rows(array)[:, 0], array[:, TAIL])

    def index(self, sides: tuple[int, ...]) -> SideIndex:
        """The known ids by row for the given sides; built at the first call."""
        if sides not in self._indexes:
            self._indexes[sides] = SideIndex(self, sides)
        return self._indexes[sides]

    def union(self, *others: Triples | ArrayLike) -> Triples:
        """All triples of this and the others, e.g. of all splits, to filter against.

        The ids of this one are kept; names that only the others have come last.
        """
        arrays, sizes, counted = [self.array], [(self.n_entities, self.n_relations)], self.unused_entities
        entities, relations = self.entity_names, self.relation_names
        for other in others:
            if isinstance(other, Triples):
                named = (other.array, other.entity_names, other.relation_names)
                sizes.append((other.n_entities, other.n_relations))
                counted += other.unused_entities
            else:
                named = _named_triples(other, None, None)
                sizes.append(_triple_sizes(named, None, None))
            entities, entity_ids = joined_names(entities, named[1])
            relations, relation_ids = joined_names(relations, named[2])
            new_ids = (entity_ids, relation_ids, entity_ids)
            columns = [part if new is None else new[part] for part, new in zip(named[0].T, new_ids, strict=True)]
            arrays.append(np.stack(columns, axis=1))
            sizes.append((0 if entities is None else len(entities), 0 if relations is None else len(relations)))
        n_entities, n_relations = (max(size[part] for size in sizes) for part in (0, 1))
        union = Triples.__new__(Triples)._keep((np.concatenate(arrays), entities, relations), n_entities, n_relations)
        if counted:
            union.unused_entities = unused_ids(n_entities, union.array[:, [HEAD, TAIL]])
        return union

    def _resized(self, n_entities: int, n_relations: int) -> Triples:
        """The same triples of other numbers of entities and relations."""
        if (n_entities, n_relations) == (self.n_entities, self.n_relations):
            return self
        named = (self.array, self.entity_names, self.relation_names)
        return Triples.__new__(Triples)._keep(named, n_entities, n_relations)

    @cached_property
    def head_chance(self) -> NDArray[np.float64]:
        """(n_relations,) the Bernoulli chance to corrupt the head: tph / (tph + hpt), 0.5 if a relation has no triple.

        tph is the mean number of tails of a (head, relation), hpt that of heads of a (relation, tail). Wang et al.
        Knowledge Graph Embedding by Translating on Hyperplanes. AAAI 2014.
        """
        counts = np.bincount(self.array[:, RELATION], minlength=self.n_relations)
        index = self.index((HEAD, TAIL))
        heads_of = np.bincount(index.keys[0] % self.n_relations, minlength=self.n_relations)  # distinct (r, t)
        tails_of = np.bincount(index.keys[1] % self.n_relations, minlength=self.n_relations)  # distinct (h, r)
        tails_per_head = counts / np.maximum(tails_of, 1)
        heads_per_tail = counts / np.maximum(heads_of, 1)
        both = tails_per_head + heads_per_tail
        return np.where(counts > 0, tails_per_head / np.where(counts > 0, both, 1.0), 0.5)

    def __len__(self) -> int:
        """The number of distinct triples."""
        return len(self.array)

    def __repr__(self) -> str:
        """The sizes, and what else there is."""
        sizes = f"{len(self):,} triples, {self.n_entities:,} entities, {self.n_relations:,} relations"
        return f"Triples({sizes}{shown_extras(self, (*_NUMBERS[2:], *_NAMES))})"

    def save(self, path: str | Path) -> None:
        """Write a folder of .npy arrays, a JSON header and the names, atomically."""
        header = {name: getattr(self, name) for name in _NUMBERS}
        files.save_folder(path, "triples", header, {"triples": self.array} | arrays_of_names(self, _NAMES))

    @classmethod
    def load(cls, path: str | Path, *, mmap: bool = True) -> Triples:
        """Read what `save` wrote, memory-mapped unless `mmap=False`. Raises NaysayError if the folder is damaged."""
        header, arrays = files.load_folder(path, "triples", mmap=mmap, numbers=_NUMBERS, needed=("triples",))
        _check_sound(arrays["triples"], header["n_entities"], header["n_relations"])
        loaded = cls.__new__(cls)
        vars(loaded).update({name: header[name] for name in _NUMBERS})
        vars(loaded).update({name: Vocabulary.from_arrays(arrays, name) for name in _NAMES})
        loaded.array, loaded._indexes = arrays["triples"], {}
        return loaded


@final
class SideIndex:
    """The known ids of some sides as rows of one Positives. The last row is empty; it is that of every unseen key.

    known   Positives, n_items the larger of entities and relations
    keys    for each side, the sorted keys of its rows; a key ends with the relation, but for the relation's side
    firsts  (sides + 1,) the first row of each side
    search  the same for compiled loops: all keys; where those of some entities start in them, for a short search; and
            for each side the two parts of a key, what the first is multiplied by, where its starts begin, and how many
            bits of an entity they leave out
    """

    def __init__(self, triples: Triples, sides: tuple[int, ...]) -> None:
        """O(n log n) for each side."""
        self.sides = sides
        layout, rows = np.empty((len(sides), 5), np.int64), 0
        found: list[Any] = []
        starts: list[Any] = []
        anchors: list[Any] = []
        for s, side in enumerate(sides):
            major, minor = _KEY_PARTS[side]
            base = triples.n_entities if side == RELATION else triples.n_relations
            keys, place = np.unique(triples.array[:, major] * base + triples.array[:, minor], return_inverse=True)
            shift = max(0, int(triples.n_entities).bit_length() - len(keys).bit_length() - 2)  # at most 8 a key
            counts = np.bincount((keys // base) >> shift, minlength=(triples.n_entities >> shift) + 1)
            layout[s] = (major, minor, base, sum(len(part) for part in starts), shift)
            starts.append(rows + offsets(counts))
            anchors.append(rows + place.reshape(-1))
            found.append(keys)
            rows += len(keys)
        self.firsts = offsets(np.array([len(keys) for keys in found]))
        self.search = (np.concatenate(found), np.concatenate(starts), layout)
        self.keys: list[NDArray[np.int64]] = np.split(self.search[0], self.firsts[1:-1])
        items = np.concatenate([triples.array[:, side] for side in sides])
        n_items = max(triples.n_entities, triples.n_relations)
        self.known = Positives.from_pairs(np.concatenate(anchors), items, rows + 1, n_items)

    def rows(self, triples: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, sides): the row of what is known for each triple's other two parts."""
        rows = np.empty((len(triples), len(self.sides)), np.int64)
        given = frozen(np.ascontiguousarray(triples))  # one array type, so that the loop is compiled once
        draw_in_rows(corrupt.find_rows, len(rows), 16 * rows.size, given, self.search, rows)
        return rows


def _check_sound(triples: NDArray[Any], n_entities: int, n_relations: int) -> None:
    """Raise, after one pass, if saved triples are not valid ids in ascending order, each once."""
    if triples.ndim != 2 or triples.shape[1] != 3 or triples.dtype != np.int64:
        raise_invalid("path", "a folder of triples (n, 3) int64", f"{triples.shape} {triples.dtype}")
    if max(n_entities, n_relations) >= 1 << 31:
        raise_invalid("path", "a folder of fewer than 2^31 entities and relations", max(n_entities, n_relations))
    of = f"ascending triples of {n_entities} entities and {n_relations} relations"
    heads, relations, tails = triples.T
    wrong = (triples < 0).any(axis=1) | (np.maximum(heads, tails) >= n_entities) | (relations >= n_relations)
    before, after = triples[:-1], triples[1:]
    same_head = before[:, HEAD] == after[:, HEAD]
    same_pair = same_head & (before[:, RELATION] == after[:, RELATION])
    falls = before[:, HEAD] > after[:, HEAD]
    falls |= same_head & (before[:, RELATION] > after[:, RELATION])
    falls |= same_pair & (before[:, TAIL] >= after[:, TAIL])
    wrong[1:] |= falls
    raise_damaged(of, np.flatnonzero(wrong))


def _sorted_distinct(triples: NDArray[np.int64]) -> NDArray[np.int64]:
    ordered = triples[np.lexsort(triples.T[::-1])]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.ascontiguousarray(ordered[fresh])


# ---- Arguments, checked ---------------------------------------------------------------------------------------------


def _triple_array(triples: Any) -> Ids:
    """(n, 3) int64: head, relation, tail."""
    array = _three_columns(triples)
    return whole_numbers("triples", array, "(n, 3)").astype(np.int64, copy=False)


def _named_triples(triples: Any, entity_names: tables.Names, relation_names: tables.Names) -> Named:
    """(n, 3) ids or names as ids, and their vocabularies, as `tables.encode` has them."""
    check_names(entity_names=entity_names, relation_names=relation_names)
    array = _three_columns(triples)
    return _named_parts(array[:, HEAD], array[:, RELATION], array[:, TAIL], entity_names, relation_names)


def _named_columns(
    table: Any, columns: Sequence[str], entity_names: tables.Names, relation_names: tables.Names
) -> Named:
    """The same for three named columns of an Arrow table."""
    check_names(entity_names=entity_names, relation_names=relation_names)
    parts = tables.columns(table, **dict(zip(("heads", "relations", "tails"), columns, strict=True)))
    return _named_parts(parts["heads"], parts["relations"], parts["tails"], entity_names, relation_names)


def _named_parts(heads: Any, relations: Any, tails: Any, entity_names: Any, relation_names: Any) -> Named:
    """The same for three arrays, of NumPy or Arrow; heads and tails share a vocabulary, in which heads come first.

    If one of the three has names, entities and relations both get a vocabulary.
    """
    if any(tables.is_text(part) for part in (heads, relations, tails)):
        entity_names = True if entity_names is None else entity_names
        relation_names = True if relation_names is None else relation_names
    if isinstance(entity_names, Vocabulary):
        first, last = (tables.encode("triples", part, entity_names)[0] for part in (heads, tails))
    else:
        both, entity_names = tables.encode("triples", tables.joined(heads, tails), entity_names)
        first, last = np.split(both, 2)
    between, relation_names = tables.encode("triples", relations, relation_names)
    return np.stack((first, between, last), axis=1).astype(np.int64, copy=False), entity_names, relation_names


def _three_columns(triples: Any) -> NDArray[Any]:
    array = as_array("triples", to_numpy(triples))
    if array.ndim == 1 and array.size == 0:  # an empty list
        return np.empty((0, 3), np.int64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise_invalid("triples", "of shape (n, 3): head, relation, tail", f"shape {array.shape}")
    return array


def check_parts(triples: Ids, n_entities: int, n_relations: int) -> None:
    """Raise if parts are outside their ranges, with the first bad triple and how many there are."""
    limits = np.array([n_entities, n_relations, n_entities], np.uint64)
    bad = triples.view(np.uint64) >= limits  # -1 is 2^64 - 1
    if bad.any():
        rule = f"of ids within {n_entities} entities and {n_relations} relations"
        raise_invalid("triples", rule, first_bad(triples, np.asarray(bad.any(axis=1))))


def _triple_sizes(named: Named, n_entities: int | None, n_relations: int | None) -> tuple[int, int]:
    """The numbers of entities and relations, as given, by the names or the largest ids; parts are below them."""
    triples, entity_names, relation_names = named
    if n_entities is None:
        largest = int(triples[:, [HEAD, TAIL]].max(initial=-1))
        n_entities = largest + 1 if entity_names is None else len(entity_names)
    if n_relations is None:
        largest = int(triples[:, RELATION].max(initial=-1))
        n_relations = largest + 1 if relation_names is None else len(relation_names)
    sizes = check_whole("n_entities", n_entities, 0), check_whole("n_relations", n_relations, 0)
    for name, size in zip(("n_entities", "n_relations"), sizes, strict=True):
        if size >= 1 << 31:  # a key is the product of two ids
            raise_invalid(name, "below 2^31", size)
    check_parts(triples, *sizes)
    return sizes

"""Triples: known (head, relation, tail), looked up from any side. The exclusion code of knowledge graphs.

For a side, each pair of the other two parts that occurs is a row of known ids: (head, relation) has tails, (relation,
tail) has heads, (head, tail) has relations. The rows of the sides in use are one `Positives`, so a draw needs neither a
hash of triples nor a mask.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._inputs import check_parts, triple_array, triple_sizes
from naysay._rows import offsets
from naysay.arrays import to_numpy
from naysay.checks import check_range, public, raise_invalid, shown, whole_numbers
from naysay.kernels import corrupt
from naysay.kernels.threads import in_rows
from naysay.positives import Positives
from naysay.types import HEAD, RELATION, TAIL

# For each side: the part that a row lists, and the two parts that make its key.
_KEY_PARTS = {HEAD: (TAIL, RELATION), RELATION: (HEAD, TAIL), TAIL: (HEAD, RELATION)}


@final
@public
class Triples:
    """Known triples of head, relation and tail ids. Duplicates are merged, and counted in `duplicates`.

    Args:
        triples: (n, 3) ids: head, relation, tail.
        n_entities: The number of entities, by default the largest id plus one.
        n_relations: The number of relations, by default the largest id plus one.

    Raises:
        NaysayError: If an id is negative or too large, or the shape is wrong.

    Examples:
        >>> known = Triples([[0, 0, 1], [0, 0, 2]])
        >>> known.contains([[0, 0, 2], [1, 0, 2]]).tolist()
        [True, False]
    """

    def __init__(self, triples: ArrayLike, n_entities: int | None = None, n_relations: int | None = None) -> None:
        """Check, sort and merge: O(n log n)."""
        array = triple_array(triples)
        self.n_entities, self.n_relations = triple_sizes(array, n_entities, n_relations)
        self.array: NDArray[np.int64] = _sorted_distinct(array)
        self.duplicates = len(array) - len(self.array)
        self._indexes: dict[tuple[int, ...], SideIndex] = {}

    def contains(self, triples: ArrayLike) -> NDArray[np.bool_]:
        """(B,) whether each triple of (B, 3) is known."""
        array = triple_array(triples)
        check_parts(array, self.n_entities, self.n_relations)
        index = self.index((TAIL,))
        return index.known.contains(index.rows(array)[:, 0], array[:, TAIL])

    def index(self, sides: tuple[int, ...]) -> SideIndex:
        """The known ids by row for the given sides; built at the first call."""
        if sides not in self._indexes:
            self._indexes[sides] = SideIndex(self, sides)
        return self._indexes[sides]

    def union(self, *others: Triples | ArrayLike) -> Triples:
        """All triples of this and the others, e.g. of all splits, to filter against."""
        parts = [other if isinstance(other, Triples) else Triples(other) for other in others]
        whole = np.concatenate([self.array, *(part.array for part in parts)])
        sizes = [(part.n_entities, part.n_relations) for part in (self, *parts)]
        return Triples(whole, max(size[0] for size in sizes), max(size[1] for size in sizes))

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
        """The sizes."""
        return f"Triples({len(self):,} triples, {self.n_entities:,} entities, {self.n_relations:,} relations)"


@final
class SideIndex:
    """The known ids of some sides as rows of one Positives. The last row is empty; it is that of every unseen key.

    known   Positives, n_items the larger of entities and relations
    keys    for each side, the sorted keys of its rows; a key ends with the relation, but for the relation's side
    firsts  (sides + 1,) the first row of each side
    """

    def __init__(self, triples: Triples, sides: tuple[int, ...]) -> None:
        """O(n log n) for each side."""
        self.sides = sides
        self._bases = [triples.n_entities if side == RELATION else triples.n_relations for side in sides]
        self.keys: list[NDArray[np.int64]] = []
        places: list[NDArray[np.int64]] = []
        for side, base in zip(sides, self._bases, strict=True):
            keys, place = np.unique(_keys(triples.array, side, base), return_inverse=True)
            self.keys.append(keys)
            places.append(place.reshape(-1))
        self.firsts = offsets(np.array([len(keys) for keys in self.keys]))
        anchors = np.concatenate([place + first for place, first in zip(places, self.firsts, strict=False)])
        items = np.concatenate([triples.array[:, side] for side in sides])
        n_items = max(triples.n_entities, triples.n_relations)
        self.known = Positives.from_pairs(anchors, items, int(self.firsts[-1]) + 1, n_items)

    def rows(self, triples: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, sides): the row of what is known for each triple's other two parts."""
        rows = np.empty((len(self.sides), len(triples)), np.int64)
        unseen = int(self.firsts[-1])
        for s, (side, base) in enumerate(zip(self.sides, self._bases, strict=True)):
            wanted = _keys(triples, side, base)
            arguments = (self.keys[s], wanted, int(self.firsts[s]), unseen, rows[s])
            in_rows(corrupt.find_keys, len(triples), 16 * len(triples), *arguments)
        return np.ascontiguousarray(rows.T)


def _sorted_distinct(triples: NDArray[np.int64]) -> NDArray[np.int64]:
    ordered = triples[np.lexsort(triples.T[::-1])]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.ascontiguousarray(ordered[fresh])


def _keys(triples: NDArray[np.int64], side: int, base: int) -> NDArray[np.int64]:
    major, minor = _KEY_PARTS[side]
    return triples[:, major] * base + triples[:, minor]


def candidate_lists(
    parameter: str, given: Any, triples: Triples, side: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """The candidates of a side for each relation, as CSR: None for all entities, "observed", or a list per relation."""
    if given is None:
        return None
    if not isinstance(given, list | tuple | np.ndarray):
        if not isinstance(given, str) or given != "observed":
            raise_invalid(parameter, 'None, "observed", or one array of entities for each relation', shown(given))
        seen = Positives.from_pairs(
            triples.array[:, RELATION], triples.array[:, side], triples.n_relations, triples.n_entities
        )
    else:
        if len(given) != triples.n_relations:
            raise_invalid(parameter, f"of one array for each of the {triples.n_relations} relations", len(given))
        arrays = [whole_numbers(parameter, to_numpy(part)) for part in given]
        entities = np.concatenate([np.empty(0, np.int64), *arrays])
        check_range(parameter, entities, triples.n_entities, "entities")
        relations = np.repeat(np.arange(len(arrays)), [len(part) for part in arrays])
        seen = Positives.from_pairs(relations, entities, triples.n_relations, triples.n_entities)
    return seen.indptr, seen.indices

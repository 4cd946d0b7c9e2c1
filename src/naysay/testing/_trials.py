"""A pool or sampler under test: the queries it gets, how it is called, and how its answers are compared."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, raise_invalid
from naysay.positives import POSITIVE, Positives
from naysay.rng import rng_for
from naysay.triples import Triples
from naysay.types import RELATION, Negatives, Query, anchor_ids, positive_ids

MANY = 64
LARGE = 4096  # enough rows for a call to be split over threads
_FIELDS = tuple(f.name for f in fields(Negatives) if f.name not in ("source_names", "dropped"))
Known = Positives | Triples
MakeQuery = Callable[[NDArray[np.int64]], Query]
# Rows with the most known items come first in every batch, because draws run out there.
_EMPTIEST = 4


@dataclass(frozen=True)
class Batches:
    """Queries made of given rows."""

    rows: NDArray[np.int64]  # (A,) anchors or (A, 3) triples to choose from
    partners: NDArray[np.int64] | None  # (A,) a positive of each
    make_query: MakeQuery | None  # None: Query(rows, positives=partners)
    known: Known | None  # what must never be returned
    seed: int

    def of(self, chosen: NDArray[np.int64]) -> Query:
        """The query of these rows, by place."""
        rows = self.rows[chosen]
        if self.make_query is not None:
            return self.make_query(rows)
        return Query(rows, positives=None if self.partners is None else self.partners[chosen])

    def mixed(self, size: int) -> Query:
        """`size` rows: first the emptiest, then any, with repetition."""
        rng = rng_for(self.seed, step=size)
        return self.of(np.concatenate([self._emptiest, rng.integers(0, len(self.rows), size)])[:size])

    def emptiest(self) -> Query:
        """The rows with the fewest candidates left."""
        return self.of(self._emptiest)

    def roomiest(self) -> Query:
        """One row with the most candidates left."""
        return self.of(np.argsort(self._n_known, kind="stable")[:1])

    @cached_property
    def _emptiest(self) -> NDArray[np.int64]:
        _, first = np.unique(self.rows, axis=0, return_index=True)
        return first[np.argsort(-self._n_known[first], kind="stable")[:_EMPTIEST]]

    @cached_property
    def _n_known(self) -> NDArray[np.int64]:
        if isinstance(self.known, Positives):
            return self.known.count(self.rows, relation="any")
        return np.zeros(len(self.rows), np.int64)

    @property
    def n_candidates(self) -> int | None:
        """An upper bound of the number of different negatives of a row, or None if it is not known."""
        if isinstance(self.known, Positives):
            return self.known.n_items
        return None if self.known is None else 2 * self.known.n_entities + self.known.n_relations

    def has_choice(self, query: Query, slots: int) -> bool:
        """Whether some row has more items left than slots; True if that is not known."""
        if not isinstance(self.known, Positives):
            return True
        free = self.known.n_items - self.known.count(anchor_ids(query), relation="any")
        return bool((free > slots).any())

    def limits(self, drawn: Negatives) -> NDArray[np.int64] | None:
        """(B, K) the first id past the end, or None if it is not known."""
        if isinstance(self.known, Positives):
            return np.full(drawn.shape, self.known.n_items)
        if self.known is None:
            return None
        relation = np.zeros(drawn.shape, bool) if drawn.side is None else drawn.side == RELATION
        return np.where(relation, self.known.n_relations, self.known.n_entities)

    def forbidden(self, query: Query, drawn: Negatives) -> NDArray[np.bool_]:
        """(B, K): slots that hold what is known of their row; with nothing known, the row's own positive."""
        anchors, mask = anchor_ids(query), np.asarray(drawn.mask)
        if isinstance(self.known, Positives):
            return np.asarray(mask & self.known.contains(anchors, np.where(mask, drawn.ids, -1), relation="any"))
        if self.known is None:
            if query.positives is None:
                return np.zeros(drawn.shape, bool)
            return np.asarray(mask & (drawn.ids == positive_ids(query)[:, None]))
        rows, slots = np.nonzero(mask)
        triples = anchors[rows]
        triples[np.arange(len(rows)), drawn.side[rows, slots]] = drawn.ids[rows, slots]
        forbidden = np.zeros(drawn.shape, bool)
        forbidden[rows, slots] = self.known.contains(triples)
        return forbidden


def batches(
    part: Any, positives: Known | None, anchors: ArrayLike | None, make_query: MakeQuery | None, seed: int
) -> Batches:
    """Batches from the given anchors, else from the positives, or from those of the part. Raises if there are none."""
    known = getattr(part, "positives", None) if positives is None else positives
    if known is not None and not isinstance(known, Known):
        if positives is not None:
            raise_invalid("positives", "Positives or Triples", f"a {type(known).__name__}")
        known = None
    partners: NDArray[np.int64] | None = None
    if anchors is not None:
        rows: NDArray[Any] = anchor_ids(Query(as_array("anchors", to_numpy(anchors))))
    elif isinstance(known, Positives):
        rows, partners = known.pairs()
        if known.relation is not None:
            positive = known.relation == POSITIVE
            rows, partners = rows[positive], partners[positive]
        if len(rows) == 0:
            rows, partners = np.arange(known.n_anchors), None
    elif isinstance(known, Triples):
        rows = known.array
    else:
        raise_invalid("anchors", "given where there are no positives to take them from", None)
    if len(rows) == 0:
        raise_invalid("anchors", "at least one row", "none")
    return Batches(rows, partners, make_query, known, seed)


@dataclass(frozen=True)
class Trial:
    """A pool or sampler under test."""

    part: Any
    call: Callable[..., Negatives]  # its method, (query, slots, *, rng)
    batches: Batches
    slots: int  # the usual number
    max_slots: int  # more than there are candidates, where that is affordable
    seed: int
    saved: Any = None  # its state before the test, from which every answer starts; None if it has none

    def ask(self, query: Query, slots: Any = None, *, step: int = 0) -> Negatives:
        """The answer from the saved state, with the generator of (seed, step)."""
        self.rewind()
        answer = self.call(query, self.slots if slots is None else slots, rng=rng_for(self.seed, step))
        if not isinstance(answer, Negatives):
            message = f"the answer must be Negatives, not {type(answer).__name__}"
            raise TypeError(message)
        return answer

    def rewind(self) -> None:
        """Put the part back into the state it had before the test."""
        if self.saved is not None:
            self.part.restore(copy.deepcopy(self.saved))

    def questions(self) -> Iterator[tuple[Query, int]]:
        """Some rows, many rows, and the rows that run out, with the number of slots."""
        yield self.batches.mixed(MANY), self.slots
        yield self.batches.mixed(LARGE), self.slots
        yield self.batches.emptiest(), self.max_slots

    def answers(self) -> Iterator[tuple[Query, Negatives]]:
        """The questions with their answers, in NumPy."""
        for query, slots in self.questions():
            yield query, self.ask(query, slots).numpy()

    def uneven(self) -> NDArray[np.int64]:
        """(MANY,) slots for each row, from 0 to `slots`."""
        return np.arange(MANY) % (self.slots + 1)


def differs(one: Negatives, other: Negatives) -> str | None:
    """The first field in which two answers differ, or None."""
    names = (name for name in _FIELDS if not equal(getattr(one, name), getattr(other, name)))
    return next(names, None if dict(one.dropped) == dict(other.dropped) else "dropped")


def equal(one: Any, other: Any) -> bool:
    """Whether two arrays, NumPy or torch, or two Nones are the same; NaN equals NaN."""
    one, other = to_numpy(one), to_numpy(other)
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")


def place_keys(drawn: Negatives) -> NDArray[np.int64]:
    """(B, K) one number for each (side, id); -1 where the slot is empty."""
    ids = np.asarray(to_numpy(drawn.ids))
    if drawn.side is None:
        return ids
    return np.where(ids < 0, -1, ids * 3 + to_numpy(drawn.side))

"""The queries that a pool or sampler is driven with, and what is known about their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, public, raise_invalid
from naysay.positives import POSITIVE, Positives
from naysay.rng import rng_for
from naysay.triples import Triples
from naysay.types import RELATION, Negatives, Query, anchor_ids, positive_ids

Known = Positives | Triples
Dress = Callable[[NDArray[np.int64]], Query]
# Rows with the most known items stand first in every batch: that is where draws run out.
_EMPTIEST = 4


@public
@dataclass(frozen=True)
class Batches:
    """Queries over the rows that a part may be asked for.

    Args:
        rows: (A,) anchors or (A, 3) triples to choose from.
        partners: (A,) a positive of each, or None.
        dress: Makes a query of chosen rows; None is Query(rows, positives=partners).
        known: What must never come back, or None if nobody says.
    """

    rows: NDArray[np.int64]
    partners: NDArray[np.int64] | None
    dress: Dress | None
    known: Known | None
    seed: int

    def of(self, chosen: NDArray[np.int64]) -> Query:
        """The query of these rows, by place."""
        rows = self.rows[chosen]
        if self.dress is not None:
            return self.dress(rows)
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
        """How many different negatives a row can have at the very most, or None if nobody says."""
        if isinstance(self.known, Positives):
            return self.known.n_items
        return None if self.known is None else 2 * self.known.n_entities + self.known.n_relations

    def has_choice(self, query: Query, slots: int) -> bool:
        """Whether some row has more items left than slots; without an answer to that, yes."""
        if not isinstance(self.known, Positives):
            return True
        free = self.known.n_items - self.known.count(anchor_ids(query), relation="any")
        return bool((free > slots).any())

    def limits(self, drawn: Negatives) -> NDArray[np.int64] | None:
        """(B, K) the first id past the end, or None if nobody says."""
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
        found = np.zeros(drawn.shape, bool)
        found[rows, slots] = self.known.contains(triples)
        return found


def batches(known: Known | None, anchors: ArrayLike | None, dress: Dress | None, seed: int) -> Batches:
    """Batches from given anchors, else from the known pairs or triples, else a refusal."""
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
    return Batches(rows, partners, dress, known, seed)

"""Candidates of `Learned`: draws of a pool, or all items; of a triple, all of one side."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from naysay._slots import corrupted_triples
from naysay.checks import raise_invalid
from naysay.pools._slots import anchors_of
from naysay.pools.corruption import Corruption
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.samplers._cache_rows import rows_of
from naysay.samplers._candidates import candidates_of
from naysay.types import SIDES, Negatives, Pool, Query, anchor_ids


@final
class Candidates:
    """Where the candidates of a sampler come from: its pool."""

    def __init__(self, pool: Pool, candidates: Any) -> None:
        """Raise if all items are asked for and the pool does not know them."""
        self.pool = pool
        self.known = pool.known if isinstance(pool, Corruption) else getattr(pool, "positives", None)
        if candidates is None and not isinstance(pool, Corruption) and not isinstance(self.known, Positives):
            raise_invalid("candidates", "a number unless the pool has `positives`", None)
        sides = pool.sides if isinstance(pool, Corruption) and len(pool.sides) > 1 else ()
        self.one_sided = {side: pool.one_side(SIDES[side]) for side in sides if isinstance(pool, Corruption)}

    def draw(self, query: Query, number: int | None, rng: np.random.Generator) -> Negatives:
        """(B, n) candidates in NumPy: `number` draws, or with None all items, -1 where one is known."""
        if isinstance(self.pool, Corruption):
            return self._corrupted(self.pool, query, number, rng)
        if number is not None:
            return candidates_of(self.pool, query, number, rng).numpy()
        key_from(rng)  # as many keys as with a number
        every, known = self._every(query, "any")
        return Negatives(np.where(known, -1, every))

    def with_positives(self, query: Query) -> tuple[Negatives, Any]:
        """(B, n_items) all items, -1 where one is ignored, and U(positives of the anchor), or 0 if there are none."""
        every, ignored = self._every(query, "ignore")
        positive = self._every(query, "positive")[1]
        return Negatives(np.where(ignored, -1, every)), positive / np.maximum(positive.sum(axis=1, keepdims=True), 1)

    def _every(self, query: Query, relation: str) -> tuple[Any, Any]:
        """(B, n_items) all items, and whether one has this relation to the row's anchor."""
        known: Any = self.known  # checked when the sampler was made
        anchors = anchors_of(query, known.n_anchors)
        every = np.broadcast_to(np.arange(known.n_items), (len(anchors), known.n_items))
        return every, known.contains(anchors, every, relation=relation)

    def _corrupted(self, pool: Corruption, query: Query, number: int | None, rng: np.random.Generator) -> Negatives:
        """Replacements of one side of each triple, which is drawn by the pool's chances."""
        if number is not None and not self.one_sided:
            return pool.draw(query, number, rng=rng).numpy()
        drawn = pool.draw(query, 1, rng=rng)
        if number is None:
            side = np.repeat(np.asarray(drawn.side), pool.known.n_entities, axis=1)
            every = np.broadcast_to(np.arange(side.shape[1]), side.shape)
            triples = corrupted_triples(anchor_ids(query), every, side).reshape(-1, 3)
            taken = pool.known.contains(triples).reshape(side.shape)
            return Negatives(np.where(taken | (side < 0), -1, every), side=side)
        ids, sides = np.full((len(query), number), -1, np.int64), np.asarray(drawn.side)[:, 0]
        for which, one in self.one_sided.items():
            rows = np.flatnonzero(sides == which)
            if len(rows):
                ids[rows] = one.draw(rows_of(query, rows), number, rng=rng).numpy().ids
        return Negatives(ids, side=np.where(ids < 0, np.int8(-1), sides[:, None]))

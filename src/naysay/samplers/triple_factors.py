"""TripleFactors: a knowledge-graph model as generator for `Learned`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from naysay.arrays import for_checkpoints
from naysay.checks import MOST_ROWS, check_one_of, check_whole, public
from naysay.samplers._generators import Floats, Ids, Tables
from naysay.text import described


@final
@public
class TripleFactors:
    """A knowledge-graph model as generator: "distmult" sum_d h r t, or "complex" Re sum_d h r conj(t).

    Args:
        n_entities: The number of entities.
        n_relations: The number of relations.
        d: The dimension; for "complex" the number of complex numbers.
        kind: "distmult" or "complex".
        rate: Of gradient ascent.
        decay: Of the touched rows, for each step.
        seed: Of the start.

    Examples:
        >>> import numpy as np
        >>> TripleFactors(3, 2, 4).logits(np.zeros((1, 3), int), np.zeros((1, 5, 3), int)).shape
        (1, 5)
    """

    def __init__(
        self,
        n_entities: int,
        n_relations: int,
        d: int = 16,
        *,
        kind: str = "distmult",
        rate: float = 0.1,
        decay: float = 0.0,
        seed: int = 0,
    ) -> None:
        """Start at random."""
        check_one_of("kind", kind, ("distmult", "complex"))
        self.n_entities, self.n_relations, self.d, self.kind = n_entities, n_relations, d, kind
        width = check_whole("d", d, 1) * (2 if kind == "complex" else 1)
        shapes = {
            "entities": (check_whole("n_entities", n_entities, 1, MOST_ROWS), width),
            "relations": (check_whole("n_relations", n_relations, 1, MOST_ROWS), width),
        }
        self.rate, self.decay, self.seed = rate, decay, seed
        self._tables = Tables(rate, decay, shapes, seed)

    def _parts(self, triples: Ids) -> tuple[Any, Any, Any]:
        """h, r and conj(t) of triples (..., 3), complex for "complex"."""
        entities, relations = self._tables["entities"], self._tables["relations"]
        if self.kind == "complex":
            entities, relations = (table[:, : self.d] + 1j * table[:, self.d :] for table in (entities, relations))
        return entities[triples[..., 0]], relations[triples[..., 1]], entities[triples[..., 2]].conj()

    def logits(self, anchors: Ids, candidates: Ids) -> Floats:
        """(B, n) of triples (B, n, 3)."""
        head, relation, tail = self._parts(candidates)
        return np.asarray((head * relation * tail).sum(axis=-1).real)

    def ascend(self, anchors: Ids, candidates: Ids, gradient: Floats) -> None:
        """One step up the gradient (B, n) in the logits."""
        head, relation, tail = self._parts(candidates)
        by = gradient[..., None]
        pieces = (
            ("entities", 0, (relation * tail).conj() * by),
            ("relations", 1, (head * tail).conj() * by),
            ("entities", 2, head * relation * by),
        )
        for name, column, move in pieces:
            flat = np.concatenate([move.real, move.imag], axis=-1) if self.kind == "complex" else move
            self._tables.add(name, candidates[..., column], flat)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All parameters."""
        return self._tables.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self._tables.restore(state)

    def __repr__(self) -> str:
        """The settings."""
        return described(self)

"""TransE, DistMult, ComplEx and RotatE: a vector per entity and relation, and a score per triple."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from naysay._slots import corrupted_triples
from naysay.checks import MOST_ROWS, check_number, check_one_of, check_whole, public
from naysay.kernels.triple_scores import COMPLEX, PRODUCT, TRANSLATION
from naysay.tasks import _products
from naysay.tasks._parts import Device
from naysay.types import RELATION, TAIL

TRIPLE_MODELS = ("transe", "distmult", "complex", "rotate")
MOST_WIDTH = 1 << 16  # coordinates of a vector
_DISTANCES = ("transe", "rotate")  # the others are products
_QUERIES = {"transe": TRANSLATION, "distmult": PRODUCT, "complex": COMPLEX, "rotate": COMPLEX}


@final
@public
class TripleModel:
    """A model of triples, whose score is that of a query and an entity, from either side.

        TransE      -|h + r - t|             query of tails h + r, of heads t - r
        DistMult    sum h r t                h r, t r
        ComplEx     Re sum h r conj(t)       h r, t conj(r), in complex numbers
        RotatE      -|h r - t|, |r_i| = 1    h r, t conj(r), in complex numbers

    So all heads or tails of a triple are scored by one product, or one matrix of distances. Distances are Euclidean;
    the paper of RotatE adds up moduli instead. Complex vectors have their real parts first.

    Bordes et al. NIPS 2013; Yang et al. ICLR 2015; Trouillon et al. ICML 2016; Sun et al. ICLR 2019.

    Args:
        kind: "transe", "distmult", "complex" or "rotate".
        n_entities: The number of entities.
        n_relations: The number of relations.
        seed: Equal seeds give equal vectors.
        width: d, the number of coordinates; even for complex vectors.
        scale: Standard deviation of the normal vectors at the start.
        device: Where torch keeps the vectors. The first ones are drawn on the processor.

    Attributes:
        entities: (n_entities, d) parameters.
        relations: (n_relations, d) parameters; for RotatE the first half are angles.

    Examples:
        >>> model = TripleModel("transe", 5, 2, seed=0, width=4)
        >>> model.score(torch.tensor([[0, 1, 3], [4, 0, 2]])).shape
        torch.Size([2])
    """

    def __init__(
        self,
        kind: str,
        n_entities: int,
        n_relations: int,
        seed: int,
        *,
        width: int = 64,
        scale: float = 0.1,
        device: Device = "cpu",
    ) -> None:
        """Make the vectors."""
        check_one_of("kind", kind, TRIPLE_MODELS)
        check_number("scale", scale, above=0, finite=True)
        self.kind, self.half = kind, check_whole("width", width, 2, MOST_WIDTH) // 2
        start = torch.Generator().manual_seed(check_whole("seed", seed, 0))
        sizes = (
            check_whole("n_entities", n_entities, 1, MOST_ROWS),
            check_whole("n_relations", n_relations, 1, MOST_ROWS),
        )
        vectors = [torch.randn(size, 2 * self.half, generator=start) for size in sizes]
        factor = np.pi / 2 if kind == "rotate" else scale  # angles go all the way round
        self.entities = (scale * vectors[0]).to(device).requires_grad_()
        self.relations = (factor * vectors[1]).to(device).requires_grad_()

    def factors(self) -> Tensor:
        """(n_relations, d) what an entity is changed by: the relations, or for RotatE the cosines and sines of angles.

        They are taken of the table, not of a batch: a batch has more rows than most graphs have relations.
        """
        if self.kind != "rotate":
            return self.relations
        angles = self.relations[:, : self.half]
        return torch.cat([torch.cos(angles), torch.sin(angles)], dim=1)

    def queries(self, entities: Tensor, relations: Tensor, *, tails: bool) -> Tensor:
        """(..., d) what the missing tail should be near to, or the missing head; the given ids have one shape."""
        given, between = embedding(entities, self.entities), embedding(relations, self.factors())
        if self.kind == "transe":
            return given + between if tails else given - between
        if self.kind == "distmult":
            return given * between
        real, imaginary = between.chunk(2, dim=-1)
        if not tails:
            imaginary = -imaginary
        a, b = given.chunk(2, dim=-1)
        return torch.cat([a * real - b * imaginary, a * imaginary + b * real], dim=-1)

    def score(self, triples: Tensor) -> Tensor:
        """(...,) of triples (..., 3)."""
        if _products.by_loops(self.entities):
            rows = triples.reshape(-1, 3)
            tails = rows[:, 2:]
            return self._by_loops(rows, tails, torch.full_like(tails, TAIL)).reshape(triples.shape[:-1])
        heads, relations, tails = triples.unbind(dim=-1)
        return self._compared(self.queries(heads, relations, tails=True), embedding(tails, self.entities))

    def scores(self, triples: Tensor, ids: Tensor, side: Tensor) -> Tensor:
        """(B, 1 + K) of triples (B, 3), and of each with the part side (B, K) replaced by ids (B, K); side may be -1.

        Equals `score` of all these triples but for rounding, without looking up the vectors of parts that they share.
        """
        if bool((side == RELATION).any()):
            others = corrupted_triples(triples, ids, side)
            return self.score(torch.cat([triples[:, None], others], dim=1))
        ids = torch.cat([triples[:, 2:], ids], dim=1)
        side = torch.nn.functional.pad(side, (1, 0), value=TAIL)
        if _products.by_loops(self.entities):
            return self._by_loops(triples, ids, side)
        heads, relations, tails = triples.unbind(dim=-1)
        of_tails = self.queries(heads, relations, tails=True)[:, None]
        of_heads = self.queries(tails, relations, tails=False)[:, None]
        queries = torch.where((side == TAIL)[:, :, None], of_tails, of_heads)
        return self._compared(queries, embedding(ids, self.entities))

    def _by_loops(self, triples: Tensor, ids: Tensor, side: Tensor) -> Tensor:
        """(B, K) the scores of triples (B, 3) with heads or tails replaced by ids (B, K), without copies of vectors."""
        tables = self.entities, self.factors()
        return _products.triple_scores(
            *tables, triples, ids, side, kind=_QUERIES[self.kind], distances=self.kind in _DISTANCES
        )

    def _compared(self, queries: Tensor, others: Tensor) -> Tensor:
        """(...) the scores of queries and entities (..., d)."""
        if self.kind in _DISTANCES:
            return -((queries - others).square().sum(dim=-1) + 1e-12).sqrt()  # which has a gradient at 0
        return (queries * others).sum(dim=-1)

    @torch.no_grad()
    def order_all(self, queries: Tensor) -> Tensor:
        """(n, n_entities) numbers that order all entities by their scores for queries (n, d), by one matrix product.

        They are the scores of DistMult and ComplEx. For distances they are q e - |e|^2 / 2: that is -|q - e|^2 / 2, but
        for a number that all entities of a row share.
        """
        entities = self.entities.detach()
        if self.kind not in _DISTANCES:
            return queries @ entities.T
        return torch.addmm(entities.square().sum(dim=1), queries, entities.T, beta=-0.5)

"""TransE, DistMult, ComplEx and RotatE: a vector per entity and relation, and a score per triple."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from naysay._slots import corrupted_triples
from naysay.checks import check_number, check_one_of, check_whole, public
from naysay.tasks._parts import Device
from naysay.tasks._products import entity_scores
from naysay.types import RELATION, TAIL

TRIPLE_MODELS = ("transe", "distmult", "complex", "rotate")
_DISTANCES = ("transe", "rotate")  # the others are products


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
        self.kind, self.half = kind, check_whole("width", width, 2) // 2
        start = torch.Generator().manual_seed(check_whole("seed", seed, 0))
        sizes = (check_whole("n_entities", n_entities, 1), check_whole("n_relations", n_relations, 1))
        vectors = [torch.randn(size, 2 * self.half, generator=start) for size in sizes]
        factor = np.pi / 2 if kind == "rotate" else scale  # angles go all the way round
        self.entities = (scale * vectors[0]).to(device).requires_grad_()
        self.relations = (factor * vectors[1]).to(device).requires_grad_()

    def queries(self, entities: Tensor, relations: Tensor, *, tails: bool) -> Tensor:
        """(..., d) what the missing tail should be near to, or the missing head; the given ids have one shape."""
        given, between = embedding(entities, self.entities), embedding(relations, self.relations)
        if self.kind == "transe":
            return given + between if tails else given - between
        if self.kind == "distmult":
            return given * between
        real, imaginary = between.chunk(2, dim=-1)
        if self.kind == "rotate":
            real, imaginary = torch.cos(real), torch.sin(real)
        if not tails:
            imaginary = -imaginary
        a, b = given.chunk(2, dim=-1)
        return torch.cat([a * real - b * imaginary, a * imaginary + b * real], dim=-1)

    def score(self, triples: Tensor) -> Tensor:
        """(...,) of triples (..., 3)."""
        heads, relations, tails = triples.unbind(dim=-1)
        query, target = self.queries(heads, relations, tails=True), embedding(tails, self.entities)
        if self.kind in _DISTANCES:
            return -((query - target).square().sum(dim=-1) + 1e-12).sqrt()  # which has a gradient at 0
        return (query * target).sum(dim=-1)

    def scores(self, triples: Tensor, ids: Tensor, side: Tensor) -> Tensor:
        """(B, 1 + K) of triples (B, 3), and of each with the part side (B, K) replaced by ids (B, K); side may be -1.

        Equals `score` of all these triples but for rounding, without looking up the vectors of parts that they share.
        """
        if bool((side == RELATION).any()):
            others = self.score(corrupted_triples(triples, ids, side))
            return torch.cat([self.score(triples)[:, None], others], dim=1)
        heads, relations, tails = triples.unbind(dim=-1)
        queries = self.queries(tails, relations, tails=False), self.queries(heads, relations, tails=True)
        ids, side = torch.cat([tails[:, None], ids], dim=1), torch.nn.functional.pad(side, (1, 0), value=TAIL)
        return entity_scores(*queries, self.entities, ids, side, distances=self.kind in _DISTANCES)

    @torch.no_grad()
    def score_all(self, queries: Tensor) -> Tensor:
        """(n, n_entities) the scores of all entities for queries (n, d)."""
        entities = self.entities.detach()
        return -torch.cdist(queries, entities) if self.kind in _DISTANCES else queries @ entities.T

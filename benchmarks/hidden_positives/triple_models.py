"""Two models of triples: one trained, one in closed form."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

import naysay as ns
from benchmarks.hidden_positives.readers import Floats, Ids

WIDTH, BATCH, RATE, DECAY, RIDGE = 128, 1024, 0.1, 0.05, 100.0


class ComplEx:
    """How likely a tail is of a head and a relation, and the head of the tail: the sum of the two log-probabilities.

    Each is a softmax over all entities of Re sum_i e_h,i w_r,i conj(e_t,i), with a vector for each relation and one for
    its inverse. The raw score says less: a common entity scores high with everything.

    Trouillon, Welbl, Riedel, Gaussier, Bouchard. ICML 2016; inverses and N3: Lacroix, Usunier, Obozinski. ICML 2018.
    """

    def __init__(self, n_entities: int, n_relations: int, seed: int) -> None:
        """Small normal vectors, real parts first; relation r + n_relations is the inverse of r."""
        start = torch.Generator().manual_seed(seed)
        sizes = (n_entities, 2 * n_relations)
        self.entity, self.relation = (0.01 * torch.randn(n, 2 * WIDTH, generator=start) for n in sizes)
        self.parameters = [self.entity.requires_grad_(), self.relation.requires_grad_()]
        self.inverse = n_relations

    def asking(self, heads: Tensor, relations: Tensor) -> Tensor:
        """(n, d) e_h w_r, whose products with all entities are the scores of all tails."""
        (a, b), (c, d) = (part.chunk(2, dim=-1) for part in (self.entity[heads], self.relation[relations]))
        return torch.cat([a * c - b * d, a * d + b * c], dim=-1)

    def size(self, triples: Tensor) -> Tensor:
        """The mean of the third powers of the vectors' moduli (N3), to be kept small."""
        parts = (self.entity[triples[:, 0]], self.relation[triples[:, 1]], self.entity[triples[:, 2]])
        cubes = ((part.chunk(2, dim=-1)[0] ** 2 + part.chunk(2, dim=-1)[1] ** 2 + 1e-12) ** 1.5 for part in parts)
        return sum((cube.sum(dim=-1).mean() for cube in cubes), torch.zeros(()))

    @torch.no_grad()
    def tails(self, heads: Ids, relations: Ids) -> Floats:
        """(n, entities) the scores of all tails, a block of rows at a time."""
        found = np.empty((len(heads), len(self.entity)))
        for relation in np.unique(relations).tolist():
            rows = np.flatnonzero(relations == relation)
            found[rows] = self.matrix(relation)[torch.from_numpy(heads[rows])].double().numpy()
        return found

    @torch.no_grad()
    def parts(self, triples: Ids) -> Floats:
        """(n, 3) of triples (n, 3): both log-probabilities, and the sum of the raw scores."""
        found = np.empty((len(triples), 3))
        for relation in np.unique(triples[:, 1]).tolist():
            rows = np.flatnonzero(triples[:, 1] == relation)
            heads, tails = (torch.from_numpy(triples[rows, side]) for side in (0, 2))
            there, back = self.raw(relation)
            said = (there.log_softmax(dim=1), back.log_softmax(dim=1).T, there + back.T)
            found[rows] = torch.stack([part[heads, tails] for part in said], dim=1).double().numpy()
        return found

    def scores(self, triples: Ids) -> Floats:
        """(n,) of triples (n, 3)."""
        return np.asarray(self.parts(triples)[:, :2].sum(axis=1))

    def raw(self, relation: int) -> list[Tensor]:
        """Twice (entities, entities): of all heads to all tails of a relation, and of all tails to all heads."""
        every = torch.arange(len(self.entity))
        both = (relation, relation + self.inverse)
        return [self.asking(every, torch.full_like(every, one)) @ self.entity.T for one in both]

    def matrix(self, relation: int) -> Tensor:
        """(entities, entities) the scores of all heads and tails of a relation."""
        there, back = self.raw(relation)
        return there.log_softmax(dim=1) + back.log_softmax(dim=1).T


def trained(train: Ids, sizes: tuple[int, int], steps: int, seed: int) -> ComplEx:
    """A model after so many steps of `info_nce` against all other entities, in both directions."""
    model, order = ComplEx(*sizes, seed), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adagrad(model.parameters, lr=RATE)
    there = torch.from_numpy(train)
    back = torch.stack([there[:, 2], there[:, 1] + sizes[1], there[:, 0]], dim=1)
    every = torch.cat([there, back])
    for _ in range(steps):
        true = every[torch.randint(0, len(every), (BATCH,), generator=order)]
        scores = model.asking(true[:, 0], true[:, 1]) @ model.entity.T
        own = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, true[:, 2:], value=True)
        loss = ns.losses.info_nce(scores[own], scores, temperature=1.0, mask=~own).mean() + DECAY * model.size(true)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


class Attributes:
    """How well all else that is known of an entity says that it has an attribute: (relation, other end) is one.

    X (entities, attributes) is 1 where the training triples say so, with attributes of heads and, for inverses, of
    tails. Each attribute is predicted from all others by ridge regression: X B with a diagonal of 0, which has the
    closed form B = I - P / diag(P), P = (X'X + ridge I)^-1. The score of a triple is what its head says plus what its
    tail says. A softmax shares 1 among all tails, however many are true; this says of each how likely it is.

    Steck. Embarrassingly Shallow Autoencoders for Sparse Data. WWW 2019, there of users and items.
    """

    def __init__(self, train: Ids, n_entities: int, n_relations: int, ridge: float = RIDGE) -> None:
        """Solve it: O(entities^2 attributes), for P is taken by way of the entities, which are fewer."""
        self.n_entities, self.inverse = n_entities, n_relations
        there = train[:, 1] * n_entities + train[:, 2]
        back = (train[:, 1] + n_relations) * n_entities + train[:, 0]
        self.attributes, columns = np.unique(np.concatenate([there, back]), return_inverse=True)
        known = np.zeros((n_entities, len(self.attributes)))
        known[np.concatenate([train[:, 0], train[:, 2]]), columns.reshape(-1)] = 1.0
        products = known @ known.T
        solved = np.linalg.solve(products + ridge * np.eye(n_entities), known)
        own = (1 - np.einsum("ij,ij->j", known, solved)) / ridge  # the diagonal of P
        self.said = known - (known - products @ solved) / ridge / own

    def of(self, entities: Ids, relations: Ids, others: Ids) -> Floats:
        """The scores of entities and attributes, shapes broadcast; 0 for an attribute that no known entity has."""
        wanted = relations * self.n_entities + others
        columns = np.minimum(np.searchsorted(self.attributes, wanted), len(self.attributes) - 1)
        return np.where(self.attributes[columns] == wanted, self.said[entities, columns], 0.0)

    def tails(self, heads: Ids, relations: Ids) -> Floats:
        """(n, entities) the scores of all tails."""
        every = np.arange(self.n_entities)[None]
        there = self.of(heads[:, None], relations[:, None], every)
        return there + self.of(every, relations[:, None] + self.inverse, heads[:, None])

    def parts(self, triples: Ids) -> Floats:
        """(n, 2) of triples (n, 3): what the head says, and the tail."""
        heads, relations, tails = triples.T
        return np.stack([self.of(heads, relations, tails), self.of(tails, relations + self.inverse, heads)], axis=1)

    def scores(self, triples: Ids) -> Floats:
        """(n,) of triples (n, 3)."""
        return np.asarray(self.parts(triples).sum(axis=1))

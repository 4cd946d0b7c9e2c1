"""The part of the catalogue's small data that needs torch: a batch of vectors with gradients, a model, a generator.

Everything is made anew from fixed seeds on import. `model(query, negatives)` scores pairs or triples with gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from naysay.arrays import is_torch, to_numpy
from naysay.catalog import world
from naysay.pools import Corruption
from naysay.types import Negatives, Query

_random = torch.Generator().manual_seed(0)


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=_random, dtype=torch.float64)


def _unit(*shape: int) -> Tensor:
    return normalize(_normal(*shape), dim=-1).requires_grad_()


def _linear(n_inputs: int, n_outputs: int) -> torch.nn.Linear:
    """A layer that does not start from the global generator."""
    skip_init: Any = torch.nn.utils.skip_init
    layer: torch.nn.Linear = skip_init(torch.nn.Linear, n_inputs, n_outputs, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(0.2 * _normal(n_outputs, n_inputs))
        layer.bias.zero_()
    return layer


# ---- a model of pairs, and of triples, and its scores ----

_anchor_table = torch.from_numpy(world.anchor_vectors).double().requires_grad_()
_item_table = torch.from_numpy(world.item_vectors).double().requires_grad_()
_relation_table = torch.from_numpy(world.relation_vectors).requires_grad_()


def model(query: Query, negatives: Negatives) -> tuple[Tensor, Tensor]:
    """(B,) scores of the positives and (B, K) scores of the negatives, with gradients.

    Pairs are scored by dot products, triples by TransE; `negatives.vectors` replace the vectors of the items.
    """
    ids = torch.as_tensor(to_numpy(negatives.ids)).clamp(min=0)
    rows = torch.as_tensor(to_numpy(query.anchors))
    if negatives.side is not None:
        corrupted = Corruption(world.known_triples).corrupted(query, negatives)
        return _transe(rows), _transe(torch.as_tensor(to_numpy(corrupted)).clamp(min=0))
    own = torch.as_tensor(to_numpy(query.positives))
    vectors = _item_table[ids] if negatives.vectors is None else torch.as_tensor(negatives.vectors).double()
    users = _anchor_table[rows]
    return (users * _item_table[own]).sum(dim=1), torch.einsum("bd,bkd->bk", users, vectors)


def _transe(triples: Tensor) -> Tensor:
    head, relation, tail = triples.unbind(dim=-1)
    apart: Tensor = torch.linalg.vector_norm(_item_table[head] + _relation_table[relation] - _item_table[tail], dim=-1)
    return -apart


positive, scores = _normal(world.BATCH).requires_grad_(), _normal(world.BATCH, 8).requires_grad_()
log_q = torch.full((world.BATCH, 8), -float(np.log(world.N)), dtype=torch.float64)


# ---- the vectors of a batch, which an encoder made ----

anchors, keys = _unit(world.BATCH, world.WIDTH), _unit(world.BATCH, world.WIDTH)  # of the rows of `query`
hard_keys = _unit(world.BATCH, 1, world.WIDTH)  # one more negative of each row, mined before
corpus_keys = _unit(16, world.WIDTH)  # of the last 16 of `batch_and_corpus`
z = _unit(world.BATCH, world.WIDTH)  # two views of 32 images: rows i and i + 32
partner = torch.arange(world.BATCH).roll(world.BATCH // 2)
labels = (torch.arange(world.BATCH // 2) % 9 - 1).repeat(2)  # clusters or classes of the images; -1 is none
stored, stored_labels = _unit(128, world.WIDTH).detach(), torch.arange(128) % 8  # a queue of earlier batches
centroids = torch.stack([z.detach()[labels == label].mean(dim=0) for label in range(8)])
row_losses = softplus(-positive)  # one loss of each row, before the mean
overlap = torch.arange(world.BATCH) // 3  # groups of rows that show the same
heads = (softplus(_normal(3, world.BATCH).requires_grad_())).unbind()  # losses of three heads, shallow to deep
inputs = (_normal(64, 8), _normal(64, 8))  # of queries and of documents

adversaries = _unit(128, world.WIDTH)  # negatives of no item, which an optimiser of their own moves

# ---- generators that learn which negatives are rewarded, each with its optimiser ----


class _Factors(torch.nn.Module):
    """A matrix factorisation: (B,) anchors or nodes, and (B, n) ids, to (B, n) logits."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors, self.items = (torch.nn.Parameter(0.1 * _normal(world.N, 8)) for _ in range(2))

    def forward(self, anchors: Tensor, ids: Tensor) -> Tensor:
        return torch.einsum("bd,bnd->bn", self.anchors[anchors], self.items[ids])


class _DistMult(torch.nn.Module):
    """(B, n, 3) corrupted triples to (B, n) logits."""

    def __init__(self) -> None:
        super().__init__()
        self.entities, self.relations = (
            torch.nn.Parameter(0.1 * _normal(n, 8)) for n in (world.n_entities, world.n_relations)
        )

    def forward(self, triples: Tensor, corrupted: Tensor) -> Tensor:
        head, relation, tail = corrupted.unbind(dim=-1)
        return (self.entities[head] * self.relations[relation] * self.entities[tail]).sum(dim=-1)


class _Tails(torch.nn.Module):
    """Two layers over head and relation, to the logits of (B, n) tails."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = _linear(2 * world.WIDTH, 16), _linear(16, world.n_entities)

    def forward(self, triples: Tensor, corrupted: Tensor) -> Tensor:
        logits: Tensor = self.second(self.first(world.asked(triples).double()).relu())
        return logits.gather(1, corrupted[:, :, 2])


generator, triple_generator, tail_generator = _Factors(), _DistMult(), _Tails()
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
triple_optimizer = torch.optim.SGD(triple_generator.parameters(), lr=0.1)
tail_optimizer = torch.optim.SGD(tail_generator.parameters(), lr=0.1)


def generator_score(anchors: Any, ids: Any) -> Any:
    """What the generator thinks of items: its logits, in the array type of the query."""
    with torch.no_grad():
        logits: Tensor = generator(torch.as_tensor(anchors), torch.as_tensor(ids))
    return logits if is_torch(ids) else logits.numpy()


# ---- a network that makes negatives ----

user_table = torch.nn.Embedding(world.N, world.WIDTH, _weight=_anchor_table.detach().clone())
item_table = torch.nn.Embedding(world.N, world.WIDTH, _weight=_item_table.detach().clone())
encoder, network = _linear(8, world.WIDTH), _linear(3 * world.WIDTH, world.WIDTH)
optimizer = torch.optim.Adam(network.parameters())


def distance(one: Tensor, other: Tensor) -> Tensor:
    """Squared, over the last axis."""
    return ((one - other) ** 2).sum(dim=-1)


def triplet_loss(user: Tensor, liked: Tensor, made: Tensor) -> Tensor:
    """What the network raises: made vectors (B, K, d) nearer to the user than the positive, by a margin of 1."""
    return torch.relu(distance(user, liked)[:, None] - distance(user[:, None], made) + 1.0)

"""A model of pairs and its training, for studies of recommendation, of graphs and of the number of negatives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn.functional import embedding

import naysay as ns

EVALUATED = 2000  # anchors that are ranked for validation at most
Expression = str  # Python that makes a sampler, with the names of `parts`


class PairModel(nn.Module):
    """A vector for each anchor and each item, propagated over the graph of training pairs (LightGCN) if there are hops.

    A score is a dot product, plus an item's bias where there are biases.
    """

    def __init__(self, train: ns.Positives, dim: int, seed: int, *, hops: int = 0, biases: bool = False) -> None:
        """Small random vectors, by the seed."""
        super().__init__()
        self.n_anchors, self.n_items, self.hops = train.n_anchors, train.n_items, hops
        start = torch.Generator().manual_seed(seed)
        self.table = nn.Parameter(0.1 * torch.randn(self.n_anchors + self.n_items, dim, generator=start))
        self.biases = nn.Parameter(torch.zeros(self.n_items), requires_grad=biases)
        self.graph = _normalised(train) if hops else None
        self.encode()

    def encode(self) -> None:
        """The vectors of this step, (n, layers, dim); samplers and loss look at the same ones."""
        layers = [self.table]
        for _ in range(self.hops):
            layers.append(torch.sparse.mm(self.graph, layers[-1]))
        self.layers = torch.stack(layers, dim=1)
        self.anchors, self.items = self.layers.mean(dim=1).split([self.n_anchors, self.n_items])

    def score(self, anchors: Tensor, ids: Tensor) -> Tensor:
        """(B, n) of anchors (B,) and items (B, n)."""
        products = torch.einsum("bd,bnd->bn", embedding(anchors, self.anchors), embedding(ids, self.items))
        return products + self.biases[ids]

    def embed(self, ids: Tensor) -> Tensor:
        """(..., layers, dim) of items, for samplers that mix vectors."""
        return embedding(torch.as_tensor(ids) + self.n_anchors, self.layers.flatten(1)).unflatten(
            -1, self.layers.shape[1:]
        )

    def scores_of(self, query: ns.Query, negatives: ns.Negatives) -> Tensor:
        """(B, K) of what a sampler answered: its own vectors if it made some."""
        if negatives.vectors is not None:
            return torch.einsum("bd,bkd->bk", embedding(query.anchors, self.anchors), negatives.vectors)
        return self.score(query.anchors, negatives.ids.clamp(min=0))


def _normalised(train: ns.Positives) -> Tensor:
    """The symmetric graph of anchors and items, each edge divided by the roots of its ends' degrees."""
    anchors, items = train.pairs()
    n = train.n_anchors + train.n_items
    half = sparse.csr_array((np.ones(len(anchors), np.float32), (anchors, items + train.n_anchors)), shape=(n, n))
    whole = (half + half.T).tocoo()
    degree = np.maximum(whole.sum(axis=1), 1)
    values = whole.data / np.sqrt(degree[whole.row] * degree[whole.col])
    places = torch.from_numpy(np.stack([whole.row, whole.col]).astype(np.int64))
    weights = torch.from_numpy(values.astype(np.float32))
    return torch.sparse_coo_tensor(places, weights, (n, n), check_invariants=True).coalesce()


def made(expression: Expression, model: PairModel, train: ns.Positives, **more: Any) -> Any:
    """The sampler of an arm: its text, with the names of samplers and pools, `train`, `score` and `embed`."""
    names = {**vars(ns.pools), **vars(ns.samplers), "train": train, "score": model.score, "embed": model.embed, **more}
    return eval(expression, names)  # text of a declaration


def fit(
    model: PairModel,
    train: ns.Positives,
    sampler: Any,
    k_at: Callable[[int], float],
    settings: Any,
    seed: int,
    look: Callable[[int], None],
    held_out: ns.Positives | None = None,
) -> dict[str, float]:
    """Train, and call `look(step)` before the first step and every `every` steps.

    settings   steps, every, batch, lr, decay, and loss: a name of `naysay.losses`

    Returns the cost of the steps alone and, with `held_out` pairs, how many of the negatives are among those.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=settings["lr"], weight_decay=settings["decay"])
    loss_of = getattr(ns.losses, settings["loss"])
    anchors, items = (torch.from_numpy(ids.astype(np.int64)) for ids in train.pairs())
    order, rows, batch = np.random.default_rng(seed), np.zeros(0, np.int64), min(settings["batch"], len(anchors))
    mixes = isinstance(sampler, ns.samplers.MixGCF)
    seconds, false_shares = 0.0, []
    look(0)
    for step in range(settings["steps"]):
        start = time.process_time()
        if len(rows) < batch:
            rows = order.permutation(len(anchors))
        now, rows = rows[:batch], rows[batch:]
        model.encode()
        vectors = embedding(anchors[now], model.anchors) if mixes else None
        query = ns.Query(anchors[now], positives=items[now], vectors=vectors, step=step)
        negatives = sampler.sample(query, k_at(step), rng=ns.rng_for(seed, step))
        positive = model.score(query.anchors, query.positives[:, None])[:, 0]
        loss = loss_of(positive, model.scores_of(query, negatives), mask=negatives.mask).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if hasattr(sampler, "observe"):
            sampler.observe(query, negatives)
        seconds += time.process_time() - start
        if (step + 1) % settings["every"] == 0:
            with torch.no_grad():
                model.encode()
            look(step + 1)
            if held_out is not None:
                false_shares.append(_share(query, negatives, held_out))
    found = {"milliseconds_a_step": 1e3 * seconds / settings["steps"]}
    return found | ({"false_percent": 100 * float(np.mean(false_shares))} if false_shares else {})


def _share(query: ns.Query, negatives: ns.Negatives, held_out: ns.Positives) -> float:
    """The share of negatives that are held-out pairs."""
    rows, slots = np.nonzero(np.asarray(negatives.mask))
    ids = np.asarray(negatives.ids)[rows, slots]
    return float(held_out.contains(np.asarray(query.anchors)[rows], ids).mean()) if len(rows) else 0.0


def some_anchors(positives: ns.Positives, most: int = EVALUATED) -> ns.Positives:
    """The pairs of at most so many anchors, always the same ones."""
    anchors, items = positives.pairs()
    chosen = np.random.default_rng(0).permutation(np.unique(anchors))[:most]
    kept = np.isin(anchors, chosen)
    return ns.Positives.from_pairs(anchors[kept], items[kept], positives.n_anchors, positives.n_items)


def split_by_anchor(
    known: ns.Positives, seed: int, share: float = 0.1
) -> tuple[ns.Positives, ns.Positives, ns.Positives]:
    """Training, validation and test pairs: of each anchor's pairs, a share by chance for each of the last two."""
    anchors, items = known.pairs()
    order = np.lexsort((np.random.default_rng(seed).random(len(anchors)), anchors))
    anchors, items = anchors[order], items[order]
    counts = known.count()[anchors]
    place = (np.arange(len(anchors)) - np.searchsorted(anchors, anchors)) / counts
    ends = ((2 * share, 1.0), (share, 2 * share), (0.0, share))
    parts = ((place >= low) & (place < high) for low, high in ends)
    sizes = known.n_anchors, known.n_items
    return tuple(ns.Positives.from_pairs(anchors[part], items[part], *sizes) for part in parts)  # type: ignore[return-value]

"""Shared parts of the recommendation study: likes, a split without leaks, an encoder, and measures.

Everything here is the same for all arms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.checks import first_bad, raise_invalid

Ids = NDArray[np.int64]
LIKED, TOP = 4, 20
_COLUMNS = ("user", "item", "rating")
_BLOCK = 512  # pairs whose AUC is counted at a time


@dataclass(frozen=True)
class Pairs:
    """Users and items, both (n,) and counted from 0."""

    users: Ids
    items: Ids

    def __len__(self) -> int:
        """How many."""
        return len(self.users)

    def __add__(self, other: Pairs) -> Pairs:
        """Both."""
        return Pairs(np.concatenate([self.users, other.users]), np.concatenate([self.items, other.items]))


@dataclass(frozen=True)
class Split:
    """The likes of all users in three parts."""

    train: Pairs
    validation: Pairs
    test: Pairs
    n_users: int
    n_items: int


@dataclass(frozen=True)
class Ranking:
    """Means over the users who have something to find."""

    recall: float
    ndcg: float


def read(folder: Path) -> tuple[Pairs, int, int]:
    """The pairs of FOLDER/ratings.npz that are rated 4 or 5, each once, and how many users and items there are."""
    path = folder / "ratings.npz"
    if not path.is_file():
        advice = "It holds the arrays user, item (both from 1) and rating (1 to 5)."
        raise_invalid("DATA", "a folder with a file ratings.npz", f"{str(folder)!r}", advice)
    with np.load(path) as file:
        missing = [name for name in _COLUMNS if name not in file]
        if missing:
            raise_invalid("DATA", f"a ratings.npz with {', '.join(_COLUMNS)}", f"none named {missing[0]}")
        users, items, ratings = (file[name].astype(np.int64) for name in _COLUMNS)
    for name, ids in (("user", users), ("item", items)):
        if (ids < 1).any():
            raise_invalid(name, "counted from 1", first_bad(ids, ids < 1))
    n_users, n_items = int(users.max()), int(items.max())
    liked = ratings >= LIKED
    codes = np.unique((users[liked] - 1) * n_items + items[liked] - 1)
    return Pairs(codes // n_items, codes % n_items), n_users, n_items


def split(pairs: Pairs, n_users: int, n_items: int, seed: int) -> Split:
    """A tenth of each user's pairs for validation, a tenth for the test, at random; at least one each from 3 pairs on.

    Tenths are rounded down. A user of 1 or 2 pairs has them all in training.
    """
    order = np.lexsort((np.random.default_rng(seed).random(len(pairs)), pairs.users))
    users, items = pairs.users[order], pairs.items[order]
    counts = np.bincount(users, minlength=n_users)
    place = np.arange(len(users)) - (np.cumsum(counts) - counts)[users]
    held = np.where(counts >= 3, np.maximum(1, counts // 10), 0)[users]
    part = np.where(place < held, 1, np.where(place < 2 * held, 2, 0))
    train, validation, test = (Pairs(users[part == which], items[part == which]) for which in range(3))
    return Split(train, validation, test, n_users, n_items)


class _Hop(torch.autograd.Function):
    """A product with a symmetric sparse matrix, which is then its own in the backward pass too.

    torch's own would transpose the matrix each time.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, vectors: Tensor) -> Tensor:
        """One hop."""
        ctx.matrix = matrix
        return matrix @ vectors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        """The same hop."""
        return None, ctx.matrix @ gradients[0]


class LightGCN:
    """A vector for each user and item, passed along the edges of the training data.

        e(l + 1) = D^-1/2 A D^-1/2 e(l)        score(user, item) = mean over l of e_user . mean over l of e_item

    He, Deng, Wang, Li, Zhang, Wang. LightGCN. SIGIR 2020. With 0 hops it is matrix factorisation.
    """

    def __init__(self, data: Split, seed: int, *, width: int = 64, hops: int = 2, scale: float = 0.1) -> None:
        """Normal vectors of deviation `scale`, the same for equal seeds, and the graph of the training pairs."""
        self.n_users, self.hops, self.width = data.n_users, hops, width
        nodes = data.n_users + data.n_items
        users, items = data.train.users, data.n_users + data.train.items
        ends = np.stack([np.concatenate([users, items]), np.concatenate([items, users])])
        degree = np.maximum(np.bincount(ends[0], minlength=nodes), 1)
        weights = (1 / np.sqrt(degree[ends[0]] * degree[ends[1]])).astype(np.float32)
        with warnings.catch_warnings():  # torch says once a process that its sparse rows are young
            warnings.simplefilter("ignore")
            graph = torch.sparse_coo_tensor(torch.from_numpy(ends), torch.from_numpy(weights), (nodes, nodes))
            self.graph = graph.coalesce().to_sparse_csr()
        start = torch.Generator().manual_seed(seed)
        self.vectors = (scale * torch.randn(nodes, width, generator=start)).requires_grad_()

    def layers(self) -> Tensor:
        """(users + items, hops + 1, d), layer 0 first."""
        found = [self.vectors]
        for _ in range(self.hops):
            found.append(_Hop.apply(self.graph, found[-1]))
        return torch.stack(found, dim=1)

    @torch.no_grad()
    def scores(self) -> Tensor:
        """(users, items), all of them."""
        pooled = self.layers().mean(dim=1)
        return pooled[: self.n_users] @ pooled[self.n_users :].T


def ranking(scores: Tensor, known: Pairs, wanted: Pairs, top: int = TOP) -> Ranking:
    """Recall and NDCG of the `top` items that are not `known`, against those `wanted`.

    recall   found / wanted
    NDCG     sum of 1 / log2(place + 1) over what is found, against that of min(wanted, top) first places

    Users who want nothing are left out of the means.
    """
    open_scores = scores.clone()
    open_scores[known.users, known.items] = -torch.inf
    best = open_scores.topk(min(top, scores.shape[1]), dim=1).indices
    relevant = torch.zeros(scores.shape, dtype=torch.bool)
    relevant[wanted.users, wanted.items] = True
    there = relevant.sum(dim=1)
    hits = relevant.gather(1, best)[there > 0].double()
    there = there[there > 0]
    gains = 1 / torch.log2(torch.arange(best.shape[1], dtype=torch.float64) + 2)
    ideal = gains.cumsum(0)[there.clamp(max=len(gains)) - 1]
    return Ranking(float((hits.sum(dim=1) / there).mean()), float((hits @ gains / ideal).mean()))


def auc(scores: Tensor, known: Pairs, pairs: Pairs) -> float:
    """The mean over `pairs` of the share of their user's items that score lower, of all items not `known`; ties half.

    That is the AUC over uniform negatives with nothing drawn: the one that `naysay.quantity.estimate` asks for.
    """
    others = scores.clone()
    others[known.users, known.items] = torch.nan  # compares as neither lower nor equal
    free = (~others.isnan()).sum(dim=1)
    total = 0.0
    for first in range(0, len(pairs), _BLOCK):
        users, items = pairs.users[first : first + _BLOCK], pairs.items[first : first + _BLOCK]
        own, row = scores[users, items][:, None], others[users]
        lower = (row < own).sum(dim=1) + 0.5 * (row == own).sum(dim=1)
        total += float((lower / free[users]).sum())
    return total / len(pairs)

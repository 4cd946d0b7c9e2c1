"""LightGCN, and with 0 hops matrix factorisation."""

from __future__ import annotations

import warnings
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from naysay.checks import check_kind, check_number, check_whole, public
from naysay.positives import Positives
from naysay.tasks._parts import Device


class _Product(torch.autograd.Function):
    """A product with a sparse matrix, whose transpose is given for the backward pass: torch would make it each time."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, vectors: Tensor) -> Tensor:
        """The product."""
        ctx.matrix = transposed
        return matrix @ vectors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        """The product with the transpose."""
        return None, None, ctx.matrix @ gradients[0]


def sparse_product(matrix: Tensor, transposed: Tensor, vectors: Tensor) -> Tensor:
    """Matrix (n, m) times vectors (m, d), with gradients of the vectors."""
    multiply: Any = _Product.apply
    found: Tensor = multiply(matrix, transposed, vectors)
    return found


def sparse_rows(rows: Any, columns: Any, weights: Any, shape: tuple[int, int], device: Device = "cpu") -> Tensor:
    """A matrix of sparse rows, on a device."""
    places = torch.from_numpy(np.stack([rows, columns]).astype(np.int64))
    with warnings.catch_warnings():  # torch says once a process that its sparse rows are young
        warnings.simplefilter("ignore")
        values = torch.from_numpy(np.asarray(weights, np.float32))
        return torch.sparse_coo_tensor(places, values, shape).coalesce().to_sparse_csr().to(device)


@final
@public
class LightGCN:
    """A vector for each user and item, passed along the edges of the training data.

        e(l + 1) = D^-1/2 A D^-1/2 e(l)        score(user, item) = mean over l of e_user . mean over l of e_item

    With 0 hops it is matrix factorisation. He, Deng, Wang, Li, Zhang, Wang. LightGCN. SIGIR 2020.

    Args:
        train: The pairs of users and items.
        seed: Equal seeds give equal vectors.
        width: d, the number of coordinates.
        hops: How far vectors are passed.
        scale: Standard deviation of the normal vectors at the start.
        device: Where torch keeps the vectors and the graph. The first vectors are drawn on the processor.

    Attributes:
        vectors: (users + items, d) the parameters.
        graph: The normalised adjacency matrix, as sparse rows; None with 0 hops.

    Examples:
        >>> import naysay as ns
        >>> model = ns.tasks.LightGCN(ns.Positives.from_pairs([0, 1], [0, 2]), seed=0, width=4)
        >>> model.layers().shape
        torch.Size([5, 3, 4])
    """

    def __init__(
        self,
        train: Positives,
        seed: int,
        *,
        width: int = 64,
        hops: int = 2,
        scale: float = 0.1,
        device: Device = "cpu",
    ) -> None:
        """Make the vectors and the graph."""
        check_kind("train", train, Positives, "a Positives")
        check_number("scale", scale, above=0, finite=True)
        self.width, self.hops = check_whole("width", width, 1), check_whole("hops", hops, 0)
        nodes = train.n_anchors + train.n_items
        self.graph = _graph(train, nodes, device) if hops else None
        start = torch.Generator().manual_seed(check_whole("seed", seed, 0))
        self.vectors = (scale * torch.randn(nodes, width, generator=start)).to(device).requires_grad_()

    def layers(self) -> Tensor:
        """(users + items, hops + 1, d), layer 0 first."""
        found = [self.vectors]
        for _ in range(self.hops):
            graph: Any = self.graph
            found.append(sparse_product(graph, graph, found[-1]))  # it is symmetric
        return torch.stack(found, dim=1) if self.hops else self.vectors[:, None]

    def pooled(self, layers: Tensor) -> Tensor:
        """(users + items, d): the mean over layers."""
        return layers.mean(dim=1) if self.hops else layers.squeeze(1)  # a view, where a copy would cost a step's time


def _graph(train: Positives, nodes: int, device: Device) -> Tensor:
    """D^-1/2 A D^-1/2 of the pairs, in both directions."""
    users, items = train.pairs()
    items = items + train.n_anchors
    ends = np.stack([np.concatenate([users, items]), np.concatenate([items, users])])
    degree = np.maximum(np.bincount(ends[0], minlength=nodes), 1)
    weights = 1 / np.sqrt(degree[ends[0]] * degree[ends[1]])
    return sparse_rows(ends[0], ends[1], weights, (nodes, nodes), device)

"""GraphSAGE with two layers over the whole graph."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from torch import Tensor

from naysay.checks import check_kind, check_whole, public
from naysay.tasks.graphs import Graph
from naysay.tasks.lightgcn import sparse_product, sparse_rows


@final
@public
class GraphSage:
    """Two layers of mean aggregation, over all neighbours:  h' = relu(h A + mean over neighbours of h B).

    The first layer reads the features of the nodes, or a learned vector for each node if there are none; the second
    has no relu. Hamilton, Ying, Leskovec. Inductive Representation Learning on Large Graphs. NIPS 2017 (which samples
    neighbours, and normalises).

    Args:
        data: The graph; its training edges are those of the layers.
        seed: Equal seeds give equal parameters.
        width: d, the number of coordinates.

    Attributes:
        parameters: The tensors that are trained.

    Examples:
        >>> import naysay as ns
        >>> graph = ns.tasks.split_edges([[a, b] for a in range(6) for b in range(a)])
        >>> GraphSage(graph, seed=0, width=4).vectors().shape
        torch.Size([6, 4])
    """

    def __init__(self, data: Graph, seed: int, *, width: int = 64) -> None:
        """Make the parameters and the matrix of means."""
        check_kind("data", data, Graph, "a Graph")
        self.width = check_whole("width", width, 1)
        start = torch.Generator().manual_seed(check_whole("seed", seed, 0))
        rows = np.concatenate([data.train[:, 0], data.train[:, 1]])
        columns = np.concatenate([data.train[:, 1], data.train[:, 0]])
        shares, size = 1 / np.bincount(rows, minlength=data.n_nodes)[rows], (data.n_nodes, data.n_nodes)
        self.means = sparse_rows(rows, columns, shares, size), sparse_rows(columns, rows, shares, size)
        self.features: tuple[Tensor, Tensor] | None = None
        given = width
        if data.features is not None:
            there = data.features.tocoo()
            given = there.shape[1]
            places, values = (there.row, there.col), there.data
            turned = sparse_rows(*places[::-1], values, there.shape[::-1])
            self.features = sparse_rows(*places, values, there.shape), turned
        shapes = [(given, width), (given, width), (width, width), (width, width)]
        if self.features is None:
            shapes.append((data.n_nodes, width))
        made = [torch.randn(shape, generator=start) / shape[0] ** 0.5 for shape in shapes]
        if self.features is None:
            made[4] = torch.randn(shapes[4], generator=start)
        self.parameters = [part.requires_grad_() for part in made]

    def vectors(self) -> Tensor:
        """(n_nodes, d) of all nodes, with gradients."""
        own, near, own_2, near_2 = self.parameters[:4]
        if self.features is None:
            first = self.parameters[4] @ own, self.parameters[4] @ near
        else:
            first = sparse_product(*self.features, own), sparse_product(*self.features, near)
        hidden = torch.relu(first[0] + sparse_product(*self.means, first[1]))
        found: Tensor = hidden @ own_2 + sparse_product(*self.means, hidden @ near_2)
        return found

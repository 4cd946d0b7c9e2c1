"""GraphSAGE with two layers over the whole graph."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from naysay.arrays import to_torch
from naysay.checks import check_kind, check_number, check_whole, public
from naysay.tasks._parts import Device
from naysay.tasks.graphs import Graph
from naysay.tasks.lightgcn import sparse_product, sparse_rows

View = tuple[tuple[Tensor, Tensor], Tensor]  # the means over the edges that are left, and 0 for hidden coordinates


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
        device: Where torch keeps the parameters and the graph. The first parameters are drawn on the processor.

    Attributes:
        parameters: The tensors that are trained.

    Examples:
        >>> import naysay as ns
        >>> graph = ns.tasks.split_edges([[a, b] for a in range(6) for b in range(a)])
        >>> GraphSage(graph, seed=0, width=4).vectors().shape
        torch.Size([6, 4])
    """

    def __init__(self, data: Graph, seed: int, *, width: int = 64, device: Device = "cpu") -> None:
        """Make the parameters and the matrix of means."""
        check_kind("data", data, Graph, "a Graph")
        self.width = check_whole("width", width, 1)
        start = torch.Generator().manual_seed(check_whole("seed", seed, 0))
        self.edges, self.n_nodes, self.device = data.train, data.n_nodes, device
        self.means = _means(data.train, data.n_nodes, device)
        self.features: tuple[Tensor, Tensor] | None = None
        given = width
        if data.features is not None:
            there = data.features.tocoo()
            given = there.shape[1]
            places, values = (there.row, there.col), there.data
            turned = sparse_rows(*places[::-1], values, there.shape[::-1], device)
            self.features = sparse_rows(*places, values, there.shape, device), turned
        shapes = [(given, width), (given, width), (width, width), (width, width)]
        if self.features is None:
            shapes.append((data.n_nodes, width))
        made = [torch.randn(shape, generator=start) / shape[0] ** 0.5 for shape in shapes]
        if self.features is None:
            made[4] = torch.randn(shapes[4], generator=start)
        self.parameters = [part.to(device).requires_grad_() for part in made]

    def vectors(self, view: View | None = None) -> Tensor:
        """(n_nodes, d) of all nodes, or of a `view` of the graph, with gradients."""
        own, near, own_2, near_2 = self.parameters[:4]
        means = self.means
        if view is not None:
            means, kept = view
            own, near = own * kept[:, None], near * kept[:, None]
        if self.features is None:
            first = self.parameters[4] @ own, self.parameters[4] @ near
        else:
            first = sparse_product(*self.features, own), sparse_product(*self.features, near)
        hidden = torch.relu(first[0] + sparse_product(*means, first[1]))
        found: Tensor = hidden @ own_2 + sparse_product(*means, hidden @ near_2)
        return found

    def view(self, rng: np.random.Generator, *, edges: float, features: float) -> View:
        """The graph without a random share of its edges, and of the coordinates of its features, for `vectors`."""
        check_number("edges", edges, at_least=0, at_most=1)
        check_number("features", features, at_least=0, at_most=1)
        kept = self.edges[rng.random(len(self.edges)) >= edges]
        columns = rng.random(self.parameters[0].shape[0]) >= features
        return _means(kept, self.n_nodes, self.device), to_torch(columns.astype(np.float32), self.device)


def _means(edges: Any, n_nodes: int, device: Device) -> tuple[Tensor, Tensor]:
    """The matrix that takes means over neighbours, and its transpose."""
    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T
    shares = 1 / np.bincount(rows, minlength=n_nodes)[rows]
    size = (n_nodes, n_nodes)
    return sparse_rows(rows, columns, shares, size, device), sparse_rows(columns, rows, shares, size, device)

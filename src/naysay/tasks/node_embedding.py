"""Nodes of a graph: skip-gram on walks, or GraphSAGE, by the classes of nodes or by held-out edges."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import pools, samplers
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_kind, check_one_of, check_whole, public
from naysay.evaluate import auc, average_precision, linear_probe
from naysay.losses import sampled_bce
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.tasks._graph_arms import two_views
from naysay.tasks._parts import (
    HELD_OUT,
    Device,
    Ids,
    checked_device,
    mean_hardness,
    put,
    recorded_device,
    usual_batch,
)
from naysay.tasks._products import row_scores
from naysay.tasks.graph_sage import GraphSage
from naysay.tasks.graphs import Graph
from naysay.types import Negatives, Query

MODELS = ("skip-gram", "graphsage")
WALKS, LENGTH, WINDOW = 5, 6, 3  # walks from each node, their steps, and the steps between two nodes of a pair
CANDIDATES, MARGIN, RHO, TRIALS = 16, 1.0, 1.0, 50
_SAMPLERS = ("Static", "Dynamic", "SoftmaxWeights", "Warp", "SemiHard", "PercentileRange", "Mixed")
_POOLS = ("Everything", "InBatch", "KHop", "Walks", "PageRank", "popularity", "item_oriented", "log_uniform")


@final
@public
class NodeEmbedding:
    """The task of embedding nodes: data, model and measures, the same for all kinds of negatives.

    Positives are pairs of nodes that random walks visit within three steps, 5 walks of 6 steps from each node, the same
    for all arms and seeds (DeepWalk; Perozzi, Al-Rfou, Skiena. KDD 2014). A step minimises `losses.sampled_bce`, which
    is skip-gram's. With classes the measure is the accuracy of `evaluate.linear_probe` on the vectors, without them
    the AUC of held-out edges against as many pairs of nodes without an edge, by the scores of the model.

    Args:
        data: The graph.
        model: "skip-gram" (a vector for each node, and one for each node as a neighbour) or "graphsage".
        width: The number of coordinates of a vector.
        batch: Pairs of a step; by default a hundredth of all, rounded to a power of two from 256 to 4,096.
        device: Where torch keeps the parameters and trains, such as "cuda". Draws and measures are made on the
            processor.

    Examples:
        >>> import naysay as ns
        >>> task = NodeEmbedding(ns.tasks.split_edges([[a, b] for a in range(9) for b in range(a)]))
        >>> task.measure, task.pairs
        ('auc', 540)
    """

    name = "graph"
    models = MODELS
    own: Mapping[str, str] = MappingProxyType(
        {"in-batch": "Static(InBatch(positives))", "GRACE": "grace(graphsage)", "BGRL": "bgrl(graphsage)"}
    )
    quick_steps = 120
    quick = ("uniform:5", "popularity:5", "k-hop:5", "dynamic:5", "in-batch:5")
    k = 5
    defaults = (
        *("uniform:5", "popularity:5", "k-hop:5", "walks:5"),
        *("dynamic:5", "softmax-weights:5", "in-batch:5"),
    )

    def __init__(
        self,
        data: Graph,
        model: str = "skip-gram",
        *,
        width: int = 64,
        batch: int | None = None,
        device: Device = "cpu",
    ) -> None:
        """Walk, and draw the pairs without an edge."""
        check_kind("data", data, Graph, "a Graph")
        check_one_of("model", model, MODELS)
        self.data, self.model, self.width = data, model, check_whole("width", width, 1)
        self.device = checked_device(device)
        self.graph = Positives.from_edges(data.train, n_nodes=data.n_nodes)
        held = np.concatenate([data.validation, data.test])
        self.held = Positives.from_edges(held, n_nodes=data.n_nodes)
        self.measure = "auc" if data.labels is None else "accuracy"
        self.walks = _walks(self.graph)
        self.pairs = len(self.walks) * (LENGTH + 1 - WINDOW) * WINDOW
        self.batch = usual_batch(self.pairs, batch)
        nobody = self.graph.union(self.held)
        self.absent = {
            "validation": _without_edge(data.validation, nobody, 0),
            "test": _without_edge(data.test, nobody, 1),
        }

    def settings(self) -> dict[str, Any]:
        """What decides the result, for the record."""
        known = {"task": self.name, "model": self.model, "data": repr(self.data)}
        walks = {"walks": WALKS, "length": LENGTH, "window": WINDOW, "false negatives": HELD_OUT}
        sizes = {"width": self.width, "batch": self.batch}
        return {**known, "fingerprint": self.data.fingerprint(), **sizes, **walks, **recorded_device(self.device)}

    def ends(self, rows: Ids) -> tuple[Tensor, Tensor]:
        """Both nodes of some pairs; every other pair is turned around."""
        walk, rest = np.divmod(rows, (LENGTH + 1 - WINDOW) * WINDOW)
        place, further = np.divmod(rest, WINDOW)
        first, second = self.walks[walk, place], self.walks[walk, place + 1 + further]
        turned = (walk + rest) % 2 == 1
        ends = np.where(turned, second, first), np.where(turned, first, second)
        return to_torch(ends[0], self.device), to_torch(ends[1], self.device)

    def start(self, seed: int) -> NodeEmbedder:
        """A model before training, the same for equal seeds."""
        return NodeEmbedder(self, seed)


@final
@public
class NodeEmbedder:
    """A model of `NodeEmbedding` that is being trained: what samplers ask, the loss of a step, and the measures.

    Args:
        task: The task.
        seed: Of the first vectors and of the draws.

    Examples:
        >>> import naysay as ns
        >>> task = NodeEmbedding(ns.tasks.split_edges([[a, b] for a in range(9) for b in range(0, a, 2)]))
        >>> sampler = ns.samplers.Static(ns.pools.Everything(task.graph))
        >>> task.start(0).loss(np.arange(4), sampler, 2, step=0)[1].shape
        (4, 2)
    """

    def __init__(self, task: NodeEmbedding, seed: int) -> None:
        """Make the vectors."""
        self.task, self.seed, self.hardness = task, seed, float("nan")
        self.first = task.data.n_nodes if task.model == "skip-gram" else 0  # the row of the first node as a neighbour
        if task.model == "skip-gram":
            start = torch.Generator().manual_seed(seed)
            table = torch.randn(2 * task.data.n_nodes, task.width, generator=start)
            self.parameters = [(0.1 * table).to(task.device).requires_grad_()]
        else:
            self.network = GraphSage(task.data, seed, width=task.width, device=task.device)
            self.parameters = self.network.parameters
        self._encode()

    def _encode(self) -> None:
        """All vectors, as samplers and the loss of this step see them."""
        self.vectors = self.parameters[0] if self.task.model == "skip-gram" else self.network.vectors()
        self.table = self.vectors.detach()

    def score(self, nodes: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the scores of nodes (B, n) as neighbours of nodes (B,), without gradients."""
        return row_scores(self.table, nodes.contiguous(), (ids + self.first).contiguous())

    def parts(self) -> Mapping[str, Any]:
        """{name: value}: what the code of an arm may name. Arms that name anything else do not fit."""
        offered: dict[str, Any] = {name: getattr(samplers, name) for name in _SAMPLERS}
        offered |= {name: getattr(pools, name) for name in _POOLS}
        graph, degrees = self.task.graph, np.bincount(self.task.data.train.ravel(), minlength=self.task.data.n_nodes)
        data = {"graph": graph, "positives": graph, "known": graph, "counts": degrees, "n_items": graph.n_items}
        own = {"np": np, "score": self.score, "pool": pools.Everything(graph)}
        numbers = {"candidates": CANDIDATES, "margin": MARGIN, "rho": RHO, "trials": TRIALS}
        model = {"graphsage": self.network} if self.task.model == "graphsage" else {}
        return {**offered, **data, **own, **numbers, **two_views(self), **model}

    def loss(self, rows: Ids, sampler: Any, k: int, *, step: int) -> tuple[Tensor, Negatives]:
        """The mean loss of some pairs with k negatives each, and the negatives."""
        nodes, near = self.task.ends(rows)
        self._encode()
        query = Query(nodes, positives=near, vectors=self.table[nodes], step=step)
        negatives: Negatives = sampler.sample(query, k, rng=rng_for(self.seed, step))
        others = torch.cat([near[:, None], negatives.ids.clamp(min=0)], dim=1) + self.first
        scores = row_scores(self.vectors, nodes, others)
        self.hardness = mean_hardness(scores[:, 0], scores[:, 1:], negatives.mask)
        found = sampled_bce(scores[:, 0], scores[:, 1:], mask=negatives.mask, weights=negatives.weights)
        return found.mean(), negatives

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The share of the negatives of some pairs that are held-out edges."""
        drawn = negatives.numpy()
        nodes = np.broadcast_to(to_numpy(self.task.ends(rows)[0])[:, None], drawn.ids.shape)[drawn.mask]
        return float(self.task.held.contains(nodes, drawn.ids[drawn.mask]).mean()) if len(nodes) else float("nan")

    def snapshot(self) -> list[Tensor]:
        """All parameters, for `measure`."""
        return [part.detach().clone() for part in self.parameters]

    @torch.no_grad()
    def measure(self, state: list[Tensor], part: str = "validation") -> dict[str, float]:
        """Measure the "validation" or the "test" part by the parameters of a `snapshot`."""
        check_one_of("part", part, ("validation", "test"))
        now, data = self.snapshot(), self.task.data
        put(self.parameters, state)
        self._encode()
        scores = [self._links(edges) for edges in (getattr(data, part), self.task.absent[part])]
        found = {"auc": auc(*scores), "average precision": average_precision(*scores)}
        if data.labels is not None:
            vectors = to_numpy(self.table[: data.n_nodes])
            known, asked = data.parts == 0, data.parts == ("train", "validation", "test").index(part)
            right = linear_probe(vectors[known], data.labels[known], vectors[asked]) == data.labels[asked]
            found = {"accuracy": float(right.mean()), **found}
        put(self.parameters, now)
        return found

    def _links(self, edges: Ids) -> NDArray[np.float32]:
        """The scores of edges, the sum over both directions."""
        one, other = to_torch(edges.T.copy(), self.task.device)
        ways = ((one, other), (other, one))
        scores = [to_numpy(row_scores(self.table, a, (b + self.first)[:, None])[:, 0]) for a, b in ways]
        return np.asarray(scores[0] + scores[1])


def _walks(graph: Positives) -> Ids:
    """(walks, LENGTH + 1) nodes of random walks from each node that has an edge."""
    step = pools.Walks(graph, length=1)
    places = [np.repeat(np.flatnonzero(graph.count() > 1), WALKS)]  # each node is also known of itself
    for place in range(LENGTH):
        places.append(step.endpoints(places[-1], 1, rng=rng_for(0, place))[:, 0])
    return np.stack(places, axis=1)


def _without_edge(edges: Ids, known: Positives, seed: int) -> Ids:
    """As many pairs as there are edges, with the same first nodes, and any other that no edge leads to."""
    drawn = pools.Everything(known, distinct=False).draw(Query(edges[:, 0]), 1, rng=rng_for(seed))
    there = drawn.mask[:, 0]
    return np.stack([edges[there, 0], drawn.ids[there, 0]], axis=1)

"""Graphs: edges in three parts; skip-gram on walks, or GraphSAGE, by the classes of nodes or by held-out edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from torch import Tensor
from torch.nn.functional import elu, normalize

from naysay import pools
from naysay.arrays import to_numpy, to_torch
from naysay.checks import (
    as_array,
    check_kind,
    check_number,
    check_range,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.files import as_path
from naysay.lab._domain import (
    HELD_OUT,
    NUMBERS,
    PARTS,
    Device,
    Ids,
    Learner,
    Step,
    Task,
    checksum,
    first_present,
    mean_hardness,
    of_positives,
    offered,
    random_tenths,
    rows_kept,
    share_held_out,
    sizes_of_parts,
    uses,
)
from naysay.lab._files import File, ids_of, left_out, read_npz, text_lines
from naysay.lab._scores import row_scores
from naysay.lab._views import minus_cosine
from naysay.lab.probes import auc, average_precision, linear_probe
from naysay.lab.recommendation import sparse_product, sparse_rows
from naysay.losses import in_batch, sampled_bce
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.text import counted
from naysay.types import Negatives, Query
from naysay.vocabulary import Vocabulary, ids_of_names

_EDGES = {"train": ("edges",), "validation": ("valid_pos", "validation"), "test": ("test_pos", "test")}
_NODES = ("train_idx", "val_idx", "test_idx")
WALKS, LENGTH, WINDOW = 5, 6, 3  # walks from each node, their steps, and the steps between two nodes of a pair
# Two views of a graph: the shares of edges and features that a view leaves out, nodes of a step, and slow encoders.
DROPPED_EDGES, DROPPED_FEATURES = 0.3, 0.3
TEMPERATURE, NODES, MOMENTUM = 0.5, 512, 0.99


# ---- data ------------------------------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, eq=False)
class Graph:
    """Undirected edges to train on, to validate with and to test on; classes and features of nodes.

    Held-out edges with a node that has no training edge are left out, as are those of an earlier part; notes count
    them. An edge counts once, whatever its direction.

    Args:
        train: (n, 2) ids of nodes, from 0.
        validation: (n, 2) edges for validation.
        test: (n, 2) edges for the test.
        n_nodes: The number of nodes.
        labels: (n_nodes,) the class of each node, -1 for none.
        parts: (n_nodes,) which nodes a classifier is trained on (0), validated (1) and tested on (2); -1 for none. By
            default a half, a quarter and a quarter of the labelled nodes, at random.
        features: (n_nodes, d), NumPy or scipy.sparse, for models that use them.
        notes: Sentences about the data.

    Raises:
        NaysayError: If ids are not nodes, a part is empty, or there are fewer than two classes.

    Examples:
        >>> Graph([[0, 1], [1, 2], [2, 3]], [[0, 2]], [[1, 3]], 4)
        Graph(4 nodes, train 3 edges, validation 1 edge, test 1 edge)
    """

    train: Any
    validation: Any
    test: Any
    n_nodes: int
    labels: Any = None
    parts: Any = None
    features: Any = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_whole("n_nodes", self.n_nodes, 2)
        for name in PARTS:
            object.__setattr__(self, name, _distinct_edges(name, getattr(self, name), self.n_nodes))
        self._leave_out_edges()
        if self.labels is not None:
            self._check_labels()
        elif self.parts is not None:
            raise_invalid("parts", "left out without `labels`", "some")
        if self.features is not None:
            rows: Any = self.features if issparse(self.features) else as_array("features", self.features)
            if rows.ndim != 2 or rows.shape[0] != self.n_nodes:
                raise_invalid("features", f"of {self.n_nodes} rows, one for each node", f"shape {rows.shape}")
            object.__setattr__(self, "features", csr_array(rows.astype(np.float32)))

    def _leave_out_edges(self) -> None:
        seen = np.bincount(self.train.ravel(), minlength=self.n_nodes) > 0
        key = np.array([self.n_nodes, 1])
        earlier = self.train @ key
        for name in PARTS[1:]:
            edges = getattr(self, name)
            reasons = {
                "nodes without a training edge": ~seen[edges].all(axis=1),
                "in an earlier part, too": np.isin(edges @ key, earlier),
            }
            kept = rows_kept(self, name, "edge", reasons, "at least one edge between nodes that training has")
            object.__setattr__(self, name, edges[kept])
            earlier = np.concatenate([earlier, edges[kept] @ key])

    def _check_labels(self) -> None:
        """Classes from 0 on for nodes that have one, and the part of each node."""
        labels = whole_numbers("labels", to_numpy(self.labels)).astype(np.int64)
        if len(labels) != self.n_nodes:
            raise_invalid("labels", f"of length {self.n_nodes}, one for each node, -1 for none", len(labels))
        if self.parts is None:
            order = np.random.default_rng(0).permutation(np.flatnonzero(labels >= 0))
            parts = np.full(self.n_nodes, -1, np.int64)
            for part, nodes in enumerate(np.split(order, [len(order) // 2, 3 * len(order) // 4])):
                parts[nodes] = part
        else:
            parts = whole_numbers("parts", to_numpy(self.parts)).astype(np.int64)
            if len(parts) != self.n_nodes:
                raise_invalid("parts", f"of length {self.n_nodes}, one for each node", len(parts))
            parts[labels < 0] = -1
        for part, name in enumerate(PARTS):
            classes = len(np.unique(labels[parts == part]))
            if classes < (2 if name == "train" else 1):
                rule = f"nodes of two classes to train on, and some for the {name}"
                raise_invalid("labels", rule, f"{classes} classes")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "parts", parts)

    def fingerprint(self) -> str:
        """A checksum of all edges, classes and features, 16 digits."""
        arrays = [getattr(self, name) for name in PARTS]
        arrays += [] if self.labels is None else [self.labels, self.parts]
        arrays += [] if self.features is None else [self.features.indptr, self.features.indices, self.features.data]
        return checksum(f"{self.n_nodes}", *arrays)

    def __repr__(self) -> str:
        classes = "" if self.labels is None else f", {len(np.unique(self.labels[self.labels >= 0]))} classes"
        features = "" if self.features is None else f", {counted(self.features.shape[1], 'feature')}"
        return f"Graph({counted(self.n_nodes, 'node')}, {sizes_of_parts(self, 'edge')}{classes}{features})"


def _distinct_edges(name: str, edges: Any, n_nodes: int) -> Ids:
    """(n, 2) distinct edges, the smaller node first."""
    given = whole_numbers(name, to_numpy(edges), "(n, 2)").astype(np.int64)
    if given.shape[1] != 2:
        raise_invalid(name, "of shape (n, 2)", f"shape {given.shape}")
    if not len(given):
        raise_invalid(name, "at least one edge", "none")
    check_range(name, given, n_nodes, "nodes")
    loops = np.flatnonzero(given[:, 0] == given[:, 1])
    if len(loops):
        node = given[loops[0], 0]
        raise_invalid(name, "edges between different nodes", f"{node} and {node} at row {loops[0]}")
    return np.unique(np.sort(given, axis=1), axis=0)


@public
def split_edges(
    edges: Any, n_nodes: int | None = None, *, labels: Any = None, features: Any = None, seed: int = 0
) -> Graph:
    """Hold out a tenth of the edges for validation and a tenth for the test, at random.

    Args:
        edges: (n, 2) ids of nodes. Repeated edges and those of a node to itself are left out.
        n_nodes: By default the largest id plus one.
        labels: As in `Graph`.
        features: As in `Graph`.
        seed: Of the choice.

    Raises:
        NaysayError: If there are fewer than ten edges.

    Examples:
        >>> split_edges([[a, b] for a in range(6) for b in range(a)])
        Graph(6 nodes, train 13 edges, validation 1 edge, test 1 edge)
    """
    given = whole_numbers("edges", to_numpy(edges), "(n, 2)").astype(np.int64)
    if given.shape[1] == 2:
        given = given[given[:, 0] != given[:, 1]]
    size = int(given.max(initial=0)) + 1 if n_nodes is None else check_whole("n_nodes", n_nodes, 2)
    known = _distinct_edges("edges", given, size)
    if len(known) < 10:
        raise_invalid("edges", "at least ten different edges, for a split", len(known))
    train, validation, test = random_tenths(known, seed)
    return Graph(train, validation, test, size, labels, features=features)


@public
def read_graph(
    path: File,
    *,
    labels: File | None = None,
    validation: File | None = None,
    test: File | None = None,
    seed: int = 0,
) -> Graph:
    r"""Read an edge list.

    Args:
        path: A text file with two names of nodes in each line, separated by a tab, a comma or a space; lines at its
            beginning that start with # are skipped. Or an .npz file with `edges` (n, 2), and if there are any
            `n_nodes`, `labels`, `features` (or feat_data, feat_indices, feat_indptr and feat_shape of a CSR matrix),
            `train_idx`, `val_idx` and `test_idx` (nodes), `valid_pos` and `test_pos` (edges).
        labels: A text file of nodes and their classes, in the same form.
        validation: Edges for validation.
        test: Edges for the test.
        seed: Of the split, if the parts are not given.

    Raises:
        NaysayError: If a file is missing or not such a list, or a node of `labels` is not in the graph.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "knows.tsv"
        ...     _ = file.write_text("# who knows whom\n" + "".join(f"p{a}\tp{b}\n" for a in range(6) for b in range(a)))
        ...     read_graph(file)
        Graph(6 nodes, train 13 edges, validation 1 edge, test 1 edge)
    """
    given = {"path": path, "validation": validation, "test": test}
    files = {name: as_path(name, file) for name, file in given.items() if file is not None}
    if len(files) == 2:
        present, missing = ("validation", "test") if test is None else ("test", "validation")
        raise_invalid(missing, f"given along with `{present}`", "nothing")
    if files["path"].suffix.lower() == ".npz":
        left_out("for an .npz file, which has its own", labels=labels, validation=validation, test=test)
        return _graph_of_arrays(read_npz(files["path"]), seed)
    columns = [column for name, file in files.items() for column in text_lines(name, file, ("first", "second"))]
    ids, names = ids_of("path", columns)
    parts = [np.stack(pair, axis=1) for pair in zip(ids[::2], ids[1::2], strict=True)]
    size = 1 + max(int(part.max()) for part in parts)
    classes = None if labels is None else _classes(as_path("labels", labels), names, size)
    if len(parts) == 1:
        return split_edges(parts[0], size, labels=classes, seed=seed)
    train, held_out, tested = parts
    return Graph(train, held_out, tested, size, classes)


def _classes(path: Path, names: Vocabulary | None, size: int) -> Ids:
    """The classes of nodes, -1 for those that the file does not name."""
    nodes, labels = text_lines("labels", path, ("first", "second"))
    classes = np.full(size, -1, np.int64)
    classes[ids_of_names(names or Vocabulary([]), "labels", nodes)] = ids_of("labels", [labels])[0][0]
    return classes


def _graph_of_arrays(arrays: dict[str, Any], seed: int) -> Graph:
    if "edges" not in arrays:
        raise_invalid("path", "an .npz file with edges", f"{', '.join(arrays) or 'nothing'}")
    size = int(arrays["n_nodes"]) if "n_nodes" in arrays else int(arrays["edges"].max(initial=0)) + 1
    features: Any = arrays.get("features")
    if "feat_indptr" in arrays:
        sparse = tuple(arrays[f"feat_{name}"] for name in ("data", "indices", "indptr"))
        features = csr_array(sparse, shape=tuple(arrays["feat_shape"]))
    edges = [first_present(arrays, names) for names in _EDGES.values()]
    if any(part is None for part in edges):
        made = split_edges(edges[0], size, seed=seed)
        edges = [made.train, made.validation, made.test]
    labels, parts = arrays.get("labels"), None
    if labels is not None and all(name in arrays for name in _NODES):
        parts = np.full(size, -1, np.int64)
        for part, name in enumerate(_NODES):
            parts[arrays[name]] = part
    train, validation, test = edges
    return Graph(train, validation, test, size, labels, parts, features)


# ---- model -----------------------------------------------------------------------------------------------------------

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
        dim: The number of coordinates.
        device: Where torch keeps the parameters and the graph. The first parameters are drawn on the processor.

    Attributes:
        parameters: The tensors that are trained.

    Examples:
        >>> import naysay as ns
        >>> graph = ns.lab.split_edges([[a, b] for a in range(6) for b in range(a)])
        >>> GraphSage(graph, seed=0, dim=4).vectors().shape
        torch.Size([6, 4])
    """

    def __init__(self, data: Graph, seed: int, *, dim: int = 64, device: Device = "cpu") -> None:
        """Make the parameters and the matrix of means."""
        check_kind("data", data, Graph, "a Graph")
        self.dim = check_whole("dim", dim, 1)
        start = torch.Generator().manual_seed(check_whole("seed", seed, 0))
        self.edges, self.n_nodes, self.device = data.train, data.n_nodes, device
        self.means = _means(data.train, data.n_nodes, device)
        self.features: tuple[Tensor, Tensor] | None = None
        given = dim
        if data.features is not None:
            matrix = data.features.tocoo()
            given = matrix.shape[1]
            self.features = (
                sparse_rows(matrix.row, matrix.col, matrix.data, matrix.shape, device),
                sparse_rows(matrix.col, matrix.row, matrix.data, matrix.shape[::-1], device),
            )
        shapes = [(given, dim), (given, dim), (dim, dim), (dim, dim)]
        weights = [torch.randn(shape, generator=start) / shape[0] ** 0.5 for shape in shapes]
        if self.features is None:
            torch.randn((data.n_nodes, dim), generator=start)  # seeds keep their vectors
            weights.append(torch.randn((data.n_nodes, dim), generator=start))
        self.parameters = [part.to(device).requires_grad_() for part in weights]

    def vectors(self, view: View | None = None) -> Tensor:
        """(n_nodes, dim) of all nodes, or of a `view` of the graph, with gradients."""
        own, near, own_2, near_2 = self.parameters[:4]
        means = self.means
        if view is not None:
            means, kept = view
            own, near = own * kept[:, None], near * kept[:, None]
        if self.features is None:
            of_node, of_neighbours = self.parameters[4] @ own, self.parameters[4] @ near
        else:
            of_node, of_neighbours = sparse_product(*self.features, own), sparse_product(*self.features, near)
        hidden = torch.relu(of_node + sparse_product(*means, of_neighbours))
        vectors: Tensor = hidden @ own_2 + sparse_product(*means, hidden @ near_2)
        return vectors

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


# ---- task ------------------------------------------------------------------------------------------------------------


@final
@public
class NodeEmbedding(Task):
    """The task of embedding nodes: data, model and measures, the same for all kinds of negatives.

    Positives are pairs of nodes that random walks visit within three steps, 5 walks of 6 steps from each node, the same
    for all arms and seeds (DeepWalk; Perozzi, Al-Rfou, Skiena. KDD 2014). A step minimises `losses.sampled_bce`, which
    is skip-gram's. With classes the measure is the accuracy of `lab.linear_probe` on the vectors, without them the AUC
    of held-out edges against as many pairs of nodes without an edge, by the scores of the model.

    Args:
        data: The graph.
        model: "skip-gram" (a vector for each node, and one for each node as a neighbour) or "graphsage".
        dim: The number of coordinates of a vector.
        batch: Pairs of a step; by default a hundredth of all, rounded to a power of two from 256 to 4,096.
        device: Where torch keeps the parameters and trains, such as "cuda". Draws and measures are made on the
            processor.

    Examples:
        >>> import naysay as ns
        >>> task = NodeEmbedding(ns.lab.split_edges([[a, b] for a in range(9) for b in range(a)]))
        >>> task.measure, task.pairs
        ('auc', 540)
    """

    name = "graph"
    models = ("skip-gram", "graphsage")
    own: Mapping[str, str] = MappingProxyType(
        {"in-batch": "Static(InBatch(positives))", "GRACE": "grace(graphsage)", "BGRL": "bgrl(graphsage)"}
    )
    quick_steps = 120
    k = 5
    quick = ("uniform:5", "popularity:5", "k-hop:5", "dynamic:5", "in-batch:5")
    defaults = (
        *("uniform:5", "popularity:5", "k-hop:5", "walks:5"),
        *("dynamic:5", "softmax-weights:5", "in-batch:5"),
    )

    def __init__(
        self,
        data: Graph,
        model: str = "skip-gram",
        *,
        dim: int = 64,
        batch: int | None = None,
        device: Device = "cpu",
    ) -> None:
        """Walk, and draw the pairs without an edge."""
        super().__init__(data, Graph, model, device)
        self.dim = check_whole("dim", dim, 1)
        self.graph = Positives.from_edges(data.train, n_nodes=data.n_nodes)
        self.held = Positives.from_edges(np.concatenate([data.validation, data.test]), n_nodes=data.n_nodes)
        self.measure = "auc" if data.labels is None else "accuracy"
        self.walks = _walks(self.graph)
        self.set_batch(len(self.walks) * (LENGTH + 1 - WINDOW) * WINDOW, batch)
        edges = self.graph.union(self.held)
        self.absent = {
            part: _without_edge(getattr(data, part), edges, seed) for seed, part in enumerate(("validation", "test"))
        }
        walks = {"walks": WALKS, "length": LENGTH, "window": WINDOW}
        self.sizes = {"dim": self.dim, **walks, "false negatives": HELD_OUT}

    def ends(self, rows: Ids) -> tuple[Tensor, Tensor]:
        """Both nodes of some pairs; every other pair is turned around."""
        walk, rest = np.divmod(rows, (LENGTH + 1 - WINDOW) * WINDOW)
        place, further = np.divmod(rest, WINDOW)
        first, second = self.walks[walk, place], self.walks[walk, place + 1 + further]
        turned = (walk + rest) % 2 == 1
        anchors, partners = np.where(turned, second, first), np.where(turned, first, second)
        return to_torch(anchors, self.device), to_torch(partners, self.device)

    def start(self, seed: int) -> NodeEmbedder:
        """A model before training, the same for equal seeds."""
        return NodeEmbedder(self, seed)


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
    filled = drawn.mask[:, 0]
    return np.stack([edges[filled, 0], drawn.ids[filled, 0]], axis=1)


@final
@public
class NodeEmbedder(Learner):
    """A model of `NodeEmbedding` in training, made by `NodeEmbedding.start`."""

    def __init__(self, task: NodeEmbedding, seed: int) -> None:
        """Make the vectors."""
        self.task, self.seed = task, seed
        self.first = task.data.n_nodes if task.model == "skip-gram" else 0  # the row of the first node as a neighbour
        if task.model == "skip-gram":
            start = torch.Generator().manual_seed(seed)
            table = torch.randn(2 * task.data.n_nodes, task.dim, generator=start)
            self.parameters = [(0.1 * table).to(task.device).requires_grad_()]
        else:
            self.network = GraphSage(task.data, seed, dim=task.dim, device=task.device)
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
        classes = offered(
            "Static Dynamic SoftmaxWeights Warp SemiHard PercentileRange Mixed",
            "Everything InBatch KHop Walks PageRank popularity item_oriented log_uniform",
        )
        degrees = np.bincount(self.task.data.train.ravel(), minlength=self.task.data.n_nodes)
        data = {**of_positives(self.task.graph), "graph": self.task.graph, "counts": degrees}
        steps = {"score": self.score, "grace": self._grace, "bgrl": self._bgrl}
        network = {"graphsage": self.network} if self.task.model == "graphsage" else {}
        return {**classes, **data, **steps, **NUMBERS, **network}

    def loss(self, rows: Ids, sampler: Any, k: int, *, step: int) -> tuple[Tensor, Negatives]:
        """The mean loss of some pairs with k negatives each, and the negatives."""
        nodes, near = self.task.ends(rows)
        self._encode()
        query = Query(nodes, positives=near, vectors=self.table[nodes], step=step)
        negatives: Negatives = sampler.sample(query, k, rng=rng_for(self.seed, step))
        others = torch.cat([near[:, None], negatives.ids.clamp(min=0)], dim=1) + self.first
        scores = row_scores(self.vectors, nodes, others)
        self.hardness = mean_hardness(scores[:, 0], scores[:, 1:], negatives.mask)
        loss = sampled_bce(scores[:, 0], scores[:, 1:], mask=negatives.mask, weights=negatives.weights)
        return loss.mean(), negatives

    def _views(self, network: GraphSage, step: int) -> list[View]:
        """Two views of the graph: each without some edges, and some coordinates of the features of all nodes."""
        rng = rng_for(self.seed, step)
        return [network.view(rng, edges=DROPPED_EDGES, features=DROPPED_FEATURES) for _ in range(2)]

    def _two_layers(self, dim: int) -> Callable[[Tensor], Tensor]:
        """Two layers after the network, trained with it."""
        start = torch.Generator().manual_seed(self.seed)
        drawn = [torch.randn(dim, dim, generator=start) / dim**0.5 for _ in range(2)]
        first, second = (part.to(self.task.device).requires_grad_() for part in drawn)
        self.parameters = [*self.parameters, first, second]
        return lambda vectors: elu(vectors @ first) @ second

    def _grace(self, network: GraphSage) -> Step:
        """Zhu et al. Deep Graph Contrastive Representation Learning. 2020. Some nodes at a step, there all."""
        project = self._two_layers(network.dim)

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            anchors = self.task.ends(rows)[0]
            distinct = list(dict.fromkeys(to_numpy(anchors).tolist()))[:NODES]
            nodes = to_torch(np.array(distinct), anchors.device)
            views = [normalize(project(network.vectors(view)[nodes]), dim=1) for view in self._views(network, step)]
            scores = views[0].detach() @ views[1].detach().T / TEMPERATURE
            others = ~torch.eye(len(nodes), dtype=torch.bool, device=anchors.device)
            self.hardness = mean_hardness(scores.diagonal(), scores, others)
            partner = torch.arange(2 * len(nodes), device=anchors.device).roll(len(nodes))
            loss = in_batch(torch.cat(views), partner=partner, temperature=TEMPERATURE).mean()
            return loss, Negatives(torch.where(nodes == anchors[:, None], -1, nodes))

        return uses("batch", step_of)

    def _bgrl(self, network: GraphSage) -> Step:
        """Thakoor et al. Large-Scale Representation Learning on Graphs via Bootstrapping. ICLR 2022. All nodes."""
        predict, slow = self._two_layers(network.dim), copy(network)
        slow.parameters = [part.detach().clone() for part in network.parameters]

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, None]:
            first, second = self._views(network, step)
            with torch.no_grad():
                for target, part in zip(slow.parameters, network.parameters, strict=True):
                    target.lerp_(part, 1 - MOMENTUM)
                of_first, of_second = slow.vectors(first), slow.vectors(second)
            one_way = minus_cosine(predict(network.vectors(first)), of_second)
            other_way = minus_cosine(predict(network.vectors(second)), of_first)
            return 2 + one_way + other_way, None

        return uses("none", step_of)

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The share of the negatives of some pairs that are held-out edges."""
        return share_held_out(self.task.held, to_numpy(self.task.ends(rows)[0]), negatives, without=float("nan"))

    def _measured(self, part: str) -> dict[str, float]:
        data = self.task.data
        self._encode()
        scores = [self._scores_of_edges(edges) for edges in (getattr(data, part), self.task.absent[part])]
        measures = {"auc": auc(*scores), "average precision": average_precision(*scores)}
        if data.labels is None:
            return measures
        vectors = to_numpy(self.table[: data.n_nodes])
        trained, asked = data.parts == 0, data.parts == PARTS.index(part)
        right = linear_probe(vectors[trained], data.labels[trained], vectors[asked]) == data.labels[asked]
        return {"accuracy": float(right.mean()), **measures}

    def _scores_of_edges(self, edges: Ids) -> NDArray[np.float32]:
        """The scores of edges, the sum over both directions."""
        one, other = to_torch(edges.T.copy(), self.task.device)
        ways = ((one, other), (other, one))
        scores = [to_numpy(row_scores(self.table, a, (b + self.first)[:, None])[:, 0]) for a, b in ways]
        return np.asarray(scores[0] + scores[1])

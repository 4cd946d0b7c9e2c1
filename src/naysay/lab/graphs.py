"""Graphs: edges in three parts; skip-gram on walks, or GraphSAGE, by the classes of nodes or by held-out edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from torch import Tensor, nn

from naysay import pools
from naysay.arrays import to_numpy, to_torch
from naysay.checks import as_array, check_range, check_whole, public, raise_invalid, whole_numbers
from naysay.files import as_path
from naysay.lab._data import (
    PARTS,
    File,
    Ids,
    check_left_out,
    checksum,
    first_present,
    ids_of,
    random_tenths,
    read_npz,
    rows_kept,
    sizes_of_parts,
    text_lines,
)
from naysay.lab._task import (
    ADAPTIVE_K,
    HELD_OUT,
    Device,
    PairLearner,
    Task,
)
from naysay.lab.probes import auc, average_precision, linear_probe
from naysay.lab.recommendation import SparseMatrix
from naysay.losses import sampled_bce
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.text import counted
from naysay.types import Query
from naysay.vocabulary import Vocabulary, ids_of_names

_EDGES = {"train": ("edges",), "validation": ("valid_pos", "validation"), "test": ("test_pos", "test")}
_NODES = ("train_idx", "val_idx", "test_idx")
_PROPOSED = 10  # neighbours that a chain of MCNS may move to
_WALKS, _LENGTH, _WINDOW = 5, 6, 3  # walks from each node, their steps, and the steps between two nodes of a pair


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
    pairs = whole_numbers(name, to_numpy(edges), "(n, 2)").astype(np.int64)
    if pairs.shape[1] != 2:
        raise_invalid(name, "of shape (n, 2)", f"shape {pairs.shape}")
    if not len(pairs):
        raise_invalid(name, "at least one edge", "none")
    check_range(name, pairs, n_nodes, "nodes")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        node = pairs[loops[0], 0]
        raise_invalid(name, "edges between different nodes", f"{node} and {node} at row {loops[0]}")
    return np.unique(np.sort(pairs, axis=1), axis=0)


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
    pairs = whole_numbers("edges", to_numpy(edges), "(n, 2)").astype(np.int64)
    if pairs.shape[1] == 2:
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    size = int(pairs.max(initial=0)) + 1 if n_nodes is None else check_whole("n_nodes", n_nodes, 2)
    known = _distinct_edges("edges", pairs, size)
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
        check_left_out("for an .npz file, which has its own", labels=labels, validation=validation, test=test)
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


class SkipGram(nn.Module):
    """A vector for each node, and then one for each node as a neighbour of others."""

    def __init__(self, data: Graph, seed: int, *, dim: int, device: Device) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.table = nn.Parameter((0.1 * torch.randn(2 * data.n_nodes, dim, generator=random)).to(device))

    def vectors(self) -> Tensor:
        """(2 n_nodes, dim)."""
        return self.table


class GraphSage(nn.Module):
    """Two layers of mean aggregation, over all neighbours:  h' = relu(h A + mean over neighbours of h B).

    The first layer reads the features of the nodes, or a learned vector for each node if there are none; the second
    has no relu. Hamilton, Ying, Leskovec. Inductive Representation Learning on Large Graphs. NIPS 2017 (which samples
    neighbours, and normalises).
    """

    def __init__(self, data: Graph, seed: int, *, dim: int, device: Device) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.means = _means(data.train, data.n_nodes, device)
        if data.features is None:
            self.features: Any = nn.Parameter(torch.randn(data.n_nodes, dim, generator=random).to(device))
        else:
            matrix = data.features.tocoo()
            self.features = SparseMatrix(matrix.row, matrix.col, matrix.data, matrix.shape, device)
        width = dim if data.features is None else data.features.shape[1]

        def layer(n_inputs: int) -> nn.Parameter:
            return nn.Parameter((torch.randn(n_inputs, dim, generator=random) / n_inputs**0.5).to(device))

        self.of_node, self.of_neighbours = layer(width), layer(width)
        self.of_node_2, self.of_neighbours_2 = layer(dim), layer(dim)

    def vectors(self) -> Tensor:
        """(n_nodes, dim)."""
        hidden = torch.relu(self.features @ self.of_node + self.means @ (self.features @ self.of_neighbours))
        return hidden @ self.of_node_2 + self.means @ (hidden @ self.of_neighbours_2)


def _means(edges: Ids, n_nodes: int, device: Device) -> SparseMatrix:
    """The matrix that takes means over neighbours."""
    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T
    shares = 1 / np.bincount(rows, minlength=n_nodes)[rows]
    return SparseMatrix(rows, columns, shares, (n_nodes, n_nodes), device)


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
    methods: Mapping[str, str] = MappingProxyType(
        {
            "in-batch": "Static(InBatch(positives))",
            **ADAPTIVE_K,
            "IRGAN": (
                "with_loss(Learned(Everything(positives), generator, generator_optimizer, sigmoid_score), sampled_bce)"
            ),
            "MCNS": "with_loss(MarkovChain(graph, probability, neighbours, power=0.25), hinge, margin=0.1)",
        }
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
        self.known = Positives.from_edges(data.train, n_nodes=data.n_nodes)
        self.held = Positives.from_edges(np.concatenate([data.validation, data.test]), n_nodes=data.n_nodes)
        self.measure = "auc" if data.labels is None else "accuracy"
        self.walks = _walks(self.known)
        self.set_batch(len(self.walks) * (_LENGTH + 1 - _WINDOW) * _WINDOW, batch)
        edges = self.known.union(self.held)
        self.absent = {
            part: _without_edge(getattr(data, part), edges, seed) for seed, part in enumerate(("validation", "test"))
        }
        walks = {"walks": _WALKS, "length": _LENGTH, "window": _WINDOW}
        self.sizes = {"dim": self.dim, **walks, "false negatives": HELD_OUT}

    def pairs_of(self, rows: Ids) -> tuple[Ids, Ids]:
        """Both nodes of some pairs; every other pair is turned around."""
        walk, rest = np.divmod(rows, (_LENGTH + 1 - _WINDOW) * _WINDOW)
        place, further = np.divmod(rest, _WINDOW)
        first, second = self.walks[walk, place], self.walks[walk, place + 1 + further]
        turned = (walk + rest) % 2 == 1
        return np.where(turned, second, first), np.where(turned, first, second)

    def start(self, seed: int) -> NodeEmbedder:
        """A model before training, the same for equal seeds."""
        return NodeEmbedder(self, seed)


def _walks(graph: Positives) -> Ids:
    """(walks, _LENGTH + 1) nodes of random walks from each node that has an edge."""
    step = pools.Walks(graph, length=1)
    places = [np.repeat(np.flatnonzero(graph.count() > 1), _WALKS)]  # each node is also known of itself
    for place in range(_LENGTH):
        places.append(step.endpoints(places[-1], 1, rng=rng_for(0, place))[:, 0])
    return np.stack(places, axis=1)


def _neighbours(graph: Positives) -> Ids:
    """(nodes, most) at most so many neighbours of each node, the same ones each time; -1 for none."""
    nodes, others = graph.pairs()
    different = nodes != others  # each node is also known of itself
    nodes, others = nodes[different], others[different]
    order = np.lexsort((np.random.default_rng(0).random(len(nodes)), nodes))
    nodes, others = nodes[order], others[order]
    place = np.arange(len(nodes)) - np.searchsorted(nodes, nodes)
    kept = place < _PROPOSED
    lists = np.full((graph.n_anchors, _PROPOSED), -1, np.int64)
    lists[nodes[kept], place[kept]] = others[kept]
    return lists


def _without_edge(edges: Ids, known: Positives, seed: int) -> Ids:
    """As many pairs as there are edges, with the same first nodes, and any other that no edge leads to."""
    drawn = pools.Everything(known, distinct=False).draw(Query(edges[:, 0]), 1, rng=rng_for(seed))
    filled = drawn.mask[:, 0]
    return np.stack([edges[filled, 0], drawn.ids[filled, 0]], axis=1)


@final
class NodeEmbedder(PairLearner):
    """A model of `NodeEmbedding` in training."""

    task_loss = staticmethod(sampled_bce)

    def __init__(self, task: NodeEmbedding, seed: int) -> None:
        self.task, self.seed = task, seed
        network = SkipGram if task.model == "skip-gram" else GraphSage
        self.network: SkipGram | GraphSage = network(task.data, seed, dim=task.dim, device=task.device)
        self.first = task.data.n_nodes if task.model == "skip-gram" else 0  # skip-gram has other vectors of neighbours
        self.encode()

    def encode(self) -> None:
        """See `PairLearner.encode`."""
        self.vectors = self.network.vectors()
        self.table = self.vectors.detach()

    def parts(self) -> dict[str, Any]:
        """See `Learner.parts`."""
        graph, n_nodes = self.task.known, self.task.data.n_nodes
        degrees = np.bincount(self.task.data.train.ravel(), minlength=n_nodes)
        return {**super().parts(), "graph": graph, "counts": degrees, "neighbours": _neighbours(graph)}

    def measured(self, part: str) -> dict[str, float]:
        """See `Learner.measured`."""
        data = self.task.data
        self.encode()
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
        scores = self.score(one, other[:, None]) + self.score(other, one[:, None])
        return np.asarray(to_numpy(scores[:, 0]))

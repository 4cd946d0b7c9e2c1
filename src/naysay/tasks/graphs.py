"""A graph in three parts of edges, with classes and features of the nodes if there are any."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from naysay import tables
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_range, check_whole, public, raise_invalid, whole_numbers
from naysay.errors import NaysayError
from naysay.files import as_path, check_file, raise_unreadable
from naysay.tasks._parts import PARTS, Ids, add_notes, checksum, kept_of
from naysay.text import counted
from naysay.vocabulary import Vocabulary, ids_of_names

_EDGES = {"train": ("edges",), "validation": ("valid_pos", "validation"), "test": ("test_pos", "test")}
_NODES = {"train": "train_idx", "validation": "val_idx", "test": "test_idx"}


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
        >>> Graph([[0, 1], [1, 2]], [[0, 2]], [[2, 2]], 3)
        Traceback (most recent call last):
        naysay.errors.NaysayError: Graph: `test` must be edges between different nodes, got 2 and 2 at row 0.
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
        size = check_whole("n_nodes", self.n_nodes, 2)
        for name in PARTS:
            object.__setattr__(self, name, _edges(name, getattr(self, name), size))
        seen = np.bincount(self.train.ravel(), minlength=size) > 0
        keys = self.train @ (size, 1)
        for name in PARTS[1:]:
            edges = getattr(self, name)
            reasons = {
                "nodes without a training edge": ~seen[edges].all(axis=1),
                "in an earlier part, too": np.isin(edges @ (size, 1), keys),
            }
            kept, notes = kept_of(name, "edge", reasons, "at least one edge between nodes that training has")
            object.__setattr__(self, name, edges[kept])
            add_notes(self, *notes)
            keys = np.concatenate([keys, edges[kept] @ (size, 1)])
        if self.labels is not None:
            self._check_labels(size)
        elif self.parts is not None:
            raise_invalid("parts", "left out without `labels`", "some")
        if self.features is not None:
            rows: Any = self.features if issparse(self.features) else as_array("features", self.features)
            if rows.ndim != 2 or rows.shape[0] != size:
                raise_invalid("features", f"of {size} rows, one for each node", f"shape {rows.shape}")
            object.__setattr__(self, "features", csr_array(rows.astype(np.float32)))

    def _check_labels(self, size: int) -> None:
        """Classes from 0 on for nodes that have one, and the part of each node."""
        classes = whole_numbers("labels", to_numpy(self.labels)).astype(np.int64)
        if len(classes) != size:
            raise_invalid("labels", f"of length {size}, one for each node, -1 for none", len(classes))
        labelled = np.flatnonzero(classes >= 0)
        parts = np.full(size, -1, np.int64)
        if self.parts is None:
            order = np.random.default_rng(0).permutation(labelled)
            for part, nodes in enumerate(np.split(order, [len(order) // 2, 3 * len(order) // 4])):
                parts[nodes] = part
        else:
            parts = whole_numbers("parts", to_numpy(self.parts)).astype(np.int64)
            if len(parts) != size:
                raise_invalid("parts", f"of length {size}, one for each node", len(parts))
            parts[classes < 0] = -1
        for part, name in enumerate(PARTS):
            found = len(np.unique(classes[parts == part]))
            if found < (2 if part == 0 else 1):
                raise_invalid(
                    "labels", f"nodes of two classes to train on, and some for the {name}", f"{found} classes"
                )
        object.__setattr__(self, "labels", classes)
        object.__setattr__(self, "parts", parts)

    def fingerprint(self) -> str:
        """A checksum of all edges, classes and features, 16 digits."""
        arrays = [getattr(self, name) for name in PARTS]
        arrays += [] if self.labels is None else [self.labels, self.parts]
        arrays += [] if self.features is None else [self.features.indptr, self.features.indices, self.features.data]
        return checksum(f"{self.n_nodes}", *arrays)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {counted(len(getattr(self, name)), 'edge')}" for name in PARTS)
        classes = "" if self.labels is None else f", {len(np.unique(self.labels[self.labels >= 0]))} classes"
        features = "" if self.features is None else f", {counted(self.features.shape[1], 'feature')}"
        return f"Graph({counted(self.n_nodes, 'node')}, {parts}{classes}{features})"


def _edges(name: str, edges: Any, size: int) -> Ids:
    """(n, 2) distinct edges, the smaller node first."""
    found = whole_numbers(name, to_numpy(edges), "(n, 2)").astype(np.int64)
    if found.shape[1] != 2:
        raise_invalid(name, "of shape (n, 2)", f"shape {found.shape}")
    if not len(found):
        raise_invalid(name, "at least one edge", "none")
    check_range(name, found, size, "nodes")
    same = np.flatnonzero(found[:, 0] == found[:, 1])
    if len(same):
        got = f"{found[same[0], 0]} and {found[same[0], 1]} at row {same[0]}"
        raise_invalid(name, "edges between different nodes", got)
    return np.unique(np.sort(found, axis=1), axis=0)


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
    found = whole_numbers("edges", to_numpy(edges), "(n, 2)").astype(np.int64)
    found = found[found[:, 0] != found[:, 1]] if found.shape[1] == 2 else found
    size = int(found.max(initial=0)) + 1 if n_nodes is None else check_whole("n_nodes", n_nodes, 2)
    known = _edges("edges", found, size)
    if len(known) < 10:
        raise_invalid("edges", "at least ten different edges, for a split", len(known))
    order, tenth = np.random.default_rng(seed).permutation(len(known)), len(known) // 10
    train, held, test = np.split(known[order], [len(known) - 2 * tenth, len(known) - tenth])
    return Graph(train, held, test, size, labels, features=features)


@public
def read_graph(
    path: str | Path,
    *,
    labels: str | Path | None = None,
    validation: str | Path | None = None,
    test: str | Path | None = None,
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
    file = as_path("path", path)
    if (validation is None) != (test is None):
        given, missing = ("validation", "test") if test is None else ("test", "validation")
        raise_invalid(missing, f"given along with `{given}`", "nothing")
    check_file("path", file)
    if file.suffix.lower() == ".npz":
        for name, value in {"labels": labels, "validation": validation, "test": test}.items():
            if value is not None:
                raise_invalid(name, "left out for an .npz file, which has its own", repr(str(value)))
        return _arrays(file, seed)
    others = {"validation": validation, "test": test}
    files = {"path": file, **{name: as_path(name, one) for name, one in others.items() if one is not None}}
    read = [_two_columns(name, one) for name, one in files.items()]
    ends: Any = read[0][0]
    for column in [column for part in read for column in part][1:]:
        ends = tables.joined(ends, column)
    ids, vocabulary = tables.encode("path", ends, True)
    lengths = np.repeat([len(part[0]) for part in read], 2)
    columns = np.split(ids.astype(np.int64), np.cumsum(lengths)[:-1])
    parts = [np.stack(columns[place : place + 2], axis=1) for place in range(0, len(columns), 2)]
    size, classes = int(ids.max()) + 1, None
    if labels is not None:
        classes = _classes(as_path("labels", labels), vocabulary, size)
    if len(parts) == 1:
        return split_edges(parts[0], size, labels=classes, seed=seed)
    return Graph(parts[0], parts[1], parts[2], size, classes)


def _two_columns(parameter: str, path: Path) -> list[Any]:
    """The two columns of a text file, as strings."""
    check_file(parameter, path)
    skip, first = 0, ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not line.startswith("#"):
                first = line
                break
            skip += 1
    delimiter = next((mark for mark in "\t, " if mark in first.strip()), None)
    if delimiter is None:
        raise_invalid(parameter, "two names in each line, separated by a tab, a comma or a space", repr(first.strip()))
    try:
        read = tables.read_lines(path, delimiter, ("first", "second"), skip)
    except NaysayError as error:
        error.args = (error.args[0].replace("`path`", f"`{parameter}`"),)
        raise
    return [*tables.columns(read, first="first", second="second").values()]


def _classes(path: Path, vocabulary: Vocabulary | None, size: int) -> Ids:
    """The classes of nodes, -1 for those that the file does not name."""
    nodes, names = _two_columns("labels", path)
    found = np.full(size, -1, np.int64)
    rows = tables.encode("labels", names, True)[0]
    found[ids_of_names(vocabulary or Vocabulary([]), "labels", nodes)] = rows
    return found


def _arrays(path: Path, seed: int) -> Graph:
    """The graph of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            held = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise_unreadable("path", "an .npz file of arrays", path, error)
    if "edges" not in held:
        raise_invalid("path", "an .npz file with edges", f"{', '.join(held) or 'nothing'}")
    size = int(held["n_nodes"]) if "n_nodes" in held else int(held["edges"].max(initial=0)) + 1
    features: Any = held.get("features")
    if "feat_indptr" in held:
        parts = tuple(held[f"feat_{name}"] for name in ("data", "indices", "indptr"))
        features = csr_array(parts, shape=tuple(held["feat_shape"]))
    labels = held.get("labels")
    edges = {part: next((held[name] for name in names if name in held), None) for part, names in _EDGES.items()}
    if edges["validation"] is None or edges["test"] is None:
        made = split_edges(edges["train"], size, seed=seed)
        edges = {name: getattr(made, name) for name in PARTS}
    nodes: NDArray[np.int64] | None = None
    if labels is not None and all(name in held for name in _NODES.values()):
        nodes = np.full(size, -1, np.int64)
        for part, name in enumerate(_NODES.values()):
            nodes[held[name]] = part
    return Graph(edges["train"], edges["validation"], edges["test"], size, labels, nodes, features)

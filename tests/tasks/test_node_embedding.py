"""Graphs: how edges and classes are read and split, that both models learn, and what the arms draw."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import naysay as ns
from naysay.comparing import fitting_methods
from naysay.comparing._run import Run
from naysay.comparing.arms import Arm, read_arms
from naysay.errors import NaysayError
from naysay.tasks import Graph, GraphSage, NodeEmbedding, read_graph, split_edges

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 2
ENDS = np.argwhere(RNG.random((60, 60)) < np.where(LABELS[:, None] == LABELS, 0.3, 0.01))
GRAPH = split_edges(ENDS, 60, labels=LABELS)
UNIFORM = "Static(Everything(positives))"


def trained(task, steps, rate):
    run = Run(task, Arm("uniform:5", 5, UNIFORM), rate, 0)
    before = run.model.measure(run.model.snapshot(), "test")
    run.train(steps)
    return before, run.model.measure(run.model.snapshot(), "test")


@pytest.mark.parametrize("features", [None, csr_array(np.eye(60))])
@pytest.mark.parametrize("model", ["skip-gram", "graphsage"])
def test_both_models_learn_classes_and_edges(model, features):
    data = Graph(GRAPH.train, GRAPH.validation, GRAPH.test, 60, LABELS, features=features)
    before, after = trained(NodeEmbedding(data, model, width=16), 40, 0.05 if model == "skip-gram" else 0.01)
    assert after["accuracy"] >= 0.8
    assert after["auc"] > max(0.65, before["auc"])


@pytest.mark.parametrize("features", [None, csr_array(RNG.random((60, 5)))])
def test_the_layers_are_means_of_neighbours(features):
    data = Graph(GRAPH.train, GRAPH.validation, GRAPH.test, 60, LABELS, features=features)
    model = GraphSage(data, 0, width=3)
    own, near, own_2, near_2 = (part.detach().double().numpy() for part in model.parameters[:4])
    given = model.parameters[4].detach().double().numpy() if features is None else features.toarray()
    neighbours = [[] for _ in range(60)]
    for a, b in GRAPH.train.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)

    def layer(x, one, other):
        means = [
            np.mean([x[node] for node in nodes], axis=0) if nodes else np.zeros(x.shape[1]) for nodes in neighbours
        ]
        return x @ one + np.array(means) @ other

    expected = layer(np.maximum(layer(given, own, near), 0), own_2, near_2)
    np.testing.assert_allclose(model.vectors().detach().numpy(), expected, atol=1e-5)


def test_without_classes_the_measure_is_of_edges():
    task = NodeEmbedding(split_edges(ENDS, 60), width=16)
    assert task.measure == "auc"
    assert trained(task, 4, 0.05)[1].keys() == {"auc", "average precision"}


def test_pairs_are_those_of_walks_and_every_row_is_one():
    task = NodeEmbedding(GRAPH)
    joined = task.graph.contains(task.walks[:, :-1].ravel(), task.walks[:, 1:].ravel())
    assert joined.all()
    first, second = (part.numpy() for part in task.ends(np.arange(task.pairs)))
    adjacent = np.zeros((60, 60), bool)
    adjacent[tuple(GRAPH.train.T)] = True
    adjacent |= adjacent.T
    near = [adjacent]
    for _ in range(2):
        near.append(near[-1].astype(int) @ adjacent > 0)
    assert np.any([reached[first, second] for reached in near], axis=0).all()
    assert {*first} == {*np.unique(GRAPH.train)}


def test_pairs_without_an_edge_have_none():
    task = NodeEmbedding(GRAPH)
    every = {tuple(edge) for name in ("train", "validation", "test") for edge in getattr(GRAPH, name).tolist()}
    for part in ("validation", "test"):
        assert len(task.absent[part]) == len(getattr(GRAPH, part))
        assert not every & {tuple(sorted(pair)) for pair in task.absent[part].tolist()}
        assert (task.absent[part][:, 0] != task.absent[part][:, 1]).all()


def test_every_fitting_method_trains_and_draws_no_edge():
    task = NodeEmbedding(GRAPH, width=8, batch=64)
    parts = task.start(0).parts()
    names = fitting_methods(parts, task.own)
    assert {"uniform", "popularity", "k-hop", "walks", "dynamic", "in-batch", "word2vec"} <= {*names}
    assert not {"TransE", "MixGCF", "judged"} & {*names}
    for arm in read_arms([f"{name}:2" for name in names if name != "pagerank-window"], parts, task.defaults, task.own):
        run = Run(task, arm, 0.01, 0)
        run.train(1)
        nodes, ids = task.ends(run.batch)[0].numpy(), run.negatives.numpy().ids
        assert not task.graph.contains(nodes, ids, relation="any").any(), arm.name
        assert ids.max() >= 0, arm.name


def test_held_out_edges_are_the_false_negatives():
    task = NodeEmbedding(GRAPH)
    rows = np.arange(300)
    nodes = task.ends(rows)[0].numpy()
    held = np.concatenate([GRAPH.validation, GRAPH.test, GRAPH.validation[:, ::-1], GRAPH.test[:, ::-1]])
    partner = np.full(60, -1)
    partner[held[:, 0]] = held[:, 1]
    model = task.start(0)
    assert model.false_share(rows, ns.Negatives(nodes[:, None])) == 0
    assert model.false_share(rows, ns.Negatives(partner[nodes][:, None])) == 1


def test_edge_lists_are_read(tmp_path):
    lines = "".join(f"n{a} n{b}\n" for a, b in ENDS.tolist())
    (tmp_path / "edges.txt").write_text("# a graph\n# of friends\n" + lines)
    (tmp_path / "classes.csv").write_text("".join(f"n{node},{'xy'[label]}\n" for node, label in enumerate(LABELS)))
    read = read_graph(tmp_path / "edges.txt", labels=tmp_path / "classes.csv")
    assert (read.n_nodes, len(np.unique(read.labels))) == (60, 2)
    assert sum(len(part) for part in (read.train, read.validation, read.test)) <= len(GRAPH.train) * 1.3
    (tmp_path / "classes.csv").write_text("nobody,x\n")
    with pytest.raises(NaysayError, match=r"`labels` must be"):
        read_graph(tmp_path / "edges.txt", labels=tmp_path / "classes.csv")
    (tmp_path / "one.txt").write_text("alone\n")
    with pytest.raises(NaysayError, match=r"`path` must be two names in each line, separated by a tab, a comma or a s"):
        read_graph(tmp_path / "one.txt")


def test_files_of_arrays_are_read(tmp_path):
    features = csr_array(np.eye(60, 5))
    arrays = {f"feat_{name}": getattr(features, name) for name in ("data", "indices", "indptr", "shape")}
    parts = {"train_idx": np.arange(20), "val_idx": np.arange(20, 40), "test_idx": np.arange(40, 60)}
    np.savez(tmp_path / "g.npz", edges=ENDS[ENDS[:, 0] != ENDS[:, 1]], labels=LABELS, **arrays, **parts)
    read = read_graph(tmp_path / "g.npz")
    assert read.features.shape == (60, 5)
    assert read.parts.tolist() == [0] * 20 + [1] * 20 + [2] * 20
    np.savez(tmp_path / "no.npz", nodes=[1])
    with pytest.raises(NaysayError, match=r"`path` must be an .npz file with edges, got nodes"):
        read_graph(tmp_path / "no.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": [[0, 99]]}, "`train` must be"),
        ({"train": [[0, 0]]}, "`train` must be edges between different nodes, got 0 and 0 at row 0."),
        ({"test": np.zeros((0, 2), int)}, "`test` must be at least one edge, got none."),
        ({"test": [[58, 59]], "train": [[0, 1]]}, "`validation` must be at least one edge between nodes that training"),
        ({"labels": LABELS[:5]}, "`labels` must be of length 60, one for each node, -1 for none, got 5."),
        ({"labels": np.zeros(60, int)}, "`labels` must be nodes of two classes to train on, and some for the train"),
        ({"labels": None, "parts": np.zeros(60, int)}, "`parts` must be left out without `labels`, got some."),
        ({"features": np.eye(3)}, "`features` must be of 60 rows, one for each node, got shape (3, 3)."),
    ],
)
def test_data_that_does_not_fit_is_explained(change, message):
    given = {name: getattr(GRAPH, name) for name in ("train", "validation", "test", "n_nodes", "labels")}
    with pytest.raises(NaysayError) as caught:
        Graph(**given | change)
    assert str(caught.value).startswith(f"Graph: {message}")
    with pytest.raises(NaysayError, match=r"`edges` must be at least ten different edges, for a split, got 1"):
        split_edges([[0, 1], [1, 0], [1, 1]])

"""Models of the five domains against plain matrices and loops."""

import zlib

import numpy as np
import pytest
import torch
from lab_worlds import GRAPH, NODE_CLASSES, interactions
from scipy.sparse import csr_array

import naysay as ns
from naysay.lab import Graph, Pieces, SubwordEncoder
from naysay.lab.graphs import GraphSage
from naysay.lab.images import ConvEncoder, view
from naysay.lab.knowledge_graph import TripleModel
from naysay.lab.recommendation import LightGCN

# ---- recommendation ----


def test_lightgcn_passes_vectors_along_training_edges():
    train = interactions(3, 0.5, 8, 15).train
    model = LightGCN(train, 0, dim=4, hops=2)
    matrix = np.zeros((23, 23))
    for user, item in zip(*train.pairs(), strict=True):
        matrix[user, 8 + item] = matrix[8 + item, user] = 1
    degree = np.maximum(matrix.sum(axis=1), 1)
    matrix /= np.sqrt(degree[:, None] * degree)
    own = model.vectors.detach().double().numpy()
    expected = np.stack([own, matrix @ own, matrix @ matrix @ own], axis=1)
    np.testing.assert_allclose(model.layers().detach().numpy(), expected, atol=1e-6)
    slopes = torch.from_numpy(np.random.default_rng(0).random((23, 3, 4)).astype(np.float32))
    (model.layers() * slopes).sum().backward()
    back = slopes.double().numpy()
    gradient = back[:, 0] + matrix.T @ back[:, 1] + matrix.T @ matrix.T @ back[:, 2]
    np.testing.assert_allclose(model.vectors.grad.numpy(), gradient, atol=1e-5)


# ---- knowledge graphs ----


def plain_score(model, triple):
    """The score of a triple by its formula, in NumPy."""
    head, relation, tail = (
        table[row].detach().double().numpy()
        for table, row in zip((model.entities, model.relations, model.entities), triple, strict=True)
    )
    half = len(head) // 2
    first, last = (part[:half] + 1j * part[half:] for part in (head, tail))
    if model.kind == "transe":
        return -np.linalg.norm(head + relation - tail)
    if model.kind == "distmult":
        return (head * relation * tail).sum()
    if model.kind == "complex":
        return (first * (relation[:half] + 1j * relation[half:]) * last.conj()).sum().real
    return -np.linalg.norm(first * np.exp(1j * relation[:half]) - last)


@pytest.mark.parametrize("kind", ["transe", "distmult", "complex", "rotate"])
def test_scores_of_triples_are_those_of_the_formulas_from_both_sides(kind):
    model = TripleModel(kind, 6, 2, seed=1, dim=8)
    triples = torch.tensor([[h, r, t] for h in range(6) for r in range(2) for t in range(6)])
    scores = model.score(triples).detach().numpy()
    np.testing.assert_allclose(scores, [plain_score(model, triple) for triple in triples.tolist()], atol=1e-5)
    table = scores.reshape(6, 2, 6)
    given, between = torch.tensor([4, 5]), torch.tensor([1, 0])
    tails = model.order_all(model.queries(given, between, tails=True).detach())
    heads = model.order_all(model.queries(given, between, tails=False).detach())
    np.testing.assert_array_equal(tails.argsort(dim=1), table[[4, 5], [1, 0], :].argsort(axis=1))
    np.testing.assert_array_equal(heads.argsort(dim=1), table[:, [1, 0], [4, 5]].T.argsort(axis=1))


# ---- graphs ----


@pytest.mark.parametrize("features", [None, csr_array(np.random.default_rng(0).random((60, 5)))])
def test_the_layers_of_graphsage_are_means_of_neighbours(features):
    data = Graph(GRAPH.train, GRAPH.validation, GRAPH.test, 60, NODE_CLASSES, features=features)
    model = GraphSage(data, 0, dim=3, device="cpu")
    node, near, node_2, near_2 = (
        part.detach().double().numpy()
        for part in (model.of_node, model.of_neighbours, model.of_node_2, model.of_neighbours_2)
    )
    first = model.features.detach().double().numpy() if features is None else features.toarray()
    adjacent = np.zeros((60, 60))
    for a, b in GRAPH.train.tolist():
        adjacent[a, b] = adjacent[b, a] = 1
    means = adjacent / np.maximum(adjacent.sum(axis=1, keepdims=True), 1)
    hidden = np.maximum(first @ node + means @ first @ near, 0)
    expected = hidden @ node_2 + means @ hidden @ near_2
    np.testing.assert_allclose(model.vectors().detach(), expected, atol=1e-5)


# ---- images ----


def test_views_and_encoders_depend_on_their_seed_alone():
    images = torch.rand(5, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    one, two, other = (view(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert (one.min() >= 0) & (one.max() <= 1)
    before = torch.random.get_rng_state()
    first, second = ConvEncoder(1, seed=3), ConvEncoder(1, seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.head[0].weight, second.head[0].weight)


# ---- texts ----


def test_pieces_are_the_same_in_every_process_and_an_empty_text_has_one():
    pieces = Pieces(["The cat", "", "the CAT"])
    assert len(pieces) == 3
    assert pieces.ids[:3].tolist() == [zlib.crc32(piece) % 32_768 for piece in (b"<the>", b"<th", b"the")]
    assert np.diff(pieces.starts)[1] == 1
    vectors = SubwordEncoder([pieces], ns.rng_for(0)).vectors(pieces)
    np.testing.assert_array_equal(vectors[0], vectors[2])

"""Models and losses of the five domains against plain matrices and loops."""

import math
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_worlds import GRAPH, NODE_CLASSES, interactions
from scipy.sparse import csr_array
from torch.nn.functional import normalize

import naysay as ns
from naysay._slots import corrupted_triples
from naysay.lab import ConvEncoder, Graph, GraphSage, LightGCN, Pieces, SubwordEncoder, TripleModel
from naysay.lab._scores import row_scores
from naysay.lab._views import barlow_twins, codes, mean_of_label, minus_cosine, swav, vicreg
from naysay.lab.images import view
from naysay.lab.knowledge_graph import TRIPLE_MODELS

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
    np.testing.assert_allclose(model.pooled(model.layers()).detach(), expected.mean(axis=1), atol=1e-6)
    slopes = torch.from_numpy(np.random.default_rng(0).random((23, 3, 4)).astype(np.float32))
    (model.layers() * slopes).sum().backward()
    back = slopes.double().numpy()
    gradient = back[:, 0] + matrix.T @ back[:, 1] + matrix.T @ matrix.T @ back[:, 2]
    np.testing.assert_allclose(model.vectors.grad.numpy(), gradient, atol=1e-5)
    factors = LightGCN(train, 0, dim=4, hops=0)
    assert torch.equal(factors.pooled(factors.layers()), factors.vectors)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(0, 6), st.integers(1, 5))
def test_products_and_their_gradients_are_those_of_torch(seed, dim, size, many):
    rng = np.random.default_rng(seed)
    rows, others = (torch.from_numpy(rng.integers(0, 7, shape)) for shape in (size, (size, many)))
    slopes = torch.from_numpy(rng.standard_normal((size, many)))
    tables = [torch.from_numpy(np.random.default_rng(seed).standard_normal((7, dim))).requires_grad_() for _ in "ab"]
    scores = row_scores(tables[0], rows, others)
    expected = torch.einsum("bd,bkd->bk", tables[1][rows], tables[1][others])
    torch.testing.assert_close(scores, expected)
    for found in (scores, expected):
        (found * slopes).sum().backward()
    torch.testing.assert_close(tables[0].grad, tables[1].grad)


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


@pytest.mark.parametrize("kind", TRIPLE_MODELS)
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


@pytest.mark.parametrize("sides", [(-1, 0, 2), (0, 1, 2)])
@pytest.mark.parametrize("kind", TRIPLE_MODELS)
def test_scores_with_a_part_replaced_and_their_gradients_are_those_of_whole_triples(kind, sides):
    model, rng = TripleModel(kind, 6, 6, seed=1, dim=8), np.random.default_rng(0)
    triples, ids = (torch.from_numpy(rng.integers(0, 6, shape)) for shape in ((5, 3), (5, 4)))
    side = torch.from_numpy(rng.choice(sides, (5, 4)))
    slopes = torch.from_numpy(rng.normal(size=(5, 5))).float()
    slopes[0, 1] = 0
    both = torch.cat([triples[:, None], corrupted_triples(triples, ids, side)], dim=1)
    found = []
    for scores in (model.scores(triples, ids, side), model.score(both)):
        gradients = torch.autograd.grad(scores, (model.entities, model.relations), slopes)
        found.append([scores.detach(), *gradients])
    for ours, plainly in zip(*found, strict=True):
        torch.testing.assert_close(ours, plainly, atol=1e-5, rtol=1e-4)


# ---- graphs ----


@pytest.mark.parametrize("features", [None, csr_array(np.random.default_rng(0).random((60, 5)))])
def test_the_layers_of_graphsage_are_means_of_neighbours_and_a_view_leaves_out_edges(features):
    data = Graph(GRAPH.train, GRAPH.validation, GRAPH.test, 60, NODE_CLASSES, features=features)
    model = GraphSage(data, 0, dim=3)

    def expected(edges, columns):
        own, near, own_2, near_2 = (part.detach().double().numpy() for part in model.parameters[:4])
        given = model.parameters[4].detach().double().numpy() if features is None else features.toarray()
        adjacent = np.zeros((60, 60))
        for a, b in edges.tolist():
            adjacent[a, b] = adjacent[b, a] = 1
        means = adjacent / np.maximum(adjacent.sum(axis=1, keepdims=True), 1)
        first = given * columns
        hidden = np.maximum(first @ own + means @ first @ near, 0)
        return hidden @ own_2 + means @ hidden @ near_2

    width = model.parameters[0].shape[0]
    np.testing.assert_allclose(model.vectors().detach(), expected(GRAPH.train, np.ones(width)), atol=1e-5)
    draws = ns.rng_for(1)
    kept = GRAPH.train[draws.random(len(GRAPH.train)) >= 0.4]
    columns = draws.random(width) >= 0.5
    seen = model.vectors(model.view(ns.rng_for(1), edges=0.4, features=0.5))
    np.testing.assert_allclose(seen.detach(), expected(kept, columns), atol=1e-5)


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


# ---- losses of two views without negatives ----

NUMBERS = torch.arange(1, 13, dtype=torch.float64).view(4, 3)
ONE = normalize(NUMBERS.sin(), dim=1)
TWO = normalize(ONE + 0.3 * NUMBERS.cos(), dim=1)
PROTOTYPES = normalize((2 * NUMBERS).cos(), dim=1)


def two_views(seed=5, n=6, d=3):
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.standard_normal((n, d))) for _ in range(2)]


def test_golden_values_of_losses_without_negatives():
    assert minus_cosine(ONE, TWO).item() == pytest.approx(-0.940513, abs=5e-7)
    assert barlow_twins(ONE, TWO).item() == pytest.approx(0.493542, abs=5e-7)
    assert vicreg(ONE, TWO).item() == pytest.approx(11.456133, abs=5e-7)
    scores = [z @ PROTOTYPES.T for z in (ONE, TWO)]
    made = codes(scores[0])
    np.testing.assert_allclose(made.sum(dim=1), 1.0)
    assert made.sum(dim=0).tolist() == pytest.approx([0.9176, 0.9416, 1.0138, 1.1270], abs=5e-5)


def test_losses_without_negatives_by_loops():
    a, b = two_views()
    (n, d), mean_a, mean_b = a.shape, a.mean(dim=0), b.mean(dim=0)

    def covariance(x, mean_x, y, mean_y, by):
        return [[sum((x[r, i] - mean_x[i]) * (y[r, j] - mean_y[j]) for r in range(n)).item() / by for j in range(d)]
                for i in range(d)]  # fmt: skip

    both, own_a, own_b = (covariance(*pair, n) for pair in ((a, mean_a, b, mean_b), (a, mean_a) * 2, (b, mean_b) * 2))
    total = 0.0
    for i in range(d):
        for j in range(d):
            c = both[i][j] / math.sqrt((own_a[i][i] + 1e-5) * (own_b[j][j] + 1e-5))
            total += (1 - c) ** 2 if i == j else 0.0051 * c * c
    assert barlow_twins(a, b).item() == pytest.approx(total)
    total = 25 * sum((a[r, i] - b[r, i]).item() ** 2 for r in range(n) for i in range(d)) / (n * d)
    for cov in (covariance(a, mean_a, a, mean_a, n - 1), covariance(b, mean_b, b, mean_b, n - 1)):
        total += 25 * sum(max(0.0, 1 - math.sqrt(cov[i][i] + 1e-4)) for i in range(d)) / d / 2
        total += sum(cov[i][j] ** 2 for i in range(d) for j in range(d) if i != j) / d
    assert vicreg(a, b).item() == pytest.approx(total)


def test_codes_and_swav_by_loops():
    scores = [z @ PROTOTYPES.T for z in two_views()]
    mass = [[math.exp(s / 0.05) for s in row] for row in scores[0].tolist()]
    for _ in range(3):
        columns = [sum(row[j] for row in mass) for j in range(4)]
        mass = [[x / columns[j] for j, x in enumerate(row)] for row in mass]
        mass = [[x / sum(row) for x in row] for row in mass]
    np.testing.assert_allclose(codes(scores[0]), mass)
    np.testing.assert_allclose(codes(scores[0], rounds=200).sum(dim=0), 6 / 4, atol=1e-3)
    total = 0.0
    for one, other in (scores, scores[::-1]):
        for row, wanted in zip(one.tolist(), codes(other).tolist(), strict=True):
            log_sum = math.log(sum(math.exp(s / 0.1) for s in row))
            total -= sum(w * (s / 0.1 - log_sum) for s, w in zip(row, wanted, strict=True)) / 6 / 2
    assert swav(*scores).item() == pytest.approx(total)


def test_equal_pseudo_labels_share_a_mean_and_none_has_its_own():
    z = normalize(two_views()[0], dim=1)
    labels = torch.tensor([0, 1, 0, -1, -1, 1])
    means = mean_of_label(z, labels)
    for row, label in enumerate(labels.tolist()):
        alike = [j for j in range(6) if j == row or (label >= 0 and labels[j] == label)]
        mean = sum(z[j] for j in alike) / len(alike)
        np.testing.assert_allclose(means[row], mean / mean.norm())


def test_targets_and_codes_take_no_gradient():
    a, b = (one.requires_grad_() for one in two_views(1))
    minus_cosine(a, b).backward()
    assert a.grad is not None
    assert b.grad is None
    assert not codes(a @ PROTOTYPES.T).requires_grad

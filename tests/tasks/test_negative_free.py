"""Losses without negatives: golden values, plain loops, what collapse costs, and arms that learn."""

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch.nn.functional import normalize

import naysay as ns
from naysay.comparing import fitting_methods
from naysay.comparing._run import Run
from naysay.comparing.arms import Arm, read_arms
from naysay.errors import NaysayError
from naysay.tasks import Graph, GraphSage, ImageContrast, Images, NodeEmbedding, split_edges
from naysay.tasks._negative_free import barlow_twins, codes, mean_of_label, minus_cosine, swav, vicreg

NUMBERS = torch.arange(1, 13, dtype=torch.float64).view(4, 3)
ONE = normalize(NUMBERS.sin(), dim=1)
TWO = normalize(ONE + 0.3 * NUMBERS.cos(), dim=1)
PROTOTYPES = normalize((2 * NUMBERS).cos(), dim=1)


def views(seed, n=6, d=3):
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.standard_normal((n, d))) for _ in range(2)]


def test_golden_values():
    assert minus_cosine(ONE, TWO).item() == pytest.approx(-0.940513, abs=5e-7)
    assert barlow_twins(ONE, TWO).item() == pytest.approx(0.493542, abs=5e-7)
    assert vicreg(ONE, TWO).item() == pytest.approx(11.456133, abs=5e-7)
    scores = [z @ PROTOTYPES.T for z in (ONE, TWO)]
    made = codes(scores[0])
    np.testing.assert_allclose(made.sum(dim=1), 1.0)
    assert made.sum(dim=0).tolist() == pytest.approx([0.9176, 0.9416, 1.0138, 1.1270], abs=5e-5)
    one_side = -(made * torch.log_softmax(scores[1] / 0.1, dim=1)).sum(dim=1).mean()
    assert one_side.item() == pytest.approx(1.566572, abs=5e-7)


def moments(z):
    """Means, and covariances divided by n and by n - 1, in loops."""
    n, d = z.shape
    mean = [sum(z[r, i].item() for r in range(n)) / n for i in range(d)]
    total = [
        [sum((z[r, i].item() - mean[i]) * (z[r, j].item() - mean[j]) for r in range(n)) for j in range(d)]
        for i in range(d)
    ]
    return mean, [[x / n for x in row] for row in total], [[x / (n - 1) for x in row] for row in total]


@pytest.mark.parametrize("seed", range(3))
def test_by_loops(seed):
    a, b = views(seed)
    n, d = a.shape
    cosines = [a[r] @ b[r] / (a[r].norm() * b[r].norm()) for r in range(n)]
    assert minus_cosine(a, b).item() == pytest.approx(-sum(cosines).item() / n)
    (mean_a, by_n_a, less_a), (mean_b, by_n_b, less_b) = moments(a), moments(b)
    total = 0.0
    for i in range(d):
        for j in range(d):
            both = sum((a[r, i].item() - mean_a[i]) * (b[r, j].item() - mean_b[j]) for r in range(n)) / n
            c = both / math.sqrt((by_n_a[i][i] + 1e-5) * (by_n_b[j][j] + 1e-5))
            total += (1 - c) ** 2 if i == j else 0.0051 * c * c
    assert barlow_twins(a, b).item() == pytest.approx(total)
    total = 25 * sum((a[r, i] - b[r, i]).item() ** 2 for r in range(n) for i in range(d)) / (n * d)
    for cov in (less_a, less_b):
        total += 25 * sum(max(0.0, 1 - math.sqrt(cov[i][i] + 1e-4)) for i in range(d)) / d / 2
        total += sum(cov[i][j] ** 2 for i in range(d) for j in range(d) if i != j) / d
    assert vicreg(a, b).item() == pytest.approx(total)


def test_codes_and_swav_by_loops():
    scores = [z @ PROTOTYPES.T for z in views(5)]
    mass = [[math.exp(s / 0.05) for s in row] for row in scores[0].tolist()]
    for _ in range(3):
        columns = [sum(row[j] for row in mass) for j in range(4)]
        mass = [[x / columns[j] for j, x in enumerate(row)] for row in mass]
        mass = [[x / sum(row) for x in row] for row in mass]
    np.testing.assert_allclose(codes(scores[0]), mass)
    many = codes(scores[0], rounds=200)
    np.testing.assert_allclose(many.sum(dim=0), 6 / 4, atol=1e-3)
    total = 0.0
    for one, other in (scores, scores[::-1]):
        for row, wanted in zip(one.tolist(), codes(other).tolist(), strict=True):
            log_sum = math.log(sum(math.exp(s / 0.1) for s in row))
            total -= sum(w * (s / 0.1 - log_sum) for s, w in zip(row, wanted, strict=True)) / 6 / 2
    assert swav(*scores).item() == pytest.approx(total)


def test_equal_pseudo_labels_give_equal_codes_and_none_is_swav():
    z = torch.nn.functional.normalize(views(5)[0], dim=1)
    labels = torch.tensor([0, 1, 0, -1, -1, 1])
    means = mean_of_label(z, labels)
    for row, label in enumerate(labels.tolist()):
        alike = [j for j in range(6) if j == row or (label >= 0 and labels[j] == label)]
        mean = sum(z[j] for j in alike) / len(alike)
        np.testing.assert_allclose(means[row], mean / mean.norm())
    found = codes(means @ PROTOTYPES.T)
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[5])
    assert not torch.equal(found[3], found[4])
    np.testing.assert_allclose(mean_of_label(z, torch.full((6,), -1)), z)
    scores = [one @ PROTOTYPES.T for one in views(5)]
    assert swav(*scores, coded=scores) == swav(*scores)
    other = [
        (codes(one) * torch.log_softmax(two / 0.1, dim=1)).sum(dim=1).mean() for one, two in ((scores[1], scores[0]),)
    ]
    mixed = swav(scores[0], scores[0], coded=(scores[1], scores[1]))
    assert mixed.item() == pytest.approx(-other[0].item())


def test_what_collapse_costs():
    """A constant is the optimum of minus_cosine, which only stop-gradient and predictor avoid; others make it dear."""
    flat = torch.ones(6, 3, dtype=torch.float64)
    assert minus_cosine(flat, flat).item() == pytest.approx(-1.0)
    assert barlow_twins(flat, flat).item() == pytest.approx(3.0)
    assert vicreg(flat, flat).item() == pytest.approx(25 * (1 - 0.01))


def test_targets_and_codes_take_no_gradient():
    a, b = (one.requires_grad_() for one in views(1))
    minus_cosine(a, b).backward()
    assert a.grad is not None
    assert b.grad is None
    assert not codes(a @ PROTOTYPES.T).requires_grad


RNG = np.random.default_rng(0)
IMAGES = Images(RNG.random((120, 8, 8)), np.arange(120) % 2)


def parameters(network):
    """Of a module, or of a GraphSage, which has a list of them."""
    return list(network.parameters() if callable(network.parameters) else network.parameters)


@pytest.mark.parametrize("name", ["BYOL", "BGRL"])
def test_a_slow_encoder_begins_as_the_encoder_and_follows_it(name):
    """slow <- 0.99 slow + 0.01 encoder before each step; BGRL's published code draws the target anew after copying."""
    task = ImageContrast(IMAGES, batch=48) if name == "BYOL" else NodeEmbedding(GRAPH, "graphsage", width=4)
    run = Run(task, Arm(name, 1, task.own[name]), 0.01, 0)
    network = run.model.network
    found = [cell.cell_contents for cell in _cells(run.step_of)]
    slow = next(part for part in found if type(part) is type(network) and part is not network)
    wanted = [part.detach().clone() for part in parameters(network)]
    assert all(torch.equal(at, own) for at, own in zip(parameters(slow), wanted, strict=True))
    for _ in range(3):
        start = [part.detach().clone() for part in parameters(network)]
        run.train(1)
        wanted = [0.99 * at + 0.01 * own for at, own in zip(wanted, start, strict=True)]
        torch.testing.assert_close(parameters(slow), wanted, rtol=1e-6, atol=1e-8)
    assert any((at - own).abs().max() > 1e-3 for at, own in zip(parameters(network), wanted, strict=True))
    assert all(part.grad is None for part in parameters(slow))


def _cells(function):
    """All cells of a closure and of the functions in it."""
    for cell in function.__closure__ or ():
        yield cell
        if callable(cell.cell_contents) and getattr(cell.cell_contents, "__closure__", None):
            yield from _cells(cell.cell_contents)


LABELS = np.arange(60) % 2
ENDS = np.argwhere(np.random.default_rng(0).random((60, 60)) < np.where(LABELS[:, None] == LABELS, 0.3, 0.01))
GRAPH = split_edges(ENDS, 60, labels=LABELS)


@pytest.mark.parametrize("features", [None, csr_array(RNG.random((60, 5)))])
def test_a_view_leaves_out_edges_and_coordinates(features):
    data = Graph(GRAPH.train, GRAPH.validation, GRAPH.test, 60, LABELS, features=features)
    network = GraphSage(data, 0, width=4)
    whole = network.view(ns.rng_for(0), edges=0, features=0)
    assert torch.allclose(network.vectors(whole), network.vectors())
    draws = ns.rng_for(1)
    kept = GRAPH.train[draws.random(len(GRAPH.train)) >= 0.4]
    columns = draws.random(network.parameters[0].shape[0]) >= 0.5
    less = GraphSage(Graph(kept, GRAPH.validation, GRAPH.test, 60, LABELS, features=features), 0, width=4)
    with torch.no_grad():
        for part in less.parameters[:2]:
            part[torch.from_numpy(~columns)] = 0
    view = network.view(ns.rng_for(1), edges=0.4, features=0.5)
    assert torch.allclose(network.vectors(view), less.vectors(), atol=1e-6)
    with pytest.raises(NaysayError, match=r"^GraphSage.view: `edges` must be"):
        network.view(ns.rng_for(0), edges=2.0, features=0)


@pytest.mark.parametrize("name", ["GRACE", "BGRL"])
@pytest.mark.parametrize("features", [None, csr_array(np.eye(60))])
def test_two_views_of_a_graph_learn_its_classes(name, features):
    data = Graph(GRAPH.train, GRAPH.validation, GRAPH.test, 60, LABELS, features=features)
    task = NodeEmbedding(data, "graphsage", width=16, batch=256)
    run = Run(task, Arm(name, 1, task.own[name]), 0.03, 0)

    def accuracy():
        state = run.model.snapshot()
        return np.mean([run.model.measure(state, part)["accuracy"] for part in ("validation", "test")])

    before, first = accuracy(), run.step_of(run._batch(), k=1, step=0)[0].item()
    run.train(80 if name == "GRACE" else 210)
    assert run.step_of(run._batch(), k=1, step=0)[0].item() < first
    assert accuracy() > max(0.8, before + 0.1)
    assert run.model.network.vectors().std(dim=0).mean() > 0.01  # not one vector for all
    if name == "GRACE":
        nodes, ids = task.ends(run.batch)[0].numpy()[:, None], run.negatives.numpy().ids
        assert not (ids == nodes).any()
        assert {*ids[ids >= 0].tolist()} == {*nodes.ravel().tolist()}
        assert 0 <= run.model.false_share(run.batch, run.negatives) < 0.2
    else:
        assert run.negatives is None


def test_a_model_without_an_encoder_has_no_views():
    task = NodeEmbedding(GRAPH, width=4)
    parts = task.start(0).parts()
    assert not {"GRACE", "BGRL"} & {*fitting_methods(parts, task.own)}
    with pytest.raises(NaysayError, match=r"got 'GRACE', which needs graphsage\. These fit: in-batch"):
        read_arms("GRACE", parts, task.defaults, task.own)

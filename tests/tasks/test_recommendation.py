"""The recommender: the encoder of plain matrices, a loss of plain loops, measures that leave out what is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.tasks import LightGCN, Recommendation, split_by_user
from naysay.tasks._products import row_scores


def world(seed=0, share=0.3, n_users=20, n_items=30):
    return split_by_user(*np.nonzero(np.random.default_rng(seed).random((n_users, n_items)) < share), n_users, n_items)


def test_the_encoder_passes_vectors_along_training_edges_only():
    train = world(3, 0.5, 8, 15).train
    model = LightGCN(train, 0, width=4, hops=2)
    matrix = np.zeros((23, 23))
    for user, item in zip(*train.pairs(), strict=True):
        matrix[user, 8 + item] = matrix[8 + item, user] = 1
    degree = np.maximum(matrix.sum(axis=1), 1)
    matrix /= np.sqrt(degree[:, None] * degree)
    own = model.vectors.detach().double().numpy()
    expected = np.stack([own, matrix @ own, matrix @ matrix @ own], axis=1)
    np.testing.assert_allclose(model.layers().detach().numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(model.pooled(model.layers()).detach(), expected.mean(axis=1), atol=1e-6)
    weights = torch.from_numpy(np.random.default_rng(0).random((23, 3, 4)).astype(np.float32))
    (model.layers() * weights).sum().backward()
    back = weights.double().numpy()
    gradient = back[:, 0] + matrix.T @ back[:, 1] + matrix.T @ matrix.T @ back[:, 2]
    np.testing.assert_allclose(model.vectors.grad.numpy(), gradient, atol=1e-5)


def test_without_hops_it_is_matrix_factorisation():
    model = LightGCN(world().train, 0, width=4, hops=0)
    torch.testing.assert_close(model.pooled(model.layers()), model.vectors)
    assert model.graph is None


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(0, 6), st.integers(1, 5))
def test_products_and_their_gradients_are_those_of_torch(seed, width, size, many):
    rng = np.random.default_rng(seed)
    rows, others = (torch.from_numpy(rng.integers(0, 7, shape)) for shape in (size, (size, many)))
    slopes = torch.from_numpy(rng.standard_normal((size, many)))
    tables = [torch.from_numpy(np.random.default_rng(seed).standard_normal((7, width))).requires_grad_() for _ in "ab"]
    scores = row_scores(tables[0], rows, others)
    expected = torch.einsum("bd,bkd->bk", tables[1][rows], tables[1][others])
    torch.testing.assert_close(scores, expected)
    for found, table in zip((scores, expected), tables, strict=True):
        (found * slopes).sum().backward()
        assert table.grad.shape == table.shape
    torch.testing.assert_close(tables[0].grad, tables[1].grad)


@pytest.mark.parametrize("model", ["mf", "lightgcn"])
@pytest.mark.parametrize("mixing", [False, True])
def test_the_loss_is_that_of_plain_loops(model, mixing):
    task = Recommendation(world(), model, width=8)
    learner = task.start(0)
    parts = learner.parts()
    pool = ns.pools.Everything(task.data.train)
    sampler = ns.samplers.MixGCF(pool, parts["embed"], 4) if mixing else ns.samplers.Static(pool)
    rows = np.arange(10)
    loss, negatives = learner.loss(rows, sampler, 3, step=5)
    vectors = learner.vectors.detach().double().numpy()
    total = 0.0
    for place, row in enumerate(rows):
        user, item = int(task.users[row]), int(task.items[row])
        others = negatives.vectors[place].detach().double() if mixing else vectors[20 + negatives.ids[place].numpy()]
        scores = np.asarray(others) @ vectors[user]
        total += np.log1p(np.exp(scores - vectors[20 + item] @ vectors[user]).sum())
    assert float(loss.detach()) == pytest.approx(total / 10, rel=1e-4)
    loss.backward()
    assert learner.network.vectors.grad.abs().sum() > 0


def test_samplers_see_the_scores_of_this_step():
    task = Recommendation(world(), "lightgcn", width=8)
    learner = task.start(0)
    vectors = learner.snapshot().double().numpy()
    users, ids = torch.tensor([3, 0]), torch.tensor([[1, 2, 29], [0, 5, 5]])
    scores, alike = learner.score(users, ids), learner.similarity(users, ids)
    for row in range(2):
        others = vectors[20 + ids[row].numpy()]
        np.testing.assert_allclose(scores[row], others @ vectors[users[row]], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(alike[row], others @ vectors[20 + users[row]], rtol=1e-4, atol=1e-6)
    assert not scores.requires_grad


def test_measures_leave_out_what_is_known():
    task = Recommendation(world(), width=8)
    learner = task.start(0)
    vectors = learner.snapshot()
    scores = (vectors[:20] @ vectors[20:].T).numpy()
    for part, wanted, known in (
        ("validation", task.data.validation, task.data.train),
        ("test", task.data.test, task.data.train.union(task.data.validation)),
    ):
        found = ns.evaluate.ranking(scores, wanted, known=known)
        expected = {"recall@20": found.recall(20), "ndcg@20": found.ndcg(20), "mrr": found.mrr, "auc": found.auc}
        assert learner.measure(vectors, part) == pytest.approx(expected)


def test_false_negatives_are_held_out_pairs():
    task = Recommendation(world())
    learner = task.start(0)
    user, item = (ids[0] for ids in task.data.test.pairs())
    row = int(np.flatnonzero(task.users.numpy() == user)[0])
    free = next(i for i in range(30) if not task.data.train.union(task.held).contains([user], [i])[0])
    assert learner.false_share(np.array([row]), ns.Negatives(np.array([[item, free, -1]]))) == 0.5


def test_equal_seeds_start_equal_and_batches_have_a_usual_size():
    task = Recommendation(world())
    first, again, other = (task.start(seed).network.vectors for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert task.batch == min(256, len(task.data.train))
    assert Recommendation(task.data, batch=7).batch == 7


def test_whole_data_is_the_squared_loss_of_every_pair():
    task = Recommendation(world(), width=4)
    model = task.start(0)
    step_of = model.parts()["whole_data"](weight=0.3)
    loss, negatives = step_of(np.arange(task.pairs), 1, step=0)
    assert negatives is None
    vectors = model.vectors.detach().double().numpy()
    total = 0.0
    for user in range(20):
        for item in range(30):
            score = vectors[user] @ vectors[20 + item]
            total += (1 - score) ** 2 if task.data.train.contains([user], [item])[0] else 0.3 * score**2
    assert loss.item() * task.pairs == pytest.approx(total, rel=1e-5)

"""Decomposed: the law by enumeration, exact log_q, closed-form tables by loops, state, promises."""

import math
import timeit

import numpy as np
import pytest
from scipy.stats import chisquare

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Decomposed

KNOWN = ns.Positives.from_pairs([0, 0, 1, 1, 1, 1, 1], [0, 3, 0, 1, 2, 3, 4], 3, 6)
TABLE = np.random.default_rng(0).standard_normal((3, 6))


def score(anchors, ids):
    return TABLE[anchors[:, None], ids]


def test_draws_follow_the_product_of_the_tables():
    sampler = Decomposed(KNOWN, 4, seed=3)
    tables = sampler.state()
    for anchor in range(3):
        q = tables["x"][anchor] @ tables["y"]
        free = [item for item in range(6) if not KNOWN.contains([anchor], [item])[0]]
        wanted = q[free] / q[free].sum()
        np.testing.assert_allclose(sampler.chances([anchor])[0, free], wanted)
        drawn = sampler.sample(ns.Query([anchor] * 5000), 2, rng=ns.rng_for(0))
        seen = np.bincount(drawn.ids.ravel(), minlength=6)
        assert seen[[item for item in range(6) if item not in free]].sum() == 0
        if len(free) > 1:
            assert chisquare(seen[free], 10_000 * wanted).pvalue > 1e-5
        for item, chance in zip(free, wanted, strict=True):
            np.testing.assert_allclose(np.exp(drawn.log_q[drawn.ids == item]), chance)


def test_a_factor_for_each_item_is_x_itself():
    sampler = Decomposed(ns.Positives.from_pairs([], [], 3, 6), 6)
    state = sampler.state()
    sampler.restore({"x": state["x"], "y": np.eye(6)})
    np.testing.assert_allclose(sampler.chances([0, 1, 2]), state["x"])


def target(table, known, temperature=0.5):
    """p proportional to e^{softplus(s) / t} over free items, in loops."""
    p = np.zeros(table.shape)
    for a in range(len(table)):
        for i in range(table.shape[1]):
            p[a, i] = 0.0 if known.contains([a], [i])[0] else math.exp(math.log1p(math.exp(table[a, i])) / temperature)
    return p / p.sum(axis=1, keepdims=True)


def test_a_step_by_loops():
    sampler = Decomposed(KNOWN, 2, temperature=0.7, seed=1)
    x, y = sampler.state()["x"], sampler.state()["y"]
    p, q = target(TABLE, KNOWN, 0.7), x @ y
    new_x = [[x[a, k] * sum(y[k, i] * p[a, i] / q[a, i] for i in range(6)) for k in range(2)] for a in range(3)]
    new_y = np.array(
        [[y[k, i] * sum(x[a, k] * p[a, i] / q[a, i] for a in range(3)) for i in range(6)] for k in range(2)]
    )
    sampler.update(score)
    np.testing.assert_allclose(sampler.state()["x"], new_x)
    np.testing.assert_allclose(sampler.state()["y"], new_y / new_y.sum(axis=1, keepdims=True))


def test_updates_never_raise_the_divergence_and_raise_the_scores_that_are_drawn():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 40))
    known = ns.Positives.from_pairs(*rng.integers(0, (30, 40), (90, 2)).T, 30, 40)
    p = target(table, known)
    sampler = Decomposed(known, 8)
    before, divergences = (sampler.chances(np.arange(30)) * table).sum(axis=1), []
    for _ in range(25):
        state = sampler.state()
        q = state["x"] @ state["y"]
        divergences.append((p * np.log(np.where(p > 0, p, 1.0) / q)).sum())
        sampler.update(lambda anchors, ids: table[anchors[:, None], ids])
    assert (np.diff(divergences) <= 1e-9).all()
    gain = (sampler.chances(np.arange(30)) * table).sum(axis=1) - before
    assert gain.mean() - 2.1 * gain.std(ddof=1) / np.sqrt(30) > 0


def test_weights_of_the_loss_reach_the_target_by_enumeration():
    """SD-GAR weighs draws by softmax(softplus(s) / t - log q): over all items once, that is the target."""
    sampler = Decomposed(KNOWN, 4)
    chance = sampler.chances([2])[0]
    soft = np.logaddexp(0.0, TABLE[2]) / 0.5
    weights = chance * np.exp(soft - np.log(chance))
    target = np.exp(soft) / np.exp(soft).sum()
    np.testing.assert_allclose(weights / weights.sum(), target)


def test_state_and_promises():
    sampler, other = Decomposed(KNOWN, 4), Decomposed(KNOWN, 4, seed=9)
    sampler.update(score)
    other.restore(sampler.state())
    draws = [one.sample(ns.Query([0, 1, 2]), 4, rng=ns.rng_for(0)).ids.tolist() for one in (sampler, other)]
    assert draws[0] == draws[1]
    ns.check_sampler(sampler, KNOWN, k=3)


def test_a_draw_costs_less_than_a_pass_over_the_table_of_items():
    sampler = Decomposed(ns.Positives.from_pairs([0], [0], 256, 100_000))
    table, query = sampler.state()["y"], ns.Query(np.arange(256))

    def fastest(call):
        return min(timeit.repeat(call, number=1, repeat=5))

    assert fastest(lambda: sampler.sample(query, 1, rng=ns.rng_for(0))) < fastest(lambda: np.cumsum(table, axis=1))


def test_errors():
    for call, sentence in (
        (lambda: Decomposed(KNOWN, 0), "Decomposed: `factors` must be at least 1"),
        (lambda: Decomposed(KNOWN, temperature=0.0), "Decomposed: `temperature` must be"),
        (lambda: Decomposed(KNOWN).update(3), "Decomposed.update: `score` must be a function"),
        (
            lambda: Decomposed(KNOWN, 1).restore({"x": np.ones((3, 1)), "y": np.zeros((1, 6))}),
            "Decomposed.restore: `y` must be rows",
        ),
    ):
        with pytest.raises(NaysayError) as caught:
            call()
        assert str(caught.value).startswith(sentence)

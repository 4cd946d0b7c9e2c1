"""MarkovChain: detailed balance of its kernel on six items, its law, chains that go on, promises."""

import numpy as np
import pytest
from scipy.stats import chisquare

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import MarkovChain

KNOWN = ns.Positives.from_pairs([0], [1], 2, 6)
S = np.array([0.3, 9.0, 2.0, 0.7, 5.0, 1.1])
NEAR = np.array([[1, 2], [0, -1], [0, 3], [2, 5], [-1, -1], [3, 4]])
FREE = [0, 2, 3, 4, 5]


def score(anchors, ids):
    return S[ids] if isinstance(ids, np.ndarray) else ids.new_tensor(0.0) + ids.double() * 0 + 1


def kernel(chain):
    """(6, 6) the probability of each move, by the definition, with the code's own ratio of proposals."""
    log_free = np.full(1, -np.log(5))
    moves = np.zeros((6, 6))
    for x in FREE:
        near = [int(y) for y in NEAR[x] if y >= 0]
        for y in range(6):
            proposed = chain.uniform / 5 * (y in FREE) + (1 - chain.uniform) * (
                near.count(y) / len(near) if near else 0
            )
            if y == x or y not in FREE or not proposed:
                continue
            ratio = chain._log_ratio(np.array([x]), np.array([y]), log_free)[0]
            moves[x, y] = proposed * min(1, np.exp(ratio) * S[y] ** chain.power / S[x] ** chain.power)
        moves[x, x] = 1 - moves[x].sum()
    return moves


@pytest.mark.parametrize("uniform", [1.0, 0.3])
def test_detailed_balance_on_six_items(uniform):
    chain = MarkovChain(KNOWN, score, NEAR, uniform=uniform, power=0.75)
    moves, target = kernel(chain), np.where(np.isin(np.arange(6), FREE), S**0.75, 0.0)
    flow = (target / target.sum())[:, None] * moves
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


@pytest.mark.parametrize("uniform", [1.0, 0.3])
@pytest.mark.parametrize("target", ["power", "softmax"])
def test_the_law_after_some_steps(uniform, target):
    rows = 4000
    chain = MarkovChain(KNOWN, score, NEAR, uniform=uniform, power=0.75, target=target, temperature=4.0, steps=40)
    drawn = chain.sample(ns.Query(np.zeros(rows, int)), 1, rng=ns.rng_for(0)).ids[:, 0]
    weights = (S**0.75 if target == "power" else np.exp(S / 4))[FREE]
    seen = np.bincount(drawn, minlength=6)
    assert seen[1] == 0
    assert chisquare(seen[FREE], rows * weights / weights.sum()).pvalue > 1e-5


def test_the_first_item_is_reached_and_nothing_moves_without_acceptance():
    """MCNS's code cannot draw the first item, and jumps to proposals of any target."""
    steep = MarkovChain(KNOWN, lambda anchors, ids: np.where(ids == 0, 1.0, 1e-12), power=1.0, steps=60)
    drawn = steep.sample(ns.Query(np.zeros(500, int)), 4, rng=ns.rng_for(0))
    assert (drawn.ids == 0).mean() > 0.95


def test_a_chain_goes_on_from_its_state():
    whole, other = (MarkovChain(KNOWN, score, NEAR, steps=0) for _ in range(2))
    query = ns.Query([0, 1])
    for step in range(6):
        whole.observe(query, whole.sample(query, 2, rng=ns.rng_for(0, step)))
        if step == 2:
            other.restore(whole.state())
        if step > 2:
            other.observe(query, other.sample(query, 2, rng=ns.rng_for(0, step)))
    np.testing.assert_array_equal(whole.state()["last"], other.state()["last"])
    assert (whole.state()["last"] >= 0).all()


def test_promises():
    rng = np.random.default_rng(0)
    known = ns.Positives.from_pairs(*rng.integers(0, (5, 9), (18, 2)).T, 5, 9)
    chain = MarkovChain(known, lambda anchors, ids: ids * 1.0 + 1.0, rng.integers(0, 9, (9, 3)), steps=3)
    ns.check_sampler(chain, known, k=3)


@pytest.mark.parametrize("name", ["uniform", "power"])
def test_settings_that_are_no_schedules_raise_at_once(name):
    with pytest.raises(NaysayError) as error:
        MarkovChain(KNOWN, score, NEAR, **{name: lambda step: 0.5})
    assert error.value.parameter == name


def test_errors():
    with pytest.raises(NaysayError, match=r"^MarkovChain: `uniform` must be"):
        MarkovChain(KNOWN, score, NEAR, uniform=0)
    with pytest.raises(NaysayError, match=r"^MarkovChain: `neighbours` must be ids of shape \(6, m\)"):
        MarkovChain(KNOWN, score, NEAR[:5])
    with pytest.raises(
        NaysayError, match=r"^MarkovChain.sample: `score` must be a function that returns numbers above 0"
    ):
        MarkovChain(KNOWN, lambda anchors, ids: -1.0 * np.ones(ids.shape)).sample(ns.Query([0]), 1, rng=ns.rng_for(0))

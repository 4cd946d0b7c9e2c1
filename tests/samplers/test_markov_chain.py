"""MarkovChain: one step on six items by the definition, its law, and chains that go on."""

import numpy as np
import pytest
from scipy.stats import chisquare

import naysay as ns
from naysay.samplers import MarkovChain

KNOWN = ns.Positives.from_pairs([0], [1], 2, 6)
S = np.array([0.3, 9.0, 2.0, 0.7, 5.0, 1.1])
NEAR = np.array([[1, 2], [0, -1], [0, 3], [2, 5], [-1, -1], [3, 4]])
FREE = [0, 2, 3, 4, 5]


def score(anchors, ids):
    return S[ids] if isinstance(ids, np.ndarray) else ids.new_tensor(0.0) + ids.double() * 0 + 1


def proposal(x, y, uniform):
    """q(y | x) of the mixture."""
    near = [int(item) for item in NEAR[x] if item >= 0]
    return uniform / len(FREE) * (y in FREE) + (1 - uniform) * (near.count(y) / len(near) if near else 0.0)


def moves_from(x, uniform, power):
    """(6,) the probability of the next state, by the definition of Metropolis and Hastings."""
    moves = np.zeros(6)
    for y in FREE:
        there, back = proposal(x, y, uniform), proposal(y, x, uniform)
        if y != x and there:
            moves[y] = there * min(1.0, S[y] ** power * back / (S[x] ** power * there))
    moves[x] = 1 - moves.sum()
    return moves


@pytest.mark.parametrize("uniform", [1.0, 0.3])
@pytest.mark.parametrize("start", FREE)
def test_one_step_of_the_chain(start, uniform):
    chain = MarkovChain(KNOWN, score, NEAR, uniform=uniform, power=0.75, steps=0)
    chain.restore({"last": np.array([start, -1])})
    drawn = chain.sample(ns.Query(np.zeros(6000, int)), 1, rng=ns.rng_for(0)).ids[:, 0]
    found, wanted = np.bincount(drawn, minlength=6), moves_from(start, uniform, 0.75)
    assert found[wanted == 0].sum() == 0
    assert chisquare(found[wanted > 0], 6000 * wanted[wanted > 0]).pvalue > 1e-5


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

"""Dynamic: how often each candidate is chosen, against the papers' probabilities and exact enumeration."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

import naysay as ns
from naysay.samplers import Dynamic

KNOWN = ns.Positives.from_pairs([0, 0], [0, 1], n_items=8)
POOL = ns.pools.Everything(KNOWN)
LOOSE = ns.pools.Everything(KNOWN, distinct=False)
FREE, DRAWN = 6, 4  # anchor 0 has six items left


def by_rank(temperature=0.0, top_m=None, rows=40_000, pool=LOOSE, n=DRAWN, scores=None):
    """(rows, 1) place of the chosen among the free items of anchor 0, the highest first."""
    scores = -np.arange(8.0) if scores is None else scores
    sampler = Dynamic(pool, lambda anchors, ids: scores[ids], n, temperature, top_m=top_m)
    taken = sampler.sample(ns.Query(np.zeros(rows, int)), 1, rng=ns.rng_for(7))
    return taken.ids - 2


def follows(places, chances):
    counts = np.bincount(places, minlength=len(chances))
    return scipy.stats.chisquare(counts, len(places) * np.array(chances)).pvalue > 1e-4


def test_the_item_of_rank_r_comes_as_often_as_the_paper_says():
    m, n = FREE, DRAWN
    chances = [((m - r + 1) ** n - (m - r) ** n) / m**n for r in range(1, m + 1)]
    worlds = list(itertools.product(range(m), repeat=n))  # all candidates that can be drawn, each as likely
    assert chances == pytest.approx([sum(min(world) == r for world in worlds) / len(worlds) for r in range(m)])
    assert follows(by_rank()[:, 0], chances)


@pytest.mark.parametrize("top_m", [1, 2, 3, 4])
def test_one_of_the_highest_comes_as_often_as_the_paper_says(top_m):
    m, n = FREE, DRAWN
    above = scipy.stats.binom.sf  # P(Bin > t - 1)
    chances = [
        sum(above(t - 1, n, r / m) - above(t - 1, n, (r - 1) / m) for t in range(1, top_m + 1)) / top_m
        for r in range(1, m + 1)
    ]
    worlds = [sorted(world)[:top_m] for world in itertools.product(range(m), repeat=n)]
    assert chances == pytest.approx([sum(w.count(r) for w in worlds) / len(worlds) / top_m for r in range(m)])
    assert follows(by_rank(top_m=top_m)[:, 0], chances)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.5])
def test_a_temperature_draws_without_repeats_from_the_softmax(temperature):
    """All five candidates are drawn, so the order of three of them has exact chances (Plackett and Luce)."""
    known = ns.Positives.from_pairs([0], [0], n_items=6)
    scores = np.array([9.0, 0.0, 0.4, -0.8, 1.1, 0.5])
    pool, rows = ns.pools.Everything(known), 40_000
    sampler = Dynamic(pool, lambda anchors, ids: scores[ids], 5, temperature)
    taken = sampler.sample(ns.Query(np.zeros(rows, int)), 3, rng=ns.rng_for(1)).ids
    weight = {item: math.exp(scores[item] / temperature) for item in range(1, 6)}
    orders = {}
    for order in itertools.permutations(weight, 3):
        left, chance = sum(weight.values()), 1.0
        for item in order:
            chance, left = chance * weight[item] / left, left - weight[item]
        orders[order] = chance
    assert sum(orders.values()) == pytest.approx(1.0)
    counts = dict.fromkeys(orders, 0)
    for order in map(tuple, taken.tolist()):
        counts[order] += 1
    expected = rows * np.array(list(orders.values()))
    assert expected.min() > 20
    assert scipy.stats.chisquare(list(counts.values()), expected).pvalue > 1e-4
    for item in weight:  # and so has being there at all
        chance = sum(value for order, value in orders.items() if item in order)
        assert scipy.stats.binomtest(int((taken == item).any(axis=1).sum()), rows, chance).pvalue > 1e-5


def test_half_precision_draws_as_fairly():
    sampler = Dynamic(POOL, lambda anchors, ids: ids.bfloat16() * 0, 6, 1.0)
    for draws in (sampler, Dynamic(POOL, sampler.score, 6, top_m=6)):
        taken = draws.sample(ns.Query(torch.zeros(30_000, dtype=torch.long)), 1, rng=ns.rng_for(0))
        assert follows(taken.ids.numpy()[:, 0] - 2, [1 / FREE] * FREE)

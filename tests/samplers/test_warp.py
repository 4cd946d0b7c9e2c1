"""Warp: the first violators among the trials, and the weight of how soon they came."""

import math

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import Warp

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS = 4, 12
TABLE = np.random.default_rng(0).integers(0, 9, (N_ANCHORS, N_ITEMS)) / 4.0
POSITIVES = {0: 0, 1: 5, 2: 3, 3: 1}


def weight(n_items, trial):
    return math.fsum(1 / rank for rank in range(1, (n_items - 1) // trial + 1))


class Given:
    """A pool that answers with the candidates it was given, so that the trials are known."""

    distinct = False

    def __init__(self, ids):
        self.ids = np.array(ids, np.int64)

    def draw(self, query, n, *, rng):
        return ns.Negatives(self.ids[:, :n])


@COMPILING
@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(-1, N_ITEMS - 1), min_size=7, max_size=7)), max_size=5),
    st.sampled_from([0.0, 0.25, 0.6, 1.0]),
    st.integers(0, 9),
    st.booleans(),
)
def test_it_tries_one_after_the_other_like_the_loops(rows, margin, k, in_torch):
    anchors = np.array([anchor for anchor, _ in rows], np.int64)
    positives = np.array([POSITIVES[anchor] for anchor in anchors.tolist()], np.int64)
    ids = np.array([candidates for _, candidates in rows], np.int64).reshape(len(rows), 7)
    query = ns.Query(*((torch.from_numpy(anchors), torch.from_numpy(positives)) if in_torch else (anchors, positives)))
    sampler = Warp(Given(ids), by(TABLE), 7, margin, n_items=40)
    taken = sampler.sample(query, k, rng=ns.rng_for(0))
    assert isinstance(taken.weights, torch.Tensor) is in_torch
    taken = taken.numpy()
    missing = beyond = 0
    for row, (anchor, candidates) in enumerate(rows):
        found, weights, waited = [], [], 0
        for item in candidates:
            if item < 0:
                continue
            waited += 1
            if margin - TABLE[anchor, POSITIVES[anchor]] + TABLE[anchor, item] > 0:
                found.append(item)
                weights.append(weight(40, waited))
                waited = 0
        there = sum(item >= 0 for item in candidates)
        missing += max(min(k, there) - len(found), 0)
        beyond += max(k - there, 0)
        empty = max(k - len(found), 0)
        assert taken.ids[row].tolist() == found[:k] + [-1] * empty
        assert taken.weights[row].tolist() == pytest.approx(weights[:k] + [0.0] * empty)
        assert taken.scores[row].tolist() == [TABLE[anchor, item] for item in found[:k]] + [0.0] * empty
    assert taken.dropped == {name: count for name, count in (("exhausted", beyond), ("no violator", missing)) if count}
    assert taken.log_q is None
    assert taken.shape == taken.weights.shape == (len(rows), k)


@pytest.mark.parametrize("n_items", [3, 11, 255, 256, 257, 258, 100_000])
def test_weights_are_harmonic_numbers(n_items):
    """Of a pool whose candidates all violate at once, and whose first t - 1 never do."""
    for trial in (1, 2, 4):
        candidates = [[1] * (trial - 1) + [2]]
        sampler = Warp(Given(candidates), lambda anchors, ids: (ids != 1) * 1.0, trial, 0.5, n_items=n_items)
        taken = sampler.sample(ns.Query([0], positives=[0]), 1, rng=ns.rng_for(0))
        assert taken.weights[0, 0] == pytest.approx(weight(n_items, trial), rel=1e-14)


N_MANY, VIOLATORS, ROWS = 101, 20, 5_000
MANY = ns.Positives.from_pairs([0], [100], 1, N_MANY)


def many(k, trials=200, **settings):
    """100 free items, of which the last 20 violate: rho = 0.2."""
    values = np.where(np.arange(N_MANY) >= 80, 1.5, 0.0)[None]
    values[0, 100] = 2.0
    pool = ns.pools.Everything(MANY, distinct=False)
    query = ns.Query(np.zeros(ROWS, np.int64), positives=np.full(ROWS, 100))
    return Warp(pool, by(values), trials, **settings).sample(query, k, rng=ns.rng_for(1))


def trials_of(taken):
    """Which trial each weight stands for: with a million items no two trials weigh the same."""
    table = np.array([0.0] + [weight(1_000_000, trial) for trial in range(1, 201)])
    assert len(set(table.tolist())) == 201
    found = 200 - np.searchsorted(table[:0:-1], taken.weights - 1e-9, side="left")
    np.testing.assert_allclose(table[found], taken.weights, rtol=1e-12)
    return found


def test_a_violator_takes_one_over_rho_trials_each_time():
    slot = 2  # after two others
    taken = many(3, n_items=1_000_000)
    rho = VIOLATORS / 100
    trials = trials_of(taken)[:, slot]
    assert abs(trials.mean() - 1 / rho) < 5 * math.sqrt((1 - rho) / rho**2 / ROWS)
    observed = np.bincount(np.minimum(trials, 12), minlength=13)[1:]
    expected = ROWS * rho * (1 - rho) ** np.arange(12)
    expected[-1] = ROWS - expected[:-1].sum()
    assert ((observed - expected) ** 2 / expected).sum() < 50.1  # chi-square of 11 degrees at p = 6e-7
    assert (taken.ids >= 80).all()
    assert taken.dropped == {}

"""AdaptiveOversampling: the marginal of the paper, the sign of a factor, exclusion with bounded work, and its state."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import AdaptiveOversampling, adaptive

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS, D = 5, 12, 3
ITEMS = np.random.default_rng(0).normal(size=(N_ITEMS, D)) * [1.0, 0.5, 2.0]
USERS = np.random.default_rng(1).normal(size=(N_ANCHORS, D))
USERS[3] = 0.0
KNOWN = ns.Positives.from_pairs([0, 0, 1, 2, 2, 2, 3], [1, 4, 0, 3, 5, 7, 2], N_ANCHORS, N_ITEMS)


def embed(anchors):
    return torch.from_numpy(USERS)[anchors] if isinstance(anchors, torch.Tensor) else USERS[anchors]


def marginal(anchor, scale, known, users=USERS, items=ITEMS):
    """sum_f p(f | a) p(rank_f(j)) over what is not known, in plain loops."""
    n = len(items)
    raised = [math.exp(-r / scale) for r in range(1, n + 1)]
    shares = [abs(users[anchor][f]) * float(np.std(items[:, f])) for f in range(items.shape[1])]
    shares = shares if any(shares) else [1.0] * len(shares)
    chances = [0.0] * n
    for f, share in enumerate(shares):
        order = sorted(range(n), key=lambda j: items[j][f], reverse=bool(users[anchor][f] > 0))
        for rank, item in enumerate(order):
            chances[item] += share / sum(shares) * raised[rank] / sum(raised)
    chances = [0.0 if known.contains([anchor], [item])[0] else chance for item, chance in enumerate(chances)]
    return np.array(chances) / sum(chances)


def far_off(found, chances):
    """Chi-square over the items that can come, and a bound that chance does not reach."""
    counts = np.bincount(found, minlength=len(chances))
    assert counts[chances == 0].sum() == 0
    there = chances > 0
    expected = counts.sum() * chances[there]
    degrees = np.count_nonzero(there) - 1
    bound = degrees + 5 * math.sqrt(2 * degrees) + 25
    return ((counts[there] - expected) ** 2 / expected).sum() / bound


@pytest.mark.parametrize("anchor", range(N_ANCHORS))
@pytest.mark.parametrize("rounds", [8, 1, 0])
def test_draws_follow_the_marginal_however_they_are_made(anchor, rounds, monkeypatch):
    monkeypatch.setattr(adaptive, "_REDRAWS", rounds)  # 0: every draw by the exact formula
    sampler = AdaptiveOversampling(KNOWN, ITEMS, embed, 3.0)
    taken = sampler.sample(ns.Query(np.full(5000, anchor)), 4, rng=ns.rng_for(anchor))
    assert far_off(taken.ids.ravel(), marginal(anchor, 3.0, KNOWN)) < 1
    assert taken.log_q is None
    assert taken.dropped == {}


def test_a_negative_factor_ranks_from_the_lowest():
    items = np.arange(12.0)[:, None]
    known = ns.Positives.from_pairs([], [], 2, 12)
    sampler = AdaptiveOversampling(known, items, lambda anchors: np.array([[2.0], [-0.5]])[anchors], 0.05)
    assert sampler.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids.tolist() == [[11, 11, 11], [0, 0, 0]]


def test_flat_factors_are_never_drawn():
    items = np.stack([np.arange(12.0), np.ones(12)], axis=1)  # the second has no deviation
    known = ns.Positives.from_pairs([], [], 1, 12)
    sampler = AdaptiveOversampling(known, items, lambda anchors: np.array([[1e-6, 1e6]])[anchors], 0.05)
    assert sampler.sample(ns.Query([0]), 5, rng=ns.rng_for(0)).ids.tolist() == [[11] * 5]


@COMPILING
@given(
    st.sets(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1))),
    st.lists(st.integers(0, N_ANCHORS - 1), max_size=6),
    st.sampled_from([0.001, 1.0, 1000.0]),
    st.integers(0, 5),
)
def test_nothing_known_comes_back_and_only_full_anchors_stay_empty(pairs, anchors, scale, k):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], N_ANCHORS, N_ITEMS)
    taken = AdaptiveOversampling(known, ITEMS, embed, scale).sample(
        ns.Query(np.array(anchors, np.int64)), k, rng=ns.rng_for(0)
    )
    assert taken.shape == (len(anchors), k)
    missing = 0
    for anchor, ids in zip(anchors, taken.ids.tolist(), strict=True):
        liked = {item for owner, item in pairs if owner == anchor}
        assert not liked & set(ids)
        full = len(liked) == N_ITEMS
        assert all((item == -1) == full for item in ids)
        missing += k * full
    assert taken.dropped == ({"exhausted": missing} if missing else {})


def test_known_items_on_top_do_not_make_the_chances_vanish():
    items = np.arange(2000.0)[:, None]
    known = ns.Positives.from_pairs(np.zeros(1997, np.int64), np.arange(3, 2000), 1, 2000)
    sampler = AdaptiveOversampling(known, items, lambda anchors: np.ones((len(anchors), 1)), 1.0)
    taken = sampler.sample(ns.Query(np.zeros(300, np.int64)), 3, rng=ns.rng_for(0))
    chances = np.exp([-2.0, -1.0, 0.0])
    assert far_off(taken.ids.ravel(), chances / chances.sum()) < 1


def test_ranks_move_with_update_and_the_paper_says_when():
    sampler = AdaptiveOversampling(KNOWN, ITEMS, embed, 3.0)
    limit = N_ITEMS * math.log(N_ITEMS)  # 29.8
    query = ns.Query([0, 1])
    for _ in range(7):
        assert not sampler.due
        sampler.sample(query, 2, rng=ns.rng_for(0))
    assert 4 * 7 < limit < 4 * 8
    sampler.sample(query, 2, rng=ns.rng_for(0))
    assert sampler.due
    sampler.update(torch.from_numpy(-ITEMS))
    assert not sampler.due
    taken = sampler.sample(ns.Query(np.zeros(5000, np.int64)), 4, rng=ns.rng_for(0))
    assert far_off(taken.ids.ravel(), marginal(0, 3.0, KNOWN, items=-ITEMS)) < 1

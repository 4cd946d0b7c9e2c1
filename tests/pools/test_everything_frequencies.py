"""Everything's frequencies against what it claims: exp(log_q), the formula of the design, and brute force.

Seeds are fixed and a fit is refused below p = 1e-5: a right distribution never gets there, a wrong one always does.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import naysay as ns
from naysay.kernels import uniform
from naysay.pools import Everything

UNIFORM_OR_NOT = pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
DISTINCT_OR_NOT = pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "independent"])


@pytest.fixture(params=[32, 0], ids=lambda tries: f"tries={tries}")
def tries(request, monkeypatch):
    """The usual bound, and bounds at which the exact fallbacks do the work."""
    monkeypatch.setattr(uniform, "TRIES", request.param)
    return request.param


def fits(observed, expected):
    """The p-value of a chi-square test; cells that expect less than 8 are put together, probability 0 is seen never."""
    observed, expected = np.asarray(observed, np.float64), np.asarray(expected, np.float64)
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    assert (observed[expected == 0] == 0).all()
    wanted = expected * observed.sum()
    order = np.argsort(-wanted)
    groups = np.empty(len(wanted), np.int64)
    groups[order] = np.floor(np.cumsum(wanted[order]) / 8 - 1e-9).clip(0)
    _, groups = np.unique(groups, return_inverse=True)
    groups = np.minimum(groups, max(groups.max() - 1, 0))  # the last one may be too small
    wanted, found = np.bincount(groups, wanted), np.bincount(groups, observed)
    return stats.chi2.sf(((found - wanted) ** 2 / wanted).sum(), max(len(wanted) - 1, 1))


def draw(pool, anchors, n, seed=0):
    return pool.draw(ns.Query(anchors), n, rng=ns.rng_for(seed))


# ---- a catalogue of 1,000 items, from nothing known to all ----------------------------------------------------------

N_ITEMS = 1000
SHARES = ["none", "1%", "popular 50%", "99.9%", "all but a rare one", "all"]


@pytest.fixture(scope="module")
def catalogue():
    """Items in order of popularity under a shuffle, 1 / rank, and an anchor for each share."""
    rng = np.random.default_rng(8)
    rank = rng.permutation(N_ITEMS)
    weights = 1.0 / (rank + 1.0)
    known = {
        "none": [],
        "1%": rng.permutation(N_ITEMS)[: N_ITEMS // 100],
        "popular 50%": np.flatnonzero(rank < N_ITEMS // 2),
        "99.9%": rng.permutation(N_ITEMS)[: N_ITEMS - 1],
        "all but a rare one": np.flatnonzero(rank != N_ITEMS - 1),
        "all": np.arange(N_ITEMS),
    }
    anchors = np.concatenate([np.full(len(known[name]), row) for row, name in enumerate(SHARES)])
    items = np.concatenate([known[name] for name in SHARES]).astype(np.int64)
    return ns.Positives.from_pairs(anchors, items, len(SHARES), N_ITEMS), weights, known


def chances(catalogue, share, weighted):
    """P(item) in the first slot, in float64, and the weights: the oracle."""
    _, weights, known = catalogue
    w = weights.copy() if weighted else np.ones(N_ITEMS)
    free = w.copy()
    free[np.asarray(known[share], np.int64)] = 0
    return free / max(free.sum(), 1e-300), w


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
@pytest.mark.parametrize("share", SHARES)
def test_frequencies_are_those_of_the_formula(catalogue, share, weighted, distinct, tries):
    positives, weights, _ = catalogue
    expected, w = chances(catalogue, share, weighted)
    pool = Everything(positives, weights if weighted else None, distinct)
    rows, n = (20_000, 3) if distinct else (500, 40)
    got = draw(pool, np.full(rows, SHARES.index(share)), n, seed=SHARES.index(share))
    n_free = int((expected > 0).sum())
    filled = min(n, n_free) if distinct else n * (n_free > 0)
    assert ((got.ids >= 0).sum(axis=1) == filled).all()
    if filled == 0:
        assert got.dropped == {"exhausted": rows * n}
        assert (got.log_q == 0).all()
        return
    seen = got.ids[:, :1] if distinct else got.ids
    assert fits(np.bincount(seen.ravel(), minlength=N_ITEMS), expected) > 1e-5
    drawn = w[got.ids[:, :filled]]
    before = np.cumsum(drawn, axis=1) - drawn if distinct else 0.0
    formula = np.log(drawn) - np.log(w[expected > 0].sum() - before)
    assert np.abs(got.log_q[:, :filled] - formula).max() < 1e-9
    if distinct and not weighted and filled == n:  # then every slot is uniform by itself
        for slot in range(1, n):
            assert fits(np.bincount(got.ids[:, slot], minlength=N_ITEMS), expected) > 1e-5


# ---- rows of 4 out of six, all of them ---------------------------------------------------------------------

SIX = [1, 4, 5, 8, 10, 11]
ALL_WEIGHTS = np.array([90, 1, 7, 40, 2, 3, 15, 1, 5, 60, 8, 13], np.float64)


def row_probability(row, weights):
    """P of an ordered row of distinct items by the formula of the design, one slot after another."""
    probability, left = 1.0, math.fsum(weights[item] for item in SIX)
    for slot, item in enumerate(row):
        probability *= weights[item] / (left - math.fsum(weights[earlier] for earlier in row[:slot]))
    return probability


@UNIFORM_OR_NOT
@pytest.mark.parametrize("n", [4])
@pytest.mark.parametrize("heavy", [False, True], ids=["light", "heavy"])
def test_every_ordered_row_out_of_six_items(weighted, n, heavy, tries):
    """All 360 rows of 4, which uniform draws shuffle. In the heavy world six more items are known."""
    if heavy:
        items, size = SIX, 12
        known = sorted(set(range(size)) - set(SIX))
    else:
        items, size, known = list(range(6)), 6, []
    weights = ALL_WEIGHTS[SIX].copy() if not heavy else ALL_WEIGHTS
    by_item = dict(zip(items, SIX, strict=True))
    positives = ns.Positives.from_pairs([0] * len(known), known, 1, size)
    got = draw(Everything(positives, weights if weighted else None), np.zeros(60_000, np.int64), n, seed=17)
    code = (got.ids * size ** np.arange(n)).sum(axis=1)
    claimed = np.exp(got.log_q.sum(axis=1))
    oracle_weights = ALL_WEIGHTS if weighted else np.ones(12)
    observed, expected = [], []
    for row in itertools.permutations(items, n):
        mine = code == sum(item * size**slot for slot, item in enumerate(row))
        probability = row_probability([by_item[item] for item in row], oracle_weights)
        observed.append(int(mine.sum()))
        expected.append(probability)
        assert np.abs(claimed[mine] - probability).max(initial=0) < 1e-9
    assert sum(observed) == len(code)  # so no other row came
    assert fits(observed, expected) > 1e-5


@UNIFORM_OR_NOT
def test_wide_rows_have_the_right_inclusion_and_order(weighted, tries):
    """40 of 100 items, beyond what is compared pair by pair: the last slot of uniform rows, slot 1 of weighted ones."""
    weights = np.repeat([1.0, 3.0], 50)
    positives = ns.Positives.from_pairs(np.zeros(20, np.int64), np.arange(20, 40), 1, 120)
    w = np.concatenate([weights[:20], np.full(20, 9.0), weights[20:]])
    pool = Everything(positives, w if weighted else None)
    got = draw(pool, np.zeros(10_000, np.int64), 40, seed=23)
    free = np.ones(120)
    free[20:40] = 0
    if not weighted:
        for slot in (0, 20, 39):
            assert fits(np.bincount(got.ids[:, slot], minlength=120), free / 100) > 1e-5
        return
    p = free * w / (free * w).sum()
    second = p * np.array([sum(p[j] / (1 - p[j]) for j in range(120) if j != i) for i in range(120)])
    assert fits(np.bincount(got.ids[:, 1], minlength=120), second) > 1e-5
    assert fits(np.bincount(got.ids[:, 0], minlength=120), p) > 1e-5


# ---- extreme weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True], ids=["free", "known"])
@DISTINCT_OR_NOT
def test_one_item_with_a_trillion_times_the_weight_of_the_rest(known, distinct, tries):
    """Known, it must not disturb the rest; free, it comes first and then the rest follow their weights."""
    weights = np.array([1.0, 2.0, 3.0, 0.0, 4.0, 1e13])
    rest = np.array([0.1, 0.2, 0.3, 0.0, 0.4, 0.0])
    positives = ns.Positives.from_pairs([0] if known else [], [5] if known else [], 1, 6)
    got = draw(Everything(positives, weights, distinct), np.zeros(20_000, np.int64), 2, seed=3)
    if known:
        assert fits(np.bincount(got.ids[:, 0], minlength=6), rest) > 1e-5
        assert np.abs(got.log_q[:, 0] - np.log(rest[got.ids[:, 0]])).max() < 1e-6
        assert not distinct or (got.ids[:, 0] != got.ids[:, 1]).all()
        return
    assert (got.ids[:, 0] == 5).all()  # 1e-12 * 20,000 of a chance for anything else
    assert np.abs(got.log_q[:, 0]).max() < 1e-11
    if distinct:
        assert fits(np.bincount(got.ids[:, 1], minlength=6), rest) > 1e-5
        assert np.abs(got.log_q[:, 1] - np.log(rest[got.ids[:, 1]])).max() < 1e-6
    else:
        assert (got.ids == 5).all()


@DISTINCT_OR_NOT
def test_a_row_whose_free_items_all_weigh_0_is_empty_and_counted(distinct, tries):
    weights = [0.0, 2.0, 0.0, 5.0]
    positives = ns.Positives.from_pairs([0, 0, 1], [1, 3, 1], 2, 4)
    got = draw(Everything(positives, weights, distinct), np.array([0, 1]), 3)
    assert got.ids[0].tolist() == [-1, -1, -1]
    assert got.ids[1].tolist() == ([3, -1, -1] if distinct else [3, 3, 3])
    assert got.log_q.tolist() == [[0.0] * 3] * 2
    assert got.dropped == {"exhausted": 5 if distinct else 3}


def test_huge_and_tiny_weights_in_one_pool(tries):
    """600 orders of magnitude apart: the tiny ones come when nothing else is left, all alike, and never before."""
    weights = np.repeat([1e300, 1e-300], 4)
    positives = ns.Positives.from_pairs([1] * 4, range(4), 2, 8)
    got = draw(Everything(positives, weights), np.zeros(5_000, np.int64), 9)
    assert (got.ids[:, :4] < 4).all()
    assert (got.ids[:, 4:8] >= 4).all()
    assert (got.ids[:, 8] == -1).all()
    assert np.isfinite(got.log_q).all()
    assert fits(np.bincount(got.ids[:, 0], minlength=8), [0.25] * 4 + [0] * 4) > 1e-5
    assert fits(np.bincount(got.ids[:, 4], minlength=8), [0] * 4 + [0.25] * 4) > 1e-5
    assert np.abs(got.log_q[:, 4:8] + np.log([4, 3, 2, 1])).max() < 1e-9
    only_tiny = draw(Everything(positives, weights, distinct=False), np.ones(5000, np.int64), 4)
    assert fits(np.bincount(only_tiny.ids.ravel(), minlength=8), [0] * 4 + [0.25] * 4) > 1e-5
    assert np.abs(only_tiny.log_q + np.log(4)).max() < 1e-9

"""Everything: the laws of its draws, by plain-loop oracles on small worlds and by sorted keys on a large one."""

import numpy as np
import pytest
from scipy import stats

import naysay as ns
from naysay import NaysayError
from naysay.kernels import uniform
from naysay.pools import Everything, popularity

UNIFORM_OR_NOT = pytest.mark.parametrize("weighted", [False, True], ids=["uniform", "weighted"])
DISTINCT_OR_NOT = pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "independent"])


def world(known, n_items):
    """Positives from a list of sets, one for each anchor."""
    pairs = [(anchor, item) for anchor, items in enumerate(known) for item in items]
    anchors, items = zip(*pairs, strict=True) if pairs else ((), ())
    return ns.Positives.from_pairs(anchors, items, len(known), n_items)


def draw(pool, anchors, n, seed=0):
    return pool.draw(ns.Query(np.asarray(anchors, np.int64)), n, rng=ns.rng_for(seed))


# ---- laws on small worlds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
def test_candidates_are_the_same_draw_without_log_q(weighted, distinct):
    known = ns.Positives.from_pairs([0, 0, 1, 2, 2, 2], [0, 1, 2, 0, 1, 2], 3, 4)
    pool = ns.pools.Everything(known, [1, 2, 3, 4] if weighted else None, distinct=distinct)
    query = ns.Query([0, 1, 2, 1])
    drawn, candidates = pool.draw(query, 3, rng=ns.rng_for(0)), pool.draw_candidates(query, 3, rng=ns.rng_for(0))
    assert np.array_equal(drawn.ids, candidates.ids)
    assert drawn.dropped == candidates.dropped
    assert drawn.log_q is not None
    assert candidates.log_q is None


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
@pytest.mark.parametrize("tries", [0, 32])
def test_the_first_8_are_the_same_for_8_and_80(weighted, distinct, tries, monkeypatch):
    """With 200 or more free items. The one exception is below."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    rng = np.random.default_rng(3)
    known = [set(rng.choice(2000, size, False).tolist()) for size in (0, 10, 900, 1100, 1800)]
    pool = Everything(world(known, 2000), popularity(rng.integers(1, 99, 2000)) if weighted else None, distinct)
    anchors = np.arange(5).repeat(20)
    narrow = draw(pool, anchors, 8)
    for n in (9, 31, 33, 80):
        wide = draw(pool, anchors, n)
        assert (wide.ids[:, :8] == narrow.ids).all()
        assert np.abs(wide.log_q[:, :8] - narrow.log_q).max() < 1e-12
    uneven = draw(pool, anchors, np.arange(100) % 9)
    assert (uneven.ids[uneven.ids >= 0] == narrow.ids[uneven.ids >= 0]).all()


@UNIFORM_OR_NOT
def test_the_first_8_differ_only_where_uniform_rows_are_asked_for_more_than_half(weighted):
    """A distinct uniform row switches to a shuffle of all that is free when it is asked for more than half of it.

    That is the one place where asking for more changes the earlier slots; a weighted row never switches.
    """
    pool = Everything(world([set()], 40), np.arange(1, 41) if weighted else None)
    rows = np.zeros(50, np.int64)
    eight, half, more = (draw(pool, rows, n).ids[:, :8] for n in (8, 20, 21))
    assert (eight == half).all()
    assert (eight == more).all() == weighted
    assert (draw(pool, rows, 40).ids[:, :8] == more).all()  # within the shuffle the law holds again


# ---- nothing known comes back, at scale -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    """5,000 x 40,000 with 300,000 pairs: Zipf-like items and users, and three users who know almost all."""
    rng = np.random.default_rng(20)
    n_anchors, n_items = 5_000, 40_000
    items = np.exp(rng.uniform(0, np.log(n_items + 1), 213_000)).astype(np.int64) - 1
    anchors = (n_anchors * rng.uniform(size=len(items)) ** 2).astype(np.int64)
    full = [rng.permutation(n_items)[:size] for size in (39_960, 39_999, 40_000)]
    keys = [anchors * n_items + items, *(who * n_items + ids for who, ids in zip((7, 11, 13), full, strict=True))]
    keys = np.unique(np.concatenate(keys))
    shuffled = rng.permutation(keys)
    assert 290_000 < len(keys) < 340_000
    return ns.Positives.from_pairs(shuffled // n_items, shuffled % n_items, n_anchors, n_items), keys


def among(keys, asked):
    """Whether each of `asked` is in sorted `keys`; quick where `asked` is almost in order."""
    return keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked


@UNIFORM_OR_NOT
@DISTINCT_OR_NOT
def test_no_known_positive_in_many_draws(large, weighted, distinct):
    """By sorted keys anchor * n + item, which share no code with Positives."""
    positives, keys = large
    weights = popularity(np.bincount(keys % 40_000, minlength=40_000) + 1, 1.0) if weighted else None
    pool = Everything(positives, weights, distinct)
    got = draw(pool, np.arange(1_000), 100)
    drawn = np.sort(got.ids, axis=1)
    empty = drawn < 0
    degrees = np.bincount(keys // 40_000, minlength=5_000)[:1_000]
    possible = np.minimum(100, 40_000 - degrees) if distinct else np.where(degrees < 40_000, 100, 0)
    assert ((~empty).sum(axis=1) == possible).all()
    assert got.dropped == {"exhausted": int((100 - possible).sum())}
    assert drawn.max() < 40_000
    asked = (drawn + 40_000 * np.arange(1_000)[:, None])[~empty]
    assert not among(keys, asked).any()
    if distinct:
        assert (np.diff(asked) > 0).all()


@UNIFORM_OR_NOT
def test_the_exact_fallback_alone_lets_nothing_known_through(large, weighted, monkeypatch):
    """With no tries at all: every known candidate and every repetition goes to the fallback."""
    monkeypatch.setattr(uniform, "TRIES", 0)
    positives, keys = large
    weights = popularity(positives.item_counts() + 1, 1.0) if weighted else None
    anchors = np.arange(1000)
    got = draw(Everything(positives, weights), anchors, 50).ids
    ordered = np.sort(got, axis=1)
    asked = (ordered + 40_000 * anchors[:, None])[ordered >= 0]
    assert not among(keys, asked).any()
    assert among(keys, keys[::1000]).all()  # the check itself can see
    assert not ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()


# ---- draw_pairs -----------------------------------------------------------------------------------------------------


def graph():
    sources, targets = [0, 0, 1, 2, 4, 4], [1, 2, 2, 3, 5, 0]
    edges = {(a, b) for a, b in zip(sources, targets, strict=True)}
    return ns.Positives.from_edges(sources, targets, 7), edges | {(b, a) for a, b in edges}


@pytest.mark.parametrize("n", [5, 28])
@DISTINCT_OR_NOT
def test_pairs_are_uniform_over_all_that_are_not_known(n, distinct):
    positives, edges = graph()
    allowed = sorted({(a, b) for a in range(7) for b in range(7) if a != b} - edges)
    assert len(allowed) == 30
    pool = Everything(positives)
    counts = dict.fromkeys(allowed, 0)
    first = dict.fromkeys(allowed, 0)
    rounds = 2000 // n
    for step in range(rounds):
        anchors, items = pool.draw_pairs(n, rng=ns.rng_for(1, step), distinct=distinct)
        pairs = list(zip(anchors.tolist(), items.tolist(), strict=True))
        assert len(pairs) == n
        assert not distinct or len(set(pairs)) == n
        first[pairs[0]] += 1  # a KeyError here is an edge or a loop
        for pair in pairs:
            counts[pair] += 1
    if distinct:  # fewer degrees of freedom: at n of 30 the variance is (30 - n) / 29 of the independent one
        excess = (np.array(list(counts.values())) - rounds * n / 30) ** 2 / (rounds * n / 30)
        assert 1e-4 < stats.chi2.sf(excess.sum() * 29 / (30 - n), 29) < 1 - 1e-4
    else:
        assert stats.chisquare(list(counts.values())).pvalue > 1e-4
    if rounds >= 400:
        assert stats.chisquare(list(first.values())).pvalue > 1e-4  # the order is random too


def test_pairs_follow_the_settings_of_the_pool():
    positives, edges = graph()
    every = {(a, b) for a in range(7) for b in range(7) if a != b} - edges
    for n in (30, 31, 1000):  # 30 pairs are not known: each comes once
        anchors, items = Everything(positives).draw_pairs(n, rng=ns.rng_for(0))
        assert len(anchors) == 30
        assert set(zip(anchors.tolist(), items.tolist(), strict=True)) == every
    independent = Everything(positives, distinct=False)
    assert len(independent.draw_pairs(500, rng=ns.rng_for(0))[0]) == 500
    assert len(independent.draw_pairs(500, rng=ns.rng_for(0), distinct=True)[0]) == 30
    strict = Everything(positives, on_short="raise")
    assert len(strict.draw_pairs(31, rng=ns.rng_for(0), distinct=False)[0]) == 31
    full = Everything(world([{0, 1}, {0, 1}], 2))
    for distinct in (True, False):
        assert len(full.draw_pairs(5, rng=ns.rng_for(0), distinct=distinct)[0]) == 0


def test_a_rejected_draw_takes_nothing_from_the_generator():
    rng = ns.rng_for(0)
    with pytest.raises(NaysayError):
        Everything(world([{0}, {1}], 3)).draw(ns.Query([9]), 1, rng=rng)
    assert rng.integers(1 << 40) == ns.rng_for(0).integers(1 << 40)

"""Cached: by loops, Barker's law, what may enter a cache, and what it refuses."""

from itertools import permutations

import numpy as np
import pytest
import torch
from by_table import by
from cache_tables import put
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import in_threads
from scipy.stats import chisquare

import naysay as ns
from naysay.samplers import Cached
from naysay.samplers._choose import gumbel

LOGITS = np.array([0, 0.5, 1, -1, 2, 0.3])
N_ANCHORS, N_ITEMS = 5, 8
PAIRS = [(0, 0), (0, 1), (1, 5), *((2, item) for item in range(7)), *((4, item) for item in range(8))]
KNOWN = ns.Positives.from_pairs([a for a, _ in PAIRS], [i for _, i in PAIRS], N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
TABLE = np.random.default_rng(0).standard_normal((N_ANCHORS, N_ITEMS))


by_table = by(TABLE)


def nothing_known(n_anchors, n_items=6):
    return ns.pools.Everything(ns.Positives.from_pairs([], [], n_anchors, n_items))


def fixed(logits):
    return lambda anchors, ids: logits[ids]


def taught(sampler, anchors, steps):
    for step in range(steps):
        query = ns.Query(np.asarray(anchors), step=step)
        sampler.observe(query, sampler.sample(query, 1, rng=ns.rng_for(9, step)))
    return sampler


# ---- the update -----------------------------------------------------------------------------------------


def renewed_by_loops(held, anchors, size, fresh, keep, temperature, number):
    """{anchor: cached ids} after one observe, one anchor and one candidate at a time."""
    rng = ns.rng_for(3, number)
    rows = sorted(set(anchors))
    wanted = np.array([fresh + size - len(held[anchor]) for anchor in rows])
    drawn = POOL.draw(ns.Query(rows), wanted, rng=rng).ids.tolist()
    noise = np.zeros((len(rows), size + fresh))
    if keep == "softmax":
        noise = gumbel(noise.shape, ns.rng.key_from(rng), np.zeros(1))
    after = dict(held)
    for row, anchor in enumerate(rows):
        candidates = list(held[anchor])
        for item in drawn[row]:
            if item >= 0 and item not in candidates:
                candidates.append(item)
        scale = temperature if keep == "softmax" else 1
        value = {item: TABLE[anchor, item] / scale + noise[row, slot] for slot, item in enumerate(candidates)}
        after[anchor] = sorted(candidates, key=lambda item: -value[item])[:size]
    return after


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=6), max_size=4),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([("softmax", 0.5), ("softmax", 1.0), ("softmax", 3.0), ("top", 1.0)]),
    st.booleans(),
)
def test_the_cache_is_what_loops_say_in_numpy_and_torch(batches, size, fresh, how, as_torch):
    keep, temperature = how
    sampler = Cached(POOL, by_table, size, fresh, keep=keep, temperature=temperature, seed=3)
    held = {anchor: [] for anchor in range(N_ANCHORS)}
    for number, anchors in enumerate(batches):
        held = renewed_by_loops(held, anchors, size, fresh, keep, temperature, number)
        sampler.observe(ns.Query(torch.tensor(anchors) if as_torch else anchors))
        expected = [held[anchor] + [-1] * (size - len(held[anchor])) for anchor in range(N_ANCHORS)]
        assert sampler.cache.tolist() == expected


def barker(logits, temperature=1.0):
    """The transitions of one cached id and one fresh one: (n, n)."""
    n, weight = len(logits), np.exp(logits / temperature)
    kernel = np.zeros((n, n))
    for old in range(n):
        for new in range(n):
            kernel[old, new] += weight[new] / (weight[old] + weight[new]) / n
            kernel[old, old] += weight[old] / (weight[old] + weight[new]) / n
    return kernel


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_barkers_law_one_step_and_in_the_long_run(temperature):
    """Of size = fresh = 1 the cache is a Markov chain whose stationary law is the softmax over all free items."""
    kernel = barker(LOGITS, temperature)
    law = np.exp(LOGITS / temperature) / np.exp(LOGITS / temperature).sum()
    np.testing.assert_allclose(law @ kernel, law, atol=1e-15)
    if temperature == 1.0:  # the golden values of the specification
        np.testing.assert_allclose(law, [0.069090, 0.113911, 0.187807, 0.025417, 0.510513, 0.093262], atol=5e-7)
    chains = 6 * 2000
    sampler = Cached(nothing_known(chains), fixed(LOGITS), 1, 1, temperature=temperature)
    starts, everyone = np.repeat(np.arange(6), 2000), ns.Query(np.arange(chains))
    put(sampler, np.arange(chains), starts[:, None])
    for step in range(40):
        sampler.observe(everyone)
        now = sampler.cache[:, 0]
        if step == 0:
            for start in range(6):
                seen = np.bincount(now[starts == start], minlength=6)
                assert chisquare(seen, 2000 * kernel[start]).pvalue > 1e-5
    assert chisquare(np.bincount(now, minlength=6), chains * law).pvalue > 1e-5
    free = sampler.sample(everyone, 1, rng=ns.rng_for(1)).ids[:, 0]
    assert np.array_equal(free, now)


@pytest.mark.parametrize("scale", [1.0, 1e4])  # softmax weights of exp(1e4) overflow if they are not shifted
@pytest.mark.parametrize("distinct", [True, False])
def test_no_id_enters_twice_and_none_that_is_known(scale, distinct):
    """NSCaching and SRNS keep duplicates, so a cache shrinks as scores peak; NSCaching keeps known triples, too."""
    pool = ns.pools.Everything(KNOWN, distinct=distinct)
    sampler = Cached(pool, lambda anchors, ids: scale * by_table(anchors, ids), 3, 6, choose="softmax")
    for step in range(14):
        query = ns.Query(np.arange(N_ANCHORS))
        sampler.observe(query)
        ids = sampler.cache
        assert not KNOWN.contains(np.arange(N_ANCHORS), ids).any()
        for anchor, row in enumerate(ids.tolist()):
            filled = [item for item in row if item >= 0]
            assert len(set(filled)) == len(filled)
            if step > 10:
                assert len(filled) == min(3, N_ITEMS - KNOWN.count([anchor])[0])
        drawn = sampler.sample(query, 3, rng=ns.rng_for(0, step))
        assert np.isfinite(drawn.scores).all()


def test_a_lazy_cache_is_renewed_in_every_nth_epoch():
    sampler = taught(Cached(POOL, by_table, 3, 3, every=3), [0, 1, 3], 1)
    tables = []
    for _ in range(7):
        tables.append(sampler.cache.tolist())
        sampler.update()
        taught(sampler, [0, 1, 3], 5)
    assert tables[0] == tables[1] == tables[2] != tables[3] == tables[4] == tables[5] != tables[6]


# ---- the choice -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choose", ["uniform", "softmax"])
def test_frequencies_match_log_q_given_the_cache(choose):
    rows, cached = 6_000, [4, 1, 3, 2]
    sampler = Cached(nothing_known(1), fixed(LOGITS), 4, 1, choose=choose, temperature=0.8)
    put(sampler, [0], [cached])
    drawn = sampler.sample(ns.Query(np.zeros(rows, int)), 3, rng=ns.rng_for(2))
    weight = {item: 1.0 if choose == "uniform" else np.exp(LOGITS[item] / 0.8) for item in cached}
    seen, chances = dict.fromkeys(permutations(cached, 3), 0), {}
    for order in seen:
        left, chances[order] = sum(weight.values()), []
        for item in order:
            chances[order].append(np.log(weight[item] / left))
            left -= weight[item]
    for ids in drawn.ids.tolist():
        seen[tuple(ids)] += 1
    if choose == "uniform":
        np.testing.assert_allclose(drawn.log_q, [chances[tuple(ids)] for ids in drawn.ids.tolist()], atol=1e-12)
    else:
        assert drawn.log_q is None
    expected = [rows * np.exp(sum(chances[order])) for order in seen]
    assert chisquare(list(seen.values()), expected).pvalue > 1e-5


def test_the_top_of_a_cache_and_its_scores():
    sampler = Cached(nothing_known(2), fixed(LOGITS), 4, 1, choose="top")
    put(sampler, [0, 1], [[1, 3, 0, 5], [2, 4, -1, -1]])
    drawn = sampler.sample(ns.Query([1, 0]), 3, rng=ns.rng_for(0))
    assert drawn.ids.tolist() == [[4, 2, -1], [1, 5, 0]]
    assert drawn.scores.tolist() == [[2, 1, 0], [0.5, 0.3, 0]]
    assert drawn.log_q is None
    assert drawn.dropped == {"exhausted": 1}


def test_a_cached_positive_of_the_row_is_left_out():
    """It cannot be known of the pool, or it would not be cached."""
    sampler = Cached(nothing_known(1), fixed(LOGITS), 3, 1)
    put(sampler, [0], [[4, 2, 5]])
    drawn = sampler.sample(ns.Query([0] * 50, positives=[4, 2] * 25), 3, rng=ns.rng_for(0))
    assert (np.sort(drawn.ids[::2], axis=1) == [-1, 2, 5]).all()
    assert (np.sort(drawn.ids[1::2], axis=1) == [-1, 4, 5]).all()
    np.testing.assert_allclose(np.exp(drawn.log_q[0]), [1 / 2, 1, 1])


@pytest.mark.parametrize("choose", ["uniform", "softmax", "top"])
def test_an_empty_cache_draws_from_the_pool(choose):
    weighted = ns.pools.Everything(KNOWN, np.arange(1.0, 9.0))
    sampler = Cached(weighted, by_table, 4, 1, choose=choose)
    put(sampler, [1], [[3, 4, 6, 7]])
    query = ns.Query([0, 1, 3, 2, 4])
    drawn = sampler.sample(query, 4, rng=ns.rng_for(0))
    assert set(drawn.ids[1].tolist()) == {3, 4, 6, 7}
    assert drawn.dropped == {"exhausted": 3 + 4}
    if choose == "uniform":
        free = np.arange(2, 8) + 1.0
        first = drawn.ids[0, 0]
        assert drawn.log_q[0, 0] == pytest.approx(np.log((first + 1) / free.sum()))
    before = sampler.state()
    for step in range(3):
        sampler.sample(query, 2.5, rng=ns.rng_for(0, step))
    assert all(np.array_equal(before[name], value) for name, value in sampler.state().items())


# ---- states, threads, errors ----------------------------------------------------------------------------


def test_one_thread_renews_while_another_draws():
    """All ids of a cache are even or all are odd, in turns: no draw may mix them."""
    parity = [0]
    known = ns.Positives.from_pairs([], [], 64, 400)
    sampler = Cached(ns.pools.Everything(known), lambda anchors, ids: ((ids + parity[0]) % 2) * 1e3, 8, 60, keep="top")
    query = ns.Query(np.arange(64))
    sampler.observe(query)

    def renew():
        for step in range(30):
            parity[0] = step % 2
            sampler.observe(query)
            sampler.update()

    def draw():
        for step in range(100):
            ids = sampler.sample(query, 4, rng=ns.rng_for(0, step)).ids
            assert (ids >= 0).all()
            assert (ids % 2 == ids[:, :1] % 2).all()

    def save():
        for _ in range(40):
            sampler.restore(sampler.state())

    in_threads(renew, draw, save)

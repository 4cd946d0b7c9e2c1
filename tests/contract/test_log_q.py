"""log_q is exact or absent: frequencies against exp(log_q), and all rows of six items enumerated."""

import math

import numpy as np
import pytest
from scipy import stats

import naysay as ns
from tests.contract import names, oracles

KNOWN = ns.Positives.from_pairs([0, 0, 1], [2, 5, 0], 2, 8).with_ignored([0], [7])
WEIGHTS = [1.0, 2.0, 3.0, 4.0, 0.5, 2.5, 1.5, 1.0]
ROWS = 6000
GRAPH = ns.Positives.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], 8)
TRIPLES = np.array([[0, 0, 1], [0, 0, 2], [1, 0, 2]])
LISTS = [[1, 2, 3, 4, 6], [0, 2]]
VECTORS = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)

# name: (pool, anchor)
POOLS = {
    "uniform": lambda distinct: ns.pools.Everything(KNOWN, distinct=distinct),
    "weighted": lambda distinct: ns.pools.Everything(KNOWN, WEIGHTS, distinct),
    "local": lambda distinct: ns.pools.Local(LISTS, KNOWN, distinct=distinct),
    "k-hop": lambda distinct: ns.pools.KHop(GRAPH, (2, 4), distinct=distinct),
    "nearest": lambda distinct: ns.pools.Nearest(VECTORS, 4, KNOWN, queries=VECTORS[:2], distinct=distinct),
    "corruption": lambda distinct: ns.pools.Corruption(TRIPLES, n_entities=6, choice="bernoulli", distinct=distinct),
}


def drawn(name, n, distinct, rows=ROWS, seed=0):
    anchors = np.tile(TRIPLES[:1], (rows, 1)) if name == "corruption" else np.zeros(rows, int)
    return POOLS[name](distinct).draw(ns.Query(anchors), n, rng=ns.rng_for(seed))


def fits(counts, chances, total):
    """Whether counts are those of the chances: chi-square at one in ten thousand."""
    assert math.fsum(chances) == pytest.approx(1, abs=1e-9)
    expected = total * np.array(chances)
    statistic = ((np.array(counts) - expected) ** 2 / expected).sum()
    return statistic < stats.chi2.isf(1e-4, len(chances) - 1)


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("distinct", [True, False])
def test_the_first_slot_is_as_frequent_as_log_q_says(name, distinct):
    got = drawn(name, 2, distinct)
    log_q = np.array(got.log_q)[:, 0]
    assert (got.mask[:, 0]).all()
    side = np.zeros(ROWS, int) if got.side is None else got.side[:, 0].astype(int)
    keys = got.ids[:, 0] * 3 + side
    found, first, counts = np.unique(keys, return_index=True, return_counts=True)
    for key, place in zip(found, first, strict=True):
        assert (log_q[keys == key] == log_q[place]).all()
    assert fits(counts, np.exp(log_q[first]).tolist(), ROWS)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0, 0.5, 2.5]], ids=["uniform", "weighted"])
def test_all_rows_of_six_items_are_as_frequent_as_their_enumeration(weights):
    """120 ordered rows of three; log_q of a row adds up to the logarithm of its probability."""
    known = ns.Positives.from_pairs([0], [5], 1, 6)
    each = weights or [1.0] * 6
    chances = oracles.chances_of_rows(each, [0, 1, 2, 3, 4], 3)
    rows = 24_000
    got = ns.pools.Everything(known, weights).draw(ns.Query(np.zeros(rows, int)), 3, rng=ns.rng_for(1))
    counts = dict.fromkeys(chances, 0)
    log_q = np.array(got.log_q)
    for row, logs in zip(got.ids.tolist(), log_q.tolist(), strict=True):
        counts[tuple(row)] += 1
        assert math.fsum(logs) == pytest.approx(math.log(chances[tuple(row)]), abs=1e-9)
    assert len(counts) == 60
    assert fits(list(counts.values()), list(chances.values()), rows)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["uniform", "weighted"])
@pytest.mark.parametrize("distinct", [True, False])
def test_log_q_of_every_slot_is_that_of_its_definition(weights, distinct):
    pool = ns.pools.Everything(KNOWN, weights, distinct)
    got = pool.draw(ns.Query([0, 1, 0, 1]), 7, rng=ns.rng_for(0))
    for row, anchor in enumerate([0, 1, 0, 1]):
        expected = oracles.log_q_of_row(
            got.ids[row].tolist(), weights or [1.0] * 8, oracles.free_items(KNOWN, anchor), distinct
        )
        assert np.array(got.log_q)[row].tolist() == pytest.approx(expected, abs=1e-9)


def test_a_choice_by_scores_has_no_log_q():
    """Its probability is not known exactly, and the pool's would be wrong."""
    pool, scores = ns.pools.Everything(KNOWN), np.linspace(0, 1, 8)

    def score(anchors, ids):
        return scores[ids]

    query = ns.Query([0, 1], positives=[2, 0])
    for sampler in (
        ns.samplers.Dynamic(pool, score, candidates=4),
        ns.samplers.SemiHard(pool, score, 4, margin=2.0),
        ns.samplers.NearPositive(pool, score, 4),
        names.PercentileRange(pool, score, 4, keep=(0.5, 1.0)),
        ns.samplers.Warp(pool, score, 4),
    ):
        assert sampler.sample(query, 2, rng=ns.rng_for(0)).log_q is None
    assert ns.pools.Walks(GRAPH).draw(ns.Query([1]), 1, rng=ns.rng_for(0)).log_q is None
    assert ns.pools.InBatch().draw(query, 1, rng=ns.rng_for(0)).log_q is None
    static = ns.samplers.Static(pool).sample(query, 2, rng=ns.rng_for(0))
    assert np.array(static.log_q).tolist() == np.array(pool.draw(query, 2, rng=ns.rng_for(0)).log_q).tolist()


def test_the_estimate_of_a_sum_over_all_items_is_unbiased():
    """sum over slots of f / (K q), over many draws, is the sum of f over the free items."""
    values = np.exp(np.linspace(-1, 2, 8))
    pool = ns.pools.Everything(KNOWN, WEIGHTS, distinct=False)
    got = pool.draw(ns.Query(np.zeros(4000, int)), 5, rng=ns.rng_for(0))
    estimate = (values[got.ids] / (5 * np.exp(got.log_q))).sum(axis=1)
    wanted = math.fsum(values[item] for item in oracles.free_items(KNOWN, 0))
    assert abs(estimate.mean() - wanted) < 4 * estimate.std() / math.sqrt(4000)

"""Defects that were confirmed in other toolkits, one test each: ours must not have them.

The names D1 to D18 are those of the survey of peers; each test says in a line what the peer does wrong. D12 and D16
are about walks and neighbourhoods, and stand with the tests of those pools. docs/why-not.md has the table.
"""

import random  # noqa: TID251  (read and moved here to show that draws do neither)

import numpy as np
import pytest
import torch
from scipy import stats

import naysay as ns
from naysay.pools import Corruption, Everything, log_uniform


def knowledge_graph():
    """400 entities, 5 relations, 12,000 triples, one hub: (0, 0) has 300 tails."""
    rng = np.random.default_rng(0)
    triples = rng.integers(0, [400, 5, 400], (12_000, 3))
    hub = np.stack([np.zeros(300, np.int64), np.zeros(300, np.int64), rng.permutation(400)[:300]], 1)
    return np.unique(np.concatenate([triples, hub]), axis=0)


def keys_of(triples):
    return (triples[..., 0] * 5 + triples[..., 1]) * 400 + triples[..., 2]


def corrupted(pool, triples, n, seed=0):
    """The corrupted triples that came, (m, 3), and the negatives."""
    query = ns.Query(triples)
    got = pool.draw(query, n, rng=ns.rng_for(seed))
    return pool.corrupted(query, got)[got.ids >= 0], got


@pytest.mark.parametrize("n", [16, 256])
def test_d1_filtered_negatives_hold_no_positive(n):
    """LibKGE writes what it drew anew to the wrong slots, so 0.2 % of its filtered negatives are known triples."""
    triples = knowledge_graph()
    asked = np.concatenate([triples[:1500], triples[triples[:, 0] == 0][:300]])
    for distinct in (True, False):
        changed, _ = corrupted(Corruption(triples, distinct=distinct), asked, n)
        assert len(changed) > 0.9 * len(asked) * n
        assert np.isin(keys_of(changed), keys_of(triples)).sum() == 0


def test_d2_distinct_log_uniform_draws_keep_the_tail():
    """Merlin sorts its unique draws and then cuts them, so that the upper half of the ids never comes."""
    n_items, n, rows = 10_000, 100, 3000
    w = log_uniform(n_items)
    got = Everything(ns.Positives.from_pairs([], [], 1, n_items), w).draw(
        ns.Query(np.zeros(rows, np.int64)), n, rng=ns.rng_for(2)
    )
    drawn = w[got.ids]
    before = np.cumsum(drawn, axis=1) - drawn
    for low, high in ((5000, 10_000), (1000, 5000), (0, 10)):
        mine = (got.ids >= low) & (got.ids < high)
        mine_before = np.cumsum(drawn * mine, axis=1) - drawn * mine
        chance = (w[low:high].sum() - mine_before) / (w.sum() - before)  # of this range, given the earlier slots
        distance = (mine.sum() - chance.sum()) / np.sqrt((chance * (1 - chance)).sum())
        assert abs(distance) < 4.5
        assert stats.binomtest(int(mine[:, 0].sum()), rows, w[low:high].sum()).pvalue > 1e-4
    assert (got.ids >= 5000).sum() > 20_000  # the peer: none
    assert np.abs(got.log_q - np.log(drawn) + np.log(w.sum() - before)).max() < 1e-9


@pytest.mark.parametrize("density", [0.05, 0.3])
def test_d3_pairs_come_from_all_sources_alike(density):
    """DGL's GlobalUniform sorts its pairs and cuts them: the last tenth of the source ids gets 4 % or nothing."""
    rng = np.random.default_rng(1)
    n_nodes, n = 1000, 2000
    edges = rng.random((n_nodes, n_nodes)) < density
    sources, targets = np.nonzero(edges)
    pool = Everything(ns.Positives.from_edges(sources, targets, n_nodes, directed=True))
    free = ~(edges | np.eye(n_nodes, dtype=bool))
    by_decile = free.reshape(10, 100, n_nodes).sum(axis=(1, 2))
    counts, last = np.zeros(10), 0
    for step in range(5):
        anchors, items = pool.draw_pairs(n, rng=ns.rng_for(0, step))
        assert len(anchors) == n
        assert free[anchors, items].all()
        counts += np.bincount(anchors // 100, minlength=10)
        last += int((anchors >= 980).sum())
    assert stats.chisquare(counts, by_decile / by_decile.sum() * counts.sum()).pvalue > 1e-4
    assert stats.binomtest(last, 5 * n, free[980:].sum() / free.sum()).pvalue > 1e-4  # the peer: none
    assert stats.spearmanr(np.arange(n), anchors).pvalue > 1e-4  # nor are they in order


def test_d4_the_side_is_drawn_for_each_negative():
    """PyKEEN gives the first half of a batch head corruptions only, and the second half tail corruptions only."""
    triples = knowledge_graph()[1000:4000]
    _, got = corrupted(Corruption(triples), triples, 16)
    heads = (got.side == 0).sum(axis=1)
    one_sided = np.isin(heads, [0, 16]).mean()
    assert one_sided < 0.001  # the peer: all of them
    for half in (heads[:1500], heads[1500:]):
        assert stats.binomtest(int(half.sum()), half.size * 16, 0.5).pvalue > 1e-4


def test_d5_bernoulli_gives_an_unseen_relation_half_and_half():
    """PyKEEN divides 0 by 0 for a relation without training triples, and then always corrupts the tail."""
    triples = knowledge_graph()
    pool = Corruption(triples, choice="bernoulli", n_relations=7)
    assert np.isfinite(pool.chance).all()
    assert pool.chance[5:].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    got = pool.draw(ns.Query(np.array([[1, 6, 2]] * 500)), 8, rng=ns.rng_for(0))
    assert np.isfinite(got.log_q).all()
    assert stats.binomtest(int((got.side == 0).sum()), got.side.size, 0.5).pvalue > 1e-4


@pytest.mark.parametrize("distinct", [True, False])
def test_d6_typed_negatives_are_never_the_positive_itself(distinct):
    """PyKEEN's pseudo-typed sampler returns the triple it was to corrupt in 0.4 % of its draws."""
    rng = np.random.default_rng(3)
    triples = np.unique(rng.integers(0, [400, 5, 400], (600, 3)), axis=0)  # about 100 seen entities a side
    pool = Corruption(triples, domains="observed", ranges="observed", distinct=distinct)
    query = ns.Query(triples)
    got = pool.draw(query, 100, rng=ns.rng_for(0))
    changed = pool.corrupted(query, got)
    filled = got.ids >= 0
    assert filled.sum() > 50_000
    assert not ((changed == triples[:, None, :]).all(axis=2) & filled).any()
    assert not np.isin(keys_of(changed[filled]), keys_of(triples)).any()
    seen = set(map(tuple, triples[:, 1:].tolist()))
    assert all((relation, tail) in seen for _, relation, tail in changed[(got.side == 2) & filled][:2000].tolist())


def test_d7_id_0_is_drawn_like_any_other():
    """TorchKGE draws from 1 to n - 1: entity 0 and relation 0 never come."""
    pool = Corruption([[3, 3, 4]], sides=("head", "relation", "tail"), n_entities=8, n_relations=8, distinct=False)
    got = pool.draw(ns.Query(np.array([[3, 3, 4]] * 4000)), 6, rng=ns.rng_for(0))
    for side, own in ((0, 3), (1, 3), (2, 4)):
        counts = np.bincount(got.ids[got.side == side], minlength=8)
        assert counts[own] == 0
        assert stats.chisquare(np.delete(counts, own)).pvalue > 1e-4
    for weights in (None, np.ones(8)):
        items = Everything(ns.Positives.from_pairs([0], [3], 1, 8), weights, distinct=False)
        counts = np.bincount(items.draw(ns.Query([0] * 1000), 8, rng=ns.rng_for(1)).ids.ravel(), minlength=8)
        assert stats.chisquare(np.delete(counts, 3)).pvalue > 1e-4


def test_d8_what_is_given_to_the_filter_acts():
    """OpenKE takes a filter flag and ignores it: it filters either way. Here `known` acts, given or left out."""
    triples = knowledge_graph()
    train, valid, test = triples[::3], triples[1::3], triples[2::3]
    query = ns.Query(train[:2000])
    unfiltered = Corruption(train, n_entities=400, n_relations=5)
    leaks = unfiltered.corrupted(query, unfiltered.draw(query, 32, rng=ns.rng_for(0)))
    assert (
        np.isin(keys_of(leaks), keys_of(np.concatenate([valid, test]))).sum() > 100
    )  # so there is something to filter
    pool = Corruption(train, (valid, test))
    changed, got = corrupted(pool, train[:2000], 32)
    assert not np.isin(keys_of(changed), keys_of(triples)).any()
    assert got.dropped == {}


def test_d9_draws_depend_on_their_generator_alone():
    """PyG draws from Python's global `random`: seeding torch changes nothing, and other code changes the draws."""
    pool = Everything(ns.Positives.from_edges([0, 1, 2], [1, 2, 3], 50))
    graph = Corruption(knowledge_graph())

    def draws():
        return (
            pool.draw(ns.Query([0, 1, 2]), 8, rng=ns.rng_for(5)).ids.tolist(),
            [part.tolist() for part in pool.draw_pairs(20, rng=ns.rng_for(5))],
            graph.draw(ns.Query([[1, 2, 3]]), 8, rng=ns.rng_for(5)).ids.tolist(),
        )

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)  # noqa: TID251
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    first = draws()
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    assert before == after
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    torch.manual_seed(2)  # noqa: TID251
    assert draws() == first
    assert pool.draw(ns.Query([0, 1, 2]), 8, rng=ns.rng_for(6)).ids.tolist() != first[0]


@pytest.mark.parametrize("distinct", [True, False])
def test_d10_no_edge_comes_back_as_a_negative(distinct):
    """PyG's LinkNeighborLoader excludes nothing: its share of false negatives is the density of the graph."""
    rng = np.random.default_rng(10)
    adjacent = np.triu(rng.random((500, 500)) < 0.0488, 1)
    adjacent |= adjacent.T
    sources, targets = np.nonzero(np.triu(adjacent))
    pool = Everything(ns.Positives.from_edges(sources, targets, 500), distinct=distinct)
    nodes = np.repeat(np.arange(500), 8)
    drawn = pool.draw(ns.Query(nodes), 50, rng=ns.rng_for(0)).ids
    assert adjacent[nodes, rng.integers(0, 500, 4000)].mean() > 0.03  # what no exclusion would give
    assert not adjacent[nodes[:, None], drawn].any()
    assert (drawn != nodes[:, None]).all()
    anchors, items = pool.draw_pairs(50_000, rng=ns.rng_for(0), distinct=distinct)
    assert not adjacent[anchors, items].any()


@pytest.mark.parametrize("degree", [5, 25, 200, 900])
def test_d18_independent_draws_keep_their_repetitions_for_hubs_as_for_others(degree):
    """RotatE drops repeated negatives of heads with 25 or more known tails, silently, and keeps those of others."""
    rng = np.random.default_rng(degree)
    n, rows, n_items = 512, 200, 1500
    known = rng.permutation(n_items)[:degree]
    free = n_items - degree
    triples = np.stack([np.zeros(degree, np.int64), np.zeros(degree, np.int64), known], 1)
    pools = (
        (Everything(ns.Positives.from_pairs([0] * degree, known, 1, n_items), distinct=False), [0] * rows, free),
        (
            Corruption(triples, sides=("tail",), n_entities=n_items, distinct=False),
            np.array([[0, 0, known[0]]] * rows),
            free,
        ),
    )
    for pool, anchors, size in pools:
        got = pool.draw(ns.Query(anchors), n, rng=ns.rng_for(0))
        assert (got.ids >= 0).all()
        assert got.dropped == {}
        different = np.array([len(set(row)) for row in got.ids.tolist()])
        none, neither = (1 - 1 / size) ** n, (1 - 2 / size) ** n  # P(an item is missing), P(two are)
        variance = size * none + size * (size - 1) * neither - (size * none) ** 2
        distance = (different.mean() - size * (1 - none)) / np.sqrt(variance / rows)
        assert abs(distance) < 4.5

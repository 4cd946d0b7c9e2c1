"""PageRank: scores against dense power iteration, windows against a plain sort, draws against their log_q."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.kernels.threads import threads
from naysay.pools.pagerank import PageRank

PATH = ns.Positives.from_edges(np.arange(9), np.arange(1, 10))


def adjacency_of(sources, targets, n, *, directed):
    adjacency = np.zeros((n, n))
    adjacency[sources, targets] = 1
    return adjacency if directed else np.maximum(adjacency, adjacency.T)


def power_iteration(adjacency, anchor, restart):
    """The personalised PageRank by iterating its definition; from a node without edges the walk restarts."""
    degree = adjacency.sum(axis=1)
    rank = np.zeros(len(adjacency))
    rank[anchor] = 1.0
    for _ in range(math.ceil(math.log(1e-17) / math.log(1 - restart))):
        moved = (rank / np.maximum(degree, 1)) @ adjacency
        moved[anchor] += rank[degree == 0].sum()
        rank = (1 - restart) * moved
        rank[anchor] += restart
    return rank


def dense(pool, anchor, n):
    ids, scores = pool.scores(anchor)
    assert len(set(ids.tolist())) == len(ids)
    full = np.zeros(n)
    full[ids] = scores
    return full


def some_pairs(n, most, seed):
    """Up to `most` random pairs of n nodes, loops and repetitions among them; Hypothesis alone would draw few."""
    generator = np.random.default_rng(seed)
    return [(int(a), int(b)) for a, b in generator.integers(0, n, (generator.integers(0, most + 1), 2))]


@st.composite
def graphs(draw, most=14):
    """(graph, adjacency, directed, ignored, n), loops and lonely nodes among them."""
    n, seed = draw(st.sampled_from([1, 2, 5, 9, most])), draw(st.integers(0, 2**32))
    edges, ignored = some_pairs(n, 2 * n, (seed, 0)), some_pairs(n, 3, (seed, 1))
    directed = draw(st.booleans())
    sources, targets = [a for a, _ in edges], [b for _, b in edges]
    graph = ns.Positives.from_edges(sources, targets, n, directed=directed, self_pairs=draw(st.booleans()))
    if ignored:
        graph = graph.with_ignored([a for a, _ in ignored], [b for _, b in ignored])
    return graph, adjacency_of(sources, targets, n, directed=directed), directed, set(ignored), n


@given(graphs(), st.sampled_from([0.05, 0.15, 0.5, 0.9]), st.sampled_from([1e-9, 1e-4, 1e-2, 0.3]))
def test_the_error_stays_within_its_bound(world, restart, tolerance):
    graph, adjacency, directed, _, n = world
    pool = PageRank(graph, (0, 1), restart=restart, tolerance=tolerance)
    degree = np.maximum(adjacency.sum(axis=1), 1)
    for anchor in range(n):
        error = power_iteration(adjacency, anchor, restart) - dense(pool, anchor, n)
        assert error.min() >= -1e-12
        assert error.sum() <= tolerance * degree[pool.scores(anchor)[0]].sum() + 1e-12
        if not directed:
            assert (error <= tolerance * degree + 1e-12).all()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n", [30, 100])
def test_l1_against_power_iteration(n, directed):
    sources, targets = np.random.default_rng(n).integers(0, n, (2, 3 * n))
    graph = ns.Positives.from_edges(sources, targets, n, directed=directed)
    adjacency = adjacency_of(sources, targets, n, directed=directed)
    assert not directed or (adjacency.sum(axis=1) == 0).any()  # some nodes have no way out
    pool = PageRank(graph, (0, 1), tolerance=1e-12)
    for anchor in range(0, n, 7):
        ids, scores = pool.scores(anchor)
        truth = power_iteration(adjacency, anchor, 0.15)
        assert np.abs(truth - dense(pool, anchor, n)).sum() < 1e-9
        assert truth[ids].sum() == pytest.approx(1, abs=1e-12)
        assert (np.diff(scores) <= 0).all()
        assert (np.diff(truth[ids]) <= 1e-9).all()  # the ranking is that of the truth


def test_a_walk_restarts_at_a_node_without_edges():
    """0 -> 1 and no way out of 1: r0 = a + (1 - a) r1, r1 = (1 - a) r0, so that r0 = 1 / (2 - a)."""
    graph = ns.Positives.from_edges([0], [1], 3, directed=True)
    ids, scores = PageRank(graph, (0, 1), restart=0.2, tolerance=1e-12).scores(0)
    assert ids.tolist() == [0, 1]
    np.testing.assert_allclose(scores, [1 / 1.8, 0.8 / 1.8], atol=1e-11)
    ids, scores = PageRank(graph, (0, 1), tolerance=1e-12).scores(2)  # a lonely anchor keeps all
    assert ids.tolist() == [2]
    np.testing.assert_allclose(scores, [1.0], atol=1e-11)
    got = PageRank(graph, (0, 1)).draw(ns.Query([2, 0]), 2, rng=ns.rng_for(0))
    assert got.ids.tolist() == [[-1, -1], [-1, -1]]
    assert got.dropped == {"exhausted": 4}


def test_what_is_not_reached_has_no_rank():
    n = 500
    path = ns.Positives.from_edges(np.arange(n - 1), np.arange(1, n))
    pool = PageRank(path, (0, n), tolerance=1e-3)
    reached = len(pool.scores(0)[0])
    assert reached < 100
    assert pool.candidates(0).tolist() == list(range(2, reached))
    got = pool.draw(ns.Query([0]), n, rng=ns.rng_for(0))
    assert got.dropped == {"exhausted": n - (reached - 2)}


def window(ids, scores, out, ranks):
    """Sort in plain Python, leave out, then cut."""
    kept = [(-s, v) for v, s in zip(ids.tolist(), scores.tolist(), strict=True) if v not in out]
    ranked = [v for _, v in sorted(kept)]
    low, high = ranks
    if isinstance(low, float):
        low, high = math.floor(low * len(ranked)), math.floor(high * len(ranked))
    return ranked[low:high]


@given(graphs(40), st.data())
def test_windows_and_draw_laws(world, data):
    graph, adjacency, _, ignored, n = world
    whole = st.integers(0, 20)
    share = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0])
    ranks = tuple(sorted(data.draw(st.lists(data.draw(st.sampled_from([whole, share])), min_size=2, max_size=2))))
    if ranks[0] == ranks[1]:
        ranks = (0, 10**18)
    more = some_pairs(n, n, data.draw(st.integers(0, 2**32)))
    further = ns.Positives.from_pairs([a for a, _ in more], [b for _, b in more], n, n)
    distinct = data.draw(st.booleans())
    anchors = data.draw(st.lists(st.integers(0, n - 1), max_size=8))
    counts = [data.draw(st.integers(0, 12)) for _ in anchors]
    pool = PageRank(graph, ranks, positives=further, distinct=distinct, tolerance=1e-4)
    query = ns.Query(np.array(anchors, np.int64))
    got = pool.draw(query, np.array(counts, np.int64), rng=ns.rng_for(data.draw(st.integers(0, 999))))
    whole_window = PageRank(graph, ranks, positives=further, tolerance=1e-4).draw(query, n, rng=ns.rng_for(0))
    assert got.shape == (len(anchors), max(counts, default=0))
    missing = 0
    for row, (anchor, count) in enumerate(zip(anchors, counts, strict=True)):
        out = {anchor, *np.flatnonzero(adjacency[anchor]).tolist()}
        out |= {b for a, b in ignored | set(more) if a == anchor}
        may = window(*pool.scores(anchor), out, ranks)
        assert pool.candidates(anchor).tolist() == may
        assert sorted(v for v in whole_window.ids[row].tolist() if v >= 0) == sorted(may)
        fill = min(count, len(may)) if distinct else count * bool(may)
        missing += count - fill
        ids = got.ids[row].tolist()
        assert set(ids[:fill]) <= set(may)
        assert ids[fill:] == [-1] * (got.shape[1] - fill)
        assert not distinct or len(set(ids[:fill])) == fill
        chance = [-math.log(len(may) - slot if distinct else len(may)) for slot in range(fill)]
        np.testing.assert_allclose(got.log_q[row], chance + [0.0] * (got.shape[1] - fill), rtol=1e-12)
    assert got.dropped == ({"exhausted": missing} if missing else {})


def test_equal_scores_rank_by_id():
    star = ns.Positives.from_edges(np.zeros(20, int), np.arange(20, 0, -1))
    assert PageRank(star, (3, 6)).candidates(2).tolist() == [5, 6, 7]
    got = PageRank(star, (3, 6)).draw(ns.Query([2]), 3, rng=ns.rng_for(0))
    assert sorted(got.ids[0].tolist()) == [5, 6, 7]
    hub = PageRank(star, (0, 1), tolerance=0.9).scores(0)[0]  # pushed once, whatever the tolerance
    assert hub.tolist() == list(range(21))


def test_memory_is_linear_in_the_nodes(traced_peak):
    n = 100_000
    pool = PageRank(ns.Positives.from_edges(np.arange(n), (np.arange(n) + 1) % n), (0, 6), tolerance=1e-3)
    query = ns.Query(np.arange(0, n, 1000))
    got = pool.draw(query, 6, rng=ns.rng_for(0))
    assert traced_peak(lambda: pool.draw(query, 6, rng=ns.rng_for(0))) < 36 * n * threads() + 1_000_000
    away = (got.ids - np.arange(0, n, 1000)[:, None] + n // 2) % n - n // 2
    assert (np.sort(away) == [-4, -3, -2, 2, 3, 4]).all()

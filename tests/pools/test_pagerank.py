"""PageRank: scores against dense power iteration, windows against a plain sort, draws against their log_q."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

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


@settings(deadline=None)
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
@pytest.mark.parametrize("n", [30, 100, 200])
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


@settings(deadline=None)
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


def test_windows_of_a_larger_graph():
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 1500, (2, 5000)), 1500)
    anchors = np.arange(0, 1500, 50)
    for ranks in [(0, 1), (0, 40), (100, 300), (1200, 1210), (0.5, 0.6), (0.0, 1.0)]:
        pool = PageRank(graph, ranks, tolerance=1e-5)
        got = pool.draw(ns.Query(anchors), 1500, rng=ns.rng_for(0)).ids
        for anchor, ids in zip(anchors.tolist(), got, strict=True):
            out = {anchor, *graph.indices[graph.indptr[anchor] : graph.indptr[anchor + 1]].tolist()}
            may = window(*pool.scores(anchor), out, ranks)
            assert pool.candidates(anchor).tolist() == may
            assert sorted(ids[ids >= 0].tolist()) == sorted(may)


def test_equal_scores_rank_by_id():
    star = ns.Positives.from_edges(np.zeros(20, int), np.arange(20, 0, -1))
    assert PageRank(star, (3, 6)).candidates(2).tolist() == [5, 6, 7]
    got = PageRank(star, (3, 6)).draw(ns.Query([2]), 3, rng=ns.rng_for(0))
    assert sorted(got.ids[0].tolist()) == [5, 6, 7]
    hub = PageRank(star, (0, 1), tolerance=0.9).scores(0)[0]  # pushed once, whatever the tolerance
    assert hub.tolist() == list(range(21))


@pytest.mark.parametrize("distinct", [True, False])
def test_frequencies_match_log_q(distinct):
    star = ns.Positives.from_edges(np.zeros(12, int), np.arange(1, 13))
    rows = 40_000
    pool = PageRank(star, (2, 8), distinct=distinct, tolerance=1e-3)
    got = pool.draw(ns.Query(np.full(rows, 1)), 2, rng=ns.rng_for(5))
    may = pool.candidates(1).tolist()
    assert may == list(range(4, 10))
    outcomes = list(itertools.permutations(may, 2) if distinct else itertools.product(may, repeat=2))
    codes = got.ids[:, 0] * 100 + got.ids[:, 1]
    seen = np.array([np.count_nonzero(codes == 100 * a + b) for a, b in outcomes])
    assert seen.sum() == rows
    chance = np.exp(got.log_q.sum(axis=1))
    np.testing.assert_allclose(chance, 1 / len(outcomes))
    assert chisquare(seen, rows * chance[: len(outcomes)]).pvalue > 1e-4


def test_d16_drawing_leaves_the_graph_as_it_was():
    """GraphGAN's sampler removed the root from its cached tree: the second draw answered otherwise."""
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 50, (2, 100)), 50)
    before = [array.copy() for array in (graph.indptr, graph.indices, graph.relation, graph.filter)]
    pool = PageRank(graph, (3, 12))
    first, second = (pool.draw(ns.Query(np.arange(50)), 9, rng=ns.rng_for(4)).ids for _ in range(2))
    alone = np.concatenate([pool.draw(ns.Query([v]), 9, rng=ns.rng_for(4)).ids for v in range(50)])
    assert (first == second).all()
    assert (np.sort(first) == np.sort(alone)).all()  # no row leaves anything behind for the next
    after = (graph.indptr, graph.indices, graph.relation, graph.filter)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_threads_do_not_matter():
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 600, (2, 2000)), 600)
    query = ns.Query(np.random.default_rng(2).integers(0, 600, 400))
    before, answers = threads(), []
    try:
        for count in (1, 2, 4):
            ns.set_threads(count)
            answers.append(PageRank(graph, (50, 150), tolerance=1e-4).draw(query, 8, rng=ns.rng_for(0)))
    finally:
        ns.set_threads(before)
    for other in answers[1:]:
        assert (other.ids == answers[0].ids).all()
        assert (other.log_q == answers[0].log_q).all()


def test_memory_is_linear_in_the_nodes(traced_peak):
    n = 200_000
    pool = PageRank(ns.Positives.from_edges(np.arange(n), (np.arange(n) + 1) % n), (0, 6), tolerance=1e-3)
    query = ns.Query(np.arange(0, n, 1000))
    got = pool.draw(query, 6, rng=ns.rng_for(0))
    assert traced_peak(lambda: pool.draw(query, 6, rng=ns.rng_for(0))) < 36 * n * threads() + 1_000_000
    away = (got.ids - np.arange(0, n, 1000)[:, None] + n // 2) % n - n // 2
    assert (np.sort(away) == [-4, -3, -2, 2, 3, 4]).all()


def test_scipy_graph_and_no_rows():
    matrix = sp.csr_array(np.array([[0, 2, 0, 0], [0, 0, 5, 0], [0, 0, 0, 1], [0, 0, 0, 0]]))
    pool = PageRank(matrix, (0, 2))
    assert pool.candidates(0).tolist() == [2, 3]
    assert pool.draw(ns.Query([]), 3, rng=ns.rng_for(0)).shape == (0, 3)
    assert pool.draw(ns.Query([1]), 0, rng=ns.rng_for(0)).shape == (1, 0)


def test_short_rows_can_be_rejected():
    pool = PageRank(PATH, (0, 2), on_short="raise")
    how = "ranks=(0, 2), restart=0.15, tolerance=1e-06, distinct=True, on_short='raise'"
    assert repr(pool) == f"PageRank(10 nodes, 18 edges, 28 known pairs, {how})"
    assert pool.draw(ns.Query([4]), 2, rng=ns.rng_for(0)).dropped == {}
    with pytest.raises(ns.NaysayError, match=r"PageRank.draw: row 0 has 2 candidates left of the 3 requested"):
        pool.draw(ns.Query([4, 0]), 3, rng=ns.rng_for(0))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"positives": ns.Positives.from_pairs([0], [10])}, "`positives` must be on the graph's 10 nodes, got 1 x 11."),
        ({"ranks": 5}, r"`ranks` must be a pair \(first, end\), got 5."),
        ({"ranks": (3, 3)}, r"`ranks` must be a pair \(first, end\) with first below end, got \(3, 3\)."),
        ({"ranks": (-1, 3)}, "`ranks` must be at least 0, got -1."),
        ({"ranks": ("a", 3)}, "`ranks` must be a whole number, got 'a'."),
        ({"ranks": (0.5, 1)}, r"two whole numbers or two floats, got \(0.5, 1\). Write 0.5, 1.0 for shares and 2000"),
        ({"ranks": (0.5, 1.5)}, r"must be a pair with 0 <= first < end <= 1 if they are shares, got \(0.5, 1.5\)."),
        ({"restart": 0}, "`restart` must be a number at least 1e-06 and below 1, got 0."),
        ({"restart": 1.0}, "`restart` must be a number at least 1e-06 and below 1, got 1.0."),
        ({"tolerance": math.nan}, "`tolerance` must be a number at least 1e-16 and below 1, got nan."),
        ({"on_short": "no"}, "`on_short` must be one of 'pad', 'raise', got 'no'."),
    ],
)
def test_errors_of_settings(changed, message):
    with pytest.raises(ns.NaysayError, match=f"^PageRank: .*{message}"):
        PageRank(**({"graph": PATH, "ranks": (0, 1)} | changed))


@pytest.mark.parametrize(
    ("anchors", "rng", "message"),
    [
        ([12], ns.rng_for(0), r"`anchors` must be between 0 and 9 \(10 nodes\), got 12 at row 0 \(1 such row\)."),
        ([[0, 0, 0]], ns.rng_for(0), r"`query.anchors` must be of shape \(B,\), got triples."),
        ([0], 1, "`rng` must be a numpy Generator, got 1."),
    ],
)
def test_errors_of_draws(anchors, rng, message):
    with pytest.raises(ns.NaysayError, match=f"^PageRank.draw: {message}"):
        PageRank(PATH, (0, 1)).draw(ns.Query(anchors), 1, rng=rng)
    with pytest.raises(ns.NaysayError, match=r"^PageRank.scores: `anchor` must be between 0 and 9 .* got 10."):
        PageRank(PATH, (0, 1)).scores(10)

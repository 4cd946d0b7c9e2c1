"""KHop against breadth-first search in plain Python."""

import itertools
import math
from collections import deque

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay.kernels.threads import threads
from naysay.pools.khop import KHop

PATH = ns.Positives.from_edges(np.arange(9), np.arange(1, 10))


def distances(neighbours, anchor):
    """Breadth-first search: {node: number of edges on the shortest path}."""
    found, waiting = {anchor: 0}, deque([anchor])
    while waiting:
        node = waiting.popleft()
        for other in neighbours[node]:
            if other not in found:
                found[other] = found[node] + 1
                waiting.append(other)
    return found


def some_pairs(n, most, seed):
    """Up to `most` random pairs of n nodes, loops and repetitions among them; Hypothesis alone would draw few."""
    generator = np.random.default_rng(seed)
    return [(int(a), int(b)) for a, b in generator.integers(0, n, (generator.integers(0, most + 1), 2))]


@st.composite
def worlds(draw):
    """(graph, neighbours, known, further, n): a random graph, and in plain Python what is in it."""
    n, seed = draw(st.sampled_from([1, 2, 5, 9, 14, 20])), draw(st.integers(0, 2**32))
    edges, ignored, more = (some_pairs(n, most, (seed, most)) for most in (2 * n, 4, 3 * n))
    directed, further = draw(st.booleans()), draw(st.booleans())
    both = {(a, b) for a, b in edges} | (set() if directed else {(b, a) for a, b in edges})
    known = {v: {v} | {b for a, b in both if a == v} | {b for a, b in ignored if a == v} for v in range(n)}
    neighbours = {v: sorted(b for a, b in both if a == v) for v in range(n)}
    sources, targets = ([pair[i] for pair in edges] for i in (0, 1))
    graph = ns.Positives.from_edges(sources, targets, n, directed=directed, self_pairs=draw(st.booleans()))
    if ignored:
        graph = graph.with_ignored(*zip(*ignored, strict=True))
    positives = None
    if further:
        positives = ns.Positives.from_pairs([a for a, _ in more], [b for _, b in more], n, n)
        for a, b in more:
            known[a].add(b)
    return graph, neighbours, known, positives, n


def expected(neighbours, known, anchor, low, high):
    found = distances(neighbours, anchor)
    return sorted(v for v, distance in found.items() if low <= distance <= high and v not in known[anchor])


@settings(deadline=None)
@given(worlds(), st.sampled_from([1, 2, 2, 3, 5]), st.integers(0, 4))
def test_candidates_are_the_bfs_distances(world, low, more):
    graph, neighbours, known, positives, n = world
    pool = KHop(graph, hops=(low, low + more), positives=positives)
    for anchor in range(n):
        ids = pool.candidates(anchor)
        assert ids.dtype == np.int64
        assert ids.tolist() == expected(neighbours, known, anchor, low, low + more)


@settings(deadline=None)
@given(worlds(), st.data(), st.booleans(), st.integers(0, 2**32))
def test_draw_laws(world, data, distinct, seed):
    graph, neighbours, known, positives, n = world
    low, high = data.draw(st.sampled_from([(1, 1), (2, 2), (2, 3), (1, 4), (3, 3)]))
    anchors = data.draw(st.lists(st.integers(0, n - 1), max_size=8))
    counts = [data.draw(st.integers(0, 6)) for _ in anchors]
    pool = KHop(graph, hops=(low, high), positives=positives, distinct=distinct)
    got = pool.draw(ns.Query(np.array(anchors, np.int64)), np.array(counts, np.int64), rng=ns.rng_for(seed))
    assert got.shape == (len(anchors), max(counts, default=0))
    missing = 0
    for row, (anchor, count) in enumerate(zip(anchors, counts, strict=True)):
        may = expected(neighbours, known, anchor, low, high)
        fill = min(count, len(may)) if distinct else count * bool(may)
        missing += count - fill
        ids, log_q = got.ids[row].tolist(), got.log_q[row]
        assert set(ids[:fill]) <= set(may)
        assert ids[fill:] == [-1] * (got.shape[1] - fill)
        assert not distinct or len(set(ids[:fill])) == fill
        chance = [-math.log(len(may) - slot if distinct else len(may)) for slot in range(fill)]
        np.testing.assert_allclose(log_q, chance + [0.0] * (got.shape[1] - fill), rtol=1e-12)
    assert got.dropped == ({"exhausted": missing} if missing else {})


def test_exact_distance_and_window():
    assert KHop(PATH).candidates(4).tolist() == [2, 6]
    assert KHop(PATH, hops=3).candidates(1).tolist() == [4]
    assert KHop(PATH, hops=[2, 4]).candidates(0).tolist() == [2, 3, 4]
    assert KHop(PATH, hops=1).candidates(4).tolist() == []  # all of them are edges
    assert KHop(PATH, hops=(10**18, 10**19)).candidates(0).tolist() == []
    assert KHop(PATH, hops=(2, 10**18)).candidates(0).tolist() == list(range(2, 10))


def test_the_ball_of_sans_without_the_node_and_its_neighbours():
    rng = np.random.default_rng(3)
    sources, targets = rng.integers(0, 40, (2, 60))
    adjacency = np.zeros((40, 40), np.int64)
    adjacency[sources, targets] = adjacency[targets, sources] = 1
    ball = adjacency + np.eye(40, dtype=np.int64)
    reach = np.linalg.matrix_power(ball, 3) > 0
    pool = KHop(ns.Positives.from_edges(sources, targets, 40), hops=(2, 3))
    for anchor in range(40):
        assert pool.candidates(anchor).tolist() == np.flatnonzero(reach[anchor] & ~ball[anchor].astype(bool)).tolist()


def test_ignored_pairs_are_no_edges():
    graph = ns.Positives.from_edges([0, 2], [1, 3], 4, directed=True).with_ignored([1], [2])
    assert KHop(graph, hops=(1, 3)).candidates(0).tolist() == []
    graph = ns.Positives.from_edges([0, 1, 2], [1, 2, 3], 4, directed=True).with_ignored([0], [2])
    assert KHop(graph, hops=(1, 3)).candidates(0).tolist() == [3]  # 2 is walked through but never drawn


def test_directed_distances_follow_the_edges():
    graph = ns.Positives.from_edges([0, 1], [1, 2], 3, directed=True)
    assert [KHop(graph).candidates(v).tolist() for v in range(3)] == [[2], [], []]


def test_scipy_graph():
    matrix = sp.random_array((30, 30), density=0.1, rng=np.random.default_rng(0), format="coo")
    ours = KHop(ns.Positives.from_scipy(matrix), hops=(2, 3))
    for form in (matrix, matrix.tocsr(), sp.csc_matrix(matrix)):
        for anchor in range(30):
            assert KHop(form, hops=(2, 3)).candidates(anchor).tolist() == ours.candidates(anchor).tolist()


def test_smaller_positives_are_taken():
    more = ns.Positives.from_pairs([0], [2])
    assert KHop(PATH, hops=(2, 3), positives=more).candidates(0).tolist() == [3]
    assert KHop(PATH, hops=(2, 3), positives=more).candidates(1).tolist() == [3, 4]


@pytest.mark.parametrize("distinct", [True, False])
def test_frequencies_match_log_q(distinct):
    star = ns.Positives.from_edges([0, 0, 0, 0, 0, 0, 0], range(1, 8))  # six candidates for each leaf
    rows = 60_000
    got = KHop(star, distinct=distinct).draw(ns.Query(np.full(rows, 1)), 2, rng=ns.rng_for(5))
    may = range(2, 8)
    outcomes = list(itertools.permutations(may, 2) if distinct else itertools.product(may, repeat=2))
    codes = got.ids[:, 0] * 10 + got.ids[:, 1]
    seen = np.array([np.count_nonzero(codes == 10 * a + b) for a, b in outcomes])
    assert seen.sum() == rows
    chance = np.exp(got.log_q.sum(axis=1))
    np.testing.assert_allclose(chance, 1 / len(outcomes))
    assert chisquare(seen, rows * chance[: len(outcomes)]).pvalue > 1e-4


def test_fewer_slots_are_a_prefix():
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 200, (2, 600)))
    few, many = (KHop(graph).draw(ns.Query(np.arange(200)), n, rng=ns.rng_for(2)).ids for n in (3, 9))
    assert (few == many[:, :3]).all()


def test_threads_do_not_matter():
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 2000, (2, 9000)), 2000)
    query = ns.Query(np.random.default_rng(2).integers(0, 2000, 3000))
    before, answers = threads(), []
    try:
        for count in (1, 2, 4):
            ns.set_threads(count)
            answers.append(KHop(graph, hops=(2, 3)).draw(query, 8, rng=ns.rng_for(0)))
    finally:
        ns.set_threads(before)
    for other in answers[1:]:
        assert (other.ids == answers[0].ids).all()
        assert (other.log_q == answers[0].log_q).all()


def test_d16_drawing_leaves_the_graph_as_it_was():
    """GraphGAN's sampler removed the root from its cached tree: the second draw answered otherwise."""
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 50, (2, 100)), 50)
    before = [array.copy() for array in (graph.indptr, graph.indices, graph.relation, graph.filter)]
    pool = KHop(graph, hops=(2, 3))
    first, second = (pool.draw(ns.Query(np.arange(50)), 60, rng=ns.rng_for(4)) for _ in range(2))
    assert (first.ids == second.ids).all()
    assert [pool.candidates(v).tolist() for v in range(50)] == [sorted(set(r.tolist()) - {-1}) for r in second.ids]
    after = (graph.indptr, graph.indices, graph.relation, graph.filter)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_memory_is_linear_in_the_nodes(traced_peak):
    n = 300_000
    ring = ns.Positives.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    pool = KHop(ring, hops=(2, 5))
    query = ns.Query(np.arange(0, n, 1000))
    got = pool.draw(query, 8, rng=ns.rng_for(0))
    assert got.dropped == {}
    assert traced_peak(lambda: pool.draw(query, 8, rng=ns.rng_for(0))) < 8 * n * threads() + 1_000_000
    offsets = (got.ids - np.arange(0, n, 1000)[:, None] + n // 2) % n - n // 2
    assert sorted(np.unique(offsets).tolist()) == [-5, -4, -3, -2, 2, 3, 4, 5]


def test_no_rows_one_node_and_lonely_nodes():
    assert KHop(PATH).draw(ns.Query([]), 4, rng=ns.rng_for(0)).shape == (0, 4)
    lonely = KHop(ns.Positives.from_edges([], [], 1), hops=(1, 9))
    got = lonely.draw(ns.Query([0]), 3, rng=ns.rng_for(0))
    assert got.ids.tolist() == [[-1, -1, -1]]
    assert got.log_q.tolist() == [[0.0, 0.0, 0.0]]
    assert got.dropped == {"exhausted": 3}
    assert lonely.draw(ns.Query([0]), 0, rng=ns.rng_for(0)).shape == (1, 0)


def test_short_rows_can_be_rejected():
    pool = KHop(PATH, on_short="raise")
    assert pool.draw(ns.Query([4]), 2, rng=ns.rng_for(0)).dropped == {}
    message = r"KHop.draw: row 1 has 1 candidates left of the 2 requested \(1 such row\)"
    with pytest.raises(ns.NaysayError, match=message):
        pool.draw(ns.Query([4, 0]), 2, rng=ns.rng_for(0))


def test_repr():
    assert repr(KHop(PATH)) == "KHop(10 nodes, 18 edges, 28 known pairs, hops=(2, 2), distinct=True, on_short='pad')"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"graph": [[0, 1]]}, "`graph` must be a Positives or a scipy.sparse matrix, got list."),
        (
            {"graph": ns.Positives.from_pairs([0], [3])},
            "one set of nodes, got 1 x 4. Make it with Positives.from_edges",
        ),
        (
            {"graph": ns.Positives.from_pairs(["a"], ["b"])},
            "got different names for rows and columns. Encode both ends",
        ),
        ({"graph": ns.Positives.from_edges([], [])}, r"of at least one and fewer than 2\^31 - 1 nodes, got 0 nodes."),
        ({"positives": [1]}, "`positives` must be a Positives or None, got list."),
        ({"positives": ns.Positives.from_pairs([0], [10])}, "`positives` must be on the graph's 10 nodes, got 1 x 11."),
        ({"positives": ns.Positives.from_pairs([10], [0])}, "`positives` must be on the graph's 10 nodes, got 11 x 1."),
        ({"hops": 0}, "`hops` must be at least 1, got 0."),
        ({"hops": (0, 2)}, "`hops` must be at least 1, got 0."),
        ({"hops": 2.0}, "`hops` must be a whole number, got 2.0."),
        ({"hops": (3, 2)}, r"`hops` must be a pair \(low, high\), in this order, got \(3, 2\)."),
        ({"hops": (1, 2, 3)}, r"`hops` must be a distance or a pair \(low, high\), got \(1, 2, 3\)."),
        ({"on_short": "rais"}, "`on_short` must be one of 'pad', 'raise', got 'rais'. Did you mean 'raise'?"),
    ],
)
def test_errors_of_settings(changed, message):
    with pytest.raises(ns.NaysayError, match=f"^KHop: .*{message}"):
        KHop(**({"graph": PATH} | changed))


@pytest.mark.parametrize(
    ("anchors", "n", "rng", "message"),
    [
        ([0, 10], 1, ns.rng_for(0), r"`anchors` must be between 0 and 9 \(10 nodes\), got 10 at row 1 \(1 such row\)."),
        ([[0, 0, 0]], 1, ns.rng_for(0), r"`query.anchors` must be of shape \(B,\), got triples. Use naysay.pools.Corr"),
        ([0], -1, ns.rng_for(0), "`n` must be at least 0, got -1."),
        ([0], 1, 0, "`rng` must be a numpy Generator, got 0."),
    ],
)
def test_errors_of_draws(anchors, n, rng, message):
    with pytest.raises(ns.NaysayError, match=f"^KHop.draw: {message}"):
        KHop(PATH).draw(ns.Query(anchors), n, rng=rng)


@pytest.mark.parametrize(("anchor", "rule"), [(10, r"between 0 and 9 \(10 nodes\)"), (-1, "at least 0")])
def test_errors_of_candidates(anchor, rule):
    with pytest.raises(ns.NaysayError, match=f"^KHop.candidates: `anchor` must be {rule}, got {anchor}."):
        KHop(PATH).candidates(anchor)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**32))
def test_saturated_rows_hold_every_candidate(n, seed):
    pool = KHop(PATH, hops=(2, 9))
    got = pool.draw(ns.Query(np.arange(10)), n, rng=ns.rng_for(seed))
    for anchor, ids in enumerate(got.ids.tolist()):
        may = pool.candidates(anchor).tolist()
        assert n < len(may) or sorted(ids[: len(may)]) == may

"""KHop against breadth-first search in plain Python."""

import math
from collections import deque

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_smaller_positives_are_taken():
    more = ns.Positives.from_pairs([0], [2])
    assert KHop(PATH, hops=(2, 3), positives=more).candidates(0).tolist() == [3]
    assert KHop(PATH, hops=(2, 3), positives=more).candidates(1).tolist() == [3, 4]


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

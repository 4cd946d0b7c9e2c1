"""KHop against breadth-first search in plain Python."""

from collections import deque

import numpy as np
from hypothesis import given
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


@given(worlds(), st.sampled_from([1, 2, 2, 3, 5]), st.integers(0, 4))
def test_candidates_are_the_bfs_distances(world, low, more):
    graph, neighbours, known, positives, n = world
    pool = KHop(graph, hops=(low, low + more), positives=positives)
    for anchor in range(n):
        ids = pool.candidates(anchor)
        assert ids.dtype == np.int64
        assert ids.tolist() == expected(neighbours, known, anchor, low, low + more)


def test_ignored_pairs_are_no_edges():
    graph = ns.Positives.from_edges([0, 2], [1, 3], 4, directed=True).with_ignored([1], [2])
    assert KHop(graph, hops=(1, 3)).candidates(0).tolist() == []
    graph = ns.Positives.from_edges([0, 1, 2], [1, 2, 3], 4, directed=True).with_ignored([0], [2])
    assert KHop(graph, hops=(1, 3)).candidates(0).tolist() == [3]  # 2 is walked through but never drawn


def test_smaller_positives_are_taken():
    more = ns.Positives.from_pairs([0], [2])
    assert KHop(PATH, hops=(2, 3), positives=more).candidates(0).tolist() == [3]
    assert KHop(PATH, hops=(2, 3), positives=more).candidates(1).tolist() == [3, 4]


def test_memory_is_linear_in_the_nodes(traced_peak):
    n = 100_000
    ring = ns.Positives.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    pool = KHop(ring, hops=(2, 5))
    query = ns.Query(np.arange(0, n, 1000))
    got = pool.draw(query, 8, rng=ns.rng_for(0))
    assert got.dropped == {}
    assert traced_peak(lambda: pool.draw(query, 8, rng=ns.rng_for(0))) < 8 * n * threads() + 1_000_000
    offsets = (got.ids - np.arange(0, n, 1000)[:, None] + n // 2) % n - n // 2
    assert sorted(np.unique(offsets).tolist()) == [-5, -4, -3, -2, 2, 3, 4, 5]

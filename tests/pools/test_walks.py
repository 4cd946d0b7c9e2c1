"""Walks: their ends against powers of the transition matrix, and draws against a plain filter of the ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

import naysay as ns
from naysay.pools import Walks, consumption_ties

PATH = ns.Positives.from_edges(np.arange(49), np.arange(1, 50))
# Both directed ones have a node without outgoing edges; the last one has a loop and an edge both ways.
GRAPHS = {
    "undirected": ([0, 0, 0, 1, 2, 3, 3, 5], [1, 2, 3, 2, 4, 4, 5, 6], False),
    "directed": ([0, 0, 0, 1, 2, 3, 3, 5], [1, 2, 3, 2, 4, 4, 5, 6], True),
    "loops": ([0, 0, 1, 1, 1, 2], [0, 1, 0, 2, 3, 2], True),
}


def transitions(sources, targets, directed, n):
    """D^-1 A as a dense matrix; a row of zeros where there are no edges."""
    adjacency = np.zeros((n, n))
    adjacency[sources, targets] = 1
    if not directed:
        adjacency[targets, sources] = 1
    return adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)


def ends_follow(pool, chances, n_walks=4_000):
    """Whether walks from each node end as often as the chances say; what is missing from 1: walks without an end."""
    n = len(chances)
    ends = pool.endpoints(np.arange(n), n_walks, rng=ns.rng_for(1))
    for anchor in range(n):
        chance = np.append(chances[anchor], 1 - chances[anchor].sum())
        chance[chance < 1e-12] = 0
        seen = np.bincount(np.where(ends[anchor] < 0, n, ends[anchor]), minlength=n + 1)
        assert not seen[chance == 0].any()
        if np.count_nonzero(chance) > 1:
            assert chisquare(seen[chance > 0], n_walks * chance[chance > 0] / chance.sum()).pvalue > 1e-5


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_ends_follow_the_power_of_the_transition_matrix(name, length, weighted):
    sources, targets, directed = GRAPHS[name]
    n = max(sources + targets) + 1
    graph = ns.Positives.from_edges(sources, targets, directed=directed)
    steps = transitions(sources, targets, directed, n)
    weights = None
    if weighted:
        all_weights = np.random.default_rng(0).integers(0, 4, (n, n)) * 1.0
        weights = all_weights[steps > 0]  # by anchor, then by item
        steps = np.where(steps > 0, all_weights, 0.0)
        steps /= np.where(steps.any(axis=1, keepdims=True), steps.sum(axis=1, keepdims=True), 1.0)
    pool = Walks(graph, length, weights=weights)
    ends_follow(pool, np.linalg.matrix_power(steps, length))


@pytest.mark.parametrize(("stop", "length"), [(0.1, 5), (0.5, 2), (1.0, 1)])
def test_walks_that_stop_end_where_samwalker_says(stop, length):
    """(1 - c) sum over t < length of (c Phi)^t + c^length / n; node 4 has no edges and leads to any node."""
    graph = ns.Positives.from_edges([0, 1, 0], [1, 2, 3], 5)
    steps = np.zeros((5, 5))
    steps[[0, 0, 1, 1, 2, 3], [1, 3, 0, 2, 1, 0]] = [1.0, 4.0, 1.0, 2.0, 2.0, 3.0]
    steps[4] = 1.0
    steps /= steps.sum(axis=1, keepdims=True)
    chances = np.full((5, 5), (1 - stop) ** length / 5)
    for step in range(length):
        chances += stop * (1 - stop) ** step * np.linalg.matrix_power(steps, step)
    pool = Walks(graph, length, weights=[1.0, 4.0, 1.0, 2.0, 2.0, 3.0], stop=stop)
    ends_follow(pool, chances)


def test_items_come_by_the_nodes_where_walks_end():
    """SamWalker: an item comes as often as P X says, P that of the walks; what the anchor knows is left out."""
    consumed = ns.Positives.from_pairs([0, 0, 1, 1, 1, 2], [0, 1, 2, 3, 0, 4], 3, 6)
    pool = Walks(ns.Positives.from_edges([0, 1], [1, 2], 3), length=3, stop=0.3, items=consumed, distinct=False)
    own = consumed.contains(np.arange(3), np.tile(np.arange(6), (3, 1))) * 1.0
    ends = np.full((3, 3), 0.7**3 / 3)  # as in the test above, on a path of three nodes
    steps = np.array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])
    for step in range(3):
        ends += 0.3 * 0.7**step * np.linalg.matrix_power(steps, step)
    chance = (ends[:1] @ (own / own.sum(axis=1, keepdims=True)))[0]
    chance[own[0] > 0] = 0
    drawn = pool.draw(ns.Query([0] * 4000), 1, rng=ns.rng_for(0)).ids
    seen = np.bincount(drawn[drawn >= 0], minlength=6)
    assert not seen[chance == 0].any()
    assert chisquare(seen[chance > 0], chance[chance > 0] / chance.sum() * seen.sum()).pvalue > 1e-5


def test_without_exclude_edges_neighbours_are_candidates_and_positives_are_not():
    graph = ns.Positives.from_edges([0, 0, 1, 2, 3, 0], [1, 2, 3, 3, 4, 5])
    known = ns.Positives.from_pairs([0], [1], 6, 6)
    drawn = Walks(graph, 1, positives=known, exclude_edges=False).draw(ns.Query([0, 0]), 3, rng=ns.rng_for(0))
    assert [sorted(row) for row in drawn.ids.tolist()] == [[-1, 2, 5], [-1, 2, 5]]
    assert drawn.dropped == {"exhausted": 2}
    own = Walks(graph, 1, exclude_edges=False).draw(ns.Query([0], positives=[2]), 3, rng=ns.rng_for(0))
    assert sorted(own.ids[0].tolist()) == [-1, 1, 5]


def test_ties_of_shared_items_are_steps_over_items():
    pairs = np.random.default_rng(0).integers(0, (6, 9), (25, 2))
    consumed = ns.Positives.from_pairs(*pairs.T, 7, 9)  # the last user has nothing
    matrix = consumed.contains(np.arange(7), np.tile(np.arange(9), (7, 1))) * 1.0
    to_items = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    over = to_items @ (matrix / np.maximum(matrix.sum(axis=0), 1)).T
    np.fill_diagonal(over, 0.0)
    for pairs_of_users in (consumed, consumed.with_ignored([6, 6], [1, 2])):  # ignored pairs are no ties
        ties, weights = consumption_ties(pairs_of_users)
        found = np.zeros((7, 7))
        found[ties.pairs()] = weights
        np.testing.assert_allclose(found, over)


def test_consecutive_walks_are_independent():
    sources, targets, _ = GRAPHS["undirected"]
    ends = Walks(ns.Positives.from_edges(sources, targets)).endpoints(np.zeros(20_000, int), 2, rng=ns.rng_for(0))
    table = np.zeros((7, 7))
    np.add.at(table, (ends[:, 0], ends[:, 1]), 1)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    assert table.shape[0] > 3
    assert chi2_contingency(table).pvalue > 1e-4


def test_d12_every_walk_begins_at_the_anchor():
    """RW-SANS's code goes on from the last end: on a path, walks of length 2 got as far as distance 48."""
    anchors = np.arange(50)
    ends = Walks(PATH, length=2).endpoints(anchors, 500, rng=ns.rng_for(0))
    assert set(np.unique(np.abs(ends - anchors[:, None])).tolist()) == {0, 2}
    drawn = Walks(PATH, length=2, walks=500).draw(ns.Query(anchors), 2, rng=ns.rng_for(0)).ids
    assert set(np.unique(np.abs(drawn - anchors[:, None])[drawn >= 0]).tolist()) == {2}
    assert (drawn >= 0).sum() == 2 * 50 - 4  # two candidates each, but one for the two nodes next to either end


def some_pairs(n, most, seed):
    """Up to `most` random pairs of n nodes, loops and repetitions among them; Hypothesis alone would draw few."""
    generator = np.random.default_rng(seed)
    return [(int(a), int(b)) for a, b in generator.integers(0, n, (generator.integers(0, most + 1), 2))]


@given(st.data())
def test_draws_are_the_ends_that_may_be_kept(data):
    n, seed = data.draw(st.sampled_from([1, 2, 5, 9, 15])), data.draw(st.integers(0, 2**32))
    edges, more = some_pairs(n, 2 * n, (seed, 0)), some_pairs(n, n, (seed, 1))
    sources, targets = [a for a, _ in edges], [b for _, b in edges]
    directed, distinct = data.draw(st.booleans()), data.draw(st.booleans())
    graph = ns.Positives.from_edges(sources, targets, n, directed=directed, self_pairs=data.draw(st.booleans()))
    further = ns.Positives.from_pairs([a for a, _ in more], [b for _, b in more], n, n)
    anchors = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=8)), np.int64)
    counts = np.array([data.draw(st.integers(0, 6)) for _ in anchors], np.int64)
    length, walks = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 60))
    pool = Walks(graph, length=length, walks=walks, positives=further, distinct=distinct)
    got = pool.draw(ns.Query(anchors), counts, rng=ns.rng_for(seed))
    ends = pool.endpoints(anchors, walks, rng=ns.rng_for(seed))
    linked = set(edges) | (set() if directed else {(b, a) for a, b in edges})
    width = int(counts.max(initial=0))
    assert got.shape == (len(anchors), width)
    assert got.log_q is None
    missing = 0
    for row, anchor in enumerate(anchors.tolist()):
        keep = []
        for end in ends[row].tolist():
            known = end in (-1, anchor) or (anchor, end) in linked or (anchor, end) in set(more)
            if not known and not (distinct and end in keep) and len(keep) < counts[row]:
                keep.append(end)
        missing += counts[row] - len(keep)
        assert got.ids[row].tolist() == keep + [-1] * (width - len(keep))
    assert got.dropped == ({"exhausted": missing} if missing else {})


def test_ignored_pairs_are_no_edges_and_never_drawn():
    graph = ns.Positives.from_edges([0, 1, 1], [1, 2, 3], 4, directed=True).with_ignored([0, 2], [2, 0])
    pool = Walks(graph, length=2)
    assert set(pool.endpoints([0], 100, rng=ns.rng_for(0)).ravel().tolist()) == {2, 3}
    assert pool.draw(ns.Query([0]), 2, rng=ns.rng_for(0)).ids.tolist() == [[3, -1]]
    assert pool.endpoints([2], 3, rng=ns.rng_for(0)).tolist() == [[-1, -1, -1]]


def test_a_row_ends_after_its_walks():
    clique = ns.Positives.from_edges([0, 0, 1, 2], [1, 2, 2, 3])  # from 0 only node 3 may be kept, one walk in six
    short = Walks(clique, walks=1).draw(ns.Query(np.zeros(600, int)), 1, rng=ns.rng_for(0))
    kept = int((short.ids >= 0).sum())
    assert 60 < kept < 140
    assert short.dropped == {"exhausted": 600 - kept}
    assert Walks(clique, walks=1000).draw(ns.Query(np.zeros(600, int)), 1, rng=ns.rng_for(0)).dropped == {}

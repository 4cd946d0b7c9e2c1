"""Walks: their ends against powers of the transition matrix, and draws against a plain filter of the ends."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

import naysay as ns
from naysay.kernels.threads import threads
from naysay.pools.walks import Walks

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


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_ends_follow_the_power_of_the_transition_matrix(name, length):
    sources, targets, directed = GRAPHS[name]
    n = max(sources + targets) + 1
    graph = ns.Positives.from_edges(sources, targets, directed=directed)
    power = np.linalg.matrix_power(transitions(sources, targets, directed, n), length)
    ends = Walks(graph, length=length).endpoints(np.arange(n), 20_000, rng=ns.rng_for(length))
    assert ends.shape == (n, 20_000)
    assert ends.dtype == np.int64
    for anchor in range(n):
        chance = np.append(power[anchor], 1 - power[anchor].sum())  # what is missing: walks without an end
        chance[chance < 1e-12] = 0
        seen = np.bincount(np.where(ends[anchor] < 0, n, ends[anchor]), minlength=n + 1)
        assert (seen[chance == 0] == 0).all()
        if np.count_nonzero(chance) > 1:
            assert chisquare(seen[chance > 0], 20_000 * chance[chance > 0] / chance.sum()).pvalue > 1e-5


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


def test_d16_drawing_leaves_the_graph_as_it_was():
    """GraphGAN's sampler removed the root from its cached tree: the second draw answered otherwise."""
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 50, (2, 100)), 50)
    before = [array.copy() for array in (graph.indptr, graph.indices, graph.relation, graph.filter)]
    pool = Walks(graph, length=3)
    first, second = (pool.draw(ns.Query(np.arange(50)), 9, rng=ns.rng_for(4)).ids for _ in range(2))
    assert (first == second).all()
    after = (graph.indptr, graph.indices, graph.relation, graph.filter)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def some_pairs(n, most, seed):
    """Up to `most` random pairs of n nodes, loops and repetitions among them; Hypothesis alone would draw few."""
    generator = np.random.default_rng(seed)
    return [(int(a), int(b)) for a, b in generator.integers(0, n, (generator.integers(0, most + 1), 2))]


@settings(deadline=None)
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


def test_independent_draws_follow_the_renormalised_chances():
    sources, targets, _ = GRAPHS["undirected"]
    graph = ns.Positives.from_edges(sources, targets)
    power = np.linalg.matrix_power(transitions(sources, targets, False, 7), 3)[0]
    power[[0, 1, 2, 3]] = 0  # the anchor and its neighbours
    got = Walks(graph, length=3, distinct=False).draw(ns.Query(np.zeros(5000, int)), 4, rng=ns.rng_for(1))
    assert got.dropped == {}
    seen = np.bincount(got.ids.ravel(), minlength=7)
    assert (seen[power == 0] == 0).all()
    assert np.count_nonzero(power) >= 2
    assert chisquare(seen[power > 0], 20_000 * power[power > 0] / power.sum()).pvalue > 1e-4


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


def test_wide_distinct_rows():
    star = ns.Positives.from_edges(np.zeros(900, int), np.arange(1, 901))
    got = Walks(star, walks=20_000).draw(ns.Query([1, 2]), 600, rng=ns.rng_for(0))
    assert got.dropped == {}
    for anchor, ids in zip((1, 2), got.ids.tolist(), strict=True):
        assert len(set(ids)) == 600
        assert not {0, anchor} & set(ids)


def test_no_rows_and_lonely_nodes():
    assert Walks(PATH).draw(ns.Query([]), 4, rng=ns.rng_for(0)).shape == (0, 4)
    assert Walks(PATH).endpoints([], 4, rng=ns.rng_for(0)).shape == (0, 4)
    assert Walks(PATH).endpoints([3], 0, rng=ns.rng_for(0)).shape == (1, 0)
    lonely = Walks(ns.Positives.from_edges([0], [1], 3))
    got = lonely.draw(ns.Query([2]), 3, rng=ns.rng_for(0))
    assert got.ids.tolist() == [[-1, -1, -1]]
    assert got.dropped == {"exhausted": 3}


def test_scipy_graph():
    matrix = sp.csr_array(np.array([[0, 1, 0], [0, 0, 5], [0, 0, 0]]))
    assert Walks(matrix).draw(ns.Query([0, 1]), 1, rng=ns.rng_for(0)).ids.tolist() == [[2], [-1]]


def test_threads_do_not_matter():
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 2000, (2, 9000)), 2000)
    anchors = np.random.default_rng(2).integers(0, 2000, 3000)
    before, draws, ends = threads(), [], []
    try:
        for count in (1, 2, 4):
            ns.set_threads(count)
            draws.append(Walks(graph, length=3).draw(ns.Query(anchors), 8, rng=ns.rng_for(0)).ids)
            ends.append(Walks(graph, length=3).endpoints(anchors, 8, rng=ns.rng_for(0)))
    finally:
        ns.set_threads(before)
    assert all((draws[0] == other).all() for other in draws[1:])
    assert all((ends[0] == other).all() for other in ends[1:])


def test_fewer_slots_are_a_prefix():
    few, many = (Walks(PATH, length=6).draw(ns.Query(np.arange(50)), n, rng=ns.rng_for(2)).ids for n in (2, 5))
    assert (few == many[:, :2]).all()


def test_short_rows_can_be_rejected():
    pool = Walks(PATH, on_short="raise")
    assert pool.draw(ns.Query([4]), 2, rng=ns.rng_for(0)).dropped == {}
    with pytest.raises(ns.NaysayError, match=r"Walks.draw: row 1 has 1 candidates left of the 2 requested"):
        pool.draw(ns.Query([4, 0]), 2, rng=ns.rng_for(0))


def test_repr():
    wanted = "Walks(50 nodes, 98 edges, 148 known pairs, length=2, walks=1000, distinct=True, on_short='pad')"
    assert repr(Walks(PATH)) == wanted


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Walks("graph"), "Walks: `graph` must be a Positives or a scipy.sparse matrix, got str."),
        (lambda: Walks(sp.csr_array((2, 3))), "Walks: `graph` must be square, on one set of nodes, got 2 x 3."),
        (lambda: Walks(PATH, length=0), "Walks: `length` must be at least 1, got 0."),
        (lambda: Walks(PATH, length=2**31), r"Walks: `length` must be below 2\^31, got 2147483648."),
        (lambda: Walks(PATH, walks=0), "Walks: `walks` must be at least 1, got 0."),
        (lambda: Walks(PATH, walks=1.5), "Walks: `walks` must be a whole number, got 1.5."),
        (lambda: Walks(PATH, positives=3), "Walks: `positives` must be a Positives or None, got int."),
        (lambda: Walks(PATH, on_short="fill"), "Walks: `on_short` must be one of 'pad', 'raise', got 'fill'."),
        (
            lambda: Walks(PATH).draw(ns.Query([50]), 1, rng=ns.rng_for(0)),
            r"Walks.draw: `anchors` must be between 0 and 49 \(50 nodes\), got 50 at row 0 \(1 such row\).",
        ),
        (
            lambda: Walks(PATH).draw(ns.Query([[0, 0, 0]]), 1, rng=ns.rng_for(0)),
            r"Walks.draw: `query.anchors` must be of shape \(B,\), got triples.",
        ),
        (lambda: Walks(PATH).draw(ns.Query([0]), 1, rng=7), "Walks.draw: `rng` must be a numpy Generator, got 7."),
        (
            lambda: Walks(PATH).endpoints([-1], 1, rng=ns.rng_for(0)),
            r"Walks.endpoints: `anchors` must be between 0 and 49 \(50 nodes\), got -1 at row 0 \(1 such row\).",
        ),
        (
            lambda: Walks(PATH).endpoints([0], -1, rng=ns.rng_for(0)),
            "Walks.endpoints: `count` must be at least 0, got -1.",
        ),
        (
            lambda: Walks(PATH).endpoints([0], 1, rng=None),
            "Walks.endpoints: `rng` must be a numpy Generator, got None.",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ns.NaysayError, match=message):
        make()

"""WeightedWalks and TieWalks: ends against powers of the matrix, golden values, promises."""

import numpy as np
import pytest
from scipy.stats import chisquare

import naysay as ns
from naysay.errors import NaysayError
from naysay.pools import TieWalks, Walks, WeightedWalks, consumption_ties

GRAPH = ns.Positives.from_edges([0, 0, 1, 2, 3, 0], [1, 2, 3, 3, 4, 5])
WEIGHTS = np.random.default_rng(0).integers(1, 9, 12) * 1.0


def steps(graph, weights):
    """P = D^-1 A, in loops."""
    n, place = graph.n_items, 0
    matrix = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            if graph.contains([a], [b])[0]:
                matrix[a, b] = weights[place]
                place += 1
    assert place == len(weights)
    return matrix / matrix.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("weights", [WEIGHTS, None])
def test_ends_follow_the_powers_of_the_matrix(length, weights):
    chance = np.linalg.matrix_power(steps(GRAPH, np.ones(12) if weights is None else weights), length)
    pool = WeightedWalks(GRAPH, weights, length)
    for anchor in range(6):
        ends = pool.endpoints([anchor], 3000, rng=ns.rng_for(0))
        seen = np.bincount(ends[0], minlength=6)
        there = chance[anchor] > 0
        assert not seen[~there].any()
        if there.sum() > 1:
            assert chisquare(seen[there], 3000 * chance[anchor, there]).pvalue > 1e-6


def test_golden_path():
    """0 - 1 - 2 with weights 1 and 3: from 1 to 2 with probability 3/4, and from 1 in two steps back to 1 always."""
    path = ns.Positives.from_edges([0, 1], [1, 2])
    np.testing.assert_allclose(WeightedWalks(path, [1.0, 1.0, 3.0, 3.0])._steps.matrix()[1], [0.25, 0.0, 0.75])
    assert (WeightedWalks(path, [1.0, 1.0, 3.0, 3.0], 2).endpoints([1], 50, rng=ns.rng_for(0)) == 1).all()


def test_equal_weights_are_those_of_walks():
    """The same distribution as Walks, before exclusion."""
    ends = [
        np.bincount(pool.endpoints([0], 4_000, rng=ns.rng_for(1))[0], minlength=6)
        for pool in (Walks(GRAPH, 2), WeightedWalks(GRAPH, length=2))
    ]
    assert np.abs(ends[0] - ends[1]).max() < 250


def test_neighbours_are_candidates_and_positives_are_not():
    known = ns.Positives.from_pairs([0], [1], 6, 6)
    drawn = WeightedWalks(GRAPH, length=1, positives=known).draw(ns.Query([0, 0]), 3, rng=ns.rng_for(0))
    assert [sorted(row) for row in drawn.ids.tolist()] == [[-1, 2, 5], [-1, 2, 5]]
    assert drawn.dropped == {"exhausted": 2}
    own = WeightedWalks(GRAPH, length=1).draw(ns.Query([0], positives=[2]), 3, rng=ns.rng_for(0))
    assert sorted(own.ids[0].tolist()) == [-1, 1, 5]


def test_golden_values_of_samwalker():
    two = TieWalks(ns.Positives.from_edges([0], [1]), ns.Positives.from_pairs([0, 1], [0, 1], 2, 2))
    np.testing.assert_allclose(two.chances([0, 1]), [[0.541855, 0.458145], [0.458145, 0.541855]], atol=5e-7)


@pytest.mark.parametrize(("stop", "depth"), [(0.1, 5), (0.5, 2), (1.0, 1)])
def test_walks_stop_where_they_should(stop, depth):
    """Counts of users against (1 - c) sum (c Phi)^t + c^depth / n; user 4 has no ties."""
    ties = ns.Positives.from_edges([0, 1, 0], [1, 2, 3], 5)
    consumed = ns.Positives.from_pairs(range(5), range(5), 5, 5)
    pool = TieWalks(ties, consumed, [1.0, 4.0, 1.0, 2.0, 2.0, 3.0], stop=stop, depth=depth)
    for anchor in (0, 2, 4):
        users = pool._users(np.array([anchor]), 20_000, np.random.default_rng(0))[0]
        chance = pool.chances([anchor])[0]
        assert chance.sum() == pytest.approx(1.0)
        there = chance > 0
        seen = np.bincount(users, minlength=5)
        assert not seen[~there].any()
        if there.sum() > 1:
            assert chisquare(seen[there], 20_000 * chance[there]).pvalue > 1e-6


def test_ties_of_shared_items_are_steps_over_items():
    rng = np.random.default_rng(0)
    consumed = ns.Positives.from_pairs(*rng.integers(0, (6, 9), (25, 2)).T, 6, 9)
    matrix = consumed.contains(np.arange(6), np.tile(np.arange(9), (6, 1))) * 1.0
    over = (matrix / matrix.sum(axis=1, keepdims=True)) @ (matrix / np.maximum(matrix.sum(axis=0), 1)).T
    np.fill_diagonal(over, 0.0)
    ties, weights = consumption_ties(consumed)
    found = np.zeros((6, 6))
    found[ties.pairs()] = weights
    np.testing.assert_allclose(found, over)


def test_ignored_pairs_are_no_ties():
    consumed = ns.Positives.from_pairs([0, 1, 1, 2], [0, 0, 1, 1], 4, 2)
    ties, weights = consumption_ties(consumed)
    ignored_ties, ignored_weights = consumption_ties(consumed.with_ignored([3, 0], [1, 1]))
    assert [part.tolist() for part in ignored_ties.pairs()] == [part.tolist() for part in ties.pairs()]
    assert ignored_weights.tolist() == weights.tolist()


def test_promises():
    rng = np.random.default_rng(0)
    consumed = ns.Positives.from_pairs(*rng.integers(0, (8, 12), (40, 2)).T, 8, 12)
    ties, weights = consumption_ties(consumed)
    ns.check_pool(TieWalks(ties, consumed, weights, walks=40, depth=2), consumed, n=3)
    graph = ns.Positives.from_edges(rng.integers(0, 12, 30), rng.integers(0, 12, 30), 12)
    known = ns.Positives.from_pairs(*rng.integers(0, (12, 12), (30, 2)).T, 12, 12)
    ns.check_pool(WeightedWalks(graph, length=2, walks=40, positives=known, distinct=False), known, n=3)


def test_errors():
    for call, sentence in (
        (lambda: WeightedWalks(GRAPH, [1.0]), "WeightedWalks: `weights` must be of shape (12,), one for each edge"),
        (lambda: WeightedWalks(GRAPH, -WEIGHTS), "WeightedWalks: `weights` must be finite and at least 0"),
        (lambda: WeightedWalks(ns.Positives.from_pairs([0], [1], 1, 2)), "WeightedWalks: `graph` must be square"),
        (
            lambda: TieWalks(GRAPH, ns.Positives.from_pairs([0], [1], 1, 2)),
            "TieWalks: `ties` must be square, of the 1 users",
        ),
        (lambda: TieWalks(GRAPH, GRAPH, stop=0), "TieWalks: `stop` must be"),
    ):
        with pytest.raises(NaysayError) as caught:
            call()
        assert str(caught.value).startswith(sentence)

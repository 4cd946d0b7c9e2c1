"""disagreement: the solution of the dense system, two arms of a spiral, disjoint lists, and edges."""

import numpy as np

import naysay as ns
from naysay.mining import disagreement
from naysay.mining.disagreement import _diffused, _mutual, _others
from naysay.search import search


def two_arms(n=150):
    """Two rings of points on a sphere, close to each other: nearest points lie across, the data goes around."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    height = np.repeat([0.06, -0.06], n)
    around = np.concatenate([angle, angle + np.pi / n])
    points = np.stack([np.cos(around), np.sin(around), height], axis=1)
    return points / np.linalg.norm(points, axis=1, keepdims=True), np.repeat([0, 1], n)


def test_the_diffusion_is_the_solution_of_the_dense_system():
    vectors = np.random.default_rng(0).standard_normal((25, 4))
    adjacency = _mutual(vectors, _others(search(vectors, vectors, 9).ids))
    matrix = adjacency.toarray()
    np.testing.assert_allclose(matrix, matrix.T)
    for alpha in (0.0, 0.5, 0.99):
        exact = np.linalg.inv(np.eye(25) - alpha * matrix)
        for sample in range(25):
            np.testing.assert_allclose(_diffused(adjacency, sample, alpha), exact[sample], atol=1e-4)


def test_negatives_lie_on_the_other_arm_and_positives_on_the_same():
    points, arm = two_arms()
    lists = disagreement(points, k=12, graph=2)
    for ids, wanted in ((lists.negatives, False), (lists.positives, True)):
        filled = ids >= 0
        assert filled.sum() > len(points)
        same = (arm[:, None] == arm[ids])[filled]
        assert (same == wanted).mean() > 0.95


def test_lists_share_nothing_and_are_different_ids():
    vectors = np.random.default_rng(1).standard_normal((40, 3))
    lists = disagreement(vectors, k=6, graph=5)
    for row, (negatives, positives) in enumerate(zip(lists.negatives.tolist(), lists.positives.tolist(), strict=True)):
        both = [i for i in [*negatives, *positives] if i >= 0]
        assert len(set(both)) == len(both)
        assert row not in both
    pool = ns.pools.Local(lists.negatives, ns.Positives.from_pairs(np.arange(40), np.arange(40), 40, 40))
    assert (pool.draw(ns.Query([0]), 2, rng=ns.rng_for(0)).ids < 40).all()


def test_all_samples_as_neighbours_leave_nothing():
    vectors = np.abs(np.random.default_rng(2).standard_normal((8, 3)))
    lists = disagreement(vectors, k=7, graph=7)
    assert (lists.negatives == -1).all()
    assert (lists.positives == -1).all()
    assert disagreement(np.zeros((0, 3)), k=2).negatives.shape == (0, 2)

"""disagreement: the solution of the dense system, two arms of a spiral, disjoint lists, and edges."""

import numpy as np

import naysay as ns
from naysay.mining import disagreement


def two_arms(n=90):
    """Two rings of points on a sphere, close to each other: nearest points lie across, the data goes around."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    height = np.repeat([0.1, -0.1], n)
    around = np.concatenate([angle, angle + np.pi / n])
    points = np.stack([np.cos(around), np.sin(around), height], axis=1)
    return points / np.linalg.norm(points, axis=1, keepdims=True), np.repeat([0, 1], n)


def test_lists_are_those_of_the_dense_system():
    vectors = np.random.default_rng(0).standard_normal((25, 4))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -np.inf)
    nearest = np.argsort(-cosine, axis=1)[:, :8]
    weights = np.zeros((25, 25))
    for i in range(25):
        for j in nearest[i]:
            if i in nearest[j]:
                weights[i, j] = max(cosine[i, j], 0.0) ** 3
    scale = np.sqrt(weights.sum(axis=1))
    for alpha in (0.5, 0.99):
        along = np.linalg.inv(np.eye(25) - alpha * weights / np.outer(scale, scale))
        lists = disagreement(vectors, k=5, graph=8, alpha=alpha)
        for i in range(25):
            others = [j for j in np.argsort(-along[i]) if j != i][:5]
            assert {*lists.negatives[i].tolist()} - {-1} == {*nearest[i, :5].tolist()} - {*others}
            assert {*lists.positives[i].tolist()} - {-1} == {*others} - {*nearest[i, :5].tolist()}


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

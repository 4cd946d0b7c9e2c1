"""SoftClusters against plain loops, and clusters with a known answer."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import SoftClusters

RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((12, 3))
CENTRES = RNG.standard_normal((4, 3)).astype(np.float32)


def embed(ids):
    return torch.from_numpy(POINTS)[ids] if torch.is_tensor(ids) else POINTS[ids]


def chances(point, centres, freedom):
    """Student's t kernel of one point, centre by centre."""
    kernel = []
    for centre in centres:
        square = sum((a - b) ** 2 for a, b in zip(point, centre, strict=True))
        kernel.append((1 + square / freedom) ** (-(freedom + 1) / 2))
    return [value / sum(kernel) for value in kernel]


def by_loops(points, centres, anchors, ids, freedom):
    answer = []
    for anchor, row in zip(anchors, ids, strict=True):
        own, values = chances(points[anchor], centres, freedom), []
        for item in row:
            if item < 0:
                values.append(0.0)
                continue
            its = chances(points[item], centres, freedom)
            together = sum(a * b for a, b in zip(own, its, strict=True))
            same = own.index(max(own)) == its.index(max(its))
            values.append((same + together) / 2)
        answer.append(values)
    return np.array(answer)


def ready(n_clusters=4, centres=CENTRES, **settings):
    detector = SoftClusters(n_clusters, embed, embed_anchors=embed, **settings)
    detector.restore({"centres": centres})
    return detector


def question(rows=7, width=5, seed=1):
    rng = np.random.default_rng(seed)
    return ns.Query(rng.integers(0, 12, rows)), ns.Negatives(rng.integers(-1, 12, (rows, width)))


def blobs(n=600, classes=6, seed=3):
    """Points of classes far apart, and the class of each."""
    rng = ns.rng_for(seed)
    label = rng.integers(0, classes, n)
    centres = rng.standard_normal((classes, 8)) * 4
    return (centres[label] + rng.standard_normal((n, 8))).astype(np.float32), label


# ---- what it computes -----------------------------------------------------------------------------------


@given(st.integers(0, 6), st.integers(1, 6), st.floats(1e-4, 50), st.integers(0, 99))
def test_suspicion_is_that_of_plain_loops(rows, width, freedom, seed):
    query, negatives = question(rows, width, seed)
    found = ready(freedom=freedom).suspicion(query, negatives)
    expected = by_loops(POINTS, CENTRES.astype(float), query.anchors, negatives.ids.tolist(), freedom)
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-9, atol=1e-12)
    distances = ((POINTS[:, None] - CENTRES.astype(float)) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    flagged = (negatives.ids >= 0) & (nearest[query.anchors][:, None] == nearest[negatives.ids])
    np.testing.assert_array_equal(found >= 0.5, flagged)  # the nearest centre decides, whatever the kernel


def test_points_far_from_every_centre_have_a_suspicion():
    far = np.array([[1e5, 0.0, 0.0]])
    detector = SoftClusters(4, lambda ids: far[ids], embed_anchors=lambda ids: far[ids], freedom=1000.0)
    detector.restore({"centres": CENTRES})
    assert detector.suspicion(ns.Query([0]), ns.Negatives(np.array([[0]])))[0, 0] > 0.5


# ---- k-means, and clusters with a known answer ----------------------------------------------------------


def test_k_means_takes_the_mean_of_all_that_is_nearest():
    points, _ = blobs(4000)  # more than the 256 a cluster that faiss would look at
    detector = SoftClusters(6, iterations=100, restarts=1)
    detector.update(points, rng=ns.rng_for(1))
    centres = detector.centres
    nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    for cluster in range(6):
        np.testing.assert_allclose(centres[cluster], points[nearest == cluster].mean(axis=0), atol=1e-4)


def test_equal_generators_give_equal_centres_and_other_ones_other_centres():
    points = RNG.standard_normal((500, 4)).astype(np.float32)
    made = []
    for seed in (0, 0, 1):
        detector = SoftClusters(20)
        detector.update(torch.from_numpy(points), rng=ns.rng_for(seed))
        made.append(detector.centres)
    np.testing.assert_array_equal(made[0], made[1])
    assert not np.array_equal(made[0], made[2])


def test_vectors_of_query_and_negatives_serve_as_well():
    query, negatives = question()
    expected = ready().suspicion(query, negatives)
    carrying = SoftClusters(4)
    carrying.restore({"centres": torch.from_numpy(CENTRES)})
    with_vectors = ns.Query(query.anchors, vectors=POINTS[query.anchors])
    found = carrying.suspicion(with_vectors, replace(negatives, vectors=POINTS[negatives.ids]))
    np.testing.assert_allclose(found, expected, atol=1e-12)

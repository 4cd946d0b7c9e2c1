"""SoftClusters against loops, its two rules and its gate, clusters with a known answer, the contract, refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors.soft_clusters import SoftClusters
from naysay.testing import planted_world

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


def by_loops(points, centres, anchors, ids, freedom, rule, confidence):
    answer = []
    for anchor, row in zip(anchors, ids, strict=True):
        own, values = chances(points[anchor], centres, freedom), []
        for item in row:
            if item < 0:
                values.append(0.0)
                continue
            its = chances(points[item], centres, freedom)
            together = sum(a * b for a, b in zip(own, its, strict=True))
            same = own.index(max(own)) == its.index(max(its)) and min(max(own), max(its)) >= confidence
            values.append(together if rule == "probability" else (same + together) / 2)
        answer.append(values)
    return np.array(answer).reshape(len(anchors), -1)


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


@pytest.mark.parametrize("freedom", [1.0, 1e-4, 5.0])
@pytest.mark.parametrize(("rule", "confidence"), [("cluster", 0.0), ("cluster", 0.4), ("probability", 0.0)])
def test_it_is_what_loops_give(freedom, rule, confidence):
    query, negatives = question()
    found = ready(freedom=freedom, rule=rule, confidence=confidence).suspicion(query, negatives)
    settings = (freedom, rule, confidence)
    expected = by_loops(POINTS, CENTRES.astype(float), query.anchors, negatives.ids.tolist(), *settings)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@given(st.integers(0, 6), st.integers(1, 6), st.floats(1e-4, 50), st.floats(0, 1), st.integers(0, 99))
def test_laws(rows, width, freedom, confidence, seed):
    query, negatives = question(rows, width, seed)
    found = ready(freedom=freedom, confidence=confidence).suspicion(query, negatives)
    chance = ready(freedom=freedom, rule="probability").suspicion(query, negatives)
    filled = negatives.ids >= 0
    assert ((found >= 0) & (found <= 1)).all()
    assert (found[~filled] == 0).all()
    distances = ((POINTS[:, None] - CENTRES.astype(float)) ** 2).sum(axis=2)
    nearest, best = distances.argmin(axis=1), ready(freedom=freedom).assign(POINTS).max(axis=1)
    own = query.anchors[:, None]
    flagged = (
        filled & (nearest[own] == nearest[negatives.ids]) & (np.minimum(best[own], best[negatives.ids]) >= confidence)
    )
    np.testing.assert_array_equal(found >= 0.5, flagged)  # the nearest centre decides, whatever the kernel
    np.testing.assert_allclose(found, np.where(flagged, 0.5, 0.0) + chance / 2, atol=1e-12)


def test_the_kernel_by_hand():
    detector = SoftClusters(2, freedom=1.0)
    detector.restore({"centres": np.array([[0.0, 0.0], [3.0, 0.0]])})
    assert detector.assign(np.array([[0.0, 0.0], [1.0, 0.0]])).tolist() == [
        pytest.approx([10 / 11, 1 / 11]),  # 1 and 1 / (1 + 9)
        pytest.approx([5 / 7, 2 / 7]),  # 1 / 2 and 1 / (1 + 4)
    ]
    detector.freedom = 1e-9  # in proportion to 1 / distance
    assert detector.assign(np.array([[1.0, 0.0]]))[0] == pytest.approx([2 / 3, 1 / 3], rel=1e-6)


def test_points_far_from_every_centre_still_have_chances():
    detector = ready(freedom=1000.0)
    found = detector.assign(np.array([[1e5, 0.0, 0.0]]))
    assert found.sum() == pytest.approx(1)


def test_many_different_ids_give_what_loops_give():
    points, _ = blobs(300)
    ids = RNG.permutation(300).reshape(50, 6)
    detector = SoftClusters(3, lambda i: points[i], embed_anchors=lambda a: points[a])
    detector.restore({"centres": points[:3]})
    expected = by_loops(points.astype(float), points[:3].astype(float), range(50), ids.tolist(), 1.0, "cluster", 0.0)
    np.testing.assert_allclose(detector.suspicion(ns.Query(np.arange(50)), ns.Negatives(ids)), expected, atol=1e-9)


# ---- k-means, and clusters with a known answer ----------------------------------------------------------


def test_classes_far_apart_are_found():
    points, label = blobs()
    detector = SoftClusters(6, lambda ids: points[ids], embed_anchors=lambda anchors: points[anchors])
    detector.update(points, rng=ns.rng_for(1))
    query = ns.Query(np.arange(600))
    negatives = ns.Negatives(ns.rng_for(0).integers(0, 600, (600, 40)))
    truth = label[:, None] == label[negatives.ids]
    found = detector.suspicion(query, negatives)
    flagged = found >= 0.5
    assert truth[flagged].mean() > 0.97
    assert flagged[truth].mean() > 0.97
    inside = ready_gate(points, detector, 0.9).suspicion(query, negatives) >= 0.5
    assert inside.sum() < flagged.sum()
    assert (flagged | ~inside).all()


def ready_gate(points, other, confidence):
    gated = SoftClusters(6, lambda ids: points[ids], embed_anchors=lambda a: points[a], confidence=confidence)
    gated.restore(other.state())
    return gated


def test_in_a_planted_world_false_negatives_are_concentrated():
    world = planted_world(400, 600, per_anchor=12, known_share=0.5, noise=0.5, seed=1)
    query = ns.Query(np.arange(400), vectors=world.anchor_vectors)
    negatives = ns.pools.Everything(world.known).draw(query, 200, rng=ns.rng_for(0))
    truth = world.is_false_negative(query.anchors, negatives.ids)
    detector = SoftClusters(12, lambda ids: world.item_vectors[ids])
    detector.update(np.concatenate([world.anchor_vectors, world.item_vectors]), rng=ns.rng_for(0))
    flagged = detector.suspicion(query, negatives) >= 0.5
    assert flagged[truth].mean() > 0.9  # recall 0.995
    assert truth[flagged].mean() > 6 * truth.mean()  # precision 0.136, where 0.010 of all are false


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


# ---- the contract ---------------------------------------------------------------------------------------


def test_torch_in_torch_out_and_vectors_from_anywhere():
    query, negatives = question()
    expected = ready().suspicion(query, negatives)
    found = ready().suspicion(ns.Query(torch.from_numpy(query.anchors)), negatives.to("cpu"))
    assert torch.is_tensor(found)
    np.testing.assert_array_equal(found.numpy(), expected)
    carrying = SoftClusters(4)
    carrying.restore({"centres": torch.from_numpy(CENTRES)})
    with_vectors = ns.Query(query.anchors, vectors=POINTS[query.anchors])
    found = carrying.suspicion(with_vectors, replace(negatives, vectors=POINTS[negatives.ids]))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_query_s_own_vectors_come_first():
    query, negatives = question()
    moved = ns.Query(query.anchors, vectors=POINTS[(query.anchors + 1) % 12])
    expected = ready().suspicion(ns.Query((query.anchors + 1) % 12), negatives)
    np.testing.assert_array_equal(ready().suspicion(moved, negatives), expected)


# ---- refusals -------------------------------------------------------------------------------------------


def test_a_rejected_update_draws_nothing():
    rng, other = ns.rng_for(0), ns.rng_for(0)
    for bad in (POINTS[:2], POINTS * np.nan, np.ones((9, 3)), POINTS[0]):
        with pytest.raises(ns.NaysayError, match=r"^SoftClusters\.update: `vectors` must be "):
            SoftClusters(3).update(bad, rng=rng)
    assert rng.random() == other.random()

"""Incremental false-negative detection: pseudo-labels by confidence, acceptance by progress, and its losses."""

import numpy as np
import pytest
import torch

import naysay as ns
from tests.contract import oracles

N, GROUPS = 120, 4


def features(seed=0, spread=0.4):
    """Vectors around some centres, and whose they are."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, GROUPS, N)
    return (3 * rng.standard_normal((GROUPS, 5))[which] + spread * rng.standard_normal((N, 5))).astype(
        np.float32
    ), which


def updated(progress, clusters=(GROUPS, 10), **settings):
    detector = ns.detectors.Incremental(N, clusters, **settings)
    detector.update(features()[0], progress)
    return detector


@pytest.mark.parametrize("progress", [0.0, 0.25, 0.6, 1.0])
def test_the_share_of_labels_is_the_progress(progress):
    labels = updated(progress).labels
    assert labels.shape == (2, N)
    assert (labels >= 0).sum(axis=1).tolist() == [int(progress * N)] * 2


def test_the_most_confident_samples_keep_their_label():
    """At full progress all have labels: their means are the centroids, and the confidence is a softmax of cosines."""
    vectors, _ = features()
    whole, half = updated(1.0, GROUPS).labels[0], updated(0.5, GROUPS).labels[0]
    centroids = [vectors[whole == place].mean(axis=0) for place in range(GROUPS)]
    sure = [oracles.confidence(vectors[i], centroids, whole[i], 0.2) for i in range(N)]
    kept = half >= 0
    assert (half[kept] == whole[kept]).all()
    assert min(np.array(sure)[kept]) >= max(np.array(sure)[~kept]) - 1e-4


def test_labels_accepted_at_a_lower_progress_are_accepted_later():
    early, late = updated(0.3).labels, updated(0.7).labels
    assert (late[early >= 0] == early[early >= 0]).all()


def test_equal_seeds_give_equal_labels_for_any_number_of_threads():
    first = updated(0.8).labels
    ns.set_threads(2)
    assert (updated(0.8).labels == first).all()


def test_planted_groups_are_found():
    _, which = features()
    detector = updated(1.0, GROUPS, restarts=5)
    rates = ns.detectors.detection_rates(detector.labels[0], which)
    assert rates.true_positive > 0.9
    assert rates.true_negative > 0.9


def test_suspicion_is_the_share_of_granularities_with_the_same_label():
    detector = updated(0.6)
    anchors, ids = np.arange(10), np.random.default_rng(1).integers(0, N, (10, 8))
    found = detector.suspicion(ns.Query(anchors), ns.Negatives(ids))
    for row in range(10):
        for slot in range(8):
            matches = [oracles.same_label(labels, anchors[row], ids[row, slot]) for labels in detector.labels.tolist()]
            assert found[row, slot] == pytest.approx(sum(matches) / 2)
    ns.check_detector(detector, ns.Query(anchors), ns.Negatives(ids))


def test_other_schedules_of_acceptance():
    assert (updated(0.05, accept=ns.detectors.StepAcceptance()).labels >= 0).sum() == 0
    assert (updated(0.2, accept=ns.detectors.StepAcceptance()).labels >= 0).all()
    half = updated(0.5, accept=ns.detectors.LinearAcceptance(final=0.5)).labels
    assert (half >= 0).sum(axis=1).tolist() == [N // 4] * 2
    assert (updated(0.9, accept=0.25).labels >= 0).sum(axis=1).tolist() == [N // 4] * 2


def test_labels_go_into_the_losses_as_they_are():
    detector = updated(0.6)
    samples = np.r_[np.arange(6), np.arange(6)]
    z = torch.from_numpy(np.random.default_rng(0).standard_normal((12, 5))).requires_grad_()
    partner = np.r_[np.arange(6, 12), np.arange(6)]
    labels = detector.labels[:, samples]
    for kind in ("eliminate", "attract"):
        loss = getattr(ns.losses, kind)(z, partner, labels, temperature=0.5)
        rows = [getattr(oracles, kind)(z.detach().numpy(), partner.tolist(), one, 0.5) for one in labels.tolist()]
        assert loss.tolist() == pytest.approx(np.mean(rows, axis=0).tolist(), rel=1e-9)
        loss.mean().backward()


def test_collapsed_features_are_an_error():
    with pytest.raises(ns.NaysayError) as caught:
        ns.detectors.Incremental(N, 4).update(np.ones((N, 5), np.float32), 0.5)
    assert caught.value.parameter == "features"

"""Labelled: logistic regression on labelled candidates, against plain optimisation."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import naysay as ns
from naysay.detectors import Labelled
from naysay.errors import NaysayError


def fitted(features, labels, **settings):
    """A detector of (n, f) features, one row with all slots, and the question it was fitted to."""
    question = ns.Query([0]), ns.Negatives(np.arange(len(labels))[None])
    detector = Labelled(features=lambda anchors, ids: features[ids], scores=False, **settings)
    return detector.fit(*question, labels[None]), question


def data(seed, n=80, width=2):
    rng = np.random.default_rng(seed)
    features = rng.normal(3, 2, (n, width))
    odds = features @ rng.normal(0, 1, width)
    return features, rng.random(n) < 1 / (1 + np.exp(-(odds - np.median(odds))))


@pytest.mark.parametrize("l2", [0.01, 1.0, 30.0])
def test_the_weights_are_those_of_plain_optimisation(l2):
    features, labels = data(1)
    detector, _ = fitted(features, labels, l2=l2)
    design = np.column_stack([np.ones(80), (features - features.mean(axis=0)) / features.std(axis=0)])

    def price(weights):
        odds = design @ weights
        return np.logaddexp(0, np.where(labels, -odds, odds)).sum() + l2 / 2 * (weights[1:] ** 2).sum()

    wanted = minimize(price, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    assert detector.weights == pytest.approx(wanted, abs=1e-5)


def test_labels_that_a_line_separates_have_finite_weights_and_the_scale_of_a_feature_does_not_matter():
    features, labels = np.arange(40.0)[:, None], np.arange(40) >= 20
    (detector, question), (scaled, _) = (fitted(factor * features + 7, labels) for factor in (1, 1e300))
    assert np.isfinite(detector.weights).all()
    assert ((detector.suspicion(*question)[0] >= 0.5) == labels).all()
    assert np.allclose(detector.weights, scaled.weights, rtol=1e-6)


@pytest.mark.parametrize("value", [3.0, 0.1, 1 / 3, -2.3e9, 0.0])
def test_a_feature_that_is_all_one_value_weighs_nothing(value):
    features, labels = data(6)
    hair = np.nextafter(value, np.inf) if value else 0.0  # a number that was worked out twice may differ by as much
    constant = np.where(np.arange(80) % 2, value, hair)
    detector, _ = fitted(np.column_stack([features, constant]), labels)
    assert abs(detector.weights[-1]) < 1e-5
    assert np.allclose(detector.weights[:-1], fitted(features, labels)[0].weights)


# ---------------------------------------------------------------- the detector


def judged(seed=0, rows=60, k=5):
    """Two groups of anchors whose lines are apart: below 30 at 1, from there on at -1."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.5, (rows, k))
    negatives = ns.Negatives(rng.integers(0, 90, (rows, k)), scores=scores)
    line = np.where(np.arange(rows) < rows // 2, 1.0, -1.0)[:, None]
    return ns.Query(np.arange(rows)), negatives, scores + 0.3 * rng.normal(size=(rows, k)) > line


def test_cost_moves_the_line_and_share_the_chance():
    query, negatives, truth = judged()
    plain, dear, rare = (
        Labelled(**more).fit(query, negatives, truth) for more in ({}, {"cost": 9}, {"false_share": 0.02})
    )
    chance = plain.suspicion(query, negatives)
    assert np.array_equal(dear.suspicion(query, negatives) >= 0.5, chance >= 0.1)
    odds = np.log(chance / (1 - chance)) + np.log(0.02 / 0.98) - np.log(truth.mean() / (1 - truth.mean()))
    assert np.allclose(rare.suspicion(query, negatives), 1 / (1 + np.exp(-odds)), atol=1e-6)


def test_labels_are_only_where_truth_and_slots_are():
    query, negatives, truth = judged()
    ids = negatives.ids.copy()
    ids[:, 3:] = -1
    found = Labelled().fit(query, ns.Negatives(ids, scores=negatives.scores), truth)
    first = Labelled().fit(query, ns.Negatives(ids[:, :3], scores=negatives.scores[:, :3]), truth[:, :3])
    assert found.n == 180
    assert np.array_equal(found.weights, first.weights)
    classes = np.full(90, -1)
    classes[:60] = np.arange(60) % 2
    samples = Labelled().fit(ns.Query(np.arange(60)), negatives, classes)
    assert samples.n == (negatives.ids < 60).sum()
    asked = []

    def by_function(anchors, ids):
        asked.append(ids)
        return truth

    assert np.array_equal(
        Labelled().fit(query, negatives, by_function).weights, Labelled().fit(query, negatives, truth).weights
    )
    assert (asked[0] >= 0).all()


def test_features_get_tensors_without_gradients():
    query, negatives, truth = judged()

    def features(anchors, ids):
        assert not torch.is_grad_enabled()
        return (anchors % 2) * (ids % 3)

    numpy = Labelled(features=lambda a, i: (a % 2) * (i % 3)).fit(query, negatives, truth)
    tensors = ns.Negatives(torch.from_numpy(negatives.ids), scores=torch.from_numpy(negatives.scores))
    found = Labelled(features=features).fit(ns.Query(torch.arange(60)), tensors, torch.from_numpy(truth))
    assert np.array_equal(
        found.suspicion(ns.Query(torch.arange(60)), tensors).numpy(), numpy.suspicion(query, negatives)
    )


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: np.zeros(n + 1),
        lambda n: np.zeros((n, 0)),
        lambda n: np.where(np.arange(n) == 7, np.nan, 1.0),
        lambda n: ["much"] * n,
        lambda n: 1 / 0,
    ],
)
def test_features_that_are_no_numbers_are_named(answer):
    query, negatives, truth = judged()
    with pytest.raises(NaysayError, match="`features`"):
        Labelled(features=lambda anchors, ids: answer(len(ids))).fit(query, negatives, truth)

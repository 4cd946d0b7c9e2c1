"""Labelled: logistic regression with groups that lend each other strength, against plain optimisation."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import naysay as ns
from naysay.detectors import Labelled
from naysay.detectors._grouped_logistic import fit_grouped
from naysay.errors import NaysayError


def price(weights, features, labels, groups, n_groups, l2):
    """The objective by its definition, a label at a time."""
    width = len(features[0]) + 1
    pooled, apart = weights[:width], np.reshape(weights[width:], (n_groups, width))
    centre = [sum(row[j] for row in features) / len(features) for j in range(width - 1)]
    spread = [math.sqrt(sum((row[j] - centre[j]) ** 2 for row in features) / len(features)) for j in range(width - 1)]
    total = 0.0
    for row, label, group in zip(features, labels, groups, strict=True):
        odds = 0.0
        for j in range(width):
            z = 1.0 if j == 0 else (row[j - 1] - centre[j - 1]) / (spread[j - 1] or 1.0)
            odds += z * (pooled[j] + (apart[group][j] if group >= 0 else 0.0))
        total += math.log1p(math.exp(-abs(odds))) + max(0.0, -odds if label else odds)
    return total + l2 / 2 * (sum(w**2 for w in pooled[1:]) + sum(u**2 for u in weights[width:]))


def data(seed, n=60, width=2, n_groups=3):
    rng = np.random.default_rng(seed)
    features, groups = rng.normal(3, 2, (n, width)), rng.integers(-1, n_groups, n)
    odds = features @ rng.normal(0, 1, width) + rng.normal(0, 2, n_groups + 1)[groups]
    return features, rng.random(n) < 1 / (1 + np.exp(-(odds - np.median(odds)))), groups


@pytest.mark.parametrize(
    ("seed", "width", "n_groups", "l2"),
    [(0, 2, 3, 0.1), (1, 1, 2, 1.0), (2, 3, 0, 20.0), (3, 1, 5, 1.0), (4, 1, 2, 20.0)],
)
def test_the_weights_are_those_of_plain_optimisation(seed, width, n_groups, l2):
    features, labels, groups = data(seed, width=width, n_groups=n_groups)
    found = fit_grouped(features, labels, groups, l2)
    mine = np.concatenate([found.pooled, found.apart.ravel()])
    args = (features.tolist(), labels.tolist(), groups.tolist(), n_groups, l2)
    theirs = minimize(price, np.zeros(len(mine)), args, method="BFGS", options={"gtol": 1e-7}).x
    assert np.abs(mine - theirs).max() < 2e-4
    assert price(mine, *args) <= price(theirs, *args) + 1e-9


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.floats(0.05, 50))
def test_no_step_lowers_the_price(seed, n_groups, l2):
    features, labels, groups = data(seed, n=30, n_groups=n_groups)
    found = fit_grouped(features, labels, groups, l2)
    mine = np.concatenate([found.pooled, found.apart.ravel()])
    args = (features.tolist(), labels.tolist(), groups.tolist(), n_groups, l2)
    least = price(mine, *args)
    for place in range(len(mine)):
        for step in (-1e-3, 1e-3):
            other = mine.copy()
            other[place] += step
            assert price(other, *args) >= least - 1e-10


def test_the_mean_chance_is_the_share_of_labels_because_the_constant_is_free():
    features, labels, groups = data(5)
    found = fit_grouped(features, labels, groups, 4.0)
    chance = 1 / (1 + np.exp(-found.log_odds(features, groups)))
    assert chance.mean() == pytest.approx(labels.mean(), abs=1e-9)


def test_labels_that_a_line_separates_have_finite_weights_and_the_scale_of_a_feature_does_not_matter():
    features = np.arange(40.0)[:, None]
    labels = features[:, 0] >= 20
    none = np.full(40, -1)
    found, scaled = (fit_grouped(factor * features + 7, labels, none, 1.0) for factor in (1, 1e300))
    assert np.isfinite(found.pooled).all()
    assert ((found.log_odds(features + 7, none) > 0) == labels).all()
    assert np.allclose(found.pooled, scaled.pooled, rtol=1e-6)


@pytest.mark.parametrize("value", [3.0, 0.1, 1 / 3, -2.3e9, 0.0])
def test_a_feature_that_is_all_one_value_weighs_nothing(value):
    features, labels, groups = data(6)
    hair = np.nextafter(value, np.inf) if value else 0.0  # a number that was worked out twice may differ by as much
    constant = np.where(np.arange(60) % 2, value, hair)
    found = fit_grouped(np.column_stack([features, constant]), labels, groups, 1.0)
    without = fit_grouped(features, labels, groups, 1.0)
    assert found.spread[-1] == 1.0  # and not the rounding error of its mean
    assert max(np.abs(found.pooled[-1]), np.abs(found.apart[:, -1]).max()) < 1e-5
    assert np.allclose(found.pooled[:-1], without.pooled)


def test_groups_may_have_any_numbers_and_only_those_with_labels_are_kept():
    features, labels, groups = data(7)
    far = np.where(groups < 0, -1, 10**12 * (groups + 1))
    near, found = (fit_grouped(features, labels, whose, 1.0) for whose in (groups, far))
    assert found.groups.tolist() == [10**12, 2 * 10**12, 3 * 10**12]
    assert np.array_equal(found.apart, near.apart)
    assert np.array_equal(found.log_odds(features, far), near.log_odds(features, groups))
    unknown = found.log_odds(features, np.full(60, 5))
    assert np.array_equal(unknown, found.log_odds(features, np.full(60, -1)))


# ---------------------------------------------------------------- the detector


def judged(seed=0, rows=60, k=5):
    """Two groups of anchors whose lines are apart: below 30 at 1, from there on at -1."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.5, (rows, k))
    negatives = ns.Negatives(rng.integers(0, 90, (rows, k)), scores=scores)
    line = np.where(np.arange(rows) < rows // 2, 1.0, -1.0)[:, None]
    return ns.Query(np.arange(rows)), negatives, scores + 0.3 * rng.normal(size=(rows, k)) > line


def test_each_group_has_its_line_and_a_group_without_labels_that_of_all():
    query, negatives, truth = judged()
    groups = np.concatenate([np.arange(60) // 30, [2, -1]])
    found = Labelled(groups=groups).fit(query, negatives, truth)
    scores = np.linspace(-3, 3, 601)
    asked = ns.Negatives(np.zeros((4, 601), int), scores=np.tile(scores, (4, 1)))
    flagged = found.suspicion(ns.Query([0, 59, 60, 61]), asked) >= 0.5
    lines = scores[flagged.argmax(axis=1)]
    assert abs(lines[0] - 1) < 0.2
    assert abs(lines[1] + 1) < 0.2
    assert lines[2] == lines[3]
    assert -0.5 < lines[2] < 0.5
    assert found.n == 300
    assert found.weights.shape == (2,)
    assert list(found.group_weights) == [0, 1]
    for group, weights in found.group_weights.items():  # the log-odds of a group are those of its weights
        z = (scores - negatives.scores.mean()) / negatives.scores.std()
        line = scores[(weights[0] + weights[1] * z >= 0).argmax()]
        assert line == lines[group]


def test_groups_beat_one_line_on_labels_held_back():
    query, negatives, truth = judged()
    new, more, other = judged(seed=1)
    groups = np.arange(60) // 30
    plain, grouped = (Labelled(groups=g).fit(query, negatives, truth) for g in (None, groups))
    scores = [ns.detectors.evaluate(d, new, more, other) for d in (plain, grouped)]
    assert scores[0].recall < 0.8 < 0.88 < scores[1].recall
    assert scores[0].mtnr < 0.85 < 0.9 < scores[1].mtnr
    assert scores[1].reliability.error < 0.08


def test_a_feature_tells_what_the_score_does_not():
    rng = np.random.default_rng(3)
    kind, flip = rng.random(90), rng.random(60)
    query, negatives, _ = judged()
    truth = kind[negatives.ids] + flip[query.anchors, None] > 1

    def features(anchors, ids):
        assert (ids >= 0).all()
        return np.column_stack([kind[ids], flip[anchors]])

    found = Labelled(features=features, l2=0.1).fit(query, negatives, truth)
    alone = Labelled(features=lambda a, ids: kind[ids] + flip[a], scores=False, l2=0.1).fit(query, negatives, truth)
    for detector in (found, alone):
        assert ((detector.suspicion(query, negatives) >= 0.5) == truth).mean() > 0.95
    assert abs(found.weights[1]) < 0.5 < 3 < found.weights[2]
    assert alone.weights.shape == (2,)


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


def test_triples_are_grouped_by_relation_and_their_features_see_both():
    rng = np.random.default_rng(4)
    triples = np.column_stack([rng.integers(0, 20, 80), np.arange(80) % 2, rng.integers(0, 20, 80)])
    ids, side = rng.integers(0, 20, (80, 4)), rng.choice([0, 2], (80, 4))
    scores = rng.normal(size=(80, 4))
    negatives = ns.Negatives(ids, scores=scores, side=side)
    truth = scores > np.where(triples[:, 1:2] == 0, 0.7, -0.7)
    seen = []

    def features(given, corrupted):
        seen.append((given, corrupted))
        return (given != corrupted).sum(axis=1)

    found = Labelled(groups=np.arange(2), features=features).fit(ns.Query(triples), negatives, truth)
    given, corrupted = seen[0]
    assert given.shape == corrupted.shape == (320, 3)
    rows, slots = np.divmod(np.arange(320), 4)
    assert (given == triples[rows]).all()
    assert (corrupted[np.arange(320), side[rows, slots]] == ids[rows, slots]).all()
    assert ((found.suspicion(ns.Query(triples), negatives) >= 0.5) == truth).mean() > 0.95


def test_torch_in_torch_out_and_features_get_tensors_without_gradients():
    query, negatives, truth = judged()

    def features(anchors, ids):
        assert not torch.is_grad_enabled()
        return (anchors % 2) * (ids % 3)

    numpy = Labelled(features=lambda a, i: (a % 2) * (i % 3)).fit(query, negatives, truth)
    tensors = ns.Negatives(torch.from_numpy(negatives.ids), scores=torch.from_numpy(negatives.scores))
    inside = ns.Query(torch.arange(60))
    found = Labelled(features=features).fit(inside, tensors, torch.from_numpy(truth))
    answer = found.suspicion(inside, tensors)
    assert isinstance(answer, torch.Tensor)
    assert np.array_equal(answer.numpy(), numpy.suspicion(query, negatives))
    ns.check_detector(found, inside, tensors)
    ns.check_detector(numpy, query, negatives)


def test_the_repr_says_how_many_labels_it_has():
    found = Labelled(groups=np.arange(60) // 30, false_share=0.1).fit(*judged())
    assert "300 labels" in repr(found)
    found.restore({})
    assert (found.n, found.state()) == (0, {})
    assert "not fitted" in repr(found)


REFUSED = [
    ({"groups": [0.5]}, r"^Labelled: `groups` must be whole numbers"),
    ({"groups": [0, -2]}, r"^Labelled: `groups` must be whole numbers from 0, or -1, got -2 at row 1"),
    ({"features": 3}, r"^Labelled: `features` must be a function features\(anchors, ids\), got int"),
    ({"scores": False}, r"^Labelled: `features` must be given if `scores` is False, got None\. There is nothing"),
    ({"scores": 1}, r"^Labelled: `scores` must be True or False, got 1"),
    ({"l2": 0}, r"^Labelled: `l2` must be a finite number at least 1e-06, got 0"),
    ({"l2": np.inf}, r"^Labelled: `l2` must be a finite number at least 1e-06, got inf"),
    ({"cost": -1.0}, r"^Labelled: `cost` must be a finite number above 0, got -1"),
    ({"false_share": 1.0}, r"^Labelled: `false_share` must be a number above 0 and below 1, got 1"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_bad_settings_are_rejected(options, message):
    with pytest.raises(NaysayError, match=message):
        Labelled(**options)


def test_bad_labels_are_rejected_and_nothing_changes():
    query, negatives, truth = judged()
    found = Labelled().fit(query, negatives, truth)
    before = found.state()
    few = np.zeros(truth.shape, bool)
    few[0] = True
    nan = negatives.scores.copy()
    nan[3, 1] = np.nan
    cases = [
        ((query, negatives, few), r"of at least 10 slots of each kind, got 5 false negatives among 300 labelled slots"),
        ((query, negatives, ~few), r"got 5 true negatives among 300 labelled slots\. Label more\."),
        ((query, negatives, truth[:2]), r"`truth` must be True or False of shape \(60, 5\)"),
        ((query, negatives, truth.astype(int)), r"`truth` must be True or False of shape \(60, 5\), got int64"),
        ((query, ns.Negatives(negatives.ids), truth), r"`negatives\.scores` must be given"),
        ((query, ns.Negatives(negatives.ids, scores=nan), truth), r"must be finite, got .*nan.* at row 3"),
        ((ns.Query([0]), negatives, truth), r"`negatives` must be of 1 rows"),
        ((query, ns.Negatives(np.empty((60, 0), int)), np.empty((60, 0), bool)), r"got 0 false negatives among 0"),
    ]
    for arguments, message in cases:
        with pytest.raises(NaysayError, match=r"^Labelled\.fit: .*" + message):
            found.fit(*arguments)
        assert all(np.array_equal(found.state()[name], part) for name, part in before.items())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda n: np.zeros(n + 1),
            r"finite numbers of shape \(300,\) or \(300, f\) for 300 pairs, got shape \(301,\), from",
        ),
        (lambda n: np.zeros((n, 0)), r"got shape \(300, 0\)"),
        (lambda n: np.where(np.arange(n) == 7, np.nan, 1.0), r"got nan for anchor 1, id \d+ \(1 such\)"),
        (lambda n: ["much"] * n, r"got \['much'"),
        (lambda n: 1 / 0, r"got ZeroDivisionError: division by zero, from anchor 0, id \d+ to anchor 59"),
    ],
)
def test_features_that_are_none_are_rejected(answer, message):
    query, negatives, truth = judged()
    with pytest.raises(NaysayError, match=r"^Labelled\.fit: `features` must be .*" + message):
        Labelled(features=lambda anchors, ids: answer(len(ids))).fit(query, negatives, truth)


def test_what_cannot_be_asked_is_rejected():
    query, negatives, truth = judged()
    with pytest.raises(NaysayError, match=r"^Labelled\.suspicion: `truth` must be fitted before, got no labels\. Call"):
        Labelled().suspicion(query, negatives)
    grouped = Labelled(groups=np.zeros(59, int))
    with pytest.raises(
        NaysayError, match=r"`query\.anchors` must be between 0 and 58 \(59 anchors of `groups`\), got 59 at row 59"
    ):
        grouped.fit(query, negatives, truth)
    widths = iter([2, 3])
    growing = Labelled(features=lambda a, ids: np.ones((len(ids), next(widths)))).fit(query, negatives, truth)
    with pytest.raises(NaysayError, match=r"returns 2 numbers a pair, as in `fit`, got 3"):
        growing.suspicion(query, negatives)


def test_two_features_that_say_the_same_share_the_weight():
    query, negatives, truth = judged()
    twice = Labelled(features=lambda _, ids: np.column_stack([ids % 7, ids % 7]), l2=1e-6)
    weights = twice.fit(query, negatives, truth).weights
    assert weights[2] == pytest.approx(weights[3], rel=1e-3)


def test_states_of_something_else_are_rejected():
    query, negatives, truth = judged()
    found = Labelled(groups=np.arange(60) // 30).fit(query, negatives, truth)
    state = found.state()
    for change, message in [
        ({"pooled": np.zeros(3)}, r"`apart` must be numbers of shape \(2, 3\), got float64 of shape \(2, 2\)"),
        (
            {"apart": np.zeros((5, 2))},
            r"`apart` must be numbers of shape \(2, 2\), got float64 of shape \(5, 2\)",
        ),
        ({"spread": np.array([np.nan])}, r"`spread` must be finite"),
        ({"spread": np.zeros(1)}, r"`spread` must be above 0, got 0.0 at row 0"),
        ({"groups": np.array([1, 0])}, r"`groups` must be ascending, got \[1, 0\]"),
        ({"centre": np.zeros(2), "spread": np.ones(2)}, r"`pooled` must be of shape \(3,\), like centre"),
        ({"groups": np.array([0.5, 1.0])}, r"`groups` must be whole numbers of shape \(G,\), got float64"),
        ({"labels": np.array([3.5, 9.5])}, r"`labels` must be whole numbers of shape \(2,\), got float64"),
        ({"pooled": np.zeros(0)}, r"`apart` must be numbers of shape \(2, 0\), got float64 of shape \(2, 2\)"),
        ({"labels": np.array([3, 3])}, r"`labels` must be the number of false negatives and of all labels"),
    ]:
        with pytest.raises(NaysayError, match=r"^Labelled\.restore: .*" + message):
            found.restore({**state, **change})
        assert np.array_equal(found.state()["pooled"], state["pooled"])
    with pytest.raises(NaysayError, match=r"^Labelled\.restore: .* got no 'centre' in \['scores'\]"):
        found.restore({"scores": 1})
    with pytest.raises(NaysayError, match="got int"):
        found.restore(3)

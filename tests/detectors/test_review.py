"""The statistics of a review against plain loops, their laws, and worlds with a known truth."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from posterior_worlds import planted
from scipy.optimize import minimize
from scipy.stats import beta

import naysay as ns
from naysay.detectors import review as rv

K = 8


def small_lists(seed=0, anchors=40, depth=62, with_alike=True):
    scores, own, truth, alike = planted(seed, anchors=anchors, depth=depth)
    rng = np.random.default_rng(seed)
    scores[0, 50:] = np.nan  # a list that ends
    own[1] = np.nan  # an anchor without a positive
    free = ~np.isnan(scores) & (rng.random(scores.shape) < 0.95)
    probability = 1 / (1 + np.exp(4 - scores))
    lists = rv.ReviewLists(
        np.nan_to_num(probability), scores, own, free, np.full(anchors, K), alike if with_alike else None
    )
    return lists, truth


# ---- trust ----


@given(st.integers(0, 40), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_sensitivity_is_clopper_and_pearson(found, asked):
    found = min(found, asked)
    if (found + 0.5) / (asked + 1) < 0.3:
        with pytest.raises(ns.NaysayError) as caught:
            rv.sensitivity_of(found, asked)
        assert caught.value.parameter == "reviewer"
        return
    se = rv.sensitivity_of(found, asked)
    assert se.estimate == pytest.approx((found + 0.5) / (asked + 1))
    assert se.low == pytest.approx(beta.ppf(0.025, found, asked - found + 1) if found else 0.0)
    assert se.high == pytest.approx(beta.ppf(0.975, found + 1, asked - found) if found < asked else 1.0)


# ---- who is asked ----


def test_a_slot_of_a_region_is_drawn_uniformly_and_never_outside():
    mask = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]], bool)
    rows = np.repeat([0, 1, 2], 3000)
    slots = rv.Region(mask, 3).draw(rows, ns.rng_for(0))
    assert set(slots[rows == 1]) == {-1}
    assert set(slots[rows == 2]) == {1}
    counts = np.bincount(slots[rows == 0], minlength=4)
    assert counts[1] == 0
    assert abs(counts[[0, 2, 3]] - 1000).max() < 120


def test_inclusion_is_how_often_a_pair_is_asked():
    """Two rounds over disjoint random anchors, counted over many draws."""
    nearest = np.zeros((12, 4), bool)
    nearest[:, :3] = True
    returned = np.zeros((12, 4), bool)
    returned[:, 1:] = True
    returned[0, 1:3] = False
    regions = [rv.Region(nearest, 2), rv.Region(returned, 3)]
    rng, counts, draws = ns.rng_for(0), np.zeros((12, 4)), 6000
    for _ in range(draws):
        order = rng.permutation(12)
        for region, rows in zip(regions, (order[:2], order[2:5]), strict=True):
            counts[rows, region.draw(rows, rng)] += 1
    rows, slots = (part.ravel() for part in np.indices((12, 4)))
    expected = rv.inclusion(regions, 12, rows, slots).reshape(12, 4)
    np.testing.assert_allclose(counts / draws, expected, atol=0.03)
    by_hand = 1 - (1 - 2 / (12 * 3)) * (1 - 3 / (12 * 3))
    assert expected[5, 1] == pytest.approx(by_hand)


# ---- answers ----


def test_a_checked_yes_stands_for_those_that_were_not_checked():
    said_yes = np.array([True, True, False, True])
    checked = np.array([1.0, np.nan, np.nan, 0.2])
    answers = rv.Answers.of_round(np.arange(4), np.zeros(4, int), said_yes, checked)
    np.testing.assert_array_equal(answers.y, [1, np.nan, 0, 0])
    assert answers.weight.tolist() == [1.5, 1.5, 1.0, 1.5]
    assert answers.is_known.tolist() == [True, False, True, True]


# ---- recalibration ----


def features_in_loops(lists):
    """(A, M) lists of 7 features; None where unknown."""

    def mean(values):
        values = [value for value in values if not np.isnan(value)]
        return sum(values) / len(values) if values else np.nan

    n, width = lists.scores.shape
    found = np.full((n, width, 7), np.nan)
    for row in range(n):
        scores, own = lists.scores[row], lists.positive_scores[row]
        alike = np.full(width, np.nan) if lists.alike is None else lists.alike[row]
        close = alike - mean(alike[30:50])
        high = scores - mean(scores[48:60])
        near = [slot for slot in range(width) if not np.isnan(scores[slot])][: lists.counts[row]]
        above = sum(score > own for score in scores[:40])
        for slot in range(width):
            found[row, slot] = [
                scores[slot] - own,
                log(2 + slot),
                close[slot],
                np.nan if np.isnan(own) else log(1 + above),
                high[slot],
                mean(close[near]),
                mean(high[near]),
            ]
    return found


@pytest.mark.parametrize("with_alike", [True, False])
def test_features_are_those_of_the_loops(with_alike):
    lists, _ = small_lists(with_alike=with_alike)
    np.testing.assert_allclose(rv.features_of(lists), features_in_loops(lists), atol=1e-12)


@pytest.mark.parametrize("se", [1.0, 0.8])
def test_recalibration_is_the_maximum_of_the_penalised_likelihood(se):
    lists, truth = small_lists()
    rng = np.random.default_rng(0)
    rows, slots = np.arange(2, 40), rng.integers(0, K, 38)
    y = (truth[rows, slots] & (rng.random(38) < se)).astype(float)
    answers = rv.Answers(rows, slots, y == 1, y, rng.uniform(1, 30, 38))
    before = rv.uncalibrated(lists)
    found = rv.recalibrate(before, lists, answers, se)
    x = [found.design(lists)[row, slot] for row, slot in zip(rows, slots, strict=True)]
    weights = [min(one, 6) for one in answers.weight / answers.weight.mean()]
    centre, deviation = [found.base, 1, *[0] * 7], [3, *[0.5] * 8]

    def loss(b):
        total = sum(((one - mean) / sd) ** 2 / 2 for one, mean, sd in zip(b, centre, deviation, strict=True))
        for inputs, answer, weight in zip(x, y, weights, strict=True):
            yes = se / (1 + exp(-float(inputs @ b)))
            total -= weight * log(yes if answer else 1 - yes)
        return total

    best = minimize(loss, centre, tol=1e-12)
    np.testing.assert_allclose(found.weights, best.x, atol=1e-3)
    assert loss(found.weights) <= best.fun + 1e-9


def test_without_answers_the_probability_is_that_of_the_labels():
    lists, _ = small_lists()
    found = rv.uncalibrated(lists).of(lists)
    np.testing.assert_allclose(found[lists.free], np.clip(lists.probability, 3.4e-4, 1)[lists.free], rtol=2e-3)
    assert (found[~lists.free] > 1).all()


# ---- the interval ----


def interval_in_loops(y, weights, expected, said_yes, unreviewed_mean, unreviewed_share, sensitivity):
    se, se_low, se_high = sensitivity
    w = [weight - 1 for weight in weights]
    w = [one / sum(w) for one in w]
    size = 1 / sum(one**2 for one in w)
    if size < 3:
        return None
    r = [one - se * p for one, p in zip(y, expected, strict=True)]
    mean = sum(a * b for a, b in zip(w, r, strict=True))
    z = se * unreviewed_mean + mean
    variance = sum(a**2 * (b - mean) ** 2 for a, b in zip(w, r, strict=True)) * size / (size - 1)
    effective = size
    if z > 0:
        z = min(z, 1)
        effective = min(max(z * (1 - z) / variance, 0.25 * size), 1.5 * size)
    z = max(z, 0)
    hits = z * effective
    low = beta.ppf(0.025, hits, effective - hits + 1) if hits > 0 else 0
    high = beta.ppf(0.975, hits + 1, effective - hits) if hits < effective else 1
    theta = min(z / se, 1)
    below = sqrt((theta - low / se) ** 2 + (theta * (se_high - se) / se) ** 2)
    above = sqrt((high / se - theta) ** 2 + (theta * (se - se_low) / se) ** 2)
    missed = theta * (1 - se) / (theta * (1 - se) + 1 - theta) if theta < 1 else 1
    u = unreviewed_share
    estimate = u * theta + (1 - u) * missed
    low = u * (theta - below) + (1 - u) * missed - 0.05 * sum(said_yes) / len(said_yes)
    low = low if hits >= 1 else 0
    high = u * (theta + above) + (1 - u) * missed
    return estimate, min(max(low, 0), estimate), min(max(high, estimate), 1)


@given(st.integers(0, 10_000), st.integers(1, 80), st.sampled_from([(1.0, 1.0, 1.0), (0.8, 0.6, 0.95)]))
@settings(max_examples=80, deadline=None)
def test_the_interval_is_that_of_the_loops(seed, n, sensitivity):
    rng = np.random.default_rng(seed)
    expected = rng.uniform(0, rng.uniform(0.01, 0.6), n)
    y = (rng.random(n) < expected).astype(float)
    said_yes = (y == 1) | (rng.random(n) < 0.1)
    weights = rng.uniform(2, 200, n)
    mean, share = float(rng.uniform(0, 0.4)), float(rng.uniform(0.5, 1))
    found = rv.interval_of(
        y,
        weights,
        expected,
        said_yes,
        unreviewed_mean=mean,
        unreviewed_share=share,
        sensitivity=rv.Sensitivity(*sensitivity),
    )
    wanted = interval_in_loops(y, weights, expected, said_yes, mean, share, sensitivity)
    if wanted is None:
        assert found is None
        return
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    assert 0 <= found.low <= found.estimate <= found.high <= 1


# ---- all steps ----


def reviewed(seed, budget, hidden=2, error=0.0, check=False, **options):
    """A review of a planted world: (review, share of false negatives in what it keeps, lists, truth)."""
    anchors = 400
    scores, own, truth, alike = planted(seed, anchors=anchors, hidden=hidden, shift=2.5, depth=62)
    probability = np.full(scores.shape, 0.3)  # labels say nothing
    lists = rv.ReviewLists(probability, scores, own, np.ones(scores.shape, bool), np.full(anchors, K), alike)
    rng = np.random.default_rng(seed)

    def ask(rows, slots):
        return np.where(rng.random(len(rows)) < error, ~truth[rows, slots], truth[rows, slots]).astype(float)

    se = rv.CERTAIN if not error else rv.sensitivity_of(round(40 * (1 - error)), 40)
    trusted = (lambda rows, slots: truth[rows, slots].astype(float)) if check else None
    review = rv.conduct(
        lists,
        ask,
        budget=budget,
        false_share=0.05,
        rng=ns.rng_for(seed),
        sensitivity=se,
        check=trusted,
        **options,
    )
    return review, float(truth[review.kept].mean()), lists, truth


@pytest.mark.parametrize(("error", "check"), [(0.0, False), (0.1, True)])
def test_the_interval_holds_the_truth_and_the_target_is_reached(error, check):
    runs = [reviewed(seed, 100, error=error, check=check) for seed in range(12)]
    covered = [review.share.low <= true <= review.share.high for review, true, _, _ in runs]
    assert sum(covered) >= 11
    assert np.mean([true for _, true, _, _ in runs]) < 0.07
    before = np.mean([truth[:, :K].mean() for *_, truth in runs])
    assert before > 0.15


def test_complete_labels_and_a_weak_encoder_drop_nothing():
    review, _, lists, _ = reviewed(0, 100, hidden=0)
    assert review.tau == 1
    assert review.kept[:, :K].all()
    assert review.share.high < 0.06
    assert review.before < 0.05 < lists.probability.mean()


def test_what_was_found_is_not_returned_and_each_anchor_is_asked_about_once():
    review, _, _, truth = reviewed(1, 150)
    rows, slots = review.answers.rows, review.answers.slots
    assert len(set(rows.tolist())) == len(rows) <= 150
    found = review.answers.y == 1
    assert found.any()
    assert truth[rows[found], slots[found]].all()
    assert not review.kept[rows[found], slots[found]].any()


def test_the_budget_is_kept_and_a_short_interval_stops_early():
    for budget in (1, 30, 100, 1000):
        review, *_ = reviewed(0, budget, hidden=0)
        assert len(review.answers.y) <= budget
    assert len(review.answers.y) == 100  # the interval was short enough


def test_unanswered_pairs_and_unchecked_answers_leave_the_sample():
    scores, own, truth, alike = planted(0, anchors=200, depth=62)
    lists = rv.ReviewLists(np.full(scores.shape, 0.1), scores, own, ~np.isnan(scores), np.full(200, K), alike)
    options = {"budget": 100, "false_share": 0.05}

    def sometimes(rows, slots):
        return np.where(rows % 2 == 0, np.nan, truth[rows, slots])

    half = rv.conduct(lists, sometimes, rng=ns.rng_for(0), **options)
    assert (half.answers.rows % 2 == 1).all()
    never = rv.conduct(
        lists,
        lambda rows, slots: truth[rows, slots].astype(float),
        rng=ns.rng_for(0),
        check=lambda rows, slots: np.full(len(rows), np.nan),
        **options,
    )
    unchecked = np.isnan(never.answers.y)
    assert (unchecked == never.answers.said_yes).all()
    assert unchecked.any()
    assert not never.kept[never.answers.rows[unchecked], never.answers.slots[unchecked]].any()


def test_lists_without_candidates_do_not_change_the_weights_of_the_others():
    scores, own, truth, _ = planted(0, anchors=200, depth=62)

    def ask(rows, slots):
        return truth[rows, slots].astype(float)

    found = []
    for empty in (0, 300):
        more = ((0, empty), (0, 0))
        lists = rv.ReviewLists(
            np.pad(np.full(scores.shape, 0.1), more),
            np.pad(scores, more, constant_values=np.nan),
            np.pad(own, more[:1]),
            np.pad(np.ones(scores.shape, bool), more),
            np.full(200 + empty, K),
        )
        found.append(rv.conduct(lists, ask, budget=100, false_share=0.05, rng=ns.rng_for(0), at_once=True))
    one, other = found
    np.testing.assert_array_equal(one.answers.rows, other.answers.rows)
    np.testing.assert_allclose(one.answers.weight, other.answers.weight)


def test_all_pairs_at_once_are_one_round_among_the_nearest():
    review, *_ = reviewed(0, 120, at_once=True)
    assert len(review.answers.y) == 120
    assert (review.answers.slots < K).all()


def test_an_empty_set_of_lists_is_reviewed_without_a_question():
    lists, _ = small_lists(anchors=2)
    empty = rv.ReviewLists(
        lists.probability, lists.scores, lists.positive_scores, np.zeros_like(lists.free), lists.counts
    )
    review = rv.conduct(empty, lambda rows, slots: 1 / 0, budget=10, false_share=0.05, rng=ns.rng_for(0))
    assert not review.kept.any()
    assert review.share is None

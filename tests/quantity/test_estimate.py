"""The best number of negatives: golden numbers, brute force, what is flat, and every edge."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_model import mean_effective

from naysay.quantity import auc, estimate, mean_effectiveness, separation, simulated

SCORES = st.floats(0.3, 0.99)


def of_simulated(mu, points=60, **options):
    return estimate(auc(mu), auc(simulated(mu, points)), **options)


def mentions(found, *words):
    """Whether each note has its word, in order, and there are no others."""
    return len(found.notes) == len(words) and all(word in note for word, note in zip(words, found.notes, strict=True))


# ---- numbers that prove it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mu", "k"),
    [
        *[(0.5, 26), (0.75, 6), (0.3, 455), (0.25, 2208), (4.07, 902), (4.5, 3576)],
    ],
)
def test_golden_k_of_simulated_runs(mu, k):
    found = of_simulated(mu, k_max=5000)
    assert found.k == k
    assert not found.at_edge
    assert found.carried_by_easy == (mu <= 0.5)


@pytest.mark.parametrize(("mu", "k"), [(2.4, 21), (3.5, 194)])
def test_how_the_curve_is_sampled_is_part_of_the_question(mu, k):
    assert of_simulated(mu, points=301).k == k


def test_labels_that_are_almost_noise_run_away():
    found = of_simulated(0.2, k_max=50_000)
    assert 34_000 < found.k < 36_000
    assert found.carried_by_easy
    assert of_simulated(1, weight=0.7).at_edge


@given(st.floats(0.51, 0.99), st.lists(SCORES, min_size=1, max_size=3), st.integers(1, 15))
def test_it_is_the_best_of_all_by_brute_force(trained, scores, k_max):
    found = estimate(trained, scores, k_max=k_max)
    mu, reached = separation(trained), [separation(score) for score in scores]
    curve = [mean_effective(k, mu, reached, 0.9) for k in range(1, k_max + 1)]
    assert found.curve == pytest.approx(curve, abs=1e-8)
    assert curve[found.k - 1] == pytest.approx(max(curve), abs=1e-8)
    assert found.curve[found.k - 1] == found.curve.max()
    assert found.at_edge == (found.k == k_max)


@given(st.floats(0.51, 1), st.lists(st.floats(0, 1), min_size=1, max_size=5), st.integers(1, 3000))
def test_flat_is_the_range_around_k_within_one_per_cent(trained, scores, k_max):
    found = estimate(trained, scores, k_max=k_max)
    best = found.curve[found.k - 1]
    near = [v >= best - 0.01 * abs(best) for v in found.curve.tolist()]
    low = high = found.k
    while low > 1 and near[low - 2]:
        low -= 1
    while high < k_max and near[high]:
        high += 1
    assert found.flat == (low, high)


def test_what_the_answer_holds():
    scores = [0.52, 0.61, 0.66]
    found = estimate(0.75, scores, weight=0.85, k_max=50)
    assert type(found.k) is int
    assert found.separation == separation(0.75)
    assert found.reached.tolist() == separation(scores).tolist()
    assert found.curve.tolist() == mean_effectiveness(found.separation, found.reached, weight=0.85, k_max=50).tolist()
    assert found.notes == ()
    with pytest.raises(FrozenInstanceError):
        found.k = 3
    for array in (found.curve, found.reached):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# ---- edges ----------------------------------------------------------------------------------------------------------


def test_the_edge_is_said():
    found = of_simulated(4.5)
    assert (found.k, found.at_edge, found.flat[1]) == (1000, True, 1000)
    assert mentions(found, "The best k equals k_max (1000)")
    assert of_simulated(1, k_max=4).at_edge
    assert not of_simulated(1, k_max=5).at_edge


def test_labels_without_noise_have_no_best_k():
    found = estimate(1.0, [0.6, 0.8, 0.95])
    assert (found.k, found.at_edge, found.separation) == (1000, True, math.inf)
    assert (np.diff(found.curve) > 0).all()
    assert mentions(found, "labels without noise")
    few = estimate(1.0, [0.6, 0.8], weight=0.4, k_max=9)  # where easy samples are wanted, the fewest are best
    assert (few.k, few.carried_by_easy) == (1, True)


def test_validation_above_training_is_answered_and_said():
    found = estimate(0.75, [0.6, 0.8, 1.0])
    assert found.reached[-1] == math.inf
    never_wrong = 0.9 * -0.25 + 0.1 * 0.75  # one label in four is bad, the others easy
    others = mean_effective(1, found.separation, found.reached[:2], 0.9)
    assert found.curve[0] == pytest.approx((2 * others + never_wrong) / 3)
    assert mentions(found, "hardly above", "2 of 3 validation points are above the training AUC")
    assert mentions(estimate(0.75, [0.5, 0.5, 0.76]), "1 of 3 validation points is above the training AUC")


def test_validation_below_chance_is_answered_and_said():
    found = estimate(0.75, [0.0, 0.4, 0.6])
    assert found.reached[0] == -math.inf
    assert mentions(found, "2 of 3 validation points are below 0.5")

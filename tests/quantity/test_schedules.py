"""The adaptive schedule and the sweep of its turning point."""

import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import NaysayError
from naysay.quantity import adaptive, auc, effectiveness, estimate, simulated, turning_sweep


def plain(step, peak, steps, turning):
    """Two straight lines, in words: up until the turn, down until the last step, 1 after it."""
    last = steps - 1
    turn = min(turning * steps, last)
    if step > last:
        return 1.0
    if step < turn:
        return 1 + (peak - 1) * step / turn
    if last == turn:
        return peak
    return 1 + (peak - 1) * (last - step) / (last - turn)


# ---- adaptive -------------------------------------------------------------------------------------------------------


@given(st.floats(1, 1000), st.integers(1, 500), st.floats(0, 1), st.integers(0, 600))
def test_it_is_two_straight_lines(peak, steps, turning, step):
    k = adaptive(peak, steps, turning)(step)
    assert type(k) is float
    assert k == pytest.approx(plain(step, peak, steps, turning), rel=1e-12)
    assert 1 <= k <= peak * (1 + 1e-15)


def test_the_corners():
    k_at = adaptive(peak=12, steps=20_000)
    assert [k_at(step) for step in (0, 1000, 2000, 19_999, 20_000, 10**9)] == [1, 6.5, 12, 1, 1, 1]


@pytest.mark.parametrize(
    ("steps", "turning", "ks"),
    [
        (5, 0, [9, 7, 5, 3, 1]),
        (5, 0.0, [9, 7, 5, 3, 1]),
        (5, 1, [1, 3, 5, 7, 9]),
        (5, 0.4, [1, 5, 9, 5, 1]),
        (5, 0.9, [1, 3, 5, 7, 9]),
        (2, 0.1, [1, 1]),  # the turn lies between the two steps
        (2, 0, [9, 1]),
        (1, 0.1, [9]),
        (1, 1, [9]),
    ],
)
def test_short_runs_and_turnings_at_the_ends(steps, turning, ks):
    k_at = adaptive(9, steps, turning)
    assert [k_at(step) for step in range(steps)] == pytest.approx(ks)
    assert k_at(steps) == 1


def test_arrays_of_steps():
    k_at = adaptive(12.5, 100)
    steps = np.arange(120)
    found = k_at(steps)
    assert found.dtype == np.float64
    assert found.tolist() == [k_at(step) for step in range(120)]
    assert k_at(torch.tensor([0, 5])).tolist() == k_at([0, 5]).tolist()
    assert k_at(steps.reshape(4, 30)).shape == (4, 30)


def test_it_prints_compares_and_pickles():
    k_at = adaptive(np.int64(12), np.int32(100), np.float32(0.25))
    assert repr(k_at) == "adaptive(peak=12.0, steps=100, turning=0.25)"
    again = pickle.loads(pickle.dumps(k_at))
    assert again == k_at
    assert hash(again) == hash(k_at)
    assert again(7) == k_at(7)
    assert k_at != adaptive(13, 100, 0.25)
    with pytest.raises(FrozenInstanceError):
        k_at.peak = 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adaptive(0.5, 10), "`peak` must be finite and at least 1, got 0.5. Take the k of an estimate."),
        (lambda: adaptive(math.inf, 10), "`peak` must be finite and at least 1, got inf. Take the k of an estimate."),
        (lambda: adaptive(math.nan, 10), "`peak` must be one number, got nan."),
        (lambda: adaptive("4", 10), "`peak` must be one number, got '4'."),
        (lambda: adaptive(4, 0), "`steps` must be at least 1, got 0."),
        (lambda: adaptive(4, 10.0), "`steps` must be a whole number, got 10.0."),
        (
            lambda: adaptive(4, 10, 10),
            "`turning` must be between 0 and 1, got 10.0. It is the share of steps in which k rises.",
        ),
        (lambda: adaptive(4, 10, math.nan), "`turning` must be one number, got nan."),
        (lambda: adaptive(4, 10)(-1), "`step` must be at least 0, got -1.0."),
        (lambda: adaptive(4, 10)([0, -1, -2]), "`step` must be at least 0, got -1.0 at row 1 (2 such rows)."),
        (lambda: adaptive(4, 10)("0"), "`step` must be a number, or an array of numbers, got '0'."),
    ],
)
def test_adaptive_refuses(call, message):
    with pytest.raises(NaysayError) as caught:
        call()
    assert str(caught.value) == f"adaptive: {message}"


# ---- turning_sweep --------------------------------------------------------------------------------------------------


def swept(peak, mu, turning, points, weight):
    """The mean v of a run, step by step, with floor and ceiling of k in their chances."""
    reached = simulated(mu, points)
    total = 0.0
    for step in range(points):
        k = plain(step, peak, points, turning)
        low, high = math.floor(k), math.ceil(k)
        share = k - low
        total += (1 - share) * effectiveness(low, mu, reached[step], weight=weight)
        total += share * effectiveness(high, mu, reached[step], weight=weight)
    return total / points


@pytest.mark.parametrize(("peak", "mu", "weight"), [(4, 1.0, 0.9), (20.5, 2.4, 0.85), (1, 1.0, 0.9)])
def test_the_sweep_is_the_mean_over_steps(peak, mu, weight):
    found = turning_sweep(peak, mu, turnings=[0, 0.1, 0.5, 1], weight=weight, points=40)
    expected = [swept(peak, mu, turning, 40, weight) for turning in (0, 0.1, 0.5, 1)]
    assert found.values.tolist() == pytest.approx(expected, rel=1e-11)
    assert found.turnings.tolist() == [0, 0.1, 0.5, 1]
    assert found.turning == found.turnings[np.argmax(expected)]
    share = peak - math.floor(peak)
    reached = simulated(mu, 40)
    constant = (1 - share) * effectiveness(math.floor(peak), mu, reached, weight=weight).mean()
    constant += share * effectiveness(math.ceil(peak), mu, reached, weight=weight).mean()
    assert found.constant == pytest.approx(constant, rel=1e-11)


@pytest.mark.parametrize(
    ("mu", "turning", "beats_constant"), [(1, 0.0, False), (2.4, 0.15, False), (3, 0.25, False), (4, 0.5, True)]
)
def test_what_the_model_supports_depends_on_the_labels(mu, turning, beats_constant):
    """10 % is best for none of these, and near the best for 2.4; docs/quantity.md says so."""
    peak = estimate(auc(mu), auc(simulated(mu))).k
    found = turning_sweep(peak, mu)
    assert found.turning == turning
    assert (found.values.max() > found.constant) == beats_constant


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: turning_sweep(0, 1.0), "`peak` must be finite and at least 1, got 0.0. Take the k of an estimate."),
        (lambda: turning_sweep(4, math.inf), "`separation` must be finite, got inf."),
        (lambda: turning_sweep(4, 1.0, turnings=[0.1, 2]), "`turnings` must be between 0 and 1, got 2.0 at row 1 (1 "),
        (lambda: turning_sweep(4, 1.0, turnings=[]), "`turnings` must be a curve of at least one point, got none."),
        (lambda: turning_sweep(4, 1.0, turnings=0.1), "`turnings` must be of shape (T,), got shape ()."),
        (lambda: turning_sweep(4, 1.0, weight=0), "`weight` must be above 0 and below 1, got 0.0."),
        (lambda: turning_sweep(4, 1.0, points=1), "`points` must be at least 2, got 1."),
        (lambda: turning_sweep(4, 1.0, end=-1), "`end` must be above 0 and finite, got -1.0."),
    ],
)
def test_turning_sweep_refuses(call, message):
    with pytest.raises(NaysayError) as caught:
        call()
    assert str(caught.value).startswith(f"turning_sweep: {message}")

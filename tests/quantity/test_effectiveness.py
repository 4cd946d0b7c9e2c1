"""Reliability, shares and effectiveness: against mpmath, plain loops and draws, with their laws and refusals."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_model import effective, mean_effective, reliable

from naysay.quantity import effectiveness, mean_effectiveness, reliability, shares, simulated

MUS, KS = st.floats(-4, 6), st.floats(1, 5000)
WEIGHTS = st.floats(0.05, 0.95)


def exact(k, mu):
    """The integral in 25 digits. Its scale is taken out first: quadrature stops at an absolute error."""
    with mpmath.workdps(25):
        k, mu, root = mpmath.mpf(k), mpmath.mpf(mu), mpmath.sqrt(2)

        def log(x):
            log_phi = mpmath.log1p(-mpmath.erfc(x / root) / 2) if x > -1 else mpmath.log(mpmath.erfc(-x / root) / 2)
            return k * log_phi - (x - mu) ** 2 / 2

        left, right = min(mu, mu / 2) - 10, max(mu, mpmath.sqrt(2 * mpmath.log(k))) + 10
        nodes = mpmath.linspace(left, right, int(4 * (right - left)))
        logs = [log(x) for x in nodes]
        top = max(logs)
        kept = [x for x, value in zip(nodes, logs, strict=True) if value > top - 60]
        pieces = mpmath.linspace(kept[0] - 0.3, kept[-1] + 0.3, int(kept[-1] - kept[0]) + 3)
        found = mpmath.quad(lambda x: mpmath.exp(log(x) - top), pieces, method="gauss-legendre")
        return found * mpmath.exp(top) / mpmath.sqrt(2 * mpmath.pi)


# ---- reliability ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "mu"),
    [
        *[(2, 0), (7.5, 2.4), (1000, 0.5), (10**6, 8), (1000, -8), (10**12, 2), (10, 20), (10**12, -20)],
    ],
)
def test_it_agrees_with_mpmath(k, mu):
    """1e-10 is what is asked for; 1e-12 is what the docstring says."""
    assert float(reliability(k, mu) / exact(k, mu) - 1) == pytest.approx(0, abs=1e-12)


@given(st.floats(1, 1e9))
def test_without_separation_it_is_one_over_k_plus_one(k):
    assert reliability(k, 0.0) == pytest.approx(1 / (k + 1), rel=1e-12)


@given(st.floats(-12, 12))
def test_one_negative_gives_the_auc(mu):
    assert reliability(1, mu) == pytest.approx(0.5 * math.erfc(-mu / 2), rel=1e-12)


@given(KS, MUS, st.floats(0.01, 3), st.floats(1.01, 10))
def test_more_negatives_lower_it_and_more_separation_raises_it(k, mu, more_mu, times):
    p = reliability(k, mu)
    assert 0 < p < 1
    assert reliability(k * times, mu) < p < reliability(k, mu + more_mu)


def test_the_ends():
    assert reliability([1, 10**6], math.inf).tolist() == [1, 1]
    assert reliability([1, 10**6], -math.inf).tolist() == [0, 0]
    assert reliability(1e300, 60.0) == 1
    assert reliability(10**6, np.array([12.0, 30.0, 1e300])).max() <= 1
    assert 0 < reliability(1e15, 1.0) < 1e-9


def test_arguments_are_broadcast_in_any_form():
    ks, mus, points = np.array([1, 5]), np.array([[1.0], [2.0], [3.0]]), np.zeros((4, 1, 1))
    found = effectiveness(ks, mus, points)
    assert found.shape == shares(ks, mus, points).easy.shape == (4, 3, 2)
    assert found[2, 1, 1] == pytest.approx(effectiveness(5, 2.0, 0.0), rel=1e-13)
    assert type(reliability(np.int8(4), np.float32(1))) is type(effectiveness(5, 2.0, 0.0)) is float
    assert reliability(torch.tensor([1, 4]), torch.tensor(1.0)).tolist() == reliability([1, 4], 1.0).tolist()
    assert reliability(np.ones((0, 3)), [1.0, 2.0, 3.0]).shape == (0, 3)


# ---- shares and effectiveness ---------------------------------------------------------------------------------------


@given(KS, MUS, MUS, WEIGHTS)
def test_shares_and_effectiveness_follow_the_paper(k, mu, reached, weight):
    a, b = reliable(k, mu), reliable(k, reached)
    found = shares(k, mu, reached)
    assert found.good == pytest.approx(a * (1 - b), abs=1e-8)
    assert found.bad == pytest.approx(b * (1 - a), abs=1e-8)
    assert found.good + found.bad + found.easy == pytest.approx(1, abs=1e-15)
    assert min(found.good, found.bad, found.easy) >= 0
    assert effectiveness(k, mu, reached, weight=weight) == pytest.approx(effective(a, b, weight), abs=1e-8)


@given(MUS, MUS, WEIGHTS)
def test_v_tends_to_one_minus_weight(mu, reached, weight):
    assert effectiveness(1e40, mu, reached, weight=weight) == pytest.approx(1 - weight, abs=1e-6)


def test_at_the_end_of_training_good_and_bad_are_even():
    now = shares([1, 4, 100], 1.0, 1.0)
    assert now.good.tolist() == pytest.approx(now.bad.tolist(), rel=1e-13)
    at = effectiveness(np.arange(1, 30), 1.0, 1.0)
    assert at[:10].argmax() == 0  # the paper: the best is 1
    assert (at > at[0]).argmax() + 1 == 18  # but v passes v(1) again there


# ---- every k at once ------------------------------------------------------------------------------------------------


@given(st.floats(0, 5), st.lists(MUS, min_size=1, max_size=3), WEIGHTS, st.integers(1, 12))
def test_the_mean_is_that_of_plain_loops(mu, reached, weight, k_max):
    found = mean_effectiveness(mu, reached, weight=weight, k_max=k_max)
    assert found.dtype == np.float64
    expected = [mean_effective(k, mu, reached, weight) for k in range(1, k_max + 1)]
    assert found == pytest.approx(expected, abs=1e-8)


ANY = st.floats(-40, 25) | st.sampled_from([math.inf, -math.inf, 19.999, 20.0])


@given(ANY, st.lists(ANY, min_size=1, max_size=6), st.integers(1, 400))
def test_it_is_the_mean_of_effectiveness_also_for_separations_without_end(mu, reached, k_max):
    ks = np.arange(1, k_max + 1)
    expected = effectiveness(ks[:, None], mu, reached).mean(axis=1)
    np.testing.assert_allclose(mean_effectiveness(mu, reached, k_max=k_max), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("k_max", [129, 100_000])
def test_blocks_of_k_are_invisible(k_max):
    reached = [0.0, 2.0, 4.5]
    found = mean_effectiveness(4.5, reached, k_max=k_max)
    assert found.shape == (k_max,)
    ks = np.unique(np.clip([1, 2, 127, 128, 129, 256, 257, 2999, 70_000, k_max - 1, k_max], 1, k_max))
    expected = effectiveness(ks[:, None], 4.5, reached).mean(axis=1)
    np.testing.assert_allclose(found[ks - 1], expected, rtol=0, atol=1e-13)


# ---- simulated runs -------------------------------------------------------------------------------------------------


@given(st.floats(-8, 8), st.integers(2, 80), st.floats(0.1, 20))
def test_a_simulated_run_is_the_formula_with_both_ends(mu, points, end):
    expected = [mu * (1 - math.exp(-end * place / (points - 1))) for place in range(points)]
    assert simulated(mu, points, end) == pytest.approx(expected, abs=1e-12)
    assert len(simulated(2.0)) == 60

"""Exact intervals of shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, ndtri

from naysay._intervals import CONFIDENCE, Z, exact_interval, least_shares


@given(
    st.lists(st.tuples(st.integers(10, 3000), st.integers(0, 300_000)), min_size=1, max_size=20),
    st.sampled_from([0.01, 0.025, 0.05, 0.5]),
)
def test_at_the_lower_bound_so_many_hits_or_more_have_the_probability(groups, error):
    hits, missed = np.array(groups, np.float64).T
    found = least_shares(hits, missed, error)
    np.testing.assert_allclose(betainc(hits, missed + 1, found), error, rtol=1e-5)


def test_no_hits_and_no_misses():
    assert least_shares(np.zeros(0), np.zeros(0), 0.05).shape == (0,)
    assert exact_interval(0, 20, 0.95) == (0.0, pytest.approx(1 - 0.025 ** (1 / 20)))
    assert exact_interval(20, 20, 0.95) == (pytest.approx(0.025 ** (1 / 20)), 1.0)


def test_the_deviations_that_hold_the_confidence():
    assert np.isclose(Z, ndtri((1 + CONFIDENCE) / 2), rtol=1e-14)

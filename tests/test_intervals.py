"""Exact intervals of shares, by SciPy and without it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, ndtri

from naysay._intervals import CONFIDENCE, Z, least_share, least_shares


@given(
    st.lists(st.tuples(st.integers(10, 3000), st.integers(0, 300_000)), min_size=1, max_size=20),
    st.sampled_from([0.01, 0.025, 0.05, 0.5]),
)
def test_lower_bounds_of_several_groups_are_those_of_each(groups, error):
    hits, missed = np.array(groups, np.float64).T
    found = least_shares(hits, missed, error)
    expected = [least_share(one, one + other, error) for one, other in zip(hits, missed, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # At the lower bound, so many hits or more have the probability `error`.
    np.testing.assert_allclose(betainc(hits, missed + 1, found), error, rtol=1e-5)


def test_no_groups_have_no_bounds():
    assert least_shares(np.zeros(0), np.zeros(0), 0.05).shape == (0,)


def test_the_deviations_that_hold_the_confidence():
    assert np.isclose(Z, ndtri((1 + CONFIDENCE) / 2), rtol=1e-14)

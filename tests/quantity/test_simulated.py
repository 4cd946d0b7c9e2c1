"""Simulated runs: mu'(t) = mu (1 - e^-t) with both ends included."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import NaysayError
from naysay.quantity import simulated


@given(st.floats(-8, 8), st.integers(2, 80), st.floats(0.1, 20))
def test_it_is_the_formula(mu, points, end):
    found = simulated(mu, points, end)
    assert found.dtype == np.float64
    expected = [mu * (1 - math.exp(-end * place / (points - 1))) for place in range(points)]
    assert found == pytest.approx(expected, abs=1e-12)


def test_the_papers_run():
    found = simulated(2.0)
    assert len(found) == 60
    assert found[0] == 0
    assert found[-1] == pytest.approx(2 * (1 - math.exp(-3)), rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((math.inf,), "`separation` must be a finite number, got inf."),
        ((math.nan,), "`separation` must be a finite number, got nan."),
        (([1.0],), "`separation` must be a finite number, got [1.0]."),
        ((1.0, 1), "`points` must be at least 2, got 1."),
        ((1.0, 60.0), "`points` must be a whole number, got 60.0."),
        ((1.0, 60, 0), "`end` must be a finite number above 0, got 0."),
        ((1.0, 60, math.inf), "`end` must be a finite number above 0, got inf."),
    ],
)
def test_simulated_rejects(arguments, message):
    with pytest.raises(NaysayError) as caught:
        simulated(*arguments)
    assert str(caught.value) == f"simulated: {message}"

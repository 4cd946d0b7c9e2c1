"""The quick table of v against the exact mean."""

import numpy as np
import pytest

from naysay.quantity import mean_effectiveness, simulated
from naysay.quantity.forecast import effectiveness_table


@pytest.mark.parametrize("k_max", [1, 7, 40, 41, 1000, 5000])
def test_the_k_looked_at(k_max):
    ks, values = effectiveness_table(np.array([1.0]), np.array([[0.5]]), 0.9, k_max)
    assert values.shape == (1, len(ks))
    assert ks[0] == 1
    assert ks[-1] == k_max
    assert ks[: min(k_max, 40)].tolist() == list(range(1, min(k_max, 40) + 1))
    assert (np.diff(ks) >= 1).all()
    assert (ks[1:] / ks[:-1])[40:].max(initial=1) < 1.1


@pytest.mark.parametrize("weight", [0.8, 0.9, 0.95])
def test_values_are_those_of_the_exact_mean(weight):
    labels = np.array([0.3, 1.0, 2.4, 3.0, 4.0, 7.99])
    runs = np.array([simulated(mu, 60, end) for mu, end in zip(labels, (1, 2, 3, 4, 5, 3), strict=True)])
    ks, values = effectiveness_table(labels, runs, weight, 1000)
    for mu, run, row in zip(labels, runs, values, strict=True):
        exact = mean_effectiveness(mu, run, weight=weight)[ks - 1]
        assert row == pytest.approx(exact, rel=2e-4, abs=1e-5)


def test_beyond_the_table_is_its_edge():
    inside, outside = (
        effectiveness_table(np.array([mu]), np.array([[low, 1.0]]), 0.9, 50)[1] for mu, low in ((8, 0), (20, -3))
    )
    assert inside.tolist() == outside.tolist()

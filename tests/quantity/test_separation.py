"""AUC and separation: the closed form, its inverse, and the paper's figures."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_model import reliable

from naysay.quantity import auc, separation


@pytest.mark.parametrize("score", [0.51, 0.6, 0.75, 0.9, 0.99])
def test_it_solves_the_papers_equation_7(score):
    """The AUC is the reliability of one negative, which the paper integrates and bisects."""
    assert reliable(1, separation(score)) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("score", [1e-12, 0.001, 0.3, 0.7, 0.999, 1 - 1e-9])
def test_it_agrees_with_mpmath(score):
    with mpmath.workdps(40):
        exact = 2 * mpmath.erfinv(2 * mpmath.mpf(score) - 1)
    assert separation(score) == pytest.approx(float(exact), rel=1e-13)


@given(st.floats(-5, 5))
def test_auc_is_the_inverse(mu):
    assert separation(auc(mu)) == pytest.approx(mu, abs=1e-10)
    assert auc(mu) + auc(-mu) == pytest.approx(1, abs=1e-15)


def test_the_ends():
    assert separation(1) == math.inf
    assert separation(0.0) == -math.inf
    assert separation(0.5) == 0
    assert (auc(math.inf), auc(-math.inf), auc(0)) == (1, 0, 0.5)
    assert auc(11.5) < 1
    assert auc(11.8) == 1


def test_a_number_gives_a_float_and_an_array_its_shape():
    assert type(separation(0.7)) is float
    assert type(separation(np.float32(0.5))) is float
    assert type(auc(1)) is float
    scores = np.array([[0.5, 0.6, 0.7]])
    for form in (scores, scores.tolist(), torch.tensor(scores)):
        found = separation(form)
        assert found.dtype == np.float64
        assert found.tolist() == [[separation(0.5), separation(0.6), separation(0.7)]]
    assert auc(separation(scores)) == pytest.approx(scores)
    assert separation([]).shape == (0,)

"""Bands: easy, hard and false by two thresholds, in NumPy and torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import naysay as ns
from naysay.detectors import Bands

few = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0, math.inf, -math.inf])


def band(score, low, high):
    return 2 if score >= high else 1 if score >= low else 0


# ---- flags ----------------------------------------------------------------------------------------------------------


@given(arrays(np.float32, st.sampled_from([(), (0,), (5,), (2, 3), (2, 0), (1, 2, 3)]), elements=few), few, few)
def test_flags_are_those_of_plain_loops(scores, one, other):
    low, high = min(one, other), max(one, other)
    bands = Bands(low, high)
    expected = [band(score, low, high) for score in scores.ravel().tolist()]
    found = bands.flag(scores)
    assert (found.dtype, found.shape) == (np.int8, scores.shape)
    assert found.ravel().tolist() == expected
    tensor = bands.flag(torch.from_numpy(np.array(scores)))
    assert (tensor.dtype, tuple(tensor.shape)) == (torch.int8, scores.shape)
    assert tensor.flatten().tolist() == expected
    counts = {name: expected.count(place) for place, name in enumerate(("easy", "hard", "false"))}
    assert bands.count(scores) == bands.count(torch.from_numpy(np.array(scores))) == counts


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_threshold_is_compared_in_the_precision_of_the_scores(dtype):
    scores = np.array([0.121, 0.335, 0.3], dtype)
    assert Bands(0.121, 0.335).flag(scores).tolist() == [1, 2, 1]
    assert Bands(0.121, 0.335).flag(torch.from_numpy(scores)).tolist() == [1, 2, 1]
    after = float(np.nextafter(scores[1], dtype(1)))
    assert Bands(0.121, after).flag(scores).tolist() == [1, 1, 1]
    negatives = ns.Negatives(np.array([[0, 1, 2]]), scores=scores[None])
    assert Bands(0.121, 0.335).suspicion(ns.Query([0]), negatives).tolist() == [[0, 1, 0]]
    assert Bands(0.121, after).suspicion(ns.Query([0]), negatives).tolist() == [[0, 0, 0]]


# ---- suspicion ------------------------------------------------------------------------------------------------------


def test_whole_scores_are_compared_as_they_are():
    negatives = ns.Negatives(np.array([[1, 2]]), scores=np.array([[0, 1]]))
    assert Bands(0, 0.5).suspicion(ns.Query([0]), negatives).tolist() == [[0, 1]]

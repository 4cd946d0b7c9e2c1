"""Pseudo-labels against classes: scikit-learn's mutual information, and detection rates in plain loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from naysay import NaysayError
from naysay.detectors.truth import DetectionRates, detection_rates, normalised_mutual_information


@st.composite
def pairs(draw, least=0):
    n = draw(st.integers(1, 30))
    numbers = st.lists(st.integers(least, 4), min_size=n, max_size=n)
    return np.array(draw(numbers)), np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))


@given(pairs(), st.sampled_from(["geometric", "arithmetic"]))
def test_it_is_scikit_learns(pair, average):
    wanted = normalized_mutual_info_score(*pair, average_method=average)
    assert normalised_mutual_information(*pair, average=average) == pytest.approx(wanted, abs=1e-9)


@given(pairs(least=-1), st.permutations(range(5)))
def test_names_of_labels_do_not_matter_and_unlabelled_samples_do_not_count(pair, order):
    labels, classes = pair
    found = normalised_mutual_information(labels, classes)
    renamed = np.where(labels >= 0, np.array(order)[labels], -1)
    assert normalised_mutual_information(renamed, classes) == pytest.approx(found, abs=1e-12)
    some = labels >= 0
    wanted = normalised_mutual_information(labels[some], classes[some]) if some.any() else 0.0
    assert found == pytest.approx(wanted, abs=1e-12)


def test_by_hand():
    """Cells 2, 1, 1 of 4: I = log 2 - (3/4 log 3 - 1/2 log 2) ... both ways give the numbers below."""
    labels, classes = [0, 0, 0, 1], [0, 0, 1, 1]
    shared = 0.5 * math.log(0.5 / (0.75 * 0.5)) + 0.25 * math.log(0.25 / (0.75 * 0.5)) + 0.25 * math.log(0.25 / 0.125)
    entropy = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert normalised_mutual_information(labels, classes) == pytest.approx(shared / math.sqrt(entropy * math.log(2)))
    found = normalised_mutual_information(labels, classes, average="arithmetic")
    assert found == pytest.approx(2 * shared / (entropy + math.log(2)))


def test_granularities_and_tensors():
    labels = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1], [-1, -1, -1, -1]])
    assert normalised_mutual_information(labels, [3, 3, 5, 5]).tolist() == [1.0, 0.0, 0.0]
    assert normalised_mutual_information(labels, labels).tolist() == [1.0, 1.0, 0.0]
    rates = detection_rates(labels, torch.tensor([3, 3, 5, 5]))
    assert rates.true_positive.tolist() == [1.0, 0.0, 0.0]
    assert rates.true_negative.tolist() == [1.0, 0.5, 1.0]


def rates_in_loops(labels, classes):
    """Over all ordered pairs, anchor by anchor."""
    positive, negative = [], []
    for i, (mine, kind) in enumerate(zip(labels, classes, strict=True)):
        others = [j for j in range(len(labels)) if j != i]
        same = [labels[j] == mine != -1 for j in others if classes[j] == kind]
        other = [not labels[j] == mine != -1 for j in others if classes[j] != kind]
        positive += [sum(same) / len(same)] if same else []
        negative += [sum(other) / len(other)] if other else []
    return [sum(rates) / len(rates) if rates else math.nan for rates in (positive, negative)]


@given(pairs(least=-1))
def test_rates_in_plain_loops(pair):
    found = detection_rates(*pair)
    wanted = rates_in_loops(pair[0].tolist(), pair[1].tolist())
    assert [found.true_positive, found.true_negative] == pytest.approx(wanted, nan_ok=True, abs=1e-12)


def test_no_detection_and_a_perfect_one():
    classes = [0, 0, 1, 1, 1]
    assert detection_rates([-1] * 5, classes) == DetectionRates(0.0, 1.0)
    assert detection_rates(classes, classes) == DetectionRates(1.0, 1.0)
    assert detection_rates([0] * 5, classes) == DetectionRates(1.0, 0.0)


BAD = {
    "another length": (
        lambda: normalised_mutual_information([0, 1], [0, 1, 2]),
        r"normalised_mutual_information: `classes` must be of shape \(2,\), or like labels, got shape \(3,\)\.",
    ),
    "other granularities": (
        lambda: normalised_mutual_information([[0, 1]], [[0, 1], [1, 1]]),
        r"`classes` must be of shape \(2,\), or like labels, got shape \(2, 2\)\.",
    ),
    "an average": (
        lambda: normalised_mutual_information([0], [0], average="geometry"),
        r"`average` must be one of 'geometric', 'arithmetic', got 'geometry'\. Did you mean 'geometric'\?",
    ),
    "nothing": (
        lambda: normalised_mutual_information([], []),
        r"`labels` must be of shape \(n,\) or \(granularities, n\), not empty, got shape \(0,\)\.",
    ),
    "parts": (lambda: normalised_mutual_information([0.5], [1]), r"`labels` must be whole numbers, got dtype float64"),
    "below -1": (
        lambda: detection_rates([0, -2], [0, 0]),
        r"detection_rates: `labels` must be at least -1, got -2 at row 1 \(1 such row\)\. -1 is no label\.",
    ),
    "a class below 0": (lambda: detection_rates([0, 0], [0, -1]), r"`classes` must be at least 0, got -1 at row 1"),
    "classes of another length": (
        lambda: detection_rates([0, 0], [0]),
        r"`classes` must be of shape \(2,\), like labels, got shape \(1,\)\.",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), BAD.values(), ids=BAD)
def test_errors(call, sentence):
    with pytest.raises(NaysayError, match=sentence):
        call()

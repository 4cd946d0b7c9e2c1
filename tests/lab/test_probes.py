"""AUC, average precision, the linear probe and nearest neighbours, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from naysay.lab import auc, average_precision, linear_probe, nearest_labels

scores = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=12)  # many ties


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_auc_and_average_precision_are_those_of_scikit_learn(positive, negative):
    truth, both = [1] * len(positive) + [0] * len(negative), positive + negative
    assert auc(positive, negative) == pytest.approx(roc_auc_score(truth, both), abs=1e-12)
    assert average_precision(positive, negative) == pytest.approx(average_precision_score(truth, both), abs=1e-12)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.standard_normal((3, 5))
    labels = rng.integers(0, 3, 400) * 10
    vectors = centres[labels // 10] + rng.standard_normal((400, 5)) * [1, 1, 1, 1, 100]
    return vectors[:300], labels[:300], vectors[300:], labels[300:]


def test_the_linear_probe_is_logistic_regression(blobs):
    vectors, labels, others, truth = blobs
    scaler = StandardScaler().fit(vectors)
    model = LogisticRegression(C=0.5, max_iter=1000).fit(scaler.transform(vectors), labels)
    found = linear_probe(vectors, labels, others, penalty=2.0)
    np.testing.assert_array_equal(found, model.predict(scaler.transform(others)))
    assert (found == truth).mean() > 0.7


@pytest.mark.parametrize("k", [1, 7, 1000])
def test_nearest_labels_are_those_of_scikit_learn(blobs, k):
    vectors, labels, others, _ = blobs
    model = KNeighborsClassifier(min(k, 300), metric="cosine").fit(vectors, labels)
    np.testing.assert_array_equal(nearest_labels(vectors, labels, others, k=k), model.predict(others))


def test_torch_and_no_rows():
    torch = pytest.importorskip("torch")
    assert auc(torch.tensor([1.0]), torch.tensor([0.0])) == 1
    assert nearest_labels(torch.eye(2), [0, 1], torch.zeros(0, 2)).shape == (0,)

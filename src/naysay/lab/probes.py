"""Measures of scores and vectors without a ranking: AUC, average precision, a linear probe, nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    as_floats,
    check_all,
    check_exact,
    check_lengths,
    check_number,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)

_BLOCK = 1 << 24  # scores at a time
Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@public
def auc(positive: Any, negative: Any) -> float:
    """The area under the ROC curve: how often a positive scores above a negative, ties half.

    Args:
        positive: (n,) scores.
        negative: (m,) scores.

    Raises:
        NaysayError: If either is empty or has a NaN.

    Examples:
        >>> auc([0.9, 0.5], [0.5, 0.1])
        0.875
    """
    high, low = _scores("positive", positive), _scores("negative", negative)
    below, not_above = (np.searchsorted(np.sort(low), high, side=side) for side in ("left", "right"))
    return float((below + not_above).mean() / (2 * len(low)))


@public
def average_precision(positive: Any, negative: Any) -> float:
    """The mean, over positives, of the precision at their score: the share of positives among what scores as high.

    Args:
        positive: (n,) scores.
        negative: (m,) scores.

    Raises:
        NaysayError: If either is empty or has a NaN.

    Examples:
        >>> round(average_precision([0.9, 0.5], [0.7, 0.1]), 4)
        0.8333
    """
    high, low = _scores("positive", positive), _scores("negative", negative)
    positives_as_high = len(high) - np.searchsorted(np.sort(high), high)
    negatives_as_high = len(low) - np.searchsorted(np.sort(low), high)
    return float((positives_as_high / (positives_as_high + negatives_as_high)).mean())


@public
def linear_probe(vectors: Any, labels: Any, others: Any, *, penalty: float = 1.0) -> Ids:
    """Train a linear classifier on vectors with labels, and return the labels that it gives to other vectors.

    Multinomial logistic regression on coordinates of mean 0 and variance 1, by L-BFGS:

        min   sum_i -log softmax(W x_i + b)_(y_i) + penalty / 2 |W|^2

    Args:
        vectors: (n, d) vectors to train on.
        labels: (n,) their classes, whole numbers.
        others: (m, d) vectors to classify.
        penalty: Of large weights, above 0; 1 / C in scikit-learn.

    Returns:
        (m,) classes.

    Raises:
        NaysayError: If shapes differ, or there are fewer than two classes.

    Examples:
        >>> linear_probe([[0.0], [1.0], [4.0], [5.0]], [7, 7, 9, 9], [[0.5], [4.5]]).tolist()
        [7, 9]
    """
    from scipy.optimize import minimize

    known, classes, asked = _inputs(vectors, labels, others)
    check_number("penalty", penalty, above=0, finite=True)
    names, place = np.unique(classes, return_inverse=True)
    if len(names) < 2:
        raise_invalid("labels", "of at least two classes", len(names))
    mean, scale = known.mean(axis=0), known.std(axis=0)
    scale[scale == 0] = 1.0
    x, size = (known - mean) / scale, (len(names), known.shape[1])
    truth = np.zeros((len(x), len(names)))
    truth[np.arange(len(x)), place.reshape(-1)] = 1.0

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights, bias = flat[: size[0] * size[1]].reshape(size), flat[size[0] * size[1] :]
        logits = x @ weights.T + bias
        most = logits.max(axis=1)
        total = most + np.log(np.exp(logits - most[:, None]).sum(axis=1))
        wrong = np.exp(logits - total[:, None]) - truth
        value = float(total.sum() - (truth * logits).sum() + penalty / 2 * (weights**2).sum())
        return value, np.concatenate([(wrong.T @ x + penalty * weights).ravel(), wrong.sum(axis=0)])

    start = np.zeros(size[0] * size[1] + size[0])
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    weights, bias = best[: size[0] * size[1]].reshape(size), best[size[0] * size[1] :]
    return np.asarray(names[((asked - mean) / scale @ weights.T + bias).argmax(axis=1)])


@public
def nearest_labels(vectors: Any, labels: Any, others: Any, *, k: int = 20) -> Ids:
    """Return the most frequent label among the k nearest vectors by cosine, for other vectors; ties: the smallest.

    Args:
        vectors: (n, d) vectors with labels.
        labels: (n,) their classes, whole numbers.
        others: (m, d) vectors to classify.
        k: How many of the nearest vote; all, if there are fewer.

    Returns:
        (m,) classes.

    Raises:
        NaysayError: If shapes differ.

    Examples:
        >>> nearest_labels([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [7, 7, 9], [[1.0, 0.2], [0.1, 1.0]], k=1).tolist()
        [7, 9]
    """
    known, classes, asked = _inputs(vectors, labels, others)
    count = min(check_whole("k", k, 1), len(known))
    names, place = np.unique(classes, return_inverse=True)
    known, asked = (part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300) for part in (known, asked))
    size, predicted = max(1, _BLOCK // len(known)), []
    for first in range(0, len(asked), size):
        scores = asked[first : first + size] @ known.T
        nearest = np.argpartition(-scores, count - 1, axis=1)[:, :count]
        rows = np.arange(len(nearest))[:, None] * len(names)
        votes = np.bincount((rows + place.reshape(-1)[nearest]).ravel(), minlength=len(nearest) * len(names))
        predicted.append(names[votes.reshape(len(nearest), -1).argmax(axis=1)])
    return np.concatenate([np.zeros(0, names.dtype), *predicted])


def _scores(parameter: str, values: Any) -> Floats:
    """Scores (n,), not empty and without NaN."""
    scores = as_floats(parameter, to_numpy(values))
    check_exact(parameter, as_array(parameter, to_numpy(values)))
    if scores.ndim != 1 or not len(scores):
        raise_invalid(parameter, "of shape (n,), at least one", f"shape {scores.shape}")
    check_all(parameter, scores, ~np.isnan(scores), "a number")
    return scores


def _inputs(vectors: Any, labels: Any, others: Any) -> tuple[Floats, Ids, Floats]:
    """Vectors, their labels, and other vectors of the same width."""
    known, asked = (as_array(name, to_numpy(part)) for name, part in (("vectors", vectors), ("others", others)))
    classes = whole_numbers("labels", to_numpy(labels)).astype(np.int64)
    for name, part in (("vectors", known), ("others", asked)):
        if part.ndim != 2 or part.dtype.kind not in "iuf":
            raise_invalid(name, "numbers of shape (n, d)", f"{part.dtype} of shape {part.shape}")
        check_all(name, part, np.isfinite(part), "finite")
    check_lengths(vectors=len(known), labels=len(classes))
    if not len(known) or asked.shape[1] != known.shape[1]:
        raise_invalid("others", f"of shape (m, {known.shape[1]}), and `vectors` not empty", f"shape {asked.shape}")
    return known.astype(np.float64), classes, asked.astype(np.float64)

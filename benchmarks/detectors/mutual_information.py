"""Normalised mutual information of pseudo-labels and true classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def normalised_mutual_information(labels: ArrayLike, classes: ArrayLike) -> Any:
    """I(labels; classes) / sqrt(H(labels) H(classes)): 0 for independent labels, 1 for equal partitions.

    Samples with -1 on either side are left out; the result is 0 if none remain, and 1 if both sides have one value.
    The geometric mean is that of Strehl and Ghosh, which the paper cites.

    Args:
        labels: (n,) or (G, n) whole numbers from 0.
        classes: (n,) the true classes; or (G, n), an earlier clustering.

    Returns:
        A float, or (G,) for (G, n) labels.
    """
    given = np.asarray(labels)
    rows = np.atleast_2d(given)
    truth = np.broadcast_to(np.asarray(classes), rows.shape)
    information = np.array([_information(ours, theirs) for ours, theirs in zip(rows, truth, strict=True)])
    return information.item() if given.ndim == 1 else information


def _information(labels: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    both = (labels >= 0) & (classes >= 0)
    total = np.count_nonzero(both)
    if total == 0:
        return 0.0
    _, label, label_sizes = np.unique(labels[both], return_inverse=True, return_counts=True)
    _, kind, class_sizes = np.unique(classes[both], return_inverse=True, return_counts=True)
    _, pair, pair_sizes = np.unique(label * len(class_sizes) + kind, return_inverse=True, return_counts=True)
    # A mean over samples is the sum over cells, each weighted by its share.
    entropies = [
        float(-np.log(sizes[place] / total).mean()) for sizes, place in ((label_sizes, label), (class_sizes, kind))
    ]
    if entropies == [0.0, 0.0]:
        return 1.0
    shared = float(np.log(total * (pair_sizes[pair] / label_sizes[label]) / class_sizes[kind]).mean())
    mean = float(np.sqrt(entropies[0] * entropies[1]))
    return min(max(shared / mean, 0.0), 1.0) if mean > 0 else 0.0

"""Measures of the studies: ranked lists, areas under the curve, clusterings, and linear probes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

import naysay as ns

BLOCK = 1024  # anchors that are ranked at a time


def ranked(
    anchors: Tensor, items: Tensor, relevant: ns.Positives, top: int, known: ns.Positives | None = None
) -> dict[str, float]:
    """Mean recall, nDCG and MRR at `top` of the anchors that have relevant items; `known` items are not ranked."""
    counts = relevant.count()
    asked = np.flatnonzero(counts)
    gains = 1 / np.log2(np.arange(top) + 2)
    recall, ndcg, mrr = [], [], []
    for start in range(0, len(asked), BLOCK):
        rows = asked[start : start + BLOCK]
        scores = anchors[rows] @ items.T
        if known is not None:
            for place, row in enumerate(rows):
                scores[place, known.indices[known.indptr[row] : known.indptr[row + 1]].astype(np.int64)] = -torch.inf
        best = scores.topk(min(top, scores.shape[1]), dim=1).indices.numpy()
        hits = relevant.contains(np.repeat(rows, best.shape[1]), best.ravel()).reshape(best.shape)
        most = np.minimum(counts[rows], top)
        recall.append(hits.sum(axis=1) / counts[rows])
        ndcg.append((hits * gains[: best.shape[1]]).sum(axis=1) / np.cumsum(gains)[most - 1])
        mrr.append(hits.any(axis=1) / (hits.argmax(axis=1) + 1))
    by_name = {"recall": recall, "ndcg": ndcg, "mrr": mrr}
    return {name: float(np.concatenate(values).mean()) for name, values in by_name.items()}


def auc(higher: Any, lower: Any) -> float:
    """The chance that one of `higher` is above one of `lower`, ties half."""
    ordered = np.sort(np.asarray(lower).ravel())
    below, up_to = (np.searchsorted(ordered, np.asarray(higher).ravel(), side=side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(ordered)))


def mutual_information(labels: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """Normalised mutual information of two groupings, by the mean of their entropies."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(classes, labels))


def class_scores(train: Tensor, classes: Tensor, test: Tensor, penalty: float = 1e-4) -> Tensor:
    """(n, classes) scores of `test` by a linear classifier of the features: L-BFGS to rest, on standardised columns."""
    mean, deviation = train.mean(dim=0), train.std(dim=0) + 1e-6
    inputs, held_out = (train - mean) / deviation, (test - mean) / deviation
    count = int(classes.max()) + 1
    weight, bias = torch.zeros(train.shape[1], count, requires_grad=True), torch.zeros(count, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = cross_entropy(inputs @ weight + bias, classes) + penalty * weight.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    with torch.no_grad():
        return held_out @ weight + bias

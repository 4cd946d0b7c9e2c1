"""What item vectors add to the posterior of scores: closeness to a positive beyond what scores predict."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_model import TERMS, Model, predicted, terms
from naysay.detectors._posterior_pool import Lists

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_LEVELS = (*(n / 10 for n in range(1, 10)), 0.95, 0.975, 0.99)  # finer where positives are
_FEWEST, _ITERATIONS, _TOLERANCE, _PRIORS = 200, 200, 1e-8, 500


@dataclass(frozen=True, slots=True, eq=False)
class Similar:
    """The similarities of lists, read once.

    Args:
        known: (A, W): candidates that are fitted, and whose similarity and whose anchor's positive are known.
        scale: (4,) of scores and positives' scores.
        weights: (6,) of the regression of similarities on scores.
        edges: (b - 1,) of the bins.
        bins: (n,) of what the similarity is above its regression.
    """

    known: Mask
    scale: Floats
    weights: Floats
    edges: Floats
    bins: NDArray[np.intp]

    @staticmethod
    def of(lists: Lists, depth: int) -> Similar | None:
        """Regress similarities on the score, the positive's score, product and squares, and bin what is above."""
        part = lists.cut(depth)
        known = known_slots(part)
        if known.sum() < _FEWEST or part.alike is None:
            return None
        scores, positives = part.scores[known], np.broadcast_to(part.positives[:, None], known.shape)[known]
        scale = scale_of(scores, positives)
        weights = regression(terms(scale, scores, positives), part.alike[known])
        v = part.alike[known] - predicted(weights, scale, scores, positives)
        edges = np.unique(np.quantile(v, _LEVELS))
        return Similar(known, scale, weights, edges, np.searchsorted(edges, v, side="right"))


def with_evidence(model: Model, similar: Similar, priors: Floats) -> Model:
    """The model with the ratio of densities of v among positives and others, as a monotone histogram.

    EM with the posterior of scores held fixed gives both densities.
    """
    prior = model.final(priors[:, : similar.known.shape[1]][similar.known], 0.0)
    ratios = _ratios(np.nan_to_num(prior), similar.bins, len(similar.edges) + 1)
    return replace(model, scale=similar.scale, similar=similar.weights, edges=similar.edges, ratios=ratios)


def known_slots(lists: Lists) -> Mask:
    """(A, M): candidates whose similarity and whose anchor's positive are known."""
    none = np.zeros(lists.scores.shape, bool)
    return none if lists.alike is None else lists.filled & ~np.isnan(lists.alike + lists.positives[:, None])


def scale_of(scores: Floats, positives: Floats) -> Floats:
    """(4,) mean and deviation of each; a deviation of 0 counts as 1."""
    parts = [(float(part.mean()), float(part.std())) for part in (scores, positives)]
    return np.array([number for mean, spread in parts for number in (mean, spread or 1.0)])


def regression(columns: list[Floats], values: Floats, weights: Floats | None = None) -> Floats:
    """(6,) least squares by normal equations, with a ridge as small as rounding."""
    factors = np.ones(len(values)) if weights is None else weights
    matrix, right = np.empty((TERMS, TERMS)), np.empty(TERMS)
    for i, column in enumerate(columns):
        weighted = factors * column
        right[i] = (weighted * values).sum()
        for j in range(i, TERMS):
            matrix[i, j] = matrix[j, i] = (weighted * columns[j]).sum()
    return np.linalg.solve(matrix + 1e-9 * max(1.0, factors.sum()) * np.eye(TERMS), right)


def _ratios(prior: Floats, bins: NDArray[np.intp], n_bins: int) -> Floats:
    """(n_bins,) the log-ratio of the two densities, ascending: EM with a fixed prior, then isotonic.

    Slots of about the same prior count as one: the n slots are sorted by prior, in 500 groups.
    """
    smooth = np.maximum(np.bincount(bins, minlength=n_bins), 1) / len(bins)  # one slot's worth of what all look like
    group = np.empty(len(bins), np.intp)
    group[np.lexsort((bins, prior))] = np.arange(len(bins)) * _PRIORS // len(bins)
    slots = np.bincount(group * n_bins + bins, minlength=_PRIORS * n_bins).reshape(_PRIORS, n_bins)
    mean = (np.bincount(group, prior, _PRIORS) / np.maximum(slots.sum(axis=1), 1))[:, None]
    ratio = np.ones(n_bins)
    for _ in range(_ITERATIONS):
        raised = mean * ratio
        chance = raised / np.maximum(raised + 1 - mean, 1e-300)
        positive = (slots * chance).sum(axis=0) + smooth
        other = (slots * (1 - chance)).sum(axis=0) + smooth
        before, ratio = ratio, (positive / positive.sum()) / (other / other.sum())
        if np.abs(np.log(ratio) - np.log(before)).max() < _TOLERANCE:
            break
    return np.log(isotonic(ratio, other / other.sum()))


def isotonic(values: Floats, weights: Floats) -> Floats:
    """The nearest ascending sequence in weighted least squares: pool adjacent violators."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, count = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            below, under, size = blocks.pop()
            mean, total, count = (below * under + mean * total) / (under + total), under + total, size + count
        blocks.append((mean, total, count))
    return np.repeat([mean for mean, _, _ in blocks], [count for _, _, count in blocks])

"""What item vectors and labelled candidates add to the posterior of scores.

Evidence: how much closer a candidate is to its anchor's positives than scores predict. A check of the assumption that
labels are random, by item vectors, and a correction by labelled candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_model import TERMS, Model, add_to_log_odds, predicted, terms
from naysay.detectors._posterior_pool import Lists
from naysay.detectors.cut import mean_of
from naysay.detectors.posterior_summary import LabelCheck

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_LEVELS = (*(n / 10 for n in range(1, 10)), 0.95, 0.975, 0.99)  # finer where positives are
_FEWEST, _ITERATIONS, _TOLERANCE = 200, 200, 1e-8
_MAD = 1.4826  # of a normal distribution: deviation / median absolute deviation
_REWEIGHTINGS = 8
_STRATA = (0, 5, 10, 20, 30)  # first ranks
_BACKGROUND = (30, 50)
_LIMITS = (1.5, 2.0, 2.5)
_ENOUGH = 3.0  # times the background
_FIXED_POINT_STEPS = 30
_PRIOR = 3.0  # the standard deviation of the shift that labelled candidates may show
_GATE = 0.5  # of the target: the least excess that corrects
_CORRECTIONS = 2
_BISECTIONS, _FARTHEST = 80, 40.0


def fit_evidence(model: Model, lists: Lists, depth: int, seed: int) -> Model:
    """The model with the ratio of densities of v among positives and others, as a monotone histogram.

    v is the similarity minus its least-squares fit on the score, the positive's score, their product and squares. EM
    with the posterior p of scores held fixed gives both densities. The model is unchanged if there is no similarity.
    """
    known = _known(lists) & (np.arange(lists.scores.shape[1]) < depth)
    if known.sum() < _FEWEST or lists.alike is None:
        return model
    scores, positives = lists.scores[known], np.broadcast_to(lists.positives[:, None], known.shape)[known]
    scale = scale_of(scores, positives)
    similar = _regression(terms(scale, scores, positives), lists.alike[known])
    v = lists.alike[known] - predicted(similar, scale, scores, positives)
    edges = np.unique(np.quantile(v, _LEVELS))
    prior = model.of_lists(replace(lists, alike=None), seed)[known]
    ratios = _ratios(prior, np.searchsorted(edges, v, side="right"), len(edges) + 1)
    return replace(model, scale=scale, similar=similar, edges=edges, ratios=ratios)


def _known(lists: Lists) -> Mask:
    """(A, M): candidates whose similarity and whose anchor's positive are known."""
    none = np.zeros(lists.scores.shape, bool)
    return none if lists.alike is None else lists.filled & ~np.isnan(lists.alike + lists.positives[:, None])


def scale_of(scores: Floats, positives: Floats) -> Floats:
    """(4,) mean and deviation of each; a deviation of 0 counts as 1."""
    parts = [(float(part.mean()), float(part.std())) for part in (scores, positives)]
    return np.array([number for mean, spread in parts for number in (mean, spread or 1.0)])


def _regression(columns: list[Floats], values: Floats, weights: Floats | None = None) -> Floats:
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
    """(n_bins,) the log-ratio of the two densities, ascending: EM with a fixed prior, then isotonic."""
    smooth = np.maximum(np.bincount(bins, minlength=n_bins), 1) / len(bins)  # one slot's worth of what all look like
    ratio = np.ones(n_bins)
    for _ in range(_ITERATIONS):
        raised = prior * ratio[bins]
        chance = np.where(prior >= 1, 1.0, raised / np.maximum(raised + 1 - prior, 1e-300))
        positive = np.bincount(bins, chance, n_bins) + smooth
        other = np.bincount(bins, 1 - chance, n_bins) + smooth
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


@dataclass(frozen=True, slots=True)
class Tail:
    """An estimate of the false share of the nearest k that does not use c.

    Args:
        estimate: The share; NaN if no limit is usable.
        excess: f - f0, the share of unusually similar candidates above that of the background.
        low: The 95 % lower limit of the excess over anchors.
    """

    estimate: float
    excess: float
    low: float


def tail_of(lists: Lists, posterior: Floats, k: int) -> Tail:
    """Estimate the false share of the nearest k by the candidates that are unusually similar to a positive.

    v is standardised in strata of ranks. For t = 1.5, 2 and 2.5: f is the share of v > t in the nearest k, f0 that at
    ranks 31 to 50, a the share of the posterior mass of the nearest k that has v > t. The estimate is the median of
    (f - f0) / (a - f0) where a is at least 3 f0, after f0 was freed of the positives that the posterior expects there
    in proportion. A wrong scale of the posterior cancels.
    """
    known = _known(lists)
    columns = np.arange(lists.scores.shape[1])
    near, far = known & (columns < k), known & (columns >= _BACKGROUND[0]) & (columns < _BACKGROUND[1])
    if lists.alike is None or not near.any() or not far.any():
        return Tail(np.nan, np.nan, np.nan)
    v = _standardised(lists, known)
    shares = []
    mass, behind = (float(posterior[mask].sum()) for mask in (near, far))
    for limit in _LIMITS if mass > 0 else ():
        high = v > limit
        f, f0 = float(high[near].mean()), float(high[far].mean())
        a, a0 = float(posterior[near & high].sum()) / mass, float(posterior[far & high].sum()) / max(behind, 1e-300)
        if a < _ENOUGH * f0 or f >= a:  # not telling, or more than all would be false
            continue
        ratio, share, others = behind / far.sum() / (mass / near.sum()), 0.0, f0
        for _ in range(_FIXED_POINT_STEPS):
            share = max(0.0, (f - others) / (a - others))
            others = max(0.0, (f0 - ratio * share * a0) / (1 - min(ratio * share, 0.5)))
        shares.append(share)
    estimate = float(np.median(shares)) if shares else np.nan
    return Tail(estimate, *_excess(v > _LIMITS[1], near, far))


def _excess(high: Mask, near: Mask, far: Mask) -> tuple[float, float]:
    """(f - f0, its 95 % lower limit), by the linearised variance over anchors."""
    apart, parts = 0.0, np.zeros(len(high))
    for mask, sign in ((near, 1.0), (far, -1.0)):
        hits, slots = (high & mask).sum(axis=1), mask.sum(axis=1)
        share = hits.sum() / slots.sum()
        apart += sign * float(share)
        parts += sign * (hits - share * slots) / slots.sum()
    return apart, apart - 1.645 * float(np.sqrt((parts**2).sum()))


def _standardised(lists: Lists, known: Mask) -> Floats:
    """(A, M) similarities above what scores predict, robustly, in deviations of their stratum of ranks; NaN unknown."""
    alike = np.full(lists.scores.shape, np.nan) if lists.alike is None else lists.alike
    scores, positives = lists.scores[known], np.broadcast_to(lists.positives[:, None], known.shape)[known]
    scale, weights = scale_of(scores, positives), np.ones(len(scores))
    columns = terms(scale, scores, positives)
    for _ in range(_REWEIGHTINGS):
        residuals = alike[known] - predicted(_regression(columns, alike[known], weights), scale, scores, positives)
        below = np.abs(residuals[residuals < 0])
        width = _MAD * float(np.median(below)) if len(below) else 0.0
        weights = np.where(residuals > width, width / np.maximum(residuals, 1e-300), 1.0) if width else weights
    v = np.full(alike.shape, np.nan)
    v[known] = residuals
    for first, last in zip(_STRATA, (*_STRATA[1:], lists.scores.shape[1]), strict=True):
        part = v[:, first:last]
        values = part[~np.isnan(part)]
        if not len(values):
            continue
        centre = float(np.median(values))
        low = centre - values[values < centre]
        spread = _MAD * float(np.median(low)) if len(low) else 0.0
        v[:, first:last] = (part - centre) / (spread or 1.0)
    return v


def check_labels(model: Model, lists: Lists, seed: int, k: int, target: float) -> tuple[Model, LabelCheck | None]:
    """Compare the posterior with an estimate that does not use c, and shift it where that one is clearly larger.

    Clearly: the lower limit of the excess is at least half the target. The shift makes the mean posterior equal that
    estimate. Then the evidence is fitted again, with the shifted posterior as its prior: with too small a prior, EM had
    put too much of the positives among the most similar. Twice at most. None if there are no item vectors.
    """
    if lists.alike is None or not len(model.similar):
        return model, None
    near, posterior = lists.nearest(k), model.of_lists(lists, seed)
    tail, by_labels, shift = tail_of(lists, posterior, k), mean_of(posterior, near), 0.0
    by_vectors = tail.estimate
    for _ in range(_CORRECTIONS):
        if not (tail.estimate > mean_of(posterior, near) and tail.low >= _GATE * target):  # also if NaN
            break
        by, by_vectors = _shift_to(posterior[near], tail.estimate), tail.estimate
        model, shift = fit_evidence(model.shifted(by), lists, model.depth, seed), shift + by
        posterior = model.of_lists(lists, seed)
        tail = tail_of(lists, posterior, k)
    return model, LabelCheck(by_labels, by_vectors, tail.excess, tail.low, shift)


def _shift_to(posterior: Floats, mean: float) -> float:
    """What must be added to the log-odds of posteriors for this mean."""
    return _solved(lambda by: float(add_to_log_odds(posterior, by).mean()) < mean, 0.0, _FARTHEST)


def corrected(model: Model, lists: Lists, seed: int, asked: Mask, truth: Mask) -> Model:
    """The model corrected by labelled candidates, drawn at random among the nearest k.

    If at least as many are false as expected, a shift of the log-odds by maximum likelihood, with a normal prior of
    deviation 3. If fewer are, a larger c at which as many are expected.

    Args:
        model: What to correct.
        lists: The candidates.
        seed: Of the places among equal scores.
        asked: (A, M): candidates that were labelled.
        truth: (A, M): those that are false negatives.
    """
    rows = np.asarray(asked.any(axis=1))
    lists, asked, truth = lists.take(rows), asked[rows], truth[rows]
    values, false = model.of_lists(lists, seed)[asked], truth[asked]
    if false.mean() >= values.mean():
        shift = _solved(
            lambda by: float((false - add_to_log_odds(values, by)).sum()) > by / _PRIOR**2, -_FARTHEST, _FARTHEST
        )
        return model.shifted(shift)
    share = (false.sum() + 0.5) / (len(false) + 1)  # none of 100 does not mean that none is
    if share >= values.mean():
        return model

    def expected(odds: float) -> float:
        return float(model.raised(1 / (1 + np.exp(-odds))).of_lists(lists, seed)[asked].mean())

    start = float(np.log(model.c) - np.log1p(-model.c))
    odds = _solved(lambda odds: expected(odds) > share, start, start + 20.0)
    return model.raised(min(1 / (1 + float(np.exp(-odds))), 1 - 1e-9))


def _solved(more: Callable[[float], bool], low: float, high: float) -> float:
    """Where `more` turns from True to False, by bisection."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if more(middle) else (low, middle)
    return (low + high) / 2

"""Check the assumption that labels are random, by item vectors, and correct the posterior by labelled candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_alike import Similar, known_slots, regression, scale_of, with_evidence
from naysay.detectors._posterior_model import Model, add_to_log_odds, beyond_of, predicted, terms
from naysay.detectors._posterior_pool import Lists
from naysay.detectors.cut import mean_of
from naysay.detectors.posterior_summary import LabelCheck

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_ROBUST = 50_000  # slots at most in a robust regression
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


@dataclass(frozen=True, slots=True, eq=False)
class Unusual:
    """How similar candidates are to a positive, beyond what scores predict, in the nearest k and in the background.

    Args:
        v: (A, M) in deviations of their stratum of ranks; NaN where unknown.
        near: (A, M): the known ones among the nearest k.
        far: (A, M): the known ones at ranks 31 to 50.
    """

    v: Floats
    near: Mask
    far: Mask

    @staticmethod
    def of(lists: Lists, k: int) -> Unusual | None:
        """None if nothing is known of the nearest, or of the background."""
        known, columns = known_slots(lists), np.arange(lists.scores.shape[1])
        near, far = known & (columns < k), known & (columns >= _BACKGROUND[0]) & (columns < _BACKGROUND[1])
        if lists.alike is None or not near.any() or not far.any():
            return None
        return Unusual(_standardised(lists, known), near, far)


def tail_of(found: Unusual | None, posterior: Floats) -> Tail:
    """Estimate the false share of the nearest k by the candidates that are unusually similar to a positive.

    For t = 1.5, 2 and 2.5: f is the share of v > t in the nearest k, f0 that in the background, a the share of the
    posterior mass of the nearest k that has v > t. The estimate is the median of (f - f0) / (a - f0) where a is at
    least 3 f0, after f0 was freed of the positives that the posterior expects there in proportion. A wrong scale of the
    posterior cancels.
    """
    if found is None:
        return Tail(np.nan, np.nan, np.nan)
    v, near, far, shares = found.v, found.near, found.far, []
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
    values, scale, some = alike[known], scale_of(scores, positives), slice(None, None, len(scores) // _ROBUST + 1)
    columns, weights = terms(scale, scores[some], positives[some]), np.ones(len(scores[some]))
    for _ in range(_REWEIGHTINGS):
        found = regression(columns, values[some], weights)
        residuals = values[some] - predicted(found, scale, scores[some], positives[some])
        below = np.abs(residuals[residuals < 0])
        width = _MAD * float(np.median(below)) if len(below) else 0.0
        weights = np.where(residuals > width, width / np.maximum(residuals, 1e-300), 1.0) if width else weights
    v = np.full(alike.shape, np.nan)
    v[known] = values - predicted(found, scale, scores, positives)
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


def check_labels(
    model: Model, lists: Lists, priors: Floats, k: int, target: float, by_scores: float = 0.0
) -> tuple[Model, Floats, LabelCheck | None]:
    """Add the evidence of item vectors, and compare with an estimate that does not use c.

    Where that one is clearly larger, the posterior is shifted. Clearly: the lower limit of the excess is at least half
    the target. The shift makes the mean posterior equal that estimate, or `by_scores`, an estimate that does not use
    ranks, if that is larger: labels that are the easiest positives have the best ranks. Then the evidence is fitted
    again, with the shifted posterior as its prior: with too small a prior, EM had put too much of the positives among
    the most similar. Twice at most.

    Returns:
        The model, the posterior of the lists, and what was found; None if there are no item vectors.
    """
    similar = Similar.of(lists, model.depth)
    if similar is None:
        return model, model.of_priors(priors, lists), None
    model = with_evidence(model, similar, priors)
    model = replace(model, beyond=beyond_of(model, lists, priors))
    near, posterior, unusual, shift = lists.nearest(k), model.of_priors(priors, lists), Unusual.of(lists, k), 0.0
    tail, by_labels = tail_of(unusual, posterior), mean_of(posterior, near)
    by_vectors = tail.estimate
    for _ in range(_CORRECTIONS):
        if not (tail.estimate > mean_of(posterior, near) and tail.low >= _GATE * target):  # also if NaN
            break
        by, by_vectors = _shift_to(posterior[near], max(tail.estimate, by_scores)), tail.estimate
        model, shift = with_evidence(model.shifted(by), similar, priors), shift + by
        posterior = model.of_priors(priors, lists)
        tail = tail_of(unusual, posterior)
    return model, posterior, LabelCheck(by_labels, by_vectors, tail.excess, tail.low, shift)


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

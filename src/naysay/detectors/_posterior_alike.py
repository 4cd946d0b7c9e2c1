"""What item vectors and labelled candidates add: evidence, a check of the labels, and a correction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_fit import DRAWS, inside
from naysay.detectors._posterior_lists import Lists
from naysay.detectors._posterior_model import MODEL_ERROR, TERMS, Model, beyond_of, predicted, probability, terms
from naysay.detectors.cut import mean_of
from naysay.detectors.posterior_summary import LabelCheck
from naysay.rng import rng_for

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Whole = NDArray[np.intp]
_LEVELS = (*(n / 10 for n in range(1, 10)), 0.95, 0.975, 0.99)  # of the bins: finer where positives are
_FEWEST, _ITERATIONS, _TOLERANCE, _PRIORS = 200, 200, 1e-8, 500
_ROBUST = 50_000  # slots at most in a robust regression
_MAD = 1.4826  # of a normal distribution: deviation / median absolute deviation
_REWEIGHTINGS = 8
_STRATA = (0, 5, 10, 20, 30)  # first ranks
_BACKGROUND = (30, 50)
_LIMITS = (1.5, 2.0, 2.5)
_ENOUGH = 3.0  # times the background
_FIXED_POINT_STEPS = 30
_GATE, _CLEAR = 0.5, 1.3  # the least excess that corrects, of the target; the least ratio of the two estimates
_CORRECTIONS, _BISECTIONS, _FARTHEST = 2, 60, 40.0
_PRIOR = np.array([3.0, 0.3])  # deviations of the shift and of the slope that labelled candidates may show
_NEWTON, _FLATTEST = 50, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Similar:
    """How similar candidates are to a labelled positive, beyond what scores predict.

    Args:
        known: (A, W): candidates that are fitted, and whose similarity and whose anchor's positive are known.
        scale: (4,) of scores and positives' scores.
        weights: (6,) of the regression of similarities on scores.
        edges: (b - 1,) of the bins.
        bins: (n,) of what the similarity is above its regression.
        v: (A, M) the same in deviations of their stratum of ranks, by a robust regression; NaN where unknown.
    """

    known: Mask
    scale: Floats
    weights: Floats
    edges: Floats
    bins: Whole
    v: Floats

    @staticmethod
    def of(lists: Lists, depth: int) -> Similar | None:
        """Regress similarities on the score, the positive's score, product and squares. None if too few are known."""
        if lists.alike is None:
            return None
        whole = lists.filled & ~np.isnan(lists.alike + lists.positives[:, None])
        known = whole[:, :depth]
        if known.sum() < _FEWEST:
            return None
        part, values = lists.cut(depth), lists.alike[:, :depth][known]
        scores, positives = part.scores[known], np.broadcast_to(part.positives[:, None], known.shape)[known]
        scale = np.array([n for side in (scores, positives) for n in (float(side.mean()), float(side.std()) or 1.0)])
        weights = regression(terms(scale, scores, positives), values)
        v = values - predicted(weights, scale, scores, positives)
        edges = np.unique(np.quantile(v, _LEVELS))
        bins = np.searchsorted(edges, v, side="right")
        return Similar(known, scale, weights, edges, bins, _standardised(lists, whole, scale))


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


def _standardised(lists: Lists, known: Mask, scale: Floats) -> Floats:
    """(A, M) similarities above what scores predict, robustly, in deviations of their stratum of ranks; NaN unknown."""
    alike = np.full(lists.scores.shape, np.nan) if lists.alike is None else lists.alike
    scores, positives = lists.scores[known], np.broadcast_to(lists.positives[:, None], known.shape)[known]
    values, some = alike[known], slice(None, None, len(scores) // _ROBUST + 1)
    columns, weights = terms(scale, scores[some], positives[some]), np.ones(len(scores[some]))
    for _ in range(_REWEIGHTINGS):
        found = regression(columns, values[some], weights)
        residuals = values[some] - predicted(found, scale, scores[some], positives[some])
        width = _spread(-residuals, 0.0)
        weights = np.where(residuals > width, width / np.maximum(residuals, 1e-300), 1.0) if width else weights
    v = np.full(alike.shape, np.nan)
    v[known] = values - predicted(found, scale, scores, positives)
    for first, last in zip(_STRATA, (*_STRATA[1:], alike.shape[1]), strict=True):
        part = v[:, first:last]
        values = part[~np.isnan(part)]
        if len(values):
            centre = float(np.median(values))
            v[:, first:last] = (part - centre) / (_spread(-values, -centre) or 1.0)
    return v


def _spread(values: Floats, centre: float) -> float:
    """The deviation of values above a centre, by their median; 0 if there are none."""
    above = values[values > centre] - centre
    return _MAD * float(np.median(above)) if len(above) else 0.0


def with_evidence(model: Model, similar: Similar, odds: Floats) -> Model:
    """The model with the ratio of densities of v among positives and others, as a monotone histogram.

    EM with the posterior of scores held fixed gives both densities.
    """
    prior = probability(model.slope * odds[:, : similar.known.shape[1]][similar.known] + model.shift)
    ratios = _ratios(prior, similar.bins, len(similar.edges) + 1)
    return replace(model, scale=similar.scale, similar=similar.weights, edges=similar.edges, ratios=ratios)


def _ratios(prior: Floats, bins: Whole, n_bins: int) -> Floats:
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


def tail_of(v: Floats, posterior: Floats, k: int) -> tuple[float, float, float]:
    """The false share of the nearest k by candidates that are unusually similar to a positive; it does not use c.

    For t = 1.5, 2 and 2.5: f is the share of v > t in the nearest k, f0 that in the background, a the share of the
    posterior mass of the nearest k that has v > t. The estimate is the median of (f - f0) / (a - f0) where a is at
    least 3 f0, after f0 was freed of the positives that the posterior expects there in proportion. A wrong scale of the
    posterior cancels.

    Returns:
        The estimate, NaN if unknown; f - f0 at t = 2, the excess; and its 95 % lower limit over anchors.
    """
    columns, known = np.arange(v.shape[1]), ~np.isnan(v)
    near, far = known & (columns < k), known & (columns >= _BACKGROUND[0]) & (columns < _BACKGROUND[1])
    if not near.any() or not far.any():
        return np.nan, np.nan, np.nan
    mass, behind = (float(posterior[mask].sum()) for mask in (near, far))
    shares = []
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
    excess, parts = 0.0, np.zeros(len(v))
    for mask, sign in ((near, 1.0), (far, -1.0)):
        hits, slots = ((v > _LIMITS[1]) & mask).sum(axis=1), mask.sum(axis=1)
        part = hits.sum() / slots.sum()
        excess += sign * float(part)
        parts += sign * (hits - part * slots) / slots.sum()
    low = excess - 1.645 * float(np.sqrt((parts**2).sum()))
    return float(np.median(shares)) if shares else np.nan, excess, low


def check_labels(
    model: Model, lists: Lists, odds: Floats, k: int, target: float
) -> tuple[Model, Floats, LabelCheck | None]:
    """Add the evidence of item vectors, and compare with an estimate that does not use c.

    Where that one is clearly larger, the posterior is shifted so that its mean equals it. Clearly: 1.3 times as large
    at the lower limit of the excess, which is at least half the target. Then the evidence is fitted again, with the
    shifted posterior as its prior: with too small a prior, EM had put too much of the positives among the most similar.
    Twice at most. The interval reaches to both estimates, shifted or not.

    Returns:
        The model, the posterior of the lists, and what was found; None if there are no item vectors.
    """
    similar = Similar.of(lists, model.depth)
    if similar is None:
        return model, model.of_odds(odds, lists), None
    model = with_evidence(model, similar, odds)
    model = replace(model, beyond=beyond_of(model, lists, odds))
    near, posterior, shift = lists.nearest(k), model.of_odds(odds, lists), 0.0
    (tail, excess, low), by_labels = tail_of(similar.v, posterior, k), mean_of(posterior, near)
    by_vectors = tail
    for _ in range(_CORRECTIONS):
        if not (tail * low > _CLEAR * mean_of(posterior, near) * excess and low >= _GATE * target):  # also if NaN
            break
        by, by_vectors = _shift_to(posterior[near], tail), tail
        model, shift = with_evidence(model.moved(by), similar, odds), shift + by
        posterior = model.of_odds(odds, lists)
        tail, excess, low = tail_of(similar.v, posterior, k)
    estimate = mean_of(posterior, near)
    others = [number / estimate for number in (by_labels, by_vectors) if estimate and not np.isnan(number)]
    model = replace(model, reach=np.array([min([1.0, *others]), max([1.0, *others])]))
    return model, posterior, LabelCheck(by_labels, by_vectors, excess, low, shift)


def balance_of(lists: Lists, posterior: Floats, depth: int) -> tuple[float, float]:
    """How much of the posterior is above the labelled positives, as a share of a half, and its standard error.

    If labels are random, an unlabelled positive is above the labelled one of its anchor as often as below: this is 1.
    It is less if labels are the easiest positives, or if candidates below the labelled ones are taken for positives.
    """
    scores, p, own = lists.scores[:, :depth], posterior[:, :depth], lists.positives[:, None]
    with np.errstate(invalid="ignore"):
        sign = np.where(scores > own, 1.0, np.where(scores < own, -1.0, 0.0))
    rows = inside(scores, lists.positives)
    apart, total = (p * sign)[rows].sum(axis=1), float(p[rows].sum())
    if not total > 0:
        return 1.0, 1.0
    return 1 + float(apart.sum()) / total, float(np.sqrt(((apart - apart.mean()) ** 2).sum())) / total


def _shift_to(posterior: Floats, mean: float) -> float:
    """What must be added to the log-odds of posteriors for this mean, by bisection."""
    odds, low, high = np.log(posterior) - np.log1p(-posterior), 0.0, _FARTHEST
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if float(probability(odds + middle).mean()) < mean else (low, middle)
    return (low + high) / 2


def corrected(model: Model, posterior: Floats, false: Mask, seed: int) -> Model:
    """The model corrected by labelled candidates, drawn at random among the nearest k.

    logit q becomes slope logit q + shift, by maximum likelihood with normal priors around 1 and 0 (Platt). The draws
    are those of slope and shift that these labels allow.

    Args:
        model: What to correct.
        posterior: (n,) of the labelled candidates.
        false: (n,) which of them are false negatives.
        seed: Of the draws.
    """
    odds = np.log(np.maximum(posterior, 1e-12)) - np.log1p(-posterior)
    centre = float(odds.mean())
    design, found = np.stack([np.ones(len(odds)), odds - centre], axis=1), np.array([centre, 1.0])
    prior, signs = found, np.where(false, -1.0, 1.0)

    def price(weights: Floats) -> float:
        moved = np.einsum("nf,f->n", design, weights)
        return float(np.logaddexp(0.0, signs * moved).sum() + (((weights - prior) / _PRIOR) ** 2).sum() / 2)

    for _ in range(_NEWTON):
        chance = 0.5 + 0.5 * np.tanh(0.5 * np.einsum("nf,f->n", design, found))
        slope = np.einsum("nf,n->f", design, false - chance) - (found - prior) / _PRIOR**2
        curvature = np.einsum("ni,nj->ij", design * (chance * (1 - chance))[:, None], design) + np.diag(_PRIOR**-2)
        step = np.linalg.solve(curvature, slope)
        while price(found + step) > price(found) and np.abs(step).max() > 1e-9:
            step = step / 2
        found = found + step
        if np.abs(step).max() < 1e-9:
            break
    drawn = found + np.einsum(
        "ij,bj->bi", np.linalg.cholesky(np.linalg.inv(curvature)), rng_for(seed, 2).normal(size=(DRAWS, 2))
    )
    slopes, steep = np.maximum(drawn[:, 1], _FLATTEST), max(float(found[1]), _FLATTEST)
    after = model.moved(float(found[0]) - steep * centre, steep)
    # Of the model before: slope (slope' x + shift') + shift, as a factor and a term of the model after.
    moved = slopes * model.shift + drawn[:, 0] - slopes * centre - after.shift
    draws = np.concatenate([np.tile(model.weights[-1], (DRAWS, 1)), moved[:, None], slopes[:, None] / steep], axis=1)
    return replace(after, draws=draws, error=MODEL_ERROR, reach=np.ones(2))

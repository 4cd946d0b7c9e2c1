"""Fit the posterior of scores: P(positive | x) by a logistic regression on labels of which a share c is known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import least_shares
from naysay.detectors._posterior_lists import Lists, backgrounds
from naysay.detectors.posterior_summary import ALIKE, FINE, MIN_LABELLED, TOO_FEW
from naysay.rng import rng_for

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
LEVELS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.96, 0.99, 1.0)  # quantiles of a feature: more where positives are
KNOTS, FEATURES, PASSES, DRAWS = len(LEVELS), 2, 2, 60
WIDTH = 1 + FEATURES * KNOTS
_BINS = 48  # of a feature, the last one with a thousandth of the slots
_BEND, _RIDGE = 200.0, 0.1  # penalties of a change of slope, and of a value
_ITERATIONS, _HALVINGS, _TOLERANCE = 60, 30, 1e-10
_CLEAR = 2.0  # standard errors of the gain
_LEAST, _MOST, _ERROR = 0.2, 0.9, 0.05
_ODDS = 2.0 ** np.arange(-1, 6.5, 0.5)  # of c, times those of its lower limit
_HIGHEST, _FIRMER = 0.98, 1.15  # c; how many times its lower limit it is at most


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The posterior of scores, or why there is none.

    Args:
        code: 0, or why nothing was fitted.
        labelled: How many labelled positives are in the lists.
        gain: The log-likelihood above that of a constant, in standard errors of what chance gives.
        c: P(labelled | positive).
        knots: (passes, 2, knots) of the curves.
        weights: (passes, width) a constant, and the heights of the curves at their knots.
        draws: (B, width) other weights of the last pass that the labels allow.
        levels: (A,) the background of each list.
    """

    code: int
    labelled: int
    gain: float
    c: float = np.nan
    knots: Floats = field(default_factory=lambda: np.zeros((0, FEATURES, KNOTS)))
    weights: Floats = field(default_factory=lambda: np.zeros((0, WIDTH)))
    draws: Floats = field(default_factory=lambda: np.zeros((0, WIDTH)))
    levels: Floats = field(default_factory=lambda: np.zeros(0))


def fit_scores(lists: Lists, depth: int, seed: int, c: float | None = None) -> Fit:
    """Fit to the first `depth` candidates of each list and to the labelled positives that score as high.

    P(slot is labelled | x) = c P(positive | x), where x is the score and the score above the anchor's background. Two
    passes: the first shows how many positives each list has, and where its background begins. c is its lower limit, or
    up to 15 % more where that is more likely.

    Args:
        lists: The candidates of each anchor and its labelled positive.
        depth: Candidates of each list to use.
        seed: Of the draws.
        c: P(labelled | positive), where it is known. None: estimated.
    """
    scores = lists.scores[:, :depth]
    labelled = inside(scores, lists.positives)
    count = int(labelled.sum())
    if count < MIN_LABELLED:
        return Fit(TOO_FEW, count, 0.0)
    if np.isnan(scores).all():
        return Fit(ALIKE, count, 0.0)
    own, expected = lists.positives[labelled], None
    knots: list[Floats] = []
    weights: list[Floats] = []
    for place in range(PASSES):
        level = backgrounds(scores, expected)
        filled = ~np.isnan(scores)
        rest = scores[filled], (scores - level[:, None])[filled]
        cells = Cells.of([np.append(*pair) for pair in zip(rest, (own, own - level[labelled]), strict=True)], count)
        plain = cells.fit(1.0)
        gain, chosen = cells.gain(plain), cells.lower_limit(plain) if c is None else c
        if gain < _CLEAR or not chosen > 0:
            return Fit(ALIKE, count, gain)
        if place == PASSES - 1:
            profile = cells.profile(chosen, known=c is not None)
            chosen = max(chosen, min(profile.best, _FIRMER * chosen, _HIGHEST))
        found = cells.fit(chosen)
        knots.append(cells.knots)
        weights.append(_unlabelled(found, chosen))
        odds = curves([scores, scores - level[:, None]], knots[-1], weights[-1])
        expected = np.nansum(0.5 + 0.5 * np.tanh(0.5 * odds), axis=1)
    draws = profile.drawn(cells.curvature(found, chosen), rng_for(seed, 1))
    return Fit(FINE, count, gain, chosen, np.stack(knots), np.stack(weights), draws, level)


def inside(scores: Floats, positives: Floats) -> Mask:
    """(A,): labelled positives that score as high as the candidates of their list."""
    full = ~np.isnan(scores[:, -1]) if scores.shape[1] else np.zeros(len(scores), bool)
    last = np.where(full, scores[:, -1], -np.inf) if scores.shape[1] else np.full(len(scores), -np.inf)
    with np.errstate(invalid="ignore"):
        return np.asarray(positives >= last)


def _unlabelled(weights: Floats, c: float) -> Floats:
    """The weights of an unlabelled slot: its odds of being positive are those of any slot, times 1 - c."""
    moved = weights.copy()
    moved[0] += np.log1p(-c)
    return moved


def curves(features: list[Floats], knots: Floats, weights: Floats) -> Floats:
    """The sum of a constant and of one piecewise linear curve of each feature, constant outside of its knots."""
    heights = weights[1:].reshape(len(knots), -1)
    total = np.full(features[0].shape, weights[0])
    for feature, places, values in zip(features, knots, heights, strict=True):
        total += np.interp(feature, places, values)
    return total


def knots_of(feature: Floats) -> Floats:
    """(knots,) ascending quantiles of a feature, a little apart where they would be equal."""
    found = np.quantile(feature, LEVELS)
    apart = max(float(found[-1] - found[0]), abs(float(found[-1])), 1e-9) * 1e-6
    return np.asarray(np.maximum.accumulate(found - apart * np.arange(KNOTS)) + apart * np.arange(KNOTS))


def hats(feature: Floats, knots: Floats) -> Floats:
    """(n, knots) the share of each knot in the height of a curve."""
    x = np.clip(feature, knots[0], knots[-1])
    place = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    part = (x - knots[place]) / (knots[place + 1] - knots[place])
    found = np.zeros((len(x), len(knots)))
    rows = np.arange(len(x))
    found[rows, place], found[rows, place + 1] = 1 - part, part
    return found


def penalty_of(features: list[Floats], knots: Floats) -> Floats:
    """(width, width) the penalty of changes of slope, in deviations of the feature, and a small one of all heights."""
    matrix = _RIDGE * np.eye(WIDTH)
    matrix[0, 0] = 1e-9
    for place, (feature, points) in enumerate(zip(features, knots, strict=True)):
        steps = np.diff(points) / (float(feature.std()) or 1.0)
        slopes = np.diff(np.eye(KNOTS), axis=0) / np.maximum(steps, 1e-3)[:, None]
        bends, part = np.diff(slopes, axis=0), slice(1 + place * KNOTS, 1 + (place + 1) * KNOTS)
        matrix[part, part] += _BEND * np.einsum("bi,bj->ij", bends, bends)
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Slots of about the same features as one row each, so that a fit costs the same for any number of anchors.

    Args:
        design: (m, width) a one, and the shares of the knots.
        labelled: (m,) labelled slots in each cell.
        others: (m,) other slots.
        knots: (2, knots) of the curves.
        penalty: (width, width) of the weights.
    """

    design: Floats
    labelled: Floats
    others: Floats
    knots: Floats
    penalty: Floats

    @staticmethod
    def of(features: list[Floats], count: int) -> Cells:
        """Of features (n,); the last `count` slots are the labelled ones."""
        levels, keys = 1 - np.geomspace(1, 1e-3, _BINS), np.zeros(len(features[0]), np.int64)
        for feature in features:
            keys = keys * _BINS + np.searchsorted(np.quantile(feature, levels[1:]), feature, side="right")
        slots = np.bincount(keys, minlength=_BINS ** len(features))
        used = slots > 0
        cell, slots = (np.cumsum(used) - 1)[keys], slots[used]
        labelled = np.bincount(cell[-count:], minlength=len(slots)).astype(np.float64)
        knots = np.stack([knots_of(feature) for feature in features])
        means = [np.bincount(cell, feature) / slots for feature in features]
        parts = [hats(mean, points) for mean, points in zip(means, knots, strict=True)]
        design = np.concatenate([np.ones((len(slots), 1)), *parts], axis=1)
        return Cells(design, labelled, slots - labelled, knots, penalty_of(features, knots))

    def log_odds(self, weights: Floats) -> Floats:
        """(m,) of each cell."""
        return np.asarray(np.einsum("mw,w->m", self.design, weights))

    def likelihood(self, weights: Floats, c: float) -> float:
        """The log-likelihood of the labels."""
        odds = self.log_odds(weights)
        positive = np.exp(-np.logaddexp(0.0, -odds))
        rest = -np.logaddexp(0.0, odds) if c == 1 else np.log1p(-c * positive)
        return float((self.labelled * (np.log(c) - np.logaddexp(0.0, -odds)) + self.others * rest).sum())

    def fit(self, c: float, start: Floats | None = None) -> Floats:
        """(width,) the weights of the largest penalised likelihood where labelled is c times positive.

        Newton's method with the expected curvature. With c = 1 it is an ordinary logistic regression.
        """
        weights = np.zeros(WIDTH) if start is None else start
        if start is None:
            share = min(self.labelled.sum() / c / (self.labelled.sum() + self.others.sum()), 0.9)
            weights[0] = np.log(share / (1 - share))
        value = self.likelihood(weights, c) - self._price(weights)
        for _ in range(_ITERATIONS):
            slope, curvature = self._derivatives(weights, c)
            step = np.linalg.solve(curvature, slope)
            promised = float((slope * step).sum()) / 2
            if promised <= _TOLERANCE * max(abs(value), 1.0):
                break
            for halving in range(_HALVINGS):
                tried = weights + 0.5**halving * step
                after = self.likelihood(tried, c) - self._price(tried)
                if after >= value + 1e-4 * 0.5**halving * promised:
                    break
            else:
                break  # only rounding error is left
            weights, value = tried, after
        return weights

    def _price(self, weights: Floats) -> float:
        return float(np.einsum("i,ij,j->", weights, self.penalty, weights)) / 2

    def _derivatives(self, weights: Floats, c: float) -> tuple[Floats, Floats]:
        """(width,) the slope of the penalised likelihood, and (width, width) its expected curvature."""
        positive = 0.5 + 0.5 * np.tanh(0.5 * self.log_odds(weights))
        rest = np.maximum(1 - c * positive, 1e-12)
        slope = self.labelled * (1 - positive) - self.others * c * positive * (1 - positive) / rest
        bend = (self.labelled + self.others) * c * positive * (1 - positive) ** 2 / rest
        curvature = np.einsum("mi,mj->ij", self.design * bend[:, None], self.design) + self.penalty
        return np.einsum("mi,m->i", self.design, slope) - np.einsum("ij,j->i", self.penalty, weights), curvature

    def gain(self, weights: Floats) -> float:
        """The log-likelihood of an ordinary fit above that of a constant, in standard errors of what chance gives."""
        n, share = self.labelled.sum() + self.others.sum(), self.labelled.sum() / (self.labelled + self.others).sum()
        constant = n * (share * np.log(share) + (1 - share) * np.log1p(-share)) if share < 1 else 0.0
        free = WIDTH - 1
        return float((2 * (self.likelihood(weights, 1.0) - constant) - free) / np.sqrt(2 * free))

    def lower_limit(self, weights: Floats) -> float:
        """P(labelled | positive), or 0 if there are too few labelled.

        It is at least the labelled share of any group of slots, and equal where all are positive. So it is the largest
        95 % lower limit (Clopper and Pearson) among the slots of highest log-odds that hold 20 to 90 % of the labelled,
        at least 15.
        """
        order = np.argsort(-self.log_odds(weights), kind="stable")
        hits, missed = np.cumsum(self.labelled[order]), np.cumsum(self.others[order])
        good = (hits >= max(MIN_LABELLED, _LEAST * hits[-1])) & (hits <= _MOST * hits[-1])
        return min(_HIGHEST, float(least_shares(hits[good], missed[good], _ERROR).max(initial=0.0)))

    def curvature(self, weights: Floats, c: float) -> Floats:
        """(width, width) of the penalised likelihood, expected."""
        return self._derivatives(weights, c)[1]

    def profile(self, c: float, *, known: bool) -> Profile:
        """The fits to several values of c, and how likely each is; only to this one if it is known."""
        shares = [c] if known else [min(_HIGHEST, odds / (1 + odds)) for odds in c / (1 - c) * _ODDS]
        fits, values, start = [], [], self.fit(shares[0])
        for share in shares:
            start = self.fit(share, start)
            fits.append(_unlabelled(start, share))
            values.append(self.likelihood(start, share) - self._price(start))
        chances = np.exp(np.array(values) - max(values))
        return Profile(np.array(shares), np.stack(fits), chances / chances.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Values of c, (s,), the weights of unlabelled slots fitted to each, (s, width), and how likely each is, (s,).

    Where the encoder is weak, hardly any c above the lower limit is less likely than another.
    """

    shares: Floats
    weights: Floats
    chances: Floats

    @property
    def best(self) -> float:
        """The most likely c."""
        return float(self.shares[self.chances.argmax()])

    def drawn(self, curvature: Floats, rng: np.random.Generator) -> Floats:
        """(B, width) weights drawn by how likely their c is, and by the curvature of their own likelihood."""
        chosen = rng.choice(len(self.shares), DRAWS, p=self.chances)
        spread = np.linalg.cholesky(np.linalg.inv(curvature))
        return np.asarray(self.weights[chosen] + np.einsum("ij,bj->bi", spread, rng.normal(size=(DRAWS, WIDTH))))

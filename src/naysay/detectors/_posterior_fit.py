"""Fit the posterior of scores: P(positive | x) by a logistic regression on labels, of which a share c is known.

P(slot is labelled | x) = c P(positive | x), where x is the score, and the score above the background of its list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import least_shares
from naysay.arrays import Floats, to_numpy
from naysay.checks import as_array, check_exact, first_bad, raise_invalid
from naysay.rng import rng_for

Mask = NDArray[np.bool_]
Whole = NDArray[np.int64]
FINE, TOO_FEW, NOT_TOLD_APART = range(3)  # codes of `PosteriorSummary.reason`
MIN_LABELLED = 15  # positives among the first slots, to estimate the labelled share

# Lists
_WINDOW = 0.4  # of a list: the length of its background
_FIRST = 0.2  # of a list: where its background begins, behind the positives that are expected
_LARGEST_SCORE = 1e100  # sums of larger scores would not be finite

# Curves
LEVELS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.96, 0.99, 1.0)  # quantiles of a feature, its knots: more where positives are
KNOTS, FEATURES = len(LEVELS), 2
WIDTH = 1 + FEATURES * KNOTS  # weights: a constant, and the height of each curve at its knots
PASSES = 2  # the first shows how many positives each list has, and so where its background begins
DRAWS = 60  # other weights that the labels allow, for the interval
_BINS = 48  # of a feature; the last one holds a thousandth of the slots
_BEND_PENALTY = 200.0  # of a change of slope, in deviations of the feature: curves are smooth
_HEIGHT_PENALTY = 0.1  # of a height: small, so that the fit is unique
_TOLERANCE = 1e-10

# The labelled share c
_CLEAR_GAIN = 2.0  # standard errors by which scores must tell labelled slots from others
_FEWEST_LABELLED, _MOST_LABELLED = 0.2, 0.9  # of the labelled slots are in the groups that bound c from below
_ERROR = 0.05  # of that bound: a 95 % lower limit
_LARGEST_C = 0.98  # with c = 1 no unlabelled slot would be positive
_ABOVE_LIMIT = 1.15  # how many times its lower limit c is at most, where a larger c is more likely
_TRIED_ODDS = 2.0 ** np.arange(-1, 6.5, 0.5)  # of c, as multiples of the odds of its lower limit

# Newton's method
_MAX_STEPS, _MAX_HALVINGS = 100, 40
_LEAST_GAIN = 1e-4  # of what a step promises: a step that gains less is halved (Armijo)


# ---- logistic regression --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """P(hit | x) = c / (1 + exp(-x . w)), with a normal prior of the weights w.

    Products are sums of NumPy's own loops: those of a BLAS depend on its threads.
    """

    design: Floats  # (m, w) x of each group of trials
    hits: Floats  # (m,) trials of each group that hit
    misses: Floats  # (m,)
    precision: Floats  # (w, w) of the prior
    centre: Floats  # (w,) of the prior

    def fit(self, start: Floats, *, tolerance: float, c: float = 1.0) -> Floats:
        """(w,) the weights of the largest posterior density; c is the chance of a hit where x . w is large.

        It stops where a step promises to gain less than `tolerance` of the objective.
        """
        weights, value = start, self.objective(start, c)
        for _ in range(_MAX_STEPS):
            gradient, curvature = self.derivatives(weights, c)
            step = np.linalg.solve(curvature, gradient)
            promised = float((gradient * step).sum()) / 2
            if promised <= tolerance * max(abs(value), 1.0):
                return weights
            for halving in range(_MAX_HALVINGS):
                length = 0.5**halving
                tried = weights + length * step
                value_there = self.objective(tried, c)
                if value_there >= value + _LEAST_GAIN * length * promised:
                    break
            else:
                return weights  # only rounding error is left
            weights, value = tried, value_there
        return weights

    def log_odds(self, weights: Floats) -> Floats:
        """(m,) x . w of each group."""
        return np.asarray(np.einsum("mw,w->m", self.design, weights))

    def likelihood(self, weights: Floats, c: float = 1.0) -> float:
        """The log-likelihood of hits and misses."""
        odds = self.log_odds(weights)
        log_hit = np.log(c) - np.logaddexp(0.0, -odds)
        log_miss = -np.logaddexp(0.0, odds) if c == 1 else np.log1p(-np.exp(log_hit))
        return float((self.hits * log_hit + self.misses * log_miss).sum())

    def objective(self, weights: Floats, c: float = 1.0) -> float:
        """The log-likelihood and the log-density of the prior."""
        away = weights - self.centre
        return self.likelihood(weights, c) - float(np.einsum("i,ij,j->", away, self.precision, away)) / 2

    def derivatives(self, weights: Floats, c: float = 1.0) -> tuple[Floats, Floats]:
        """(w,) the gradient of the objective, and (w, w) its expected curvature, positive definite."""
        positive = chance(self.log_odds(weights))
        rest = np.maximum(1 - c * positive, 1e-12)
        slope = self.hits * (1 - positive) - self.misses * c * positive * (1 - positive) / rest
        bend = (self.hits + self.misses) * c * positive * (1 - positive) ** 2 / rest
        prior = np.einsum("ij,j->i", self.precision, weights - self.centre)
        curvature = np.einsum("mi,mj->ij", self.design * bend[:, None], self.design) + self.precision
        return np.einsum("mi,m->i", self.design, slope) - prior, curvature


def chance(log_odds: Floats) -> Floats:
    """1 / (1 + exp(-log_odds)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * log_odds))


# ---- lists ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Candidates of some anchors, nearest first. `read_lists` checks and sorts what users pass."""

    scores: Floats  # (A, M) descending, NaN where a list has ended
    positives: Floats  # (A,) the score of one labelled positive of each anchor, NaN without one
    alike: Floats | None = None  # (A, M) the largest cosine to the anchor's labelled positives, NaN where unknown
    order: Whole | None = None  # (A, M) the places of the slots as users passed them; None: the same

    @property
    def filled(self) -> Mask:
        """(A, M): slots with a candidate."""
        return ~np.isnan(self.scores)

    def take(self, rows: slice | NDArray[Any]) -> Lists:
        """Some anchors."""
        return Lists(self.scores[rows], self.positives[rows], None if self.alike is None else self.alike[rows])

    def first(self, width: int) -> Lists:
        """The first candidates of each anchor."""
        return Lists(self.scores[:, :width], self.positives, None if self.alike is None else self.alike[:, :width])

    def nearest(self, k: int) -> Mask:
        """(A, M): the k nearest candidates of each anchor."""
        return self.filled & (np.arange(self.scores.shape[1]) < k)

    def labelled_inside(self, depth: int) -> Mask:
        """(A,): labelled positives that score as high as the first `depth` candidates of their list."""
        scores = self.scores[:, :depth]
        if not scores.shape[1]:
            return ~np.isnan(self.positives)
        last = np.where(np.isnan(scores[:, -1]), -np.inf, scores[:, -1])
        with np.errstate(invalid="ignore"):
            return np.asarray(self.positives >= last)

    def sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        """(A, M) values of the slots as users passed them, nearest first."""
        return values if self.order is None else np.take_along_axis(values, self.order, axis=1)

    def in_place(self, values: NDArray[Any]) -> NDArray[Any]:
        """(A, M) the inverse of `sorted`."""
        if self.order is None:
            return values
        unsorted = np.empty_like(values)
        np.put_along_axis(unsorted, self.order, values, axis=1)
        return unsorted

    def read_mask(self, parameter: str, mask: Any) -> Mask:
        """(A, M) the slots of a mask that a user passed which hold a candidate, nearest first."""
        values = as_array(parameter, to_numpy(mask))
        if values.shape != self.scores.shape or values.dtype != bool:
            raise_invalid(parameter, f"bool of shape {self.scores.shape}", f"{values.dtype} of shape {values.shape}")
        return np.asarray(self.sorted(values) & self.filled)


def read_lists(scores: Any, positive_scores: Any, alike: Any = None) -> Lists:
    """Check lists as users pass them: -inf and NaN mark slots without a candidate. Equal scores keep their order."""
    values = read_numbers("scores", scores, 2)
    values = np.where(values == -np.inf, np.nan, values)
    if np.isinf(values).any():
        raise_invalid("scores", "finite, or -inf or NaN where a slot is empty", first_bad(values, np.isinf(values)))
    rows = len(values)
    positives = np.full(rows, np.nan) if positive_scores is None else read_numbers("positive_scores", positive_scores)
    if positives.shape != (rows,):
        raise_invalid("positive_scores", f"of {rows} anchors, like `scores`", f"{len(positives)}")
    similar = None if alike is None else read_numbers("alike", alike, 2)
    if similar is not None and similar.shape != values.shape:
        raise_invalid("alike", f"of shape {values.shape}, like `scores`", f"shape {similar.shape}")
    return lists_of(values, positives, similar)


def lists_of(scores: Floats, positives: Floats, alike: Floats | None = None) -> Lists:
    """The lists of (A, M) finite scores, NaN in empty slots, in any order; unchecked."""
    with np.errstate(invalid="ignore"):
        in_order = (scores[:, 1:] <= scores[:, :-1]) | np.isnan(scores[:, 1:])
    order = None if in_order.all() else np.argsort(-scores, axis=1, kind="stable")

    def descending(values: Floats) -> Floats:
        return values if order is None else np.take_along_axis(values, order, axis=1)

    return Lists(
        scores=descending(np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)),
        positives=np.clip(_finite_or_nan(positives), -_LARGEST_SCORE, _LARGEST_SCORE),
        alike=None if alike is None else descending(_finite_or_nan(alike)),
        order=order,
    )


def read_numbers(parameter: str, values: Any, dimensions: int = 1) -> Floats:
    """Numbers of one or two dimensions, checked, as float64."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim != dimensions or array.dtype.kind not in "iuf":
        shape = "(A, M)" if dimensions == 2 else "(A,)"
        raise_invalid(parameter, f"numbers of shape {shape}", f"{array.dtype} of shape {array.shape}")
    check_exact(parameter, array)
    return array.astype(np.float64) + 0.0  # -0.0 becomes 0.0


def _finite_or_nan(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)


def mean_of(values: Floats, mask: Mask) -> float:
    """The mean over a mask; 0 if it is empty."""
    return float(values[mask].sum() / max(1, np.count_nonzero(mask)))


def backgrounds(scores: Floats, expected: Floats | None = None, length: int = 0) -> Floats:
    """(A,) the mean score of some candidates of each list that are hardly positives: two fifths of it, in a row.

    They are the last ones, or those behind the first fifth and as many more as are expected to be positives, (A,). An
    anchor with many positives has them at its first ranks, and with a fixed place its background would be nearer.

    A list of fewer than `length` candidates is one of that length whose last ones are missing: its background is at the
    same ranks, as far as it reaches.
    """
    filled = ~np.isnan(scores)
    count = filled.sum(axis=1)
    whole = np.maximum(count, length)
    window = np.maximum((_WINDOW * whole).astype(np.int64), 1)
    start = np.maximum(whole - window, 0)
    if expected is not None:
        start = np.minimum(start, (_FIRST * whole + expected).astype(np.int64))
    stop = np.minimum(start + window, count)
    start = np.minimum(start, stop)
    sums = np.zeros((len(scores), scores.shape[1] + 1))
    np.cumsum(np.where(filled, scores, 0.0), axis=1, out=sums[:, 1:])
    rows = np.arange(len(scores))
    return np.asarray((sums[rows, stop] - sums[rows, start]) / np.maximum(stop - start, 1))


# ---- curves ---------------------------------------------------------------------------------------------


def curves(features: list[Floats], knots: Floats, weights: Floats) -> Floats:
    """The sum of a constant and of one piecewise linear curve of each feature, constant outside of its knots."""
    heights = weights[1:].reshape(len(knots), -1)
    total = np.full(features[0].shape, weights[0])
    for feature, places, values in zip(features, knots, heights, strict=True):
        total += np.interp(feature, places, values)
    return total


def expected_positives(scores: Floats, level: Floats, knots: Floats, weights: Floats) -> Floats:
    """(A,) how many candidates of each list are expected to be positive, by the curves of a pass."""
    odds = curves([scores, scores - level[:, None]], knots, weights)
    return np.asarray(np.nansum(chance(odds), axis=1))


def _knots_of(feature: Floats) -> Floats:
    """(knots,) ascending quantiles of a feature, a little apart where they would be equal."""
    quantiles = np.quantile(feature, LEVELS)
    apart = max(float(quantiles[-1] - quantiles[0]), abs(float(quantiles[-1])), 1e-9) * 1e-6
    steps = apart * np.arange(KNOTS)
    return np.asarray(np.maximum.accumulate(quantiles - steps) + steps)


def _hats(feature: Floats, knots: Floats) -> Floats:
    """(n, knots) the share of each knot in the height of a curve."""
    x = np.clip(feature, knots[0], knots[-1])
    place = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    part = (x - knots[place]) / (knots[place + 1] - knots[place])
    shares = np.zeros((len(x), len(knots)))
    rows = np.arange(len(x))
    shares[rows, place] = 1 - part
    shares[rows, place + 1] = part
    return shares


def _penalty_of(features: list[Floats], knots: Floats) -> Floats:
    """(width, width) the penalty of changes of slope, in deviations of the feature, and a small one of all heights."""
    matrix = _HEIGHT_PENALTY * np.eye(WIDTH)
    matrix[0, 0] = 1e-9
    for place, (feature, points) in enumerate(zip(features, knots, strict=True)):
        steps = np.diff(points) / (float(feature.std()) or 1.0)
        slopes = np.diff(np.eye(KNOTS), axis=0) / np.maximum(steps, 1e-3)[:, None]
        bends = np.diff(slopes, axis=0)
        part = slice(1 + place * KNOTS, 1 + (place + 1) * KNOTS)
        matrix[part, part] += _BEND_PENALTY * np.einsum("bi,bj->ij", bends, bends)
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Slots of about the same features as one trial each, so that a fit costs the same for any number of anchors.

    A labelled slot is a hit; the design is a one, and the shares of the knots.
    """

    trials: Logistic
    knots: Floats  # (2, knots) of the curves

    @staticmethod
    def of(features: list[Floats], n_labelled: int) -> _Cells:
        """Of features (n,); the last `n_labelled` slots are the labelled ones."""
        levels = 1 - np.geomspace(1, 1e-3, _BINS)
        keys = np.zeros(len(features[0]), np.int64)
        for feature in features:
            keys = keys * _BINS + np.searchsorted(np.quantile(feature, levels[1:]), feature, side="right")
        slots = np.bincount(keys, minlength=_BINS ** len(features))
        used = slots > 0
        cell, slots = (np.cumsum(used) - 1)[keys], slots[used]
        labelled = np.bincount(cell[-n_labelled:], minlength=len(slots)).astype(np.float64)
        knots = np.stack([_knots_of(feature) for feature in features])
        means = [np.bincount(cell, feature) / slots for feature in features]
        hats = [_hats(mean, points) for mean, points in zip(means, knots, strict=True)]
        design = np.concatenate([np.ones((len(slots), 1)), *hats], axis=1)
        penalty = _penalty_of(features, knots)
        return _Cells(Logistic(design, labelled, slots - labelled, penalty, np.zeros(WIDTH)), knots)

    def fit(self, c: float, start: Floats | None = None) -> Floats:
        """(width,) the weights where labelled is c times positive. With c = 1, an ordinary logistic regression."""
        if start is None:
            n_labelled = self.trials.hits.sum()
            share = min(n_labelled / c / (n_labelled + self.trials.misses.sum()), 0.9)
            start = np.zeros(WIDTH)
            start[0] = np.log(share / (1 - share))
        return self.trials.fit(start, c=c, tolerance=_TOLERANCE)

    def gain(self, weights: Floats) -> float:
        """The log-likelihood of an ordinary fit above that of a constant, in standard errors of what chance gives."""
        n = self.trials.hits.sum() + self.trials.misses.sum()
        share = self.trials.hits.sum() / n
        constant = n * (share * np.log(share) + (1 - share) * np.log1p(-share)) if share < 1 else 0.0
        free = WIDTH - 1
        return float((2 * (self.trials.likelihood(weights) - constant) - free) / np.sqrt(2 * free))

    def lower_limit(self, weights: Floats) -> float:
        """P(labelled | positive), or 0 if there are too few labelled.

        It is at least the labelled share of any group of slots, and equal where all are positive. So it is the largest
        95 % lower limit (Clopper and Pearson) among the slots of highest log-odds that hold 20 to 90 % of the labelled,
        at least 15.
        """
        order = np.argsort(-self.trials.log_odds(weights), kind="stable")
        hits, missed = np.cumsum(self.trials.hits[order]), np.cumsum(self.trials.misses[order])
        enough = hits >= max(MIN_LABELLED, _FEWEST_LABELLED * hits[-1])
        group = enough & (hits <= _MOST_LABELLED * hits[-1])
        limits = least_shares(hits[group], missed[group], _ERROR)
        return min(_LARGEST_C, float(limits.max(initial=0.0)))

    def profile(self, c: float, *, known: bool) -> _Profile:
        """The fits to several values of c, and how likely each is; only to this one if it is known."""
        shares = [c] if known else [min(_LARGEST_C, odds / (1 + odds)) for odds in c / (1 - c) * _TRIED_ODDS]
        weights = self.fit(shares[0])
        fits, values = [], []
        for share in shares:
            weights = self.fit(share, weights)
            fits.append(_of_unlabelled(weights, share))
            values.append(self.trials.objective(weights, share))
        chances = np.exp(np.array(values) - max(values))
        return _Profile(np.array(shares), np.stack(fits), chances / chances.sum())


class _Profile(NamedTuple):
    """Values of c, (s,), the weights of unlabelled slots fitted to each, (s, width), and how likely each is, (s,)."""

    shares: Floats
    weights: Floats
    chances: Floats

    def drawn(self, curvature: Floats, rng: np.random.Generator) -> Floats:
        """(DRAWS, width) weights drawn by how likely their c is, and by the curvature of their own likelihood."""
        chosen = rng.choice(len(self.shares), DRAWS, p=self.chances)
        spread = np.linalg.cholesky(np.linalg.inv(curvature))
        return np.asarray(self.weights[chosen] + np.einsum("ij,bj->bi", spread, rng.normal(size=(DRAWS, WIDTH))))


def _of_unlabelled(weights: Floats, c: float) -> Floats:
    """The weights of an unlabelled slot: its odds of being positive are those of any slot, times 1 - c."""
    moved = weights.copy()
    moved[0] += np.log1p(-c)
    return moved


# ---- the fit --------------------------------------------------------------------------------------------

_NONE = np.zeros(0)


class Fit(NamedTuple):
    """The posterior of scores, or why there is none."""

    code: int  # 0, or why nothing was fitted
    labelled: int  # labelled positives in the lists
    gain: float = 0.0  # the log-likelihood above that of a constant, in standard errors of what chance gives
    c: float = np.nan  # P(labelled | positive)
    knots: Floats = _NONE  # (passes, 2, knots) of the curves
    weights: Floats = _NONE  # (passes, width) a constant, and the heights of the curves at their knots
    draws: Floats = _NONE  # (B, width) other weights of the last pass that the labels allow
    levels: Floats = _NONE  # (A,) the background of each list


def fit_scores(lists: Lists, depth: int, seed: int, c: float | None = None) -> Fit:
    """Fit to the first `depth` candidates of each list and to the labelled positives that score as high.

    c, P(labelled | positive), is its lower limit, or up to 15 % more where that is more likely, unless it is known.
    """
    scores = lists.scores[:, :depth]
    labelled = lists.labelled_inside(depth)
    n_labelled = int(labelled.sum())
    if n_labelled < MIN_LABELLED:
        return Fit(TOO_FEW, n_labelled)
    if np.isnan(scores).all():
        return Fit(NOT_TOLD_APART, n_labelled)
    filled = ~np.isnan(scores)
    own = lists.positives[labelled]
    expected = None
    knots: list[Floats] = []
    weights: list[Floats] = []
    for place in range(PASSES):
        level = backgrounds(scores, expected)
        heights = (scores - level[:, None])[filled]
        features = [np.append(scores[filled], own), np.append(heights, own - level[labelled])]
        cells = _Cells.of(features, n_labelled)
        ordinary = cells.fit(1.0)
        gain = cells.gain(ordinary)
        chosen_c = cells.lower_limit(ordinary) if c is None else c
        if gain < _CLEAR_GAIN or not chosen_c > 0:
            return Fit(NOT_TOLD_APART, n_labelled, gain)
        if place == PASSES - 1:
            profile = cells.profile(chosen_c, known=c is not None)
            most_likely = float(profile.shares[profile.chances.argmax()])
            chosen_c = max(chosen_c, min(most_likely, _ABOVE_LIMIT * chosen_c, _LARGEST_C))
        fitted = cells.fit(chosen_c)
        knots.append(cells.knots)
        weights.append(_of_unlabelled(fitted, chosen_c))
        expected = expected_positives(scores, level, knots[-1], weights[-1])
    curvature = cells.trials.derivatives(fitted, chosen_c)[1]
    draws = profile.drawn(curvature, rng_for(seed, 1))
    return Fit(FINE, n_labelled, gain, chosen_c, np.stack(knots), np.stack(weights), draws, level)

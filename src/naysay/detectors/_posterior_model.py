"""The posterior of scores: its fit to labels, and what the fitted model says of candidates, item vectors and sets.

P(slot is labelled | x) = c P(positive | x), where x is the score, and the score above the background of its list.
P(positive | x) is a logistic regression on labels, of which a share c is known.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE, Z, least_shares, most_share
from naysay._state import Entry
from naysay.arrays import Floats, to_numpy
from naysay.checks import as_array, check_exact, first_bad, public, raise_invalid
from naysay.detectors.rate import RateEstimate
from naysay.rng import rng_for

Mask = NDArray[np.bool_]
Whole = NDArray[np.int64]
FINE, TOO_FEW, NOT_TOLD_APART = range(3)  # codes of `PosteriorSummary.reason`
MIN_LABELLED = 15  # positives among the first slots, to estimate the labelled share


# ---- logistic regression --------------------------------------------------------------------------------

_MAX_STEPS, _MAX_HALVINGS = 100, 40
_LEAST_GAIN = 1e-4  # of what a step promises: a step that gains less is halved (Armijo)


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

_WINDOW = 0.4  # of a list: the length of its background
_FIRST = 0.2  # of a list: where its background begins, behind the positives that are expected
_LARGEST_SCORE = 1e100  # sums of larger scores would not be finite


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


# ---- the model -----------------------------------------------------------------------------------------

LARGEST = 1 - 2.0**-24  # posterior, in 32 bits: a threshold of 1 drops nothing, and log-odds are finite
_LARGEST_ODDS = 600.0  # log-odds: the exponential is finite
_BLOCK = 1 << 15  # slots at a time
_LAST_RANKS = 10  # of a list: their mean posterior holds behind it
_LONG_ENOUGH = 0.8  # of the typical length: a shorter list does not reach the ranks of its background


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted posterior.

    logit p = constant + curve(score) + curve(score - background)    P(an unlabelled candidate is positive)
    logit q = slope (logit p + log ratio(v)) + shift                 with the evidence v of item vectors
    """

    knots: Floats  # (passes, 2, knots) of the curves. The first pass finds the backgrounds of the second
    weights: Floats  # (passes, width) the constant, and the heights of the curves at their knots
    c: float  # P(labelled | positive)
    depth: int  # how many candidates of a list are fitted
    error: float  # the error of the log-share that no draw shows: that of the model itself, and that of c
    draws: Floats  # (B, width + 2) other weights of the last pass, shifts and slopes that the labels allow
    level: float  # the typical background of a list, for short rows of unknown anchors
    length: int  # the typical number of candidates of a list that were fitted
    anchors: Whole  # (n,) the anchors whose lists were fitted, ascending; empty if they are unknown
    levels: Floats  # (n,) the backgrounds of their lists
    beyond: float  # the posterior of candidates behind the lists that were fitted
    scale: Floats  # (4,) mean and deviation of scores, mean and deviation of positives' scores
    similar: Floats  # (6,) the regression of similarities; empty without item vectors
    edges: Floats  # (b - 1,) of the bins of v; empty without item vectors
    ratios: Floats  # (b,) the log-ratio of densities in each bin, ascending
    shift: float  # what a check of the labels, or labels of candidates, add to the log-odds
    slope: float  # by what labels of candidates multiply the log-odds
    reach: Floats  # (2,) times as many false negatives that other evidence demands (<= 1), and allows

    @staticmethod
    def of(fit: Fit, lists: Lists, depth: int, anchors: Whole | None = None) -> Model:
        """Without the evidence of item vectors. `anchors` (A,) are the ids of the lists, if they are known."""
        no_shift = np.tile([0.0, 1.0], (len(fit.draws), 1))
        sizes = lists.first(depth).filled.sum(axis=1)
        shown = np.flatnonzero(sizes)  # a list without candidates has no background
        ids = np.zeros(0, np.int64) if anchors is None else anchors[shown]
        ids, first = np.unique(ids, return_index=True)
        variance_of_c = (1 - fit.c) / (_C_RESTS_ON * fit.labelled)
        model = Model(
            knots=fit.knots,
            weights=fit.weights,
            c=fit.c,
            depth=depth,
            error=float(np.sqrt(MODEL_ERROR**2 + variance_of_c)),
            draws=np.concatenate([fit.draws, no_shift], axis=1),
            level=float(np.median(fit.levels[shown])),
            length=int(np.median(sizes[shown])),
            anchors=ids,
            levels=fit.levels[shown][first],
            beyond=0.0,
            scale=np.array([0.0, 1, 0, 1]),
            similar=np.zeros(0),
            edges=np.zeros(0),
            ratios=np.zeros(0),
            shift=0.0,
            slope=1.0,
            reach=np.ones(2),
        )
        return replace(model, beyond=beyond_of(model, lists, model.log_odds(lists)))

    def features(self, scores: Floats, levels: Floats | None = None) -> list[Floats]:
        """The score and the score above the background of the last pass, of the first candidates of each list.

        The backgrounds are `levels` (A,), as `learnt_levels` gives them, and those of the lists where these are NaN.
        Without levels, each list is complete, whatever its length.
        """
        length = 0 if levels is None else self.length
        expected: Floats | None = None
        for knots, weights in zip(self.knots[:-1], self.weights[:-1], strict=True):
            expected = expected_positives(scores, backgrounds(scores, expected, length), knots, weights)
        level = backgrounds(scores, expected, length)
        if levels is not None:
            level = np.where(np.isnan(levels), level, levels)
        return [scores, scores - level[:, None]]

    def learnt_levels(self, anchors: Whole, lists: Lists) -> Floats:
        """(A,) the backgrounds that the fit found: the anchor's, or the typical one; NaN for a list that shows its own.

        A list of an unknown anchor shows its own background if it is about as long as those that were fitted.
        """
        sizes = lists.first(self.depth).filled.sum(axis=1)
        levels = np.where(sizes >= _LONG_ENOUGH * self.length, np.nan, self.level)
        if len(self.anchors) and anchors.ndim == 1:
            place = np.minimum(np.searchsorted(self.anchors, anchors), len(self.anchors) - 1)
            levels = np.where(self.anchors[place] == anchors, self.levels[place], levels)
        return levels

    def log_odds(self, lists: Lists, levels: Floats | None = None) -> Floats:
        """(A, W) logit p of the first candidates; NaN where a list has ended. For `levels` see `features`."""
        scores = lists.scores[:, : self.depth]
        odds = np.empty(scores.shape)
        step = max(1, _BLOCK // max(1, scores.shape[1]))
        for start in range(0, len(odds), step):
            rows = slice(start, start + step)
            features = self.features(scores[rows], None if levels is None else levels[rows])
            odds[rows] = curves(features, self.knots[-1], self.weights[-1])
        return odds

    def vectors_count(self, odds: Floats) -> Mask:
        """(A, W): where similarities count: elsewhere not even the most similar candidate is likely to be positive."""
        if not len(self.ratios):
            return np.zeros(odds.shape, bool)
        most_similar = self.slope * (odds + self.ratios[-1]) + self.shift
        with np.errstate(invalid="ignore"):
            return np.asarray(most_similar >= np.log(_LEAST_POSTERIOR / (1 - _LEAST_POSTERIOR)))

    def evidence(self, odds: Floats, lists: Lists) -> Floats:
        """(A, W) the log-ratio of densities of each slot, 0 where there is no evidence, or where it does not count."""
        log_ratios = np.zeros(odds.shape)
        if lists.alike is None or not len(self.similar):
            return log_ratios
        scores, alike = lists.scores[:, : odds.shape[1]], lists.alike[:, : odds.shape[1]]
        known = self.vectors_count(odds) & ~np.isnan(alike + lists.positives[:, None] + scores)
        rows, columns = np.nonzero(known)
        v = alike[rows, columns] - predicted(self.similar, self.scale, scores[rows, columns], lists.positives[rows])
        log_ratios[rows, columns] = self.ratios[np.searchsorted(self.edges, v, side="right")]
        return log_ratios

    def of_odds(self, odds: Floats, lists: Lists) -> Floats:
        """(A, M) the posterior of all candidates from what `log_odds` returned, 0 where a list has ended."""
        posterior = np.full(lists.scores.shape, np.float64(np.float32(min(self.beyond, LARGEST))))
        width = odds.shape[1]
        step = max(1, _BLOCK // max(1, width))
        for start in range(0, len(posterior), step):
            rows = slice(start, start + step)
            raised = odds[rows] + self.evidence(odds[rows], lists.take(rows))
            posterior[rows, :width] = probability(self.slope * raised + self.shift)
        posterior[np.isnan(lists.scores)] = 0.0
        return posterior

    def of_lists(self, lists: Lists) -> Floats:
        """`of_odds` of the log-odds."""
        return self.of_odds(self.log_odds(lists), lists)

    def moved(self, shift: float, slope: float = 1.0) -> Model:
        """The same with the log-odds of the posterior multiplied by a slope, and more added."""
        odds_beyond = np.log(max(self.beyond, 1e-300)) - np.log1p(-min(self.beyond, LARGEST))
        beyond = float(probability(np.asarray(slope * odds_beyond + shift)))
        return replace(self, shift=slope * self.shift + shift, slope=slope * self.slope, beyond=beyond)

    def state(self) -> dict[str, Any]:
        """All of it: arrays and numbers."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: part.copy() if isinstance(part, np.ndarray) else part for name, part in values.items()}


MODEL_STATE = {
    **dict.fromkeys(("c", "error", "level", "beyond", "shift", "slope"), Entry()),
    **dict.fromkeys(("depth", "length"), Entry(whole=True)),
    "knots": Entry((PASSES, FEATURES, KNOTS)),
    "weights": Entry((PASSES, WIDTH)),
    "draws": Entry(("draws", WIDTH + 2)),
    "anchors": Entry(("anchors",), whole=True),
    "levels": Entry(("anchors",)),
    "scale": Entry((4,)),
    "similar": Entry(("terms",)),
    "edges": Entry(("edges",)),
    "ratios": Entry(("bins",)),
    "reach": Entry((2,)),
}


def model_of_state(parts: dict[str, NDArray[Any]]) -> Model:
    """The model from the entries of its state."""
    n_bins = len(parts["ratios"])
    for name, size in {"edges": max(0, n_bins - 1), "similar": TERMS if n_bins else 0}.items():
        if len(parts[name]) != size:
            raise_invalid(name, f"of shape ({size},), as there are {n_bins} ratios", f"shape {parts[name].shape}")
    values: dict[str, Any] = {name: part if part.ndim else part.item() for name, part in parts.items()}
    return Model(**values)


def probability(odds: Floats) -> Floats:
    """The probability of log-odds, below 1, rounded to 32 bits: thresholds mean the same in both."""
    exact = 1 / (1 + np.exp(-np.clip(odds, -_LARGEST_ODDS, _LARGEST_ODDS)))
    return np.asarray(np.minimum(exact, LARGEST).astype(np.float32).astype(np.float64))


def beyond_of(model: Model, lists: Lists, odds: Floats) -> float:
    """The mean posterior of the last ten ranks that are fitted."""
    last = (lists.nearest(model.depth) & ~lists.nearest(model.depth - _LAST_RANKS))[:, : odds.shape[1]]
    posterior = model.of_odds(odds, lists.first(odds.shape[1]))
    return float(posterior[last].mean()) if last.any() else float(posterior[~np.isnan(odds)].min(initial=1.0))


# ---- estimates of sets ----------------------------------------------------------------------------------

MODEL_ERROR = 0.15  # of the log-rate, where assumptions hold about: measured in benchmarks/results/coverage.json
_C_RESTS_ON = 0.5  # of the labelled positives, about: those among the slots that c rests on
_SELECTED_ERROR = (0.6, 0.3)  # more error of either end, where all of the posterior was left out
_DRAWN_SLOTS = 5_000  # at most, to see how other weights change the estimate
_VAGUE = 3.0  # times the lower end: from here on, an estimate has a note
_IMPURE = "even the highest scores may not be positives alone, so the share may be far lower"
_ASSUMPTIONS = (
    "labelled positives were labelled at random among the positives of their anchor, whatever their score",
    "some candidates of the highest scores are positives almost surely, and scores mean about the same for all anchors",
)


def posterior_rate(estimate: float, low: float, high: float, n: int) -> RateEstimate:
    """A rate by the posterior. A lower end far below the estimate has a note."""
    notes = (_IMPURE,) if low * _VAGUE < estimate else ()
    return RateEstimate("false negatives", estimate, low, high, CONFIDENCE, n, _ASSUMPTIONS, notes)


def rate_of(model: Model, lists: Lists, posterior: Floats, mask: Mask) -> RateEstimate:
    """The mean posterior of some slots, with a 95 % interval for their share of false negatives.

    Three errors add up, as squares of logs. The model's draws: those of their means that leave out 2.5 % at each end.
    The outcomes: the variance of each slot and that between anchors. The model itself, which no sample shows, and which
    is larger where slots of high posterior were left out: the estimate then rests on the others, and is worthless if
    the posterior is sharper than it says. Where other evidence allows more false negatives, or fewer, the interval
    reaches to that.
    """
    n = int(np.count_nonzero(mask))
    n_anchors = int(mask.any(axis=1).sum())
    if n == 0:
        return posterior_rate(0.0, 0.0, 1.0, 0)
    estimate = mean_of(posterior, mask)
    if estimate == 0:
        return posterior_rate(0.0, 0.0, most_share(0, n_anchors, 1 - CONFIDENCE), n_anchors)
    slots = mask.sum(axis=1)
    of_slots = np.where(mask, posterior * (1 - posterior), 0.0).sum()
    of_anchors = ((np.where(mask, posterior, 0.0).sum(axis=1) - estimate * slots) ** 2).sum()
    variance = float(of_slots + of_anchors) / (n * estimate) ** 2
    as_many_nearest = lists.filled & (np.arange(mask.shape[1]) < slots[:, None])
    left_in = min(1.0, estimate * n / float(posterior[as_many_nearest].sum()))
    ends = []
    for drawn, selected, sign, reach in zip(
        _drawn_ends(model, lists, mask), _SELECTED_ERROR, (-1, 1), model.reach, strict=True
    ):
        error = model.error + selected * (1 - left_in)
        spread = np.hypot(Z * np.sqrt(variance + error**2), drawn)
        ends.append(min(1.0, estimate * float(reach * np.exp(sign * spread))))
    return posterior_rate(estimate, ends[0], ends[1], n_anchors)


def _drawn_ends(model: Model, lists: Lists, mask: Mask) -> tuple[float, float]:
    """How far below and above the log of the mean posterior 95 % of the draws are, by at most 5,000 of the slots."""
    if not len(model.draws):
        return 0.0, 0.0
    rows = np.flatnonzero(mask.any(axis=1))
    rows = rows[:: max(1, -(-int(np.count_nonzero(mask)) // _DRAWN_SLOTS))]
    part, chosen = lists.take(rows).first(model.depth), mask[rows][:, : model.depth]
    if not chosen.any():
        return 0.0, 0.0
    features = model.features(part.scores)
    evidence = model.evidence(curves(features, model.knots[-1], model.weights[-1]), part)[chosen]
    features = [feature[chosen] for feature in features]
    n_behind = int(mask[rows][:, model.depth :].sum())
    n = int(np.count_nonzero(mask[rows]))

    def mean(weights: Floats, shift: float, slope: float) -> float:
        odds = curves(features, model.knots[-1], weights) + evidence
        return float((probability(slope * odds + shift).sum() + n_behind * model.beyond) / n)

    centre = mean(model.weights[-1], model.shift, model.slope)
    means = [mean(draw[:WIDTH], model.shift + draw[WIDTH], model.slope * draw[WIDTH + 1]) for draw in model.draws]
    logs = np.log(np.maximum(means, 1e-12)) - np.log(max(centre, 1e-12))
    low, high = np.quantile(logs, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return min(0.0, float(low)), max(0.0, float(high))


# ---- evidence of item vectors ---------------------------------------------------------------------------

TERMS = 6  # of the regression of similarities on scores
_FEWEST_KNOWN = 200  # similarities for that regression
_FARTHEST = 1e3  # deviations: scores beyond are clipped in it
_BIN_LEVELS = (*(n / 10 for n in range(1, 10)), 0.95, 0.975, 0.99)  # of the similarities: finer where positives are
_LEAST_POSTERIOR = 0.02  # of the most similar candidate: below it similarities do not count
_EM_STEPS, _EM_TOLERANCE = 200, 1e-8
_PRIORS = 500  # groups of slots of about the same prior
_ROBUST_SLOTS = 50_000  # at most in a robust regression
_ROBUST_STEPS = 8
_NORMAL_MAD = 1.4826  # deviation / median absolute deviation of a normal distribution


def terms(scale: Floats, scores: Floats, positives: Floats) -> Floats:
    """(n, 6) 1, s, pos, s pos, s^2, pos^2, of standardised scores and positives' scores."""
    s = np.clip((scores - scale[0]) / scale[1], -_FARTHEST, _FARTHEST)
    pos = np.clip((positives - scale[2]) / scale[3], -_FARTHEST, _FARTHEST)
    return np.stack([np.ones(len(s)), s, pos, s * pos, s * s, pos * pos], axis=1)


def predicted(weights: Floats, scale: Floats, scores: Floats, positives: Floats) -> Floats:
    """(n,) the similarity that scores alone predict."""
    return np.asarray(np.einsum("nt,t->n", terms(scale, scores, positives), weights))


@dataclass(frozen=True, slots=True, eq=False)
class Similar:
    """How similar candidates are to a labelled positive, beyond what scores predict."""

    known: Mask  # (A, W): candidates that are fitted, and whose similarity and whose anchor's positive are known
    scale: Floats  # (4,) of scores and positives' scores
    weights: Floats  # (6,) of the regression of similarities on scores
    edges: Floats  # (b - 1,) of the bins
    bins: NDArray[np.intp]  # (n,) of what the similarity is above its regression
    v: Floats  # (A, M) the same in deviations of their stratum of ranks, by a robust regression; NaN where unknown

    @staticmethod
    def of(lists: Lists, depth: int) -> Similar | None:
        """Regress similarities on the score, the positive's score, product and squares. None if too few are known."""
        if lists.alike is None:
            return None
        whole = lists.filled & ~np.isnan(lists.alike + lists.positives[:, None])
        known = whole[:, :depth]
        if known.sum() < _FEWEST_KNOWN:
            return None
        values, scores = lists.alike[:, :depth][known], lists.scores[:, :depth][known]
        positives = np.broadcast_to(lists.positives[:, None], known.shape)[known]
        scale = np.array([n for side in (scores, positives) for n in (float(side.mean()), float(side.std()) or 1.0)])
        weights = regression(terms(scale, scores, positives), values)
        v = values - predicted(weights, scale, scores, positives)
        edges = np.unique(np.quantile(v, _BIN_LEVELS))
        bins = np.searchsorted(edges, v, side="right")
        return Similar(known, scale, weights, edges, bins, _standardised(lists, lists.alike, whole, scale))


def regression(design: Floats, values: Floats, weights: Floats | None = None) -> Floats:
    """(6,) least squares by normal equations, with a ridge as small as rounding."""
    factors = np.ones(len(values)) if weights is None else weights
    weighted = design * factors[:, None]
    matrix = np.einsum("ni,nj->ij", weighted, design)
    ridge = 1e-9 * max(1.0, factors.sum()) * np.eye(TERMS)
    return np.linalg.solve(matrix + ridge, np.einsum("ni,n->i", weighted, values))


def _standardised(lists: Lists, alike: Floats, known: Mask, scale: Floats) -> Floats:
    """(A, M) similarities above what scores predict, robustly, in deviations of their stratum of ranks; NaN unknown."""
    values, scores = alike[known], lists.scores[known]
    positives = np.broadcast_to(lists.positives[:, None], known.shape)[known]
    sample = slice(None, None, len(scores) // _ROBUST_SLOTS + 1)
    design = terms(scale, scores[sample], positives[sample])
    weights = np.ones(len(design))
    for _ in range(_ROBUST_STEPS):
        coefficients = regression(design, values[sample], weights)
        residuals = values[sample] - np.einsum("nt,t->n", design, coefficients)
        width = _spread(-residuals, 0.0)
        if width:  # positives, which are more similar than predicted, weigh less
            weights = np.where(residuals > width, width / np.maximum(residuals, 1e-300), 1.0)
    v = np.full(alike.shape, np.nan)
    v[known] = values - predicted(coefficients, scale, scores, positives)
    for first, last in zip(_STRATA, (*_STRATA[1:], alike.shape[1]), strict=True):
        stratum = v[:, first:last]
        known_values = stratum[~np.isnan(stratum)]
        if len(known_values):
            centre = float(np.median(known_values))
            v[:, first:last] = (stratum - centre) / (_spread(-known_values, -centre) or 1.0)
    return v


def _spread(values: Floats, centre: float) -> float:
    """The deviation of values above a centre, by their median; 0 if there are none."""
    above = values[values > centre] - centre
    return _NORMAL_MAD * float(np.median(above)) if len(above) else 0.0


def with_evidence(model: Model, similar: Similar, odds: Floats) -> Model:
    """The model with the ratio of densities of v among positives and others, as a monotone histogram.

    EM with the posterior of scores held fixed gives both densities.
    """
    prior = probability(model.slope * odds[:, : similar.known.shape[1]][similar.known] + model.shift)
    ratios = _ratios(prior, similar.bins, len(similar.edges) + 1)
    return replace(model, scale=similar.scale, similar=similar.weights, edges=similar.edges, ratios=ratios)


def _ratios(prior: Floats, bins: NDArray[np.intp], n_bins: int) -> Floats:
    """(n_bins,) the log-ratio of the two densities, ascending: EM with a fixed prior, then isotonic.

    Slots of about the same prior count as one: the n slots are sorted by prior, in 500 groups.
    """
    from scipy.optimize import isotonic_regression

    smooth = np.maximum(np.bincount(bins, minlength=n_bins), 1) / len(bins)  # one slot's worth of what all look like
    group = np.empty(len(bins), np.intp)
    group[np.lexsort((bins, prior))] = np.arange(len(bins)) * _PRIORS // len(bins)
    slots = np.bincount(group * n_bins + bins, minlength=_PRIORS * n_bins).reshape(_PRIORS, n_bins)
    mean = (np.bincount(group, prior, _PRIORS) / np.maximum(slots.sum(axis=1), 1))[:, None]
    ratio = np.ones(n_bins)
    for _ in range(_EM_STEPS):
        raised = mean * ratio
        posterior = raised / np.maximum(raised + 1 - mean, 1e-300)
        positive = (slots * posterior).sum(axis=0) + smooth
        other = (slots * (1 - posterior)).sum(axis=0) + smooth
        before, ratio = ratio, (positive / positive.sum()) / (other / other.sum())
        if np.abs(np.log(ratio) - np.log(before)).max() < _EM_TOLERANCE:
            break
    return np.log(isotonic_regression(ratio, weights=other / other.sum()).x)


# ---- the check of labels ----------------------------------------------------------------------------

_STRATA = (0, 5, 10, 20, 30)  # first ranks: similarities are compared with those of about the same rank
_BACKGROUND_RANKS = (30, 50)
_LIMITS = (1.5, 2.0, 2.5)  # deviations from which a similarity is unusual
_ENOUGH = 3.0  # times the background's share of unusual ones: below it they do not tell positives from others
_FIXED_POINT_STEPS = 30
_LEAST_EXCESS = 0.5  # of the target: less than this does not correct
_CLEAR = 1.3  # times: the least ratio of the two estimates that corrects
_CORRECTIONS = 2  # at most
_LARGEST_SHIFT = 40.0  # log-odds


def tail_of(v: Floats, posterior: Floats, k: int) -> tuple[float, float, float]:
    """The false share of the nearest k by candidates that are unusually similar to a positive; it does not use c.

    For t = 1.5, 2 and 2.5: f is the share of v > t in the nearest k, f0 that in the background, a the share of the
    posterior mass of the nearest k that has v > t. The estimate is the median of (f - f0) / (a - f0) where a is at
    least 3 f0, after f0 was freed of the positives that the posterior expects there in proportion. A wrong scale of the
    posterior cancels. Returns the estimate, NaN if unknown; f - f0 at t = 2, the excess; and its 95 % lower limit over
    anchors.
    """
    columns, known = np.arange(v.shape[1]), ~np.isnan(v)
    near, far = known & (columns < k), known & (columns >= _BACKGROUND_RANKS[0]) & (columns < _BACKGROUND_RANKS[1])
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
        ratio = behind / far.sum() / (mass / near.sum())
        share, others = 0.0, f0
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


@final
@public
@dataclass(frozen=True, slots=True)
class LabelCheck:
    """Whether labelled positives look like a random part of all positives, by item vectors.

    Args:
        by_labels: The false share of the nearest k by the posterior as fitted.
        by_vectors: The same by candidates that are unusually similar to a labelled positive. NaN: cannot be told.
        excess: The share of unusually similar candidates among the nearest k, above that at ranks 31 to 50.
        low: The 95 % lower limit of the excess over anchors.
        shift: What was added to the log-odds of the posterior, 0 if nothing.
    """

    by_labels: float
    by_vectors: float
    excess: float
    low: float
    shift: float

    @property
    def verdict(self) -> str:
        """The result in words."""
        if np.isnan(self.by_vectors):
            return "labels could not be checked"
        if self.shift:
            return "corrected: labels are not random, by item vectors"
        if self.by_vectors > self.by_labels and self.low > 0:
            return "not corrected, but item vectors show more: label about 100 candidates to be sure"
        return "labels agree with item vectors"


def with_item_vectors(model: Model, lists: Lists, k: int, target: float) -> tuple[Model, Floats, LabelCheck | None]:
    """The model with the evidence of item vectors, its posterior, and how labels compare with an estimate without c.

    Where that one is clearly larger, the posterior is shifted so that its mean equals it. Clearly: 1.3 times as large
    at the lower limit of the excess, which is at least half the target. Then the evidence is fitted again, with the
    shifted posterior as its prior: with too small a prior, EM had put too much of the positives among the most similar.
    Twice at most. The interval reaches to both estimates, shifted or not. Without item vectors the check is None.
    """
    similar, odds = Similar.of(lists, model.depth), model.log_odds(lists)
    if similar is None:
        return model, model.of_odds(odds, lists), None
    model = with_evidence(model, similar, odds)
    model = replace(model, beyond=beyond_of(model, lists, odds))
    nearest = lists.nearest(k)
    posterior = model.of_odds(odds, lists)
    by_labels = mean_of(posterior, nearest)
    tail, excess, low = tail_of(similar.v, posterior, k)
    by_vectors, shift = tail, 0.0
    for _ in range(_CORRECTIONS):
        clearly_larger = tail * low > _CLEAR * mean_of(posterior, nearest) * excess  # False if NaN
        if not (clearly_larger and low >= _LEAST_EXCESS * target):
            break
        step = _shift_to(posterior[nearest], tail)
        by_vectors, shift = tail, shift + step
        model = with_evidence(model.moved(step), similar, odds)
        posterior = model.of_odds(odds, lists)
        tail, excess, low = tail_of(similar.v, posterior, k)
    estimate = mean_of(posterior, nearest)
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
    rows = lists.labelled_inside(depth)
    apart, total = (p * sign)[rows].sum(axis=1), float(p[rows].sum())
    if not total > 0:
        return 1.0, 1.0
    return 1 + float(apart.sum()) / total, float(np.sqrt(((apart - apart.mean()) ** 2).sum())) / total


def _shift_to(posterior: Floats, mean: float) -> float:
    """What must be added to the log-odds of posteriors for this mean."""
    from scipy.optimize import brentq

    odds = np.log(posterior) - np.log1p(-posterior)
    return float(brentq(lambda shift: float(probability(odds + shift).mean()) - mean, 0.0, _LARGEST_SHIFT, xtol=1e-13))


# ---- the correction by labelled candidates ----------------------------------------------------------

_PRIOR_DEVIATIONS = np.array([3.0, 0.3])  # of the shift and of the slope
_FLATTEST = 0.1  # slope
_NEWTON_TOLERANCE = 1e-18  # of the objective: steps of about 1e-9


def corrected(model: Model, posterior: Floats, false: Mask, seed: int) -> Model:
    """The model corrected by labels (n,) of candidates, drawn at random among the nearest k, with this posterior (n,).

    logit q becomes slope logit q + shift, by maximum likelihood with normal priors around 1 and 0 (Platt). The draws
    are those of slope and shift that these labels allow.
    """
    odds = np.log(np.maximum(posterior, 1e-12)) - np.log1p(-posterior)
    centre = float(odds.mean())
    design = np.stack([np.ones(len(odds)), odds - centre], axis=1)
    prior = np.array([centre, 1.0])
    hits, misses = false.astype(np.float64), (~false).astype(np.float64)
    labels = Logistic(design, hits, misses, np.diag(_PRIOR_DEVIATIONS**-2), prior)
    fitted = labels.fit(prior, tolerance=_NEWTON_TOLERANCE)
    spread = np.linalg.cholesky(np.linalg.inv(labels.derivatives(fitted)[1]))
    drawn = fitted + np.einsum("ij,bj->bi", spread, rng_for(seed, 2).normal(size=(DRAWS, 2)))
    slopes = np.maximum(drawn[:, 1], _FLATTEST)
    slope = max(float(fitted[1]), _FLATTEST)
    after = model.moved(float(fitted[0]) - slope * centre, slope)
    # Of the model before: slope (slope' x + shift') + shift, as a factor and a term of the model after.
    shifts = slopes * model.shift + drawn[:, 0] - slopes * centre - after.shift
    weights = np.tile(model.weights[-1], (DRAWS, 1))
    draws = np.concatenate([weights, shifts[:, None], slopes[:, None] / slope], axis=1)
    return replace(after, draws=draws, error=MODEL_ERROR, reach=np.ones(2))

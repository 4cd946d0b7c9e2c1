"""Probes of a model, and the learning curve fitted to them: mu'(t) = start + (end - start)(1 - e^(-(t - wait) / tau)).

It is `start` up to the step `wait`, which is 0 unless the probes contradict that.

A probe is the AUC of the model's scores over uniform negatives. An AUC of c effective comparisons is treated as c coin
tosses with chance Phi(mu'(t) / sqrt 2), and the curve is the maximum-likelihood one. Least squares on the separations
sqrt(2) Phi^-1(AUC) would be nearly the same for moderate AUCs, and undefined for an AUC of 1, which small probes of
good models have.

With t in units of the last probe, u = (t - wait) / (last - wait), the curve is written start + rise g(u), where

    g(u) = (1 - e^(-rate u)) / (1 - e^(-rate))        rate = (last - wait) / tau

so rise is the observed increase and rate how much it has slowed down. rate 0 is a straight line: end and tau are
infinite, but nothing is singular. At rate 1 the last probe is at tau, 63 % of the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, raise_invalid
from naysay.quantity.separation import Floats

MAX_SEPARATION = 8.0  # beyond it an AUC differs from 1 by less than 1e-8
RISE, RATE = 1, 2  # places in Fit.numbers; the start is at 0
_RATES = (-16.0, -4.0, -1.0, *np.geomspace(0.1, 300, 30).tolist())  # the search begins at the best of them
_GAIN = 6.63  # chi-square quantile: a start or a wait that is not 0 gains more by chance in 1 % of curves
_BEND = 2.33  # normal quantile: neighbouring residuals agree more by chance in 1 % of curves
_SCATTER = 2.0  # from which on a late start is looked for
_TRIES = 100
MIN_STEPS = 5  # with a probe: at most three numbers are fitted, which leaves two degrees of freedom


@dataclass(frozen=True, slots=True)
class Probe:
    """The summary of a probe; the scores are not stored."""

    auc: float  # the mean over rows of the share of a row's negatives below its positive; a tie counts one half
    error: float  # the standard error of auc: the standard deviation of the rows' shares over sqrt(rows)
    rows: int  # rows with at least one negative
    # the effective number of independent comparisons, auc (1 - auc) / error^2, at least one for each row and at
    # most one for each slot
    comparisons: float


def probe(positive: Any, negatives: Any, mask: Any = None) -> Probe:
    """Compute the AUC of n positives, each against the m negatives of its own row.

    Within rows, not pooled: the paper's AUC is P(A) at k = 1, the chance that a positive is above a negative *of the
    same sample*. InfoNCE never compares two anchors, so a score that is shifted for one anchor changes nothing it
    learns, but would change a pooled AUC. Every row has the same weight, however many slots it has.

    Rows are the independent units: negatives of one row share a positive, so 8 of them count less than 8 rows
    (`comparisons`). An AUC of exactly 0 or 1 has no spread, and counts one comparison for each row.

    Scores of slots that the mask leaves out are ignored. Cost: O(n m), and 9 bytes a slot while it runs.
    """
    firsts, others, use = _scores(positive, negatives, mask)
    points = (others < firsts[:, None]) + 0.5 * (others == firsts[:, None])
    slots = use.sum(axis=1)
    filled = slots > 0
    rows = int(filled.sum())
    if rows < 2:
        advice = "Score some hundred pairs."
        raise_invalid("negatives", "scores for at least 2 rows", f"{rows} of {len(firsts)} rows", advice)
    shares = np.where(use, points, 0.0).sum(axis=1)[filled] / slots[filled]
    auc, error = float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(rows))
    effective = auc * (1 - auc) / error**2 if error > 0 else float(rows)
    return Probe(auc, error, rows, float(np.clip(effective, rows, slots.sum())))


def _scores(positive: Any, negatives: Any, mask: Any) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Positives (n,), negatives (n, m) and which slots count (n, m), as checked arrays."""
    firsts, others = (
        as_array(name, to_numpy(values)) for name, values in (("positive", positive), ("negatives", negatives))
    )
    for name, array, shape in (("positive", firsts, "(n,)"), ("negatives", others, "(n, m)")):
        if array.ndim != shape.count(",") + shape.count("m"):
            raise_invalid(name, f"of shape {shape}", f"shape {array.shape}")
        if array.dtype.kind not in "iuf":
            raise_invalid(name, "scores", f"dtype {array.dtype}")
    if len(others) != len(firsts):
        raise_invalid("negatives", f"of shape ({len(firsts)}, m), a row for each positive", f"shape {others.shape}")
    use = np.ones(others.shape, bool) if mask is None else as_array("mask", to_numpy(mask))
    if use.dtype.kind != "b":
        raise_invalid("mask", "True or False for each slot", f"dtype {use.dtype}", "Pass ids >= 0.")
    if use.shape != others.shape:
        raise_invalid("mask", f"of shape {others.shape}, like the negatives", f"shape {use.shape}")
    check_all("positive", firsts, np.isfinite(firsts) | ~use.any(axis=1), "finite scores")
    check_all("negatives", others, np.isfinite(others) | ~use, "finite scores")
    return firsts, others, use


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted curve and its error."""

    numbers: Floats  # (3,) start, rise and rate; the start is 0 unless the probes contradict it
    last: float  # the step of the last probe
    covariance: Floats  # (3, 3) of the three, with the scatter included
    scatter: float  # the variance of the probes around the curve over that expected from their errors, at least 1
    bend: float  # how far the probes deviate systematically from the curve, as a share of its rise; 0 if within chance
    wait: float = 0.0  # the step of the probe after which the curve rises

    @property
    def start(self) -> float:
        """The separation at step 0."""
        return float(self.numbers[0])

    @property
    def tau(self) -> float:
        """The steps in which the distance to the end falls to 37 %."""
        return float((self.last - self.wait) / self.numbers[RATE])

    def shares(self, steps: Floats) -> Floats:
        """Steps as shares of the way from the wait to the last probe; 0 before it."""
        return np.asarray(np.maximum(steps - self.wait, 0) / (self.last - self.wait))

    @property
    def end(self) -> float:
        """The limit of mu'."""
        return float(end_of(self.numbers))

    def drawn(self, normals: Floats) -> Floats:
        """Return the fit, and (draws, 3) curves drawn from its error, given (draws, 3) standard normal numbers."""
        values, vectors = np.linalg.eigh(self.covariance)
        spread = normals @ (vectors * np.sqrt(np.maximum(values, 0))).T
        drawn = np.vstack([self.numbers, self.numbers + spread])
        drawn[:, 2] = np.maximum(drawn[:, 2], 1e-3)  # the curve must have an end
        return drawn

    def is_above(self, which: int, bound: float, errors: float) -> bool:
        """Whether number `which` is above `bound` by more than `errors` standard errors."""
        return bool(self.numbers[which] - bound > errors * np.sqrt(self.covariance[which, which]))


def end_of(numbers: Floats) -> Floats:
    """The limits of curves (..., 3), at most MAX_SEPARATION."""
    return np.minimum(numbers[..., 0] - numbers[..., 1] / np.expm1(-numbers[..., 2]), MAX_SEPARATION)


def reached(numbers: Floats, share: Floats) -> Floats:
    """The separations of curves (..., 3) at shares (..., points) of the last step."""
    rate = np.where(numbers[..., 2] == 0, 1e-9, numbers[..., 2])[..., None]
    growth = np.expm1(-rate * share) / np.expm1(-rate)
    return np.asarray(np.clip(numbers[..., :1] + numbers[..., 1:2] * growth, -MAX_SEPARATION, MAX_SEPARATION))


def fit(steps: Floats, auc: Floats, comparisons: Floats, *, same_pairs: bool = False) -> Fit:
    """Fit the curve to probes (P,) at `steps`, of which the last is above 0.

    The start is 0, chance, unless a start that is fitted lowers the deviance by more than 6.63 times the scatter. If
    all probes scored the same pairs, their errors are correlated: a common shift by one standard error is added to the
    covariance, which is enough for any correlation from 0 to 1.

    Where probes scatter more than their errors explain, or on one side, the curve may begin to rise late. The wait is
    then that step of a probe which makes the probes likeliest, by a search over start, rise and some rates, if it
    lowers the deviance by more than 6.63 times the scatter. At least 5 steps with a probe come after it. Its own error
    is not in the covariance.
    """
    found, lost = _fit_after(0.0, steps, auc, comparisons, same_pairs=same_pairs)
    waits = np.unique(steps[steps > 0])[:-MIN_STEPS].tolist() if found.bend or found.scatter > _SCATTER else []
    if waits:
        likely = min(waits, key=lambda wait: _roughly_lost((_shares(steps, wait), auc, comparisons)))
        later, less = _fit_after(likely, steps, auc, comparisons, same_pairs=same_pairs)
        if lost - less > _GAIN * later.scatter:
            return later
    return found


def _shares(steps: Floats, wait: float) -> Floats:
    """Steps as shares of the way from the wait to the last one; 0 before it."""
    return np.asarray(np.maximum(steps - wait, 0) / (steps.max() - wait))


def _roughly_lost(probes: tuple[Floats, Floats, Floats]) -> float:
    """The deviance of the curve at which the search for the likeliest begins."""
    return float(_deviance(_begin(probes, [0, 1, 2]), probes))


def _fit_after(wait: float, steps: Floats, auc: Floats, comparisons: Floats, *, same_pairs: bool) -> tuple[Fit, float]:
    """The curve that rises after a step, and its deviance."""
    last = float(steps.max())
    probes = (_shares(steps, wait), auc, comparisons)
    zero, free = (_climb(probes, columns) for columns in ([1, 2], [0, 1, 2]))
    lost_by_zero, lost_by_free = _deviance(np.stack([zero, free]), probes).tolist()
    gain = (lost_by_zero - lost_by_free) / max(1.0, lost_by_free / (len(steps) - 3))
    if gain > _GAIN and free[0] > 0:
        numbers, lost, columns = free, lost_by_free, [0, 1, 2]
    else:
        numbers, lost, columns = zero, lost_by_zero, [1, 2]
    scatter = max(1.0, lost / (len(steps) - len(columns) - (wait > 0)))
    slopes, weight, gaps = _local(numbers, probes)
    slopes = slopes[:, columns]
    inverse = _inverse(slopes.T @ (weight[:, None] * slopes))
    part = scatter * inverse
    if same_pairs:
        shift = inverse @ (slopes.T @ np.sqrt(weight))
        part = part + np.multiply.outer(shift, shift)
    covariance = np.zeros((3, 3))
    covariance[np.ix_(columns, columns)] = part
    bend = _bend(weight, gaps, scatter) / max(abs(numbers[1]), 1e-9)
    return Fit(numbers, last, covariance, scatter, bend, wait), lost


def _climb(probes: tuple[Floats, Floats, Floats], columns: list[int]) -> Floats:
    """The maximum-likelihood numbers in `columns`, the others 0: Fisher scoring, damped where it overshoots."""
    numbers = _begin(probes, columns)
    best, damping = float(_deviance(numbers, probes)), 1e-4
    for _ in range(_TRIES):
        slopes, weight, gaps = _local(numbers, probes)
        slopes = slopes[:, columns]
        information = slopes.T @ (weight[:, None] * slopes)
        step = _inverse(information + damping * np.diag(np.diag(information))) @ (slopes.T @ (weight * gaps))
        trial = numbers.copy()
        trial[columns] += step
        trial = np.clip(trial, (-MAX_SEPARATION, -MAX_SEPARATION, -50.0), (MAX_SEPARATION, MAX_SEPARATION, 500.0))
        deviance = float(_deviance(trial, probes))
        if deviance > best:
            damping *= 10
            if damping > 1e8:  # no shorter step improves: this is the maximum in float64
                break
            continue
        moved = np.abs(trial - numbers).max()
        numbers, best, damping = trial, deviance, damping / 10
        if moved < 1e-8:
            break
    return numbers


def _begin(probes: tuple[Floats, Floats, Floats], columns: list[int]) -> Floats:
    """Start and rise by least squares on the separations, for the best of some rates; 1 is lowered by half a toss."""
    from scipy.special import ndtri

    share, auc, comparisons = probes
    half = 0.5 / comparisons
    wanted = np.sqrt(2) * ndtri(np.clip(auc, half, 1 - half))
    trials = np.tile([0.0, 1.0, 0.0], (len(_RATES), 1))
    trials[:, 2] = _RATES
    growth = reached(trials, share)
    centre = growth.mean(axis=1) if 0 in columns else np.zeros(len(_RATES))
    around = growth - centre[:, None]
    trials[:, 1] = around @ wanted / (around**2).sum(axis=1)
    trials[:, 0] = wanted.mean() - trials[:, 1] * centre if 0 in columns else 0.0
    return np.asarray(trials[_deviance(trials, probes).argmin()])


def _deviance(numbers: Floats, probes: tuple[Floats, Floats, Floats]) -> Floats:
    """Twice the log-likelihood that curves (..., 3) lose against the observed AUCs."""
    from scipy.special import log_ndtr, xlogy

    share, auc, comparisons = probes
    x = reached(numbers, share) / np.sqrt(2)
    lost = xlogy(auc, auc) + xlogy(1 - auc, 1 - auc) - auc * log_ndtr(x) - (1 - auc) * log_ndtr(-x)
    return np.asarray(2 * (comparisons * lost).sum(axis=-1))


def _local(numbers: Floats, probes: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
    """At a curve: d mu' / d numbers (P, 3), the information (P,) of each probe on mu', and its distance (P,) in mu'."""
    from scipy.special import ndtr

    share, auc, comparisons = probes
    small = 1e-5 * np.eye(3)
    slopes = (reached(numbers + small, share) - reached(numbers - small, share)).T / 2e-5
    x = reached(numbers, share) / np.sqrt(2)
    chance, density = ndtr(x), np.exp(-0.5 * x**2) / np.sqrt(4 * np.pi)
    return slopes, comparisons * density**2 / (chance * ndtr(-x)), (auc - chance) / density


def _bend(weight: Floats, gaps: Floats, scatter: float) -> float:
    """How far, in separation, the probes deviate systematically; 0 if neighbours agree no more than by chance.

    Products of neighbouring residuals average 0 if errors are independent; a curve of another shape leaves long
    stretches of residuals with one sign.
    """
    residuals = np.sqrt(weight) * gaps
    products = float((residuals[1:] * residuals[:-1]).sum())
    if products <= _BEND * scatter * np.sqrt(len(residuals)):
        return 0.0
    return float(np.sqrt(products / np.sqrt(weight[1:] * weight[:-1]).sum()))


def _inverse(information: Floats) -> Floats:
    """The inverse; a number that the probes do not determine gets a huge variance instead of an infinite one."""
    return np.asarray(np.linalg.inv(information + 1e-9 * np.eye(len(information))), np.float64)

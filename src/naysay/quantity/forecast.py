"""Forecast the best k of a run from the curves fitted so far, with its uncertainty.

v is linear in P(B), so its mean over a run needs only the mean of P(B). For the 400 curves drawn from the error of the
fit, a run becomes weights on a fine grid of separations, and all runs together one product of matrices with a table of
P. That is accurate to 1e-4 of v, enough to compare runs; k itself comes from `estimate`, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.quantity._fit import MAX_SEPARATION, RATE, RISE, Fit, end_of, reached
from naysay.quantity.effectiveness import reliability
from naysay.quantity.estimate import estimate
from naysay.quantity.separation import Floats, auc
from naysay.rng import rng_for
from naysay.text import short_repr

_POINTS, _CONVERGED = 60, 3.0  # the averaged curve has 60 points and ends at 3 tau, like the paper's simulated run
_DRAWS = 400
_MAX_BEND = 0.05  # of the rise
_GRID_STEP = 0.02  # between separations of the table
_EVERY_K, _MORE_K = 40, 80  # every k up to the first; beyond it, this many in even ratios


@dataclass(frozen=True, slots=True, eq=False)
class OnlineEstimate:
    """The best k of a run that is under way, with its uncertainty.

    Attributes:
        k: The best whole number from 1 to k_max for the run as a whole.
        low: Lower end of the confidence interval of k, if the run has the assumed shape.
        high: Upper end of the interval.
        regret: The share of the best effectiveness that k loses at most, at the same confidence.
        curve: (k_max,) float64: v at k = 1 to k_max, the mean over the run.
        at_edge: Whether k equals k_max.
        flat: (low, high): every k between them gives v within 1 % of the best, on the fitted curve.
        separation: mu of the labels.
        start: mu' of the model at step 0.
        end: The limit of mu'.
        tau: The steps in which the distance of mu' to its limit falls to 37 %.
        until: The step up to which v is averaged: 3 tau after the rise begins, or the end of the run if that comes
            first.
        steps_seen: The last step with a validation probe.
        notes: A sentence for each reason to doubt the result.
        turning: The share of the run at which the slope of mu' has fallen to 1 / e of its first, for
            `adaptive(k, steps, turning)` in place of the paper's 10 %.

    Example: see `Online`, whose `estimate` returns one.
    """

    k: int
    low: int
    high: int
    regret: float
    curve: Floats
    at_edge: bool
    flat: tuple[int, int]
    separation: float
    start: float
    end: float
    tau: float
    until: float
    steps_seen: int
    notes: tuple[str, ...]
    turning: float

    __repr__ = short_repr


def forecast(
    curves: dict[str, Fit], steps: int, *, weight: float, k_max: int, confidence: float, tolerance: float
) -> OnlineEstimate:
    """Return the estimate of `Online`, or raise if the probes do not determine k well enough.

    `curves` has the fitted curve of "validation" and, if the labels are measured on training pairs, of "training".
    """
    from scipy.special import ndtri

    for split, curve in curves.items():
        _check(split, curve, float(ndtri(confidence)))
    model = curves["validation"]
    normals = rng_for(0).standard_normal((_DRAWS, 6))
    drawn = model.drawn(normals[:, :3])
    labels = end_of(curves["training"].drawn(normals[:, 3:]) if "training" in curves else drawn)
    span = model.last - model.wait
    until = np.minimum(steps, model.wait + span * _CONVERGED / drawn[:, RATE])
    runs = reached(drawn, model.shares(until[:, None] * np.linspace(0, 1, _POINTS)))
    exact = estimate(auc(labels[0]), auc(runs[0]), weight=weight, k_max=k_max)
    ks, values = effectiveness_table(labels[1:], runs[1:], weight, k_max)
    best = values.max(axis=1)
    lost = (best - values[:, np.abs(ks - exact.k).argmin()]) / np.abs(best)
    regret = float(np.quantile(lost, confidence))
    tails = (1 - confidence) / 2
    low, high = np.quantile(ks[values.argmax(axis=1)], [tails, 1 - tails], method="nearest").tolist()
    low, high = min(low, exact.k), max(high, exact.k)
    if regret > tolerance:
        rule = f"within {tolerance:.1%} of the best effectiveness with confidence {confidence:g}"
        got = f"{exact.k} ({low} to {high}), which may lose {regret:.1%}"
        raise_invalid("k", rule, got, "Record more probes; larger probes need fewer steps.")
    notes = (*_notes(curves), *exact.notes)
    numbers = (float(labels[0]), model.start, model.end, model.tau, float(until[0]))
    shape = (exact.curve, exact.at_edge, exact.flat)
    turning = min((model.wait + model.tau) / steps, 1.0)
    return OnlineEstimate(exact.k, low, high, regret, *shape, *numbers, int(model.last), notes, turning)


def _check(split: str, curve: Fit, errors: float) -> None:
    """Raise if a curve has not come far enough to predict its end, or does not have the assumed shape."""
    seen = f"step {curve.last:.0f}"
    if not curve.is_above(RISE, 0, errors):
        advice = "Record more probes, or score more pairs."
        raise_invalid(split, "probes whose AUC rises beyond its error", f"none by {seen}", advice)
    if not curve.is_above(RATE, 1, errors):
        tau = f"tau = {curve.tau:.0f}" if curve.numbers[RATE] > 0 else "a rise that does not slow down"
        rule = "probes past tau, 63 % of the way, beyond their error"
        raise_invalid(split, rule, f"{seen} and {tau}", "Record more probes; more pairs reduce the error.")
    if curve.bend > _MAX_BEND:
        rule = "probes along start + rise (1 - e^(-t / tau))"
        got = f"probes that deviate systematically, by {curve.bend:.0%} of the rise"
        raise_invalid(split, rule, got, "After the run, pass the measured AUCs to `estimate`.")


def _notes(curves: dict[str, Fit]) -> list[str]:
    """Return a sentence for each reason to doubt the result."""
    notes = []
    if "training" not in curves:
        notes.append(
            "The labels are assumed to be as good as the model becomes on validation pairs; "
            "if they are better, a larger k is. Record training probes to measure them."
        )
    for split, curve in curves.items():
        if curve.start:
            above = f"begin at an AUC of {auc(curve.start):.2f}, not at chance"
            notes.append(f"The {split} probes {above}, so the start is fitted too.")
        if curve.wait:
            notes.append(
                f"The {split} probes stay at their start up to step {curve.wait:.0f}, so the rise is from there."
            )
        if curve.scatter > 2:
            times = f"{np.sqrt(curve.scatter):.1f} times as widely as their errors explain"
            notes.append(f"The {split} probes scatter {times}; the interval includes that.")
        if curve.bend:
            share = f"{curve.bend:.1%} of its rise"
            notes.append(f"The {split} probes deviate from the curve by {share}; the interval does not include that.")
    return notes


def effectiveness_table(labels: Floats, runs: Floats, weight: float, k_max: int) -> tuple[NDArray[np.int64], Floats]:
    """Return some k (n,) from 1 to k_max, and the mean v of every run at each of them (runs, n).

    The separations are those of the labels (runs,) and of the model through each run (runs, points); below 0 is 0.
    """
    ks, table = _table(k_max)
    a = _weights(labels[:, None], len(table)) @ table
    b = _weights(runs, len(table)) @ table
    return ks, np.asarray(weight * (a - b) + (1 - weight) * (1 - a - b + 2 * a * b))


def _weights(separations: Floats, nodes: int) -> Floats:
    """(runs, nodes) weights with which a sum over the nodes is the mean over a run, by linear interpolation."""
    runs, points = separations.shape
    place = np.clip(separations, 0, MAX_SEPARATION) / _GRID_STEP
    left = np.minimum(place.astype(np.int64), nodes - 2)
    right_share = (place - left).ravel()
    cell = (np.arange(runs)[:, None] * nodes + left).ravel()
    size = runs * nodes
    total = np.bincount(cell, 1 - right_share, size) + np.bincount(cell + 1, right_share, size)
    return np.asarray(total.reshape(runs, nodes) / points)


@lru_cache(maxsize=1)
def _table(k_max: int) -> tuple[NDArray[np.int64], Floats]:
    """The k that are tried, and P(A) by separation (rows) and k (columns): under 1 MB, cached."""
    many = np.geomspace(_EVERY_K, k_max, _MORE_K) if k_max > _EVERY_K else np.array([k_max])
    ks = np.unique(np.concatenate([np.arange(1, min(k_max, _EVERY_K) + 1), many.round().astype(np.int64)]))
    nodes = np.arange(0, MAX_SEPARATION + _GRID_STEP / 2, _GRID_STEP)
    return ks, np.asarray(reliability(ks, nodes[:, None]))

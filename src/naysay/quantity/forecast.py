"""From the curves of a run so far to its best k: what the probes leave open, and when that is too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from naysay.checks import raise_invalid
from naysay.quantity._fit import Fit, end_of, reached
from naysay.quantity._regret import worth
from naysay.quantity._weight import Floats
from naysay.quantity.estimate import estimate
from naysay.quantity.separation import auc
from naysay.rng import rng_for

_POINTS, _CONVERGED = 60, 3.0  # of the curve that is averaged, in points and in tau: those of the paper's simulated run
_DRAWS = 400
_BENT = 0.05  # of the rise
_RISE, _RATE = 1, 2  # places in Fit.numbers


@dataclass(frozen=True, slots=True, eq=False)
class OnlineEstimate:
    """The best k of a run that is under way.

    Args:
        k: The best whole number from 1 to k_max for the run as a whole.
        low: The interval that holds the best k with the confidence asked for, if the run has the shape assumed.
        high: The interval that holds the best k with the confidence asked for, if the run has the shape assumed.
        regret: What k loses at most of the best effectiveness, with that confidence: a share.
        curve: (k_max,) float64: v at k = 1 to k_max, the mean over the run.
        at_edge: Whether k is k_max itself.
        flat: (least, most): all k between them give v within 1 % of the best, on the fitted curve.
        separation: Mu of the labels.
        start: Mu' of the model at step 0, and what it tends to.
        end: Mu' of the model at step 0, and what it tends to.
        tau: The steps in which its distance to the end falls to 37 %.
        until: The step up to which v is averaged: 3 tau, or the end of the run if that comes first.
        steps_seen: The last step with a validation probe.
        notes: A sentence for each thing that makes the answer less sure.
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


def outlook(
    curves: dict[str, Fit], steps: int, *, weight: float, k_max: int, confidence: float, tolerance: float
) -> OnlineEstimate:
    """The answer of `Online`, or its refusal.

    Args:
        curves: The fitted curve of "validation" and, if the labels are read from it, that of "training".
    """
    from scipy.special import ndtri

    for split, curve in curves.items():
        _check(split, curve, float(ndtri(confidence)))
    model = curves["validation"]
    normals = rng_for(0).standard_normal((_DRAWS, 6))
    drawn = model.drawn(normals[:, :3])
    labels = end_of(curves["training"].drawn(normals[:, 3:]) if "training" in curves else drawn)
    until = np.minimum(steps / model.last, _CONVERGED / drawn[:, _RATE])  # in units of the last probe
    runs = reached(drawn, until[:, None] * np.linspace(0, 1, _POINTS))
    exact = estimate(auc(labels[0]), auc(runs[0]), weight=weight, k_max=k_max)
    ks, values = worth(labels[1:], runs[1:], weight, k_max)
    best = values.max(axis=1)
    lost = (best - values[:, np.abs(ks - exact.k).argmin()]) / np.abs(best)
    regret = float(np.quantile(lost, confidence))
    tails = (1 - confidence) / 2
    low, high = np.quantile(ks[values.argmax(axis=1)], [tails, 1 - tails], method="nearest").tolist()
    low, high = min(low, exact.k), max(high, exact.k)
    if regret > tolerance:
        rule = f"within {tolerance:.1%} of the best effectiveness with confidence {confidence:g}"
        got = f"{exact.k} ({low} to {high}), which may lose {regret:.1%}"
        raise_invalid("k", rule, got, "Go on recording; larger probes tell sooner.")
    notes = (*_notes(curves), *exact.notes)
    span = float(until[0] * model.last)
    numbers = (float(labels[0]), model.start, model.end, model.tau, span)
    shape = (exact.curve, exact.at_edge, exact.flat)
    return OnlineEstimate(exact.k, low, high, regret, *shape, *numbers, int(model.last), notes)


def _check(split: str, curve: Fit, errors: float) -> None:
    """Refuse a curve whose end is out of sight, or that is no such curve."""
    seen = f"step {curve.last:.0f}"
    if not curve.sure(_RISE, 0, errors):
        advice = "Go on recording, or probe more pairs."
        raise_invalid(split, "an AUC that rises beyond its error", f"none by {seen}", advice)
    if not curve.sure(_RATE, 1, errors):
        tau = f"tau = {curve.tau:.0f}" if curve.numbers[_RATE] > 0 else "a rise that does not slow down"
        rule = "past tau, 63 % of its way, beyond its error"
        raise_invalid(split, rule, f"{seen} and {tau}", "Go on recording; more pairs narrow the error.")
    if curve.bent > _BENT:
        rule = "probes along start + rise (1 - e^(-t / tau))"
        got = f"{curve.bent:.0%} of the rise off it, neighbours alike"
        raise_invalid(split, rule, got, "After the run, hand the measured AUCs to estimate.")


def _notes(curves: dict[str, Fit]) -> list[str]:
    """What makes the answer less sure, a sentence each."""
    notes = []
    if "training" not in curves:
        notes.append(
            "The labels are taken to be as good as the model becomes on validation pairs; "
            "if they are better, so is a larger k: record training probes."
        )
    for split, curve in curves.items():
        if curve.start:
            above = f"begin at an AUC of {auc(curve.start):.2f}, not at chance"
            notes.append(f"The {split} probes {above}, so the start is fitted too.")
        if curve.scatter > 2:
            times = f"{np.sqrt(curve.scatter):.1f} times as widely as their errors say"
            notes.append(f"The {split} probes scatter {times}; the interval has that in.")
        if curve.bent:
            share = f"{curve.bent:.1%} of its rise"
            notes.append(f"The {split} probes bend away from the curve by {share}; the interval does not have that in.")
    return notes

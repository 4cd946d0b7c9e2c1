"""Newton's method for penalised likelihoods: the fits of `Labelled` and `Posterior`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from naysay.arrays import Floats

_MAX_STEPS, _MAX_HALVINGS = 100, 40
_LEAST_GAIN = 1e-4  # of what a step promises: a step that gains less is halved (Armijo)


def maximise(
    objective: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    *,
    tolerance: float,
) -> Floats:
    """(w,) the weights at which a concave function is largest.

    Args:
        objective: objective(weights) -> float.
        derivatives: derivatives(weights) -> the gradient (w,), and the curvature (w, w), positive definite.
        start: (w,) the first weights.
        tolerance: Stop where a step promises to gain less than this share of the objective.
    """
    weights, value = start, objective(start)
    for _ in range(_MAX_STEPS):
        gradient, curvature = derivatives(weights)
        step = np.linalg.solve(curvature, gradient)
        promised = float((gradient * step).sum()) / 2
        if promised <= tolerance * max(abs(value), 1.0):
            return weights
        for halving in range(_MAX_HALVINGS):
            length = 0.5**halving
            tried = weights + length * step
            value_there = objective(tried)
            if value_there >= value + _LEAST_GAIN * length * promised:
                break
        else:
            return weights  # only rounding error is left
        weights, value = tried, value_there
    return weights


def chance(log_odds: Floats) -> Floats:
    """1 / (1 + exp(-log_odds)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * log_odds))

"""Logistic regression by Newton's method: the fits of `Labelled` and `Posterior`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from naysay.arrays import Floats

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
        """(w,) the weights of the largest posterior density.

        Args:
            start: (w,) the first weights.
            tolerance: Stop where a step promises to gain less than this share of the objective.
            c: The chance of a hit where x . w is large.
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

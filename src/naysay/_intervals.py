"""Exact confidence intervals of a share."""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
Z = 1.959963984540054  # 95 % of a normal distribution is within Z deviations of its mean
_NODES, _WIDTH, _STEPS, _TOLERANCE = 40, 12.0, 50, 1e-10


def least_share(hits: float, n: float, error: float) -> float:
    """The lower bound of Clopper and Pearson: above the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, n - hits + 1, error)) if hits > 0 else 0.0


def most_share(hits: float, n: float, error: float) -> float:
    """The upper bound of Clopper and Pearson: below the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, n - hits, 1 - error)) if hits < n else 1.0


def least_shares(hits: Any, missed: Any, error: float) -> NDArray[np.float64]:
    """(n,) `least_share` of several groups with at least 10 hits each, without SciPy, which takes long to load.

    A Beta distribution of hits and missed + 1 has its quantile there. By Newton's method on the logarithm of the
    distribution function of log-odds, which is concave, so that no step passes the quantile from below.
    """
    a, b = np.asarray(hits, np.float64)[:, None], np.asarray(missed, np.float64)[:, None] + 1
    whole = [[lgamma(n) for n in part.ravel().tolist()] for part in (a, b, a + b)]
    size = np.subtract(np.add(whole[0], whole[1]), whole[2])[:, None]
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    deviation = np.sqrt(1 / a + 1 / b)
    odds = np.log(a / b) - 2 * deviation
    for _ in range(_STEPS):
        places = np.concatenate([odds + _WIDTH / 2 * deviation * (nodes - 1), odds], axis=1)
        density = np.exp(a * places - (a + b) * np.logaddexp(0.0, places) - size)
        below = _WIDTH / 2 * deviation * (density[:, :-1] * weights).sum(axis=1, keepdims=True)
        step = (np.log(error) - np.log(below)) * below / density[:, -1:]
        odds = odds + step
        if np.abs(step).max(initial=0.0) < _TOLERANCE:
            break
    return np.asarray(1 / (1 + np.exp(-odds[:, 0])))


def exact_interval(hits: float, n: float, confidence: float) -> tuple[float, float]:
    """(low, high) of a share by `hits` of n independent trials. Coverage is at least `confidence` for every n.

    Clopper and Pearson. The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial. 1934.
    """
    error = (1 - confidence) / 2
    return least_share(hits, n, error), most_share(hits, n, error)

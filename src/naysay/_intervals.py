"""Exact confidence intervals of a share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
Z = 1.959963984540054  # 95 % of a normal distribution is within Z deviations of its mean


def least_share(hits: float, n: float, error: float) -> float:
    """The lower bound of Clopper and Pearson: above the true share with probability `error` at most."""
    return float(least_shares(np.array([hits]), np.array([n - hits]), error)[0])


def least_shares(hits: Any, missed: Any, error: float) -> NDArray[np.float64]:
    """(n,) `least_share` of several groups."""
    from scipy.special import betaincinv

    has_hits = np.asarray(hits) > 0
    bounds = betaincinv(np.where(has_hits, hits, 1.0), np.asarray(missed) + 1, error)
    return np.where(has_hits, bounds, 0.0)


def most_share(hits: float, n: float, error: float) -> float:
    """The upper bound of Clopper and Pearson: below the true share with probability `error` at most."""
    return 1.0 - least_share(n - hits, n, error)


def exact_interval(hits: float, n: float, confidence: float) -> tuple[float, float]:
    """(low, high) of a share by `hits` of n independent trials. Coverage is at least `confidence` for every n.

    Clopper and Pearson. The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial. 1934.
    """
    error = (1 - confidence) / 2
    return least_share(hits, n, error), most_share(hits, n, error)

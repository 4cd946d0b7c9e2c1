"""Exact confidence intervals of a share."""

from __future__ import annotations

CONFIDENCE = 0.95


def least_share(hits: float, n: float, error: float) -> float:
    """The lower bound of Clopper and Pearson: above the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, n - hits + 1, error)) if hits > 0 else 0.0


def most_share(hits: float, n: float, error: float) -> float:
    """The upper bound of Clopper and Pearson: below the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, n - hits, 1 - error)) if hits < n else 1.0


def exact_interval(hits: float, n: float, confidence: float) -> tuple[float, float]:
    """(low, high) of a share by `hits` of n independent trials. Coverage is at least `confidence` for every n.

    Clopper and Pearson. The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial. 1934.
    """
    error = (1 - confidence) / 2
    return least_share(hits, n, error), most_share(hits, n, error)

"""The model behind the number of negatives: separation, reliability, and what training gains from k negatives.

The score of a negative is drawn from N(0, 1), that of a positive from N(mu, 1). mu is called the separation:

    AUC = P(positive > negative) = Phi(mu / sqrt 2)        mu = sqrt(2) Phi^-1(AUC)              Eq. 7

A label is *reliable* if the positive's true score is above those of all k negatives. mu is the separation of the
labels, mu' that of the model.

    P(A) = integral phi(x - mu) Phi(x)^k dx                the label is reliable                 Eq. 3
    P(B) = the same with mu' in place of mu                the model is right                    Eq. 4
    good = P(A) (1 - P(B))     bad = P(B) (1 - P(A))     easy = 1 - good - bad                   Eq. 5
    v    = w (good - bad) + (1 - w) easy                                                         Eq. 6

Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need? The paper solves its Eq. 7 by bisection;
the closed form gives the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import as_floats, check_all, check_number, check_whole, plain_number, public, raise_invalid
from naysay.text import short_repr

Floats = NDArray[np.float64]

MAX_K_MAX = 10_000_000  # the curve takes 8 bytes for each k
MAX_POINTS = 10_000_000  # of a simulated run


@public
def separation(auc: Any) -> Any:
    """Convert an AUC to the separation sqrt(2) Phi^-1(auc).

    Args:
        auc: A number between 0 and 1, or an array of them. 0.5 gives 0, 1 gives inf and 0 gives -inf.

    Returns:
        A float for a number, else a float64 array of the same shape.

    Examples:
        >>> round(separation(0.75), 5), round(separation(0.95), 5), separation(0.5)
        (0.95387, 2.32617, 0.0)
    """
    from scipy.special import ndtri

    values = as_floats("auc", auc)
    check_all("auc", values, (values >= 0) & (values <= 1), "between 0 and 1")
    return plain_number(np.asarray(np.sqrt(2) * ndtri(values)))


@public
def auc(separation: Any) -> Any:
    """Convert a separation to the AUC Phi(separation / sqrt 2): the inverse of `separation`.

    Args:
        separation: A number, or an array of them.

    Returns:
        A float for a number, else a float64 array of the same shape.

    Examples:
        >>> round(auc(1.0), 4), auc(0.0)
        (0.7602, 0.5)
    """
    from scipy.special import ndtr

    return plain_number(np.asarray(ndtr(as_floats("separation", separation) / np.sqrt(2))))


@public
def simulated(separation: float, points: int = 60, end: float = 3.0) -> Floats:
    """Simulate a run: mu'(t) = separation (1 - e^-t) at even t from 0 to `end`, both included.

    The paper finds that real curves have this shape, and uses it for its Fig. 5.

    Args:
        separation: mu of the labels, which the model approaches; finite.
        points: At least 2. The best k depends on it: at separation 2.4, 60 points give 20 and 301 give 21.
        end: The length of the run in time constants; above 0. At 3 the model has come 95 % of the way.

    Returns:
        (points,) float64.

    Examples:
        >>> simulated(1.0, points=4).round(3).tolist()
        [0.0, 0.632, 0.865, 0.95]
    """
    mu = check_number("separation", separation, finite=True)
    last = check_number("end", end, above=0, finite=True)
    count = check_whole("points", points, 2, MAX_POINTS)
    return np.asarray(-mu * np.expm1(-np.linspace(0, last, count)))


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """The expected shares of training samples that are good, bad and easy; they add up to 1.

    Attributes:
        good: The label is reliable and the model is still wrong: training helps.
        bad: The label is wrong and the model is right: training harms.
        easy: Label and model agree.

    Example: see `shares`.
    """

    good: Any
    bad: Any
    easy: Any

    __repr__ = short_repr


@public
def reliability(k: Any, separation: Any) -> Any:
    """Return P(A) = integral phi(x - separation) Phi(x)^k dx: the chance that a positive beats all of its k negatives.

    Exact cases: separation 0 gives 1 / (k + 1); k = 1 gives Phi(separation / sqrt 2), the AUC.

    The relative error is below 1e-12 for k up to 1e12 and separations from -20 to 20. Cost: about a thousand
    exponentials for each pair.

    Args:
        k: Numbers of at least 1, whole or not, broadcast against `separation`.
        separation: Numbers, which may be negative; inf gives 1 and -inf gives 0.

    Returns:
        A float if both are numbers, else a float64 array of the broadcast shape.

    Examples:
        >>> round(reliability(4, 0.0), 10), round(reliability(4, 1.0), 4)
        (0.2, 0.4937)
    """
    return plain_number(_reliability(k, "separation", separation))


@public
def shares(k: Any, separation: Any, reached: Any) -> Shares:
    """Return the expected shares of good, bad and easy samples with k negatives. The arguments are broadcast.

    Args:
        k: Numbers of at least 1.
        separation: mu, the separation of the labels.
        reached: mu', the separation that the model has reached so far.

    Examples:
        >>> now = shares(4, 1.0, 0.5)
        >>> round(now.good, 3), round(now.bad, 3), round(now.easy, 3)
        (0.329, 0.169, 0.502)
    """
    good, bad, easy = _shares(k, separation, reached)
    return Shares(plain_number(good), plain_number(bad), plain_number(easy))


@public
def effectiveness(k: Any, separation: Any, reached: Any, *, weight: float = 0.9) -> Any:
    """Return the training effectiveness at one moment: v = weight (good - bad) + (1 - weight) easy.

    v tends to 1 - weight as k grows, whatever the separations, so the best k of a single moment may be unbounded:
    average over a run instead (`mean_effectiveness`).

    Args:
        k: Numbers of at least 1, broadcast against the next two.
        separation: mu, the separation of the labels.
        reached: mu', the separation that the model has reached.
        weight: w, the weight of good and bad samples against easy ones, in (0, 1).

    Returns:
        A float if all are numbers, else a float64 array of the broadcast shape.

    Examples:
        >>> round(effectiveness(4, 1.0, 0.5), 4)
        0.1935
    """
    w = check_weight(weight)
    good, bad, easy = _shares(k, separation, reached)
    return plain_number(np.asarray(w * (good - bad) + (1 - w) * easy))


@public
def mean_effectiveness(separation: float, reached: Any, *, weight: float = 0.9, k_max: int = 1000) -> Floats:
    """Return the mean of v over a run, for every whole k from 1 to k_max.

    v is linear in P(B), so each k needs one integral, that of Phi^k times the mean of the T densities. The absolute
    error is below 1e-13. Cost: O(T + k_max), with about a thousand nodes for either.

    Args:
        separation: mu, the separation of the labels; one number.
        reached: (T,) the model's mu' through the run.
        weight: w, the weight of good and bad samples against easy ones, in (0, 1).
        k_max: At most 10,000,000.

    Returns:
        (k_max,) float64: v at k = 1, 2, ... k_max.

    Examples:
        >>> mean_effectiveness(1.0, [0.0, 0.5, 0.8], k_max=6).round(4).tolist()
        [0.1846, 0.2022, 0.2061, 0.2056, 0.2036, 0.201]
    """
    mu = check_number("separation", separation)
    points = check_points("reached", as_floats("reached", reached))
    return run_mean(mu, points, check_weight(weight), check_whole("k_max", k_max, 1, MAX_K_MAX))


def check_weight(weight: Any) -> float:
    """Return the weight of good and bad samples against easy ones, which must be in (0, 1)."""
    return check_number("weight", weight, above=0, below=1, advice="The paper recommends 0.9.")


def check_points(parameter: str, points: Floats) -> Floats:
    """Raise unless the curve is (T,) with at least one point."""
    if points.ndim != 1:
        raise_invalid(parameter, "of shape (T,)", f"shape {points.shape}")
    if not points.size:
        raise_invalid(parameter, "a curve of at least one point", "none", "Give one for each evaluation of the run.")
    return points


def run_mean(separation: float, reached: Floats, weight: float, k_max: int) -> Floats:
    """`mean_effectiveness` of checked arguments."""
    a = _mean_reliability(np.array([separation]), k_max)
    b = _mean_reliability(reached, k_max)
    good_minus_bad = a - b
    easy = 1 - a - b + 2 * a * b
    return np.asarray(weight * good_minus_bad + (1 - weight) * easy)


def _shares(k: Any, separation: Any, reached: Any) -> tuple[Floats, Floats, Floats]:
    """Good, bad and easy; P(A) and P(B) are computed in their own shapes and broadcast last."""
    a = _reliability(k, "separation", separation)
    b = _reliability(k, "reached", reached)
    try:
        good, bad = np.asarray(a * (1 - b)), np.asarray(b * (1 - a))
    except ValueError:
        raise_invalid("reached", "broadcastable against `k` and `separation`", f"shape {b.shape} against {a.shape}")
    return good, bad, np.asarray(1 - good - bad)


def _reliability(k: Any, parameter: str, mu: Any) -> Floats:
    """Check both, and return P for each pair of the broadcast shape, a block of pairs at a time."""
    counts = as_floats("k", k)
    check_all("k", counts, np.isfinite(counts) & (counts >= 1), "finite and at least 1")
    means = as_floats(parameter, mu)
    try:
        shape = np.broadcast_shapes(counts.shape, means.shape)
    except ValueError:
        raise_invalid(parameter, "broadcastable against `k`", f"shape {means.shape} against {counts.shape}")
    counts = np.broadcast_to(counts, shape).ravel()
    means = np.clip(np.broadcast_to(means, shape).ravel(), _MIN_MU, _MAX_MU)
    chances = np.empty(counts.size)
    if counts.size:
        x, log_phi = _nodes(float(means.min()), float(means.max()), float(counts.max()))
        pairs_at_once = max(1, _CELLS // len(x))
        for first in range(0, counts.size, pairs_at_once):
            block = slice(first, first + pairs_at_once)
            log_integrand = np.multiply.outer(counts[block], log_phi) - 0.5 * (x - means[block, None]) ** 2
            chances[block] = np.exp(log_integrand).sum(axis=1)
    chances *= _STEP * _DENSITY
    chances[means == _MAX_MU] = 1.0
    return np.minimum(chances, 1.0).reshape(shape)  # rounding may leave 1 + 2e-16


# ---- The integral of phi(x - mu) Phi(x)^k ----------------------------------------------------------------------------
# The logarithm of the integrand, k log Phi(x) - (x - mu)^2 / 2, has a second derivative of at most -1. So it has one
# peak, and 9 on either side of it hold all but 1e-17 of the integral. The error of the trapezoid rule falls
# exponentially with the ratio of the width of the rise of Phi^k, about 1 / sqrt(2 ln k), to the step.

_STEP = 1 / 32  # between nodes; enough for k up to 1e12
_TAIL = 9.0  # around the peak
_CELLS = 1 << 18  # exponentials computed at once: 2 MB
_DENSITY = float(1 / np.sqrt(2 * np.pi))
_MIN_MU, _MAX_MU = -60.0, 50.0  # P is 0 below the first even for k = 1, and 1 above the second, in float64
_CERTAIN = 20.0  # a mu for which P is 1 in float64 for every k up to MAX_K_MAX
_POWERS = 128  # powers of Phi computed at once


def _nodes(low: float, high: float, k: float) -> tuple[Floats, Floats]:
    """Nodes x for mu from `low` to `high` and up to k negatives, and log Phi(x).

    The peak lies between the two ends: the derivative k phi / Phi - (x - mu) is positive at mu, and at mu / 2 if mu
    is negative; it is negative where x exceeds both mu and sqrt(2 ln k) by 1.
    """
    from scipy.special import log_ndtr

    left = max(low, low / 2) - _TAIL
    right = max(high, float(np.sqrt(2 * np.log(k)))) + 1 + _TAIL
    x = _STEP * np.arange(np.floor(left / _STEP), np.ceil(right / _STEP) + 1)
    return x, log_ndtr(x)


def _mean_reliability(points: Floats, k_max: int) -> Floats:
    """(k_max,) the mean over the points of P, for k = 1 to k_max.

    The mean is taken inside the integral, of the densities. Powers of Phi are Phi^(128 b) Phi^j with j = 1 to 128, so
    all k of a block are one product of matrices.
    """
    uncertain = np.clip(points[points < _CERTAIN], _MIN_MU, None)
    certain_share = 1 - len(uncertain) / len(points)
    if not len(uncertain):
        return np.ones(k_max)
    x, log_phi = _nodes(float(uncertain.min()), float(uncertain.max()), float(k_max))
    node_weights = _summed_density(x, uncertain) * (_STEP * _DENSITY / len(points))
    powers = np.exp(np.multiply.outer(log_phi, np.arange(1.0, min(k_max, _POWERS) + 1)))
    blocks = -(-k_max // _POWERS)
    blocks_at_once = max(1, _CELLS // len(x))
    means = []
    for first in range(0, blocks, blocks_at_once):
        exponents = float(_POWERS) * np.arange(first, min(first + blocks_at_once, blocks))
        means.append((np.exp(np.multiply.outer(exponents, log_phi)) * node_weights) @ powers)
    return np.asarray(np.concatenate(means).ravel()[:k_max] + certain_share)


def _summed_density(x: Floats, points: Floats) -> Floats:
    """The sum over points of exp(-(x - point)^2 / 2), a block of points at a time."""
    total = np.zeros(len(x))
    points_at_once = max(1, _CELLS // len(x))
    for first in range(0, len(points), points_at_once):
        total += np.exp(-0.5 * (x - points[first : first + points_at_once, None]) ** 2).sum(axis=0)
    return total

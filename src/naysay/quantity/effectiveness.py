"""Training effectiveness: the paper's model of one positive with k negatives, and of what training gains from them.

    A      the label is reliable: the positive's true score is above those of all k negatives
           P(A) = integral phi(x - mu) Phi(x)^k dx                                               Eq. 3
    B      the same for the model's scores, with mu' in place of mu                              Eq. 4
    good = P(A) (1 - P(B))     bad = P(B) (1 - P(A))     easy = 1 - good - bad                   Eq. 5
    v    = w (good - bad) + (1 - w) easy                                                         Eq. 6

mu is the separation of the labels, mu' that of the model (`separation` of an AUC).
Wu, Wu and Huang. Rethinking InfoNCE: How Many Negative Samples Do You Need?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from naysay.checks import as_floats, check_all, check_number, check_whole, plain_number, public, raise_invalid
from naysay.quantity.separation import Floats
from naysay.text import short_repr

MAX_K_MAX = 10_000_000  # the curve takes 8 bytes for each k
_TAIL = 9.0
_CELLS = 1 << 18  # exponentials computed at once
_DENSITY = float(1 / np.sqrt(2 * np.pi))
# In float64 the result is 0 below the first, even for k = 1, and 1 above the second, even for the largest k.
_MIN_MU, _MAX_MU = -60.0, 50.0
# For all k at once: fixed nodes that serve k up to 1e7, at which a mu of _CERTAIN still gives 1 in float64.
_BLOCK, _STEP, _CERTAIN = 128, 1 / 20, 20.0


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

    Computed by the trapezoid rule in log space. The relative error is below 1e-12 for k up to 1e12 and separations from
    -20 to 20, against mpmath. Cost: some hundreds of exponentials for each pair, in blocks of 2 MB.

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

    v tends to 1 - weight as k grows, whatever the separations: with very many negatives, nearly all samples are
    unreliable for labels and model alike, and count as easy. So the best k of a single moment may be unbounded; average
    over a run instead (`mean_effectiveness`).

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

    v is linear in P(B), so the mean over the run needs one integral for each k, not T of them: that of Phi^k times the
    mean of the T densities. The powers of Phi on fixed nodes are computed once and cached (1 MB). The absolute error is
    below 1e-13. From k of about 1,000,000 on, v at neighbouring k differs by less than that.

    Cost: exponentials in O(T) and products of matrices in O(k_max), with a few hundred nodes for either.

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
    a, b = _for_every_k([np.array([separation]), reached], k_max)
    return np.asarray(weight * (a - b) + (1 - weight) * (1 - a - b + 2 * a * b))


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
    counts = as_floats("k", k)
    check_all("k", counts, np.isfinite(counts) & (counts >= 1), "finite and at least 1")
    means = as_floats(parameter, mu)
    try:
        np.broadcast_shapes(counts.shape, means.shape)
    except ValueError:
        raise_invalid(parameter, "broadcastable against `k`", f"shape {means.shape} against {counts.shape}")
    return _at(counts, means)


# ---- P(mu, k) = integral phi(x - mu) Phi(x)^k dx ---------------------------------------------------------------------
# The logarithm of the integrand, k log Phi(x) - (x - mu)^2 / 2, has a second derivative of at most -1. So it has one
# peak, and 9 on either side of it hold all but 1e-17 of the integral. The trapezoid rule, whose error falls
# exponentially for such functions, needs only a step that is small against the rise of Phi^k, about 1 / sqrt(2 ln k)
# wide.


def _at(k: Floats, mu: Floats) -> Floats:
    """Return P for k broadcast against mu: some hundreds of exponentials each, a block at a time."""
    counts, means = np.broadcast_arrays(k, np.clip(mu, _MIN_MU, _MAX_MU))
    shape, counts, means = counts.shape, counts.ravel(), means.ravel()
    chances = np.empty(counts.size)
    if not counts.size:
        return chances.reshape(shape)
    x, log_phi, step = _nodes(float(means.min()), float(means.max()), float(counts.max()))
    rows = max(1, _CELLS // len(x))
    for first in range(0, counts.size, rows):
        part = slice(first, first + rows)
        exponent = np.multiply.outer(counts[part], log_phi)
        exponent -= 0.5 * (x - means[part, None]) ** 2
        chances[part] = np.exp(exponent, out=exponent).sum(axis=1)
    chances *= step * _DENSITY
    chances[means == _MAX_MU] = 1.0
    return np.minimum(chances, 1.0).reshape(shape)  # rounding may leave 1 + 2e-16


def _nodes(low: float, high: float, k: float) -> tuple[Floats, Floats, float]:
    """Nodes for mu from `low` to `high` and up to k negatives: x, log Phi(x), and the step between them.

    The derivative k phi / Phi - (x - mu) is positive at mu, and still at mu / 2 if mu < 0; it is negative where x
    exceeds both mu and sqrt(2 ln k) by 1. The peak lies between.
    """
    from scipy.special import log_ndtr

    rise = float(np.sqrt(2 * np.log(k)))
    step = 1 / (4 * (1 + rise))
    left, right = max(low, low / 2), max(high, rise) + 1
    # Not arange(left, right, step), whose steps are rounded to the size of `left`.
    x = left - _TAIL + step * np.arange(np.ceil((right - left + 2 * _TAIL) / step) + 1)
    return x, log_ndtr(x), step


def _for_every_k(curves: Sequence[Floats], k_max: int) -> Floats:
    """(len(curves), k_max): the mean of P over the points (T,) of each curve, for k = 1 to k_max.

    The mean over points is taken inside the integral, of the densities. Phi^(128 b + j) = Phi^(128 b) Phi^j: a later
    block of k is the same powers, 1 to 128, under densities multiplied by Phi^(128 b): products of matrices.
    """
    x, log_phi, powers = _powers()
    densities = [_mean_density(x, points) for points in curves]
    last = max(1, *map(len, densities))
    weights = np.zeros((len(curves), last))
    for row, density in enumerate(densities):
        weights[row, : len(density)] = density
    blocks, width = -(-k_max // _BLOCK), min(k_max, _BLOCK)
    means = np.empty((blocks, len(curves), width))
    several = max(1, _CELLS // (len(curves) * last))
    for first in range(0, blocks, several):
        part = slice(first, min(first + several, blocks))
        base = np.exp(np.multiply.outer(np.arange(part.start, part.stop) * float(_BLOCK), log_phi[:last]))
        # A stack of small products: one large one would start the threads of BLAS, which stall on a busy machine.
        means[part] = (base[:, None] * weights) @ powers[:last, :width]
    certain = np.array([np.mean(points >= _CERTAIN) for points in curves])
    return np.asarray(means.swapaxes(0, 1).reshape(len(curves), -1)[:, :k_max] + certain[:, None])


def _mean_density(x: Floats, points: Floats) -> Floats:
    """The mean of phi(x - point), times the step, on the nodes up to 9 beyond the last point that is not certain."""
    open_points = points[points < _CERTAIN]
    last = int(np.searchsorted(x, open_points.max() + _TAIL)) if open_points.size else 0
    total = np.zeros(last)
    rows = max(1, _CELLS // max(last, 1))
    for first in range(0, len(open_points), rows):
        total += np.exp(-0.5 * (x[:last] - open_points[first : first + rows, None]) ** 2).sum(axis=0)
    return np.asarray(total * (_STEP * _DENSITY / len(points)))


@lru_cache(maxsize=1)
def _powers() -> tuple[Floats, Floats, Floats]:
    """Nodes x, log Phi(x), and (nodes, 128) powers Phi(x)^1 to Phi(x)^128: 1 MB, cached."""
    from scipy.special import log_ndtr

    x = _STEP * np.arange(np.ceil((_CERTAIN + 2 * _TAIL) / _STEP), dtype=np.float64) - _TAIL
    log_phi = log_ndtr(x)
    return x, log_phi, np.exp(np.multiply.outer(log_phi, np.arange(1.0, _BLOCK + 1)))

"""P(mu, k) = integral phi(x - mu) Phi(x)^k dx: the chance that a draw of N(mu, 1) is above k draws of N(0, 1).

The logarithm of the integrand, k log Phi(x) - (x - mu)^2 / 2, has a second derivative of at most -1. So it has one
peak, and 9 on either side of it hold all but 1e-17 of the integral. The trapezoid rule, whose error falls exponentially
for such functions, needs only a step that is small against the rise of Phi^k, about 1 / sqrt(2 ln k) wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from naysay.quantity.separation import Floats

_TAIL = 9.0
_CELLS = 1 << 18  # exponentials computed at once
_DENSITY = float(1 / np.sqrt(2 * np.pi))
# In float64 the result is 0 below the first, even for k = 1, and 1 above the second, even for the largest k.
_MIN_MU, _MAX_MU = -60.0, 50.0
# For all k at once: fixed nodes that serve k up to 1e7, at which a mu of _CERTAIN still gives 1 in float64.
_BLOCK, _STEP, _CERTAIN = 128, 1 / 20, 20.0


def at(k: Floats, mu: Floats) -> Floats:
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


def for_every_k(curves: Sequence[Floats], k_max: int) -> Floats:
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

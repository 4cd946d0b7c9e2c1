"""v for many runs at once: what a k is worth on each of the curves that the probes leave open.

v is linear in P(B), so its mean over a run needs only the mean of P(B): a run becomes weights on a fine grid of
separations, and all runs together one product of matrices with a table of P. That is accurate to 1e-4 of v, enough to
compare runs; the k itself is found by `estimate`, exactly.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from naysay.quantity._fit import MOST
from naysay.quantity._weight import Floats
from naysay.quantity.effectiveness import reliability

_STEP = 0.02  # between separations of the table
_ALL, _SOME = 40, 80  # every k up to the first; beyond, so many in even ratios


def worth(labels: Floats, runs: Floats, weight: float, k_max: int) -> tuple[NDArray[np.int64], Floats]:
    """Some k (n,) from 1 to k_max, and the mean v of every run at each of them (runs, n).

    Args:
        labels: (runs,) separation of the labels.
        runs: (runs, points) separation of the model through each run; below 0 counts as 0.
    """
    ks, table = _table(k_max)
    a = _weights(labels[:, None], len(table)) @ table
    b = _weights(runs, len(table)) @ table
    return ks, np.asarray(weight * (a - b) + (1 - weight) * (1 - a - b + 2 * a * b))


def _weights(separations: Floats, nodes: int) -> Floats:
    """(runs, nodes) weights with which a sum over the nodes is the mean over a run, by linear interpolation."""
    runs, points = separations.shape
    place = np.clip(separations, 0, MOST) / _STEP
    left = np.minimum(place.astype(np.int64), nodes - 2)
    right_share = (place - left).ravel()
    cell = (np.arange(runs)[:, None] * nodes + left).ravel()
    size = runs * nodes
    total = np.bincount(cell, 1 - right_share, size) + np.bincount(cell + 1, right_share, size)
    return np.asarray(total.reshape(runs, nodes) / points)


@lru_cache(maxsize=1)
def _table(k_max: int) -> tuple[NDArray[np.int64], Floats]:
    """The k looked at, and P(A) by separation (rows) and k (columns): under 1 MB, made once."""
    many = np.geomspace(_ALL, k_max, _SOME) if k_max > _ALL else np.array([k_max])
    ks = np.unique(np.concatenate([np.arange(1, min(k_max, _ALL) + 1), many.round().astype(np.int64)]))
    nodes = np.arange(0, MOST + _STEP / 2, _STEP)
    return ks, np.asarray(reliability(ks, nodes[:, None]))

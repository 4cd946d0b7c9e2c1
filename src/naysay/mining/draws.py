"""A random number for each pair of anchor and item, the same whatever else is in the row or in the block.

It is the hash of (key, anchor, item) by SplitMix64's output function (Steele et al. 2014), in NumPy. So a random
selection does not depend on how many candidates there are, in which order, or how rows are split.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST, _SPARE = np.uint64(31), np.uint64(11)


def uniform(key: np.uint64, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, m) numbers above 0 and below 1 for the ids of rows 0 to n - 1."""
    rows = np.arange(len(ids), dtype=np.uint64)[:, None]
    bits = _mixed(_mixed(_mixed(rows + _GOLDEN) ^ key) + ids.astype(np.uint64) * _GOLDEN)
    found: NDArray[np.float64] = ((bits >> _SPARE).astype(np.float64) + 0.5) * 2.0**-53
    return found


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection on 64 bits whose output looks random."""
    for shift, factor in _STEPS:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST)

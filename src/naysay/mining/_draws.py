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


def uniform(key: np.uint64, ids: NDArray[np.int64], rows: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """(n, m) numbers above 0 and below 1 for the ids of some rows; without `rows` of rows 0 to n - 1."""
    anchors = (np.arange(len(ids)) if rows is None else rows).astype(np.uint64)[:, None]
    bits = _mixed(_mixed(_mixed(anchors + _GOLDEN) ^ key) + ids.astype(np.uint64) * _GOLDEN)
    found: NDArray[np.float64] = ((bits >> _SPARE).astype(np.float64) + 0.5) * 2.0**-53
    return found


def distinct(
    key: np.uint64, rows: NDArray[np.int64], counts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(r, m) for each row `counts` different whole numbers from 0 to its size - 1, each set as likely; -1 beyond.

    Floyd's way (Bentley and Floyd 1987): the j-th of c numbers below s is drawn below s - c + j + 1, and if it is there
    already, s - c + j is taken. No draw is tried twice. O(m^2) a row.

    Args:
        rows: (r,) whose numbers, how many, and below what; of a row with fewer than it asks for, all.
        counts: (r,) whose numbers, how many, and below what; of a row with fewer than it asks for, all.
        sizes: (r,) whose numbers, how many, and below what; of a row with fewer than it asks for, all.
    """
    wanted = np.minimum(counts, sizes)
    found = np.full((len(rows), int(wanted.max(initial=0))), -1, np.int64)
    steps = np.broadcast_to(np.arange(found.shape[1]), found.shape)
    chances = uniform(key, steps, rows)
    for step in range(found.shape[1]):
        last = sizes - wanted + step
        drawn = np.minimum((chances[:, step] * (last + 1)).astype(np.int64), last)
        again = (found[:, :step] == drawn[:, None]).any(axis=1)
        found[:, step] = np.where(step < wanted, np.where(again, last, drawn), -1)
    return found


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection on 64 bits whose output looks random."""
    for shift, factor in _STEPS:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST)

"""Generated data for benchmarks: sizes as in real recommendation data, popularity by Zipf's law."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], int, int]


def recommendation(n_users: int = 50_000, n_items: int = 40_000, n_pairs: int = 1_900_000, seed: int = 0) -> Pairs:
    """About n_pairs distinct pairs (users, items): activity log-normal, popularity Zipf with exponent 0.8."""
    rng = np.random.default_rng(seed)
    activity = rng.lognormal(0.0, 0.8, n_users)
    popularity = 1.0 / np.arange(1, n_items + 1) ** 0.8
    drawn = int(n_pairs * 1.1)
    users = _by_weight(rng, activity, drawn)
    items = rng.permutation(n_items)[_by_weight(rng, popularity, drawn)]
    codes = np.unique(users * n_items + items)
    codes = rng.permutation(codes)[:n_pairs]
    return codes // n_items, codes % n_items, n_users, n_items


def uniform_pairs(n_anchors: int, n_items: int, n_pairs: int, seed: int = 0) -> Pairs:
    """n_pairs uniform pairs, duplicates left in."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_anchors, n_pairs), rng.integers(0, n_items, n_pairs), n_anchors, n_items


def _by_weight(rng: np.random.Generator, weights: NDArray[Any], n: int) -> NDArray[np.int64]:
    running = np.cumsum(weights)
    return np.searchsorted(running, rng.random(n) * running[-1], side="right")

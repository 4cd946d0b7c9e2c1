"""k-means by exact searches: the same centres for any number of threads, on all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.rng import rng_for
from naysay.search.exact import search

Vectors = NDArray[np.float32]
_SMALL, _WIDE = 1 << 27, 1 << 14  # numbers multiplied in all up to which float32 is the quickest; and of rows


def nearest(rows: Vectors, means: Vectors, count: int, *, budget: int, threads: int) -> NDArray[np.int64]:
    """(n, count) the nearest centres of each row, in order, by an exact search: of many rows or of few, the same."""
    small = rows.size * len(means) <= _SMALL and rows.shape[1] <= _WIDE
    engine = "float32" if small else "auto"
    return search(rows, means, count, metric="l2", engine=engine, budget=budget, threads=threads).ids


def centres(sample: Vectors, count: int, *, rounds: int, seed: int, budget: int, threads: int) -> Vectors:
    """(count, d) centres of Lloyd's Euclidean k-means, from `count` different rows of the sample.

    The nearest centre of each row is that of `search`, and a mean is a float64 sum in the order of rows: nothing in it
    depends on threads. A centre that no row is nearest to starts again at a row of the sample.

    Cost: rounds s count d.

    Args:
        sample: (s, d), s of at least `count`.
    """
    rng = rng_for(seed)
    found = sample[np.sort(rng.choice(len(sample), count, replace=False))]
    for _ in range(rounds):
        own = nearest(sample, found, 1, budget=budget, threads=threads)[:, 0]
        order = np.argsort(own, kind="stable")
        sizes = np.bincount(own, minlength=count)
        full = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[full]
        found = np.empty_like(found)
        found[full] = np.add.reduceat(sample[order], starts, axis=0, dtype=np.float64) / sizes[full, None]
        found[~full] = sample[rng.integers(0, len(sample), int((~full).sum()))]
    return found

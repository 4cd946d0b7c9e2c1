"""The baseline: a straightforward rank shift in numba. One thread, no log_q, no checks."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def rank_shift(seed: int, anchors: Any, indptr: Any, indices: Any, n_items: int, out: Any) -> Any:
    """Fill out (B, K) with uniform ids outside each anchor's row: draw a rank, binary-search its shift."""
    state = np.uint64(seed)
    for row in range(len(anchors)):
        start, stop = indptr[anchors[row]], indptr[anchors[row] + 1]
        for slot in range(out.shape[1]):
            state += np.uint64(0x9E3779B97F4A7C15)
            bits = state
            bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits = bits ^ (bits >> np.uint64(31))
            rank = np.int64(((bits >> np.uint64(32)) * np.uint64(n_items - (stop - start))) >> np.uint64(32))
            low, high = start, stop
            while low < high:
                middle = (low + high) >> 1
                if indices[middle] - (middle - start) <= rank:
                    low = middle + 1
                else:
                    high = middle
            out[row, slot] = rank + (low - start)
    return out

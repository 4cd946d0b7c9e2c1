"""Maximal marginal relevance, row by row: near to the anchor, and not near to what is taken already."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled


@compiled
def marginal(
    start: Any, stop: Any, vectors: Any, scores: Any, there: Any, wanted: Any, balance: Any, taken: Any
) -> None:
    """taken[b, j] = whether slot j is among the `wanted[b]` taken one after another, of the first `there[b]` slots.

    The next is the highest balance * score - (1 - balance) * (largest product with one that is taken, 0 at first); of
    equal ones the earlier slot. Products are summed in index order, so that they do not depend on the split.
    """
    width = vectors.shape[1]
    closest = np.empty(width)
    for row in range(start, stop):
        for slot in range(there[row]):
            closest[slot] = 0.0
        for turn in range(wanted[row]):
            best, place = -np.inf, -1
            for slot in range(there[row]):
                value = balance * scores[row, slot] - (1.0 - balance) * closest[slot]
                if not taken[row, slot] and (place < 0 or value > best):
                    best, place = value, slot
            taken[row, place] = True
            for slot in range(there[row]):
                product = 0.0
                for i in range(vectors.shape[2]):
                    product += vectors[row, slot, i] * vectors[row, place, i]
                if turn == 0 or product > closest[slot]:
                    closest[slot] = product

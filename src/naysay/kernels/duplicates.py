"""Loops over the slots of a batch and what each row is compared with: its positives, and the anchor itself.

The references of row b are references[indptr[b] : indptr[b + 1]], ids of items. An id of -1 is an empty slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled
from naysay.kernels.csr import row_contains

ITSELF, SAME_KEY = 1, 2


@compiled
def same(start: Any, stop: Any, ids: Any, indptr: Any, references: Any, keys: Any, out: Any) -> None:
    """out[b, j] = 1 where ids[b, j] is a reference of row b, 2 where it has the key of one, 0 elsewhere.

    Args:
        keys: (n,) of all items, 0 for one that has none; or (0,) if there are no keys.
    """
    for row in range(start, stop):
        for slot in range(ids.shape[1]):
            item, found = ids[row, slot], 0
            key = keys[item] if item >= 0 and len(keys) else np.uint64(0)
            for place in range(indptr[row], indptr[row + 1]):
                other = references[place]
                if other == item:
                    found = ITSELF
                    break
                if key != 0 and keys[other] == key:
                    found = SAME_KEY
            out[row, slot] = found if item >= 0 else 0


@compiled
def closest(start: Any, stop: Any, ids: Any, own: Any, indptr: Any, references: Any, vectors: Any, out: Any) -> None:
    """out[b, j] = the largest dot product of vector ids[b, j] with a reference of row b, or 0 if none is above 0.

    Args:
        own: (B,) one more reference of each row, -1 none.
        vectors: (n, d) of unit length.
    """
    for row in range(start, stop):
        for slot in range(ids.shape[1]):
            item = ids[row, slot]
            best = 0.0
            if item >= 0:
                for place in range(indptr[row], indptr[row + 1] + 1):
                    other = references[place] if place < indptr[row + 1] else own[row]
                    if other < 0:
                        continue
                    dot = 0.0
                    for i in range(vectors.shape[1]):
                        dot += np.float64(vectors[item, i]) * np.float64(vectors[other, i])
                    best = max(best, dot)
            out[row, slot] = min(best, 1.0)


@compiled
def vouched(
    start: Any,
    stop: Any,
    anchors: Any,
    ids: Any,
    indptr: Any,
    indices: Any,
    bits: Any,
    item_indptr: Any,
    item_anchors: Any,
    out: Any,
) -> None:
    """out[b, j] = whether ids[b, j] is a positive of an anchor that shares a positive with anchors[b].

    Args:
        indptr: The positives of each anchor, with their filter.
        indices: The positives of each anchor, with their filter.
        bits: The positives of each anchor, with their filter.
        item_indptr: The anchors of each item.
        item_anchors: The anchors of each item.
    """
    for row in range(start, stop):
        low, high = indptr[anchors[row]], indptr[anchors[row] + 1]
        for slot in range(ids.shape[1]):
            item, found = ids[row, slot], False
            if item >= 0 and item < len(item_indptr) - 1:
                for place in range(item_indptr[item], item_indptr[item + 1]):
                    other = item_anchors[place]
                    for step in range(indptr[other], indptr[other + 1]):
                        if row_contains(indices, bits, low, high, np.int64(indices[step])):
                            found = True
                            break
                    if found:
                        break
            out[row, slot] = found

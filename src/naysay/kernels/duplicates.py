"""Loops that compare the slots of a batch with the references of each row: its positives, and the anchor itself.

The references of row b are references[indptr[b] : indptr[b + 1]], ids of items. An id of -1 is an empty slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.kernels.compile import compiled
from naysay.kernels.csr import row_contains
from naysay.kernels.random import mixed

ITSELF, SAME_KEY = 1, 2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SPACE, _HIGH = np.uint8(32), np.uint64(32)


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
def largest_product(
    start: Any, stop: Any, ids: Any, own: Any, indptr: Any, references: Any, vectors: Any, out: Any
) -> None:
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
def sign(start: Any, stop: Any, buffer: Any, starts: Any, shingle: Any, factors: Any, terms: Any, out: Any) -> None:
    """out[i] = the MinHash signature of text i, buffer[starts[i] : starts[i + 1]]; an empty text keeps its row.

    Args:
        shingle: Words in a run.
        factors: (P,) and terms (P,) of the hash functions x -> (factor x + term) >> 32.
    """
    last = np.zeros(shingle, np.uint64)  # a ring of the last words' hashes
    for text in range(start, stop):
        words, word = 0, np.uint64(0)
        end = starts[text + 1]
        if starts[text] == end:
            continue
        for place in range(starts[text], end + 1):
            if place < end and buffer[place] != _SPACE:
                word = mixed((word ^ np.uint64(buffer[place])) + _GOLDEN)
                continue
            last[words % shingle] = word
            words, word = words + 1, np.uint64(0)
            if words < shingle and place < end:
                continue
            length = min(words, shingle)
            run = np.uint64(length)
            for ago in range(length, 0, -1):
                run = mixed((run ^ last[(words - ago) % shingle]) + _GOLDEN)
            for i in range(len(factors)):
                hashed = np.uint32((factors[i] * run + terms[i]) >> _HIGH)
                out[text, i] = min(out[text, i], hashed)


@compiled
def largest_jaccard(
    start: Any, stop: Any, ids: Any, own: Any, indptr: Any, references: Any, keys: Any, signed: Any, out: Any
) -> None:
    """out[b, j] = the largest estimated Jaccard similarity of text ids[b, j] with a reference of row b.

    Args:
        own: (B,) one more reference of each row, -1 none.
        keys: (n,) 0 for an empty text, which is similar to nothing.
        signed: (n, P) the signatures.
    """
    size = signed.shape[1]
    for row in range(start, stop):
        for slot in range(ids.shape[1]):
            text, best = ids[row, slot], 0
            out[row, slot] = 0.0
            if text < 0 or keys[text] == 0:
                continue
            for place in range(indptr[row], indptr[row + 1] + 1):
                other = references[place] if place < indptr[row + 1] else own[row]
                if other < 0 or keys[other] == 0:
                    continue
                equal = 0
                for i in range(size):
                    equal += signed[text, i] == signed[other, i]
                best = max(best, equal)
            out[row, slot] = best / size


@compiled
def transitive(
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
        indptr: With indices and bits: the positives of each anchor, and their filter.
        item_indptr: With item_anchors: the anchors of each item.
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

"""MinHash: how many runs of words two texts share, from a short signature of each.

A text becomes the set of its runs of w words. For each of P hash functions the signature keeps the smallest hash of
the set. Two sets have the same smallest one with probability |A and B| / |A or B|, their Jaccard similarity, so the
share of equal places estimates it, with a standard deviation of sqrt(J (1 - J) / P).

Broder. On the Resemblance and Containment of Documents. 1997.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen, offsets
from naysay.kernels.compile import compiled
from naysay.kernels.random import mixed
from naysay.kernels.threads import in_rows

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ODD = np.uint64(1)
_SPACE, _HIGH = np.uint8(32), np.uint64(32)
_MOST = np.uint32(0xFFFFFFFF)


def signatures(texts: Sequence[bytes], shingle: int, size: int) -> NDArray[np.uint32]:
    """(n, size) the signatures of folded texts, words apart by single spaces; the same on every machine.

    An empty text has a row of 2^32 - 1, and must not be compared. O(words * size) time.

    Args:
        shingle: W, the words of a run; a text of fewer words is one run.
        size: P, the hash functions.
    """
    buffer = np.frombuffer(b"".join(texts), np.uint8)
    starts = offsets(np.fromiter(map(len, texts), np.int64, len(texts)))
    found = np.full((len(texts), size), _MOST, np.uint32)
    factors, terms = _functions(size)
    steps = buffer.size * max(1, size // 4)
    in_rows(_sign, len(texts), steps, frozen(buffer), frozen(starts), shingle, factors, terms, found)
    return found


def _functions(size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The factors (odd) and terms of hash functions x -> (factor x + term) >> 32."""
    places = np.arange(1, 2 * size + 1, dtype=np.uint64) * _GOLDEN
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        places = (places ^ (places >> np.uint64(shift))) * np.uint64(factor)
    places ^= places >> np.uint64(31)
    return frozen(places[:size] | _ODD), frozen(places[size:])


@compiled
def _sign(start: Any, stop: Any, buffer: Any, starts: Any, shingle: Any, factors: Any, terms: Any, found: Any) -> None:
    """The signature of each text from `start` to `stop`."""
    last = np.zeros(shingle, np.uint64)  # the hashes of the last words, in a ring
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
            held = min(words, shingle)
            run = np.uint64(held)
            for ago in range(held, 0, -1):
                run = mixed((run ^ last[(words - ago) % shingle]) + _GOLDEN)
            for i in range(len(factors)):
                hashed = np.uint32((factors[i] * run + terms[i]) >> _HIGH)
                found[text, i] = min(found[text, i], hashed)


@compiled
def most_alike(
    start: Any, stop: Any, ids: Any, own: Any, indptr: Any, references: Any, keys: Any, signed: Any, out: Any
) -> None:
    """out[b, j] = the largest estimated Jaccard similarity of text ids[b, j] with a reference of row b.

    Args:
        ids: (B, K) texts, -1 none.
        own: (B,) one more reference of each row, -1 none.
        indptr: The references of row b are references[indptr[b] : indptr[b + 1]].
        references: The references of row b are references[indptr[b] : indptr[b + 1]].
        keys: (n,) 0 for an empty text, which is like nothing.
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

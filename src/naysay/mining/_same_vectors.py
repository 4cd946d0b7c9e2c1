"""Candidates whose vector is that of a positive, or of the anchor: the same thing under another id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.mining._ranks import places
from naysay.mining.candidates import Candidates, Mask
from naysay.search._pair_scores import taken
from naysay.search.vectors import Vectors

Ids = NDArray[np.int64]
_NUMBERS = 1 << 22  # of vectors that are compared at a time


def same_vectors(
    candidates: Candidates, corpus: Vectors, anchors: Ids, items: Ids, scores: NDArray[np.float32]
) -> Mask:
    """(n, m): candidates whose vector equals, number for number, that of an item paired with their anchor.

    An encoder gives equal inputs equal vectors, so nothing needs to be read but the vectors. Equal vectors have equal
    scores, which stand together in a row: only those are compared. A binary search a pair, and d for each equal score.

    Args:
        candidates: Of one search, in its order.
        corpus: `Vectors`.
        anchors: (p,) the pairs: known positives, or the anchors themselves where ids are shared.
        items: (p,) the pairs: known positives, or the anchors themselves where ids are shared.
        scores: (p,) the pairs: known positives, or the anchors themselves where ids are shared.
    """
    found = np.zeros(candidates.ids.shape, np.bool_)
    first, last = np.full(len(items), -1), np.full(len(items), np.iinfo(np.int64).max)
    starts, stops = (places(candidates, anchors, ends, scores) for ends in (first, last))
    counts = stops - starts
    pair = np.repeat(np.arange(len(items)), counts)
    slot = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts) + starts[pair]
    rows = anchors[pair]
    step = max(1, _NUMBERS // max(1, corpus.width))
    for start in range(0, len(pair), step):
        part = slice(start, start + step)
        one, other = taken(corpus, items[pair[part]]), taken(corpus, candidates.ids[rows[part], slot[part]])
        same = (one == other).all(axis=1)
        found[rows[part][same], slot[part][same]] = True
    return found

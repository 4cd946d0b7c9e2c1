"""Scores of listed pairs, by the kernel that scores everything: what is known is scored like a candidate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.kernels import dots
from naysay.kernels.threads import in_rows
from naysay.search.exact import METRICS
from naysay.search.vectors import Vectors

_NUMBERS = 1 << 22  # of vectors that are held at a time, on either side

Ids = NDArray[np.int64]


def pair_scores(queries: Vectors, corpus: Vectors, anchors: Ids, items: Ids, metric: str) -> NDArray[np.float32]:
    """(p,) the score of each pair of rows, as a search gives it.

    Pairs are taken in the order of their items, so that a corpus on disk is passed over once. O(p d).

    Args:
        queries: `Vectors`.
        corpus: `Vectors`.
    """
    found = np.empty(len(items), np.float32)
    order = np.argsort(items, kind="stable")
    step = max(1, _NUMBERS // max(1, corpus.width))
    for start in range(0, len(order), step):
        part = order[start : start + step]
        sides = [frozen(taken(side, ids[part])) for side, ids in ((queries, anchors), (corpus, items))]
        lengths = []
        for side in sides:
            length = np.empty(len(part))
            in_rows(dots.norms, len(part), side.size, side, length)
            lengths.append(frozen(length))
        out = np.empty((len(part), 1), np.float32)
        own, one = frozen(np.arange(len(part))[:, None]), frozen(np.ones(len(part), np.int64))
        code = METRICS[metric]
        loop = (code, sides[0], lengths[0], sides[1], lengths[1], 0, one, own, out)
        in_rows(dots.listed_scores, len(part), sides[0].size, *loop)
        found[part] = out[:, 0]
    return found


def taken(vectors: Vectors, ids: Ids) -> NDArray[Any]:
    """(p, d) the rows of these ids, float32 or float64: compiled loops know no half precision."""
    wanted, places = np.unique(ids, return_inverse=True)
    rows = np.asarray(vectors.take(wanted))
    kind = np.float64 if rows.dtype == np.float64 else np.float32
    return np.ascontiguousarray(rows.astype(kind, copy=False)[places.reshape(-1)])


def lowest_of(anchors: Ids, scores: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """(n,) the lowest score of each anchor, NaN where it has none."""
    lowest = np.full(n, np.inf, np.float32)
    np.minimum.at(lowest, anchors, scores)
    return np.where(np.isinf(lowest), np.float32(np.nan), lowest)

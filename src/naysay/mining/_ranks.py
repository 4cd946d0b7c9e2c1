"""Ranks in the whole corpus, though the search left known pairs out: each is put in its place among what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from naysay.mining.candidates import Candidates
from naysay.mining.judge import SUSPICIOUS

Ids = NDArray[np.int64]


def with_left_out(
    candidates: Candidates,
    anchors: Ids,
    items: Ids,
    scores: NDArray[np.float32],
    kinds: Mapping[str, NDArray[np.bool_]],
    skipped: Ids | None = None,
) -> Candidates:
    """The candidates of one search with ranks, and counts, as if it had listed these pairs too.

    A search that leaves pairs out finds as many candidates for an anchor with a thousand positives as for one with
    one, and need not be widened for all anchors by the largest. The rank is then that in the corpus, anyway. A binary
    search for each pair.

    Args:
        anchors: (p,) the pairs that the search was told to leave out.
        items: (p,) the pairs that the search was told to leave out.
        scores: (p,) the pairs that the search was told to leave out.
        kinds: {reason: (p,) which of them}: counted in `outside` where they would have been listed: ahead of the
            last candidate, or anywhere if the row has slots to spare.
        skipped: (n,) how many candidates the search passed over before the first, or None: "suspicious".
    """
    n, m = candidates.ids.shape
    place = places(candidates, anchors, items, scores)
    listed = place < m
    ahead = np.bincount(anchors * (m + 1) + place, minlength=n * (m + 1)).reshape(n, m + 1)
    rank = candidates.rank + np.cumsum(ahead, axis=1)[:, :m] + (0 if skipped is None else skipped[:, None])
    counts = {reason: np.bincount(anchors[listed & chosen], minlength=n) for reason, chosen in kinds.items()}
    if skipped is not None:
        counts[SUSPICIOUS] = skipped
    return replace(
        candidates,
        rank=np.where(candidates.filled, rank, 0).astype(np.int32),
        outside={reason: found for reason, found in counts.items() if found.any()},
    )


def places(candidates: Candidates, anchors: Ids, items: Ids, scores: NDArray[np.float32]) -> Ids:
    """(p,) how many candidates of its row stand before each pair: a higher score, or an equal one and a lower id."""
    low = np.zeros(len(anchors), np.int64)
    high = np.full(len(anchors), candidates.ids.shape[1])
    for _ in range(candidates.ids.shape[1].bit_length()):
        middle = (low + high) // 2
        inside = np.minimum(middle, candidates.ids.shape[1] - 1)
        there, ids = candidates.scores[anchors, inside], candidates.ids[anchors, inside]
        before = (ids >= 0) & ((there > scores) | ((there == scores) & (ids < items))) & (low < high)
        low, high = np.where(before, middle + 1, low), np.where(before, high, np.minimum(middle, high))
    return low

"""Collect: the candidates of all sources, with full-corpus ranks, without what can never be a negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.mining._task import Rows, Task
from naysay.mining.candidates import Candidates, Mask, canonical_order, join
from naysay.mining.exclude import exclude
from naysay.mining.judge import SUSPICIOUS
from naysay.search._pair_scores import lowest_of, pair_scores, taken
from naysay.search.found import Found
from naysay.search.vectors import Vectors
from naysay.types import anchor_ids

Ids = NDArray[np.int64]
_NUMBERS = 1 << 22  # of vectors that are compared at a time


def collect(task: Task, rows: Rows, found: Found, skipped: Ids | None) -> Candidates:
    """Join what all sources found, with ranks and scores, and drop what can never be a negative.

    Args:
        task: The job.
        rows: The anchors.
        found: What the search found for them, without known pairs.
        skipped: (n,) how many suspected candidates the search skipped, or None.
    """
    (anchors, items), scores, kinds = rows.known.pairs(), rows.known_scores, rows.kinds
    searched = with_left_out(Candidates.of(found), anchors, items, scores, kinds, skipped)
    positive = kinds["positive"]
    searched = replace(searched, positive_scores=lowest_of(anchors[positive], scores[positive], len(searched)))
    parts = [searched, *(_listed(name, ids, task, rows) for name, ids in rows.lists.items())]
    candidates = join(*parts)
    if task.options.same_ids:  # before `exclude` calls it ignored; in a part of the rows, row i is not item i
        candidates = candidates.drop(rows.known.contains(np.arange(len(searched)), candidates.ids), "positive")
        candidates = candidates.drop(candidates.ids == anchor_ids(rows.query)[:, None], "anchor")
    candidates = exclude(candidates, rows.known)
    if task.options.judge is not None:
        like = positive | kinds["anchor"]
        same = [same_vectors(part, task.corpus, anchors[like], items[like], scores[like]) for part in parts]
        candidates = candidates.drop(np.concatenate(same, axis=1), "duplicate")
    if task.duplicates is not None:
        candidates = exclude(candidates, duplicates=task.duplicates, query=rows.query)
    return candidates


def _listed(name: str, ids: Ids, task: Task, rows: Rows) -> Candidates:
    """The list of another source, scored by the vectors and in the order of a search; ranks are those of the list."""
    filled = ids >= 0
    scores = np.full(ids.shape, -np.inf, np.float32)
    scores[filled] = pair_scores(rows.queries, task.corpus, np.nonzero(filled)[0], ids[filled], task.options.metric)
    found = Candidates.of(SimpleNamespace(ids=ids, scores=scores), name)
    order = canonical_order(found, filled)
    ordered: dict[str, Any] = {
        part: np.take_along_axis(getattr(found, part), order, axis=1) for part in ("ids", "scores", "rank", "source")
    }
    return replace(found, **ordered)


def with_left_out(
    candidates: Candidates,
    anchors: Ids,
    items: Ids,
    scores: NDArray[np.float32],
    kinds: Mapping[str, NDArray[np.bool_]],
    skipped: Ids | None = None,
) -> Candidates:
    """Restore full-corpus ranks by re-inserting excluded pairs, and count these.

    A search that leaves pairs out finds as many candidates for an anchor with a thousand positives as for one with
    one, and need not be widened for all anchors by the largest. A binary search for each pair.

    Args:
        candidates: What the search found.
        anchors: (p,) the anchors of the pairs that it left out.
        items: (p,) their items.
        scores: (p,) their scores.
        kinds: {reason: (p,) which of them}: counted in `outside` where they would have been listed: ahead of the
            last candidate, or anywhere if the row has empty slots.
        skipped: (n,) how many suspected candidates the search skipped before the first, or None.
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
        outside={reason: count for reason, count in counts.items() if count.any()},
    )


def places(candidates: Candidates, anchors: Ids, items: Ids, scores: NDArray[np.float32]) -> Ids:
    """(p,) how many candidates of its row come before each pair: a higher score, or an equal one and a lower id."""
    low = np.zeros(len(anchors), np.int64)
    high = np.full(len(anchors), candidates.ids.shape[1])
    for _ in range(candidates.ids.shape[1].bit_length()):
        middle = (low + high) // 2
        inside = np.minimum(middle, candidates.ids.shape[1] - 1)
        there, ids = candidates.scores[anchors, inside], candidates.ids[anchors, inside]
        before = (ids >= 0) & ((there > scores) | ((there == scores) & (ids < items))) & (low < high)
        low, high = np.where(before, middle + 1, low), np.where(before, high, np.minimum(middle, high))
    return low


def same_vectors(
    candidates: Candidates, corpus: Vectors, anchors: Ids, items: Ids, scores: NDArray[np.float32]
) -> Mask:
    """(n, m): candidates whose vector equals, number for number, that of an item paired with their anchor.

    An encoder gives equal inputs equal vectors. Equal vectors have equal scores, which are next to each other in a row:
    only those are compared. A binary search for each pair, and O(d) for each equal score.

    Args:
        candidates: What one search found, in its order.
        corpus: (N, d) vectors.
        anchors: (p,) the anchors of the pairs: known positives, or the anchors themselves where ids are shared.
        items: (p,) their items.
        scores: (p,) their scores.
    """
    equal = np.zeros(candidates.ids.shape, np.bool_)
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
        equal[rows[part][same], slot[part][same]] = True
    return equal

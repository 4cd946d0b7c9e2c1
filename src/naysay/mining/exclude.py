"""Exclude, window, drop_below: drop what can never be a negative, ranks outside a range, and scores too low.

A search leaves known pairs out by itself; `with_left_out` restores the ranks as if it had not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, as_floats, check_whole, public, raise_invalid, shown
from naysay.detectors._slots import threshold_of
from naysay.mining.candidates import Candidates, Mask, check_candidates
from naysay.mining.judge import SUSPICIOUS, ask, check_detector
from naysay.positives import Positives
from naysay.search._scores import taken
from naysay.search.vectors import Vectors
from naysay.types import Query

Ids = NDArray[np.int64]
_NUMBERS = 1 << 22  # of vectors that are compared at a time


@public
def exclude(
    candidates: Candidates,
    known: Positives | None = None,
    *,
    same_ids: Any = False,
    duplicates: Any = None,
    query: Query | None = None,
) -> Candidates:
    """Drop known pairs, the anchor itself, and duplicates, whatever they score.

    Each candidate is dropped for the first of these reasons. A search can leave known pairs out by itself; here they
    are dropped from lists that were made elsewhere. O(log) per slot, and the detector's cost.

    Args:
        candidates: What was found.
        known: Positives, by row and corpus id: "positive" and "ignored" pairs go.
        same_ids: True if row i is item i of the corpus, or (n,) the item of each row, -1 for none: then "anchor", the
            row itself, goes, unless it is a positive.
        duplicates: A detector, most likely `Duplicates`: what it suspects at 0.5 or more goes as "duplicate".
        query: What the detector is given; by default the row numbers, without positives: pass those to `Duplicates`.

    Examples:
        >>> import naysay as ns
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[1, 0, 2, 3]]), scores=np.array([[0.9, 0.8, 0.7, 0.6]]))
        >>> left = exclude(Candidates.of(found), ns.Positives.from_pairs([0], [1], n_items=4), same_ids=True)
        >>> left.ids[left.kept].tolist(), sorted(left.dropped)
        ([2, 3], ['anchor', 'positive'])
    """
    check_candidates(candidates)
    rows = np.arange(len(candidates))
    itself = rows if same_ids is True else None
    if not isinstance(same_ids, bool):
        itself = as_array("same_ids", to_numpy(same_ids))
        if itself.shape != rows.shape or itself.dtype.kind not in "iu":
            rule = f"True or False, or ({len(rows)},) the item of each row"
            raise_invalid("same_ids", rule, shown(same_ids) if itself.ndim == 0 else f"shape {itself.shape}")
    if known is not None:
        if not isinstance(known, Positives):
            raise_invalid("known", "Positives", type(known).__name__)
        if known.n_anchors != len(rows):
            raise_invalid("known", f"of {len(rows)} anchors, like the candidates", known.n_anchors)
        if candidates.ids.max(initial=-1) >= known.n_items:
            raise_invalid("known", f"of more than {candidates.ids.max()} items, like the candidates", known.n_items)
        candidates = candidates.drop(known.contains(rows, candidates.ids), "positive")
    if itself is not None:
        candidates = candidates.drop((candidates.ids == itself[:, None]) & candidates.filled, "anchor")
    if known is not None and known.relation is not None:
        candidates = candidates.drop(known.contains(rows, candidates.ids, relation="ignore"), "ignored")
    if duplicates is not None:
        check_detector("duplicates", duplicates)
        candidates = candidates.drop(ask(candidates, duplicates, query) >= threshold_of(duplicates), "duplicate")
    return candidates


@public
def window(candidates: Candidates, first: int = 1, last: int | None = None) -> Candidates:
    """Drop ranks before `first` ("too near") and after `last` ("too far"); both ends are kept.

    **Ranks are those of the list a candidate came from, before anything was dropped**, so that the window skips the
    same candidates whatever other stages did before. O(1) per slot.

    Args:
        candidates: What was found.
        first: The first rank to keep, from 1.
        last: The last rank to keep; None keeps all that follow.

    Examples:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]]))
        >>> left = window(Candidates.of(found), first=2, last=2)
        >>> left.ids[left.kept].tolist()
        [2]
    """
    check_candidates(candidates)
    check_whole("first", first, 1)
    candidates = candidates.drop(candidates.rank < first, "too near")
    if last is None:
        return candidates
    if check_whole("last", last, 1) < first:
        raise_invalid("last", f"at least first = {first}", last)
    return candidates.drop(candidates.rank > last, "too far")


@public
def drop_below(candidates: Candidates, min_score: Any) -> Candidates:
    """Drop scores below `min_score` as "too easy"; a score equal to it is kept, as in `Bands`. O(1) per slot.

    Args:
        candidates: What was found.
        min_score: A number, or (n,) of them.

    Examples:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]]))
        >>> left = drop_below(Candidates.of(found), 0.5)
        >>> left.ids[left.kept].tolist(), left.dropped["too easy"].tolist()
        ([4, 2], [1])
    """
    check_candidates(candidates)
    lowest = as_floats("min_score", min_score)
    if lowest.ndim and lowest.shape != (len(candidates),):
        raise_invalid("min_score", f"a number, or ({len(candidates)},) one for each anchor", f"shape {lowest.shape}")
    return candidates.drop(candidates.scores < lowest.astype(np.float32).reshape(-1, 1), "too easy")


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

    `kinds` are {reason: (p,) which of the pairs}: counted in `outside` where they would have been listed: ahead of the
    last candidate, or anywhere if the row has empty slots.
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
    only those are compared. A binary search for each pair, and O(d) for each equal score. The pairs are known
    positives, or the anchors themselves where ids are shared.
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

"""Exclude, window, drop_below: drop what can never be a negative, ranks outside a range, and scores too low."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import as_array, as_floats, check_whole, public, raise_invalid, shown
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.mining.candidates import Candidates, check_candidates
from naysay.mining.judge import ask, check_detector
from naysay.positives import Positives
from naysay.types import Query


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
        candidates = candidates.drop(ask(candidates, duplicates, query) >= SUSPICION_THRESHOLD, "duplicate")
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

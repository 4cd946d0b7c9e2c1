"""Exclude, window, drop_below: drop what can never be a negative, ranks outside a range, and scores too low."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, as_floats, check_whole, public, raise_invalid, shown
from naysay.mining.candidates import Candidates, Floats32, Ids, Mask, Reason, check_candidates
from naysay.mining.judge import check_detector, query_of, suspected
from naysay.mining.problem import Problem
from naysay.positives import Positives
from naysay.search._scores import pair_scores, taken
from naysay.search.vectors import Vectors
from naysay.types import Query, anchor_ids

_COMPARED = 1 << 22  # numbers of vectors, and pairs of scores, that are compared at a time


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
        duplicates: A detector, most likely `Duplicates`: what it suspects goes as "duplicate".
        query: What the detector is given; by default the row numbers, without positives: pass those to `Duplicates`.

    Examples:
        >>> import naysay as ns
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[1, 0, 2, 3]]), scores=np.array([[0.9, 0.8, 0.7, 0.6]]))
        >>> left = exclude(Candidates.of(found), ns.Positives.from_pairs([0], [1], n_items=4), same_ids=True)
        >>> left.ids[left.kept].tolist(), sorted(map(str, left.dropped))
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
        candidates = candidates.drop(known.contains(rows, candidates.ids), Reason.POSITIVE)
    if itself is not None:
        candidates = candidates.drop(candidates.ids == itself[:, None], Reason.ANCHOR)
    if known is not None and known.relation is not None:
        candidates = candidates.drop(known.contains(rows, candidates.ids, relation="ignore"), Reason.IGNORED)
    if duplicates is not None:
        check_detector("duplicates", duplicates)
        found = suspected(candidates, duplicates, query_of(candidates, query))
        candidates = candidates.drop(found, Reason.DUPLICATE)
    return candidates


@public
def window(candidates: Candidates, first: int = 1, last: int | None = None) -> Candidates:
    """Drop ranks before `first` ("too near") and after `last` ("too far"); both ends are kept.

    Ranks are those of the list a candidate came from, before a stage dropped anything. O(1) per slot.

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
    if last is not None and check_whole("last", last, 1) < first:
        raise_invalid("last", f"at least first = {first}", last)
    return in_window(candidates, first, last)


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
    return not_below(candidates, lowest)


def in_window(candidates: Candidates, first: int, last: int | None) -> Candidates:
    """Drop the ranks outside of a window."""
    candidates = candidates.drop(candidates.rank < first, Reason.TOO_NEAR)
    return candidates if last is None else candidates.drop(candidates.rank > last, Reason.TOO_FAR)


def not_below(candidates: Candidates, lowest: float | NDArray[np.float64]) -> Candidates:
    """Drop the scores below one number for all, or below one for each row."""
    return candidates.drop(candidates.scores < np.asarray(lowest, np.float32).reshape(-1, 1), Reason.TOO_EASY)


def without_copies(problem: Problem, candidates: Candidates, query: Query) -> Candidates:
    """Drop candidates that are the anchor under another id, and with a judge copies of its positives, too.

    An encoder gives equal inputs equal vectors, so candidates with the vector of the anchor hold its own text.
    """
    anchors, options = anchor_ids(query), problem.options
    rows = np.arange(len(anchors))
    queries = problem.queries_of(anchors)
    if not options.keep_own_text:
        own_scores = pair_scores(queries, queries, rows, rows, options.metric)
        same = _same_vectors(candidates, problem.corpus, rows, own_scores, lambda part: taken(queries, rows[part]))
        candidates = candidates.drop(same, Reason.OWN_TEXT)
    if options.judge is not None:
        known, places = problem.known_of(anchors)
        pair_rows, items = known.pairs()
        copied = problem.kinds[Reason.POSITIVE][places] | problem.kinds[Reason.ANCHOR][places]
        pairs = pair_rows[copied], items[copied], problem.known_scores[places][copied]
        candidates = candidates.drop(copies_of(candidates, problem.corpus, *pairs), Reason.DUPLICATE)
    if problem.duplicates is not None:
        candidates = candidates.drop(suspected(candidates, problem.duplicates, query), Reason.DUPLICATE)
    return candidates


def copies_of(candidates: Candidates, corpus: Vectors, rows: Ids, items: Ids, scores: Floats32) -> Mask:
    """(n, m): candidates whose vector equals, number for number, that of an item paired with their row."""
    return _same_vectors(candidates, corpus, rows, scores, lambda part: taken(corpus, items[part]))


def _same_vectors(
    candidates: Candidates, corpus: Vectors, rows: Ids, scores: Floats32, vectors_of: Callable[[Ids], NDArray[Any]]
) -> Mask:
    """(n, m): candidates whose vector equals one of `vectors_of(places)`, which belong to rows and have scores.

    Equal vectors have equal scores: only candidates with the same score are compared. O(m) for each pair, and O(d) for
    each equal score.
    """
    equal = np.zeros(candidates.ids.shape, np.bool_)
    width = max(1, candidates.ids.shape[1])
    for pairs in _in_parts(np.arange(len(rows)), _COMPARED // width):
        place, slot = np.nonzero(candidates.scores[rows[pairs]] == scores[pairs, None])
        place = pairs[place]
        for part in _in_parts(np.arange(len(place)), _COMPARED // max(1, corpus.width)):
            row = rows[place[part]]
            same = (vectors_of(place[part]) == taken(corpus, candidates.ids[row, slot[part]])).all(axis=1)
            equal[row[same], slot[part][same]] = True
    return equal


def _in_parts(places: Ids, size: int) -> list[Ids]:
    """Some of the places at a time."""
    step = max(1, size)
    return [places[start : start + step] for start in range(0, len(places), step)]

"""What can never be a negative, and what the options exclude: copies, ranks outside a range, scores too low."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.mining.candidates import Candidates, Floats32, Ids, Mask, Reason
from naysay.mining.judge import suspected
from naysay.mining.problem import Problem
from naysay.search._scores import pair_scores, taken
from naysay.search.vectors import Vectors

_COMPARED = 1 << 22  # numbers of vectors, and pairs of scores, that are compared at a time


def exclude(candidates: Candidates, problem: Problem, anchors: Ids) -> Candidates:
    """Drop candidates that are the anchor under another id, and with a judge copies of its positives, too.

    An encoder gives equal inputs equal vectors, so candidates with the vector of the anchor hold its own text. Known
    pairs are not among the candidates: the search leaves them out.
    """
    options = problem.options
    if not options.keep_own_text:
        rows = np.arange(len(anchors))
        queries = problem.queries_of(anchors)
        own_scores = pair_scores(queries, queries, rows, rows, options.metric)
        same = _same_vectors(candidates, problem.corpus, rows, own_scores, lambda part: taken(queries, rows[part]))
        candidates = candidates.drop(same, Reason.OWN_TEXT)
    if options.judge is not None:
        known, places = problem.known_of(anchors)
        rows, items = known.pairs()
        reasons = problem.reasons_of_known
        is_copied = reasons[Reason.POSITIVE][places] | reasons[Reason.ANCHOR][places]
        pairs = rows[is_copied], items[is_copied], problem.known_scores[places][is_copied]
        candidates = candidates.drop(copies_of(candidates, problem.corpus, *pairs), Reason.DUPLICATE)
    if problem.duplicates is not None:
        found = suspected(candidates, problem.duplicates, problem.query(anchors))
        candidates = candidates.drop(found, Reason.DUPLICATE)
    return candidates


def within_limits(candidates: Candidates, problem: Problem) -> Candidates:
    """Drop ranks outside of `rank_range`, and scores below the lowest of a negative."""
    if problem.options.rank_range is not None:
        first, last = problem.options.rank_range
        candidates = candidates.drop(candidates.rank < first, Reason.TOO_NEAR)
        if last is not None:
            candidates = candidates.drop(candidates.rank > last, Reason.TOO_FAR)
    if problem.lowest_score is not None:
        candidates = candidates.drop(candidates.scores < np.float32(problem.lowest_score), Reason.TOO_EASY)
    return candidates


def without_reviewed(candidates: Candidates, problem: Problem, anchors: Ids) -> Candidates:
    """Drop what a person found to be false."""
    if problem.reviewed is None:
        return candidates
    return candidates.drop(problem.reviewed.known.contains(anchors, candidates.ids), Reason.IGNORED)


def copies_of(candidates: Candidates, corpus: Vectors, rows: Ids, items: Ids, scores: Floats32) -> Mask:
    """(n, m): candidates whose vector equals, number for number, that of an item paired with their row."""
    return _same_vectors(candidates, corpus, rows, scores, lambda part: taken(corpus, items[part]))


def _same_vectors(
    candidates: Candidates, corpus: Vectors, rows: Ids, scores: Floats32, vectors_of: Callable[[Ids], NDArray[Any]]
) -> Mask:
    """(n, m): candidates whose vector equals one of `vectors_of(places)`, which belong to rows and have scores.

    Equal vectors have equal scores: only candidates with the same score are compared.
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

"""The stages of mining. `mine_block` looks at one anchor at a time: search, exclude, judge; jobs share it.

What comes out of it for an anchor depends on the problem and on that anchor alone, so that a job can be done in any
parts. `take_negatives` goes on with all anchors together: across anchors, select, backfill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.mining.candidates import RANDOM, Candidates, Floats32, Ids, Mask, Reason, canonical_order
from naysay.mining.judge import Judge, suspected
from naysay.mining.problem import DEPTH_FACTOR, FILLED, SELECTED, Problem, known_rows
from naysay.mining.rescore import answers_of, rescore
from naysay.mining.take import Selection, across_anchors, backfill, select, with_random
from naysay.rng import key_from, rng_for
from naysay.search._scores import pair_scores, taken
from naysay.search.vectors import Vectors

_COMPARED = 1 << 22  # numbers of vectors, and pairs of scores, that are compared at a time


def mine_block(problem: Problem, judge: Judge, anchors: Ids, searched: Candidates | None = None) -> Candidates:
    """The judged candidates of some anchors. Those that are short are searched deeper, as long as that can help.

    `searched` are their candidates, if they were searched to `problem.first_depth` before.
    """
    depth = problem.first_depth
    if searched is None:
        searched = collect(problem, anchors, depth)
    kept, short = _judged(problem, judge, anchors, searched, depth)
    while problem.may_deepen and short.any():
        depth = min(DEPTH_FACTOR * depth, problem.deepest)
        for rows in problem.blocks(np.flatnonzero(short), depth):
            deeper = collect(problem, anchors[rows], depth, silent=True)
            judged, short[rows] = _judged(problem, judge, anchors[rows], deeper, depth)
            kept = kept.with_rows(rows, judged.narrowed(searched.ids.shape[1]))
    return kept


def mine_blocks(problem: Problem, judge: Judge, anchors: Ids | None = None) -> Candidates:
    """The judged candidates of some anchors, by default of all, a block of them at a time."""
    fitted_to = None if judge.fitted is None or anchors is not None else judge.fitted.candidates
    blocks = []
    for rows in problem.blocks(problem.anchors if anchors is None else anchors, problem.first_depth):
        block = mine_block(problem, judge, rows, None if fitted_to is None else fitted_to.take(rows))
        blocks.append(block.narrowed(problem.listed_width))
    return Candidates.stacked(blocks)


def collect(problem: Problem, anchors: Ids, depth: int, *, silent: bool = False) -> Candidates:
    """Search for some anchors, add other sources, and drop what can never be a negative."""
    neighbours = problem.search(anchors, depth, silent=silent)
    known, places = problem.known_of(anchors)
    rows = known.pairs()[0]
    counts = {
        reason: np.bincount(rows[is_left_out[places]], minlength=len(anchors))
        for reason, is_left_out in problem.reasons_of_known.items()
    }
    searched = replace(
        Candidates.of(neighbours.ids, neighbours.scores, positive_scores=problem.positive_scores[anchors]),
        outside={reason: count for reason, count in counts.items() if count.any()},
    )
    others = [_of_source(problem, anchors, name, ids[anchors]) for name, ids in problem.sources.items()]
    return exclude(Candidates.joined([searched, *others]), problem, anchors)


def _of_source(problem: Problem, anchors: Ids, name: str, ids: Ids) -> Candidates:
    """The list of another source without known pairs, scored by the vectors and in the order of a search."""
    known = known_rows(problem.known, anchors)
    free = (ids >= 0) & ~known.contains(np.arange(len(anchors)), ids, relation="any")
    scores = np.full(ids.shape, -np.inf, np.float32)
    scores[free] = pair_scores(
        problem.queries_of(anchors), problem.corpus, np.nonzero(free)[0], ids[free], problem.options.metric
    )
    listed = Candidates.of(np.where(free, ids, -1), scores, name=name, rank=np.cumsum(free, axis=1))
    order = canonical_order(listed, free)
    return replace(listed, **listed.slots(lambda values: np.take_along_axis(values, order, axis=1)))


# ---- exclude ---------------------------------------------------------------------------------------------------------


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
        is_duplicate = suspected(candidates, problem.duplicates, problem.query(anchors))
        candidates = candidates.drop(is_duplicate, Reason.DUPLICATE)
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


# ---- judge, rescore, take -------------------------------------------------------------------------------------------


def _judged(problem: Problem, judge: Judge, anchors: Ids, searched: Candidates, depth: int) -> tuple[Candidates, Mask]:
    """Drop what the options exclude and what the judge suspects; and (n,) which rows a deeper search may help."""
    left = searched
    if problem.reviewed is not None:  # a person found these to be false
        left = left.drop(problem.reviewed.known.contains(anchors, left.ids), Reason.IGNORED)
    left = within_limits(left, problem)
    if judge.left_out is not None:
        left = left.drop(judge.left_out.contains(anchors, left.ids), Reason.REVIEWED)
    kept = judge.apply(left, problem.query(anchors))
    has_more = (searched.ids[:, depth - 1] >= 0) & (depth < problem.deepest)
    if problem.lowest_score is not None:
        has_more &= searched.scores[:, depth - 1] >= np.float32(problem.lowest_score)
    unread = np.count_nonzero(kept.eligible, axis=1) < judge.reads
    too_few = np.count_nonzero(kept.kept, axis=1) < problem.counts_of(anchors)
    if judge.suspects_all_behind:
        too_few &= unread
    return kept, np.asarray(has_more & (too_few | unread))


def rescore_all(problem: Problem) -> Candidates:
    """The candidates of all anchors, scored again by a second model, and so is one positive of each anchor.

    There is one search: a budget of pairs is for all anchors together.
    """
    options = problem.options
    if options.rescore is None:
        raise ValueError
    depth = problem.first_depth
    searched = Candidates.stacked(
        [collect(problem, anchors, depth) for anchors in problem.blocks(problem.anchors, depth)]
    )
    anchors, items = (part[problem.one_positive_each] for part in problem.known.pairs())
    left = within_limits(searched, problem)
    return rescore(left, options.rescore, (anchors, items), options.rescore_budget, options.rescore_batch)


def take_negatives(
    problem: Problem, judge: Judge, lists: Candidates, anchors: Ids | None = None, too_frequent: Mask | None = None
) -> tuple[Candidates, Ids]:
    """Across anchors, select, backfill: the candidates with the negatives marked, and k of each anchor.

    If `anchors` are some of all, `too_frequent` are their candidates that the stage across anchors drops.
    """
    options = problem.options
    rows = problem.anchors if anchors is None else anchors
    counts = problem.counts_of(rows)
    if problem.counts is None:
        counts = np.minimum(np.count_nonzero(lists.kept, axis=1), options.max_k)
    if too_frequent is None:
        lists = across_anchors(lists, counts, options.max_per_item)
    else:
        lists = lists.drop(too_frequent, Reason.TOO_FREQUENT)
    if problem.counts is None:  # as many as are left
        counts = np.minimum(counts, np.count_nonzero(lists.kept, axis=1))
    chosen = select(lists, counts, _selection_of(problem), rows)
    if options.on_short == "random":
        return _with_random(problem, judge, chosen, counts, rows), counts
    return backfill(chosen, counts, options.on_short, rows), counts


def _selection_of(problem: Problem) -> Selection:
    """What the method of selection needs."""
    options = problem.options

    def vectors_of(ids: Ids) -> NDArray[Any]:
        return taken(problem.corpus, ids.reshape(-1)).reshape(*ids.shape, problem.corpus.width)

    return Selection(
        options.select,
        key_from(rng_for(options.seed, SELECTED)),
        options.temperature,
        None if options.groups is None else np.asarray(to_numpy(options.groups), np.int64),
        vectors_of,
        options.mmr_lambda,
        options.quotas,
    )


def _with_random(problem: Problem, judge: Judge, chosen: Candidates, counts: Ids, rows: Ids) -> Candidates:
    """Fill rows with random items, scored and judged like others. A suspected one is dropped; the row stays short."""
    options = problem.options

    def score(places: Ids, ids: Ids) -> Floats32:
        if options.rescore is not None:
            return answers_of(options.rescore, rows[places], ids, options.rescore_batch, "rescore")
        return problem.score(rows[places], ids)

    key = key_from(rng_for(options.seed, FILLED))
    filled = with_random(chosen, counts, rows, partial(known_rows, problem.known), score, key)
    is_new = filled.kept & (filled.kept_by == RANDOM)
    return judge.apply(filled, problem.query(rows), is_new)

"""The stages of mining. `mine_block` looks at one anchor at a time: search, exclude, judge; jobs share it.

What comes out of it for an anchor depends on the problem and on that anchor alone, so that a job can be done in any
parts. `take_negatives` goes on with all anchors together: across anchors, select, backfill.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.mining.candidates import RANDOM, Candidates, Floats32, Ids, Mask, Reason, canonical_order
from naysay.mining.exclude import exclude, within_limits, without_reviewed
from naysay.mining.judge import Judge
from naysay.mining.known import known_rows
from naysay.mining.problem import DEPTH_FACTOR, FILLED, SELECTED, Problem
from naysay.mining.rescore import answers_of, rescore
from naysay.mining.take import Selection, across_anchors, backfill, select, with_random
from naysay.rng import key_from, rng_for
from naysay.search._scores import pair_scores, taken


def mine_block(problem: Problem, judge: Judge, anchors: Ids, found: Candidates | None = None) -> Candidates:
    """The judged candidates of some anchors. Those that are short are searched deeper, as long as that can help.

    `found` are their candidates, if they were searched to `problem.first_depth` before.
    """
    depth = problem.first_depth
    if found is None:
        found = collect(problem, anchors, depth)
    kept, short = _judged(problem, judge, anchors, found, depth)
    while problem.may_deepen and short.any():
        depth = min(DEPTH_FACTOR * depth, problem.deepest)
        for rows in problem.blocks(np.flatnonzero(short), depth):
            deeper = collect(problem, anchors[rows], depth, silent=True)
            judged, short[rows] = _judged(problem, judge, anchors[rows], deeper, depth)
            kept = kept.with_rows(rows, judged.narrowed(found.ids.shape[1]))
    return kept


def mine_blocks(problem: Problem, judge: Judge, anchors: Ids | None = None) -> Candidates:
    """The judged candidates of some anchors, by default of all, a block of them at a time."""
    found = None if judge.fitted is None or anchors is not None else judge.fitted.found
    blocks = []
    for rows in problem.blocks(problem.anchors if anchors is None else anchors, problem.first_depth):
        block = mine_block(problem, judge, rows, None if found is None else found.take(rows))
        blocks.append(block.narrowed(problem.listed_width))
    return Candidates.stacked(blocks)


def collect(problem: Problem, anchors: Ids, depth: int, *, silent: bool = False) -> Candidates:
    """Search for some anchors, add other sources, and drop what can never be a negative."""
    found = problem.search(anchors, depth, silent=silent)
    known, places = problem.known_of(anchors)
    rows = known.pairs()[0]
    counts = {
        reason: np.bincount(rows[is_left_out[places]], minlength=len(anchors))
        for reason, is_left_out in problem.reasons_of_known.items()
    }
    searched = replace(
        Candidates.of(found.ids, found.scores, positive_scores=problem.positive_scores[anchors]),
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


def _judged(problem: Problem, judge: Judge, anchors: Ids, found: Candidates, depth: int) -> tuple[Candidates, Mask]:
    """Drop what the options exclude and what the judge suspects; and (n,) which rows a deeper search may help."""
    left = within_limits(without_reviewed(found, problem, anchors), problem)
    if judge.left_out is not None:
        left = left.drop(judge.left_out.contains(anchors, left.ids), Reason.REVIEWED)
    kept = judge.apply(left, problem.query(anchors))
    has_more = (found.ids[:, depth - 1] >= 0) & (depth < problem.deepest)
    if problem.lowest_score is not None:
        has_more &= found.scores[:, depth - 1] >= np.float32(problem.lowest_score)
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
    found = Candidates.stacked([collect(problem, anchors, depth) for anchors in problem.blocks(problem.anchors, depth)])
    anchors, items = (part[problem.one_positive_each] for part in problem.known.pairs())
    left = within_limits(found, problem)
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
    filled = with_random(chosen, counts, rows, known_rows(problem.known, rows), score, key)
    is_new = filled.kept & (filled.kept_by == RANDOM)
    return judge.apply_to(filled, problem.query(rows), is_new)

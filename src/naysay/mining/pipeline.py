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
from naysay.mining.candidates import RANDOM, Candidates, Floats32, Ids, Mask, Reason, canonical_order, joined
from naysay.mining.exclude import in_window, not_below, without_copies
from naysay.mining.judge import Judge
from naysay.mining.problem import DEPTH_FACTOR, FILLED, SELECTED, Problem, known_rows
from naysay.mining.rescore import answers_of, rescored
from naysay.mining.take import across_anchors, filled_up, selected, with_random
from naysay.rng import rng_for
from naysay.search._scores import pair_scores, taken


def mine_block(problem: Problem, judge: Judge, anchors: Ids, found: Candidates | None = None) -> Candidates:
    """The judged candidates of some anchors. Those that are short are searched deeper, as long as that can help.

    Args:
        problem: What is mined.
        judge: What is suspected.
        anchors: The anchors, ascending.
        found: Their candidates, if they were searched to `problem.first_depth` before.
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


def mine_blocks(problem: Problem, judge: Judge) -> Candidates:
    """The judged candidates of all anchors, a block of them at a time."""
    found = None if judge.fit is None else judge.fit.found
    blocks = []
    for anchors in problem.blocks(problem.anchors, problem.first_depth):
        block = mine_block(problem, judge, anchors, None if found is None else found.take(anchors))
        blocks.append(block.narrowed(problem.listed_width))
    problem.release()
    return Candidates.stacked(blocks)


def take_negatives(
    problem: Problem, judge: Judge, lists: Candidates, anchors: Ids | None = None, too_frequent: Mask | None = None
) -> tuple[Candidates, Ids]:
    """Across anchors, select, backfill: the candidates with the negatives marked, and k of each anchor.

    Random items that fill a row are scored and judged like others. A suspected one is dropped; the row stays short.
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
    chosen = selected(lists, counts, options.select, rows, _selection_options(problem), options.quotas)
    if options.on_short != "random":
        return filled_up(chosen, counts, options.on_short, rows), counts

    def score(places: Ids, ids: Ids) -> Floats32:
        if options.rescore is not None:
            return answers_of(options.rescore, rows[places], ids, options.rescore_batch, "rescore")
        return problem.score(rows[places], ids)

    known, rng = known_rows(problem.known, rows), rng_for(options.seed, FILLED)
    filled = with_random(chosen, counts, rows, known, score, rng)
    is_new = filled.kept & (filled.kept_by == RANDOM)
    return judge.apply_to(filled, problem.query(rows), is_new), counts


def _selection_options(problem: Problem) -> dict[str, Any]:
    """What the method of selection needs."""
    options = problem.options

    def vectors_of(ids: Ids) -> NDArray[Any]:
        return taken(problem.corpus, ids.reshape(-1)).reshape(*ids.shape, problem.corpus.width)

    return {
        "rng": rng_for(options.seed, SELECTED) if options.select in ("random", "softmax") else None,
        "temperature": options.temperature,
        "groups": None if options.groups is None else np.asarray(to_numpy(options.groups), np.int64),
        "similar": vectors_of,
        "mmr_lambda": options.mmr_lambda,
    }


def rescore_all(problem: Problem) -> Candidates:
    """The candidates of all anchors, scored again by a second model, and so is one positive of each anchor.

    There is one search: a budget of pairs is for all anchors together.
    """
    options = problem.options
    if options.rescore is None:
        raise ValueError
    depth = problem.first_depth
    found = Candidates.stacked([collect(problem, anchors, depth) for anchors in problem.blocks(problem.anchors, depth)])
    problem.release()
    anchors, items = (part[problem.held_out] for part in problem.known.pairs())
    limits = options.rescore_budget, options.rescore_batch
    left = narrowed_by_options(problem, found)
    return rescored(left, options.rescore, (anchors, items), *limits, "rescore")


def collect(problem: Problem, anchors: Ids, depth: int, *, silent: bool = False) -> Candidates:
    """Search for some anchors, add other sources, and drop what can never be a negative."""
    found = problem.search(anchors, depth, silent=silent)
    known, places = problem.known_of(anchors)
    rows = known.pairs()[0]
    counts = {reason: np.bincount(rows[of[places]], minlength=len(anchors)) for reason, of in problem.kinds.items()}
    searched = replace(
        Candidates.listed(found.ids, found.scores),
        positive_scores=problem.positive_scores[anchors],
        outside={reason: count for reason, count in counts.items() if count.any()},
    )
    others = [_source(problem, anchors, name, ids[anchors]) for name, ids in problem.sources.items()]
    return without_copies(problem, joined([searched, *others]), problem.query(anchors))


def _source(problem: Problem, anchors: Ids, name: str, ids: Ids) -> Candidates:
    """The list of another source without known pairs, scored by the vectors and in the order of a search."""
    known = known_rows(problem.known, anchors)
    free = (ids >= 0) & ~known.contains(np.arange(len(anchors)), ids, relation="any")
    scores = np.full(ids.shape, -np.inf, np.float32)
    rows = np.nonzero(free)[0]
    scores[free] = pair_scores(
        problem.queries_of(anchors), problem.corpus, rows, ids[free].astype(np.int64), problem.options.metric
    )
    ids = np.where(free, ids, -1).astype(np.int64)
    found = Candidates.listed(ids, scores, name, rank=np.cumsum(free, axis=1))
    order = canonical_order(found, free)
    sorted_slots: dict[str, Any] = {
        part: np.take_along_axis(getattr(found, part), order, 1) for part in ("ids", "scores", "rank")
    }
    return replace(found, **sorted_slots, source=np.where(sorted_slots["ids"] >= 0, 0, -1).astype(np.int8))


def narrowed_by_options(problem: Problem, candidates: Candidates) -> Candidates:
    """Drop ranks outside of the range, and scores too low."""
    if problem.options.rank_range is not None:
        candidates = in_window(candidates, *problem.options.rank_range)
    return candidates if problem.lowest_score is None else not_below(candidates, problem.lowest_score)


def without_reviewed(problem: Problem, anchors: Ids, candidates: Candidates) -> Candidates:
    """Drop what a person found to be false."""
    if problem.reviewed is None:
        return candidates
    return candidates.drop(problem.reviewed.known.contains(anchors, candidates.ids), Reason.IGNORED)


def _judged(problem: Problem, judge: Judge, anchors: Ids, found: Candidates, depth: int) -> tuple[Candidates, Mask]:
    """Drop what the options exclude and what the judge suspects; and (n,) which rows a deeper search may help."""
    left = narrowed_by_options(problem, without_reviewed(problem, anchors, found))
    kept = judge.apply(left, problem.query(anchors))
    has_more = (found.ids[:, depth - 1] >= 0) & (depth < problem.deepest)
    if problem.lowest_score is not None:
        has_more &= found.scores[:, depth - 1] >= np.float32(problem.lowest_score)
    unread = np.count_nonzero(kept.eligible, axis=1) < judge.reads
    too_few = np.count_nonzero(kept.kept, axis=1) < problem.counts_of(anchors)
    if judge.suspects_all_behind:
        too_few &= unread
    return kept, np.asarray(has_more & (too_few | unread))

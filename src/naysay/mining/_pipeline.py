"""The pipeline for some anchors: search, collect, rescore, judge, select, backfill. `mine` and jobs share it.

What comes out for an anchor depends on the task and on that anchor alone, so that a job can be done in any parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.posterior import Posterior
from naysay.mining._false_share import Collected, FitLists, counts_of, fit_depth, fitted, sampled_anchors, unfitted
from naysay.mining._review import ToReview, drawn_pairs
from naysay.mining._rules import Background, decide, lowest_score
from naysay.mining._search import (
    cut_below,
    first_depth,
    highest_scores,
    in_parts,
    nearest,
    of_source,
    open_rows,
    stacked,
    stitched,
    stops_early,
    trimmed,
)
from naysay.mining._task import FILLED, SELECTED, Rows, Task
from naysay.mining.backfill import backfill
from naysay.mining.candidates import Candidates, join, listed
from naysay.mining.exclude import drop_below, exclude, same_vectors, window, with_left_out
from naysay.mining.judge import Threshold, drop_at, judge, judge_of, judged_slots, without_positive
from naysay.mining.rescore import ScorePairs, answers_of, rescored
from naysay.mining.select import select
from naysay.rng import rng_for
from naysay.search._scores import lowest_of, pair_scores, taken
from naysay.search.exact import Found
from naysay.types import anchor_ids

Ids = NDArray[np.int64]
Floats32 = NDArray[np.float32]
# Candidates that are judged at a time: at most and at least, and for each document; few where the corpus is small.
_SLOTS, _FEWEST, _EACH = 1 << 18, 5 << 14, 3
ROWS = 2560  # anchors at a time: vectors are copied of those that are not neighbours
_STRIPS = 512  # a multiple of it is searched at a time, where it is more: blocks of a search are full then


@final
@dataclass(frozen=True, slots=True, eq=False)
class MinedRows:
    """What the pipeline made of some anchors."""

    judged: Candidates  # all, as judged
    candidates: Candidates  # the same with the negatives marked
    counts: Ids  # (n,) k of each anchor
    threshold: Threshold  # the judge, which rescored pairs may have decided
    listed_all: bool  # whether these are all candidates to the depth of the task, or only those that were needed


def mine_rows(
    task: Task, rows: Rows, threshold: Threshold, collected: Collected | None = None, *, list_all: bool = False
) -> MinedRows:
    """Mine negatives for some anchors.

    Args:
        task: What all anchors share.
        rows: The anchors.
        threshold: What is suspected.
        collected: Those of them, or all, that were searched before.
        list_all: List all candidates, also those that cannot change the negatives.
    """
    candidates, listed_all = _searched(task, rows, threshold, collected, list_all=list_all)
    if task.options.rescore is not None:
        candidates, threshold = _rescored(task, candidates, threshold, task.options.rescore)
        if threshold.detector is not None:
            candidates = judge(candidates, threshold.detector, threshold=threshold.drop_at, query=rows.query)
    negatives = finish(candidates, threshold.detector, threshold.drop_at, task, rows)
    return MinedRows(candidates, *negatives, threshold, listed_all)


def _searched(
    task: Task, rows: Rows, threshold: Threshold, collected: Collected | None, *, list_all: bool
) -> tuple[Candidates, bool]:
    """The candidates that the negatives are taken from, judged; and whether these are all to the depth of the task.

    An anchor with fewer than k that are left is searched again: to the depth of the task, below the threshold where
    the judge has one. What such a search skips is suspected, and counted.
    """
    detector, n = threshold.detector, rows.queries.n
    slots = min(_SLOTS, task.slots or _SLOTS, max(_FEWEST, _EACH * task.corpus.n))
    highest = None
    if task.may_deepen and detector is not None and not isinstance(detector, Posterior):
        highest = highest_scores(detector, rows.query)  # NaN where the judge is not one by score
    anchors, silent, parts = anchor_ids(rows.query), replace(task, on_progress=None), []
    known, reached = np.zeros(n, np.bool_), task.depth
    if collected is not None:
        known, reached = np.isin(anchors, collected.anchors), collected.depth
    early = not (known.all() and reached == task.depth) and not list_all and stops_early(task, threshold)
    early = early and (highest is None or not np.isnan(highest).any())
    known &= early or reached == task.depth
    depth = first_depth(task, threshold) if early else task.depth
    if collected is not None and early and highest is not None and known.any():
        some = np.flatnonzero(known)
        known[some] = cut_below(collected.of(anchors[some]), depth, highest[some])[2]
    wanted = np.full(n, task.options.max_k) if rows.counts is None else rows.counts
    blocks, size = [np.arange(n)], min(ROWS, slots // depth)
    if early:
        blocks = list(in_parts(np.flatnonzero(~known), size // _STRIPS * _STRIPS or size))
        blocks += in_parts(np.flatnonzero(known), slots // reached)
    for block in blocks:
        own = rows if len(block) == n else task.some(anchors[block], rows.all_known_scores)
        caps, reach = highest[block] if early and highest is not None else None, depth
        if collected is None or not known[block].all():
            found = collect(task, own, *nearest(task, own, depth, caps))
        elif caps is None:
            found, reach = collected.of(anchors[block]), reached
        else:
            found = collect(task, own, *cut_below(collected.of(anchors[block]), depth, caps)[:2])
        candidates = _judged(task, own, threshold, found)
        again = block[:0]
        if reach < task.depth or highest is not None:
            again = open_rows(own.query, wanted[block], threshold, candidates, reach)
        if caps is None and highest is not None:  # nothing is between the lowest score and a threshold below it
            low = -np.inf if threshold.min_score is None else np.float32(threshold.min_score)
            again = again[highest[block[again]] >= low]
        for some in in_parts(again, slots // task.depth):
            deep_rows = task.some(anchors[block[some]], rows.all_known_scores)
            deeper = nearest(silent, deep_rows, task.depth, None if highest is None else highest[block[some]])
            deep = _judged(task, deep_rows, threshold, collect(task, deep_rows, *deeper))
            candidates = stitched(candidates, some, deep)
        parts.append(trimmed(candidates, wanted[block]) if early else candidates)
    return stacked(parts, blocks) if early else parts[0], not early


def _judged(task: Task, rows: Rows, threshold: Threshold, collected: Candidates) -> Candidates:
    """Drop what a person found to be false, ranks outside of the range, scores too low, and what the judge suspects."""
    if task.reviewed is not None:
        false = task.reviewed.known.contains(anchor_ids(rows.query), collected.ids)
        collected = collected.drop(false, "ignored")
    candidates = narrowed(task, collected, threshold.min_score)
    if threshold.detector is None:
        return candidates
    return judge(candidates, threshold.detector, threshold=threshold.drop_at, query=rows.query)


def narrowed(task: Task, candidates: Candidates, min_score: float | None) -> Candidates:
    """Drop ranks outside of the range, and scores too low."""
    if task.options.rank_range is not None:
        candidates = window(candidates, *task.options.rank_range)
    return candidates if min_score is None else drop_below(candidates, min_score)


def _rescored(
    task: Task, candidates: Candidates, threshold: Threshold, score_pairs: ScorePairs
) -> tuple[Candidates, Threshold]:
    """Rescore the candidates and one positive of each anchor, then decide by these what is suspected."""
    options, one = task.options, task.held_out()
    anchors, items = (part[one] for part in task.known.pairs())
    limits = options.rescore_budget, options.rescore_batch
    candidates = rescored(candidates, score_pairs, (anchors, items), *limits, "rescore")
    scores = candidates.positive_scores
    detector, rule = decide(judge_of(options.judge, scores), scores[anchors], None)
    rule += without_positive(options.judge, scores)
    return candidates, Threshold(detector, rule, threshold.min_score, drop_at(detector))


def finish(candidates: Candidates, detector: Any, threshold: float, task: Task, rows: Rows) -> tuple[Candidates, Ids]:
    """Select and backfill: return the candidates with the negatives marked, and k of each anchor.

    Random items that fill a row are scored and judged like others. A suspected one is dropped; the row stays short.
    """
    options, counts = task.options, rows.counts
    if counts is None:
        counts = np.minimum(np.count_nonzero(candidates.kept, axis=1), options.max_k)
    chosen = select(
        candidates,
        counts,
        options.select,
        rng=rng_for(options.seed, SELECTED) if options.select in ("random", "softmax") else None,
        temperature=options.temperature,
        groups=options.groups,
        similar=partial(_vectors_of, task) if options.select == "mmr" else None,
        balance=options.balance,
        quotas=options.quotas,
        first=rows.start,
    )
    if options.on_short != "random":
        return backfill(chosen, counts, options.on_short, first=rows.start), counts

    def score(anchors: Ids, ids: Ids) -> Floats32:
        if options.rescore is not None:
            return answers_of(options.rescore, anchors, ids, options.rescore_batch, "rescore")
        return pair_scores(rows.queries, task.corpus, anchors, ids, options.metric)

    rng = rng_for(options.seed, FILLED)
    filled = backfill(chosen, counts, "random", known=rows.known, score=score, rng=rng, first=rows.start)
    width = chosen.ids.shape[1]
    if detector is None or filled.ids.shape[1] == width:
        return filled, counts
    new = filled.kept & (np.arange(filled.ids.shape[1]) >= width)
    return judged_slots(filled, detector, threshold, rows.query, new), counts


def _vectors_of(task: Task, ids: Ids) -> NDArray[Any]:
    """(r, m, d) the vectors of items."""
    return taken(task.corpus, ids.reshape(-1)).reshape(*ids.shape, task.corpus.width)


def collect(task: Task, rows: Rows, found: Found, skipped: Ids | None) -> Candidates:
    """Join what all sources found, with ranks and scores, and drop what can never be a negative.

    `found` is without known pairs; `skipped` is (n,) how many suspected candidates the search skipped, or None.
    """
    (anchors, items), scores, kinds = rows.known.pairs(), rows.known_scores, rows.kinds
    searched = with_left_out(Candidates.of(found), anchors, items, scores, kinds, skipped)
    positive = kinds["positive"]
    searched = replace(searched, positive_scores=lowest_of(anchors[positive], scores[positive], len(searched)))
    parts = [searched, *(of_source(name, ids, task, rows) for name, ids in rows.lists.items())]
    candidates = join(*parts)
    if task.own is not None and rows.lists:  # before `exclude` calls it ignored
        candidates = candidates.drop(rows.known.contains(np.arange(len(searched)), candidates.ids), "positive")
        candidates = candidates.drop(task.own.contains(anchor_ids(rows.query), candidates.ids), "anchor")
    candidates = exclude(candidates, rows.known)
    if task.options.judge is not None:
        like = positive | kinds["anchor"]
        same = [same_vectors(part, task.corpus, anchors[like], items[like], scores[like]) for part in parts]
        candidates = candidates.drop(np.concatenate(same, axis=1), "duplicate")
    if task.duplicates is not None:
        candidates = exclude(candidates, duplicates=task.duplicates, query=rows.query)
    return candidates


def fit_posterior(
    task: Task,
    known_scores: Floats32,
    sample: Callable[[], Background],
    *,
    size: int | None = None,
    collected: Collected | None = None,
) -> tuple[Posterior, FitLists]:
    """Fit the posterior of a task to a sample of its anchors; also return the lists that it was fitted to.

    Args:
        task: What is mined.
        known_scores: Of all known pairs.
        sample: Returns the scores of random pairs.
        size: How many anchors to search for at a time.
        collected: At least the sampled anchors, if they were searched deep enough.
    """
    detector = unfitted(task, known_scores)
    lists = lists_of(task, detector, sampled_anchors(task), known_scores, sample, size, collected)
    return fitted(task, detector, lists), lists


def lists_of(
    task: Task,
    detector: Posterior,
    anchors: Ids,
    known_scores: Floats32,
    sample: Callable[[], Background],
    size: int | None = None,
    collected: Collected | None = None,
) -> FitLists:
    """The lists of some anchors, as a posterior is fitted to them; for the other arguments see `fit_posterior`."""
    low = lowest_score(task, task.options.judge, sample)
    deep, parts = replace(task, depth=fit_depth(task), on_progress=None), []
    least = 0 if task.index is None else task.depth  # an index finds others where it is asked for fewer
    step, reached = len(anchors) if size is None else size, max(least, deep.depth)
    for start in range(0, len(anchors), max(1, step)):
        some = anchors[start : start + step]
        if collected is None:
            rows = deep.some(some, known_scores)
            found = collect(deep, rows, *nearest(deep, rows, reached))
        else:
            found, reached = collected.of(some), collected.depth
        free, inside = narrowed(task, found, low).kept, listed(found)
        free[:, task.depth : deep.depth] = False  # which only the fit searches
        inside[:, deep.depth : reached] = False
        parts.append(FitLists.of(detector, some, found, inside, free).cut(free.shape[1] - reached + deep.depth))
    return FitLists.joined(parts) if parts else FitLists.empty()


def pairs_to_review(task: Task, detector: Posterior, lists: FitLists, count: int) -> ToReview:
    """So many random pairs among the nearest that may be taken."""
    return drawn_pairs(detector, lists, counts_of(task, lists.anchors), count, task.reviewed)

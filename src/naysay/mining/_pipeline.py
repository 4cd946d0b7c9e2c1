"""The pipeline for some anchors: search, collect, rescore, judge, select, backfill. `mine` and jobs share it.

What comes out for an anchor depends on the task and on that anchor alone, so that a job can be done in any parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.mining._collect import collect
from naysay.mining._search import found_of
from naysay.mining._task import FILLED, SAMPLED, SELECTED, Rows, Task
from naysay.mining._threshold import Background, Threshold, background, decide, is_fitted_here, judge_of, lowest_score
from naysay.mining.backfill import backfill
from naysay.mining.candidates import Candidates
from naysay.mining.exclude import drop_below, window
from naysay.mining.judge import judge, score_thresholds
from naysay.mining.rescore import answers_of, rescore
from naysay.mining.select import select
from naysay.rng import rng_for
from naysay.search._pair_scores import lowest_of, pair_scores, taken

Ids = NDArray[np.int64]
Floats32 = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class MinedRows:
    """What the pipeline made of some anchors.

    Args:
        judged: All candidates, as judged.
        candidates: The same with the negatives marked.
        counts: (n,) k of each anchor.
        threshold: The judge, which rescored pairs may have decided.
    """

    judged: Candidates
    candidates: Candidates
    counts: Ids
    threshold: Threshold


def score_known(task: Task) -> Floats32:
    """The scores of all known pairs, in the order of `known.pairs()`."""
    return pair_scores(task.queries, task.corpus, *task.known.pairs(), task.options.metric)


def sample_of(task: Task) -> Background:
    """The scores of random pairs, drawn by the seed."""
    rng = rng_for(task.options.seed, SAMPLED)
    return background(task.queries, task.corpus, task.known, task.options.metric, rng)


def threshold_of(task: Task, known_scores: Floats32, sample: Callable[[], Background]) -> Threshold:
    """Decide what is suspected and what is too easy, before anything is searched.

    Args:
        task: The job.
        known_scores: As `score_known` returns them.
        sample: Returns the scores of random pairs; called only if they are needed.
    """
    options, positive, sample = task.options, task.kinds["positive"], cache(sample)
    lowest = lowest_of(task.known.pairs()[0][positive], known_scores[positive], task.queries.n)
    given = judge_of(options.judge, lowest)
    if given is not None and not is_fitted_here(given):
        score_thresholds(given, task.query(0, task.queries.n, task.queries))  # raises if an anchor has no threshold
    low = lowest_score(given, options.min_score, sample, auto_k=task.counts is None)
    if options.rescore is not None:
        return Threshold(None, "", low)
    return Threshold(*decide(given, known_scores[task.held_out()], sample), low)


def mine_rows(task: Task, rows: Rows, threshold: Threshold) -> MinedRows:
    """Mine negatives for some anchors."""
    candidates = collect(task, rows, *found_of(task, rows, threshold))
    if task.options.rank_range is not None:
        candidates = window(candidates, *task.options.rank_range)
    if threshold.min_score is not None:
        candidates = drop_below(candidates, threshold.min_score)
    if task.options.rescore is not None:
        candidates, threshold = _rescored(task, candidates, threshold)
    if threshold.detector is not None:
        candidates = judge(candidates, threshold.detector, query=rows.query)
    return MinedRows(candidates, *finish(candidates, threshold.detector, task, rows), threshold)


def _rescored(task: Task, candidates: Candidates, threshold: Threshold) -> tuple[Candidates, Threshold]:
    """Rescore the candidates and one positive of each anchor, then decide by these what is suspected."""
    options, one = task.options, task.held_out()
    anchors, items = (part[one] for part in task.known.pairs())
    assert options.rescore is not None
    candidates = rescore(
        candidates,
        options.rescore,
        positives=(anchors, items),
        budget=options.rescore_budget,
        batch=options.rescore_batch,
    )
    scores = candidates.positive_scores
    decided = decide(judge_of(options.judge, scores), scores[anchors], None)
    return candidates, Threshold(*decided, threshold.min_score)


def finish(candidates: Candidates, detector: Any, task: Task, rows: Rows) -> tuple[Candidates, Ids]:
    """Select and backfill: return the candidates with the negatives marked, and k of each anchor.

    Random items that fill a row are scored and judged like others. A suspected one is dropped, and leaves the row short.
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
            return answers_of(options.rescore, anchors, ids, options.rescore_batch)
        return pair_scores(rows.queries, task.corpus, anchors, ids, options.metric)

    rng = rng_for(options.seed, FILLED)
    filled = backfill(chosen, counts, "random", known=rows.known, score=score, rng=rng, first=rows.start)
    width = chosen.ids.shape[1]
    if detector is None or filled.ids.shape[1] == width:
        return filled, counts
    new = np.arange(filled.ids.shape[1]) >= width
    asked = judge(replace(filled, ids=np.where(new, filled.ids, -1)), detector, query=rows.query)
    return replace(filled, why=asked.why, suspicion=asked.suspicion, reasons=asked.reasons), counts


def _vectors_of(task: Task, ids: Ids) -> NDArray[Any]:
    """(r, m, d) the vectors of items."""
    return taken(task.corpus, ids.reshape(-1)).reshape(*ids.shape, task.corpus.width)

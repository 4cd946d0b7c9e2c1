"""What a task decides before its anchors are mined: the scores of known and of random pairs, and what is suspected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.posterior import Posterior
from naysay.mining._false_share import (
    FitLists,
    Ids,
    counts_of,
    fit_depth,
    fitted,
    is_auto,
    sampled_anchors,
    unfitted,
    usable,
)
from naysay.mining._false_share_text import sentence
from naysay.mining._pipeline import collect, narrowed
from naysay.mining._review import ToReview, drawn_pairs
from naysay.mining._rules import (
    Background,
    Threshold,
    decide,
    is_fitted_here,
    judge_of,
    lowest_score,
    without_positive,
)
from naysay.mining._search import nearest_of
from naysay.mining._task import SAMPLED, Task
from naysay.mining.candidates import Candidates, listed
from naysay.mining.judge import drop_at, score_thresholds
from naysay.rng import rng_for
from naysay.search._scores import lowest_of, pair_scores

Floats32 = NDArray[np.float32]
SAMPLE = 1 << 18  # pairs in the background sample


def score_known(task: Task) -> Floats32:
    """The scores of all known pairs, in the order of `known.pairs()`."""
    return pair_scores(task.queries, task.corpus, *task.known.pairs(), task.options.metric)


def sample_of(task: Task) -> Background:
    """Score 2^18 random pairs, drawn by the seed, or all pairs if there are no more."""
    n, known = task.corpus.n, task.known
    total = task.queries.n * n
    whole = total <= SAMPLE
    drawn = np.arange(total) if whole else rng_for(task.options.seed, SAMPLED).integers(0, total, SAMPLE)
    anchors, items = drawn // max(1, n), drawn % max(1, n)
    free = ~known.contains(anchors, items, relation="any")
    scores = pair_scores(task.queries, task.corpus, anchors[free], items[free], task.options.metric)
    return Background(scores, int(np.count_nonzero(known.contains(anchors, items))), whole)


def threshold_of(
    task: Task, known_scores: Floats32, sample: Callable[[], Background], posterior: Posterior | None = None
) -> Threshold:
    """Decide what is suspected and what is too easy.

    `sample` returns the scores of random pairs; it is called only if they are needed. `posterior` is that of the task,
    if the judge is "auto": where it cannot tell, the rule says why, and another takes its place.
    """
    options, positive, sample = task.options, task.kinds["positive"], cache(sample)
    lowest = lowest_of(task.known.pairs()[0][positive], known_scores[positive], task.queries.n)
    given = judge_of(options.judge, lowest)
    if given is not None and not is_fitted_here(given):
        score_thresholds(given, task.query(np.arange(task.queries.n), task.queries))  # raises if an anchor has none
    low = lowest_of_negatives(task, given, sample)
    if options.rescore is not None:
        return Threshold(None, "", low)
    if is_auto(task) and posterior is not None and usable(posterior):
        return Threshold(posterior, sentence(task, posterior), low, drop_at(posterior))
    detector, rule = decide(given, known_scores[task.held_out()], sample)
    if is_auto(task) and posterior is not None:
        review = "" if task.reviewed is None else f" {task.reviewed.describe()}"
        rule = f"How many of the nearest are false cannot be told: {posterior.reason}.{review} Instead: {rule}"
    rule += without_positive(options.judge, lowest)
    return Threshold(detector, rule, low, drop_at(detector))


def lowest_of_negatives(task: Task, judge: Any, sample: Callable[[], Background]) -> float | None:
    """The lowest score of a negative, or None."""
    return lowest_score(judge, task.options.min_score, sample, auto_k=task.counts is None)


def fit_posterior(
    task: Task,
    known_scores: Floats32,
    sample: Callable[[], Background],
    *,
    size: int | None = None,
    candidates: Candidates | None = None,
) -> tuple[Posterior, FitLists]:
    """Fit the posterior of a task to a sample of its anchors; also return the lists that it was fitted to.

    Args:
        task: What is mined.
        known_scores: Of all known pairs.
        sample: Returns the scores of random pairs.
        size: How many anchors to search for at a time.
        candidates: Those of all anchors, as `collect` returned them, if they were searched deep enough.
    """
    detector = unfitted(task, known_scores)
    lists = lists_of(task, detector, sampled_anchors(task), known_scores, sample, size, candidates)
    return fitted(task, detector, lists), lists


def lists_of(
    task: Task,
    detector: Posterior,
    anchors: Ids,
    known_scores: Floats32,
    sample: Callable[[], Background],
    size: int | None = None,
    candidates: Candidates | None = None,
) -> FitLists:
    """The lists of some anchors, as a posterior is fitted to them; for the other arguments see `fit_posterior`."""
    low = lowest_of_negatives(task, task.options.judge, sample)
    deep, parts = replace(task, depth=fit_depth(task), on_progress=None), []
    step = len(anchors) if size is None else size
    for start in range(0, len(anchors), max(1, step)):
        some = anchors[start : start + step]
        if candidates is None:
            rows = deep.some(some, known_scores)
            found = collect(deep, rows, nearest_of(deep, rows), None)
        else:
            found = candidates.take(some)
        free = narrowed(task, found, low).kept
        free[:, task.depth : deep.depth] = False  # which only the fit searches
        parts.append(FitLists.of(detector, some, found, listed(found), free))
    return FitLists.joined(parts) if parts else FitLists.empty()


def pairs_to_review(task: Task, detector: Posterior, lists: FitLists, count: int) -> ToReview:
    """So many random pairs among the nearest that may be taken."""
    return drawn_pairs(detector, lists, counts_of(task, lists.anchors), count, task.reviewed)

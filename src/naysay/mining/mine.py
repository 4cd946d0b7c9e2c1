"""mine: the best negatives in a corpus. Embeddings in, ids out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._options import takes_options
from naysay.checks import public, raise_invalid, shown
from naysay.detectors.posterior import Posterior
from naysay.mining._false_share import (
    MOST,
    Collected,
    FitLists,
    SetEstimate,
    estimate_set,
    fit_depth,
    is_auto,
    read_depth,
    recut,
    sampled_anchors,
)
from naysay.mining._known import known_of, own_note, read_own
from naysay.mining._pipeline import MinedRows, collect, finish, fit_posterior, mine_rows, pairs_to_review
from naysay.mining._rules import Background, rule_of_set, sample_of, score_known, threshold_of
from naysay.mining._search import nearest, shown_depth, stops_early, surveyed, with_index
from naysay.mining._task import Task, read_sources, task_of, without_own_vectors
from naysay.mining.backfill import notes_of, tally_of
from naysay.mining.explain import slots_of
from naysay.mining.judge import Threshold, limits_of
from naysay.mining.mined import Judged, Mined
from naysay.mining.options import MiningOptions
from naysay.search.vectors import as_vectors
from naysay.types import anchor_ids

_FITTED_TO = MOST  # anchors, of which nearly all are searched for a fit anyway


@public
@takes_options(MiningOptions)
def mine(queries: Any, corpus: Any, positives: Any, k: Any, options: MiningOptions) -> Mined:
    """Find k hard negatives for each query: near, but neither known nor likely positives.

    The stages run in this order. Each is a function of its own, and counts what it drops:

        search -> join -> exclude -> window, drop_below -> rescore -> judge -> select -> backfill

    judge="auto" returns the hardest k whose estimated share of false negatives is at most `false_share`. A `Posterior`
    is fitted to the nearest candidates and one known positive of each anchor, of at most 2,000 anchors, and to the
    cosines of candidates to their anchor's positives; candidates above its cut are dropped. If the nearest k are within
    the target, nothing is. `mined.rule` says the estimate before and after, what the cut cost, and what it rests on.

    Where the posterior cannot tell, the rule says why, and what takes its place: `Calibrated(alpha=0.05)`, fitted to
    one known positive of each anchor, if at least 19 anchors have one; else `Bands` with the default shares of all
    pairs. With `rescore` that is always so. **The guarantee of Calibrated is about positives that the encoder was not
    trained on.** If it was trained on these, their scores are too high, so is the threshold, and more than 5 % of
    unlabelled positives are missed: hold some out, and pass judge=Calibrated(0.05).fit(their scores). A `Calibrated`
    that is not fitted is fitted here, with its own alpha.

    judge=None takes the nearest: nothing is suspected, and duplicates are kept. Known positives, ignored pairs and the
    anchor itself are left out all the same. With a judge, candidates whose vector equals that of a positive (or of the
    anchor, with same_ids) are dropped as duplicates; with texts (`duplicates`) more of them are found.

    The search is as deep as the negatives need: k without a judge; k below the threshold, in one pass, with a judge by
    scores, whose suspected candidates are counted; with "auto" the 50 that it reads, and further for the anchors that
    lose too many. So `mined.candidates` may hold little more than the negatives. With `depth`, and where queries times
    corpus rows are at most 2^26, all candidates to that depth are listed. With `rank_range`, `rescore`, `sources`,
    another `select` or another judge there is one search at one depth. An anchor that is short afterwards is counted,
    and a note says how deep to search.

    The same arguments give the same bytes, whatever the engine, the budget and the threads.

    Args:
        queries: (n, d) vectors of any encoder: NumPy, torch, Arrow, or a .npy, .safetensors or .parquet file.
        corpus: (N, d) vectors, the same.
        positives: Known positives: `Positives` (anchor = query row, item = corpus row), two arrays (anchors, items),
            (n,) the one positive of each query with -1 for none, or None.
        k: Number of negatives: one for all, (n,) one for each, or "auto": as many as the judge does not drop and reach
            the lowest useful score, at most `max_k`. The lowest useful score is `min_score`, the judge's own
            `low` if it is `Bands`, else the score that 5.1 % of all pairs reach.
        options: All other keywords are the fields of `MiningOptions`.

    Returns:
        The negatives, as `Mined`.

    Raises:
        NaysayError: If an argument is invalid; before anything is searched.
        TypeError: If a keyword is unknown.

    Examples:
        >>> import numpy as np
        >>> vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1]], np.float32)
        >>> mined = mine(vectors[:1], vectors, [0], 2, judge=None)
        >>> mined.ids.tolist(), mined.rank.tolist(), mined.dropped["positive"].tolist()
        ([[1, 2]], [[2, 3]], [1])
    """
    given, others = as_vectors("queries", queries), as_vectors("corpus", corpus)
    own = read_own(options.same_ids, given.n, others.n)
    known = known_of(positives, options.ignore, own, given.n, others.n)
    task = task_of(given, others, known, k, read_sources(options.sources, given.n, others.n), options, own)
    if task.reviewed is not None and not is_auto(task):
        raise_invalid("reviewed", "left out unless the judge is 'auto', without `rescore`", shown(options.judge))
    task, left_out = without_own_vectors(surveyed(task))
    known_scores, sample = score_known(task), cache(partial(sample_of, task))
    rows, collected, posterior, lists = task.some(np.arange(given.n), known_scores), None, None, None
    threshold = None if is_auto(task) else threshold_of(task, known_scores, sample)  # raises before the search
    task, notes = with_index(task)
    if threshold is None:
        some, depth = rows, task.depth  # the fit, or the selection, needs all candidates anyway
        if given.n > _FITTED_TO and stops_early(task):
            some = task.some(sampled_anchors(task), known_scores)
            depth = min(depth, max(fit_depth(task), shown_depth(task, read_depth(task))))
        collected = Collected(anchor_ids(some.query), collect(task, some, *nearest(task, some, depth)), depth)
        deep_enough = collected if depth >= fit_depth(task) else None
        posterior, lists = fit_posterior(task, known_scores, sample, collected=deep_enough)
        threshold = threshold_of(task, known_scores, sample, posterior)
    mined = mine_rows(task, rows, threshold, collected)
    auto_k, rescored = task.counts is None, options.rescore is not None
    scores = mined.candidates.positive_scores
    slots = slots_of(mined.candidates, int(mined.counts.max(initial=0)) if auto_k else task.width)
    fit = None if rescored else cache(partial(_fitted, task, known_scores, sample, posterior, lists))
    return Mined(
        **slots,
        positive_scores=scores,
        thresholds=limits_of(mined.threshold.detector, rows.query, scores),
        counts=mined.counts,
        rule=rule_of_set(task, mined.threshold, lists, slots["ids"], slots["scores"]),
        judge=mined.threshold.detector,
        suspicion_threshold=mined.threshold.drop_at,
        candidates=mined.candidates,
        known=task.known,
        known_scores=None if rescored else known_scores,
        depth=task.depth,
        metric=options.metric,
        notes=(
            *notes,
            *own_note(left_out[0]),
            *notes_of(tally_of(mined.candidates, mined.counts, task.depth), others.n),
        ),
        query=rows.query,
        _auto_k=auto_k,
        _judged=mined.judged,
        _mine=None if mined.listed_all else partial(_mine_again, task, known_scores, mined.threshold.min_score),
        _finish=partial(finish, task=task, rows=rows),
        _recut=None if posterior is None or lists is None else partial(recut, task, posterior, lists),
        _draw=None if posterior is None or lists is None else partial(pairs_to_review, task, posterior, lists),
        _background=None if rescored else sample,  # scores of the same kind
        _fit=fit,
        _judge_rule=mined.threshold.rule,
        _estimate=None if fit is None else partial(_estimated, fit),
        _describe=partial(_described, task, lists),
    )


def _estimated(
    fit: Callable[[], tuple[Posterior, FitLists]], ids: NDArray[np.int64], scores: NDArray[np.float32]
) -> SetEstimate:
    """The estimate of the negatives that are returned."""
    return estimate_set(*fit(), ids, scores)


def _described(
    task: Task, lists: FitLists | None, judge: Judged, ids: NDArray[np.int64], scores: NDArray[np.float32]
) -> str:
    """`Mined.rule` of the negatives that another judge left."""
    detector, rule, drop_at = judge
    return rule_of_set(task, Threshold(detector, rule, None, drop_at), lists, ids, scores)


def _mine_again(
    task: Task,
    known_scores: NDArray[np.float32],
    min_score: float | None,
    judge: Judged,
    anchors: NDArray[np.int64] | None = None,
    *,
    list_all: bool = False,
) -> MinedRows:
    """Mine some anchors, or all, with another judge, or with all candidates listed."""
    rows = task.some(np.arange(task.queries.n) if anchors is None else anchors, known_scores)
    detector, rule, drop_at = judge
    return mine_rows(task, rows, Threshold(detector, rule, min_score, drop_at), list_all=list_all)


def _fitted(
    task: Task,
    known_scores: NDArray[np.float32],
    sample: Callable[[], Background],
    posterior: Posterior | None,
    lists: FitLists | None,
) -> tuple[Posterior, FitLists]:
    """The posterior that judged and the lists that it was fitted to; where another judged, it is fitted now."""
    if posterior is not None and lists is not None:
        return posterior, lists
    return fit_posterior(task, known_scores, sample)

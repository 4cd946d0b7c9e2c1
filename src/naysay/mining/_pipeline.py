"""The pipeline for some anchors: search, collect, rescore, judge, select, backfill. `mine` and jobs share it.

What comes out for an anchor depends on the task and on that anchor alone, so that a job can be done in any parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.posterior import Posterior
from naysay.mining._early_stop import SLOTS, first_depth, open_rows, stacked, stitched, stops_early, trimmed
from naysay.mining._rules import Threshold, decide, judge_of, without_positive
from naysay.mining._search import (
    found_of,
    highest_scores,
    in_parts,
    nearest_below,
    nearest_of,
    slots_of_memory,
    wanted_of,
)
from naysay.mining._task import FILLED, SELECTED, Rows, Task
from naysay.mining.backfill import backfill
from naysay.mining.candidates import Candidates, Mask, canonical_order, join
from naysay.mining.exclude import drop_below, exclude, window
from naysay.mining.judge import SUSPICIOUS, drop_at, judge, judged_slots
from naysay.mining.rescore import ScorePairs, answers_of, rescored
from naysay.mining.select import select
from naysay.rng import rng_for
from naysay.search._scores import lowest_of, pair_scores, taken
from naysay.search.exact import Found
from naysay.search.vectors import Vectors
from naysay.types import anchor_ids

Ids = NDArray[np.int64]
Floats32 = NDArray[np.float32]
_NUMBERS = 1 << 22  # of vectors that are compared at a time


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
    task: Task,
    rows: Rows,
    threshold: Threshold,
    before: tuple[Found, Candidates] | None = None,
    *,
    list_all: bool = False,
) -> MinedRows:
    """Mine negatives for some anchors.

    Args:
        task: What all anchors share.
        rows: The anchors.
        threshold: What is suspected.
        before: What was found and collected for them, if that was done before.
        list_all: List all candidates, also those that cannot change the negatives.
    """
    early = None
    if before is None and not list_all and stops_early(task, threshold):
        early = _as_deep_as_needed(task, rows, threshold)
    candidates = early
    if candidates is None:
        found, skipped = found_of(task, rows, threshold, None if before is None else before[0])
        collected = before[1] if before is not None and skipped is None else collect(task, rows, found, skipped)
        candidates = narrowed(task, _without_reviewed(task, rows, collected), threshold.min_score)
        if task.options.rescore is not None:
            candidates, threshold = _rescored(task, candidates, threshold, task.options.rescore)
        if threshold.detector is not None:
            candidates = judge(candidates, threshold.detector, threshold=threshold.drop_at, query=rows.query)
    negatives = finish(candidates, threshold.detector, threshold.drop_at, task, rows)
    return MinedRows(candidates, *negatives, threshold, listed_all=early is None)


def _as_deep_as_needed(task: Task, rows: Rows, threshold: Threshold) -> Candidates | None:
    """The candidates that the negatives are taken from, judged; None if it cannot be told how deep to search."""
    detector, caps = threshold.detector, None
    if detector is not None and not isinstance(detector, Posterior):
        caps = highest_scores(detector, rows.query)
        if np.isnan(caps).any():
            return None

    def judged(task: Task, some: Rows, depth: int, caps: Floats32 | None) -> Candidates:
        if caps is None:
            found, skipped = nearest_of(task, some, depth), None
        else:
            found, skipped = nearest_below(task, some, depth, caps)
        collected = _without_reviewed(task, some, collect(task, some, found, skipped))
        candidates = narrowed(task, collected, threshold.min_score)
        if detector is None:
            return candidates
        return judge(candidates, detector, threshold=threshold.drop_at, query=some.query)

    depth, silent, everyone = first_depth(task, threshold), replace(task, on_progress=None), np.arange(rows.queries.n)
    anchors, wanted, parts = anchor_ids(rows.query), wanted_of(task, rows), []
    blocks = list(in_parts(everyone, slots_of_memory(task, SLOTS) // depth)) or [everyone]
    for block in blocks:
        own = rows if len(blocks) == 1 else _some(task, anchors[block], rows.all_known_scores)
        candidates = judged(task, own, depth, None if caps is None else caps[block])
        left = open_rows(own.query, wanted[block], threshold, candidates) if depth < task.depth else block[:0]
        for some in in_parts(left, slots_of_memory(task, SLOTS) // task.depth):
            again = task.some(anchors[block[some]], rows.all_known_scores)
            deep = judged(silent, again, task.depth, None if caps is None else caps[block[some]])
            candidates = stitched(candidates, some, deep)
        parts.append(trimmed(candidates, wanted[block]))
    return parts[0] if len(parts) == 1 else stacked(parts)


def _without_reviewed(task: Task, rows: Rows, candidates: Candidates) -> Candidates:
    """Drop the pairs that a person found to be false negatives."""
    if task.reviewed is None:
        return candidates
    return candidates.drop(task.reviewed.known.contains(anchor_ids(rows.query), candidates.ids), "ignored")


def _some(task: Task, anchors: Ids, known_scores: Floats32) -> Rows:
    """Some anchors; without a copy of their vectors if they are neighbours."""
    first, last = int(anchors[0]), int(anchors[-1])
    if (anchors == np.arange(first, first + len(anchors))).all():
        return task.rows(first, last + 1, known_scores)
    return task.some(anchors, known_scores)


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
    parts = [searched, *(_listed(name, ids, task, rows) for name, ids in rows.lists.items())]
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


def _listed(name: str, ids: Ids, task: Task, rows: Rows) -> Candidates:
    """The list of another source, scored by the vectors and in the order of a search; ranks are those of the list."""
    filled = ids >= 0
    scores = np.full(ids.shape, -np.inf, np.float32)
    scores[filled] = pair_scores(rows.queries, task.corpus, np.nonzero(filled)[0], ids[filled], task.options.metric)
    found = Candidates.of(SimpleNamespace(ids=ids, scores=scores), name)
    order = canonical_order(found, filled)
    ordered: dict[str, Any] = {
        part: np.take_along_axis(getattr(found, part), order, axis=1) for part in ("ids", "scores", "rank", "source")
    }
    return replace(found, **ordered)


def with_left_out(
    candidates: Candidates,
    anchors: Ids,
    items: Ids,
    scores: NDArray[np.float32],
    kinds: Mapping[str, NDArray[np.bool_]],
    skipped: Ids | None = None,
) -> Candidates:
    """Restore full-corpus ranks by re-inserting excluded pairs, and count these.

    A search that leaves pairs out finds as many candidates for an anchor with a thousand positives as for one with
    one, and need not be widened for all anchors by the largest. A binary search for each pair.

    `kinds` are {reason: (p,) which of the pairs}: counted in `outside` where they would have been listed: ahead of the
    last candidate, or anywhere if the row has empty slots.
    """
    n, m = candidates.ids.shape
    place = places(candidates, anchors, items, scores)
    listed = place < m
    ahead = np.bincount(anchors * (m + 1) + place, minlength=n * (m + 1)).reshape(n, m + 1)
    rank = candidates.rank + np.cumsum(ahead, axis=1)[:, :m] + (0 if skipped is None else skipped[:, None])
    counts = {reason: np.bincount(anchors[listed & chosen], minlength=n) for reason, chosen in kinds.items()}
    if skipped is not None:
        counts[SUSPICIOUS] = skipped
    return replace(
        candidates,
        rank=np.where(candidates.filled, rank, 0).astype(np.int32),
        outside={reason: count for reason, count in counts.items() if count.any()},
    )


def places(candidates: Candidates, anchors: Ids, items: Ids, scores: NDArray[np.float32]) -> Ids:
    """(p,) how many candidates of its row come before each pair: a higher score, or an equal one and a lower id."""
    low = np.zeros(len(anchors), np.int64)
    high = np.full(len(anchors), candidates.ids.shape[1])
    for _ in range(candidates.ids.shape[1].bit_length()):
        middle = (low + high) // 2
        inside = np.minimum(middle, candidates.ids.shape[1] - 1)
        there, ids = candidates.scores[anchors, inside], candidates.ids[anchors, inside]
        before = (ids >= 0) & ((there > scores) | ((there == scores) & (ids < items))) & (low < high)
        low, high = np.where(before, middle + 1, low), np.where(before, high, np.minimum(middle, high))
    return low


def same_vectors(
    candidates: Candidates, corpus: Vectors, anchors: Ids, items: Ids, scores: NDArray[np.float32]
) -> Mask:
    """(n, m): candidates whose vector equals, number for number, that of an item paired with their anchor.

    An encoder gives equal inputs equal vectors. Equal vectors have equal scores, which are next to each other in a row:
    only those are compared. A binary search for each pair, and O(d) for each equal score. The pairs are known
    positives, or the anchors themselves where ids are shared.
    """
    equal = np.zeros(candidates.ids.shape, np.bool_)
    first, last = np.full(len(items), -1), np.full(len(items), np.iinfo(np.int64).max)
    starts, stops = (places(candidates, anchors, ends, scores) for ends in (first, last))
    counts = stops - starts
    pair = np.repeat(np.arange(len(items)), counts)
    slot = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts) + starts[pair]
    rows = anchors[pair]
    step = max(1, _NUMBERS // max(1, corpus.width))
    for start in range(0, len(pair), step):
        part = slice(start, start + step)
        one, other = taken(corpus, items[pair[part]]), taken(corpus, candidates.ids[rows[part], slot[part]])
        same = (one == other).all(axis=1)
        equal[rows[part][same], slot[part][same]] = True
    return equal

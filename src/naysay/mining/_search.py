"""The search of a task: exact or by an index, and only as deep as the negatives need.

Without a judge the nearest k are enough; with a judge by score the nearest k below its threshold, found in one pass;
with a `Posterior` the lists that it reads, and all of `depth` for the anchors that lose too many to its cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.detectors.bands import Bands
from naysay.detectors.by_threshold import Margin, MaxScore, ShareOfPositive
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.posterior import Posterior
from naysay.mining._task import Rows, Task
from naysay.mining.candidates import Candidates, canonical_order, listed
from naysay.mining.judge import Threshold, ask, score_thresholds, was_suspicious
from naysay.positives import Positives
from naysay.search._below import SearchOptions
from naysay.search._scores import METRICS, pair_scores, thread_count
from naysay.search._survey import Survey, check_score_range, survey
from naysay.search.exact import Found
from naysay.types import Query, anchor_ids

LISTED = 1 << 26  # pairs of queries and corpus rows up to which all candidates are listed: that takes no time
_BY_SCORE = (MaxScore, Bands, Calibrated, Margin, ShareOfPositive)  # what they suspect of a row are the row's first
_SPARE = 2  # candidates beyond k, for duplicates
_EMPTY = {"ids": -1, "scores": -np.inf, "rank": 0, "source": -1, "suspicion": 0, "why": 0, "kept_by": -1}
_LARGEST = np.finfo(np.float32).max
_MEASURED = 500  # queries on which the recall of an index is measured
_TUNED_RECALL = 0.95  # the recall that an index is tuned for, on other queries

Ids = NDArray[np.int64]


def surveyed(task: Task) -> Task:
    """Check all vectors once: raise if one is not finite, has no cosine, or has scores too large for float32."""
    options, shards = task.options, task.shards
    metric, threads = METRICS[options.metric], thread_count(options.threads)
    queries = survey("queries", task.queries, metric, threads)
    if shards is None:
        corpus = survey("corpus", task.corpus, metric, threads)
    else:
        corpus = Survey(shards.largest_norm(options.metric), None)
    both = queries, corpus
    check_score_range(metric, both[0].largest, both[1].largest)
    return replace(task, surveys=both)


def with_index(task: Task, path: Path | None = None) -> tuple[Task, tuple[str, ...]]:
    """Return the task with an index and a note on its recall; if the search is exact, the same task and no note.

    Args:
        task: What is searched.
        path: Where the index is kept: opened if it exists, else built and saved, so that a resumed job has the same.
    """
    options = task.options
    if options.approximate is None:
        return task, ()
    from naysay.search.index import Index

    limits: dict[str, Any] = {"budget": options.budget, "threads": options.threads}
    if path is not None and path.exists():
        index = Index.open(path, task.corpus, **limits)
    else:
        index = Index.build(task.corpus, metric=options.metric, kind=options.approximate, seed=options.seed, **limits)
        wanted = max(options.min_recall, _TUNED_RECALL)
        index.tune(task.queries, task.depth, min_recall=wanted, sample=_MEASURED, seed=options.seed + 1)
        if path is not None:
            index.save(path)
    recall = index.measure(task.queries, task.depth, sample=_MEASURED, seed=options.seed)
    if recall.value < options.min_recall:
        advice = "Leave `approximate` out for an exact search, or pass a lower `min_recall`."
        rule = f"an index with a recall of at least {options.min_recall:.1%}"
        raise_invalid("approximate", rule, f"{recall.value:.1%} on {recall.n:,} queries", advice)
    note = (
        f"The search was approximate: recall {recall.value:.1%} (95 % CI {recall.low:.1%} to {recall.high:.1%}, "
        f"{recall.n:,} queries)."
    )
    return replace(task, index=index, recall=recall.value), (note,)


def nearest(
    task: Task, rows: Rows, depth: int | None = None, highest: NDArray[np.float32] | None = None
) -> tuple[Found, Ids | None]:
    """Search for some anchors, known pairs left out; as deep as the task says unless a depth is given.

    With `highest`, (n,), only what scores at most so is found, by an exact search; what scores more is counted.
    """
    options, depth = task.options, task.depth if depth is None else depth
    known = Positives(rows.known.indptr, rows.known.indices, rows.known.n_items, filter=rows.known.filter)
    if task.index is not None and highest is None:
        found: Found = task.index.search(rows.queries, depth, exclude=known)
        return found, None
    limits = options.engine, options.budget, options.threads, task.on_progress, options.device, task.surveys
    how = SearchOptions(options.metric, known, *limits)
    if task.shards is not None:
        found, above = task.shards.search(rows.queries, depth, highest, how)
    else:
        found, above = how.run(rows.queries, task.corpus, depth, highest)
    return found, None if highest is None else above


def of_source(name: str, ids: Ids, task: Task, rows: Rows) -> Candidates:
    """The list of another source, scored by the vectors and in the order of a search; ranks are those of the list."""
    filled = ids >= 0
    scores = np.full(ids.shape, -np.inf, np.float32)
    scores[filled] = pair_scores(rows.queries, task.corpus, np.nonzero(filled)[0], ids[filled], task.options.metric)
    found = Candidates.of(Found(ids, scores), name)
    order = canonical_order(found, filled)
    ordered: dict[str, Any] = {
        part: np.take_along_axis(getattr(found, part), order, axis=1) for part in ("ids", "scores", "rank", "source")
    }
    return replace(found, **ordered)


def in_parts(rows: Ids, size: int) -> Iterator[Ids]:
    """Some of the rows at a time."""
    for start in range(0, len(rows), max(1, size)):
        yield rows[start : start + max(1, size)]


def highest_scores(detector: Any, query: Query) -> NDArray[np.float32]:
    """(n,) the highest score that is not suspected: of the three next to the threshold, by asking; NaN if none is.

    Infinity if no score is suspected, minus infinity if all are.
    """
    with np.errstate(over="ignore"):  # no score is next to a threshold beyond all scores
        thresholds = score_thresholds(detector, query).astype(np.float32)
        if np.isnan(thresholds).all():
            return thresholds
        sides = [np.nextafter(thresholds, np.float32(side)) for side in (-np.inf, np.inf)]
    near = [np.clip(side, -_LARGEST, _LARGEST) for side in (sides[0], thresholds, sides[1])]
    known, slot = ~np.isnan(thresholds), np.zeros((len(thresholds), 1), np.int64)
    over = [
        ask(Candidates.of(Found(slot, np.where(known, score, 0)[:, None])), detector, query)[:, 0]
        >= SUSPICION_THRESHOLD
        for score in near
    ]
    highest = np.full(len(thresholds), np.float32(np.nan))
    for place in (0, 1):
        highest = np.where(~over[0] & ~over[place] & over[place + 1] & over[2], near[place], highest)
    none, every = ~(over[0] | over[1] | over[2]), over[0] & over[1] & over[2]
    highest = np.where(none & (near[2] == _LARGEST), np.float32(np.inf), highest)
    highest = np.where(every & (near[0] == -_LARGEST), np.float32(-np.inf), highest)
    return np.where(known, highest, np.float32(np.nan))


def stops_early(task: Task, threshold: Threshold | None = None) -> bool:
    """Whether the negatives are the nearest that are left, so that all other candidates need not be listed.

    Without a threshold: whether that may be so.
    """
    options = task.options
    plain = options.select == "top" and options.quotas is None and options.on_short in ("pad", "drop", "raise")
    one_search = task.may_deepen and not task.lists and task.index is None
    large = task.queries.n * task.corpus.n > LISTED
    return plain and one_search and large and (threshold is None or _is_known(threshold))


def _is_known(threshold: Threshold) -> bool:
    """Whether it is known how deep to search for what this suspects."""
    judge = threshold.detector
    if isinstance(judge, Posterior):
        return True
    return judge is None or (isinstance(judge, _BY_SCORE) and threshold.drop_at == SUSPICION_THRESHOLD)


def first_depth(task: Task, threshold: Threshold) -> int:
    """How deep to search first."""
    judge = threshold.detector
    if isinstance(judge, Posterior):
        return shown_depth(task, judge.depth)
    return min(task.depth, max(1, task.width) + (_SPARE if judge is not None else 0))


def shown_depth(task: Task, read: int) -> int:
    """How deep to search first for a posterior that reads so many of a list: of each candidate it needs the next."""
    return min(task.depth, max(1, task.width, read) + 1 + _SPARE)


def open_rows(query: Query, wanted: Ids, threshold: Threshold, candidates: Candidates, depth: int) -> Ids:
    """Rows for which a deeper search may find other negatives.

    `candidates` are judged, those of the search first, in `depth` slots; `wanted` is (n,) k of each row.
    """
    judge, low = threshold.detector, threshold.min_score
    kept, scores = candidates.kept[:, :depth], candidates.scores[:, :depth]
    if not isinstance(judge, Posterior):  # also where another suspicion than that of the threshold drops
        below = candidates.suspicion[:, :depth] < SUSPICION_THRESHOLD
        kept = (kept | was_suspicious(candidates)[:, :depth]) & below
    last, more = np.full(len(candidates), depth - 1), candidates.ids[:, depth - 1] >= 0
    if isinstance(judge, Posterior):
        # What was listed last has no next one yet, and where scores are equal, the positive's place is not known.
        inside = listed(candidates)
        last = inside.shape[1] - 1 - np.argmax(inside[:, ::-1], axis=1)
        kept = kept & (np.arange(depth) < last[:, None])
    end = np.take_along_axis(scores, last[:, None], axis=1)[:, 0]
    enough = np.count_nonzero(kept, axis=1) >= wanted
    if low is not None:
        enough |= end < np.float32(low)
    if isinstance(judge, Posterior):
        enough &= np.count_nonzero(inside, axis=1) > judge.depth
        if judge.positive_scores is not None:
            enough &= end != judge.positive_scores[anchor_ids(query)]
    return np.flatnonzero(more & ~enough)


def cut_below(found: Candidates, depth: int, highest: NDArray[np.float32]) -> tuple[Found, Ids, NDArray[np.bool_]]:
    """Of a search without `highest`, what one with it finds and skips; and (n,) for which rows that can be told.

    It can where the search reached as many candidates below, or the end of the corpus.
    """
    over = np.count_nonzero(found.filled & (found.scores > highest[:, None]), axis=1)
    slots = over[:, None] + np.arange(depth)
    inside, width = slots < found.ids.shape[1], found.ids.shape[1]
    ids, scores = (np.take_along_axis(part, np.minimum(slots, width - 1), axis=1) for part in (found.ids, found.scores))
    told = (over + depth <= width) | (found.ids[:, -1] < 0)
    return Found(np.where(inside, ids, -1), np.where(inside, scores, np.float32(-np.inf))), over, told


def stitched(candidates: Candidates, rows: Ids, deep: Candidates) -> Candidates:
    """The candidates with some rows replaced by those of a deeper search."""
    width = max(candidates.ids.shape[1], deep.ids.shape[1])
    one, other = _alike([candidates, deep], width)
    parts: dict[str, Any] = {}
    for name in (*_EMPTY, "positive_scores"):
        parts[name] = getattr(one, name).copy()
        parts[name][rows] = getattr(other, name)
    outside = {reason: counts.copy() for reason, counts in one.outside.items()}
    for reason, counts in outside.items():
        counts[rows] = other.outside[reason]
    return replace(one, **parts, outside=outside)


def stacked(parts: list[Candidates], rows: list[Ids]) -> Candidates:
    """The candidates of several anchors; the rows of a part are at these places of the whole. `parts` are used up."""
    n, width = sum(map(len, parts)), max(part.ids.shape[1] for part in parts)
    reasons = tuple(dict.fromkeys(reason for part in parts for reason in part.reasons))
    outside = {reason: np.zeros(n, np.int64) for part in parts for reason in part.outside}
    first = parts[0]
    whole: dict[str, Any] = {
        name: np.full((n, width), empty, getattr(first, name).dtype) for name, empty in _EMPTY.items()
    }
    whole["positive_scores"] = np.empty(n, np.float32)
    for places in reversed(rows):
        part = parts.pop()
        for name, values in whole.items():
            given = getattr(part, name)
            given = _codes(part, reasons)[given] if name == "why" else given
            values[(places, slice(given.shape[1])) if given.ndim == 2 else places] = given
        for reason, counts in part.outside.items():
            outside[reason][places] = counts
    return replace(first, **whole, reasons=reasons, outside=outside)


def trimmed(candidates: Candidates, wanted: Ids) -> Candidates:
    """The candidates without the slots behind the negatives of all rows; `wanted` is (n,) how many each may have."""
    enough = np.cumsum(candidates.kept, axis=1) >= wanted[:, None]
    needed = np.where(enough.any(axis=1), np.argmax(enough, axis=1) + 2, enough.shape[1])
    return _alike([candidates], min(int(needed.max(initial=1)), enough.shape[1]))[0]


def _codes(part: Candidates, reasons: tuple[str, ...]) -> NDArray[np.int8]:
    """What stands for each reason of a part, and for none, where the reasons are these."""
    return np.array([0, *(reasons.index(reason) + 1 for reason in part.reasons)], np.int8)


def _alike(parts: list[Candidates], width: int) -> list[Candidates]:
    """The same with one width, the same numbers for reasons, and counts of the same reasons outside."""
    reasons = tuple(dict.fromkeys(reason for part in parts for reason in part.reasons))
    outside = dict.fromkeys(reason for part in parts for reason in part.outside)
    found = []
    for part in parts:
        codes = _codes(part, reasons)
        arrays: dict[str, Any] = {}
        for name, empty in _EMPTY.items():
            values = getattr(part, name)[:, :width]
            arrays[name] = np.full((len(part), width), empty, values.dtype)
            arrays[name][:, : values.shape[1]] = codes[values] if name == "why" else values
        none = np.zeros(len(part), np.int64)
        counts = {reason: part.outside.get(reason, none) for reason in outside}
        found.append(replace(part, **arrays, reasons=reasons, outside=counts))
    return found

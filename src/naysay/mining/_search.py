"""The search of a task: exact or by an index, and deeper for anchors whose nearest candidates are all suspected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors._slots import SUSPICION_THRESHOLD, query_rows
from naysay.mining._rules import Threshold
from naysay.mining._task import Rows, Task
from naysay.mining.backfill import rows_of
from naysay.mining.candidates import Candidates
from naysay.mining.judge import ask, score_thresholds
from naysay.positives import Positives
from naysay.search._scores import METRICS, survey_both, thread_count
from naysay.search.exact import Found, SearchOptions
from naysay.search.vectors import Vectors
from naysay.types import Query

FACTOR, DEEPEST = 8, 1 << 14
_SLOTS = 1 << 24  # candidates in memory at a time
_LARGEST = np.finfo(np.float32).max
_MEASURED = 500  # queries on which the recall of an index is measured
_TUNED_RECALL = 0.95  # the recall that an index is tuned for, on other queries

Ids = NDArray[np.int64]
Search = Callable[[Any, int, Positives], Found]
# below(queries, depth, highest scores, exclude) -> (Found, how many score higher)
Below = Callable[..., tuple[Found, Ids]]


def surveyed(task: Task) -> Task:
    """Check all vectors once: raise if one is not finite, has no cosine, or has scores too large for float32."""
    options = task.options
    both = survey_both(task.queries, task.corpus, METRICS[options.metric], thread_count(options.threads))
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


def nearest_of(task: Task, rows: Rows, depth: int | None = None) -> Found:
    """Search for some anchors, known pairs left out; as deep as the task says unless a depth is given."""
    return _searches(task)[0](rows.queries, depth or task.depth, _plain(rows.known), task.on_progress)


def nearest_below(task: Task, rows: Rows, depth: int, highest: NDArray[np.float32]) -> tuple[Found, Ids]:
    """Search for what scores at most `highest`, (n,), and count what scores more; known pairs left out."""
    return _searches(task)[1](rows.queries, depth, highest, _plain(rows.known), task.on_progress)


def wanted_of(task: Task, rows: Rows) -> Ids:
    """(n,) how many negatives each anchor may have."""
    return np.full(rows.queries.n, task.options.max_k) if rows.counts is None else rows.counts


def slots_of_memory(task: Task, most: int) -> int:
    """How many candidates to hold at a time, of a task that may say fewer."""
    return most if task.slots is None else min(most, task.slots)


def found_of(task: Task, rows: Rows, threshold: Threshold, first: Found | None = None) -> tuple[Found, Ids | None]:
    """Search for some anchors, known pairs left out; and how many suspected candidates each search skipped.

    `first` is what `nearest_of` found, if that was searched before.
    """
    found = nearest_of(task, rows) if first is None else first
    if not task.may_deepen or threshold.detector is None:
        return found, None
    if np.isnan(score_thresholds(threshold.detector, rows.query)).any():
        return found, None
    nearest, below = _searches(task)
    demand = Demand(threshold.detector, rows.query, wanted_of(task, rows), threshold.min_score)
    by_score = below if task.index is None else None
    return deepened(found, nearest, rows.queries, _plain(rows.known), demand, task.slots, by_score)


def _plain(known: Positives) -> Positives:
    """All known pairs, whatever their relation."""
    return Positives(known.indptr, known.indices, known.n_items, filter=known.filter)


def _searches(task: Task) -> tuple[Callable[..., Found], Below]:
    """The search for the nearest, and that for the nearest below a score."""
    options = task.options
    limits = options.metric, None, options.engine, options.budget, options.threads, None, task.surveys
    exact = SearchOptions(*limits)

    def nearest(queries: Any, depth: int, exclude: Positives, tell: Any = None) -> Found:
        if task.index is not None:
            found: Found = task.index.search(queries, depth, exclude=exclude)
            return found
        return replace(exact, exclude=exclude, on_progress=tell).run(queries, task.corpus, depth)[0]

    def below(queries: Any, depth: int, highest: Any, exclude: Positives, tell: Any = None) -> tuple[Found, Any]:
        return replace(exact, exclude=exclude, on_progress=tell).run(queries, task.corpus, depth, highest)

    return nearest, below


@final
@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The candidates that anchors need."""

    detector: Any  # one by scores: what it suspects of a row are the row's first
    query: Query
    wanted: Ids  # (n,) how many candidates below its threshold an anchor should have
    low: float | None = None  # the lowest score of a negative; nothing below it is searched for

    def take(self, rows: Ids) -> Demand:
        """The demand of some anchors."""
        return replace(self, query=query_rows(self.query, rows), wanted=self.wanted[rows])

    def suspected(self, candidates: Candidates) -> NDArray[np.bool_]:
        """(n, m) which candidates the detector suspects."""
        return ask(candidates, self.detector, self.query) >= SUSPICION_THRESHOLD

    def short(self, candidates: Candidates) -> Ids:
        """Rows whose list is full and has fewer candidates below the threshold than wanted, so that more may follow."""
        free = np.count_nonzero(candidates.filled & ~self.suspected(candidates), axis=1)
        open_ended = candidates.ids[:, -1] >= 0
        if self.low is not None:
            open_ended &= candidates.scores[:, -1] >= np.float32(self.low)
        return np.flatnonzero((free < self.wanted) & open_ended)


def deepened(
    found: Found,
    search: Search,
    queries: Vectors,
    known: Positives,
    demand: Demand,
    slots: int | None = None,
    below: Below | None = None,
) -> tuple[Found, Ids]:
    """Search deeper for anchors with too few candidates below the threshold; also return how many each one skips.

    An anchor that is short is searched 8 times as deep, and again, up to 16,384; then its m slots hold what comes after
    the suspected ones, and these are counted: (n,), 0 for anchors that were not short. So memory does not grow with the
    depth. Each round is a search of the corpus for the anchors that are still short.

    With `below` one search counts the suspected candidates, and so gives the depth at which the rounds would end, and
    what comes after them: the result is the same. A deeper search follows only where the rounds would end among the
    last of the suspected, or where the detector has no threshold. `slots` candidates fit in memory, of some 100 bytes.
    """
    width, at_once = found.ids.shape[1], _SLOTS if slots is None else slots
    ids, scores, skipped = found.ids.copy(), found.scores.copy(), np.zeros(len(found), np.int64)
    short, depths = demand.short(Candidates.of(found)), _depths(width, known.n_items)
    begins = np.full(len(short), depths[0] if depths else 0)  # how deep each is searched first, 0 if it need not be
    if below is not None and depths and len(short):
        highest, low = highest_scores(demand.detector, demand.query)[short], demand.low
        known_highest = np.flatnonzero(~np.isnan(highest) & (low is None or highest >= np.float32(low)))
        for some in in_parts(known_highest, at_once // depths[0]):
            rows, needed = short[some], demand.take(short[some])
            left_out = rows_of(known, rows)
            after, above = below(queries.take(rows), width, highest[some], left_out)
            clean = ~needed.suspected(Candidates.of(after)).any(axis=1)
            ends = _ends(after, above, known.n_items - left_out.count(), needed, depths)
            done = clean & (above <= ends - width)
            ids[rows[done]], scores[rows[done]] = after.ids[done], after.scores[done]
            skipped[rows[done]] = above[done]
            begins[some[clean]] = np.where(done, 0, ends)[clean]
    left = short[:0]
    for depth in depths:
        waiting, left = np.concatenate([left, short[begins == depth]]), short[:0]
        for rows in in_parts(waiting, at_once // depth):
            deep, needed = search(queries.take(rows), depth, rows_of(known, rows)), demand.take(rows)
            candidates = Candidates.of(deep)
            passed = np.count_nonzero(needed.suspected(candidates), axis=1)
            left = np.concatenate([left, rows[needed.short(candidates)]])
            places = np.minimum(passed, depth - width)[:, None] + np.arange(width)
            ids[rows], scores[rows] = (np.take_along_axis(part, places, 1) for part in (deep.ids, deep.scores))
            skipped[rows] = places[:, 0]
    return Found(ids, scores), skipped


def _depths(width: int, n_items: int) -> list[int]:
    """How deep the rounds search."""
    depths, most = [width], min(n_items, max(DEEPEST, width))
    while depths[-1] < most:
        depths.append(min(most, FACTOR * depths[-1]))
    return depths[1:]


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


def _ends(after: Found, above: Ids, there: Ids, demand: Demand, depths: list[int]) -> Ids:
    """(n,) the depth at which the rounds end: the first with enough candidates below the threshold, or with all of use.

    Where a round holds more of what comes after than `after` does, its last score is not known, and does not matter:
    whether it ends there or later, all slots are filled from what comes after. `there`: how many candidates there are.
    """
    ends = np.full(len(above), depths[-1])
    for depth in reversed(depths[:-1]):
        free = np.maximum(np.minimum(depth, there) - above, 0)
        goes_on = (free < demand.wanted) & (there >= depth)
        if demand.low is not None:  # a last one that is suspected is above `low`, as the threshold is
            last = np.take_along_axis(after.scores, np.clip(free - 1, 0, after.ids.shape[1] - 1)[:, None], axis=1)[:, 0]
            goes_on &= (free == 0) | (last >= np.float32(demand.low))
        ends[~goes_on] = depth
    return ends

"""Picking hard negatives by ranks, margins and bounds, a block of anchors at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.calibrated import one_per_anchor
from naysay.detectors.posterior import Posterior
from naysay.integrations._hard_negative_inputs import TextPairs
from naysay.kernels.threads import threads
from naysay.mining._false_share import FitLists
from naysay.mining._pipeline import fit_posterior
from naysay.mining._rules import decide, rule_of_set, sample_of, score_known, threshold_of
from naysay.mining._search import surveyed
from naysay.mining._task import Task, task_of
from naysay.mining.backfill import rows_of
from naysay.mining.candidates import Candidates
from naysay.mining.exclude import same_vectors
from naysay.mining.explain import slots_of
from naysay.mining.judge import Threshold, judge_of
from naysay.mining.judge import judge as judged
from naysay.mining.options import MiningOptions
from naysay.mining.rescore import ScorePairs, answers_of
from naysay.mining.select import NOT_SELECTED, select
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search._below import search_below
from naysay.search._scores import lowest_of, pair_scores
from naysay.search.exact import Found
from naysay.search.vectors import Vectors
from naysay.types import Query

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
_SLOTS, _NUMBERS = 1 << 21, 1 << 24  # candidates, and numbers of query vectors, that are held at a time
_BUDGET = 1 << 27  # bytes of a search, besides what it cannot do without
_SPARE = 8  # candidates that a first search finds beyond twice as many as are wanted
_BEHIND = 3  # candidates behind those that a posterior reads: it needs the next one, and duplicates may go
_PAIRS = 1 << 14  # that a cross-encoder is handed at a time
_ONE_OF_EACH = 1 << 63  # a step of the seed that no block has
_SKIPPED, _BEYOND, _CONSIDERED = "range_min", "range_max", "considered"


# {rule: whether scores (n, m) break it, by the lowest score of the anchor's positives (n, 1) and the number given}
_BROKEN: dict[str, Callable[[Scores, Scores, np.float32], NDArray[np.bool_]]] = {
    "absolute_margin": lambda scores, lowest, margin: np.asarray(scores + margin > lowest),
    "relative_margin": lambda scores, lowest, margin: np.asarray(scores > lowest - np.abs(lowest) * margin),
    "max_score": lambda scores, lowest, high: np.asarray(scores > high),
    "min_score": lambda scores, lowest, low: np.asarray(scores < low),
}


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """Which candidates may be negatives, and which of them are selected."""

    first: int  # the first rank, from 1, among all that are not excluded, before anything is dropped
    last: int  # the last rank
    bounds: Mapping[str, float]  # {rule: number}, in the order of `_BROKEN`
    count: int  # how many to select
    how: str  # "top", "random", "softmax" or "spread"
    temperature: float | None
    seed: int

    def enough(self, *, choosy: bool) -> int:
        """The depth at which a search is most likely enough: the last rank, unless the best are selected.

        `choosy`: whether something other than these rules may drop candidates.
        """
        if self.how != "top":
            return self.last
        return self.first - 1 + self.count + (self.count + _SPARE if choosy or self.bounds else 0)

    def upper_bound(self) -> str | None:
        """Return the rule that is one threshold per anchor, if the best below it are selected, or None."""
        given = [name for name in self.bounds if name != "min_score"]
        # s + margin is rounded before it is compared, so the threshold of an absolute margin is not a float32 number.
        return given[0] if self.how == "top" and len(given) == 1 and given[0] != "absolute_margin" else None

    def thresholds(self, lowest: Scores) -> Scores:
        """The thresholds of `upper_bound`, by the lowest scores of the anchors' positives."""
        if "relative_margin" in self.bounds:
            return np.asarray(lowest - np.abs(lowest) * np.float32(self.bounds["relative_margin"]))
        return np.full(len(lowest), self.bounds["max_score"], np.float32)

    def dropped(self, candidates: Candidates) -> Candidates:
        """Drop the candidates that break a rule; each is counted for the first rule that it breaks."""
        scores, lowest = candidates.scores, candidates.positive_scores[:, None]
        for name, value in self.bounds.items():
            candidates = candidates.drop(_BROKEN[name](scores, lowest, np.float32(value)), name)
        return candidates


@final
@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """Negatives, and counts of the other candidates."""

    ids: Ids  # (n, k), the best first; -1 where there are no more
    scores: Scores  # (n, k); -inf where there are no more
    positive_scores: Scores  # (p,) of the pairs, in their order
    considered: int  # how many candidates are within the ranks
    dropped: dict[str, int]  # {rule: how many of them broke it}, each counted once
    cut: bool  # whether an anchor with too few negatives has candidates beyond the last rank
    rule: str  # what judge="auto" did, in a sentence; empty with another judge


def pick(
    queries: Vectors,
    corpus: Vectors,
    pairs: TextPairs,
    excluded: Positives,
    metric: str,
    rules: Rules,
    *,
    rescore: ScorePairs | None,
    judge: Any,
) -> Picked:
    """Return the negatives of each query.

    Where the rules are one threshold per anchor, the search finds what scores below it. Else a first search finds the
    best, and only anchors that lose too many to the rules are searched to the last rank. The result is the same.
    Memory: two million candidates, a block of query vectors and the budget of a search, whatever n is, and the result.
    """
    anchors, items = pairs.anchors, pairs.items
    if rescore is None:
        positive_scores = pair_scores(queries, corpus, anchors, items, metric)
    else:
        positive_scores = answers_of(rescore, anchors, items, _PAIRS, "cross_encoder")
    lowest = lowest_of(anchors, positive_scores, queries.n)
    one = one_per_anchor(anchors, rng=rng_for(rules.seed, _ONE_OF_EACH))
    auto = None
    if judge == "auto" and rescore is None:
        auto = _fitted_judge(queries, corpus, pairs, excluded, metric, rules)
        judge = auto.threshold.detector
    else:
        judge, _ = decide(judge_of(judge, lowest), positive_scores[one], None)
    bound = rules.upper_bound() if rescore is None and judge is None else None
    search = _Search(queries, corpus, pairs, excluded, metric, rules, rescore, judge, lowest, bound)
    deep = min(rules.last, corpus.n)
    read = 0
    if isinstance(judge, Posterior):  # it reads more of a list than may become negatives
        read = min(judge.depth + _BEHIND, corpus.n)
        deep = max(deep, read)
    enough = min(deep, max(read, rules.enough(choosy=judge is not None))) if rescore is None else deep
    if bound is not None:
        enough = deep = min(rules.first - 1 + rules.count, corpus.n)
    ids, scores = np.empty((queries.n, rules.count), np.int64), np.empty((queries.n, rules.count), np.float32)
    counts, cut = Counter[str](), False
    step = max(1, min(_SLOTS // deep, _NUMBERS // queries.width))
    for start in range(0, queries.n, step):
        rows = np.arange(start, min(start + step, queries.n))
        for depth in [enough, deep] if enough < deep else [deep]:
            candidates, above = search.candidates(rows, depth)
            taken = slots_of(candidates, rules.count)
            ids[rows], scores[rows] = taken["ids"], taken["scores"]
            missing = taken["ids"][:, -1] < 0
            at_end = above + np.count_nonzero(candidates.filled, axis=1) >= rules.last
            cut |= depth == deep and rules.last < corpus.n and bool((missing & at_end).any())
            again = missing & (candidates.ids[:, -1] >= 0) & (depth < deep)  # a deeper search finds more
            _count(counts, candidates, ~again)
            if bound is not None:
                passed = int(np.maximum(np.minimum(above, rules.last) - rules.first + 1, 0).sum())
                counts.update({_CONSIDERED: passed, bound: passed} if passed else {})
            rows = rows[again]
            if not len(rows):
                break
    considered, rule = counts.pop(_CONSIDERED, 0), "" if auto is None else auto.rule(ids, scores)
    return Picked(ids, scores, positive_scores, considered, dict(counts), cut, rule)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _AutoJudge:
    """What judge="auto" of `mine` decides for these vectors."""

    task: Task
    threshold: Threshold
    lists: FitLists

    def rule(self, ids: Ids, scores: Scores) -> str:
        """The rule, and its estimate of the negatives that are returned."""
        return rule_of_set(self.task, self.threshold, self.lists, ids, scores)


def _fitted_judge(
    queries: Vectors, corpus: Vectors, pairs: TextPairs, excluded: Positives, metric: str, rules: Rules
) -> _AutoJudge:
    """Fit the judge "auto" as `mine` does: a posterior, or what takes its place where it cannot tell."""
    options = MiningOptions(
        metric=metric,
        seed=rules.seed,
        min_score=rules.bounds.get("min_score"),
        rank_range=(rules.first, None) if rules.first > 1 else None,
    )
    known = pairs.known().with_ignored(*excluded.pairs())
    task = surveyed(task_of(queries, corpus, known, min(rules.count, corpus.n), {}, options))
    known_scores, sample = score_known(task), cache(partial(sample_of, task))
    posterior, lists = fit_posterior(task, known_scores, sample)
    return _AutoJudge(task, threshold_of(task, known_scores, sample, posterior), lists)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """A search that marks negatives: the arguments of `pick`, the lowest positive scores, and `upper_bound`."""

    queries: Vectors
    corpus: Vectors
    pairs: TextPairs
    excluded: Positives
    metric: str
    rules: Rules
    rescore: ScorePairs | None
    judge: Any
    lowest: Scores
    bound: str | None

    def candidates(self, rows: Ids, depth: int) -> tuple[Candidates, Ids]:
        """Return the candidates of some queries with the negatives selected, and how many score above the bound."""
        rules, vectors = self.rules, self.queries.take(rows)
        excluded, budget = rows_of(self.excluded, rows), budget_of(depth, self.corpus, threads())
        below = None if self.bound is None else rules.thresholds(self.lowest[rows])
        options: dict[str, Any] = {"metric": self.metric, "exclude": excluded, "budget": budget}
        found, above = search_below(vectors, self.corpus, depth, below, **options)
        ranks = above[:, None] + np.arange(1, found.ids.shape[1] + 1)  # among all
        by_rank = isinstance(self.judge, Posterior)
        inside = found.filled & ((ranks <= rules.last) | by_rank)  # a posterior reads a list beyond the last rank
        kept = Found(np.where(inside, found.ids, -1), np.where(inside, found.scores, np.float32(-np.inf)))
        rank = np.where(inside, ranks, 0).astype(np.int32)
        candidates = replace(Candidates.of(kept), rank=rank, positive_scores=self.lowest[rows])
        if by_rank:
            candidates = candidates.drop(self._copies(candidates, rows), "duplicate")
        candidates = candidates.drop(candidates.rank < rules.first, _SKIPPED)
        candidates = candidates.drop(candidates.rank > rules.last, _BEYOND)
        if self.rescore is not None:
            row, slot = np.nonzero(candidates.kept)
            scores = candidates.scores.copy()
            ids = candidates.ids[row, slot]
            scores[row, slot] = answers_of(self.rescore, rows[row], ids, _PAIRS, "cross_encoder")
            candidates = replace(candidates, scores=scores)
        candidates = rules.dropped(candidates)
        if self.judge is not None:
            query = Query(rows, positives=self.pairs.items[self.pairs.indptr[:-1][rows]], vectors=vectors)
            candidates = judged(candidates, self.judge, query=query)
        rng = rng_for(rules.seed, int(rows[0])) if rules.how in ("random", "softmax") else None
        return select(candidates, rules.count, rules.how, rng=rng, temperature=rules.temperature), above

    def _copies(self, candidates: Candidates, rows: Ids) -> NDArray[np.bool_]:
        """(n, m): candidates with the vector of a positive of their anchor, which `mine` drops before it judges."""
        starts, counts = self.pairs.indptr[rows], np.diff(self.pairs.indptr)[rows]
        places = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        anchors = np.repeat(np.arange(len(rows)), counts)
        items = self.pairs.items[places]
        scores = pair_scores(self.queries, self.corpus, rows[anchors], items, self.metric)
        return same_vectors(candidates, self.corpus, anchors, items, scores)


def budget_of(depth: int, corpus: Vectors, count: int) -> int:
    """Return the bytes for a search of that depth by `count` threads: enough for any corpus, and no more.

    It scores six times `depth` pairs of a query exactly, keeps a norm of each document, and each thread reads a part
    of the file.
    """
    rows = min(corpus.n, 6 * depth + 256)
    return _BUDGET + 16 * corpus.n + 32 * rows * (corpus.width + 1) + (count << 24)


def _count(totals: Counter[str], candidates: Candidates, rows: NDArray[np.bool_]) -> None:
    """Add, for these rows, how many candidates there are and how many were dropped for which reason."""
    totals[_CONSIDERED] += int(np.count_nonzero(candidates.filled[rows]))
    for reason, counts in candidates.dropped.items():
        if reason in (_SKIPPED, _BEYOND):
            totals[_CONSIDERED] -= int(counts[rows].sum())
        elif reason != NOT_SELECTED and counts[rows].any():
            totals[reason] += int(counts[rows].sum())

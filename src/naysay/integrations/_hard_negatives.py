"""Picking hard negatives by ranks, margins and bounds, a block of anchors at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.by_reviewer import check_reviewers
from naysay.detectors.calibrated import one_per_anchor
from naysay.integrations._hard_negative_inputs import TextPairs
from naysay.kernels.threads import threads
from naysay.mining.auto import choose_judge, judge_by_scores
from naysay.mining.candidates import Candidates, Reason
from naysay.mining.judge import Judge
from naysay.mining.options import MiningOptions
from naysay.mining.pipeline import copies_of
from naysay.mining.problem import Problem, checked_problem, known_rows
from naysay.mining.rescore import ScorePairs, answers_of
from naysay.mining.reviewing import choose_reviewed_judge
from naysay.mining.take import Selection, select, slots_of
from naysay.positives import Positives
from naysay.rng import key_from, rng_for
from naysay.search._scores import lowest_of, pair_scores
from naysay.search.exact import Exact
from naysay.search.vectors import Vectors, of_array
from naysay.types import Query

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
_SLOTS, _NUMBERS = 1 << 21, 1 << 24  # candidates, and numbers of query vectors, that are held at a time
_BUDGET = 1 << 27  # bytes of a search, besides what it cannot do without
_SPARE = 8  # candidates that a first search finds beyond twice as many as are wanted
_BEHIND = 3  # candidates behind those that a posterior reads: it needs the next one, and duplicates may go
_PAIRS = 1 << 14  # that a cross-encoder is handed at a time
_DEEPER = 4  # times as deep is the next search for anchors that lose too many
_ONE_OF_EACH = 1 << 63  # a step of the seed that no block has
_CONSIDERED = "considered"


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

    def broken(self, candidates: Candidates) -> dict[str, NDArray[np.bool_]]:
        """{rule: (n, m) the candidates that are left and break it}; each is counted for the first that it breaks."""
        left, scores, lowest = candidates.kept, candidates.scores, candidates.positive_scores[:, None]
        found = {}
        for name, value in self.bounds.items():
            found[name] = left & _BROKEN[name](scores, lowest, np.float32(value))
            left = left & ~found[name]
        return found


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
    review_options: Mapping[str, Any],
) -> Picked:
    """Return the negatives of each query.

    A first search finds the best, and anchors that lose too many to the rules are searched deeper, to the last rank at
    most. Memory: two million candidates, a block of query vectors and the budget of a search, whatever n is, and the
    result.
    """
    anchors, items = pairs.anchors, pairs.items
    if rescore is None:
        positive_scores = pair_scores(queries, corpus, anchors, items, metric)
    else:
        positive_scores = answers_of(rescore, anchors, items, _PAIRS, "cross_encoder")
    lowest = lowest_of(anchors, positive_scores, queries.n)
    problem = None
    if judge == "auto" and rescore is None:
        problem = _problem(queries, corpus, pairs, excluded, metric, rules, review_options)
        judge = choose_judge(problem) if problem.options.reviewer is None else choose_reviewed_judge(problem)
    else:
        one_of_each = one_per_anchor(anchors, rng=rng_for(rules.seed, _ONE_OF_EACH))
        judge = judge_by_scores(judge, lowest, positive_scores[one_of_each])
    first_depth, last_depth = _depths(rules, judge, corpus.n, rescored=rescore is not None)
    # Enough for any corpus, and no more: a search scores six times `last_depth` pairs of a query exactly, keeps a norm
    # of each document, and each thread reads a part of the file.
    scored_rows = min(corpus.n, 6 * last_depth + 256)
    budget = _BUDGET + 16 * corpus.n + 32 * scored_rows * (corpus.width + 1) + (threads() << 24)
    exact = Exact(corpus, metric, budget=budget)
    search = _Search(exact, queries, pairs, excluded, rules, rescore, judge, lowest)
    ids, scores, counts, cut = search.negatives(first_depth, last_depth)
    considered = counts.pop(_CONSIDERED, 0)
    rule = "" if problem is None else judge.describe(ids, scores)
    return Picked(ids, scores, positive_scores, considered, dict(counts), cut, rule)


def _depths(rules: Rules, judge: Judge, n_documents: int, *, rescored: bool) -> tuple[int, int]:
    """The depth of the first search, and of the last one of anchors that lose too many."""
    read_by_judge = min(judge.reads + _BEHIND - 1, n_documents) if judge.reads else 0  # more than may be taken
    last = max(min(rules.last, n_documents), read_by_judge)
    if rescored:  # the order of all candidates changes
        return last, last
    return min(last, max(read_by_judge, rules.enough(choosy=judge.detector is not None))), last


def _problem(
    queries: Vectors,
    corpus: Vectors,
    pairs: TextPairs,
    excluded: Positives,
    metric: str,
    rules: Rules,
    review_options: Mapping[str, Any],
) -> Problem:
    """The problem that judge="auto" of `mine` is chosen for."""
    texts = None if review_options["reviewer"] is None else (pairs.queries.to_pylist(), pairs.corpus.to_pylist())
    options = MiningOptions(
        metric=metric,
        seed=rules.seed,
        min_score=rules.bounds.get("min_score"),
        rank_range=(rules.first, None) if rules.first > 1 else None,
        keep_own_text=True,
        texts=texts,
        **review_options,
    )
    known = pairs.known().with_ignored(*excluded.pairs())
    problem = checked_problem(queries, corpus, known, None, min(rules.count, corpus.n), {}, options)
    check_reviewers(problem.reviewers, has_texts=texts is not None)
    problem = problem.with_exact_search()
    return problem.with_known_scores(problem.score_known())


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """A search that marks negatives: the arguments of `pick`, and the lowest positive scores."""

    exact: Exact
    queries: Vectors
    pairs: TextPairs
    excluded: Positives
    rules: Rules
    rescore: ScorePairs | None
    judge: Judge
    lowest: Scores

    def negatives(self, depth: int, last_depth: int) -> tuple[Ids, Scores, Counter[str], bool]:
        """(n, k) ids and scores of all queries, counts of the other candidates, and whether the last rank cut some off.

        A query that is short is searched again, deeper, as long as that may find more.
        """
        n, rules = self.queries.n, self.rules
        ids, scores = np.empty((n, rules.count), np.int64), np.empty((n, rules.count), np.float32)
        counts, cut = Counter[str](), False
        pending = np.arange(n)
        while len(pending):
            rows_at_once = max(1, min(_SLOTS // depth, _NUMBERS // self.queries.width))
            to_search_deeper = []
            for start in range(0, len(pending), rows_at_once):
                rows = pending[start : start + rows_at_once]
                candidates, broken = self.candidates(rows, depth)
                taken = slots_of(candidates, rules.count)
                ids[rows], scores[rows] = taken["ids"], taken["scores"]
                is_short = taken["ids"][:, -1] < 0
                finds_more = is_short & (candidates.ids[:, -1] >= 0) & (depth < last_depth)
                at_last_rank = np.count_nonzero(candidates.filled, axis=1) >= rules.last
                cut |= (
                    depth == last_depth and rules.last < self.exact.corpus.n and bool((is_short & at_last_rank).any())
                )
                _count(counts, candidates, broken, ~finds_more)
                to_search_deeper.append(rows[finds_more])
            pending = np.concatenate(to_search_deeper)
            depth = min(_DEEPER * depth, last_depth)
        return ids, scores, counts, cut

    def candidates(self, rows: Ids, depth: int) -> tuple[Candidates, dict[str, NDArray[np.bool_]]]:
        """Return the candidates of some queries with the negatives selected, and which of them broke which rule."""
        rules, vectors = self.rules, self.queries.take(rows)
        found = self.exact.search(of_array(vectors), depth, exclude=known_rows(self.excluded, rows))
        by_rank = self.judge.reads > 0  # a posterior reads a list beyond the last rank
        ids = found.ids if by_rank else np.where(np.arange(depth) < rules.last, found.ids, -1)
        candidates = Candidates.of(ids, found.scores, positive_scores=self.lowest[rows])
        if by_rank:
            candidates = candidates.drop(self._copies(candidates, rows), Reason.DUPLICATE)
        if self.judge.left_out is not None:
            candidates = candidates.drop(self.judge.left_out.contains(rows, candidates.ids), Reason.REVIEWED)
        candidates = candidates.drop(candidates.rank < rules.first, Reason.TOO_NEAR)
        candidates = candidates.drop(candidates.rank > rules.last, Reason.TOO_FAR)
        if self.rescore is not None:
            row, slot = np.nonzero(candidates.kept)
            scores = candidates.scores.copy()
            scores[row, slot] = answers_of(self.rescore, rows[row], candidates.ids[row, slot], _PAIRS, "cross_encoder")
            candidates = replace(candidates, scores=scores)
        broken = rules.broken(candidates)
        for mask in broken.values():
            candidates = candidates.drop(mask, Reason.TOO_EASY)
        query = Query(rows, positives=self.pairs.items[self.pairs.indptr[:-1][rows]], vectors=vectors)
        candidates = self.judge.apply(candidates, query)
        how = Selection(rules.how, key_from(rng_for(rules.seed, int(rows[0]))), rules.temperature)
        return select(candidates, np.full(len(rows), rules.count), how, np.arange(len(rows))), broken

    def _copies(self, candidates: Candidates, rows: Ids) -> NDArray[np.bool_]:
        """(n, m): candidates with the vector of a positive of their anchor, which `mine` drops before it judges."""
        starts, counts = self.pairs.indptr[rows], np.diff(self.pairs.indptr)[rows]
        places = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        anchors = np.repeat(np.arange(len(rows)), counts)
        items = self.pairs.items[places]
        scores = pair_scores(self.queries, self.exact.corpus, rows[anchors], items, self.exact.metric)
        return copies_of(candidates, self.exact.corpus, anchors, items, scores)


def _count(
    totals: Counter[str], candidates: Candidates, broken: dict[str, NDArray[np.bool_]], rows: NDArray[np.bool_]
) -> None:
    """Add, for these rows, how many candidates there are and how many were dropped for which reason."""
    dropped = {reason: int(counts[rows].sum()) for reason, counts in candidates.dropped.items()}
    outside = dropped.get(Reason.TOO_NEAR, 0) + dropped.get(Reason.TOO_FAR, 0)
    totals[_CONSIDERED] += int(np.count_nonzero(candidates.filled[rows])) - outside
    counts = {name: int(mask[rows].sum()) for name, mask in broken.items()}
    counts |= {str(reason): dropped.get(reason, 0) for reason in (Reason.DUPLICATE, Reason.SUSPICIOUS)}
    totals.update({name: count for name, count in counts.items() if count})

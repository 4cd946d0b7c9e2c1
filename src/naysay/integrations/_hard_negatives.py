"""From vectors and pairs to hard negatives by ranks, margins and bounds, a block of anchors at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors.hold_out import one_per_anchor
from naysay.integrations._text_pairs import TextPairs
from naysay.kernels.threads import threads
from naysay.mining._known import rows_of
from naysay.mining._threshold import ALPHA, calibrated
from naysay.mining.candidates import Candidates
from naysay.mining.judge import judge as judged
from naysay.mining.mined import slots_of
from naysay.mining.rescore import ScorePairs, answers_of
from naysay.mining.select import NOT_SELECTED, select
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search._pair_scores import lowest_of, pair_scores
from naysay.search.exact import search_below
from naysay.search.found import Found
from naysay.search.vectors import Vectors
from naysay.types import Query

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
_SLOTS, _NUMBERS = 1 << 21, 1 << 24  # candidates, and numbers of query vectors, that are held at a time
_BUDGET = 1 << 27  # bytes of a search, besides what it cannot do without
_SPARE = 8  # candidates that a first search finds beyond twice as many as are wanted
_PAIRS = 1 << 14  # that a cross-encoder is handed at a time
_ONE_OF_EACH = 1 << 63  # a step of the seed that no block has
_SKIPPED, _LOOKED = "range_min", "looked"


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """What a negative has to satisfy, and which of those that do are taken.

    Args:
        first: Ranks among what may be a negative at all, from 1, both kept; counted before anything is dropped.
        last: Ranks among what may be a negative at all, from 1, both kept; counted before anything is dropped.
        absolute_margin: Drop s + margin > s+, s+ the lowest score of the anchor's positives.
        relative_margin: Drop s > s+ - |s+| margin.
        max_score: Drop s > max_score, s < min_score.
        min_score: Drop s > max_score, s < min_score.
        count: Of the selection.
        how: Of the selection.
        temperature: Of the selection.
        seed: Of the selection.
    """

    first: int
    last: int
    absolute_margin: float | None
    relative_margin: float | None
    max_score: float | None
    min_score: float | None
    count: int
    how: str
    temperature: float | None
    seed: int

    def enough(self, *, choosy: bool) -> int:
        """How deep a search is most likely enough; all the way where the selection looks at every candidate.

        Args:
            choosy: Whether something else than these rules may drop candidates.
        """
        if self.how != "top":
            return self.last
        bounds = (self.absolute_margin, self.relative_margin, self.max_score, self.min_score)
        some_dropped = choosy or any(bound is not None for bound in bounds)
        return self.first - 1 + self.count + (self.count + _SPARE if some_dropped else 0)

    def upper(self) -> str | None:
        """The one rule that drops from some score on upwards, where the best of what is left are taken: a line."""
        bounds = ("absolute_margin", "relative_margin", "max_score")
        given = [name for name in bounds if getattr(self, name) is not None]
        # s + margin is rounded before it is compared, so that the line of an absolute margin is no float32 number.
        return given[0] if self.how == "top" and len(given) == 1 and given[0] != "absolute_margin" else None

    def lines(self, lowest: Scores) -> Scores:
        """The scores above which `upper` drops, by the lowest scores of the anchors' positives."""
        if self.relative_margin is not None:
            return np.asarray(lowest - np.abs(lowest) * np.float32(self.relative_margin))
        return np.full(len(lowest), self.max_score, np.float32)

    def dropped(self, candidates: Candidates) -> Candidates:
        """The candidates without those that break a rule; each is counted for the first rule that it breaks."""
        scores, lowest = candidates.scores, candidates.positive_scores[:, None]
        if self.absolute_margin is not None:
            candidates = candidates.drop(scores + np.float32(self.absolute_margin) > lowest, "absolute_margin")
        if self.relative_margin is not None:
            line = lowest - np.abs(lowest) * np.float32(self.relative_margin)
            candidates = candidates.drop(scores > line, "relative_margin")
        if self.max_score is not None:
            candidates = candidates.drop(scores > np.float32(self.max_score), "max_score")
        if self.min_score is not None:
            candidates = candidates.drop(scores < np.float32(self.min_score), "min_score")
        return candidates


@final
@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """Negatives, and what became of the other candidates.

    Args:
        ids: (n, k), the best first; -1 and -inf where there are no more.
        scores: (n, k), the best first; -1 and -inf where there are no more.
        positive_scores: (p,) of the pairs, in their order.
        looked: How many candidates within the ranks were looked at.
        dropped: {rule: how many of them broke it}, each counted once.
        cut: Whether an anchor that is short has candidates beyond the last rank.
    """

    ids: Ids
    scores: Scores
    positive_scores: Scores
    looked: int
    dropped: dict[str, int]
    cut: bool


def pick(
    queries: Vectors,
    corpus: Vectors,
    pairs: TextPairs,
    never: Positives,
    metric: str,
    rules: Rules,
    *,
    rescore: ScorePairs | None,
    judge: Any,
) -> Picked:
    """The negatives of each query.

    Where the rules are one line, what lies below it is searched for. Else the best are looked for first, and only
    anchors that lose too many to the rules are searched to the last rank. What is taken is the same. Memory: two
    million candidates, a block of query vectors and the budget of a search, whatever n is, and the answer.

    Args:
        pairs: The positives of each.
        never: Pairs that the search leaves out: they have no rank.
        rescore: Scores of pairs that take the place of the search's, or None.
        judge: A detector, "auto", or None.
    """
    anchors, items = pairs.anchors, pairs.items
    if rescore is None:
        positive_scores = pair_scores(queries, corpus, anchors, items, metric)
    else:
        positive_scores = answers_of(rescore, anchors, items, _PAIRS)
    if isinstance(judge, str):
        one = one_per_anchor(anchors, rng=rng_for(rules.seed, _ONE_OF_EACH))
        judge = calibrated(ALPHA, positive_scores[one])
        if judge is None:
            rule = "None or a detector where all positives score the same"
            raise_invalid("judge", rule, f"'auto' with {len(one)} equal scores")
    lowest = lowest_of(anchors, positive_scores, queries.n)
    firsts = pairs.indptr[:-1]

    line = rules.upper() if rescore is None and judge is None else None

    def look(rows: Ids, depth: int) -> tuple[Candidates, Ids]:
        """What a search of some depth finds for some queries, the negatives marked, and how many are above the line."""
        vectors = queries.take(rows)
        left_out, budget = rows_of(never, rows), budget_of(depth, corpus, threads())
        below = None if line is None else rules.lines(lowest[rows])
        found, above = search_below(vectors, corpus, depth, below, metric=metric, exclude=left_out, budget=budget)
        candidates = replace(_within(found, above, rules.last), positive_scores=lowest[rows])
        candidates = candidates.drop(candidates.rank < rules.first, _SKIPPED)
        if rescore is not None:
            candidates = _rescored(candidates, rescore, rows)
        candidates = rules.dropped(candidates)
        if judge is not None:
            query = Query(rows, positives=items[firsts[rows]], vectors=vectors)
            candidates = judged(candidates, judge, query=query)
        rng = rng_for(rules.seed, int(rows[0])) if rules.how in ("random", "softmax") else None
        return select(candidates, rules.count, rules.how, rng=rng, temperature=rules.temperature), above

    deep = min(rules.last, corpus.n)
    enough = min(deep, rules.enough(choosy=judge is not None)) if rescore is None else deep
    if line is not None:
        enough = deep = min(rules.first - 1 + rules.count, corpus.n)
    ends = rules.last < corpus.n  # so that an anchor may have candidates beyond
    ids, scores = np.empty((queries.n, rules.count), np.int64), np.empty((queries.n, rules.count), np.float32)
    tally, cut = Counter[str](), False
    step = max(1, min(_SLOTS // deep, _NUMBERS // queries.width))
    for start in range(0, queries.n, step):
        waiting = np.arange(start, min(start + step, queries.n))
        for depth in [enough, deep] if enough < deep else [deep]:
            candidates, above = look(waiting, depth)
            taken = slots_of(candidates, rules.count)
            ids[waiting], scores[waiting] = taken["ids"], taken["scores"]
            missing = taken["ids"][:, -1] < 0
            seen = above + np.count_nonzero(candidates.filled, axis=1)
            cut |= depth == deep and ends and bool((missing & (seen >= rules.last)).any())
            short = missing & (candidates.ids[:, -1] >= 0) & (depth < deep)  # and there is more to be found
            _count(tally, candidates, ~short)
            if line is not None:
                passed = int(np.maximum(np.minimum(above, rules.last) - rules.first + 1, 0).sum())
                tally.update({_LOOKED: passed, line: passed} if passed else {})
            waiting = waiting[short]
            if not len(waiting):
                break
    looked = tally.pop(_LOOKED, 0)
    return Picked(ids, scores, positive_scores, looked, dict(tally), cut)


def _within(found: Found, above: Ids, last: int) -> Candidates:
    """What was found, with its ranks among all, up to the last one."""
    ranks = above[:, None] + np.arange(1, found.ids.shape[1] + 1)
    far = ranks > last
    ids, scores = np.where(far, -1, found.ids), np.where(far, np.float32(-np.inf), found.scores)
    return replace(Candidates.of(Found(ids, scores)), rank=np.where(ids >= 0, ranks, 0).astype(np.int32))


def budget_of(depth: int, corpus: Vectors, count: int) -> int:
    """Bytes for a search of that depth by `count` threads: enough for any corpus, and no more than it takes.

    A search scores six times `depth` pairs of a query exactly, keeps a norm of each document, and reads a part of the
    file in each thread.
    """
    rows = min(corpus.n, 6 * depth + 256)
    return _BUDGET + 16 * corpus.n + 32 * rows * (corpus.width + 1) + (count << 24)


def _count(tally: Counter[str], candidates: Candidates, rows: NDArray[np.bool_]) -> None:
    """Add up, for these rows, what was looked at and what was dropped for which reason."""
    tally[_LOOKED] += int(np.count_nonzero(candidates.filled[rows]))
    for reason, counts in candidates.dropped.items():
        if reason == _SKIPPED:
            tally[_LOOKED] -= int(counts[rows].sum())
        elif reason != NOT_SELECTED and counts[rows].any():
            tally[reason] += int(counts[rows].sum())


def _rescored(candidates: Candidates, rescore: ScorePairs, anchors: Ids) -> Candidates:
    """The candidates in play with the scores of a better model; asked about many anchors at a time, and no padding."""
    rows, slots = np.nonzero(candidates.kept)
    scores = candidates.scores.copy()
    scores[rows, slots] = answers_of(rescore, anchors[rows], candidates.ids[rows, slots], _PAIRS)
    return replace(candidates, scores=scores)

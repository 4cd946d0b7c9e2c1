"""Positive-based sampling: negatives that are similar to the positive, whatever the anchor's score is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from typing import Any, final

import numpy as np

from naysay._slots import Score, gather, partners, score_slots, where
from naysay.checks import public, raise_invalid, shown
from naysay.samplers import _candidates
from naysay.samplers._candidates import FromPool
from naysay.samplers._top_k import reasons, take, top
from naysay.types import Negatives, Pool, Query

TOO_CLOSE = "too close"


@final
@public
@dataclass(eq=False, repr=False)
class NearPositive(FromPool):
    """Draw candidates, score them against the row's positive, and take the k nearest, or k at random of those near.

    The five numbers may be functions of the step. The query must have positives, except for triples. The limit is
    applied before the M nearest are taken. Slots for which only candidates above it were left are counted as
    {"too close": n}. `scores` (B, K) are those against the positive. log_q is None, because the choice depends on them.
    Cost: the pool's draw, one call of score for (B, candidates), or of first for those and of score for (B, shortlist),
    and a partial sort; on triples one call of score for each side that the pool replaces.

    Max sampling: Rao, He, Lin. Noise-Contrastive Estimation for Answer Selection. CIKM 2016, the k nearest. Two-stage:
    Tran, Hennequin, Royo-Letelier, Moussallam. Improving Collaborative Metric Learning with Efficient Negative
    Sampling. SIGIR 2019, candidates by popularity, then by the positive. Epsilon-truncated: Sun, Hu, Zhang, Qu.
    Bootstrapping Entity Alignment. IJCAI 2018, top_m = ceil((1 - epsilon) N), uniform, with N = candidates.

    Args:
        pool: Where candidates come from. It excludes known positives, the row's own included.
        score: score(positives (B,), ids (B, n)) -> (B, n), higher is closer: the similarity of two items. On a pool of
            triples (`Corruption`) the positive is the entity that a candidate replaces, the head or the tail.
        candidates: How many candidates to draw for each anchor.
        temperature: 0 takes the k nearest. Above 0 draws k without repeats from softmax(score / temperature), by
            Gumbel top-k.
        top_m: If given, k are drawn uniformly from the top_m nearest.
        limit: If given, candidates with a higher score are left out, as too similar to the positive.
        first: A first stage by the anchor: score(anchors (B,), ids (B, n)); for triples score(triples (B, 3),
            corrupted (B, n, 3)).
        shortlist: How many of the highest by `first` go on to the second stage, by the positive.
        on_short: "pad" or "raise", if slots stay empty.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [6, 3], n_items=10))
        >>> def similarity(positives, ids):
        ...     return -np.abs(positives[:, None] - ids).astype(float)
        >>> sampler = NearPositive(pool, similarity, candidates=9, limit=-2.0)
        >>> sampler.sample(ns.Query([0, 1], positives=[6, 3]), 2, rng=ns.rng_for(0)).scores
        array([[-2., -2.],
               [-2., -2.]])
    """

    _made_of = ("pool", "score", "first")

    pool: Pool
    score: Score
    candidates: Any
    temperature: Any = 0.0
    _: KW_ONLY
    top_m: Any = None
    limit: Any = None
    first: Score | None = None
    shortlist: Any = None
    on_short: str = "pad"

    def __post_init__(self) -> None:
        _candidates.check_parts(self.pool, self.score, self.on_short)
        if self.first is not None and not callable(self.first):
            raise_invalid("first", "a function score(anchors, ids)", type(self.first).__name__)
        if (self.first is None) != (self.shortlist is None):
            raise_invalid("shortlist", "given with `first`, and only then", shown(self.shortlist))
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives: the nearest first; with a temperature or top_m, the first drawn first."""
        now = self._settings(_candidates.step_of(query))
        counts, width = _candidates.wanted_slots(k, len(query), rng, top_m=now["top_m"], shortlist=now["shortlist"])
        _candidates.warn_of_few(self, width, candidates=now["candidates"])
        if query.anchors.ndim == 1:
            partners(query)  # raises before the draw if the query has no positives
        drawn = _candidates.candidates_of(self.pool, query, now["candidates"], rng)
        if self.first is not None:
            drawn = _shortened(self.first, query, drawn, now["shortlist"])
        scores = _candidates.positive_similarity(self.score, query, drawn)
        allowed = drawn.ids >= 0
        if now["limit"] is not None:
            allowed = allowed & (scores <= now["limit"])
        below_limit = replace(drawn, ids=where(allowed, drawn.ids, -1))
        scored = _candidates.Scored(below_limit, where(allowed, scores, -np.inf), counts, width)
        answer = scored.take_top_k(self.on_short, now["top_m"], now["temperature"], rng)
        return replace(answer, dropped=reasons(TOO_CLOSE, counts, drawn.ids, allowed))

    def _settings(self, step: int | None) -> dict[str, Any]:
        now = {
            "candidates": _candidates.whole_at("candidates", self.candidates, step),
            "shortlist": _candidates.whole_at("shortlist", self.shortlist, step, optional=True),
            "top_m": _candidates.whole_at("top_m", self.top_m, step, optional=True),
            "temperature": _candidates.number_at("temperature", self.temperature, step, at_least=0, finite=True),
            "limit": _candidates.number_at("limit", self.limit, step, optional=True, finite=True),
        }
        known = [name for name in ("candidates", "shortlist", "top_m") if now[name] is not None]
        for wider, name in pairwise(known):  # each stage takes from the one before
            if now[name] > now[wider]:
                raise_invalid(name, f"at most `{wider}`, {now[wider]}", now[name])
        if now["temperature"] and now["top_m"] is not None:
            advice = "Only one of the two softens the choice."
            raise_invalid("top_m", "left out with a `temperature`", now["top_m"], advice)
        return now


def _shortened(first: Score, query: Query, drawn: Negatives, shortlist: int) -> Negatives:
    """The first stage: the `shortlist` candidates with the highest scores by the anchor."""
    order = top(score_slots(first, query, drawn.ids, drawn.side), min(shortlist, drawn.shape[1]))
    width = order.shape[1]
    return take(drawn, order, gather(drawn.ids >= 0, order), np.full(len(query), width), width, "pad")

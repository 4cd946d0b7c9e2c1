"""Dynamic negative sampling: of some candidates, those that the model scores highest now."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import Score
from naysay.checks import public, raise_invalid
from naysay.samplers._candidates import FromPool, check_parts, number_at, scored_candidates, step_of, whole_at
from naysay.types import Negatives, Pool, Query


@final
@public
@dataclass(eq=False, repr=False)
class Dynamic(FromPool):
    """Draw candidates from the pool, score them, and take the top k; or sample k, with higher scores more likely.

    `candidates`, `temperature` and `top_m` may be functions of the step (query.step), which makes a curriculum
    (`naysay.quantity.Linear`). The score function gets the query's array type, runs without gradients and never gets
    -1. Of equal scores the candidate that was drawn first counts as higher. A pool with distinct=False may return a
    candidate, and so a negative, twice.

    With k = 1, N candidates drawn with replacement and m free items, the item of rank r is chosen with probability
    ((m - r + 1)^N - (m - r)^N) / m^N. `scores` (B, K) are the model's. log_q is None, because the choice depends on
    them. Cost: the pool's draw, one call of score for (B, candidates), and a partial sort.

    Zhang, Chen, Wang, Yu. Optimizing Top-N Collaborative Filtering via Dynamic Negative Item Sampling. SIGIR 2013;
    DNS(M, N): Shi, Chen, Feng, Zhang, Wu, Gao, He. On the Theories Behind Hard Negative Sampling for Recommendation.
    WWW 2023. Their code sums the loss over all M instead of drawing one; use k = M for that. Gao and Huang. Self-Paced
    Network Embedding. KDD 2018 (`ceiling`; the growth of its threshold was not checked).

    Args:
        pool: Where candidates come from. It excludes known positives.
        score: score(anchors (B,), ids (B, n)) -> (B, n), higher is closer. On a pool of triples (`Corruption`)
            score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
        candidates: How many candidates to draw and score for each anchor. None for all entries of a `Memory` or
            `InBatch`.
        temperature: 0 takes the top k (DNS). Above 0 draws k without repeats from softmax(score / temperature), by
            Gumbel top-k.
        ceiling: With a temperature: candidates whose softmax(score / temperature) over the row's candidates is above it
            are left out. In (0, 1], or a function of the step: as it rises, harder candidates enter. 1 leaves out none.
        top_m: If given, k are drawn uniformly from the M = top_m highest: DNS(M, N) with N = candidates. M = 1 is DNS.
        on_short: "pad" or "raise", if a row has fewer candidates than k, without those above the ceiling.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 8], n_items=10))
        >>> hardest = Dynamic(pool, score=lambda anchors, ids: ids.astype(float), candidates=9)
        >>> hardest.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids
        array([[8, 7, 6],
               [9, 7, 6]])
    """

    pool: Pool
    score: Score
    candidates: Any
    temperature: Any = 0.0
    _: KW_ONLY
    ceiling: Any = None
    top_m: Any = None
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_parts(self.pool, self.score, self.on_short)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives: the highest score first; with a temperature or top_m, the first drawn first."""
        candidates, temperature, ceiling, top_m = self._settings(step_of(query))
        scored = scored_candidates(self, query, k, rng, top_m=top_m, candidates=candidates)
        if ceiling is not None:
            scored = scored.below(ceiling, temperature)
        return scored.take_top_k(self.on_short, top_m, temperature, rng)

    def _settings(self, step: int | None) -> tuple[Any, Any, Any, Any]:
        candidates = whole_at("candidates", self.candidates, step, optional=True)
        temperature = number_at("temperature", self.temperature, step, at_least=0, finite=True)
        ceiling = number_at("ceiling", self.ceiling, step, optional=True, above=0, at_most=1)
        if ceiling is not None and temperature == 0:
            raise_invalid("ceiling", "left out without a `temperature`", ceiling, "It bounds a probability.")
        top_m = whole_at("top_m", self.top_m, step, optional=True)
        if top_m is not None and temperature:
            raise_invalid("top_m", "left out with a `temperature`", top_m, "Only one of the two softens the choice.")
        if top_m is not None and candidates is not None and top_m > candidates:
            raise_invalid("top_m", f"at most `candidates`, {candidates}", top_m)
        return candidates, temperature, ceiling, top_m

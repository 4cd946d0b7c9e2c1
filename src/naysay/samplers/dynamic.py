"""Dynamic negative sampling: of some candidates, those that the model scores highest now."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.pools._slots import ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.samplers._draw import check_is_pool
from naysay.samplers._highest import take_highest
from naysay.samplers._pick import pick_softly, softened
from naysay.samplers._scored import Score, candidates_of, check_score, score_slots, take, wanted_slots
from naysay.types import Negatives, Pool, Query, check_query


@final
@public
class Dynamic:
    """Draw `candidates` from the pool, score them, and take the k highest; or k at random, the higher the likelier.

    Each of the three numbers may be a function of the step, query.step: a curriculum (`naysay.quantity.Linear`).
    score gets the query's array type, runs without gradients and never sees -1. Of equal scores the candidate that was
    drawn earlier counts as the higher. A pool with distinct=False may bring a candidate, and so a negative, twice.

    With one draw, N candidates with replacement and m free items, the item of rank r comes with probability
    ((m - r + 1)^N - (m - r)^N) / m^N. `scores` (B, K) are those of the model; log_q is None, because the choice depends
    on them. The cost is the pool's draw, one call of score for (B, candidates), and a partial sort.

    Zhang, Chen, Wang, Yu. Optimizing Top-N Collaborative Filtering via Dynamic Negative Item Sampling. SIGIR 2013;
    DNS(M, N): Shi, Chen, Feng, Zhang, Wu, Gao, He. On the Theories Behind Hard Negative Sampling for Recommendation.
    WWW 2023. Their code sums the loss over all M instead of drawing one: ask for k = M.

    Args:
        pool: Where candidates come from; it has excluded what is known.
        score: Score(anchors (B,), ids (B, n)) -> (B, n), higher is closer: any function of the model. On a pool of
            triples (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).
        candidates: How many are drawn and scored for each anchor.
        temperature: 0: the k highest (DNS). Above 0: k without repeats from softmax(score / temperature), by Gumbel
            top-k.
        among: None, or M: k at random among the M highest, DNS(M, N) with N = candidates; M = 1 is DNS.
        on_short: "pad" or "raise", if a row has fewer candidates than k.

    Example:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [9, 8], n_items=10))
        >>> hardest = Dynamic(pool, score=lambda anchors, ids: ids.astype(float), candidates=9)
        >>> hardest.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids
        array([[8, 7, 6],
               [9, 7, 6]])
    """

    def __init__(
        self,
        pool: Pool,
        score: Score,
        candidates: Any,
        temperature: Any = 0.0,
        *,
        among: Any = None,
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_score(score)
        check_one_of("on_short", on_short, ON_SHORT)
        self.pool, self.score, self.on_short = pool, score, on_short
        self.candidates, self.temperature, self.among = candidates, temperature, among
        self.distinct = getattr(pool, "distinct", None)
        size = None if callable(candidates) else check_whole("candidates", candidates, 1)
        heat = None if callable(temperature) else _check_temperature(temperature)
        if not callable(among):
            _check_among(among, size, heat)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives; k is a number, K = ceil(k), realised per row; or (B,) of them, and K the largest.

        The highest score comes first; with a temperature, or among, the first that was drawn.
        """
        check_query(query)
        size = check_whole("candidates", at_step(self.candidates, query.step), 1)
        temperature = _check_temperature(at_step(self.temperature, query.step))
        among = _check_among(at_step(self.among, query.step), size, temperature)
        counts, width = wanted_slots(k, len(query), rng)
        if among is not None and width > among:
            raise_invalid("k", f"at most among, {among}", shown(k))
        drawn = candidates_of(self.pool, query, size, rng)
        scores = score_slots(self.score, query, drawn.ids, drawn.side)
        if among is None:
            values = softened(scores, temperature, rng)
            return take_highest(drawn, values, counts, width, self.on_short, scores)
        there = scores > -np.inf
        order, kept = pick_softly(scores, there, width, among=among, temperature=0.0, rng=rng)
        return take(drawn, order, kept, counts, width, self.on_short, scores)

    def __repr__(self) -> str:
        """The pool and the numbers."""
        return (
            f"Dynamic({self.pool!r}, candidates={self.candidates}, temperature={self.temperature}, among={self.among})"
        )


def _check_temperature(value: Any) -> float:
    """A finite number of at least 0."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 <= value < np.inf:
        raise_invalid("temperature", "a number of at least 0", shown(value))
    return float(value)


def _check_among(value: Any, candidates: int | None, temperature: float | None) -> int | None:
    """None, or a number of at least 1 that fits the other two, as far as they are known."""
    if value is None:
        return None
    most = check_whole("among", value, 1)
    if temperature:
        raise_invalid("among", "None with a temperature", most, "One of the two softens the choice.")
    if candidates is not None and most > candidates:
        raise_invalid("among", f"at most candidates, {candidates}", most)
    return most

"""Positive-based sampling: negatives that are like the positive, whatever the anchor says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.pools._slots import ON_SHORT
from naysay.quantity.schedules import at_step
from naysay.samplers._choose import gather, top
from naysay.samplers._draw import check_is_pool
from naysay.samplers._numbers import check_number
from naysay.samplers._partner import likeness, partners
from naysay.samplers._pick import pick_softly, reasons
from naysay.samplers._scored import Score, candidates_of, check_score, score_slots, take, wanted_slots
from naysay.types import Negatives, Pool, Query, check_query

TOO_CLOSE = "too close"


@final
@public
class NearPositive:
    """Draw `candidates`, score them against the row's positive, and take the k nearest; or k at random of those near.

    The five numbers may be functions of the step. The query must have positives; triples bring their own. The limit is
    looked at before the M nearest are; slots for which only candidates above it were left are counted {"too close": n}.
    `scores` (B, K) are those against the positive; log_q is None, because the choice depends on them. Cost: the pool's
    draw, one call of score for (B, candidates), or of first for those and of score for (B, shortlist), and a partial
    sort; on triples one call of score for each side that the pool replaces.

    Max sampling: Rao, He, Lin. Noise-Contrastive Estimation for Answer Selection. CIKM 2016, the k nearest. Two-stage:
    Tran, Hennequin, Royo-Letelier, Moussallam. Improving Collaborative Metric Learning with Efficient Negative
    Sampling. SIGIR 2019, candidates by popularity, then by the positive. Epsilon-truncated: Sun, Hu, Zhang, Qu.
    Bootstrapping Entity Alignment. IJCAI 2018, among = ceil((1 - epsilon) N), uniform, with N = candidates.

    Args:
        pool: Where candidates come from; it has excluded what is known, the positive included.
        score: Score(positives (B,), ids (B, n)) -> (B, n), higher is closer: how alike two items are. On a pool of
            triples (`Corruption`) the positive is the entity that a candidate replaces, the head or the tail.
        candidates: How many are drawn for each anchor.
        temperature: 0: the k nearest. Above 0: k without repeats from softmax(score / temperature), by Gumbel
            top-k.
        among: None, or M: k at random among the M nearest.
        limit: None, or a score: candidates above it are left out, as too like the positive to be a negative of it.
        first: None, or score(anchors (B,), ids (B, n)): a first stage, by the anchor; of triples score(triples (B,
            3), corrupted (B, n, 3)).
        shortlist: How many of the highest by `first` go on to the second stage, by the positive.
        on_short: "pad" or "raise", if slots stay empty.

    Example:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0, 1], [6, 3], n_items=10))
        >>> def alike(positives, ids):
        ...     return -np.abs(positives[:, None] - ids).astype(float)
        >>> sampler = NearPositive(pool, alike, candidates=9, limit=-2.0)
        >>> sampler.sample(ns.Query([0, 1], positives=[6, 3]), 2, rng=ns.rng_for(0)).scores
        array([[-2., -2.],
               [-2., -2.]])
    """

    def __init__(
        self,
        pool: Pool,
        score: Score,
        candidates: Any,
        temperature: Any = 0.0,
        *,
        among: Any = None,
        limit: Any = None,
        first: Score | None = None,
        shortlist: Any = None,
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_score(score)
        if first is not None and not callable(first):
            raise_invalid("first", "a function score(anchors, ids)", type(first).__name__)
        if (first is None) != (shortlist is None):
            raise_invalid("shortlist", "given with first, and only then", shown(shortlist))
        check_one_of("on_short", on_short, ON_SHORT)
        self.pool, self.score, self.first, self.on_short = pool, score, first, on_short
        self.candidates, self.temperature, self.among = candidates, temperature, among
        self.limit, self.shortlist = limit, shortlist
        self.distinct = getattr(pool, "distinct", None)
        self._check_numbers({name: value for name, value in self._numbers.items() if not callable(value)})

    @property
    def _numbers(self) -> dict[str, Any]:
        names = ("candidates", "temperature", "among", "limit", "shortlist")
        return {name: getattr(self, name) for name in names}

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives, the nearest or the first drawn first; k is a number, K = ceil(k), realised; or (B,)."""
        check_query(query)
        numbers = {name: at_step(value, query.step) for name, value in self._numbers.items()}
        self._check_numbers(numbers)
        counts, width = wanted_slots(k, len(query), rng)
        for name in ("among", "shortlist"):
            if numbers[name] is not None and width > numbers[name]:
                raise_invalid("k", f"at most {name}, {numbers[name]}", shown(k))
        if query.anchors.ndim == 1:
            partners(query)  # refused before the draw
        drawn = candidates_of(self.pool, query, numbers["candidates"], rng)
        if self.first is not None:
            drawn = _shortened(self.first, query, drawn, numbers["shortlist"])
        scores = likeness(self.score, query, drawn)
        may = drawn.ids >= 0
        if numbers["limit"] is not None:
            may = may & (scores <= numbers["limit"])
        softness = {name: numbers[name] for name in ("among", "temperature")}
        taken = pick_softly(scores, may, width, **softness, rng=rng)
        answer = take(drawn, *taken, counts, width, self.on_short, scores)
        return replace(answer, dropped=reasons(TOO_CLOSE, counts, drawn.ids, may))

    def _check_numbers(self, numbers: dict[str, Any]) -> None:
        """Refuse numbers that cannot be, or cannot be together, as far as they are known."""
        heat = check_number(
            "temperature", numbers.get("temperature", 0.0), "a number of at least 0", lambda t: 0 <= t < np.inf
        )
        if numbers.get("limit") is not None:
            check_number("limit", numbers["limit"], "a finite number", np.isfinite)
        wider, most = "", None
        for name in ("candidates", "shortlist", "among"):  # each stage takes from the one before
            if name in numbers and (name == "candidates" or numbers[name] is not None):
                size = check_whole(name, numbers[name], 1)
                if most is not None and size > most:
                    raise_invalid(name, f"at most {wider}, {most}", size)
                wider, most = name, size
        if heat and numbers.get("among") is not None:
            raise_invalid("among", "None with a temperature", numbers["among"], "One of the two softens the choice.")

    def __repr__(self) -> str:
        """The pool and the numbers."""
        numbers = ", ".join(f"{name}={value}" for name, value in self._numbers.items() if value is not None)
        return f"NearPositive({self.pool!r}, {numbers})"


def _shortened(first: Score, query: Query, drawn: Negatives, shortlist: int) -> Negatives:
    """The first stage: of the candidates, the `shortlist` highest by the anchor."""
    order = top(score_slots(first, query, drawn.ids, drawn.side), min(shortlist, drawn.shape[1]))
    room = np.full(len(query), order.shape[1])
    return take(drawn, order, gather(drawn.ids >= 0, order), room, order.shape[1], "pad")

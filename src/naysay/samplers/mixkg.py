"""MixKG: convex combinations of pairs of hard negatives, for the parts of a triple or for items."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, final

import numpy as np

from naysay.arrays import is_torch, need_torch, to_numpy
from naysay.checks import check_one_of, check_whole, public, raise_invalid
from naysay.pools._slots import ON_SHORT, shortfall
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.samplers._choose import gather, top
from naysay.samplers._draw import check_is_pool
from naysay.samplers._partner import sides_of
from naysay.samplers._scored import Score, candidates_of, check_score, score_slots, wanted_slots
from naysay.samplers._vectors import (
    Embed,
    check_embed,
    item_vectors,
    like_query,
    of_kind,
    products,
    share_at,
    stack_last,
    two_places,
    uniform,
    unit,
)
from naysay.types import SIDES, Array, Negatives, Pool, Query, anchor_ids, check_query, positive_ids

_BY = ("score", "entity")


@final
@public
class MixKG:
    """Of the candidates, take the n_hard hardest by one of two criteria, and mix k pairs of them.

    v = a e_i + (1 - a) e_j,  a ~ U(mix),  i != j uniform among the n_hard (i = j if there is but one). The paper
    names both criteria: `Mixed` of two samplers has both.

    The answer: `vectors` (B, K, d), which stand for the replaced entity, and through which gradients flow into embed;
    `ids` and parents[..., 0] are i, parents[..., 1] is j; `side` is the pool's; scores and log_q are None. Numbers may
    be functions of the step. Cost: the draw, one call of score (or embed) for (B, candidates), a partial sort, and
    embed of the 2 B k parents.

    Che, Yang, Shao, Zhang, Tao. MixKG: Mixing for Harder Negative Samples in Knowledge Graph. 2022 (arXiv 2202.09606).

    Args:
        pool: Where candidates come from: `Corruption` of one side (two sides: two of these in `Mixed`), or any
            pool.
        score: Score(triples (B, 3), corrupted (B, n, 3)) -> (B, n), higher is closer; on a pool of items
            score(anchors (B,), ids (B, n)) -> (B, n); None if by="entity".
        embed: Embed(ids) -> (..., d), the vectors of the entities.
        candidates: How many are drawn.
        n_hard: How many of them are mixed.
        by: "score": hard is what the model scores highest. "entity": hard is what is most alike, by cosine, to the
            right entity: the one that the triple has there, or the query's positive.
        mix: (low, high) of the first parent's share: any convex combination, each as likely, unless told.
        on_short: "pad" or "raise", if a row has no candidate.

    Example:
        >>> import numpy as np, naysay as ns
        >>> triples = [[0, 0, 1], [2, 0, 3]]
        >>> entities = np.array([[0.0], [1.0], [2.0], [4.0]])
        >>> pool = ns.pools.Corruption(triples, sides=("tail",))
        >>> def score(triples, corrupted):
        ...     return corrupted[:, :, 2] * 1.0
        >>> mixed = MixKG(pool, score, lambda ids: entities[ids], candidates=3, n_hard=2, mix=(0.5, 0.5))
        >>> made = mixed.sample(ns.Query(triples), 1, rng=ns.rng_for(0))
        >>> made.vectors.tolist(), np.sort(made.parents).tolist(), made.side.tolist()
        ([[[3.0]], [[1.5]]], [[[2, 3]], [[1, 2]]], [[2], [2]])
    """

    def __init__(
        self,
        pool: Pool,
        score: Score | None,
        embed: Embed,
        candidates: Any,
        *,
        n_hard: Any,
        by: str = "score",
        mix: Any = (0.0, 1.0),
        on_short: str = "pad",
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_one_of("by", by, _BY)
        if by == "score":
            check_score(score)
        elif score is not None:
            raise_invalid("score", "None with by='entity'", type(score).__name__)
        check_embed("embed", embed)
        check_one_of("on_short", on_short, ON_SHORT)
        self.pool, self.score, self.embed, self.by = pool, score, embed, by
        self.candidates, self.n_hard, self.mix, self.on_short = candidates, n_hard, mix, on_short
        self.distinct = False
        for step in () if any(map(callable, (candidates, n_hard, mix))) else (0,):
            self._numbers(step)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) synthetic negatives; k is a number, K = ceil(k), realised per row; or (B,) of them."""
        check_query(query)
        size, n_hard, (low, high) = self._numbers(query.step)
        drawn = candidates_of(self.pool, query, size, rng)
        counts, width = wanted_slots(k, len(query), rng)
        side = _one_side(drawn)
        hardness = (
            self._likeness(query, drawn.ids, side)
            if self.score is None
            else score_slots(self.score, query, drawn.ids, drawn.side)
        )
        hard = top(hardness, min(n_hard, hardness.shape[1]))
        found = (gather(hardness, hard) > -np.inf).sum(1)[:, None]
        draws = uniform((len(query), width, 3), key_from(rng), hardness)
        first, second = (gather(hard, places) for places in two_places(draws[:, :, 0], draws[:, :, 1], found))
        used = like_query(np.arange(width) < counts[:, None], query) & (found > 0)
        where = need_torch().where if is_torch(used) else np.where
        one, other = (where(used, gather(drawn.ids, places), -1) for places in (first, second))
        vectors = item_vectors(self.embed, one, layers=False)
        share = of_kind(low + (high - low) * draws[:, :, 2], vectors)[:, :, None]
        made = share * vectors + (1 - share) * item_vectors(self.embed, other, layers=False)
        return Negatives(
            one,
            vectors=where(used[:, :, None], made, made * 0),
            parents=stack_last(one, other),
            side=None if side is None else like_query(np.where(to_numpy(used), side, -1).astype(np.int8), query),
            dropped=shortfall(self.on_short, np.asarray(to_numpy(one)), counts),
        )

    def _likeness(self, query: Query, ids: Array, side: int | None) -> Array:
        """(B, n) cosines with the right entity, without gradients; -inf where a slot is empty."""
        right = positive_ids(query) if side is None else anchor_ids(query)[:, side]
        torch = need_torch() if is_torch(ids) else None
        with nullcontext() if torch is None else torch.no_grad():
            vectors = item_vectors(self.embed, ids, layers=False)
            whole = item_vectors(self.embed, like_query(right, query), layers=False)
        where = np.where if torch is None else torch.where
        return where(ids >= 0, products(unit(whole), unit(vectors)), -np.inf)

    def _numbers(self, step: int) -> tuple[int, int, tuple[float, float]]:
        """The numbers candidates, n_hard and mix at a step, checked."""
        size = check_whole("candidates", at_step(self.candidates, step), 1)
        n_hard = check_whole("n_hard", at_step(self.n_hard, step), 1)
        return size, n_hard, share_at("mix", self.mix, step)

    def __repr__(self) -> str:
        """The pool and the numbers."""
        numbers = f"candidates={self.candidates}, n_hard={self.n_hard}, by={self.by!r}, mix={self.mix}"
        return f"MixKG({self.pool!r}, {numbers})"


def _one_side(drawn: Negatives) -> int | None:
    """The side that all candidates replace, or None where there are no sides."""
    if drawn.side is None:
        return None
    sides = sides_of(drawn)
    if len(sides) > 1:
        advice = "Make one pool for each side, and put two samplers into Mixed."
        raise_invalid("pool", "one that replaces one side", [SIDES[side] for side in sides], advice)
    return sides[0]

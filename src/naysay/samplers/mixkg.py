"""MixKG: convex combinations of pairs of hard negatives, for the parts of a triple or for items."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import Score, check_score, gather, like_query, of_kind, score_slots, where
from naysay.arrays import to_numpy, without_gradients
from naysay.checks import check_one_of, public, raise_invalid
from naysay.pools._slots import ON_SHORT, shortfall
from naysay.rng import key_from
from naysay.samplers import _candidates
from naysay.samplers._candidates import FromPool
from naysay.samplers._vectors import Embed, check_embed, hard_pairs, item_vectors, products, stack_last, unit
from naysay.types import SIDES, Array, Negatives, Pool, Query, anchor_ids, positive_ids

_BY = ("score", "entity")


@final
@public
@dataclass(eq=False, repr=False)
class MixKG(FromPool):
    """Take the n_hard hardest candidates by one of two criteria, and mix k pairs of them.

    v = a e_i + (1 - a) e_j,  a ~ U(mix),  i != j uniform among the n_hard (i = j if there is only one). The paper
    has both criteria; `Mixed` of two samplers combines them.

    The answer has `vectors` (B, K, d), which replace the entity's, and through which gradients flow into embed. `ids`
    and parents[..., 0] are i, parents[..., 1] is j; `side` is the pool's; scores and log_q are None. Numbers may be
    functions of the step. Cost: the draw, one call of score (or embed) for (B, candidates), a partial sort, and embed
    of the 2 B k parents.

    Che, Yang, Shao, Zhang, Tao. MixKG: Mixing for Harder Negative Samples in Knowledge Graph. 2022 (arXiv 2202.09606).

    Args:
        pool: Where candidates come from: `Corruption` of one side (for two sides put two of these in `Mixed`), or any
            pool.
        score: score(triples (B, 3), corrupted (B, n, 3)) -> (B, n), higher is closer; on a pool of items
            score(anchors (B,), ids (B, n)) -> (B, n); None if by="entity".
        embed: embed(ids) -> (..., d), the vectors of the entities.
        candidates: How many candidates to draw.
        n_hard: How many of them are mixed.
        by: "score": the hardest are those that the model scores highest. "entity": those with the highest cosine to
            the correct entity, which is the triple's own or the query's positive.
        mix: (low, high) of the first parent's share, which is uniform in between.
        on_short: "pad" or "raise", if a row has no candidate.

    Examples:
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

    _made_of = ("pool", "score", "embed")

    pool: Pool
    score: Score | None
    embed: Embed
    candidates: Any
    _: KW_ONLY
    n_hard: Any
    by: str = "score"
    mix: Any = (0.0, 1.0)
    on_short: str = "pad"
    distinct = False

    def __post_init__(self) -> None:
        _candidates.check_is_pool(self.pool)
        check_one_of("by", self.by, _BY)
        if self.by == "score":
            check_score(self.score)
        elif self.score is not None:
            raise_invalid("score", "None with by='entity'", type(self.score).__name__)
        check_embed("embed", self.embed)
        check_one_of("on_short", self.on_short, ON_SHORT)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Make (B, K) synthetic negatives."""
        candidates, n_hard, (low, high) = self._settings(_candidates.step_of(query))
        drawn = _candidates.candidates_of(self.pool, query, candidates, rng)
        counts, width = _candidates.wanted_slots(k, len(query), rng)
        side = _one_side(drawn)
        hardness = (
            self._cosines(query, drawn.ids, side)
            if self.score is None
            else score_slots(self.score, query, drawn.ids, drawn.side)
        )
        *pair, used, chance = hard_pairs(hardness, n_hard, counts, width, key_from(rng), hardness)
        one, other = (where(used, gather(drawn.ids, places), -1) for places in pair)
        vectors = item_vectors(self.embed, one, layers=False)
        share = of_kind(low + (high - low) * chance, vectors)[:, :, None]
        made = share * vectors + (1 - share) * item_vectors(self.embed, other, layers=False)
        return Negatives(
            one,
            vectors=where(used[:, :, None], made, 0.0),
            parents=stack_last(one, other),
            side=None if side is None else like_query(np.where(to_numpy(used), side, -1).astype(np.int8), query),
            dropped=shortfall(self.on_short, np.asarray(to_numpy(one)), counts),
        )

    def _cosines(self, query: Query, ids: Array, side: int | None) -> Array:
        """(B, n) cosines with the correct entity, without gradients; -inf where a slot is empty."""
        right = positive_ids(query) if side is None else anchor_ids(query)[:, side]
        with without_gradients(ids):
            vectors = item_vectors(self.embed, ids, layers=False)
            whole = item_vectors(self.embed, like_query(right, query), layers=False)
        return where(ids >= 0, products(unit(whole), unit(vectors)), -np.inf)

    def _settings(self, step: int | None) -> tuple[Any, Any, Any]:
        candidates = _candidates.whole_at("candidates", self.candidates, step)
        return (
            candidates,
            _candidates.whole_at("n_hard", self.n_hard, step),
            _candidates.interval_at("mix", self.mix, step),
        )


def _one_side(drawn: Negatives) -> int | None:
    """The side that all candidates replace, or None where there are no sides."""
    if drawn.side is None:
        return None
    sides = _candidates.sides_of(drawn)
    if len(sides) > 1:
        advice = "Make one pool for each side, and put two samplers into Mixed."
        raise_invalid("pool", "one that replaces one side", [SIDES[side] for side in sides], advice)
    return sides[0]

"""Synthetic negatives: vectors that are mixed from candidates, from the positive, or from the anchor.

An answer has `vectors` (B, K, d): score these, not the ids. A slot carries the id of its first parent; `parents` has
both. log_q is None. Numbers and intervals may be functions of the step.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import Score, check_score, gather, like_query, of_kind, partners, score_slots, where
from naysay.arrays import module_of, to_numpy, without_gradients
from naysay.checks import check_one_of, public, raise_invalid
from naysay.pools._slots import shortfall
from naysay.rng import key_from
from naysay.samplers._choose import Ids, candidates_of, in_use, top, uniform, wanted_slots
from naysay.samplers._settings import (
    Embed,
    FromPool,
    check_function,
    check_on_short,
    check_pool,
    interval,
    number,
    whole,
)
from naysay.samplers._vectors import (
    anchor_vectors,
    check_width,
    detached,
    in_one_type,
    item_vectors,
    one_copy,
    products,
    stack_last,
    unit,
    zero_where_empty,
)
from naysay.samplers.scores import sides_of
from naysay.types import SIDES, Array, Negatives, Pool, Query, anchor_ids, check_query

__all__ = ["MixGCF", "MixKG", "MoCHi"]

_ROWS_AT_ONCE = 1024  # rows whose candidates MixGCF compares at a time: their vectors stay in the processor's cache


def _mixed(first: Array, second: Array, vectors: Array, counts: Ids, on_short: str, **arrays: Any) -> Negatives:
    """Negatives of mixed vectors (B, K, d), which are 0 where a slot is empty; their parents are (B, K) ids each."""
    return Negatives(
        first,
        vectors=vectors,
        parents=stack_last(first, second),
        dropped=shortfall(on_short, np.asarray(to_numpy(first)), counts),
        **arrays,
    )


def _hard_pairs(
    scores: Array, n_hard: int, counts: Ids, width: int, key: np.uint64, like: Array
) -> tuple[Array, Array, Array, Array]:
    """(B, K) each: two different slots of a row's n_hard highest, whether there is one, and a uniform number.

    Scores (B, n) are -inf in empty slots. Numbers are in the number type of `like`.
    """
    hard = top(scores, min(n_hard, scores.shape[1]))
    n_found = (gather(scores, hard) > -np.inf).sum(1)[:, None]
    draws = uniform((len(scores), width, 3), key, like)
    minimum = module_of(draws).minimum
    place = minimum(of_kind(draws[:, :, 0] * n_found, n_found), (n_found - 1).clip(min=0))
    step = 1 + minimum(of_kind(draws[:, :, 1] * (n_found - 1), n_found), (n_found - 2).clip(min=0))
    partner = (place + step) % n_found.clip(min=1)  # another place, unless there is only one
    used = in_use(counts, width, scores) & (n_found > 0)
    return gather(hard, place), gather(hard, partner), used, draws[:, :, 2]


@final
@public
@dataclass(eq=False, repr=False)
class MoCHi(FromPool):
    """Take the n_hard candidates that are nearest to the anchor, and mix k new vectors from them.

    Near means the dot product with the query's vectors (B, d), which should have length 1. i and j are uniform among
    the n_hard, and differ unless there is only one.

    The vectors have length 1 and **no gradients**. The parents are i and j, or i and -1 for the anchor, which is not an
    item; `source` says which kind; `scores` are q . vectors. `Mixed` adds them to the queue's own, as the paper does.

    Kalantidis, Sariyildiz, Pion, Weinzaepfel, Larlus. Hard Negative Mixing for Contrastive Learning. NeurIPS 2020;
    Giakoumoglou and Stathaki. SynCo: Synthetic Hard Negatives for Contrastive Visual Representation Learning. 2024.

    Args:
        pool: Where candidates come from: `Memory`, with its own vectors, or any pool with `embed`.
        embed: embed(ids) -> (..., d), the items' vectors; None uses those that the pool returns.
        n_hard: How many of the nearest candidates are mixed.
        candidates: How many to draw; None: everything in a `Memory` or `InBatch`.
        embed_anchors: embed_anchors(anchors (B,)) -> (B, d), for queries without vectors.
        anchor_share: The share of a row's slots that are mixed with the anchor, spread evenly, from 0 to 1.
        mix: (low, high) of a in pairs: unit(a n_i + (1 - a) n_j), a ~ U(mix), i != j.
        anchor_mix: (low, high) of b with the anchor q: unit(b q + (1 - b) n_i), b ~ U(anchor_mix). Below 0, from -1 on,
            the vector lies beyond n_i, away from q, and is easier than n_i: SynCo's extrapolation is (-0.5, 0).
        on_short: "pad" or "raise", if a row has no candidate.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> memory = ns.pools.Memory(4)
        >>> memory.push([1, 2, 3], vectors=np.array([[0.8, 0.6], [0.6, 0.8], [-1.0, 0.0]]))
        >>> made = MoCHi(memory, None, n_hard=2, anchor_share=0.5).sample(
        ...     ns.Query([0], vectors=np.array([[1.0, 0.0]])), 2, rng=ns.rng_for(0)
        ... )
        >>> sorted(made.parents[0, 0].tolist()), made.parents[0, 1, 1].tolist(), made.source.tolist()
        ([1, 2], -1, [[0, 1]])
    """

    _made_of = ("pool", "embed", "embed_anchors")
    distinct = False

    pool: Pool
    embed: Embed | None
    n_hard: Any
    candidates: Any = None
    _: KW_ONLY
    embed_anchors: Embed | None = None
    anchor_share: Any = 0.5
    mix: Any = (0.0, 1.0)
    anchor_mix: Any = (0.0, 0.5)
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_pool(self.pool)
        check_function("embed", self.embed, "embed(ids)", optional=True)
        check_function("embed_anchors", self.embed_anchors, "embed_anchors(anchors)", optional=True)
        check_on_short(self.on_short)
        self._n_hard = whole("n_hard", self.n_hard)
        self._n_candidates = whole("candidates", self.candidates, optional=True)
        self._anchor_share = number("anchor_share", self.anchor_share, at_least=0, at_most=1)
        self._mix = interval("mix", self.mix)
        self._anchor_mix = interval("anchor_mix", self.anchor_mix, least=-1)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Make (B, K) synthetic negatives."""
        check_query(query)
        with without_gradients(query.anchors):
            anchors = anchor_vectors(query, self.embed_anchors)
            drawn = self.pool.draw(query, self._n_candidates(query.step), rng=rng)
            counts, width = wanted_slots(k, len(query), rng)
            ids, vectors = self._candidates(drawn, query, anchors)
            return self._mixed(query, anchors, ids, vectors, counts, width, key_from(rng))

    def _candidates(self, drawn: Negatives, query: Query, anchors: Array) -> tuple[Array, Array]:
        """The ids (B, n), and their vectors (B, n, d), or (n, d) where all rows share them, like the anchors'."""
        if drawn.shape[1] == 0:  # an empty memory: one empty candidate, so that there is something to choose from
            return like_query(np.full((len(query), 1), -1), query), anchors[:, None] * 0
        ids = like_query(drawn.ids, query)
        if self.embed is not None:
            vectors = item_vectors(self.embed, ids)
        elif drawn.vectors is not None:
            vectors = like_query(one_copy(drawn.vectors), query)
        else:
            advice = "Pass embed, or push vectors into the memory."
            raise_invalid("embed", "given where the pool has no vectors", None, advice)
        check_width(anchors, vectors.shape[-1])
        return ids, of_kind(vectors, anchors)

    def _mixed(
        self, query: Query, anchors: Array, ids: Array, vectors: Array, counts: Ids, width: int, key: np.uint64
    ) -> Negatives:
        """The negatives from (B, n) candidates and their vectors."""
        anchor_share, slot = self._anchor_share(query.step), np.arange(width)
        # (K,) bool, the same in all rows: the share is spread evenly over the slots.
        with_anchor = np.floor((slot + 1) * anchor_share + 1e-9) > np.floor(slot * anchor_share + 1e-9)
        scores = where(ids >= 0, products(anchors, vectors), -np.inf)
        first, second, used, chance = _hard_pairs(scores, self._n_hard(query.step), counts, width, key, anchors)
        # The first parent's share: a in pairs, 1 - b with the anchor.
        bounds = zip(self._mix(query.step), self._anchor_mix(query.step), strict=True)
        low, high = (np.where(with_anchor, 1 - b, a) for a, b in bounds)
        low, span = (of_kind(like_query(bound, query), anchors) for bound in (low, high - low))
        share = (low + span * chance)[:, :, None]
        kind = like_query(np.broadcast_to(with_anchor, (len(query), width)), query)
        partner = module_of(anchors).where(kind[:, :, None], anchors[:, None], _rows_of(vectors, second))
        made = unit(share * _rows_of(vectors, first) + (1 - share) * partner)
        parent = where(used, gather(ids, first), -1)
        made = zero_where_empty(made, parent)
        return _mixed(
            parent,
            where(used & ~kind, gather(ids, second), -1),
            made,
            counts,
            self.on_short,
            scores=products(anchors, made),
            source=like_query(np.where(to_numpy(used), with_anchor, -1).astype(np.int8), query),
            source_names=("pair", "with anchor"),
        )


def _rows_of(vectors: Array, order: Array) -> Array:
    """vectors[row, order[row]], (B, K, d): from (B, n, d), or from (n, d) that all rows share."""
    return vectors[order] if vectors.ndim == 2 else gather(vectors, order)


@final
@public
@dataclass(eq=False, repr=False)
class MixKG(FromPool):
    """Take the n_hard hardest candidates by one of two criteria, and mix k pairs of them.

    v = a e_i + (1 - a) e_j,  a ~ U(mix),  i != j uniform among the n_hard (i = j if there is only one). The paper
    has both criteria; `Mixed` of two samplers combines them. The vectors replace the entity's, and gradients flow
    through them into embed. The parents are i and j; `side` is the pool's; scores are None.

    Che, Yang, Shao, Zhang, Tao. MixKG: Mixing for Harder Negative Samples in Knowledge Graph. 2022 (arXiv 2202.09606).

    Args:
        pool: `Corruption` of one side (for two sides put two of these in `Mixed`), or any pool.
        score: As in `Dynamic`; None if by="entity".
        embed: embed(ids) -> (..., d), the vectors of the entities.
        candidates: How many to draw.
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
    distinct = False

    pool: Pool
    score: Score | None
    embed: Embed
    candidates: Any
    _: KW_ONLY
    n_hard: Any
    by: str = "score"
    mix: Any = (0.0, 1.0)
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_pool(self.pool)
        check_one_of("by", self.by, ("score", "entity"))
        if self.by == "score":
            check_score(self.score)
        elif self.score is not None:
            raise_invalid("score", "None with by='entity'", type(self.score).__name__)
        check_function("embed", self.embed, "embed(ids)")
        check_on_short(self.on_short)
        self._n_candidates = whole("candidates", self.candidates)
        self._n_hard = whole("n_hard", self.n_hard)
        self._mix = interval("mix", self.mix)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Make (B, K) synthetic negatives."""
        check_query(query)
        drawn = candidates_of(self.pool, query, self._n_candidates(query.step), rng)
        counts, width = wanted_slots(k, len(query), rng)
        side = None
        if drawn.side is not None:
            side, *others = sides_of(drawn)
            if others:
                advice = "Make one pool for each side, and put two samplers into Mixed."
                raise_invalid("pool", "one that replaces one side", [SIDES[each] for each in (side, *others)], advice)
        if self.score is None:
            hardness = self._cosines(query, drawn.ids, side)
        else:
            hardness = score_slots(self.score, query, drawn.ids, drawn.side)
        first, second, used, chance = _hard_pairs(
            hardness, self._n_hard(query.step), counts, width, key_from(rng), hardness
        )
        one, other = (where(used, gather(drawn.ids, places), -1) for places in (first, second))
        low, high = self._mix(query.step)
        vectors = item_vectors(self.embed, one)
        share = of_kind(low + (high - low) * chance, vectors)[:, :, None]
        made = share * vectors + (1 - share) * item_vectors(self.embed, other)
        sides = None if side is None else like_query(np.where(to_numpy(used), side, -1).astype(np.int8), query)
        return _mixed(one, other, zero_where_empty(made, one), counts, self.on_short, side=sides)

    def _cosines(self, query: Query, ids: Array, side: int | None) -> Array:
        """(B, n) cosines with the correct entity, without gradients; -inf where a slot is empty."""
        correct = partners(query) if side is None else like_query(anchor_ids(query)[:, side], query)
        with without_gradients(ids):
            vectors = item_vectors(self.embed, ids)
            own = item_vectors(self.embed, correct)
        return where(ids >= 0, products(unit(own), unit(vectors)), -np.inf)


@final
@public
@dataclass(eq=False, repr=False)
class MixGCF(FromPool):
    """Mix the positive into candidates, take the hardest of them at each layer, and combine the layers.

    The query has positives and the anchors' pooled vectors e_a (B, d); for "concat" (B, layers * d), whose parts go
    with the items' layers one by one. For each of the k negatives, with M candidates m of its own:
        positive mixing   v_m(l) = alpha(l) e_pos(l) + (1 - alpha(l)) e_m(l);  alpha ~ U(mix) per row, slot and layer
        hop mixing        best(l) = argmax over m of e_a . v_m(l)
        the negative      pooling over l of v_best(l)(l)
    alpha is the same for all candidates of a layer and does not change the argmax, so the choice is made first, and
    only the chosen ones are mixed.

    **Gradients flow** through the vectors into embed, for candidates and positive. The parents are the candidate chosen
    at layer 0, and the positive; `scores` are e_a . vectors without gradients. With mix=(0, 0) and one layer it is DNS.
    Cost: O(B k (M + layers) layers d) in time and memory.

    Huang, Dong, Ding, Yang, Feng, Wang, Tang. MixGCF. KDD 2021.

    Args:
        pool: Where candidates come from.
        embed: embed(ids) -> (..., layers, d), the items' vectors at each layer of a graph network, layer 0 first;
            (..., d) is one layer.
        candidates: M, how many candidates each negative is made from.
        embed_anchors: embed_anchors(anchors (B,)) -> (B, d), for queries without vectors.
        mix: (low, high) of the positive's share, which is uniform in between; (0, 1) in the paper.
        pooling: How layers become one vector: "mean", "sum", "final" (the last), or "concat".
        on_short: "pad" or "raise", if a row has fewer candidates than k.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> pool = ns.pools.Everything(ns.Positives.from_pairs([0], [3], n_items=4))
        >>> vectors = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 0.0], [4.0, 4.0]])
        >>> hardest = MixGCF(pool, lambda ids: vectors[ids], candidates=3, mix=(0.5, 0.5))
        >>> query = ns.Query([0], positives=[3], vectors=np.array([[1.0, 0.0]]))
        >>> made = hardest.sample(query, 1, rng=ns.rng_for(0))
        >>> made.vectors.tolist(), made.parents.tolist()
        ([[[3.0, 2.0]]], [[[1, 3]]])
    """

    _made_of = ("pool", "embed", "embed_anchors")

    pool: Pool
    embed: Embed
    candidates: Any
    _: KW_ONLY
    embed_anchors: Embed | None = None
    mix: Any = (0.0, 1.0)
    pooling: str = "mean"
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_pool(self.pool)
        check_function("embed", self.embed, "embed(ids)")
        check_function("embed_anchors", self.embed_anchors, "embed_anchors(anchors)", optional=True)
        check_one_of("pooling", self.pooling, ("mean", "sum", "final", "concat"))
        check_on_short(self.on_short)
        self._n_candidates = whole("candidates", self.candidates)
        self._mix = interval("mix", self.mix)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Make (B, K) synthetic negatives."""
        check_query(query)
        n_each = self._n_candidates(query.step)
        positives = partners(query)
        anchors = anchor_vectors(query, self.embed_anchors)
        counts, width = wanted_slots(k, len(query), rng)
        drawn = self.pool.draw(query, counts * n_each, rng=rng).like(query)
        candidates = _dealt(query, drawn.ids, counts, width, n_each)  # (B, K * M)
        positive_vectors = item_vectors(self.embed, positives, layers=True)  # (B, layers, d)
        layers, dim = positive_vectors.shape[1:]
        check_width(anchors, dim * (layers if self.pooling == "concat" else 1))
        hardest = self._hardest(anchors, candidates, n_each)  # (B, K, layers)
        alpha = uniform((len(query), width, layers, 1), key_from(rng), positive_vectors, self._mix(query.step))
        layer = like_query(np.arange(layers), query)
        at_its_layer = item_vectors(self.embed, hardest, layers=True)[:, :, layer, layer]  # of the one chosen there
        made = self._pooled(alpha * positive_vectors[:, None] + (1 - alpha) * at_its_layer)
        first = hardest[:, :, 0]
        made = zero_where_empty(made, first)
        second = where(first >= 0, positives[:, None] + 0 * first, -1)
        scores = products(*in_one_type(detached(anchors), detached(made)))
        return _mixed(first, second, made, counts, self.on_short, scores=scores)

    def _hardest(self, anchors: Array, ids: Array, n_each: int) -> Array:
        """(B, K, layers) of each slot's candidates the one that is nearest to the anchor at each layer."""
        module, blocks = module_of(ids), []
        for start in range(0, max(len(ids), 1), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            candidates = ids[block]
            with without_gradients(ids):
                vectors = item_vectors(self.embed, candidates, layers=True, first=start)
                rows, n_candidates, layers, dim = vectors.shape
                own, vectors = in_one_type(anchors[block], vectors)
                own = own.reshape(rows, own.shape[1] // max(dim, 1), dim)  # (B, 1 or layers, d)
                own = module.broadcast_to(own, (rows, layers, dim))
                scores = where((candidates >= 0)[:, :, None], module.einsum("bnld,bld->bnl", vectors, own), -np.inf)
            n_slots = n_candidates // n_each
            places = scores.reshape(rows * n_slots, n_each, layers).argmax(1)
            chosen = gather(candidates.reshape(rows * n_slots, n_each), places)
            blocks.append(chosen.reshape(rows, n_slots, layers))
        return module.concatenate(blocks)

    def _pooled(self, mixed: Array) -> Array:
        """(B, K, d), or (B, K, layers * d), of (B, K, layers, d)."""
        if self.pooling == "concat":
            return mixed.reshape(*mixed.shape[:2], mixed.shape[2] * mixed.shape[3])
        if self.pooling == "final":
            return mixed[:, :, -1]
        return mixed.sum(2) if self.pooling == "sum" else mixed.mean(2)


def _dealt(query: Query, ids: Array, counts: Ids, width: int, n_each: int) -> Array:
    """(B, K * M) candidates, slot by slot, dealt in turn, so that a short row has candidates for every slot.

    Row b requests counts[b] * M candidates; its slot s gets the candidates s, s + counts[b], s + 2 counts[b], ...
    """
    slot, turn, step = np.arange(width)[:, None], np.arange(n_each), counts[:, None, None]
    shape = (len(counts), width * n_each)
    used = (np.broadcast_to(slot, (width, n_each)) < step).reshape(shape)
    order = np.where(used, (slot + turn * step).reshape(shape), 0)
    if ids.shape[1] == 0:  # no row has a slot
        return like_query(np.full(shape, -1), query)
    return where(like_query(used, query), gather(ids, like_query(order, query)), -1)

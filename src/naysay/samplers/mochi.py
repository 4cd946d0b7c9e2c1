"""MoCHi: synthetic negatives from an anchor's hardest, mixed in pairs or with the anchor itself."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import gather, like_query, of_kind
from naysay.arrays import is_torch, module_of, to_numpy, without_gradients
from naysay.checks import check_one_of, public, raise_invalid
from naysay.pools._slots import ON_SHORT, shortfall
from naysay.rng import key_from
from naysay.samplers import _vectors
from naysay.samplers._candidates import FromPool, check_is_pool, interval_at, number_at, wanted_slots, whole_at
from naysay.samplers._vectors import Embed
from naysay.types import Array, Negatives, Pool, Query, check_query

SOURCES = ("pair", "with anchor")


@final
@public
@dataclass(eq=False, repr=False)
class MoCHi(FromPool):
    """Take the n_hard candidates that are nearest to the anchor, and mix k new vectors from them.

    Near means the dot product with the query's vectors (B, d), which should have length 1. i and j are uniform among
    the n_hard, and differ unless there is only one. With b below 1/2 the anchor's part is always the smaller one. Every
    number may be a function of the step, so that mixing can start late: use `anchor_share`, or the shares of `Mixed`.

    The answer has `vectors` (B, K, d) of length 1, **without gradients**, as in the paper. `ids` and parents[..., 0]
    are i; parents[..., 1] is j, or -1 for the anchor, which is not an item; `source` says which kind; `scores` are
    q . vectors; log_q is None. The paper adds them to the queue's own negatives: use `Mixed`. Cost: the draw, B dot
    products with the candidates (for a whole Memory one matrix product, no copy per row), a partial sort, O(B k d) for
    the mixing.

    Kalantidis, Sariyildiz, Pion, Weinzaepfel, Larlus. Hard Negative Mixing for Contrastive Learning. NeurIPS 2020;
    Giakoumoglou and Stathaki. SynCo: Synthetic Hard Negatives for Contrastive Visual Representation Learning. 2024.

    Args:
        pool: Where candidates come from: `Memory`, with its own vectors, or any pool with `embed`.
        embed: embed(ids) -> (..., d), the items' vectors; None uses those that the pool returns.
        n_hard: How many of the nearest candidates are mixed.
        candidates: How many candidates to draw; None: everything in the pool, if its draw takes n=None (`Memory`,
            `InBatch`).
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
    distinct = False

    def __post_init__(self) -> None:
        check_is_pool(self.pool)
        _vectors.check_embed("embed", self.embed, optional=True)
        _vectors.check_embed("embed_anchors", self.embed_anchors, optional=True)
        check_one_of("on_short", self.on_short, ON_SHORT)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Make (B, K) synthetic negatives."""
        check_query(query)
        with without_gradients(query.anchors):
            anchors = _vectors.anchor_vectors(query, self.embed_anchors)
            drawn = self.pool.draw(query, self._settings(query.step)[1], rng=rng)
            counts, width = wanted_slots(k, len(query), rng)
            vectors = self._vectors(drawn, query, anchors)
            return self._mixed(query, anchors, drawn.ids, vectors, counts, width, key_from(rng))

    def _vectors(self, drawn: Negatives, query: Query, anchors: Array) -> Array:
        """(B, n, d), or (n, d) where all rows share them, in the kind of the anchors' vectors."""
        if self.embed is not None:
            vectors = _vectors.item_vectors(self.embed, like_query(drawn.ids, query), layers=False)
        elif drawn.vectors is not None:
            vectors = drawn.vectors
            step = vectors.stride(0) if is_torch(vectors) else vectors.strides[0]
            if step == 0 and len(vectors):
                vectors = vectors[0]  # a view that all rows share: do not copy it for each
            vectors = like_query(vectors, query)
        elif drawn.shape[1] == 0:  # an empty memory
            vectors = anchors[:0]
        else:
            advice = "Pass embed, or push vectors into the memory."
            raise_invalid("embed", "given where the pool has no vectors", None, advice)
        _vectors.check_width(anchors, vectors.shape[-1])
        return of_kind(vectors, anchors)

    def _mixed(
        self,
        query: Query,
        anchors: Array,
        drawn: Array,
        vectors: Array,
        counts: Any,
        width: int,
        key: np.uint64,
    ) -> Negatives:
        """The negatives from (B, n) candidates and their vectors."""
        n_hard, _, share, mix, anchor_mix = self._settings(query.step)
        where = module_of(query.anchors).where
        slot = np.arange(width)
        spread = np.floor((slot + 1) * share + 1e-9) > np.floor(slot * share + 1e-9)
        with_anchor = like_query(np.broadcast_to(spread, (len(query), width)), query)
        ids = like_query(drawn, query)
        if ids.shape[1] == 0:  # one empty candidate, so that there is something to choose from
            ids, vectors = like_query(np.full((len(query), 1), -1), query), anchors[:, None] * 0
        scores = where(ids >= 0, _vectors.products(anchors, vectors), -np.inf)
        first, second, used, chance = _vectors.hard_pairs(scores, n_hard, counts, width, key, anchors)
        low, high = (np.where(spread, 1 - b, a) for a, b in zip(mix, anchor_mix, strict=True))  # of the first parent
        low, spans = (of_kind(like_query(bound, query), anchors) for bound in (low, high - low))
        weight = (low + spans * chance)[:, :, None]
        partner = where(with_anchor[:, :, None], anchors[:, None], _vectors.rows_of(vectors, second))
        made = _vectors.unit(weight * _vectors.rows_of(vectors, first) + (1 - weight) * partner)
        made = where(used[:, :, None], made, made * 0)
        parent = where(used, gather(ids, first), -1)
        other = where(used & ~with_anchor, gather(ids, second), -1)
        return Negatives(
            parent,
            scores=_vectors.products(anchors, made),
            vectors=made,
            parents=_vectors.stack_last(parent, other),
            source=like_query(np.where(to_numpy(used), spread, -1).astype(np.int8), query),
            source_names=SOURCES,
            dropped=shortfall(self.on_short, np.asarray(to_numpy(parent)), counts),
        )

    def _settings(self, step: int | None) -> tuple[Any, Any, Any, Any, Any]:
        return (
            whole_at("n_hard", self.n_hard, step),
            whole_at("candidates", self.candidates, step, optional=True),
            number_at("anchor_share", self.anchor_share, step, at_least=0, at_most=1),
            interval_at("mix", self.mix, step),
            interval_at("anchor_mix", self.anchor_mix, step, least=-1),
        )

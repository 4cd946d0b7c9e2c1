"""MixGCF: a synthetic negative of several candidates, mixed with the positive and combined layer by layer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import gather, like_query, where
from naysay.arrays import is_torch, module_of, to_numpy, without_gradients
from naysay.checks import check_one_of, public
from naysay.pools._slots import ON_SHORT, shortfall
from naysay.rng import key_from
from naysay.samplers import _vectors
from naysay.samplers._candidates import FromPool, check_is_pool, interval_at, step_of, wanted_slots, whole_at
from naysay.samplers._vectors import Embed
from naysay.types import Array, Negatives, Pool, Query, positive_ids

_POOLING = ("mean", "sum", "final", "concat")
_ROWS = 1024  # whose candidates are compared at a time


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

    The answer has `vectors` (B, K, d), and **gradients flow** through them into embed, for candidates and positive.
    The loss is that of e_a . vectors, e.g. bpr or info_nce. `ids` and parents[..., 0] are the candidate chosen at layer
    0, parents[..., 1] the positive; `scores` are e_a . vectors without gradients; log_q is None. With mix=(0, 0) and
    one layer it is DNS; with mix=(1, 1) each negative scores like its positive. `mix` and `candidates` may be functions
    of the step.

    Cost: the pool's draw of k M candidates, and two calls of embed: for them, without gradients, and for the chosen
    ones, with gradients. O(B k (M + layers) layers d) in time and memory.

    Huang, Dong, Ding, Yang, Feng, Wang, Tang. MixGCF. KDD 2021.

    Args:
        pool: Where candidates come from. It excludes known positives.
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
        check_is_pool(self.pool)
        _vectors.check_embed("embed", self.embed)
        _vectors.check_embed("embed_anchors", self.embed_anchors, optional=True)
        check_one_of("pooling", self.pooling, _POOLING)
        check_one_of("on_short", self.on_short, ON_SHORT)
        self._settings(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Make (B, K) synthetic negatives."""
        size, mix = self._settings(step_of(query))
        positives = positive_ids(query)
        anchors = _vectors.anchor_vectors(query, self.embed_anchors)
        counts, width = wanted_slots(k, len(query), rng)
        drawn = self.pool.draw(query, counts * size, rng=rng).like(query)
        ids = _dealt(query, drawn.ids, counts, width, size)  # (B, K * M)
        liked = like_query(positives, query)
        good = _vectors.item_vectors(self.embed, liked, layers=True)  # (B, layers, d)
        layers, dimension = good.shape[1:]
        _vectors.check_width(anchors, dimension * (layers if self.pooling == "concat" else 1))
        picked = self._hardest(anchors, ids, size)
        alpha = _vectors.uniform((len(query), width, layers, 1), key_from(rng), good, mix)
        own = _own_layers(query, _vectors.item_vectors(self.embed, picked, layers=True))
        made = self._pooled(alpha * good[:, None] + (1 - alpha) * own)
        return self._answer(anchors, made, picked[:, :, 0], liked, counts)

    def _hardest(self, anchors: Array, ids: Array, size: int) -> Array:
        """(B, K, layers) of each slot's candidates the one that is nearest to the anchor at each layer."""
        places = range(0, max(len(ids), 1), _ROWS)
        with without_gradients(ids):
            found = [self._hardest_of(anchors[at : at + _ROWS], ids[at : at + _ROWS], size, at) for at in places]
        return module_of(ids).concatenate(found)

    def _hardest_of(self, anchors: Array, ids: Array, size: int, first: int) -> Array:
        """The same for the rows from `first` on: few, so that their vectors stay in the processor's cache."""
        vectors = _vectors.item_vectors(self.embed, ids, layers=True, first=first)
        rows, total, layers, dimension = vectors.shape
        slots = total // size
        own = anchors.reshape(rows, anchors.shape[1] // max(dimension, 1), dimension)  # (B, 1 or layers, d)
        module = module_of(vectors)
        scores = module.einsum("bnld,bld->bnl", vectors, module.broadcast_to(own, (rows, layers, dimension)))
        grouped = where((ids >= 0)[:, :, None], scores, -np.inf).reshape(rows * slots, size, layers)
        return gather(ids.reshape(rows * slots, size), grouped.argmax(1)).reshape(rows, slots, layers)

    def _answer(self, anchors: Array, made: Array, first: Array, liked: Array, counts: Any) -> Negatives:
        """The negatives, with 0 and -1 where a slot is empty."""
        filled = first >= 0
        made = where(filled[:, :, None], made, 0.0)
        parents = _vectors.stack_last(first, where(filled, liked[:, None] + 0 * first, -1))
        plain = (anchors.detach(), made.detach()) if is_torch(made) else (anchors, made)
        dropped = shortfall(self.on_short, np.asarray(to_numpy(first)), counts)
        return Negatives(first, scores=_vectors.products(*plain), vectors=made, parents=parents, dropped=dropped)

    def _pooled(self, mixed: Array) -> Array:
        """(B, K, d), or (B, K, layers * d), of (B, K, layers, d)."""
        if self.pooling == "concat":
            return mixed.reshape(*mixed.shape[:2], mixed.shape[2] * mixed.shape[3])
        if self.pooling == "final":
            return mixed[:, :, -1]
        return mixed.sum(2) if self.pooling == "sum" else mixed.mean(2)

    def _settings(self, step: int | None) -> tuple[Any, Any]:
        return whole_at("candidates", self.candidates, step), interval_at("mix", self.mix, step)


def _dealt(query: Query, ids: Array, counts: Any, width: int, size: int) -> Array:
    """(B, K * M) candidates, slot by slot, dealt in turn, so that a short row has candidates for every slot.

    Row b requests counts[b] * M candidates; its slot s gets the candidates s, s + counts[b], s + 2 counts[b], ...
    """
    slot, turn, each = np.arange(width)[:, None], np.arange(size), counts[:, None, None]
    used = (np.broadcast_to(slot, (width, size)) < each).reshape(len(counts), width * size)
    order = np.where(used, (slot + turn * each).reshape(len(counts), width * size), 0)
    if ids.shape[1] == 0:  # no row has a slot
        return like_query(np.full(order.shape, -1), query)
    return where(like_query(used, query), gather(ids, like_query(order, query)), -1)


def _own_layers(query: Query, vectors: Array) -> Array:
    """(B, K, layers, d) of (B, K, layers, layers, d): of the candidate that was chosen at layer l, its layer l."""
    layer = like_query(np.arange(vectors.shape[2]), query)
    return vectors[:, :, layer, layer]

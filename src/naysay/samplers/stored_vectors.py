"""StoredVectors: a score by the vectors that the pool stores beside its ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np

from naysay._slots import of_kind, partners, where
from naysay.arrays import is_torch
from naysay.checks import check_one_of, public, raise_invalid
from naysay.samplers._vectors import Embed, anchor_vectors, check_embed, check_width, item_vectors, products, unit
from naysay.types import Array, MadeOf, Negatives, Query

_METRICS = ("cosine", "dot")


@final
@public
@dataclass(frozen=True)
class StoredVectors(MadeOf):
    """Score candidates by the vectors that come with them from the pool, e.g. a `Memory` with vectors.

    Pass it as `score` to `Dynamic`, `Ring`, `SemiHard`, `Warp`, `DistanceWeighted` or `SoftmaxWeights`. The score is
    the product of the anchor's vector and the vector that the entry was pushed with, whatever its item's vector is
    now: what a queue of a slow encoder is for (He et al. Momentum Contrast. CVPR 2020). With candidates=None, `Dynamic`
    and `Ring` score a whole memory by one matrix product, and its vectors are not copied. Answers have `vectors`.

    Args:
        metric: "cosine" or "dot".
        embed_anchors: embed_anchors(anchors (B,)) -> (B, d), for queries without vectors.
        embed: embed(ids (B,)) -> (B, d) the vectors of the positives, for samplers that score them, too.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> memory = ns.pools.Memory(3)
        >>> memory.push([4, 5, 6], vectors=np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
        >>> hardest = ns.samplers.Dynamic(memory, StoredVectors("dot"), candidates=None)
        >>> hardest.sample(ns.Query([0], vectors=np.array([[0.0, 2.0]])), 2, rng=ns.rng_for(0)).ids.tolist()
        [[5, 6]]
    """

    _made_of = ("embed_anchors", "embed")

    metric: str = "cosine"
    embed_anchors: Embed | None = None
    embed: Embed | None = None

    def __post_init__(self) -> None:
        check_one_of("metric", self.metric, _METRICS)
        check_embed("embed_anchors", self.embed_anchors, optional=True)
        check_embed("embed", self.embed, optional=True)

    def __call__(self, anchors: Array, ids: Array) -> NoReturn:
        """Raise: this sampler scores ids of which no vectors are stored."""
        raise_invalid("score", "a function score(anchors, ids) for this sampler", "StoredVectors")

    def _of_candidates(self, query: Query, drawn: Negatives) -> Array:
        """(B, n) the scores of what a pool has drawn; -inf in empty slots."""
        anchors = anchor_vectors(query, self.embed_anchors)
        if drawn.vectors is None:
            if bool((drawn.ids >= 0).any()):
                got = "draws without vectors"
                raise_invalid("pool", "one that stores vectors, like Memory", got, "Push vectors to it.")
            return where(drawn.ids >= 0, of_kind(drawn.ids, anchors), -np.inf)
        vectors = _one_copy(drawn.vectors)
        return where(drawn.ids >= 0, self._scores(anchors, vectors), -np.inf)

    def _of_positives(self, query: Query) -> Array:
        """(B,) the scores of the query's positives."""
        if self.embed is None:
            advice = "Pass StoredVectors(embed=...): this sampler scores positives, too."
            raise_invalid("score", "a StoredVectors with `embed`", "one without", advice)
        vectors = item_vectors(self.embed, partners(query)[:, None], layers=False)
        return self._scores(anchor_vectors(query, self.embed_anchors), vectors)[:, 0]

    def _scores(self, anchors: Array, vectors: Array) -> Array:
        """(B, n) products, without gradients and in at least 32 bits."""
        anchors, vectors = _wide(anchors), _wide(vectors)
        check_width(anchors, vectors.shape[-1])
        if self.metric == "cosine":
            anchors, vectors = unit(anchors), unit(vectors)
        return products(anchors, of_kind(vectors, anchors))


def _one_copy(vectors: Array) -> Array:
    """(n, d) of vectors (B, n, d) that are a view which all rows share; others as they are."""
    step: Any = vectors.stride(0) if is_torch(vectors) else vectors.strides[0]
    return vectors[0] if len(vectors) > 1 and step == 0 else vectors


def _wide(vectors: Array) -> Array:
    """Vectors without gradients; half precision as float32."""
    if is_torch(vectors):
        detached = vectors.detach()
        return detached.float() if detached.element_size() < 4 else detached
    return vectors.astype(np.result_type(vectors.dtype, np.float32), copy=False)

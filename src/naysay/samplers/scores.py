"""Scores that samplers choose by: of candidates, of positives, of stored vectors, and of a few rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np

from naysay._slots import Score, check_score, of_kind, partners, score_slots, where
from naysay.arrays import is_torch, module_of, to_numpy
from naysay.checks import check_one_of, check_whole, public, raise_invalid
from naysay.samplers._settings import Embed, check_function
from naysay.samplers._vectors import anchor_vectors, check_width, detached, item_vectors, one_copy, products, unit
from naysay.types import HEAD, RELATION, SIDES, Array, MadeOf, Negatives, Query

__all__ = ["StoredVectors", "in_blocks"]


@final
@public
@dataclass(frozen=True)
class StoredVectors(MadeOf):
    """Score candidates by the vectors that come with them from the pool, e.g. a `Memory` with vectors.

    Pass it as `score` to a sampler. The score is the product of the anchor's vector and the vector that the entry was
    pushed with, whatever its item's vector is now (He et al. Momentum Contrast. CVPR 2020). With candidates=None,
    `Dynamic` and `PercentileRange` score a whole memory by one matrix product, and its vectors are not copied. Answers
    have `vectors`.

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
        check_one_of("metric", self.metric, ("cosine", "dot"))
        check_function("embed_anchors", self.embed_anchors, "embed_anchors(anchors)", optional=True)
        check_function("embed", self.embed, "embed(ids)", optional=True)

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
        return where(drawn.ids >= 0, self._scores(anchors, one_copy(drawn.vectors)), -np.inf)

    def _of_positives(self, query: Query) -> Array:
        """(B,) the scores of the query's positives."""
        if self.embed is None:
            advice = "Pass StoredVectors(embed=...): this sampler scores positives, too."
            raise_invalid("score", "a StoredVectors with `embed`", "one without", advice)
        vectors = item_vectors(self.embed, partners(query)[:, None])
        return self._scores(anchor_vectors(query, self.embed_anchors), vectors)[:, 0]

    def _scores(self, anchors: Array, vectors: Array) -> Array:
        """(B, n) products, without gradients and in at least 32 bits."""
        anchors, vectors = _wide(anchors), _wide(vectors)
        check_width(anchors, vectors.shape[-1])
        if self.metric == "cosine":
            anchors, vectors = unit(anchors), unit(vectors)
        return products(anchors, of_kind(vectors, anchors))


def _wide(vectors: Array) -> Array:
    """Vectors without gradients; half precision as float32."""
    vectors = detached(vectors)
    if is_torch(vectors):
        return vectors.float() if vectors.element_size() < 4 else vectors
    return vectors.astype(np.result_type(vectors.dtype, np.float32), copy=False)


@public
def in_blocks(score: Score, candidates: int = 1 << 13) -> Score:
    """Make a score function that scores about `candidates` candidates at a time.

    A model that looks up d numbers for each candidate needs B n d of them, allocated at every step. In blocks it is
    candidates * d numbers, which fit in a CPU's cache. Do not use it where one call is expensive in itself, as for a
    graph network that first passes all its messages.

    Args:
        score: score(anchors (B,), ids (B, n)) -> (B, n), whose rows do not depend on each other.
        candidates: How many to score at once, in whole rows and at least one row.

    Returns:
        A function with the same arguments and results.

    Examples:
        >>> import numpy as np
        >>> table = np.arange(12.0).reshape(3, 4)
        >>> score = in_blocks(lambda anchors, ids: table[anchors[:, None], ids], candidates=4)
        >>> score(np.array([2, 0, 1]), np.array([[0, 1], [2, 3], [0, 0]]))
        array([[8., 9.],
               [2., 3.],
               [4., 4.]])
    """
    check_score(score)
    check_whole("candidates", candidates, 1)

    def in_parts(anchors: Array, ids: Array) -> Array:
        rows = max(1, candidates // max(ids.shape[1], 1))
        if len(ids) <= rows:
            return score(anchors, ids)
        parts = [score(anchors[i : i + rows], ids[i : i + rows]) for i in range(0, len(ids), rows)]
        return module_of(parts[0]).concatenate(parts)

    return in_parts


# ---- what samplers ask a score function -----------------------------------------------------------------


def candidate_scores(score: Score, query: Query, drawn: Negatives) -> Array:
    """(B, n) the scores of candidates, by the user's function or by their stored vectors; -inf in empty slots."""
    if isinstance(score, StoredVectors):
        return score._of_candidates(query, drawn)
    return score_slots(score, query, drawn.ids, drawn.side)


def positive_scores(score: Score, query: Query) -> Array:
    """(B,) the score of each row's positive, without gradients: score(anchors, positives (B, 1)).

    A triple is its own positive, and is scored as it stands: score(triples (B, 3), triples (B, 1, 3)).
    """
    if isinstance(score, StoredVectors):
        return score._of_positives(query)
    if query.anchors.ndim == 1:
        return score_slots(score, query, partners(query)[:, None])[:, 0]
    heads = query.anchors[:, :1]
    heads = heads.long() if is_torch(heads) else heads.astype(np.int64)
    return score_slots(score, query, heads, heads * 0 + HEAD)[:, 0]


def positive_similarity(score: Score, query: Query, drawn: Negatives) -> Array:
    """(B, n) how similar each candidate is to what it replaces: score(positives (B,), ids (B, n)).

    That is the row's positive; for triples it is the part that the candidate replaces, and the function is called once
    for each side. It cannot tell relations from entities, so one pool must not replace both.
    """
    if drawn.side is None:
        return score_slots(score, Query(partners(query), step=query.step), drawn.ids)
    sides = sides_of(drawn)
    if RELATION in sides and len(sides) > 1:
        advice = "Make two pools, with a sampler each, and put them into Mixed."
        raise_invalid("pool", "one that replaces relations or entities", [SIDES[side] for side in sides], advice)
    similarity = None
    for side in sides:
        ids = drawn.ids + 0
        ids[drawn.side != side] = -1
        scores = score_slots(score, Query(query.anchors[:, side], step=query.step), ids)
        # Elsewhere it is -inf, so the larger of two is the one that was scored.
        similarity = scores if similarity is None else module_of(ids).maximum(similarity, scores)
    return similarity


def sides_of(drawn: Negatives) -> list[int]:
    """The sides that candidates of triples replace; the head if there is no candidate."""
    sides = np.asarray(to_numpy(drawn.side))[np.asarray(to_numpy(drawn.ids)) >= 0]
    return [int(side) for side in np.unique(sides)] or [HEAD]

"""Perturbed: the negatives of another sampler, moved a little towards the anchor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from naysay._slots import of_kind
from naysay.arrays import is_torch, need_torch
from naysay.checks import check_number, check_one_of, public, raise_invalid
from naysay.samplers._vectors import (
    Embed,
    FromSampler,
    anchor_vectors,
    check_embed,
    check_width,
    item_vectors,
    unit,
    with_vectors,
)
from naysay.types import Array, Negatives, Query, Sampler


@final
@public
@dataclass(eq=False, repr=False)
class Perturbed(FromSampler):
    """Move the vectors of a sampler's negatives by `radius` up the gradient of the loss.

    With norm="2" by radius * g / |g|, with "inf" by radius * sign(g). Without `loss` it is in closed form: a loss of
    dot products that rises with a negative's score has a gradient along the anchor, so g is the anchor's vector. With
    loss(query, vectors (B, K, d)), in torch, g is its gradient. Vectors take no gradient; `parents` are the item
    itself, twice. log_q is the sampler's, of the ids.

    Park and Chang. Adversarial Sampling and Training for Semi-Supervised Information Retrieval. WWW 2019 (AdvIR: norm
    2, also for positives); Ho and Vasconcelos. Contrastive Learning with Adversarial Examples. NeurIPS 2020 (CLAE: norm
    inf, of the inputs: pass the inputs' vectors, and a loss that encodes them).

    Cost: embed of (B, K), and O(B K d), or one gradient of `loss`.

    Args:
        base: The sampler.
        embed: embed(ids) -> (..., d), in the array type of the query.
        radius: How far, at least 0.
        norm: "2" or "inf".
        loss: None, or loss(query, vectors) -> numbers, in torch.
        embed_anchors: The anchors' vectors, if the query has none.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> base = ns.samplers.Static(ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=2)))
        >>> sampler = Perturbed(base, lambda ids: np.eye(2)[ids], 0.5)
        >>> sampler.sample(ns.Query([0], vectors=np.array([[2.0, 0.0]])), 1, rng=ns.rng_for(0)).vectors.tolist()
        [[[0.5, 1.0]]]
    """

    _made_of = ("base", "embed", "loss", "embed_anchors")

    base: Sampler
    embed: Embed
    radius: float
    norm: str = "2"
    _: KW_ONLY
    loss: Callable[..., Any] | None = None
    embed_anchors: Embed | None = None

    def __post_init__(self) -> None:
        self._check_base()
        check_embed("embed", self.embed)
        check_number("radius", self.radius, at_least=0, finite=True)
        check_one_of("norm", self.norm, ("2", "inf"))
        if self.loss is not None and not callable(self.loss):
            raise_invalid("loss", "a function loss(query, vectors)", type(self.loss).__name__)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives of the sampler, with moved vectors."""
        drawn = self.base.sample(query, k, rng=rng)
        vectors = item_vectors(self.embed, drawn.ids, layers=False)
        vectors = vectors.detach() if is_torch(vectors) else vectors
        up = self._up(query, vectors)
        signs = up.sign() if is_torch(up) else np.sign(up)
        move = signs if self.norm == "inf" else unit(up)
        moved = vectors + self.radius * of_kind(move, vectors)
        return with_vectors(drawn, moved)

    def _up(self, query: Query, vectors: Array) -> Array:
        """(B, K, d), or (B, 1, d), the direction in which the loss rises."""
        if self.loss is None:
            anchors = anchor_vectors(query, self.embed_anchors)
            check_width(anchors, vectors.shape[2])
            return (anchors.detach() if is_torch(anchors) else anchors)[:, None]
        if not is_torch(vectors):
            raise_invalid("query.anchors", "a tensor with `loss`", "a NumPy array")
        torch = need_torch()
        with torch.enable_grad():
            leaf = vectors.clone().requires_grad_()
            return torch.autograd.grad(self.loss(query, leaf).sum(), leaf)[0]

"""Generated: a network makes a harder negative out of anchor, positive and negative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, final

import numpy as np

from naysay._slots import partners
from naysay.arrays import need_torch, to_torch
from naysay.checks import check_number, check_whole, public
from naysay.rng import generator_of, key_from
from naysay.samplers._settings import Embed, FromSampler, check_base, check_function
from naysay.samplers._vectors import anchor_vectors, checked, item_vectors, stack_last
from naysay.samplers.learned import Trained
from naysay.types import Negatives, Query, Sampler, check_query

__all__ = ["Generated"]


@final
@public
@dataclass(eq=False, repr=False)
class Generated(Trained, FromSampler):
    """Replace the vectors of a sampler's negatives by generator(anchor, positive, negative, noise). In torch.

    `observe` makes one step of the generator's optimiser, which ascends

        mean loss(anchors, positives, made) - pull |made - anchor|^2 - stay |made - negative|^2
            + diversity |made - made'|

    where made' has other noise, and squares and distances are means over the slots. Vectors of the model are taken
    without gradient, so that no step of the generator reaches it; and what `sample` returns has none for the generator.

    Duan et al. Deep Adversarial Metric Learning. CVPR 2018 (DAML: from all three); Wang et al. Instance-wise Hard
    Negative Example Generation for Contrastive Learning in Unpaired Image-to-Image Translation. ICCV 2021 (NEGCUT:
    noise and diversity); Hu, Fang, Shi. HeGAN. KDD 2019 (from the anchor and noise).

    Args:
        base: The sampler that starts: its ids are the first parents, the positives the second.
        embed: embed(ids) -> (..., d).
        generator: generator(anchors, positives, negatives, noise) -> (B, K, d), of three (B, K, d) and (B, K, noise).
        optimizer: Of the generator's parameters.
        loss: loss(anchors (B, d), positives (B, d), made (B, K, d)) -> numbers: the model's.
        pull: The weight of closeness to the anchor.
        stay: The weight of closeness to the negative.
        diversity: The weight of difference by noise.
        noise: The dimension of the noise.
        seed: Of the draws in `observe`.
        embed_anchors: The anchors' vectors, if the query has none.

    Examples:
        >>> import torch, naysay as ns
        >>> table = torch.nn.Embedding(9, 4)
        >>> net = torch.nn.Linear(4, 4)
        >>> base = ns.samplers.Static(ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=9)))
        >>> made = Generated(
        ...     base, table, lambda a, p, n, z: net(n), torch.optim.Adam(net.parameters()),
        ...     lambda a, p, made: ns.losses.bpr((a * p).sum(-1), (a[:, None] * made).sum(-1)),
        ... )
        >>> query = ns.Query(torch.tensor([0]), positives=torch.tensor([0]), vectors=torch.ones(1, 4))
        >>> negatives = made.sample(query, 2, rng=ns.rng_for(0))
        >>> made.observe(query, negatives)
        >>> tuple(negatives.vectors.shape)
        (1, 2, 4)
    """

    restore = Trained.restore  # its own, so that errors name this class

    base: Sampler
    embed: Embed
    generator: Callable[..., Any]
    optimizer: Any
    loss: Callable[..., Any]
    _: KW_ONLY
    pull: float = 0.0
    stay: float = 1.0
    diversity: float = 0.0
    noise: int = 0
    seed: int = 0
    embed_anchors: Embed | None = None

    def __post_init__(self) -> None:
        check_base("base", self.base)
        check_function("embed", self.embed, "embed(ids)")
        self._start(self.generator)
        check_function("loss", self.loss, "loss(anchors, positives, made)")
        check_function("embed_anchors", self.embed_anchors, "embed_anchors(anchors)", optional=True)
        for name in ("pull", "stay", "diversity"):
            check_number(name, getattr(self, name), at_least=0, finite=True)
        check_whole("noise", self.noise, 1 if self.diversity else 0)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives of the sampler, with vectors of the generator; the query has positives."""
        drawn = self.base.sample(query, k, rng=rng).to(query.device or "cpu")
        with need_torch().no_grad():
            made = self._make(self._inputs(query, drawn), generator_of(key_from(rng)))
        filled = drawn.ids >= 0
        made = made.masked_fill(~filled[:, :, None], 0.0)
        own = to_torch(partners(query), drawn.ids.device)[:, None].expand(drawn.ids.shape)
        parents = stack_last(drawn.ids, own.where(filled, drawn.ids))
        return replace(drawn, vectors=made, parents=parents, log_q=None).like(query)

    def observe(self, query: Query, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Make one step of the generator on the negatives that `sample` returned; the rest is not used."""
        check_query(query)
        drawn = negatives.to(query.device or "cpu")
        rng = self._next_rng()
        with need_torch().enable_grad():
            inputs = self._inputs(query, drawn)
            anchors, positives, others = inputs
            filled = (drawn.ids >= 0)[:, :, None]
            made = self._make(inputs, rng)
            aim = self.loss(anchors[:, 0], positives[:, 0], made.where(filled, others)).mean()
            aim = aim - self.pull * ((made - anchors) ** 2 * filled).sum(-1).mean()
            aim = aim - self.stay * ((made - others) ** 2 * filled).sum(-1).mean()
            if self.diversity:
                with_other_noise = self._make(inputs, rng)
                aim = aim + self.diversity * ((made - with_other_noise).abs() * filled).mean()
            self._climb(aim)

    def _inputs(self, query: Query, drawn: Negatives) -> tuple[Any, Any, Any]:
        """Vectors of anchors, positives and negatives (B, K, d), in torch, without gradient."""
        moved = replace(query, anchors=to_torch(query.anchors), positives=to_torch(partners(query)))
        with need_torch().no_grad():
            anchors = anchor_vectors(moved, self.embed_anchors)
            positives = item_vectors(self.embed, partners(moved)[:, None])
            others = item_vectors(self.embed, drawn.ids)
        shape = others.shape
        return anchors.detach()[:, None].expand(shape), positives.detach().expand(shape), others.detach()

    def _make(self, inputs: tuple[Any, Any, Any], rng: np.random.Generator) -> Any:
        """(B, K, d) what the generator makes of the inputs and of new noise."""
        others = inputs[2]
        noise = to_torch(rng.standard_normal((*others.shape[:2], self.noise))).to(others)
        return checked("generator", self.generator(*inputs, noise), others, tuple(others.shape[:2]), 3)

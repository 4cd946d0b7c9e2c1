"""Generated: a network makes a harder negative out of anchor, positive and negative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, final

import numpy as np

from naysay._slots import partners
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, need_torch, to_torch
from naysay.checks import check_number, check_whole, public, raise_invalid
from naysay.rng import generator_of, key_from, rng_for
from naysay.samplers._vectors import Embed, FromSampler, anchor_vectors, check_embed, checked, item_vectors, stack_last
from naysay.samplers.torch_module import restore_parameters, saved_parameters
from naysay.types import Negatives, Query, Sampler, check_query


@final
@public
@dataclass(eq=False, repr=False)
class Generated(FromSampler):
    """Replace the vectors of a sampler's negatives by generator(anchor, positive, negative, noise). In torch.

    `observe` makes one step of the generator's optimiser, which ascends

        mean loss(anchors, positives, made) - pull |made - anchor|^2 - stay |made - negative|^2
            + diversity |made - made'|

    where made' has other noise, and squares and distances are means over the slots. Vectors of the model are taken
    without gradient, so that no step of the generator reaches it; and what `sample` returns has none for the generator.

    Duan et al. Deep Adversarial Metric Learning. CVPR 2018 (DAML: from all three; its weights are not verified here);
    Wang et al. Instance-wise Hard Negative Example Generation for Contrastive Learning in Unpaired Image-to-Image
    Translation. ICCV 2021 (NEGCUT: noise and diversity); Hu, Fang, Shi. Adversarial Learning on Heterogeneous
    Information Networks. KDD 2019 (HeGAN: from the anchor and noise).

    Cost: embed of (B, K + 1), and the generator on (B, K).

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

    needs_main_process = True  # its draws depend on what it was taught in the training loop

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
        need_torch()
        self._check_base()
        check_embed("embed", self.embed)
        for name in ("generator", "loss"):
            if not callable(getattr(self, name)):
                raise_invalid(name, "a function", type(getattr(self, name)).__name__)
        for name in ("pull", "stay", "diversity"):
            check_number(name, getattr(self, name), at_least=0, finite=True)
        check_whole("noise", self.noise, 1 if self.diversity else 0)
        check_whole("seed", self.seed, 0)
        self._steps = 0

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives of the sampler, with vectors of the generator; the query has positives."""
        drawn = self.base.sample(query, k, rng=rng).to(query.device or "cpu")
        inputs = self._inputs(query, drawn)
        with need_torch().no_grad():
            made = self._made(inputs, generator_of(key_from(rng)))
        made = made.masked_fill((drawn.ids < 0)[:, :, None], 0.0)
        own = to_torch(partners(query), drawn.ids.device)[:, None].expand(drawn.ids.shape)
        parents = stack_last(drawn.ids, own.where(drawn.ids >= 0, drawn.ids))
        return replace(drawn, vectors=made, parents=parents, log_q=None).like(query)

    def observe(self, query: Query, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Make one step of the generator on the negatives that `sample` returned.

        Args:
            query: The anchors, with positives.
            negatives: What `sample` returned.
            positive_scores: Not used.
            vectors: Not used.
        """
        check_query(query)
        torch = need_torch()
        drawn = negatives.to(query.device or "cpu")
        rng, self._steps = rng_for(self.seed, self._steps), self._steps + 1
        with torch.enable_grad():
            inputs = self._inputs(query, drawn)
            valid = (drawn.ids >= 0)[:, :, None]
            made = self._made(inputs, rng)
            aim = self.loss(inputs[0][:, 0], inputs[1][:, 0], made.where(valid, inputs[2])).mean()
            for weight, near in ((self.pull, inputs[0]), (self.stay, inputs[2])):
                aim = aim - weight * ((made - near) ** 2 * valid).sum(-1).mean()
            if self.diversity:
                other = self._made(inputs, rng)
                aim = aim + self.diversity * ((made - other).abs() * valid).mean()
            self.optimizer.zero_grad()
            (-aim).backward()
        self.optimizer.step()

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The generator's parameters, and the number of steps. Save the optimiser's moments yourself."""
        return {"steps": self._steps, **saved_parameters(self.optimizer)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        names = saved_parameters(self.optimizer)
        read = read_state(state, {"steps": Entry(whole=True)}, others=names)
        restore_parameters(self.optimizer, state)
        self._steps = int(read["steps"])

    def _inputs(self, query: Query, drawn: Negatives) -> tuple[Any, Any, Any]:
        """Vectors of anchors, positives and negatives (B, K, d), in torch, without gradient."""
        torch = need_torch()
        moved = replace(query, anchors=to_torch(query.anchors), positives=to_torch(partners(query)))
        anchors = anchor_vectors(moved, self.embed_anchors)
        with torch.no_grad():
            own = item_vectors(self.embed, to_torch(partners(moved))[:, None], layers=False)
            others = item_vectors(self.embed, drawn.ids, layers=False).detach()
        shape = others.shape
        return anchors.detach()[:, None].expand(shape), own.detach().expand(shape), others

    def _made(self, inputs: tuple[Any, Any, Any], rng: np.random.Generator) -> Any:
        shape = inputs[2].shape
        noise = to_torch(rng.standard_normal((*shape[:2], self.noise))).to(inputs[2])
        return checked("generator", self.generator(*inputs, noise), inputs[2], tuple(shape[:2]), 3)

"""A negative sampler for PyKEEN's `pipeline`: exact filter, Bernoulli, types, and samplers that use the model."""
# ruff: noqa: E402  (a missing package is named before anything needs it)

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, final

from naysay.integrations._frameworks import need, torch_rng

need("pykeen")

import numpy as np
import torch
from pykeen.sampling import NegativeSampler
from torch import Tensor
from torch.utils.data import get_worker_info

from naysay._slots import Score
from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.pools.corruption import Corruption
from naysay.types import SIDES, Negatives, Query, Sampler

_CHOICES = ("uniform", "bernoulli", "typed", "typed bernoulli")
_PARTS = dict(zip("hrt", SIDES, strict=True))


@final
@public
class ExactNegativeSampler(NegativeSampler):  # type: ignore[misc]
    """Corrupted triples that are never known, K for every positive, under PyKEEN's interface.

    `pipeline(negative_sampler=ExactNegativeSampler, negative_sampler_kwargs=dict(num_negs_per_pos=32))`. It draws as
    `pools.Corruption` does, and differs from PyKEEN's samplers in this:

    1. A known triple is replaced by another draw, exactly. PyKEEN masks it, so that K shrinks, and its Bloom filter
       masks some that are not known.
    2. The side is drawn for each negative. PyKEEN replaces heads in the first half of a batch and tails in the second.
    3. A relation without training triples has each side with probability 1/2, where PyKEEN's Bernoulli sampler always
       replaces the tail.
    4. A triple is never its own negative, where PyKEEN's pseudo-typed sampler draws it.

    Draws follow torch's generator, and so `pipeline(random_seed=...)`.

    **Samplers that use the model.** PyKEEN gives a sampler no scores. Make the model first, and pass a function that
    gets the pool and returns a sampler: `lambda pool: Cached(pool, score_of(model), size=50, fresh=50)` is NSCaching;
    `Dynamic(pool, score_of(model), candidates=64, temperature=1.0)` draws from RotatE's self-adversarial weights. A
    loss that weighs all negatives, `loss="nssa"`, is PyKEEN's own and goes with any choice. Weights of negatives have
    no way into PyKEEN, so `SoftmaxWeights` draws without effect.

    Cost: O(log keys) per positive and side, then O(1) per draw.

    Args:
        mapped_triples: (n, 3) the training triples; PyKEEN passes them.
        num_entities: PyKEEN passes it.
        num_relations: PyKEEN passes it.
        num_negs_per_pos: K; 1 by default.
        known: Triples factories of further triples to exclude, with the ids of the training: `dataset.validation`, or
            several. Inverse triples are added where the training has them.
        corruption_scheme: Which parts are replaced, of "h", "r" and "t".
        choice: "uniform"; "bernoulli" (the head by tph / (tph + hpt)); "typed": only entities that occur with the
            relation on that side; "typed bernoulli".
        sampler: A function of the pool that returns a sampler. The pool then draws without repeats.

    Raises:
        NaysayError: If an argument is invalid, or a sampler that uses the model runs in a worker process, which has
            only a copy of the model.
    """

    def __init__(
        self,
        *,
        mapped_triples: Tensor,
        num_entities: int | None = None,
        num_relations: int | None = None,
        num_negs_per_pos: int | None = None,
        known: Any = (),
        corruption_scheme: Collection[str] | None = None,
        choice: str = "uniform",
        sampler: Callable[[Corruption], Sampler] | None = None,
    ) -> None:
        check_one_of("choice", choice, _CHOICES)
        k = 1 if num_negs_per_pos is None else check_whole("num_negs_per_pos", num_negs_per_pos, 1)
        super().__init__(
            mapped_triples=mapped_triples, num_entities=num_entities, num_relations=num_relations, num_negs_per_pos=k
        )
        scheme = ("h", "t") if corruption_scheme is None else tuple(corruption_scheme)
        for part in scheme:
            check_one_of("corruption_scheme", part, tuple(_PARTS))
        typed = "observed" if choice.startswith("typed") else None
        several = known if isinstance(known, list | tuple) and not hasattr(known, "mapped_triples") else [known]
        self.pool = Corruption(
            mapped_triples.cpu().numpy(),
            [self._triples_of(factory).numpy() for factory in several],
            sides=[_PARTS[part] for part in scheme],
            choice="bernoulli" if choice.endswith("bernoulli") else "uniform",
            domains=typed if "h" in scheme else None,
            ranges=typed if "t" in scheme else None,
            n_entities=self.num_entities,
            n_relations=self.num_relations,
            distinct=sampler is not None,
        )
        self.sampler: Any = None if sampler is None else _made(sampler, self.pool)

    def sample(self, positive_batch: Tensor) -> tuple[Tensor, Tensor | None]:
        """Draw (B, K, 3) negatives, and (B, K) which are valid: None unless a triple has fewer than it needs."""
        positives, k, rng = positive_batch.reshape(-1, 3), self.num_negs_per_pos, torch_rng()
        query = Query(positives)
        if self.sampler is None:
            triples = self.pool.draw_triples(query, k, rng=rng)
        else:
            triples = self.pool.corrupted(query, self._sampled(query, k, rng))
        empty = triples[..., 0] < 0
        mask = None
        if empty.any():
            mask = ~empty.reshape(*positive_batch.shape[:-1], -1)
            triples = torch.where(empty[..., None], positives[:, None], triples)
        return triples.reshape(*positive_batch.shape[:-1], -1, 3), mask

    def _sampled(self, query: Query, k: int, rng: np.random.Generator) -> Negatives:
        """The negatives of the user's sampler."""
        worker = get_worker_info()
        if worker is not None:
            raise_invalid("num_workers", "0 with a `sampler`, which uses the model", worker.num_workers)
        drawn: Negatives = self.sampler.sample(query, k, rng=rng)
        if drawn.side is None:
            raise_invalid("sampler", "one whose negatives have a `side`, like those of the pool", "none")
        if hasattr(self.sampler, "observe"):
            self.sampler.observe(query)
        return drawn

    def corrupt_batch(self, positive_batch: Tensor) -> Tensor:
        """Draw (B, K, 3) negatives, as `sample`; where a triple has fewer, the rest is the triple itself."""
        return self.sample(positive_batch)[0]

    def _triples_of(self, factory: Any) -> Tensor:
        """The triples of a factory, with the relations of the training."""
        triples: Tensor | None = getattr(factory, "mapped_triples", None)
        if triples is None:
            raise_invalid("known", "triples factories, such as dataset.validation", type(factory).__name__)
        sizes = (factory.num_entities, factory.real_num_relations)
        doubled = self.num_relations == 2 * sizes[1]
        if sizes[0] != self.num_entities or (self.num_relations != sizes[1] and not doubled):
            rule = f"factories of {self.num_entities} entities and {self.num_relations} relations, as the training"
            raise_invalid("known", rule, f"{sizes[0]} and {sizes[1]}")
        if not doubled:
            return triples
        inverter = factory.relation_inverter
        return torch.cat([inverter.map(triples), inverter.map(triples, invert=True).flip(1)])


@public
def score_of(model: Any) -> Score:
    """Make the score function of a PyKEEN model, for samplers on triples.

    The model scores in evaluation mode and without gradients, so that dropout, batch norm and regularisers do not
    notice; its mode is set back.

    Args:
        model: A `pykeen.models.Model`; the instance that is passed to the pipeline.

    Returns:
        score(triples (B, 3), corrupted (B, n, 3)) -> (B, n).

    Raises:
        NaysayError: If the model has no `score_hrt`.
    """
    if not callable(getattr(model, "score_hrt", None)) or isinstance(model, type):
        advice = "Make it first: TransE(triples_factory=dataset.training)."
        raise_invalid("model", "an instance of a PyKEEN model", shown(model), advice)

    def score(triples: Tensor, corrupted: Tensor) -> Any:
        before = model.training
        model.eval()
        try:
            with torch.no_grad():
                scores = model.score_hrt(corrupted.reshape(-1, 3).to(model.device))
        finally:
            model.train(before)
        return scores.reshape(corrupted.shape[:-1]).to(corrupted.device)

    return score


def _made(make: Callable[[Corruption], Sampler], pool: Corruption) -> Any:
    """The sampler that the user's function makes."""
    sampler = make(pool) if callable(make) else None
    if not isinstance(sampler, Sampler):
        rule = "a function that gets the pool and returns a sampler"
        raise_invalid("sampler", rule, shown(make) if sampler is None else type(sampler).__name__)
    return sampler

"""What the five domains share: a task, and a model in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import nan
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from naysay import pools, samplers
from naysay.arrays import to_torch
from naysay.checks import check_device, check_kind, check_one_of, check_whole
from naysay.lab._data import Ids
from naysay.losses import hinge, info_nce, sampled_bce, self_adversarial
from naysay.positives import Positives
from naysay.quantity import Linear, adaptive
from naysay.rng import rng_for
from naysay.types import Negatives, Query

HELD_OUT = "Negatives that are held-out positives; true positives that nobody recorded come on top."
BLOCK = 1024  # texts or images that are encoded at a time, without gradients
GENERATOR_RATE = 0.01  # the learning rate of generators
# Settings of samplers that an arm may name.
NUMBERS: Mapping[str, float] = MappingProxyType({"candidates": 16, "margin": 1.0, "rho": 1.0, "trials": 50})

Device = str | torch.device
# step(rows, k, *, step) -> (loss, negatives or None)
Step = Callable[..., tuple[Tensor, Negatives | None]]
Loss = Callable[..., Tensor]  # loss(positive (B,), negatives (B, K), *, mask, weights) -> (B,)


class Task:
    """Data, model and measures of a domain; what `compare` needs to know about it."""

    name: ClassVar[str]
    models: ClassVar[tuple[str, ...]]
    quick_steps: ClassVar[int]  # of a run on generated data
    k: ClassVar[int] = 8  # negatives per positive where an arm has no number
    quick: ClassVar[tuple[str, ...]]  # arms on generated data
    defaults: ClassVar[tuple[str, ...]]  # arms on other data; all are compared to the first
    methods: Mapping[str, str]  # {name: composition} of arms that the catalogue does not have
    measure: str  # which measure decides
    learning_rates: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1)
    decay: float = 1e-6  # of weights
    test_work = 1.0  # what a test costs, in validations
    ranked = ""  # a sentence about what validation and test rank
    sizes: Mapping[str, Any]  # what decides the result beside data, model and batch

    def __init__(self, data: Any, kind: type, model: str, device: Device) -> None:
        check_kind("data", data, kind, kind.__name__)
        check_one_of("model", model, self.models)
        check_device("device", device)
        self.data, self.model = data, model
        self.device = torch.empty(0, device=device).device  # with its number: "cuda" is "cuda:0"

    def set_batch(self, pairs: int, batch: int | None) -> None:
        """Keep the number of training rows, and how many a step takes.

        By default it is a hundredth of the rows, rounded to a power of two from 256 to 4,096.
        """
        usual = 1 << int(np.clip(round(np.log2(max(1, pairs / 100))), 8, 12))
        self.pairs = pairs
        self.batch = min(usual if batch is None else check_whole("batch", batch, 1), pairs)

    def settings(self) -> dict[str, Any]:
        """What decides the result, for the record."""
        known = {"task": self.name, "model": self.model, "data": repr(self.data)}
        device = {} if self.device.type == "cpu" else {"device": str(self.device)}
        return {**known, "fingerprint": self.data.fingerprint(), "batch": self.batch, **self.sizes, **device}

    def start(self, seed: int) -> Any:
        """A model before training, the same for equal seeds."""
        raise NotImplementedError


class Learner:
    """A model in training: what samplers ask of it, the loss of a step, and the measures."""

    task: Any
    seed: int
    network: nn.Module
    task_loss: Loss = staticmethod(info_nce)
    hardness = nan  # of the last step, see `note_hardness`
    processor_seconds_spared = 0.0  # what parts of earlier runs cost when they were made
    _drawn: tuple[Any, Any, Any] = (None, None, None)  # the sampler, query and negatives of the last step

    def parts(self) -> dict[str, Any]:
        """{name: value}: what the composition of an arm may name. Arms that name anything else do not fit."""
        return {**OFFERED, "with_loss": self.with_loss, "epoch": max(1, self.task.pairs // self.task.batch)}

    def query(self, rows: Ids, step: int) -> Query:
        """The query of some training rows; what the model computes once a step is made anew."""
        raise NotImplementedError

    def scores(self, query: Query, negatives: Negatives) -> tuple[Tensor, Tensor]:
        """(B,) and (B, K) the scores of positives and negatives as the loss takes them, with gradients."""
        raise NotImplementedError

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The share of the negatives of some training rows that are positives; NaN if unknown."""
        raise NotImplementedError

    def measured(self, part: str) -> dict[str, float]:
        """The measures of the "validation" or the "test" part."""
        raise NotImplementedError

    def loss(self, rows: Ids, k: int, *, step: int, sampler: Any, loss: Loss | None = None) -> tuple[Tensor, Negatives]:
        """The mean loss of some training rows with k negatives each, and the negatives."""
        query = self.query(rows, step)
        drawn: Negatives = sampler.sample(query, k, rng=rng_for(self.seed, step))
        negatives = drawn.like(query)  # a sampler of the user's own may answer in NumPy, as its pool does
        positive, scores = self.scores(query, negatives)
        self.note_hardness(positive, scores, negatives.mask)
        values = (loss or self.task_loss)(positive, scores, mask=negatives.mask, weights=negatives.weights)
        self._drawn = sampler, query, negatives
        return values.mean(), negatives

    def after_step(self, *, epoch_ends: bool) -> None:
        """Let a sampler learn from the step that was made, if it learns: a cache, a generator, a chain."""
        sampler, query, negatives = self._drawn
        if hasattr(sampler, "observe"):
            sampler.observe(query, negatives)
        if epoch_ends and isinstance(sampler, samplers.Cached | samplers.Learned):
            sampler.update()

    def with_loss(self, sampler: Any, loss: Loss, *, model: str | None = None, **settings: float) -> Step:
        """A step like `loss`, with another loss of `naysay.losses` and its settings.

        `model` is only a note for who reads the arm: the model that its paper has.
        """
        return partial(self.loss, sampler=sampler, loss=partial(loss, **settings))

    def note_hardness(self, positive: Tensor, negatives: Tensor, mask: Any) -> None:
        """Keep the mean of sigmoid(negative - positive) over filled slots; NaN without any."""
        with torch.no_grad():
            gaps = torch.sigmoid(negatives - positive[:, None])
            self.hardness = float(gaps[to_torch(mask, gaps.device)].mean())

    def snapshot(self) -> dict[str, Tensor]:
        """All parameters, for `measure`."""
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    def measure(self, state: dict[str, Tensor], part: str = "validation") -> dict[str, float]:
        """Measure the "validation" or the "test" part by the parameters of a `snapshot`."""
        with torch.no_grad():
            current = self.snapshot()
            self.network.load_state_dict(state)
            measures = self.measured(part)
            self.network.load_state_dict(current)
        return measures


class PairLearner(Learner):
    """A model in training whose anchors and items have rows in one table of vectors, and whose scores are products.

    The task has `known`, the pairs to train on, `held`, those that are held out, and `pairs_of(rows)`.
    """

    first: int  # the row of the first item
    vectors: Tensor  # the table as the loss of this step sees it
    table: Tensor  # the same without gradients

    def encode(self) -> None:
        """Make the table, from parameters that have changed."""
        raise NotImplementedError

    def score(self, anchors: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the scores of items (B, n) for anchors (B,), without gradients."""
        return row_products(self.table[anchors], self.table[ids + self.first])

    def parts(self) -> dict[str, Any]:
        """See `Learner.parts`: scores, the known pairs, and a generator of negatives with the rewards of papers."""
        known, task = self.task.known, self.task
        generator = Factors(known.n_anchors, known.n_items, task.dim, self.seed, task.device)
        return {
            **super().parts(),
            **parts_of_positives(known),
            **NUMBERS,
            "score": samplers.in_blocks(self.score),
            "sigmoid_score": lambda anchors, ids: torch.tanh(self.score(anchors, ids) / 2),  # IRGAN's 2 sigmoid - 1
            "probability": lambda anchors, ids: torch.sigmoid(self.score(anchors, ids)),
            "generator": generator,
            "generator_optimizer": torch.optim.Adam(generator.parameters(), lr=GENERATOR_RATE),
        }

    def query(self, rows: Ids, step: int) -> Query:
        """See `Learner.query`."""
        anchors, items = (to_torch(ids, self.task.device) for ids in self.task.pairs_of(rows))
        self.encode()
        return Query(anchors, positives=items, vectors=embedding(anchors, self.vectors), step=step)

    def scores(self, query: Query, negatives: Negatives) -> tuple[Tensor, Tensor]:
        """See `Learner.scores`."""
        positive = (query.vectors * embedding(query.positives + self.first, self.vectors)).sum(dim=1)
        others = negatives.vectors
        if others is None:
            others = embedding(negatives.ids.clamp(min=0) + self.first, self.vectors)
        return positive, row_products(query.vectors, others)

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The share of the negatives of some training pairs that are held-out pairs of the same anchor."""
        anchors, _ = self.task.pairs_of(rows)
        drawn = negatives.numpy()
        anchor_of_slot = np.broadcast_to(anchors[:, None], drawn.ids.shape)[drawn.mask]
        held_out = self.task.held.contains(anchor_of_slot, drawn.ids[drawn.mask])
        return float(held_out.mean()) if len(held_out) else nan


class Factors(nn.Module):
    """A generator of negatives that learns: the logits of items (B, n) for anchors (B,) are products of vectors."""

    def __init__(self, n_anchors: int, n_items: int, dim: int, seed: int, device: Device) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.anchors, self.items = (
            nn.Parameter((0.1 * torch.randn(size, dim, generator=random)).to(device)) for size in (n_anchors, n_items)
        )

    def forward(self, anchors: Tensor, ids: Tensor) -> Tensor:
        """(B, n) logits; the products with all items are made at once where most of them are asked for."""
        if 2 * ids.shape[1] > len(self.items):
            return (self.anchors[anchors] @ self.items.T).gather(1, ids)
        return row_products(self.anchors[anchors], self.items[ids])


class Scheduled:
    """A sampler whose k is that of a schedule at the step of the query, at most the k of the arm."""

    negatives_used = "up to {k}"

    def __init__(self, sampler: Any, schedule: Callable[[int], float]) -> None:
        self.sampler, self.schedule = sampler, schedule

    def sample(self, query: Query, k: int, *, rng: np.random.Generator) -> Negatives:
        """Draw as many negatives as the schedule has at this step."""
        drawn: Negatives = self.sampler.sample(query, min(k, self.schedule(query.step)), rng=rng)
        return drawn


# Not for arms: the catalogue's row has the width of its own vectors; a memory and a bank need a loop that fills them.
_NOT_OFFERED = ("Bank", "DistanceWeighted", "Memory")
# What every arm may name. A sampler or pool that is new in the package is an arm of each task that offers the rest.
OFFERED: Mapping[str, Any] = MappingProxyType(
    {name: getattr(module, name) for module in (samplers, pools) for name in module.__all__ if name not in _NOT_OFFERED}
    | {"np": np, "Linear": Linear, "adaptive": adaptive, "scheduled": Scheduled}
    | {"hinge": hinge, "sampled_bce": sampled_bce, "self_adversarial": self_adversarial}
)
# {name: composition}: adaptive negative sampling, whose k rises to that of the arm, and falls to 1 at the end.
ADAPTIVE_K: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("ANS", "ANS (adaptive k)"), "scheduled(Static(Everything(positives)), adaptive(k, steps))")
)


def parts_of_positives(known: Positives) -> dict[str, Any]:
    """{name: value}: what an arm may ask of the known pairs."""
    return {
        "positives": known,
        "known": known,
        "counts": known.item_counts(),
        "n_items": known.n_items,
        "pool": pools.Everything(known),
    }


def uses(negatives: str, step: Step) -> Step:
    """Say what a step uses in place of k negatives: "all", "batch", "queue", "none" or "batch + {k}"."""
    step.negatives_used = negatives  # type: ignore[attr-defined]
    return step


def in_blocks(encode: Callable[[Ids], Tensor], rows: Ids) -> Tensor:
    """The vectors of many rows, encoded a block at a time."""
    return torch.cat([encode(block) for block in np.array_split(rows, 1 + len(rows) // BLOCK)])


def row_products(vectors: Tensor, others: Tensor) -> Tensor:
    """(B, n) the products of vectors (B, d) with others (B, n, d)."""
    return torch.bmm(others, vectors[:, :, None])[:, :, 0]

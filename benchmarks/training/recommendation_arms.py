"""One run of the recommendation study: an encoder, one kind of negatives, and its timers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

import naysay as ns
from benchmarks.training.factorisation import TOP
from naysay.lab import Interactions, LightGCN, ranking

BATCH, CANDIDATES, POWER = 1024, 16, 0.75
_AUC_PAIRS = 4000  # training pairs whose AUC is measured


@dataclass(frozen=True)
class Arm:
    """One kind of negatives.

    source     "uniform", "popularity", "dynamic" or "mixing"
    amount     "1", "best" (K*, fixed) or "scheduled" (up to K* and down again)
    restored   whether log q, that of the negatives, is added to the scores that are ranked
    """

    name: str
    source: str
    amount: str = "1"
    restored: bool = False


@dataclass(frozen=True)
class Settings:
    """What is tuned."""

    rate: float
    decay: float


@dataclass(frozen=True)
class Point:
    """One evaluation of a run: steps, training time, and validation measures.

    false_share   of the negatives of a batch, those that are held-out likes
    """

    step: int
    seconds: float
    processor_seconds: float
    recall: float
    false_share: float
    validation_auc: float = math.nan
    training_auc: float = math.nan


ARMS = (
    Arm("uniform", "uniform"),
    Arm("popularity", "popularity"),
    Arm("popularity, restored", "popularity", restored=True),
    Arm("dynamic", "dynamic"),
    Arm("mixing", "mixing"),
    Arm("uniform, K*", "uniform", "best"),
    Arm("uniform, scheduled", "uniform", "scheduled"),
)


class Run:
    """An arm on one split from one start: batches, first vectors and randomness are those of the seed."""

    def __init__(
        self, data: Interactions, arm: Arm, settings: Settings, seed: int, steps: int, best_k: int = 1
    ) -> None:
        """Nothing is trained yet; best_k is K*, for the arms that use it."""
        self.data, self.seed, self.done = data, seed, 0
        self.seconds = self.processor_seconds = 0.0
        self.points: list[Point] = []
        self.model = LightGCN(data.train, seed)
        self.optimiser = torch.optim.Adam([self.model.vectors], lr=settings.rate, weight_decay=settings.decay)
        known, self.seen = data.train, data.train.union(data.validation)
        self.held, self.validated = data.validation.union(data.test), data.validation
        self.users_of, self.items_of = (torch.from_numpy(ids) for ids in data.train.pairs())
        weights = ns.pools.popularity(known, POWER) if arm.source == "popularity" else None
        # log q up to a constant; an item without a training pair, which has q = 0, counts as if it had one.
        log_q = POWER * np.log(np.maximum(known.item_counts(), 1)) if arm.restored else np.zeros(data.n_items)
        self.log_q = torch.from_numpy(log_q).float()
        self.sampler = self._sampler(arm.source, ns.pools.Everything(known, weights))
        self.mixes = arm.source == "mixing"
        fixed = best_k if arm.amount == "best" else 1
        schedule = ns.quantity.adaptive(best_k, steps)
        self.k_at: Callable[[int], float] = schedule if arm.amount == "scheduled" else lambda step: fixed
        self.order = np.random.default_rng(seed)
        self.rows = np.zeros(0, np.int64)
        some = np.random.default_rng(seed).permutation(len(data.train))[:_AUC_PAIRS]
        self.some = self.users_of[some], self.items_of[some]

    def _sampler(self, source: str, pool: ns.pools.Everything) -> Any:
        if source == "dynamic":
            return ns.samplers.Dynamic(pool, self._score, CANDIDATES)
        if source == "mixing":
            return ns.samplers.MixGCF(pool, self._item_layers, CANDIDATES)
        return ns.samplers.Static(pool)

    def _encode(self) -> None:
        """Every vector at every layer, and pooled: what samplers and loss of this step look at."""
        self.layers = self.model.layers()
        pooled = self.layers.mean(dim=1)
        self.users, self.items = pooled[: self.data.n_users], pooled[self.data.n_users :]

    def _score(self, anchors: Tensor, ids: Tensor) -> Tensor:
        return torch.einsum("bd,bnd->bn", embedding(anchors, self.users), embedding(ids, self.items))

    def _item_layers(self, ids: Tensor) -> Tensor:
        layers = self.layers[self.data.n_users :]
        return embedding(ids, layers.flatten(1)).view(*ids.shape, *layers.shape[1:])

    def _batch(self) -> tuple[Tensor, Tensor]:
        """The next rows of a shuffled epoch; what does not fill a batch at its end is left out."""
        size = min(BATCH, len(self.data.train))
        if len(self.rows) < size:
            self.rows = self.order.permutation(len(self.data.train))
        now, self.rows = self.rows[:size], self.rows[size:]
        return self.users_of[now], self.items_of[now]

    def _negatives(self, users: Tensor, items: Tensor, anchors: Tensor, stream: int) -> Any:
        vectors = anchors if self.mixes else None
        query = ns.Query(users, positives=items, vectors=vectors, step=self.done)
        return self.sampler.sample(query, self.k_at(self.done), rng=ns.rng_for(self.seed, self.done, rank=stream))

    def _step(self) -> None:
        users, items = self._batch()
        self._encode()
        anchors = embedding(users, self.users)
        negatives = self._negatives(users, items, anchors, 0)
        positive = (anchors * embedding(items, self.items)).sum(dim=1)
        other = negatives.vectors if self.mixes else embedding(negatives.ids.clamp(min=0), self.items)
        scores = torch.einsum("bd,bkd->bk", anchors, other)
        self.optimiser.zero_grad()
        ns.losses.info_nce(positive, scores, mask=negatives.mask).mean().backward()
        self.optimiser.step()
        self.done += 1

    def train(self, steps: int) -> None:
        """Some steps, on the clock."""
        wall, own = time.perf_counter(), time.process_time()
        for _ in range(steps):
            self._step()
        self.seconds += time.perf_counter() - wall
        self.processor_seconds += time.process_time() - own

    def look(self, *, with_auc: bool = False) -> None:
        """Add a point, off the clock; the test part is evaluated where validation is best so far.

        The validation ranking leaves out what was trained on, the test ranking the validation part too.
        """
        data, scores = self.data, self._scores() + self.log_q
        recall = ranking(scores, self.validated, known=data.train).recall(TOP)
        if not self.points or recall > self.best.recall:
            self.tested = ranking(scores, data.test, known=self.seen)
        point = Point(self.done, self.seconds, self.processor_seconds, recall, self._false_share())
        if with_auc:
            some = ns.Positives.from_pairs(*self.some, data.n_users, data.n_items)
            validation = ranking(scores, data.validation, known=data.train, alone=True).auc
            training = ranking(scores, some, known=data.train, alone=True).auc
            point = replace(point, validation_auc=validation, training_auc=training)
        self.points.append(point)

    @torch.no_grad()
    def _scores(self) -> Tensor:
        """(users, items), all of them."""
        self._encode()
        return self.users @ self.items.T

    @torch.no_grad()
    def _false_share(self) -> float:
        users, items = (part[:BATCH] for part in self.some)
        self._encode()
        drawn = self._negatives(users, items, embedding(users, self.users), 1)
        ids, there = drawn.ids.numpy(), drawn.mask.numpy()
        anchors = np.broadcast_to(users.numpy()[:, None], ids.shape)
        return float(self.held.contains(anchors[there], ids[there]).mean())

    @property
    def best(self) -> Point:
        """The point of the best validation recall, the first of equals."""
        return max(self.points, key=lambda point: point.recall)

    def first_at(self, recall: float) -> Point | None:
        """The first point whose validation recall is that high."""
        return next((point for point in self.points if point.recall >= recall), None)


def together(
    runs: list[Run],
    steps: int,
    every: int,
    *,
    with_auc: bool = False,
    after: Callable[[int], None] = lambda done: None,
) -> None:
    """Train all runs alternately, `every` steps each, so that noise affects all of them.

    after   is called with the number of finished steps
    """
    for run in runs:
        run.look(with_auc=with_auc)
    for first in range(0, steps, every):
        for run in runs:
            run.train(min(every, steps - first))
            run.look(with_auc=with_auc)
        after(min(first + every, steps))

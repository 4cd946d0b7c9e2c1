"""Recommendation: matrix factorisation or LightGCN on interactions, ranked by recall and NDCG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding

from naysay import pools, samplers
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_kind, check_one_of, check_whole, public
from naysay.evaluate import ranking
from naysay.losses import info_nce
from naysay.rng import rng_for
from naysay.tasks._parts import (
    HELD_OUT,
    Device,
    checked_device,
    mean_hardness,
    recorded_device,
    some_anchors,
    uses,
    usual_batch,
)
from naysay.tasks._products import row_scores
from naysay.tasks.interactions import Interactions
from naysay.tasks.lightgcn import LightGCN
from naysay.types import Negatives, Query

MODELS = {"mf": 0, "lightgcn": 2}
# Weight decay. Propagation smooths by itself, and gradients are spread over many users: results/claims_samplers.json.
_DECAYS = {"mf": 1e-6, "lightgcn": 1e-8}
TOP = 20
CANDIDATES, MARGIN, RHO, TRIALS = 16, 1.0, 1.0, 50
_VALIDATED = 2000  # users that are ranked for validation; the test ranks all
_SAMPLERS = (
    *("Static", "Dynamic", "SoftmaxWeights", "Warp", "SemiHard", "PercentileRange", "Mixed", "MixGCF"),
    *("NearPositive", "AdaptiveOversampling"),
)
_POOLS = ("Everything", "InBatch", "popularity", "item_oriented", "log_uniform")


@final
@public
class Recommendation:
    """The task of ranking items for users: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of training pairs, k negatives for each, and minimises `losses.info_nce` at temperature 1,
    which is BPR for k = 1. Validation ranks 2,000 users at most; items of the training part are left out, for the test
    those of the validation part, too.

    Args:
        data: The interactions.
        model: "mf" for matrix factorisation, or "lightgcn" with two hops.
        width: The number of coordinates of a vector.
        batch: Pairs of a step; by default a hundredth of the training pairs, rounded to a power of two from 256 to
            4,096, and at most all.
        device: Where torch keeps the vectors and trains, such as "cuda". Draws and ranks are made on the processor.

    Examples:
        >>> import naysay as ns
        >>> task = Recommendation(ns.tasks.split_by_user([0] * 9 + [1] * 9, [*range(9)] * 2))
        >>> task.measure, task.pairs, task.batch
        ('recall@20', 14, 14)
    """

    name = "recommendation"
    models = tuple(MODELS)
    measure = f"recall@{TOP}"
    own: Mapping[str, str] = MappingProxyType({"whole-data": "whole_data(weight=0.1)"})
    quick_steps = 160
    k = 8
    quick = ("uniform:8", "popularity:8", "dynamic:8", "softmax-weights:8")
    # MixGCF is left out: with 8 negatives it would take most of the time of all arms together.
    defaults = (
        *("uniform:8", "popularity:8", "dynamic:8", "dynamic-softmax:8"),
        *("warp:8", "softmax-weights:8", "whole-data"),
    )

    def __init__(
        self,
        data: Interactions,
        model: str = "mf",
        *,
        width: int = 64,
        batch: int | None = None,
        device: Device = "cpu",
    ) -> None:
        """Keep the parts of the data in the forms that training needs."""
        check_kind("data", data, Interactions, "Interactions")
        check_one_of("model", model, tuple(MODELS))
        self.data, self.model, self.width = data, model, check_whole("width", width, 1)
        self.decay = _DECAYS[model]
        self.device = checked_device(device)
        self.users, self.items = (to_torch(ids, self.device) for ids in data.train.pairs())
        self.pairs = len(data.train)
        self.batch = usual_batch(self.pairs, batch)
        self.seen = data.train.union(data.validation)
        self.held = data.validation.union(data.test)
        self.validated = some_anchors(data.validation, _VALIDATED)
        validated, tested = (int((part.count() > 0).sum()) for part in (self.validated, data.test))
        self.test_work = tested / validated  # what a test costs, in validations
        self.ranked = f"Validation ranks all items for {validated:,} users, the test for {tested:,}."

    def settings(self) -> dict[str, Any]:
        """What decides the result, for the record."""
        return {
            "task": self.name,
            "model": self.model,
            "data": repr(self.data),
            "fingerprint": self.data.fingerprint(),
            "width": self.width,
            "batch": self.batch,
            "candidates": CANDIDATES,
            "false negatives": HELD_OUT,
            **recorded_device(self.device),
        }

    def start(self, seed: int) -> Recommender:
        """A model before training, the same for equal seeds."""
        return Recommender(self, seed)


@final
@public
class Recommender:
    """A model of `Recommendation` that is being trained: what samplers ask, the loss of a step, and the measures.

    Args:
        task: The task.
        seed: Of the first vectors and of the draws.

    Examples:
        >>> import naysay as ns
        >>> task = Recommendation(ns.tasks.split_by_user([0] * 9 + [1] * 9, [*range(9)] * 2), width=8)
        >>> model = task.start(seed=0)
        >>> sampler = ns.samplers.Static(ns.pools.Everything(task.data.train))
        >>> loss, negatives = model.loss(np.arange(4), sampler, 1, step=0)
        >>> negatives.shape
        (4, 1)
    """

    def __init__(self, task: Recommendation, seed: int) -> None:
        """Make the vectors."""
        self.task, self.seed, self.hardness = task, seed, float("nan")
        sizes = {"width": task.width, "hops": MODELS[task.model]}
        self.network = LightGCN(task.data.train, seed, **sizes, device=task.device)
        self.parameters = [self.network.vectors]
        self.first = task.data.n_users  # the row of the first item
        self._encode()

    def _encode(self) -> None:
        """All vectors, as samplers and the loss of this step see them."""
        self.layers = self.network.layers()
        self.vectors = self.network.pooled(self.layers)
        self.table = self.vectors.detach()

    def score(self, users: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the scores of items (B, n) for users (B,), without gradients."""
        return row_scores(self.table, users.contiguous(), (ids + self.first).contiguous())

    def similarity(self, positives: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the products of items (B, n) and items (B,), without gradients."""
        return self.score(positives + self.first, ids)

    def embed(self, ids: Tensor) -> Tensor:
        """(..., layers, d) the vectors of items at each layer, with gradients."""
        found = embedding(ids + self.first, self.layers.flatten(1))
        return found.view(*ids.shape, *self.layers.shape[1:])

    def parts(self) -> Mapping[str, Any]:
        """{name: value}: what the code of a catalogue row may name. Rows that name anything else do not fit."""
        known = self.task.data.train
        offered: dict[str, Any] = {name: getattr(samplers, name) for name in _SAMPLERS}
        offered |= {name: getattr(pools, name) for name in _POOLS}

        def embed_anchors(users: Tensor) -> Tensor:
            return self.table[users]

        own: dict[str, Any] = {"whole_data": self._whole_data, "np": np, "pool": pools.Everything(known)}
        data = {"positives": known, "known": known, "counts": known.item_counts(), "n_items": known.n_items}
        model: dict[str, Any] = {"score": self.score, "similarity": self.similarity, "embed": self.embed}
        model |= {"embed_anchors": embed_anchors, "item_vectors": self.table[self.first :]}
        numbers = {"candidates": CANDIDATES, "margin": MARGIN, "rho": RHO, "trials": TRIALS}
        return offered | own | data | model | numbers | {"scale": max(1.0, 0.1 * known.n_items)}

    def loss(self, rows: NDArray[np.int64], sampler: Any, k: int, *, step: int) -> tuple[Tensor, Negatives]:
        """The mean loss of some training pairs with k negatives each, and the negatives, with their `scores`."""
        chosen = to_torch(rows, self.task.device)
        users, items = self.task.users[chosen], self.task.items[chosen]
        self._encode()
        if getattr(sampler, "due", False):  # it sorts by vectors, which have moved
            sampler.update(self.table[self.first :])
        anchors = embedding(users, self.vectors)  # for samplers that mix
        query = Query(users, positives=items, vectors=anchors, step=step)
        negatives: Negatives = sampler.sample(query, k, rng=rng_for(self.seed, step))
        if negatives.vectors is None:
            others = torch.cat([items[:, None], negatives.ids.clamp(min=0)], dim=1) + self.first
            scores = row_scores(self.vectors, users, others)
        else:
            both = torch.cat([embedding(items + self.first, self.vectors)[:, None], negatives.vectors], dim=1)
            scores = torch.einsum("bd,bkd->bk", anchors, both)
        loss = info_nce(scores[:, 0], scores[:, 1:], mask=negatives.mask, weights=negatives.weights).mean()
        self.hardness = mean_hardness(scores[:, 0], scores[:, 1:], negatives.mask)
        return loss, negatives

    def _whole_data(self, weight: float) -> Callable[..., tuple[Tensor, None]]:
        """A step without sampling: the squared loss of all pairs, those that are not positive with a lower weight.

            sum over positives of (1 - s)^2 + weight sum over all other pairs of s^2

        The sum over all items of s^2 is u' (sum of v v') u, so its cost does not grow with the negatives. A user's
        share of it is spread over the user's training pairs. Hu, Koren, Volinsky. ICDM 2008; by gradient steps: Chen,
        Zhang, Zhang, Liu, Ma. Efficient Neural Matrix Factorization without Sampling for Recommendation. TOIS 2020.
        """
        counts = to_torch(self.task.data.train.count(), self.task.device).float()

        def step_of(rows: NDArray[np.int64], k: int, *, step: int) -> tuple[Tensor, None]:
            chosen = to_torch(rows, self.task.device)
            users, items = self.task.users[chosen], self.task.items[chosen]
            self._encode()
            own, others = embedding(users, self.vectors), self.vectors[self.first :]
            score = (own * embedding(items + self.first, self.vectors)).sum(dim=1)
            whole = ((own @ (others.T @ others)) * own).sum(dim=1) / counts[users]
            return ((1 - score).square() + weight * (whole - score.square())).mean(), None

        return uses("all", step_of)

    def false_share(self, rows: NDArray[np.int64], negatives: Negatives) -> float:
        """The share of the negatives of some training pairs that are held-out pairs of the same user."""
        drawn = negatives.numpy()
        users = np.broadcast_to(to_numpy(self.task.users)[rows][:, None], drawn.ids.shape)[drawn.mask]
        return float(self.task.held.contains(users, drawn.ids[drawn.mask]).mean()) if len(users) else 0.0

    def snapshot(self) -> Tensor:
        """All vectors after the last step, for `measure`."""
        with torch.no_grad():
            self._encode()
            return self.table.clone()

    def measure(self, vectors: Tensor, part: str = "validation") -> dict[str, float]:
        """Rank the "validation" or the "test" part by vectors of `snapshot`."""
        check_one_of("part", part, ("validation", "test"))
        known, wanted = (self.task.data.train, self.task.validated)
        if part == "test":
            known, wanted = self.task.seen, self.task.data.test
        found = ranking(vectors[: self.first], wanted, items=vectors[self.first :], known=known)
        return {
            self.task.measure: found.recall(TOP),
            f"ndcg@{TOP}": found.ndcg(TOP),
            "mrr": found.mrr,
            "auc": found.auc,
        }

"""Retrieval: an adapter on given vectors, or a small text encoder, on pairs of queries and documents, by nDCG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import losses, pools, samplers
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_kind, check_one_of, public, raise_invalid
from naysay.evaluate import ranking
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.tasks._mined import MinedOnce
from naysay.tasks._parts import (
    Device,
    checked_device,
    mean_hardness,
    put,
    ranked_among,
    recorded_device,
    some_anchors,
    uses,
    usual_batch,
)
from naysay.tasks.adapter import Adapter
from naysay.tasks.subwords import Pieces, SubwordEncoder
from naysay.tasks.texts import TextPairs
from naysay.types import Negatives, Query

MODELS = ("adapter", "subwords")
RATES = {"adapter": (0.0001, 0.0003, 0.001, 0.003, 0.01), "subwords": (0.001, 0.003, 0.01, 0.03, 0.1)}
TOP, TEMPERATURE = 10, 0.05
CANDIDATES, MARGIN, RHO, TRIALS = 16, 0.1, 1.0, 50
_VALIDATED, _SEARCHED = 1000, 10_000  # queries and documents that are ranked for validation; the test ranks all
_JUDGED = 2000  # training queries for which the share of false negatives is estimated
_ESTIMATED = "Negatives that are probably positives, estimated by detectors.Posterior on the vectors before training."
_SAMPLERS = ("Static", "Dynamic", "SoftmaxWeights", "Warp", "SemiHard", "PercentileRange", "Mixed", "NearPositive")
_POOLS = ("Everything", "InBatch", "popularity", "item_oriented", "log_uniform")


@final
@public
class Retrieval:
    """The task of finding documents for queries: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of training pairs and minimises InfoNCE of cosines at temperature 0.05. Validation ranks 1,000
    queries among 10,000 documents at most, the test all among all; known documents of a query are left out.

    Args:
        data: Pairs with texts or vectors.
        model: "adapter" (x + x W on given vectors) or "subwords" (hashed pieces of words); by default the first that
            the data allows.
        batch: Pairs of a step; by default a hundredth of the training pairs, rounded to a power of two from 256 to
            4,096, and at most all.
        device: Where torch encodes and trains, such as "cuda". Draws, mining and ranks are made on the processor.

    Examples:
        >>> import naysay as ns
        >>> pairs = ns.tasks.split_by_document(ns.Positives.from_pairs(range(30), range(30)))
        >>> vectors = np.eye(30)
        >>> task = Retrieval(ns.tasks.TextPairs(*pairs, query_vectors=vectors, document_vectors=vectors))
        >>> task.measure, task.model, task.pairs
        ('ndcg@10', 'adapter', 24)
    """

    name = "text"
    models = MODELS
    measure = f"ndcg@{TOP}"
    own: Mapping[str, str] = MappingProxyType(
        {
            "in-batch": "in_batch()",
            "SimCSE": "in_batch()",
            "N-pair": "in_batch()",
            "mined": "Static(mined(None))",
            "judged": "Static(mined('auto'))",
            "nearest": "Static(Nearest(vectors, depth=200, positives=positives))",
            "ANCE": "Static(Nearest(vectors, depth=200, positives=positives))",
            "in-batch + uniform": "in_batch(Static(Everything(positives)))",
            "in-batch + mined": "in_batch(Static(mined(None)))",
            "in-batch + judged": "in_batch(Static(mined('auto')))",
            "DPR": "in_batch(Static(mined(None)))",
        }
    )
    quick_steps = 60
    k = 8
    quick = ("uniform:8", "in-batch", "mined:8", "judged:8", "in-batch + judged:8")
    defaults = (
        *("uniform:8", "in-batch", "nearest:8", "mined:8", "judged:8"),
        *("mixed-sources:8", "in-batch + mined:8", "in-batch + judged:8"),
    )

    def __init__(
        self, data: TextPairs, model: str | None = None, *, batch: int | None = None, device: Device = "cpu"
    ) -> None:
        """Keep the parts of the data in the forms that training needs."""
        check_kind("data", data, TextPairs, "TextPairs")
        self.model = model or ("adapter" if data.has("vectors") else "subwords")
        check_one_of("model", self.model, MODELS)
        needed = "vectors" if self.model == "adapter" else "texts"
        if not data.has(needed):
            raise_invalid("model", f"{MODELS[needed == 'vectors']!r} for data without {needed}", repr(self.model))
        self.data, self.rates, self.device = data, RATES[self.model], checked_device(device)
        self.queries, self.documents = data.train.pairs()
        self.pairs, self.batch = len(data.train), usual_batch(len(data.train), batch)
        given: list[Any] = [getattr(data, f"{side}_{needed}") for side in ("query", "document")]
        self.sides: list[Any] = [Pieces(part) if needed == "texts" else to_torch(part, self.device) for part in given]
        self.seen = data.train.union(data.validation)
        self.validated = ranked_among(some_anchors(data.validation, _VALIDATED), data.train, _SEARCHED)
        validated, searched = len(self.validated[0]), len(self.validated[1])
        tested = int((data.test.count() > 0).sum())
        self.test_work = tested * data.n_documents / (validated * searched)  # what a test costs, in validations
        self.ranked = (
            f"Validation ranks {searched:,} documents for {validated:,} queries, "
            f"the test {data.n_documents:,} for {tested:,}."
        )
        self.mined = MinedOnce(data.train, np.flatnonzero(some_anchors(data.train, _JUDGED).count()))

    def settings(self) -> dict[str, Any]:
        """What decides the result, for the record."""
        known = {"task": self.name, "model": self.model, "data": repr(self.data)}
        sizes = {"batch": self.batch, "temperature": TEMPERATURE, "false negatives": _ESTIMATED}
        return {**known, "fingerprint": self.data.fingerprint(), **sizes, **recorded_device(self.device)}

    def start(self, seed: int) -> Retriever:
        """A model before training, the same for equal seeds."""
        return Retriever(self, seed)


@final
@public
class Retriever:
    """A model of `Retrieval` that is being trained: what samplers ask, the loss of a step, and the measures.

    Args:
        task: The task.
        seed: Of the first vectors and of the draws.

    Examples:
        >>> import naysay as ns
        >>> pairs = ns.tasks.split_by_document(ns.Positives.from_pairs(range(30), range(30)))
        >>> task = Retrieval(ns.tasks.TextPairs(*pairs, query_vectors=np.eye(30), document_vectors=np.eye(30)))
        >>> sampler = ns.samplers.Static(ns.pools.Everything(task.data.train))
        >>> task.start(0).loss(np.arange(4), sampler, 2, step=0)[1].shape
        (4, 2)
    """

    def __init__(self, task: Retrieval, seed: int) -> None:
        """Make the encoder."""
        self.task, self.seed = task, seed
        if task.model == "adapter":
            self.network: Any = Adapter(task.sides[0].shape[1])
        else:
            self.network = SubwordEncoder(task.sides, rng_for(seed, worker=2))
        self.parameters = list(self.network.to(task.device).parameters())
        self.hardness = float("nan")
        self.spared = 0.0  # processor seconds that parts of earlier runs cost when they were made
        self._stored: list[pools.Nearest] = []

    def encode(self, side: int, ids: Any) -> Tensor:
        """(..., d) vectors of queries (side 0) or documents (side 1), each encoded once; -1 gets any."""
        asked = np.maximum(np.asarray(to_numpy(ids)), 0)
        places, inverse = np.unique(asked, return_inverse=True)
        vectors: Tensor = self.network(self.task.sides[side], places)
        return vectors[to_torch(inverse.reshape(asked.shape), vectors.device)]

    @torch.no_grad()
    def all_vectors(self, side: int) -> Tensor:
        """All vectors of a side."""
        blocks = np.array_split(np.arange(len(self.task.sides[side])), 1 + len(self.task.sides[side]) // 1024)
        return torch.cat([self.network(self.task.sides[side], rows) for rows in blocks])

    @torch.no_grad()
    def score(self, queries: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the cosines of documents (B, n) and queries (B,)."""
        return torch.einsum("bd,bnd->bn", self.encode(0, queries), self.encode(1, ids))

    @torch.no_grad()
    def similarity(self, documents: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the cosines of documents (B, n) and documents (B,)."""
        return torch.einsum("bd,bnd->bn", self.encode(1, documents), self.encode(1, ids))

    def parts(self) -> Mapping[str, Any]:
        """{name: value}: what the code of an arm may name. Arms that name anything else do not fit."""
        known = self.task.data.train
        offered: dict[str, Any] = {name: getattr(samplers, name) for name in _SAMPLERS}
        offered |= {name: getattr(pools, name) for name in _POOLS}

        def near(pool: Any, _: Any, candidates: int, **settings: Any) -> Any:
            return samplers.NearPositive(pool, self.similarity, candidates, **settings)

        own = {"np": np, "in_batch": self._in_batch, "mined": self._mined, "Nearest": self._nearest}
        own |= {"NearPositive": near, "pool": pools.Everything(known), "vectors": lambda: self.all_vectors(1)}
        data = {"positives": known, "known": known, "counts": known.item_counts(), "n_items": known.n_items}
        model = {"score": self.score, "similarity": self.similarity}
        numbers = {"candidates": CANDIDATES, "margin": MARGIN, "rho": RHO, "trials": TRIALS}
        return offered | own | data | model | numbers

    def _start(self) -> tuple[Any, Callable[[], tuple[Any, Any]]]:
        """A key of the vectors before training, and a function that makes them."""

        def made() -> tuple[Any, Any]:
            before = self.task.start(self.seed)
            return to_numpy(before.all_vectors(0)), to_numpy(before.all_vectors(1))

        return 0 if self.task.model == "adapter" else self.seed, made

    def _mined(self, judge: str | None) -> pools.Local:
        """The mined negatives of each training query, as a pool of lists."""
        lists, seconds = self.task.mined.lists(*self._start(), judge)
        self.spared += seconds
        return pools.Local(lists, self.task.data.train)

    def _nearest(self, vectors: Callable[[], Tensor], depth: int, positives: Positives) -> pools.Nearest:
        """A pool of the nearest documents, whose vectors `loss` renews once an epoch."""
        pool = pools.Nearest(vectors(), min(depth, positives.n_items), positives)
        self._stored.append(pool)
        return pool

    def _in_batch(self, sampler: Any = None) -> Callable[..., tuple[Tensor, Negatives]]:
        """A step with the other documents of the batch as negatives, and further ones of a sampler."""
        batch = pools.InBatch(self.task.data.train)

        def step_of(rows: NDArray[np.int64], k: int, *, step: int) -> tuple[Tensor, Negatives]:
            query, asked, own = self._query(rows, step)
            shared, further, mask = batch.draw(query, rng=rng_for(self.seed, step, worker=1)).like(query), None, None
            if sampler is not None:
                drawn = sampler.sample(query, k, rng=rng_for(self.seed, step))
                further, mask = self.encode(1, drawn.ids), drawn.mask
                shared = Negatives(torch.cat([shared.ids, drawn.ids], dim=1))
            settings = {"mask": shared.mask[:, : len(rows)], "negatives": further, "negative_mask": mask}
            found = losses.in_batch(asked, own, temperature=TEMPERATURE, **settings)
            scores = asked.detach() @ own.detach().T
            positive = scores.diagonal()
            if further is not None:
                scores = torch.cat([scores, torch.einsum("bd,bkd->bk", asked, further).detach()], dim=1)
            self.hardness = mean_hardness(positive / TEMPERATURE, scores / TEMPERATURE, shared.mask)
            return found.mean(), shared

        return uses("batch" if sampler is None else "batch + {k}", step_of)

    def _query(self, rows: NDArray[np.int64], step: int) -> tuple[Query, Tensor, Tensor]:
        """The query of some training pairs, and the vectors of both sides."""
        queries, documents = (
            to_torch(side[rows], self.task.device) for side in (self.task.queries, self.task.documents)
        )
        asked, own = self.encode(0, queries), self.encode(1, documents)
        return Query(queries, positives=documents, vectors=asked.detach(), step=step), asked, own

    def loss(self, rows: NDArray[np.int64], sampler: Any, k: int, *, step: int) -> tuple[Tensor, Negatives]:
        """The mean loss of some training pairs with k negatives each, and the negatives."""
        if self._stored and step and step % max(1, self.task.pairs // self.task.batch) == 0:
            for pool in self._stored:
                pool.update(self.all_vectors(1))
        query, asked, own = self._query(rows, step)
        negatives: Negatives = sampler.sample(query, k, rng=rng_for(self.seed, step))
        scores = torch.einsum("bd,bkd->bk", asked, self.encode(1, negatives.ids))
        positive = (asked * own).sum(dim=1)
        settings = {"mask": negatives.mask, "weights": negatives.weights, "temperature": TEMPERATURE}
        self.hardness = mean_hardness(positive / TEMPERATURE, scores / TEMPERATURE, negatives.mask)
        return losses.info_nce(positive, scores, **settings).mean(), negatives

    def false_share(self, rows: NDArray[np.int64], negatives: Negatives) -> float:
        """The estimated share of false negatives, by `Posterior` on the vectors before training; NaN if unknown.

        It is fitted to 2,000 training queries at most, and rows of other queries are left out.
        """
        drawn = negatives.numpy()
        return self.task.mined.false_share(*self._start(), self.task.queries[rows], drawn.ids, drawn.mask)

    def snapshot(self) -> list[Tensor]:
        """All parameters, for `measure`."""
        return [part.detach().clone() for part in self.parameters]

    @torch.no_grad()
    def measure(self, state: list[Tensor], part: str = "validation") -> dict[str, float]:
        """Rank the "validation" or the "test" part by the parameters of a `snapshot`."""
        now = self.snapshot()
        put(self.parameters, state)
        rows, documents, wanted, known = self.task.validated
        if part == "test":
            wanted, known = self.task.data.test, self.task.seen
            rows, documents = np.arange(wanted.n_anchors), np.arange(wanted.n_items)
        blocks = np.array_split(documents, 1 + len(documents) // 1024)
        items = torch.cat([self.network(self.task.sides[1], block) for block in blocks])
        found = ranking(self.network(self.task.sides[0], rows), wanted, items=items, known=known)
        put(self.parameters, now)
        return {
            self.task.measure: found.ndcg(TOP),
            f"recall@{TOP}": found.recall(TOP),
            "mrr": found.mrr,
            "auc": found.auc,
        }

"""pytorch-metric-learning: samplers as its miners, losses as its losses, and its miners as samplers."""
# ruff: noqa: E402  (a missing package is named before anything needs it)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from naysay.integrations._frameworks import need, torch_rng

need("pytorch-metric-learning")

import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import BaseMetricLossFunction
from pytorch_metric_learning.miners import BaseMiner
from pytorch_metric_learning.utils import loss_and_miner_utils as pairs_of
from torch import Tensor

from naysay._slots import Score
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_kind, check_whole, public, raise_invalid, shown, whole_numbers
from naysay.pools._slots import ON_SHORT, anchors_of, draw_listed, shortfall
from naysay.pools.everything import Everything
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.samplers._choose import wanted_slots
from naysay.types import Negatives, Pool, Query, Sampler


@final
@public
class SamplerMiner(BaseMiner):  # type: ignore[misc]
    """A sampler as a miner: k negatives for each pair of rows of one class, as triplets.

    The pool of a batch is all rows of other classes, without repeats. The score is the miner's `distance`, negated
    unless it is a similarity. Draws follow torch's generator. Cost: the distances, O(B^2), and the sampler on as many
    rows as there are positive pairs.

    Args:
        make: make(pool, score) -> sampler, called for each batch:
            `lambda pool, score: SemiHard(pool, score, candidates=32, margin=0.2)`.
        k: Negatives for each positive pair.
        distance: As in every miner of the package; LpDistance by default.

    Raises:
        NaysayError: If an argument is invalid.

    Examples:
        >>> from naysay.samplers import Dynamic
        >>> miner = SamplerMiner(lambda pool, score: Dynamic(pool, score, candidates=2))
        >>> points = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.5, 0.5]])
        >>> [part.tolist() for part in miner(points, torch.tensor([0, 0, 1, 2]))]
        [[0, 1], [1, 0], [3, 3]]
    """

    def __init__(self, make: Callable[[Pool, Score], Sampler], k: int = 1, *, distance: Any = None) -> None:
        super().__init__(distance=distance)
        if not callable(make):
            raise_invalid("make", "a function of a pool and a score that returns a sampler", shown(make))
        self.make, self.k = make, check_whole("k", k, 1)

    def mine(self, embeddings: Tensor, labels: Tensor, ref_emb: Tensor, ref_labels: Tensor) -> tuple[Tensor, ...]:
        """Return (anchors, positives, negatives), three tensors of rows."""
        matches, _ = pairs_of.get_matches_and_diffs(labels, ref_labels)
        anchors, positives = torch.where(matches)
        if len(anchors) == 0:
            return anchors, positives, positives
        same = to_numpy(labels[:, None] == ref_labels[None])
        rows, columns = np.nonzero(same)
        known = Positives.from_pairs(rows, columns, *same.shape)
        scores = self.distance(embeddings, ref_emb)
        scores = scores if self.distance.is_inverted else -scores
        sampler = self.make(Everything(known), lambda rows, ids: scores[rows[:, None], ids])
        check_kind("make", sampler, Sampler, "a function that returns a sampler")
        negatives = sampler.sample(Query(anchors, positives, embeddings[anchors]), self.k, rng=torch_rng())
        taken, slots = torch.where(negatives.mask)
        return anchors[taken], positives[taken], negatives.ids[taken, slots]


@final
@public
class SlotLoss(BaseMetricLossFunction):  # type: ignore[misc]
    """A loss of `naysay.losses` over (positive, negatives) as a loss of the package.

    Each positive pair of the batch is a row, and its negatives are all negative pairs of its anchor; or those that a
    miner returned, each once, also if it is in several triplets. The scores are the `distance`, negated unless it is a
    similarity. `info_nce` with the default distance is NTXentLoss. Cost: positive pairs x B scores.

    Args:
        loss: loss(positive (P,), negatives (P, n), mask=(P, n)) -> (P,), such as
            `functools.partial(hard_negative_nce, beta=0.5)`.
        distance: CosineSimilarity by default.
        reducer: As in every loss of the package; the mean by default.
        embedding_regularizer: As in every loss of the package.
        embedding_reg_weight: As in every loss of the package.

    Raises:
        NaysayError: If `loss` is not a function.

    Examples:
        >>> from naysay.losses import info_nce
        >>> round(float(SlotLoss(info_nce)(torch.eye(3), torch.tensor([0, 0, 1]))), 4)    # log 2
        0.6931
    """

    def __init__(
        self,
        loss: Callable[..., Tensor],
        *,
        distance: Any = None,
        reducer: Any = None,
        embedding_regularizer: Any = None,
        embedding_reg_weight: float = 1,
    ) -> None:
        super().__init__(
            distance=distance,
            reducer=reducer,
            embedding_regularizer=embedding_regularizer,
            embedding_reg_weight=embedding_reg_weight,
        )
        if not callable(loss):
            raise_invalid("loss", "a function of positive and negative scores", shown(loss))
        self.loss = loss

    def compute_loss(self, embeddings: Tensor, labels: Any, indices_tuple: Any, ref_emb: Any, ref_labels: Any) -> Any:
        """Return the losses of the positive pairs, as the package's reducers take them."""
        if labels is None and indices_tuple is None:
            raise_invalid("labels", "given without `indices_tuple`", None)
        anchors, positives, others, negatives = pairs_of.convert_to_pairs(indices_tuple, labels, ref_labels)
        if len(anchors) == 0 or len(negatives) == 0:
            return self.zero_losses()
        scores = self.distance(embeddings, ref_emb)
        scores = scores if self.distance.is_inverted else -scores
        mask = torch.zeros_like(scores, dtype=torch.bool)
        mask[others, negatives] = True
        losses = self.loss(scores[anchors, positives], scores[anchors], mask=mask[anchors])
        return {"loss": {"losses": losses, "indices": (anchors, positives), "reduction_type": "pos_pair"}}

    def get_default_distance(self) -> Any:
        """Return the cosine."""
        return CosineSimilarity()


@final
@public
class MinerSampler:
    """A miner of the package as a sampler: negatives are rows of the batch, k of those that the miner returns.

    The query must have vectors, and the batch is the query. A row whose anchor the miner returns no negative for stays
    empty. Which k of them is random, without repeats; log_q is None, because the miner chose. The random numbers of
    the miner itself follow `rng`, too. Cost: that of the miner.

    Args:
        miner: A miner of the package: `MultiSimilarityMiner()`.
        labels: (n_items,) the class of each id. Ids of one class are never negatives.
        on_short: "pad" leaves -1 where the miner returned fewer than k; "raise" raises NaysayError.

    Raises:
        NaysayError: If an argument is invalid.

    Examples:
        >>> import naysay as ns
        >>> from pytorch_metric_learning.miners import BatchHardMiner
        >>> points = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.5, 0.5]])
        >>> sampler = MinerSampler(BatchHardMiner(), labels=[0, 0, 1, 2])
        >>> sampler.sample(ns.Query([0, 1, 2, 3], vectors=points), 1, rng=ns.rng_for(0)).ids.tolist()
        [[3], [3], [-1], [-1]]
    """

    def __init__(self, miner: BaseMiner, labels: ArrayLike, *, on_short: str = "pad") -> None:
        check_kind("miner", miner, BaseMiner, "a miner of pytorch_metric_learning", "For example BatchHardMiner().")
        if on_short not in ON_SHORT:
            raise_invalid("on_short", f"one of {ON_SHORT}", shown(on_short))
        self.miner, self.on_short = miner, on_short
        self.labels = whole_numbers("labels", to_numpy(labels)).astype(np.int64)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives of the batch."""
        anchors = anchors_of(query, len(self.labels))
        counts, width = wanted_slots(k, len(anchors), rng)
        if query.vectors is None:
            raise_invalid("query.vectors", "given", None, "Pass Query(anchors, vectors=embeddings).")
        vectors, key = to_torch(query.vectors), key_from(rng)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(key) >> 1)
            mined = self.miner(vectors, to_torch(self.labels[anchors])) if len(anchors) else (anchors, anchors)
        rows, columns = (to_numpy(mined[part]).astype(np.int64) for part in (2 if len(mined) == 4 else 0, -1))
        codes = np.unique(rows * len(self.labels) + anchors[columns])  # an id comes once in a row
        begins = np.searchsorted(codes, np.arange(len(anchors) + 1) * len(self.labels))
        listed = (begins[:-1], np.diff(begins), codes % max(len(self.labels), 1))
        ids, _ = draw_listed(listed, counts, width, key, distinct=True)
        return Negatives(ids, dropped=shortfall(self.on_short, ids, counts)).like(query)

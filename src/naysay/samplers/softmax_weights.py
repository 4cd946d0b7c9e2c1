"""Softmax weights: every candidate is taken, and hard ones get more weight."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, final

import numpy as np

from naysay._slots import Score, check_score, where
from naysay.arrays import is_torch, need_torch
from naysay.checks import check_bool, public, raise_invalid
from naysay.samplers._candidates import (
    FromPool,
    candidate_scores,
    check_is_pool,
    draw_k,
    number_at,
    positive_scores,
    step_of,
)
from naysay.types import Array, Negatives, Pool, Query


@final
@public
@dataclass(eq=False, repr=False)
class SoftmaxWeights(FromPool):
    """Take k candidates as the pool draws them, with weights that are a softmax of how hard they are, of sum 1 per row.

    Give either `rho` or `temperature`; it may be a function of the step. N = k: all that is drawn is scored and used.
    The weights carry no gradient, so losses.bpr(positive, scores, weights=...) is sum_j w_j Z_j, and its gradient is
    that of harder negatives without a choice of some. The variance is over the row's candidates, divided by their
    number; if all are equally hard, the weights are equal. `scores` (B, K) are the model's. log_q is the pool's and
    exact, because nothing is selected. AdaSIR writes s_j - s_p, which is the same, because a row has one positive.

    Cost: the pool's draw, score for (B, k), O(B k).

    Shi, Chen, Feng, Zhang, Wu, Gao, He. On the Theories Behind Hard Negative Sampling for Recommendation. WWW 2023;
    AdaSIR: Chen, Lian, Li, Jin, Zheng, Chen. Learning Recommenders for Implicit Feedback with Importance Resampling.
    WWW 2022, which resamples by these weights.

    Args:
        pool: Where candidates come from. It excludes known positives.
        score: score(anchors (B,), ids (B, n)) -> (B, n), higher is closer; with `rho` also called for each row's
            positive, with n = 1. On a pool of triples (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)).
        rho: Above 0: about the Kullback-Leibler divergence of the weights from equal ones. Softmax(rho, N): Z_j =
            -log sigmoid(s_p - s_j), tau = sqrt(Var_j(Z) / (2 rho)), w = softmax(Z / tau - log q).
        temperature: Above 0, in place of `rho`. AdaSIR: w = softmax(s / temperature - log q).
        correct: Whether more likely draws get less weight, by log q. It needs a pool of independent draws
            (distinct=False) with log_q. With False, log q is left out, for any pool.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> known = ns.Positives.from_pairs([0, 1], [9, 2], n_items=10)
        >>> pool = ns.pools.Everything(known, distinct=False)
        >>> sampler = SoftmaxWeights(pool, lambda anchors, ids: ids.astype(float), rho=1.0)
        >>> negatives = sampler.sample(ns.Query([0, 1], positives=[9, 2]), 6, rng=ns.rng_for(0))
        >>> negatives.weights.sum(axis=1).round(6), bool(negatives.weights.max() > 1 / 6)
        (array([1., 1.]), True)
    """

    pool: Pool
    score: Score
    rho: Any = None
    _: KW_ONLY
    temperature: Any = None
    correct: bool = True

    def __post_init__(self) -> None:
        check_is_pool(self.pool)
        check_score(self.score)
        if (self.rho is None) == (self.temperature is None):
            got = "neither" if self.rho is None else "both"
            raise_invalid("rho", "given, or `temperature` in its place", got)
        check_bool("correct", self.correct)
        if self.correct and self.distinct is True:
            advice = "Make it with distinct=False, or pass correct=False: log_q of a distinct row is that of a slot."
            raise_invalid("pool", "one of independent draws", "distinct=True", advice)
        self._number(None)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with `weights`."""
        number = self._number(step_of(query))
        positive = None if self.rho is None else positive_scores(self.score, query)[:, None]
        drawn = draw_k(self.pool, query, k, rng).like(query)
        if self.correct and drawn.log_q is None:
            advice = "Pass correct=False to leave it out."
            raise_invalid("pool", "one with an exact log_q", type(self.pool).__name__, advice)
        scores = candidate_scores(self.score, query, drawn)
        filled = drawn.ids >= 0
        scores = where(filled, scores, 0.0)
        logits = scores / number if positive is None else _hardness(scores - positive, filled, number)
        if self.correct:
            logits = logits - drawn.log_q
        return replace(drawn, scores=scores, weights=softmax(logits, filled))

    def _number(self, step: int | None) -> Any:
        """The temperature, or rho, at a step."""
        name = "temperature" if self.rho is None else "rho"
        return number_at(name, getattr(self, name), step, above=0, finite=True)


def _hardness(above: Array, filled: Array, rho: float) -> Array:
    """(B, n) (Z - mean) / tau of Z = log(1 + exp(s_n - s_p)); 0 where all candidates of a row are equally hard."""
    z = -need_torch().nn.functional.logsigmoid(-above) if is_torch(above) else np.logaddexp(0, above)
    count = filled.sum(1)[:, None].clip(min=1)
    z = where(filled, z, 0.0)
    away = where(filled, z - z.sum(1)[:, None] / count, 0.0)
    tau = ((away**2).sum(1)[:, None] / count / (2 * rho)) ** 0.5
    return away / where(tau > 0, tau, 1.0)


def softmax(logits: Array, filled: Array) -> Array:
    """(B, n) weights that sum to 1 over a row's filled slots, 0 elsewhere."""
    low = where(filled, logits, -np.inf)
    if is_torch(logits):
        return need_torch().softmax(low, dim=1).masked_fill(~filled, 0.0)
    highest = low.max(axis=1, keepdims=True, initial=-np.inf)
    raised = np.exp(low - np.where(highest > -np.inf, highest, 0.0))
    return raised / np.maximum(raised.sum(axis=1, keepdims=True), np.finfo(raised.dtype).tiny)

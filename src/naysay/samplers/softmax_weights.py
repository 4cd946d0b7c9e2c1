"""Softmax weights: every candidate is taken, and the hard ones count for more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from naysay.arrays import is_torch, need_torch
from naysay.checks import public, raise_invalid, shown
from naysay.quantity.schedules import at_step
from naysay.samplers._draw import check_is_pool, draw_k
from naysay.samplers._numbers import check_number
from naysay.samplers._partner import partner_scores
from naysay.samplers._pick import where
from naysay.samplers._scored import Score, check_score, score_slots
from naysay.types import Array, Negatives, Pool, Query, check_query


@final
@public
class SoftmaxWeights:
    """Take k candidates as the pool draws them, and weigh each row by a softmax of how hard they are: it sums to 1.

    One of rho and temperature is given; it may be a function of the step. k = N: what is asked for is what is scored.
    The weights carry no gradient, so losses.bpr(positive, scores, weights=...) is sum_j w_j Z_j, and its gradient that
    of harder negatives without a choice among them. The variance is that of the row's candidates, divided by their
    number; where they are all as hard, the weights are even. `scores` (B, K) are the model's. log_q is the pool's and
    exact, because nothing is selected. AdaSIR writes s_j - s_p, which is the same: a row has one positive.

    Cost: the pool's draw, score for (B, k), O(B k).

    Shi, Chen, Feng, Zhang, Wu, Gao, He. On the Theories Behind Hard Negative Sampling for Recommendation. WWW 2023;
    AdaSIR: Chen, Lian, Li, Jin, Zheng, Chen. Learning Recommenders for Implicit Feedback with Importance Resampling.
    WWW 2022, which resamples by these weights where we weigh.

    Args:
        pool: Where candidates come from; it has excluded what is known.
        score: Score(anchors (B,), ids (B, n)) -> (B, n), higher is closer; with rho also asked for each row's
            positive, n = 1. On a pool of triples (`Corruption`) score(triples (B, 3), corrupted (B, n, 3)).
        rho: Above 0: the divergence (Kullback-Leibler) of the weights from even ones, about. Softmax(rho, N): Z_j =
            -log sigmoid(s_p - s_j), tau = sqrt(Var_j(Z) / (2 rho)), w = softmax(Z / tau - log q).
        temperature: Above 0, in the place of rho. AdaSIR: w = softmax(s / temperature - log q).
        correct: Whether draws that are likelier weigh less, by log q. It needs a pool of independent draws
            (distinct=False) that knows its log_q. False leaves log q out, for any pool.

    Example:
        >>> import numpy as np, naysay as ns
        >>> known = ns.Positives.from_pairs([0, 1], [9, 2], n_items=10)
        >>> pool = ns.pools.Everything(known, distinct=False)
        >>> sampler = SoftmaxWeights(pool, lambda anchors, ids: ids.astype(float), rho=1.0)
        >>> negatives = sampler.sample(ns.Query([0, 1], positives=[9, 2]), 6, rng=ns.rng_for(0))
        >>> negatives.weights.sum(axis=1).round(6), bool(negatives.weights.max() > 1 / 6)
        (array([1., 1.]), True)
    """

    def __init__(
        self, pool: Pool, score: Score, rho: Any = None, *, temperature: Any = None, correct: bool = True
    ) -> None:
        """Keep the parts; numbers are looked at here, functions of the step when they are called."""
        check_is_pool(pool)
        check_score(score)
        if (rho is None) == (temperature is None):
            got = "neither" if rho is None else "both"
            raise_invalid("rho", "given, or temperature in its place", got)
        if not isinstance(correct, bool):
            raise_invalid("correct", "True or False", shown(correct))
        self.distinct = getattr(pool, "distinct", None)
        if correct and self.distinct is True:
            advice = "Make it with distinct=False, or pass correct=False: log_q of a distinct row is that of a slot."
            raise_invalid("pool", "one of independent draws", "distinct=True", advice)
        self.pool, self.score, self.correct = pool, score, correct
        self.rho, self.temperature = rho, temperature
        if not callable(self._number):
            self._checked(self._number)

    @property
    def _number(self) -> Any:
        return self.temperature if self.rho is None else self.rho

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives with `weights`; k is a number, K = ceil(k), realised per row; or (B,) of them."""
        check_query(query)
        number = self._checked(at_step(self._number, query.step))
        positive = None if self.rho is None else partner_scores(self.score, query)[:, None]
        drawn = draw_k(self.pool, query, k, rng).like(query)
        if self.correct and drawn.log_q is None:
            advice = "Pass correct=False to leave it out."
            raise_invalid("pool", "one that knows its log_q", type(self.pool).__name__, advice)
        scores = score_slots(self.score, query, drawn.ids, drawn.side)
        there = drawn.ids >= 0
        scores = where(there, scores, 0.0)
        logits = scores / number if positive is None else _hardness(scores - positive, there, number)
        if self.correct:
            logits = logits - drawn.log_q
        return replace(drawn, scores=scores, weights=softmax(logits, there))

    def _checked(self, value: Any) -> float:
        name = "temperature" if self.rho is None else "rho"
        return check_number(name, value, "a number above 0", lambda number: 0 < number < np.inf)

    def __repr__(self) -> str:
        """The pool and the settings."""
        number = f"temperature={self.temperature}" if self.rho is None else f"rho={self.rho}"
        return f"SoftmaxWeights({self.pool!r}, {number}, correct={self.correct})"


def _hardness(above: Array, there: Array, rho: float) -> Array:
    """(B, n) (Z - mean) / tau of Z = log(1 + exp(s_n - s_p)); 0 where a row's candidates are all as hard."""
    z = -need_torch().nn.functional.logsigmoid(-above) if is_torch(above) else np.logaddexp(0, above)
    count = there.sum(1)[:, None].clip(min=1)
    z = where(there, z, 0.0)
    away = where(there, z - z.sum(1)[:, None] / count, 0.0)
    tau = ((away**2).sum(1)[:, None] / count / (2 * rho)) ** 0.5
    return away / where(tau > 0, tau, 1.0)


def softmax(logits: Array, there: Array) -> Array:
    """(B, n) weights that sum to 1 over a row's filled slots, 0 elsewhere."""
    low = where(there, logits, -np.inf)
    if is_torch(logits):
        return need_torch().softmax(low, dim=1).masked_fill(~there, 0.0)
    highest = low.max(axis=1, keepdims=True, initial=-np.inf)
    raised = np.exp(low - np.where(highest > -np.inf, highest, 0.0))
    return raised / np.maximum(raised.sum(axis=1, keepdims=True), np.finfo(raised.dtype).tiny)

"""A positive and its K slots of negatives, prepared for a loss: checked, masked, weighted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from naysay.losses import _inputs as inputs


@final
@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Checked scores, and the weight of each slot."""

    positive: Tensor  # (B,)
    negatives: Tensor  # (B, K), 0 in a slot that does not count, so that no NaN there reaches a gradient
    kept: Tensor  # (B, K) bool: valid and of a weight above 0
    whole: bool  # every row has slots and all are kept, which saves some passes
    weights: Tensor  # (B, K), 0 where not kept; a weight of 2 counts a slot twice
    weighted: bool  # whether weights were given; else all are 1
    valid: Tensor  # (B, K) bool: the mask, which includes slots of weight 0
    log_q: Tensor | None  # (B, K)
    dtype: torch.dtype  # of the result; float16 and bfloat16 are computed in float32

    @property
    def log_drawn(self) -> Tensor:
        """(B,) log K_b, of the number of valid slots."""
        return self.valid.sum(dim=1).clamp_min(1).to(self.positive.dtype).log()

    @property
    def empty(self) -> Tensor:
        """(B,) bool: rows with no negatives, whose loss is 0."""
        return ~self.kept.any(dim=1)

    def gaps(self, scale: Any) -> Tensor:
        """(B, K) (s_j - p) / t. The difference comes first: it is exact for scores that are close, however large."""
        gaps: Tensor = (self.negatives - self.positive[:, None]) / scale
        return gaps

    def log_sum(self, logits: Tensor) -> Tensor:
        """(B,) log sum_j w_j exp(logits_j - log(K_b q_j)); any number for an empty row.

        Large logits take up the logarithms of weights: pass `gaps`, whose sum is as small as the loss.
        """
        if not logits.shape[1]:
            return self.positive * 0.0
        counted = logits + self.weights.masked_fill(~self.kept, 1.0).log() if self.weighted else logits
        if self.log_q is not None:
            counted = counted - (self.log_q + self.log_drawn[:, None])
        if self.whole:
            return torch.logsumexp(counted, dim=1)
        counted = counted.masked_fill(~self.kept, -torch.inf)
        return torch.logsumexp(counted.masked_fill(self.empty[:, None], 0.0), dim=1)

    def log_count(self) -> Tensor:
        """(B,) log of the number of negatives: the sum of the weights, each divided by K_b q_j if log_q is given.

        1 / (K q) summed over K draws is an unbiased estimate of the number of items.
        """
        return self.log_sum(torch.zeros_like(self.negatives))

    def answer(self, values: Tensor) -> Tensor:
        """The loss (B,) in the caller's dtype, 0 for rows with no negatives."""
        return (values if self.whole else values.masked_fill(self.empty, 0.0)).to(self.dtype)

    def shares(self, scores: Tensor, alpha: float) -> Tensor:
        """(B, K) w_j exp(alpha s_j) over their sum in the row; 0 for an empty row."""
        if not scores.shape[1]:
            return scores
        top = scores.masked_fill(~self.kept, -torch.inf).amax(dim=1, keepdim=True)
        raised = self.weights * (alpha * (scores - top).masked_fill(~self.kept, 0.0)).exp()
        return raised / raised.sum(dim=1, keepdim=True).masked_fill(self.empty[:, None], 1.0)

    def weighted_sum(self, terms: Tensor) -> Tensor:
        """(B,) sum_j w_j terms_j."""
        return (self.weights * terms).sum(dim=1)

    def weighted_mean(self, terms: Tensor) -> Tensor:
        """(B,) sum_j w_j terms_j / sum_j w_j; 0 for a row with no negatives."""
        return self.weighted_sum(terms) / self.weights.sum(dim=1).masked_fill(self.empty, 1.0)


def slots(positive: Any, negatives: Any, mask: Any, weights: Any, log_q: Any = None) -> Slots:
    """Check the inputs of a loss and prepare them."""
    positive = inputs.as_scores("positive", positive, (None,))
    negatives = inputs.as_scores("negatives", negatives, (len(positive), None))
    inputs.check_same_type("negatives", negatives, positive, "positive")
    shape, device, dtype = tuple(negatives.shape), negatives.device, inputs.computing_dtype(negatives)
    valid = torch.ones(shape, dtype=torch.bool, device=device) if mask is None else inputs.as_mask(mask, shape, device)
    inputs.check_finite("positive", positive)
    inputs.check_finite("negatives", negatives, valid, "Mask the slots that are empty.")
    kept, counts = valid, None
    if weights is not None:
        counts = inputs.as_weights(weights, shape, negatives, valid)
        kept = valid & (counts > 0)
    whole = shape[1] > 0 and bool(kept.all())
    return Slots(
        positive=positive.to(dtype),
        negatives=negatives.to(dtype) if whole else negatives.to(dtype).masked_fill(~kept, 0.0),
        kept=kept,
        whole=whole,
        weights=kept.to(dtype) if counts is None else counts.masked_fill(~kept, 0.0),
        weighted=counts is not None,
        valid=valid,
        log_q=None if log_q is None else inputs.as_log_q(log_q, shape, negatives, valid),
        dtype=negatives.dtype,
    )


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^x), exact for every x: torch's own, cheaper one is x above 20, which is 2e-9 off in float64."""
    if values.dtype == torch.float32:
        return torch.nn.functional.softplus(values)
    return torch.logaddexp(values, values.new_zeros(()))

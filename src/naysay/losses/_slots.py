"""A positive and its K slots of negatives: what every loss over scores is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from naysay.losses import _inputs as inputs


@final
@dataclass(frozen=True, eq=False)
class Slots:
    """Scores, which slots count, and how much."""

    positive: Tensor  # (B,)
    negatives: Tensor  # (B, K), finite in all slots
    kept: Tensor | None  # (B, K) bool: in the mask and of a weight above 0; None: all slots
    weights: Tensor | None  # (B, K), 0 where not kept; a weight of 2 counts a slot twice; None: all 1
    drawn: Tensor | None  # (B, K) bool: the mask, which also has slots of weight 0; None: all slots
    log_q: Tensor | None  # (B, K)
    dtype: torch.dtype  # of the result; float16 and bfloat16 are computed in float32

    @property
    def empty(self) -> Tensor:
        """(B,) bool: rows with no negatives, whose loss is 0."""
        no_slots = self.negatives.shape[1] == 0
        if self.kept is None or no_slots:
            return torch.full_like(self.positive, no_slots, dtype=torch.bool)
        return self.kept.view(torch.uint8).amax(dim=1) == 0  # several times faster than any(dim=1)

    @property
    def log_drawn(self) -> Tensor:
        """(B,) log K_b, where K_b is the number of slots in the mask."""
        if self.drawn is None:
            return torch.full_like(self.positive, math.log(max(1, self.negatives.shape[1])))
        return self.drawn.to(self.positive.dtype).sum(dim=1).clamp_min(1.0).log()

    @property
    def log_weights(self) -> Tensor | None:
        """(B, K) log w_j - [log q_j + log K_b], any number where a slot is not kept; None: all 0."""
        logs = None
        if self.weights is not None:
            logs = self.weights.log() if self.kept is None else self.weights.masked_fill(~self.kept, 1.0).log()
        if self.log_q is not None:
            correction = self.log_q + self.log_drawn[:, None]
            logs = -correction if logs is None else logs - correction
        return logs

    def only(self, chosen: Tensor) -> Slots:
        """The same draw, of which only these slots count; K_b stays."""
        kept = chosen if self.kept is None else self.kept & chosen
        weights = None if self.weights is None else self.weights.masked_fill(~kept, 0.0)
        return replace(self, kept=kept, weights=weights)

    def gaps(self, temperature: Any) -> Tensor:
        """(B, K) (s_j - p) / t. The difference comes first: it is exact for scores that are close, however large."""
        gaps: Tensor = (self.negatives - self.positive[:, None]) / temperature
        return gaps

    def log_sum(self, logits: Tensor, origin: Tensor | None = None) -> Tensor:
        """(B,) log sum_j w_j exp(logits_j - origin - [log q_j + log K_b]); any number for an empty row.

        Without an origin pass `gaps`: large logits absorb the logarithms of weights.
        """
        if logits.shape[1] == 0:
            return self.positive * 0.0
        log_weights = self.log_weights
        if log_weights is not None:
            if origin is not None:
                logits, origin = logits - origin[:, None], None
            logits = logits + log_weights
        return log_sum_exp(logits, self.kept, origin)

    def log_count(self) -> Tensor:
        """(B,) log of the number of negatives: the sum of the weights, each divided by K_b q_j if log_q is given.

        1 / (K q) summed over K draws is an unbiased estimate of the number of items.
        """
        if self.weights is None and self.log_q is None:
            return self.counts().sum(dim=1).clamp_min(1.0).log()
        return self.log_sum(torch.zeros_like(self.negatives))

    def log_hard_mean(self, logits: Tensor, beta: float, origin: Tensor | None, *, backprop_weights: bool) -> Tensor:
        """(B,) log of the mean of e^{logits - origin} by weights w_j e^{beta logits_j}, over q_j if log_q is given."""
        if logits.shape[1] == 0:
            return self.positive * 0.0
        if self.kept is not None:
            logits = torch.where(self.kept, logits, LOWEST[logits.dtype])
        highest = logits.detach().amax(dim=1, keepdim=True)
        below = logits - highest
        tilt = beta * below
        log_weights = self.log_weights
        if log_weights is not None:
            tilt = tilt + log_weights
        if self.kept is not None:
            tilt = torch.where(self.kept, tilt, LOWEST[logits.dtype])
        shares = torch.softmax(tilt if backprop_weights else tilt.detach(), dim=1)
        log_mean = (shares * below.exp()).sum(dim=1).log()
        return log_mean + (highest[:, 0] if origin is None else highest[:, 0] - origin)

    def counts(self) -> Tensor:
        """(B, K) the weights as numbers, whether or not any were given."""
        if self.weights is not None:
            return self.weights
        return torch.ones_like(self.negatives) if self.kept is None else self.kept.to(self.negatives.dtype)

    def shares(self) -> Tensor:
        """(B, K) the weights divided by their sum in the row; 0 for an empty row."""
        counts = self.counts()
        return counts / counts.sum(dim=1, keepdim=True).masked_fill(self.empty[:, None], 1.0)

    def weighted_sum(self, terms: Tensor) -> Tensor:
        """(B,) sum_j w_j terms_j."""
        return (self.counts() * terms).sum(dim=1)

    def answer(self, values: Tensor) -> Tensor:
        """The loss (B,) in the caller's dtype, 0 for rows with no negatives."""
        return values.masked_fill(self.empty, 0.0).to(self.dtype)


def as_slots(
    positive: Any, negatives: Any, mask: Any, weights: Any, log_q: Any = None, *, also: Tensor | None = None
) -> Slots:
    """Check the inputs of a loss. Slots outside the mask become 0, so that a NaN there reaches no gradient.

    `also` (B, K) marks slots outside the mask whose scores are used, as further positives for example.
    """
    positive = inputs.as_scores("positive", positive, (None,))
    negatives = inputs.as_scores("negatives", negatives, (len(positive), None))
    inputs.check_same_type("negatives", negatives, positive, "positive")
    shape = tuple(negatives.shape)
    drawn = None if mask is None else inputs.as_mask(mask, shape, negatives.device)
    inputs.check_finite("positive", positive)
    used = drawn if drawn is None or also is None else drawn | also
    inputs.check_finite("negatives", negatives, used, "Mask the slots that are empty.")
    kept = drawn
    if weights is not None:
        weights = inputs.as_weights(weights, shape, negatives, drawn)
        kept = weights > 0 if drawn is None else drawn & (weights > 0)
        weights = weights.masked_fill(~kept, 0.0)
    if log_q is not None:
        log_q = inputs.as_log_q(log_q, shape, negatives, drawn)
        if drawn is not None:
            log_q = log_q.masked_fill(~drawn, 0.0)
    dtype = inputs.computing_dtype(negatives)
    scores = negatives.to(dtype)
    if kept is not None:
        scores = scores.masked_fill(~(kept if also is None else kept | also), 0.0)
    return Slots(positive.to(dtype), scores, kept, weights, drawn, log_q, negatives.dtype)


def log_sum_exp(logits: Tensor, kept: Tensor | None, origin: Tensor | None = None) -> Tensor:
    """(B,) log sum over kept slots of e^{logits - origin}; a very low number for a row with none.

    It is torch.logsumexp in fewer passes: the powers are kept for the backward pass. A row of -inf would have a
    gradient of NaN, so the lowest number is in its place. The origin is subtracted from the highest logit, which is
    exact where they are close.
    """
    if kept is not None:
        logits = torch.where(kept, logits, LOWEST[logits.dtype])
    highest = logits.detach().amax(dim=1, keepdim=True)
    total = (logits - highest).exp_().sum(dim=1).log()
    return total + (highest[:, 0] if origin is None else highest[:, 0] - origin)


# Far below every logit, and far enough from the end of the range that a sum of two is finite.
LOWEST = {dtype: torch.finfo(dtype).min / 4 for dtype in (torch.float32, torch.float64)}


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^x), exact for every x: torch's own, cheaper one is x above 20, which is 2e-9 off in float64."""
    if values.dtype == torch.float32:
        return torch.nn.functional.softplus(values)
    return torch.logaddexp(values, values.new_zeros(()))

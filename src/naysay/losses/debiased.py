"""Debiased contrastive learning: subtract the expected contribution of false negatives."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._inputs import as_temperature
from naysay.losses._slots import Slots, slots, softplus


@public
def debiased(
    positive: Tensor,
    negatives: Tensor,
    *,
    prior: float = 0.1,
    min_score: float = -1.0,
    temperature: Any = 0.5,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute the debiased contrastive loss: -log(e^{p/t} / (e^{p/t} + N g)).

        g = max((mean_j e^{s_j/t} - prior e^{p/t}) / (1 - prior), e^{min_score/t})

    N is the sum of the row's weights, or its number of negatives without weights. The positive's score replaces those
    of the unknown false negatives. Known as DCL, like the decoupled loss.

    Chuang, Robinson, Lin, Torralba, Jegelka. Debiased Contrastive Learning. NeurIPS 2020.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        prior: tau+ of the paper: the share of negatives that are false, in [0, 1); 0 is `info_nce`.
        min_score: The lowest possible score, -1 for a cosine: g, a mean of e^{s/t}, is at least e^{min_score/t}. -inf
            for scores without a bound.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.
        log_q: (B, K) log-probability of each draw, as in `info_nce`.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([0.8]), torch.tensor([[0.7, 0.1, -0.3]])
        >>> debiased(*scores, prior=0.1), debiased(*scores, prior=0.0)
        (tensor([0.6798]), tensor([0.7775]))
    """
    ready = slots(positive, negatives, mask, weights, log_q)
    return debiased_loss(ready, as_temperature(temperature, ready.positive), prior, min_score)


def debiased_loss(
    ready: Slots, scale: Any, prior: float, min_score: float, beta: float = 0.0, *, backprop_weights: bool = True
) -> Tensor:
    """Return (B,) the losses of `debiased` and, with beta, of `hardness`."""
    check_debiasing(prior, min_score)
    gaps, count = ready.gaps(scale), ready.log_count()
    tilt = beta * (gaps if backprop_weights else gaps.detach())
    mean = ready.log_sum(gaps + tilt) - ready.log_sum(tilt) if beta else ready.log_sum(gaps) - count
    return ready.answer(softplus(count + log_true_mean(mean, prior, lowest_gap(min_score, ready.positive, scale))))


def check_debiasing(prior: Any, min_score: Any) -> None:
    """Raise if the prior is outside [0, 1), or the lowest score is not a number or -inf."""
    check_number("prior", prior, at_least=0, below=1)
    check_number("min_score", min_score, below=math.inf)


def lowest_gap(min_score: float, positive: Tensor, scale: Any) -> Tensor:
    """(B,) how far the lowest logit is from the positive's; -inf has no gradient."""
    return torch.full_like(positive, min_score) if math.isinf(min_score) else (min_score - positive) / scale


def log_true_mean(mean: Tensor, prior: float, lowest: Tensor) -> Tensor:
    """The log of g / e^{p/t} in `debiased`, from the log of the mean over e^{p/t}, without overflow."""
    if prior > 0:
        gap = math.log(prior) - mean  # below 0 where the difference is positive
        left = gap < 0
        rest = (-torch.expm1(gap.masked_fill(~left, -1.0))).log() - math.log1p(-prior)
        mean = (mean + rest).masked_fill(~left, -torch.inf)
    return torch.maximum(mean, lowest)

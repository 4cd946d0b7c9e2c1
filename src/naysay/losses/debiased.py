"""Debiased contrastive learning: subtract the expected contribution of false negatives."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._inputs import as_temperature
from naysay.losses._slots import slots, softplus


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

    Raises:
        NaysayError: If shapes, dtypes or devices do not fit, a score that counts is not finite, or an option is out of
            range.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([0.8]), torch.tensor([[0.7, 0.1, -0.3]])
        >>> debiased(*scores, prior=0.1), debiased(*scores, prior=0.0)
        (tensor([0.6798]), tensor([0.7775]))
    """
    check_debiasing(prior, min_score)
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    positive_logit, count = ready.positive / scale, ready.log_count()
    mean = ready.log_sum(ready.negatives / scale) - count
    return ready.answer(
        softplus(count + log_true_mean(mean, positive_logit, prior, min_logit(min_score, scale)) - positive_logit)
    )


def check_debiasing(prior: Any, min_score: Any) -> None:
    """Raise if the prior is outside [0, 1), or the lowest score is not a number or -inf."""
    check_number("prior", prior, at_least=0, below=1)
    check_number("min_score", min_score, below=math.inf)


def min_logit(min_score: float, scale: Any) -> Any:
    """Return the lowest logit; -inf has no gradient in the temperature."""
    return min_score if math.isinf(min_score) else min_score / scale


def log_true_mean(mean: Tensor, positive_logit: Tensor, prior: float, lowest: Any) -> Tensor:
    """The log of g in `debiased`, from the log of the mean and the positive's logit, without overflow."""
    if prior > 0:
        gap = math.log(prior) + positive_logit - mean  # below 0 where the difference is positive
        left = gap < 0
        rest = (-torch.expm1(gap.masked_fill(~left, -1.0))).log() - math.log1p(-prior)
        mean = (mean + rest).masked_fill(~left, -torch.inf)
    bound = torch.as_tensor(lowest, dtype=mean.dtype, device=mean.device)
    return torch.maximum(mean, bound)

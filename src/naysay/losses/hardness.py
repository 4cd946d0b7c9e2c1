"""Contrastive learning with hard negatives: the higher a negative scores, the more it counts."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._inputs import as_temperature
from naysay.losses._slots import slots
from naysay.losses.debiased import debiased_loss


@public
def hardness(
    positive: Tensor,
    negatives: Tensor,
    *,
    beta: float = 1.0,
    prior: float = 0.1,
    min_score: float = -1.0,
    backprop_weights: bool = True,
    temperature: Any = 0.5,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute `debiased` with a mean that weighs hard negatives more.

    mean_j e^{s_j/t} becomes sum_j u_j e^{s_j/t} / sum_j u_j, with u_j = w_j e^{beta s_j/t}.

    Raising a low negative can lower this mean, and so the loss. Known as HCL.

    Robinson, Chuang, Sra, Jegelka. Contrastive Learning with Hard Negative Samples. ICLR 2021.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        beta: How much more hard negatives count, at least 0; 0 is `debiased`.
        prior: The share of negatives that are false, in [0, 1); with beta = 0 as well it is `info_nce`.
        min_score: The lowest possible score, -1 for a cosine, -inf for none.
        backprop_weights: Whether gradients flow through u, as in the authors' code. False treats u as constant, which
            is the paper's importance sampling.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.
        log_q: (B, K) log-probability of each draw, as in `info_nce`.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([0.8]), torch.tensor([[0.7, 0.1, -0.3]])
        >>> hardness(*scores, beta=1.0), hardness(*scores, beta=0.0)
        (tensor([1.0201]), tensor([0.6798]))
    """
    check_number("beta", beta, at_least=0, finite=True)
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    return debiased_loss(ready, scale, prior, min_score, beta, backprop_weights=backprop_weights)

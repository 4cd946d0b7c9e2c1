"""Contrastive learning with hard negatives: the higher a negative scores, the more it counts."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._inputs import as_temperature
from naysay.losses._slots import slots, softplus
from naysay.losses.debiased import check_debiasing, floor_of, log_true_mean


@public
def hardness(
    positive: Tensor,
    negatives: Tensor,
    *,
    beta: float = 1.0,
    prior: float = 0.1,
    least: float = -1.0,
    through: bool = True,
    temperature: Any = 0.5,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """`debiased` with a weighted mean: mean_j becomes sum_j u_j e^{s_j/t} / sum_j u_j, u_j = w_j e^{beta s_j/t}, (B,).

    A low negative lowers the mean, so raising it can lower the loss. Known as HCL.

    Robinson, Chuang, Sra, Jegelka. Contrastive Learning with Hard Negative Samples. ICLR 2021.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        beta: How much harder negatives count, at least 0; 0 is `debiased`.
        prior: The share of negatives that are false, in [0, 1); with beta = 0 as well it is `info_nce`.
        least: The lowest score there can be, -1 for a cosine, -inf for none.
        through: Whether the gradient passes through u, as in the authors' code; False takes u as given, as the
            paper's importance sampling reads.
        temperature: T, above 0: a number, or a tensor of one number, which may be learnt.
        mask: (B, K) bool, True where a slot counts.
        weights: (B, K), at least 0.
        log_q: (B, K), as in `info_nce`.

    Example:
        >>> import torch
        >>> scores = torch.tensor([0.8]), torch.tensor([[0.7, 0.1, -0.3]])
        >>> hardness(*scores, beta=1.0), hardness(*scores, beta=0.0)
        (tensor([1.0201]), tensor([0.6798]))
    """
    check_number("beta", beta, at_least=0, finite=True)
    check_debiasing(prior, least)
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    pull, logits = ready.positive / scale, ready.negatives / scale
    tilt = beta * (logits if through else logits.detach())
    mean = ready.log_sum(logits + tilt) - ready.log_sum(tilt)
    return ready.answer(softplus(ready.log_count() + log_true_mean(mean, pull, prior, floor_of(least, scale)) - pull))

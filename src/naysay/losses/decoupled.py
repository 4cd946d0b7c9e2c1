"""Decoupled contrastive learning: the positive leaves the denominator."""

from __future__ import annotations

from typing import Any

from torch import Tensor, softmax

from naysay.checks import check_number, public
from naysay.losses._inputs import as_temperature
from naysay.losses._slots import slots


@public
def decoupled(
    positive: Tensor,
    negatives: Tensor,
    *,
    temperature: Any = 0.1,
    sigma: float | None = None,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute the decoupled contrastive loss: -v p/t + log sum_j w_j exp(s_j/t). It can be negative.

    InfoNCE multiplies every gradient by 1 - P(positive), which is small for small batches; without the positive in the
    denominator there is no such factor. Known as DCL, like the debiased loss.

    Yeh, Hong, Hsu, Liu, Chen, LeCun. Decoupled Contrastive Learning. ECCV 2022.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        sigma: None: v = 1. A number: v_b = 2 - B softmax over the batch of p_b / sigma, without gradient, which
            reduces the weight of positives that are close already (DCLW, 0.5 in the paper). A row then depends on
            the batch.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.
        log_q: (B, K) log-probability of each draw, as in `info_nce`.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> decoupled(torch.tensor([1.0]), torch.tensor([[1.0, 1.0]]), temperature=1.0)    # log 2
        tensor([0.6931])
    """
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    loss = ready.log_sum(ready.gaps(scale))
    if sigma is not None:
        check_number("sigma", sigma, above=0, finite=True)
        share = softmax(ready.positive.detach() / sigma, dim=0)
        loss = loss + (len(share) * share - 1.0) * (ready.positive / scale)  # 1 - v
    return ready.answer(loss)

"""InfoNCE: find the positive among its negatives."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._inputs import as_temperature
from naysay.losses._slots import slots, softplus


@public
def info_nce(
    positive: Tensor,
    negatives: Tensor,
    *,
    temperature: Any = 1.0,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute InfoNCE: -p/t + log(e^{p/t} + sum_j w_j exp(s_j/t - [log q_j + log K_b])).

    The bracket is there only if log_q is given. Then the sum over K draws is an unbiased estimate of the sum over all
    items that could have been drawn, so the loss estimates the full softmax; K_b is the row's number of valid slots.
    The positive is always in the row, so it is not corrected. For rows drawn without replacement see `distinct_log_q`,
    for other corrections `sampled_softmax`.

    van den Oord, Li, Vinyals. Representation Learning with Contrastive Predictive Coding. 2018; the correction: Bengio
    and Senecal. Adaptive Importance Sampling to Accelerate Training of a Neural Probabilistic Language Model. 2008.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.
        log_q: (B, K) log-probability with which each negative was drawn, as `Negatives.log_q` has it.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> info_nce(torch.tensor([1.0]), torch.tensor([[1.0, 1.0, 1.0]]))    # log 4
        tensor([1.3863])
    """
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    return ready.answer(softplus(ready.log_sum(ready.gaps(scale))))

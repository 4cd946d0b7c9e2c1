"""Guided InfoNCE: negatives that a guide model scores above the positive are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from naysay.checks import check_number, public, raise_invalid
from naysay.losses._inputs import as_numbers, as_temperature, check_finite
from naysay.losses._slots import slots, softplus


@public
def guided(
    positive: Tensor,
    negatives: Tensor,
    *,
    guide_positive: Any = None,
    guide_negatives: Any = None,
    margin: float = 0.0,
    relative: bool = False,
    temperature: Any = 0.01,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute `info_nce` over the negatives with g_j <= g_p - margin, where g are the scores of a guide model.

    The guide only selects, and takes no gradient. To leave out in-batch pairs too, pass their scores as further slots,
    or pass a function of rows as `mask` to `in_batch`.

    Solatorio. GISTEmbed: Guided In-sample Selection of Training Negatives for Text Embedding Fine-tuning. 2024.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        guide_positive: (B,) the guide's scores of the positives. Without them the scores themselves select: a
            negative above the positive is left out.
        guide_negatives: (B, K) the guide's scores of the negatives.
        margin: At least 0; the threshold is g_p - margin.
        relative: Whether the threshold is g_p - |g_p| margin instead.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.
        log_q: (B, K) log-probability of each draw, as in `info_nce`.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([0.5]), torch.tensor([[0.5, 0.1]])
        >>> guided(*scores, guide_positive=[0.7], guide_negatives=[[0.9, 0.2]], temperature=1.0)    # without the first
        tensor([0.5130])
    """
    check_number("margin", margin, at_least=0, finite=True)
    if (guide_positive is None) != (guide_negatives is None):
        raise_invalid("guide_positive", "given with `guide_negatives`, or neither", "one of the two")
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    shape = tuple(ready.negatives.shape)
    guide_p, guide_n = ready.positive.detach(), ready.negatives.detach()
    if guide_positive is not None:
        guide_p = as_numbers("guide_positive", guide_positive, shape[:1], positive)
        guide_n = as_numbers("guide_negatives", guide_negatives, shape, negatives)
        check_finite("guide_positive", guide_p)
        check_finite("guide_negatives", guide_n, ready.kept, "Mask the slots that are empty.")
    threshold = guide_p - margin * (guide_p.abs() if relative else 1.0)
    kept = ready.kept & (guide_n <= threshold[:, None])  # K_b stays: a slot left out was drawn
    ready = replace(ready, kept=kept, whole=False, weights=ready.weights.masked_fill(~kept, 0.0))
    return ready.answer(softplus(ready.log_sum(ready.gaps(scale))))

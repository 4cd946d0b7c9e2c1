"""Guided InfoNCE: negatives that a guide finds closer than the positive are left out."""

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
    """`info_nce` over the negatives with g_j <= g_p - margin, (B,), where g are the scores of a guide.

    The guide decides only, and takes no gradient. To leave out in-batch pairs too, hand over their scores as further
    slots, or a function of rows as `mask` to `in_batch`.

    Solatorio. GISTEmbed: Guided In-sample Selection of Training Negatives for Text Embedding Fine-tuning. 2024.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores, as many as there are.
        guide_positive: (B,) and guide_negatives (B, K): what a better model says of the same pairs. Without them
            the scores themselves decide: a negative above the positive is left out.
        margin: At least 0; the threshold is g_p - margin, or g_p - |g_p| margin if `relative`.
        temperature: T, above 0: a number, or a tensor of one number, which may be learnt.
        mask: (B, K) bool, True where a slot counts.
        weights: (B, K), at least 0.
        log_q: (B, K), as in `info_nce`.

    Example:
        >>> import torch
        >>> scores = torch.tensor([0.5]), torch.tensor([[0.5, 0.1]])
        >>> guided(*scores, guide_positive=[0.7], guide_negatives=[[0.9, 0.2]], temperature=1.0)    # the first is left out
        tensor([0.5130])
    """
    check_number("margin", margin, at_least=0, finite=True)
    if (guide_positive is None) != (guide_negatives is None):
        raise_invalid("guide_positive", "given with guide_negatives, or neither", "one of the two")
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    shape = tuple(ready.negatives.shape)
    guide, guided_by = ready.positive.detach(), ready.negatives.detach()
    if guide_positive is not None:
        guide = as_numbers("guide_positive", guide_positive, shape[:1], positive)
        guided_by = as_numbers("guide_negatives", guide_negatives, shape, negatives)
        check_finite("guide_positive", guide)
        check_finite("guide_negatives", guided_by, ready.kept, "Mask the slots that are empty.")
    threshold = guide - margin * (guide.abs() if relative else 1.0)
    kept = ready.kept & (guided_by <= threshold[:, None])  # K_b stays: a slot left out was drawn
    ready = replace(ready, kept=kept, whole=False, weights=ready.weights.masked_fill(~kept, 0.0))
    return ready.answer(softplus(ready.log_sum(ready.negatives / scale) - ready.positive / scale))

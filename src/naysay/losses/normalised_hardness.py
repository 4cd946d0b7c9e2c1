"""Normalised hardness: margins are standardised within the row, then the hardest count most."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._slots import slots

_LEAST = 1e-6  # added to the deviation, so that equal margins give 0


@public
def normalised_hardness(
    positive: Tensor,
    negatives: Tensor,
    *,
    margin: float = 1.0,
    scale: float = 30.0,
    shift: float = 10.0,
    mask: Any = None,
    weights: Any = None,
) -> Tensor:
    """Compute log sum_j w_j e^{scale z_j + shift}, z_j the standardised margins m_j = s_j - p + margin of the row.

    z = (m - mean) / (deviation + 1e-6), where mean and deviation (divided by K) take no gradient. So the gradient is a
    softmax over the row with a temperature that adapts to the spread of its scores. The value does not depend on the
    positive's score, only the gradient does; compare gradients, not values. `shift` and `margin` change no gradient.

    Mao, Wang, Wu, Lan. Boosting the Speed of Entity Alignment 10x: Dual Attention Matching Network with Normalized
    Hard Sample Mining. WWW 2021. It uses minus squared distances as scores, all entities as negatives, and adds both
    directions; in its code masked entities enter mean and deviation as 0.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        margin: Added to the margins.
        scale: Above 0; how much the hardest count.
        shift: Added to the exponents.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> normalised_hardness(torch.zeros(1), torch.zeros(1, 4))    # log 4 + 10
        tensor([11.3863])
    """
    for name, value in (("margin", margin), ("shift", shift)):
        check_number(name, value, finite=True)
    check_number("scale", scale, above=0, finite=True)
    ready = slots(positive, negatives, mask, weights)
    margins = ready.negatives - ready.positive[:, None] + margin
    share = ready.weights / ready.weights.sum(dim=1, keepdim=True).masked_fill(ready.empty[:, None], 1.0)
    centre = (share * margins.detach()).sum(dim=1, keepdim=True)
    deviation = (share * (margins.detach() - centre) ** 2).sum(dim=1, keepdim=True).sqrt()
    return ready.answer(ready.log_sum(scale * (margins - centre) / (deviation + _LEAST) + shift))

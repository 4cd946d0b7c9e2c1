"""Normalised hardness: margins are standardised within the row, then the hardest count most."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._slots import slots

_LEAST_DEVIATION = 1e-3  # of the larger of 1 and the row's largest gap; the gradient is at most `scale` / 1e-3


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

    z = (m - mean) / deviation, where mean and deviation (divided by K) take no gradient. So the gradient is a softmax
    over the row with a temperature that adapts to the spread of its scores. Where there is no spread (one negative, or
    equal scores: a deviation below 1e-3, or below 1e-3 of the row's largest |s_j - p|) it is z = m - mean. The value
    does not depend on the positive's score, only the gradient does; compare gradients, not values. `shift` and `margin`
    change no gradient.

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
    gaps = ready.negatives - ready.positive[:, None]  # the margins but for a constant, which the mean takes away
    fixed = gaps.detach()
    share = ready.weights / ready.weights.sum(dim=1, keepdim=True).masked_fill(ready.empty[:, None], 1.0)
    centre = (share * fixed).sum(dim=1, keepdim=True)
    deviation = (share * (fixed - centre) ** 2).sum(dim=1, keepdim=True).sqrt()
    largest = (fixed * ready.kept).abs().amax(dim=1, keepdim=True) if fixed.shape[1] else centre
    no_spread = deviation < _LEAST_DEVIATION * largest.clamp_min(1.0)
    standardised = (gaps - centre) / deviation.masked_fill(no_spread, 1.0)
    return ready.answer(ready.log_sum(scale * standardised + shift))

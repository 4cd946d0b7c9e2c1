"""Hinge: a positive should score above its negatives by a margin."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._slots import slots


@public
def hinge(positive: Tensor, negatives: Tensor, *, margin: float = 1.0, mask: Any = None, weights: Any = None) -> Tensor:
    """Compute the triplet margin loss on scores, sum_j w_j * max(0, s_j - p + margin).

    With distances d = -score this is max(0, d_ap - d_an + margin). Where that is exactly 0, so is the gradient.

    Weinberger and Saul. Distance Metric Learning for Large Margin Nearest Neighbor Classification. JMLR 2009;
    Schroff, Kalenichenko, Philbin. FaceNet. CVPR 2015.

    Args:
        positive: (B,) scores, higher is closer.
        negatives: (B, K) scores.
        margin: At least 0.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> hinge(torch.tensor([2.0]), torch.tensor([[1.5, 0.0]]), margin=1.0)
        tensor([0.5000])
    """
    check_number("margin", margin, at_least=0, finite=True)
    ready = slots(positive, negatives, mask, weights)
    return ready.answer(ready.weighted_sum((ready.negatives - ready.positive[:, None] + margin).relu()))

"""Hinge: a positive should score above its negatives by a margin."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.losses.inputs import check_setting
from naysay.losses.slots import slots


def hinge(positive: Tensor, negatives: Tensor, *, margin: float = 1.0, mask: Any = None, weights: Any = None) -> Tensor:
    """Triplet margin on scores: sum_j w_j * max(0, s_j - p + margin), (B,).

    positive   (B,) scores, higher is closer;  negatives  (B, K) scores
    margin     at least 0
    mask       (B, K) bool, True where a slot counts;  weights  (B, K), at least 0

    With distances d = -score this is max(0, d_ap - d_an + margin). Where that is exactly 0, so is the gradient.

    Weinberger and Saul. Distance Metric Learning for Large Margin Nearest Neighbor Classification. JMLR 2009;
    Schroff, Kalenichenko, Philbin. FaceNet. CVPR 2015.

    >>> import torch
    >>> hinge(torch.tensor([2.0]), torch.tensor([[1.5, 0.0]]), margin=1.0)
    tensor([0.5000])
    """
    check_setting("hinge", "margin", margin, 0)
    ready = slots("hinge", positive, negatives, mask, weights)
    return ready.answer(ready.weighted_sum((ready.negatives - ready.positive[:, None] + margin).relu()))

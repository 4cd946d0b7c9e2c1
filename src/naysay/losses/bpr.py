"""BPR: a positive should score above its negatives, pair by pair."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._slots import slots, softplus


@public
def bpr(positive: Tensor, negatives: Tensor, *, mask: Any = None, weights: Any = None) -> Tensor:
    """Compute the Bayesian personalised ranking loss, sum_j w_j * -log sigmoid(p - s_j).

    The paper's BPR-Opt is a sum over triples (anchor, positive, negative), so a row is a sum over its negatives;
    pass weights of 1 / K for the mean. One negative a row is the usual choice.

    Rendle, Freudenthaler, Gantner, Schmidt-Thieme. BPR: Bayesian Personalized Ranking from Implicit Feedback. UAI 2009.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> bpr(torch.tensor([1.0, 3.0]), torch.tensor([[1.0], [0.0]]))
        tensor([0.6931, 0.0486])
    """
    ready = slots(positive, negatives, mask, weights)
    return ready.answer(ready.weighted_sum(softplus(ready.negatives - ready.positive[:, None])))

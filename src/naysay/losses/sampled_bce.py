"""Binary cross-entropy on one positive and its sampled negatives: skip-gram's negative sampling."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._slots import slots, softplus


@public
def sampled_bce(positive: Tensor, negatives: Tensor, *, mask: Any = None, weights: Any = None) -> Tensor:
    """Compute binary cross-entropy over a positive and its negatives: -log sigmoid(p) - sum_j w_j log sigmoid(-s_j).

    A row with no negatives gives 0: a positive alone would only raise all scores.

    Mikolov, Sutskever, Chen, Corrado, Dean. Distributed Representations of Words and Phrases and their
    Compositionality. NeurIPS 2013.

    Args:
        positive: (B,) scores as logits.
        negatives: (B, K) scores as logits.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> sampled_bce(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))    # 3 log 2
        tensor([2.0794])
    """
    ready = slots(positive, negatives, mask, weights)
    return ready.answer(softplus(-ready.positive) + ready.weighted_sum(softplus(ready.negatives)))

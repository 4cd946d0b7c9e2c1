"""Self-adversarial negative sampling: negatives are weighted by the model's own scores."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._slots import slots, softplus


@public
def self_adversarial(
    positive: Tensor,
    negatives: Tensor,
    *,
    alpha: float = 1.0,
    margin: float = 0.0,
    mask: Any = None,
    weights: Any = None,
) -> Tensor:
    """Compute (-log sigmoid(f_p) - sum_j a_j log sigmoid(-f_j)) / 2, with f = margin + score.

    The authors' subsampling weight is one factor for a row: multiply the result by it.

    Sun, Deng, Nie, Tang. RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space. ICLR 2019.

    Args:
        positive: (B,) scores, minus a distance for TransE or RotatE.
        negatives: (B, K) scores.
        alpha: Inverse temperature of the weights a_j = w_j e^{alpha f_j} / sum_i w_i e^{alpha f_i}, which take no
            gradient; at least 0, which is the mean.
        margin: gamma of the paper: triples of a larger distance are classified as false.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> self_adversarial(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))    # log 2
        tensor([0.6931])
    """
    check_number("alpha", alpha, at_least=0, finite=True)
    check_number("margin", margin, finite=True)
    ready = slots(positive, negatives, mask, weights)
    positive_logit, logits = ready.positive + margin, ready.negatives + margin
    share = ready.shares(ready.negatives.detach(), alpha)
    return ready.answer((softplus(-positive_logit) + (share * softplus(logits)).sum(dim=1)) / 2)

"""Generalised binary cross-entropy: the positive's term is scaled down by how few negatives were drawn."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, check_whole, public
from naysay.losses._slots import slots, softplus


@public
def gbce(
    positive: Tensor,
    negatives: Tensor,
    *,
    n_items: int,
    calibration: float = 0.75,
    mask: Any = None,
    weights: Any = None,
) -> Tensor:
    """Compute generalised binary cross-entropy: -beta log sigmoid(p) - sum_j w_j log sigmoid(-s_j).

        beta = 1 - calibration * (1 - k / (n_items - 1))

    k is the sum of a row's weights, or its number of negatives without weights. Few negatives make a model
    overconfident: sigmoid(p) tends to 1 for many items, and the order among the best is lost. sigmoid(p)^beta corrects
    that. In the paper's notation beta = alpha ((1 - 1 / alpha) t + 1 / alpha) with the sampling rate
    alpha = k / (n - 1), which is the same. The paper divides a row by k + 1; here it is a sum, as in `sampled_bce`.

    Petrov and Macdonald. gSASRec: Reducing Overconfidence in Sequential Recommendation Trained with Negative Sampling.
    RecSys 2023.

    Args:
        positive: (B,) scores as logits.
        negatives: (B, K) scores as logits.
        n_items: The number of items that negatives were drawn from, at least 2.
        calibration: t of the paper, in [0, 1]: 0 is `sampled_bce`; 1 makes the predicted probabilities those of
            full data.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> gbce(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]), n_items=101)    # (beta + 2) log 2, beta = 0.265
        tensor([1.5700])
    """
    check_whole("n_items", n_items, 2)
    check_number("calibration", calibration, at_least=0, at_most=1)
    ready = slots(positive, negatives, mask, weights)
    rate = (ready.weights.sum(dim=1) / (n_items - 1)).clamp_max(1.0)  # more draws than items: all were drawn
    beta = 1.0 - calibration * (1.0 - rate)
    return ready.answer(beta * softplus(-ready.positive) + ready.weighted_sum(softplus(ready.negatives)))

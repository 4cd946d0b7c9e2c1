"""Bounded margin: a soft negative stays below the positive, but not far below."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, public
from naysay.losses._slots import slots


@public
def bounded_margin(
    positive: Tensor,
    negatives: Tensor,
    *,
    low: float = 0.1,
    high: float = 0.3,
    mask: Any = None,
    weights: Any = None,
) -> Tensor:
    """Compute the mean over slots of max(0, s_j - p + low) + max(0, p - s_j - high).

    It is 0 while the positive is ahead by `low` to `high`. For negatives that are alike but not the same, such as a
    sentence and its negation: they must not become equal, and must not be pushed away like any other sentence. Add it
    to a contrastive loss with a small factor (5e-4 to 1e-3 in the paper's code); soft negatives are not in that loss's
    denominator.

    Wang, Li, Huang, Dou, Kong, Shao. SNCSE: Contrastive Learning for Unsupervised Sentence Embedding with Soft Negative
    Samples. 2022.

    Args:
        positive: (B,) scores, cosines in the paper.
        negatives: (B, K) scores.
        low: The smallest gap.
        high: The largest gap, at least `low`.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> bounded_margin(torch.tensor([0.5]), torch.tensor([[0.5, 0.3, 0.0]]))    # (0.1 + 0 + 0.2) / 3
        tensor([0.1000])
    """
    check_number("low", low, finite=True)
    check_number("high", high, at_least=low, finite=True)
    ready = slots(positive, negatives, mask, weights)
    gaps = ready.negatives - ready.positive[:, None]
    return ready.answer(ready.weighted_mean((gaps + low).relu() + (-gaps - high).relu()))

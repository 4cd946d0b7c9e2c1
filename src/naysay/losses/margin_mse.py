"""Margin-MSE: the gap between positive and negative is that of a teacher."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._inputs import as_numbers, check_finite
from naysay.losses._slots import slots


@public
def margin_mse(
    positive: Tensor,
    negatives: Tensor,
    *,
    teacher_positive: Any,
    teacher_negatives: Any,
    mask: Any = None,
    weights: Any = None,
) -> Tensor:
    """Compute the mean over slots of ((p - s_j) - (T_p - T_j))^2, T the scores of a teacher.

    A false negative has a small or negative gap by the teacher, and is then not pushed away. So it needs no threshold
    for false negatives, but a teacher that scores every pair.

    Hofstätter, Althammer, Schröder, Sertkan, Hanbury. Improving Efficient Neural Ranking Models with Cross-Architecture
    Knowledge Distillation. 2020.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        teacher_positive: (B,) the teacher's scores, in any unit that the model can reach.
        teacher_negatives: (B, K) the teacher's scores.
        mask: (B, K) bool, True where a slot holds a negative.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([2.0]), torch.tensor([[1.0, 0.0]])
        >>> margin_mse(*scores, teacher_positive=[9.0], teacher_negatives=[[8.0, 9.0]])    # (0 + 4) / 2
        tensor([2.])
    """
    ready = slots(positive, negatives, mask, weights)
    own = as_numbers("teacher_positive", teacher_positive, tuple(ready.positive.shape), ready.positive)
    others = as_numbers("teacher_negatives", teacher_negatives, tuple(ready.negatives.shape), ready.positive)
    check_finite("teacher_positive", own)
    check_finite("teacher_negatives", others, ready.kept)
    wanted = (own[:, None] - others).masked_fill(~ready.kept, 0.0)
    apart = ready.positive[:, None] - ready.negatives - wanted
    return ready.answer(ready.weighted_mean(apart * apart))

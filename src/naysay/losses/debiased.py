"""Debiased contrastive learning: take out of the negatives what their false ones are expected to add."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_number, is_number, public, raise_invalid, shown
from naysay.losses._inputs import as_temperature
from naysay.losses._slots import slots, softplus


@public
def debiased(
    positive: Tensor,
    negatives: Tensor,
    *,
    prior: float = 0.1,
    least: float = -1.0,
    temperature: Any = 0.5,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """-log(e^{p/t} / (e^{p/t} + N g)), (B,).

        g = max((mean_j e^{s_j/t} - prior e^{p/t}) / (1 - prior), e^{least/t})

    N is the sum of the row's weights, its number of negatives if there are none. The positive stands for the false
    negatives, which nobody can see. Also known as DCL, a name that the decoupled loss has too.

    Chuang, Robinson, Lin, Torralba, Jegelka. Debiased Contrastive Learning. NeurIPS 2020.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        prior: Tau+ of the paper: the share of negatives that are false, in [0, 1); 0 is `info_nce`.
        least: The lowest score there can be, -1 for a cosine: g, a mean of e^{s/t}, cannot fall below e^{least/t}.
            -inf for scores without a bound.
        temperature: T, above 0: a number, or a tensor of one number, which may be learnt.
        mask: (B, K) bool, True where a slot counts.
        weights: (B, K), at least 0.
        log_q: (B, K), as in `info_nce`.

    Example:
        >>> import torch
        >>> scores = torch.tensor([0.8]), torch.tensor([[0.7, 0.1, -0.3]])
        >>> debiased(*scores, prior=0.1), debiased(*scores, prior=0.0)
        (tensor([0.6798]), tensor([0.7775]))
    """
    check_debiasing(prior, least)
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    pull, count = ready.positive / scale, ready.log_count()
    mean = ready.log_sum(ready.negatives / scale) - count
    return ready.answer(softplus(count + log_true_mean(mean, pull, prior, floor_of(least, scale)) - pull))


def check_debiasing(prior: Any, least: Any) -> None:
    """Refuse a prior outside [0, 1) and a bound that is not a number."""
    check_number("prior", prior, at_least=0, below=1)
    if not is_number(least) or math.isnan(least) or least == math.inf:
        raise_invalid("least", "a number, or -inf", shown(least))


def floor_of(least: float, scale: Any) -> Any:
    """The lowest logit; one that does not exist takes no part in the gradient of the temperature."""
    return least if math.isinf(least) else least / scale


def log_true_mean(mean: Tensor, pull: Tensor, prior: float, floor: Any) -> Tensor:
    """The log of g in `debiased`, from the logs of the mean and of the positive, in a form that cannot overflow."""
    if prior > 0:
        gap = math.log(prior) + pull - mean  # below 0 where something is left
        left = gap < 0
        rest = (-torch.expm1(gap.masked_fill(~left, -1.0))).log() - math.log1p(-prior)
        mean = (mean + rest).masked_fill(~left, -torch.inf)
    bound = torch.as_tensor(floor, dtype=mean.dtype, device=mean.device)
    return torch.maximum(mean, bound)

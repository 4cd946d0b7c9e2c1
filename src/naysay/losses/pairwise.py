"""Losses that compare a positive with its negatives one by one: sums and means over pairs.

They take scores, higher is closer. `mask` (B, K) is True where a slot holds a negative; `weights` (B, K), at least 0,
say how often it counts. They return losses (B,), unreduced, 0 for a row with no negatives.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_number, check_whole, public
from naysay.losses._inputs import as_numbers, check_finite
from naysay.losses._slots import LOWEST, as_slots, softplus

# `normalised_hardness` divides by the deviation of a row's gaps if it is at least this share of the largest gap (or of
# 1, if all gaps are smaller). Its gradient is then at most scale / 1e-3, which half precision can hold.
_LEAST_DEVIATION = 1e-3


@public
def bpr(positive: Tensor, negatives: Tensor, *, mask: Any = None, weights: Any = None) -> Tensor:
    """Compute the Bayesian personalised ranking loss, sum_j w_j * -log sigmoid(p - s_j).

    A row is a sum over its negatives, as in the paper; pass weights of 1 / K for the mean. Rendle et al. UAI 2009.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> bpr(torch.tensor([1.0, 3.0]), torch.tensor([[1.0], [0.0]]))
        tensor([0.6931, 0.0486])
    """
    slots = as_slots(positive, negatives, mask, weights)
    return slots.answer(slots.weighted_sum(softplus(slots.negatives - slots.positive[:, None])))


@public
def hinge(positive: Tensor, negatives: Tensor, *, margin: float = 1.0, mask: Any = None, weights: Any = None) -> Tensor:
    """Compute the triplet margin loss on scores, sum_j w_j * max(0, s_j - p + margin).

    With distances d = -score this is max(0, d_ap - d_an + margin). Weinberger and Saul. JMLR 2009; FaceNet. CVPR 2015.

    Args:
        positive: (B,) scores, higher is closer.
        negatives: (B, K) scores.
        margin: At least 0.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> hinge(torch.tensor([2.0]), torch.tensor([[1.5, 0.0]]), margin=1.0)
        tensor([0.5000])
    """
    check_number("margin", margin, at_least=0, finite=True)
    slots = as_slots(positive, negatives, mask, weights)
    violations = (slots.negatives - slots.positive[:, None] + margin).relu()
    return slots.answer(slots.weighted_sum(violations))


@public
def sampled_bce(positive: Tensor, negatives: Tensor, *, mask: Any = None, weights: Any = None) -> Tensor:
    """Compute binary cross-entropy over a positive and its negatives: -log sigmoid(p) - sum_j w_j log sigmoid(-s_j).

    Skip-gram's negative sampling: Mikolov et al. NeurIPS 2013.

    Args:
        positive: (B,) scores as logits.
        negatives: (B, K) scores as logits.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> sampled_bce(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))    # 3 log 2
        tensor([2.0794])
    """
    slots = as_slots(positive, negatives, mask, weights)
    return slots.answer(softplus(-slots.positive) + slots.weighted_sum(softplus(slots.negatives)))


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

    k is the sum of a row's weights. Few negatives make a model overconfident, which sigmoid(p)^beta corrects. The paper
    divides a row by k + 1; here it is a sum, as in `sampled_bce`. Petrov and Macdonald. gSASRec. RecSys 2023.

    Args:
        positive: (B,) scores as logits.
        negatives: (B, K) scores as logits.
        n_items: The number of items that negatives were drawn from, at least 2.
        calibration: t of the paper, in [0, 1]: 0 is `sampled_bce`, 1 predicts the probabilities of full data.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> gbce(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]), n_items=101)    # (beta + 2) log 2, beta = 0.265
        tensor([1.5700])
    """
    check_whole("n_items", n_items, 2)
    check_number("calibration", calibration, at_least=0, at_most=1)
    slots = as_slots(positive, negatives, mask, weights)
    sampling_rate = (slots.counts().sum(dim=1) / (n_items - 1)).clamp_max(1.0)  # draws may be more than items
    beta = 1.0 - calibration * (1.0 - sampling_rate)
    return slots.answer(beta * softplus(-slots.positive) + slots.weighted_sum(softplus(slots.negatives)))


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

    The authors' subsampling weight is one factor for a row: multiply the result by it. Sun et al. RotatE. ICLR 2019.

    Args:
        positive: (B,) scores, minus a distance for TransE or RotatE.
        negatives: (B, K) scores.
        alpha: Inverse temperature of the weights a_j = w_j e^{alpha f_j} / sum_i w_i e^{alpha f_i}, which take no
            gradient; at least 0, which is the mean.
        margin: gamma of the paper: triples of a larger distance are classified as false.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> self_adversarial(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))    # log 2
        tensor([0.6931])
    """
    check_number("alpha", alpha, at_least=0, finite=True)
    check_number("margin", margin, finite=True)
    slots = as_slots(positive, negatives, mask, weights)
    if not slots.negatives.shape[1]:
        return slots.answer(slots.positive)
    scores = slots.negatives.detach()
    counted = scores if slots.kept is None else scores.masked_fill(~slots.kept, LOWEST[scores.dtype])
    highest = counted.amax(dim=1, keepdim=True)
    raised = slots.counts() * (alpha * (counted - highest)).exp()
    share = raised / raised.sum(dim=1, keepdim=True).masked_fill(slots.empty[:, None], 1.0)
    pushed = (share * softplus(slots.negatives + margin)).sum(dim=1)
    return slots.answer((softplus(-slots.positive - margin) + pushed) / 2)


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

    It is 0 while the positive is ahead by `low` to `high`: for negatives such as the negation of a sentence. Add it to
    a contrastive loss with a small factor (5e-4 to 1e-3 in the authors' code). Wang et al. SNCSE. 2022.

    Args:
        positive: (B,) scores, cosines in the paper.
        negatives: (B, K) scores.
        low: The smallest gap.
        high: The largest gap, at least `low`.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> bounded_margin(torch.tensor([0.5]), torch.tensor([[0.5, 0.3, 0.0]]))    # (0.1 + 0 + 0.2) / 3
        tensor([0.1000])
    """
    check_number("low", low, finite=True)
    check_number("high", high, at_least=low, finite=True)
    slots = as_slots(positive, negatives, mask, weights)
    gaps = slots.negatives - slots.positive[:, None]
    outside = (gaps + low).relu() + (-gaps - high).relu()
    return slots.answer((slots.shares() * outside).sum(dim=1))


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

    A false negative has a small or negative gap by the teacher, and is not pushed away. Hofstätter et al. 2020.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        teacher_positive: (B,) the teacher's scores, in any unit that the model can reach.
        teacher_negatives: (B, K) the teacher's scores.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([2.0]), torch.tensor([[1.0, 0.0]])
        >>> margin_mse(*scores, teacher_positive=[9.0], teacher_negatives=[[8.0, 9.0]])    # (0 + 4) / 2
        tensor([2.])
    """
    slots = as_slots(positive, negatives, mask, weights)
    of_positive = as_numbers("teacher_positive", teacher_positive, tuple(positive.shape), slots.positive)
    of_negatives = as_numbers("teacher_negatives", teacher_negatives, tuple(negatives.shape), slots.positive)
    check_finite("teacher_positive", of_positive)
    check_finite("teacher_negatives", of_negatives, slots.kept)
    wanted = of_positive[:, None] - of_negatives
    if slots.kept is not None:
        wanted = wanted.masked_fill(~slots.kept, 0.0)
    error = slots.positive[:, None] - slots.negatives - wanted
    return slots.answer((slots.shares() * error * error).sum(dim=1))


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

    z = (m - mean) / deviation, where mean and deviation (divided by K) take no gradient: the gradient is a softmax over
    the row whose temperature adapts to the spread of its scores. Without a spread (a deviation below 1e-3, or below
    1e-3 of the row's largest |s_j - p|) z = m - mean. `shift` and `margin` change no gradient.

    Mao et al. Dual-AMN. WWW 2021. In its code masked entities enter mean and deviation as 0.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        margin: Added to the margins.
        scale: Above 0; how much the hardest count.
        shift: Added to the exponents.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> normalised_hardness(torch.zeros(1), torch.zeros(1, 4))    # log 4 + 10
        tensor([11.3863])
    """
    for name, value in (("margin", margin), ("shift", shift)):
        check_number(name, value, finite=True)
    check_number("scale", scale, above=0, finite=True)
    slots = as_slots(positive, negatives, mask, weights)
    if not slots.negatives.shape[1]:
        return slots.answer(slots.positive)
    gaps = slots.negatives - slots.positive[:, None]  # the margins but for a constant, which the mean takes away
    fixed, share = gaps.detach(), slots.shares()
    centre = (share * fixed).sum(dim=1, keepdim=True)
    deviation = (share * (fixed - centre) ** 2).sum(dim=1, keepdim=True).sqrt()
    largest_gap = (fixed * (share > 0)).abs().amax(dim=1, keepdim=True)
    no_spread = deviation < _LEAST_DEVIATION * largest_gap.clamp_min(1.0)
    standardised = (gaps - centre) / deviation.masked_fill(no_spread, 1.0)
    return slots.answer(slots.log_sum(scale * standardised + shift))

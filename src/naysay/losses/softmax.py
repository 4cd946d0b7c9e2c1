"""Losses that find the positive among its negatives: InfoNCE and what was made of it.

They take scores, higher is closer, and return losses (B,), unreduced, 0 for a row with no negatives.

    temperature   t, above 0: a number, or a tensor of one number, which may be learned
    mask          (B, K) bool, True where a slot holds a negative
    weights       (B, K), at least 0: how often a slot counts
    log_q         (B, K) the log-probability with which each negative was drawn, as `Negatives.log_q` has it. Each
                  e^{s_j/t} is then divided by K_b q_j, so that a sum over K draws is an unbiased estimate of the sum
                  over all items that could have been drawn. K_b is the number of the row's slots in `mask`, whatever
                  their weights: a slot that was drawn and is distrusted afterwards has weight 0, and counts as drawn
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_number, check_one_of, public, raise_invalid
from naysay.losses._inputs import (
    as_log_q,
    as_mask,
    as_numbers,
    as_scores,
    as_temperature,
    check_all,
    check_finite,
)
from naysay.losses._slots import Slots, as_slots, softplus
from naysay.losses.check_values import values_are_checked

FORMS = ("sampled", "refined", "classic")  # of `sampled_softmax`


@public
def info_nce(
    positive: Tensor,
    negatives: Tensor,
    *,
    temperature: Any = 1.0,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
    attract: Any = None,
) -> Tensor:
    """Compute InfoNCE: -p/t + log(e^{p/t} + sum_j w_j exp(s_j/t - [log q_j + log K_b])).

    The bracket is there only if log_q is given: the loss then estimates the full softmax. K_b is the number of the
    row's slots in `mask`. The positive is always in the row, so it is not corrected. For rows drawn without replacement
    see `distinct_log_q`. van den Oord et al. 2018; the correction: Bengio and Senecal 2008.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        temperature: t.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.
        log_q: (B, K) log-probabilities of the draws.
        attract: (B, K) bool, True where a slot is a further positive, such as `negatives.relation == 1`. It is then no
            negative, whether in the mask or not. The loss of a row is the mean over its positives, each against the
            same negatives and not against the other positives.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> info_nce(torch.tensor([1.0]), torch.tensor([[1.0, 1.0, 1.0]]))    # log 4
        tensor([1.3863])
    """
    attracted = None
    if attract is not None:
        shape = tuple(as_scores("negatives", negatives, (None, None)).shape)
        attracted = as_mask(attract, shape, negatives.device, "attract")
    slots = as_slots(positive, negatives, mask, weights, log_q, also=attracted)
    temperature = as_temperature(temperature, slots.positive)
    gaps = slots.gaps(temperature)
    if attracted is None:
        return slots.answer(softplus(slots.log_sum(gaps)))
    negatives_only = slots.only(~attracted)
    log_negatives = negatives_only.log_sum(gaps)  # over e^{p/t}
    of_positive = softplus(log_negatives)
    of_attracted = softplus(log_negatives[:, None] - gaps) * attracted
    return negatives_only.answer((of_positive + of_attracted.sum(dim=1)) / (1 + attracted.sum(dim=1)))


@public
def sampled_softmax(
    positive: Tensor,
    negatives: Tensor,
    *,
    log_q: Any,
    positive_log_q: Any = None,
    form: str = "sampled",
    temperature: Any = 1.0,
    mask: Any = None,
    weights: Any = None,
) -> Tensor:
    """Estimate -log softmax of the positive over all items from K draws with known probabilities.

    With s' = s/t - log Q' - log K_b and P = e^{p/t} / (e^{p/t} + sum_j e^{s'_j}):

        sampled   -log P
        refined   sg(1 - P) * (-p/t + log sum_j e^{s_j/t - log Q'_j}),  sg without gradient

    Both have the gradient of the full softmax with the sum over all items replaced by its estimate. Bengio and Senecal
    2008 (sampled); Yi et al. RecSys 2019 (classic); Khrylchenko et al. RecSys 2025 (refined).

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        log_q: (B, K) log-probabilities of the draws.
        positive_log_q: (B,) the same for the positive. None: negatives are drawn from the other items, as by pools.
        form: "sampled" is `info_nce` with log_q. "refined" has the same gradient and the paper's own value. With
            positive_log_q, both use Q' = q / (1 - q_p), the probability given that the positive is not drawn.
            "classic" corrects the positive too; it needs positive_log_q and is biased.
        temperature: t.
        mask: (B, K) bool, the slots that hold a negative; False for draws of the positive itself.
        weights: (B, K), at least 0.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> uniform = torch.full((1, 2), 0.25).log()    # two draws of four other items, all scores 0: log 5
        >>> sampled_softmax(torch.zeros(1), torch.zeros(1, 2), log_q=uniform)
        tensor([1.6094])
    """
    check_one_of("form", form, FORMS)
    if log_q is None:
        raise_invalid("log_q", "given", "None", "Without it, use `info_nce`.")
    slots = as_slots(positive, negatives, mask, weights, log_q)
    temperature = as_temperature(temperature, slots.positive)
    own_log_q = as_positive_log_q(positive_log_q, form, slots.positive)
    return slots.answer(sampled_form(slots, slots.gaps(temperature), form, own_log_q))


def as_positive_log_q(values: Any, form: str, like: Tensor) -> Tensor | None:
    """Return (B,) the log-probabilities of the positives, checked, or None if a form does without."""
    if values is None:
        if form == "classic":
            advice = "It is the log-probability with which each positive would be drawn."
            raise_invalid("positive_log_q", "given for form 'classic'", "None", advice)
        return None
    own = as_log_q(values, (len(like),), like, parameter="positive_log_q")
    if form != "classic" and values_are_checked(own):
        check_all("positive_log_q", own, own < 0, "below 0", "Nothing but the positive could be drawn.")
    return own


def sampled_form(
    slots: Slots, logits: Tensor, form: str, positive_log_q: Tensor | None, origin: Tensor | None = None
) -> Tensor:
    """(B,) one of the three forms of `sampled_softmax`, from (s_j - p) / t, or from s_j / t with the origin p / t."""
    gap = slots.log_sum(logits, origin)  # of the estimated sum over all items, from the positive
    if positive_log_q is not None:
        if form == "classic":
            return softplus(gap + slots.log_drawn + positive_log_q)
        gap = gap + (-torch.expm1(positive_log_q)).log()
    if form == "refined":
        return torch.sigmoid(gap).detach() * (gap + slots.log_drawn)
    return softplus(gap)


@public
def decoupled(
    positive: Tensor,
    negatives: Tensor,
    *,
    temperature: Any = 0.1,
    sigma: float | None = None,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute the decoupled contrastive loss: -v p/t + log sum_j w_j exp(s_j/t). It can be negative.

    InfoNCE multiplies every gradient by 1 - P(positive), which is small for small batches; without the positive in the
    denominator there is no such factor. Known as DCL, like the debiased loss. Yeh et al. ECCV 2022.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        temperature: t.
        sigma: None: v = 1. A number: v_b = 2 - B softmax over the batch of p_b / sigma, without gradient, which
            reduces the weight of positives that are close already (DCLW, 0.5 in the paper).
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.
        log_q: (B, K) log-probabilities of the draws.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> decoupled(torch.tensor([1.0]), torch.tensor([[1.0, 1.0]]), temperature=1.0)    # log 2
        tensor([0.6931])
    """
    if sigma is not None:
        check_number("sigma", sigma, above=0, finite=True)
    slots = as_slots(positive, negatives, mask, weights, log_q)
    temperature = as_temperature(temperature, slots.positive)
    loss = slots.log_sum(slots.gaps(temperature))
    if sigma is not None:
        share = torch.softmax(slots.positive.detach() / sigma, dim=0)
        one_minus_v = len(share) * share - 1.0
        loss = loss + one_minus_v * (slots.positive / temperature)
    return slots.answer(loss)


@public
def gist(
    positive: Tensor,
    negatives: Tensor,
    *,
    guide_positive: Any = None,
    guide_negatives: Any = None,
    margin: float = 0.0,
    relative: bool = False,
    temperature: Any = 0.01,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute `info_nce` over the negatives with g_j <= g_p - margin, where g are the scores of a guide model.

    The guide only selects, and takes no gradient. For in-batch pairs pass a function of rows as `mask` to `in_batch`.
    Solatorio. GISTEmbed. 2024.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        guide_positive: (B,) the guide's scores of the positives. Without them the scores themselves select.
        guide_negatives: (B, K) the guide's scores of the negatives.
        margin: At least 0; the threshold is g_p - margin.
        relative: Whether the threshold is g_p - |g_p| margin instead.
        temperature: t.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.
        log_q: (B, K) log-probabilities of the draws; a slot that the guide leaves out counts as drawn.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([0.5]), torch.tensor([[0.5, 0.1]])
        >>> gist(*scores, guide_positive=[0.7], guide_negatives=[[0.9, 0.2]], temperature=1.0)    # without the first
        tensor([0.5130])
    """
    check_number("margin", margin, at_least=0, finite=True)
    if (guide_positive is None) != (guide_negatives is None):
        raise_invalid("guide_positive", "given with `guide_negatives`, or neither", "one of the two")
    slots = as_slots(positive, negatives, mask, weights, log_q)
    temperature = as_temperature(temperature, slots.positive)
    of_positive, of_negatives = slots.positive.detach(), slots.negatives.detach()
    if guide_positive is not None:
        shape = tuple(negatives.shape)
        of_positive = as_numbers("guide_positive", guide_positive, shape[:1], positive)
        of_negatives = as_numbers("guide_negatives", guide_negatives, shape, negatives)
        check_finite("guide_positive", of_positive)
        check_finite("guide_negatives", of_negatives, slots.kept, "Mask the slots that are empty.")
    threshold = of_positive - margin * (of_positive.abs() if relative else 1.0)
    trusted = slots.only(of_negatives <= threshold[:, None])
    return trusted.answer(softplus(trusted.log_sum(slots.gaps(temperature))))


# ---- debiased --------------------------------------------------------------------------------------------------------


@public
def debiased(
    positive: Tensor,
    negatives: Tensor,
    *,
    prior: float = 0.1,
    min_score: float = -1.0,
    temperature: Any = 0.5,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute the debiased contrastive loss: -log(e^{p/t} / (e^{p/t} + N g)).

        g = max((mean_j e^{s_j/t} - prior e^{p/t}) / (1 - prior), e^{min_score/t})

    N is the sum of the row's weights. The positive's score replaces those of the unknown false negatives. Known as DCL,
    like the decoupled loss. Chuang et al. NeurIPS 2020.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        prior: tau+ of the paper: the share of negatives that are false, in [0, 1); 0 is `info_nce`.
        min_score: The lowest possible score, -1 for a cosine, -inf for none.
        temperature: t.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.
        log_q: (B, K) log-probabilities of the draws.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([0.8]), torch.tensor([[0.7, 0.1, -0.3]])
        >>> debiased(*scores, prior=0.1), debiased(*scores, prior=0.0)
        (tensor([0.6798]), tensor([0.7775]))
    """
    check_debiasing(prior, 0.0, min_score)
    slots = as_slots(positive, negatives, mask, weights, log_q)
    temperature = as_temperature(temperature, slots.positive)
    lowest = lowest_gap(min_score, slots.positive, temperature)
    return slots.answer(debiased_form(slots, slots.gaps(temperature), lowest, prior))


@public
def hard_negative_nce(
    positive: Tensor,
    negatives: Tensor,
    *,
    beta: float = 1.0,
    prior: float = 0.1,
    min_score: float = -1.0,
    backprop_weights: bool = True,
    temperature: Any = 0.5,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
) -> Tensor:
    """Compute `debiased` with a mean that weighs hard negatives more: by u_j = w_j e^{beta s_j/t}.

    Raising a low negative can lower this mean, and so the loss. Known as HCL. Robinson et al. ICLR 2021.

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        beta: How much more hard negatives count, at least 0; 0 is `debiased`.
        prior: The share of negatives that are false, in [0, 1); with beta = 0 as well it is `info_nce`.
        min_score: The lowest possible score, -1 for a cosine, -inf for none.
        backprop_weights: Whether gradients flow through u, as in the authors' code; the paper treats u as constant.
        temperature: t.
        mask: (B, K) bool, the slots that hold a negative.
        weights: (B, K), at least 0.
        log_q: (B, K) log-probabilities of the draws.

    Returns:
        (B,) losses.

    Examples:
        >>> import torch
        >>> scores = torch.tensor([0.8]), torch.tensor([[0.7, 0.1, -0.3]])
        >>> hard_negative_nce(*scores, beta=1.0), hard_negative_nce(*scores, beta=0.0)
        (tensor([1.0201]), tensor([0.6798]))
    """
    check_debiasing(prior, beta, min_score)
    slots = as_slots(positive, negatives, mask, weights, log_q)
    temperature = as_temperature(temperature, slots.positive)
    lowest = lowest_gap(min_score, slots.positive, temperature)
    gaps = slots.gaps(temperature)
    loss = debiased_form(slots, gaps, lowest, prior, beta, backprop_weights=backprop_weights)
    return slots.answer(loss)


def check_debiasing(prior: Any, beta: Any, min_score: Any) -> None:
    """Raise if a setting of `debiased` or `hard_negative_nce` is out of range."""
    check_number("prior", prior, at_least=0, below=1)
    check_number("beta", beta, at_least=0, finite=True)
    check_number("min_score", min_score, below=math.inf)


def lowest_gap(min_score: float, positive: Tensor, temperature: Any) -> Tensor:
    """(B,) how far the lowest possible logit is from the positive's; -inf has no gradient."""
    return torch.full_like(positive, min_score) if math.isinf(min_score) else (min_score - positive) / temperature


def debiased_form(
    slots: Slots,
    logits: Tensor,
    lowest: Tensor,
    prior: float,
    beta: float = 0.0,
    *,
    backprop_weights: bool = True,
    origin: Tensor | None = None,
) -> Tensor:
    """(B,) `debiased` and, with beta, `hard_negative_nce`.

    From (s_j - p) / t, or from s_j / t with the origin p / t; `lowest` (B,) is the lowest possible gap.
    """
    log_count = slots.log_count()
    if beta:
        log_mean = slots.log_hard_mean(logits, beta, origin, backprop_weights=backprop_weights)
    else:
        log_mean = slots.log_sum(logits, origin) - log_count
    return softplus(log_count + torch.maximum(_log_of_true_ones(log_mean, prior), lowest))


def _log_of_true_ones(log_mean: Tensor, prior: float) -> Tensor:
    """log((mean - prior) / (1 - prior)): the mean over true negatives, both over e^{p/t}; -inf where it is below 0."""
    if prior == 0:
        return log_mean
    gap = math.log(prior) - log_mean
    above_0 = gap < 0
    log_share = (-torch.expm1(gap.masked_fill(~above_0, -1.0))).log() - math.log1p(-prior)
    return (log_mean + log_share).masked_fill(~above_0, -torch.inf)

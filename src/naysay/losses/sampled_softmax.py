"""Sampled softmax: a softmax over all items, estimated from a few, with the three corrections in use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from naysay.arrays import to_numpy
from naysay.checks import check_one_of, first_bad, public, raise_invalid
from naysay.losses._inputs import as_log_q, as_temperature
from naysay.losses._slots import slots, softplus

FORMS = ("sampled", "refined", "classic")


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

    Both have the gradient -(1 - P) dp + sum_j (e^{s'_j} / (e^{p/t} + sum_i e^{s'_i})) ds_j, which is that of the full
    softmax with the sum over all items replaced by its estimate. A frequent item is drawn more often, so its score is
    lowered.

    Bengio and Senecal 2008 (sampled); Yi et al. Sampling-Bias-Corrected Neural Modeling for Large Corpus Item
    Recommendations. RecSys 2019 (classic); Khrylchenko et al. Correcting the LogQ Correction: Revisiting Sampled
    Softmax for Large-Scale Retrieval. RecSys 2025 (refined).

    Args:
        positive: (B,) scores.
        negatives: (B, K) scores.
        log_q: (B, K) log-probability with which each negative was drawn.
        positive_log_q: (B,) the same for the positive. None: negatives were drawn from all items but the positive, as
            by every pool here.
        form: "sampled" is `info_nce` with log_q. "refined" has the same gradient and the paper's own value. With
            positive_log_q, both use Q' = q / (1 - q_p), the probability given that the positive is not drawn.
            "classic" corrects the positive too, s - log q for all; it needs positive_log_q and is biased, because the
            positive is in the row with probability 1.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        mask: (B, K) bool, True where a slot holds a negative; False for draws of the positive itself.
        weights: (B, K) weights of the slots, at least 0.

    Returns:
        (B,) losses, unreduced; 0 for a row with no negatives.

    Examples:
        >>> import torch
        >>> uniform = torch.full((1, 2), 0.25).log()    # two draws of four other items, all scores 0: log 5
        >>> sampled_softmax(torch.zeros(1), torch.zeros(1, 2), log_q=uniform)
        tensor([1.6094])
    """
    check_one_of("form", form, FORMS)
    if log_q is None:
        raise_invalid("log_q", "given", "None", "Without it, use `info_nce`.")
    ready = slots(positive, negatives, mask, weights, log_q)
    scale = as_temperature(temperature, ready.positive)
    gap = ready.log_sum(ready.gaps(scale))  # of the sum from the positive
    own = as_positive_log_q(positive_log_q, form, ready.positive)
    if own is not None:
        if form == "classic":
            return ready.answer(softplus(gap + ready.log_drawn + own))
        gap = gap + (-torch.expm1(own)).log()
    if form == "refined":
        return ready.answer(torch.sigmoid(gap).detach() * (gap + ready.log_drawn))
    return ready.answer(softplus(gap))


def as_positive_log_q(values: Any, form: str, like: Tensor) -> Tensor | None:
    """Return (B,) the log-probabilities of the positives, checked, or None if a form does without."""
    if values is None:
        if form == "classic":
            advice = "It is the log-probability with which each positive would be drawn."
            raise_invalid("positive_log_q", "given for form 'classic'", "None", advice)
        return None
    own = as_log_q(values, (len(like),), like, parameter="positive_log_q")
    certain = own >= 0
    if certain.any() and form != "classic":
        got = first_bad(to_numpy(own), to_numpy(certain))
        raise_invalid("positive_log_q", "below 0", got, "Nothing but the positive could be drawn.")
    return own

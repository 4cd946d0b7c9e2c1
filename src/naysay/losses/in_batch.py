"""The rest of the batch as negatives, in bounded memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid
from naysay.losses._blocks import BLOCK, blockwise, columns
from naysay.losses._forms import Contrast
from naysay.losses._inputs import as_mask, as_partner, as_temperature, as_vectors, computing_dtype, label_pair
from naysay.losses.debiased import check_debiasing, lowest_gap
from naysay.losses.sampled_softmax import FORMS, as_positive_log_q


@public
def in_batch(
    anchors: Tensor,
    keys: Tensor | None = None,
    *,
    partner: Any = None,
    negatives: Tensor | None = None,
    negative_mask: Any = None,
    share_negatives: bool = False,
    temperature: Any = 1.0,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
    positive_log_q: Any = None,
    form: str = "sampled",
    labels: Any = None,
    key_labels: Any = None,
    prior: float = 0.0,
    beta: float = 0.0,
    min_score: float = -1.0,
    backprop_weights: bool = True,
    block: int = BLOCK,
) -> Tensor:
    """Compute InfoNCE of each anchor against all keys, without storing the (N, M) matrix of scores.

    For two views of a batch, in_batch(z, partner=...) with z of both is NT-Xent. For both directions of pairs take the
    mean of in_batch(a, b) and in_batch(b, a).

    Memory: the block, and one gradient for each input. Time: three products of N x M x d, as for the plain form, and
    two more if there are several blocks and the rows have different factors in the backward pass (not after .mean() or
    .sum()). Exact; differentiable once. A function passed as mask or weights is called once for each block, and again
    in that case.

    Chen, Kornblith, Norouzi, Hinton. A Simple Framework for Contrastive Learning of Visual Representations. ICML 2020;
    the other forms: see `debiased`, `hardness` and `eliminate`.

    Args:
        anchors: (N, d); scores are dot products, so normalise first for cosines.
        keys: (M, d), or None: the anchors are their own keys, and none is a negative of itself.
        partner: (N,) the key that is the anchor's positive; None: key i for anchor i.
        negatives: (N, K, d) further negatives.
        negative_mask: (N, K) bool, True where a slot of `negatives` holds one.
        share_negatives: False: further negatives are those of their own anchor only. True: they are keys for all
            anchors, after the M.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        mask: True where a key may be a negative: (M,), (N, M), or a function of a slice of rows that returns
            (rows, M). The positive always counts.
        weights: At least 0, in the same three shapes.
        log_q: (M,) log-probability with which each key came into the batch, as in `info_nce`.
        positive_log_q: (N,) the same for the anchors' positives, as in `sampled_softmax`; it needs log_q.
        form: "sampled", "refined" or "classic", as in `sampled_softmax`; the last two need log_q.
        labels: (N,) or (G, N): keys with the anchor's own label are left out, -1 matches nothing; for G granularities,
            the mean of the losses.
        key_labels: (M,) or (G, M); without keys, `labels` are used for both.
        prior: The share of false negatives, as in `debiased`.
        beta: How much more hard negatives count, as in `hardness`.
        min_score: The lowest possible score, as in `debiased`.
        backprop_weights: Whether gradients flow through the weights of `beta`, as in `hardness`.
        block: Scores in memory at once.

    Returns:
        (N,) losses, unreduced.

    Examples:
        >>> import torch
        >>> in_batch(torch.eye(3), torch.eye(3))    # log(e + 2) - 1
        tensor([0.5514, 0.5514, 0.5514])
    """
    check_debiasing(prior, min_score)
    check_number("beta", beta, at_least=0, finite=True)
    check_whole("block", block, 1)
    given = as_vectors("anchors", anchors)
    scale = as_temperature(temperature, given)
    right = given if keys is None else as_vectors("keys", keys, given)
    own, rows, device = keys is None, len(given), given.device
    pairs = as_partner(partner, rows, len(right), device, own=own)
    wide, right = given.to(computing_dtype(given)), right.to(computing_dtype(given))
    left, positive = wide / scale, (wide * right[pairs]).sum(dim=1)
    own_log_q = _checked_form(form, log_q, positive_log_q, positive, corrected=bool(prior or beta))
    filled, row_inputs = None, [lowest_gap(min_score, positive, scale)]
    if negatives is not None:
        further = as_vectors("negatives", negatives, given, middle=True).to(left.dtype)
        valid = torch.ones(further.shape[:2], dtype=torch.bool, device=device)
        if negative_mask is not None:
            valid = as_mask(negative_mask, tuple(further.shape[:2]), device, "negative_mask")
        if share_negatives:
            filled = torch.cat([torch.ones(len(right), dtype=torch.bool, device=device), valid.flatten()])
            right = torch.cat([right, further.flatten(0, 1)])
        elif log_q is not None:
            raise_invalid("log_q", "left out with `negatives` that are not shared", "log_q", "Theirs is not known.")
        else:
            gaps = torch.einsum("nd,nkd->nk", left, further) - (positive / scale)[:, None]
            row_inputs += _log_sums(gaps, valid, beta, backprop_weights=backprop_weights)
    elif negative_mask is not None:
        raise_invalid("negative_mask", "given with negatives", "a mask without them")
    size = len(right)
    same: tuple[Tensor | None, Tensor | None] = (None, None)
    if labels is not None:
        same = label_pair(labels, key_labels, rows, size, device, own=own)
    elif key_labels is not None:
        raise_invalid("key_labels", "given with labels", "key_labels without them")
    candidates = columns(rows, size, left, own=own, mask=mask, weights=weights, log_q=log_q, filled=filled)
    head = Contrast(candidates, pairs, *same, prior, beta, backprop_weights, form, own_log_q)
    return blockwise(left, right, torch.stack(row_inputs), head, block, "anchors").to(given.dtype)


def _checked_form(form: str, log_q: Any, own: Any, like: Tensor, *, corrected: bool) -> Tensor | None:
    """Return (N,) the positives' log_q. Raises if the form and what is given do not fit."""
    check_one_of("form", form, FORMS)
    if log_q is None and (own is not None or form != "sampled"):
        raise_invalid("log_q", "given with `positive_log_q` and for forms other than 'sampled'", "None")
    if corrected and (own is not None or form != "sampled"):
        raise_invalid("form", "'sampled', without positive_log_q, if there is a `prior` or `beta`", repr(form))
    return as_positive_log_q(own, form, like)


def _log_sums(logits: Tensor, valid: Tensor, beta: float, *, backprop_weights: bool) -> list[Tensor]:
    """(N,) each: log sums of e^{(1 + beta) s}, of e^{beta s} and of 1 over valid slots, -inf where there are none."""
    none = ~valid.any(dim=1)

    def log_sum(values: Tensor) -> Tensor:
        counted = values.masked_fill(~valid, -torch.inf).masked_fill(none[:, None], 0.0)
        return torch.logsumexp(counted, dim=1).masked_fill(none, -torch.inf)

    tilt = beta * (logits if backprop_weights else logits.detach())
    return [log_sum(logits + tilt), log_sum(tilt), log_sum(torch.zeros_like(logits))]

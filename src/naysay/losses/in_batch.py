"""The rest of the batch as negatives, in little memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_number, check_whole, public, raise_invalid
from naysay.losses._batch import as_partner, as_vectors, label_pair
from naysay.losses._blocks import BLOCK, blockwise
from naysay.losses._columns import columns
from naysay.losses._contrast import Contrast
from naysay.losses._inputs import as_mask, as_temperature, computing
from naysay.losses.debiased import check_debiasing, floor_of


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
    labels: Any = None,
    key_labels: Any = None,
    prior: float = 0.0,
    beta: float = 0.0,
    least: float = -1.0,
    through: bool = True,
    block: int = BLOCK,
) -> Tensor:
    """InfoNCE of each anchor against all keys, (N,), without the (N, M) matrix of scores.

    For two views of a batch, in_batch(z, partner=...) with z of both is NT-Xent. For both directions of pairs take the
    mean of in_batch(a, b) and in_batch(b, a).

    Memory: the block, and one gradient for each input. Time: three products of N x M x d, as the plain form takes, and
    two more if there are several blocks and rows carry different factors into the backward pass (.mean() and .sum() do
    not). Exact; differentiable once. A function given as mask or weights is called once for each block, and again in
    that case.

    Chen, Kornblith, Norouzi, Hinton. A Simple Framework for Contrastive Learning of Visual Representations. ICML 2020;
    the other forms: see `debiased`, `hardness` and `eliminate`.

    Args:
        anchors: (N, d); scores are dot products, so normalise first for a cosine.
        keys: (M, d), or None: the anchors are their own keys, and none is a negative of itself.
        partner: (N,) which key is the anchor's positive; None: key i is that of anchor i.
        negatives: (N, K, d) further negatives, negative_mask (N, K) bool True where one counts.
        share_negatives: False: an anchor's further negatives are its own. True: they are keys for all, after the M.
        temperature: Above 0: a number, or a tensor of one number, which may be learnt.
        mask: True where a key may be a negative: (M,), (N, M), or a function of a slice of rows that answers with
            (rows, M). The positive always counts.
        weights: At least 0, in the same three shapes.
        log_q: (M,) log-probability with which each key came into the batch, as in `info_nce`.
        labels: (N,) or (G, N), key_labels (M,) or (G, M): keys of the anchor's own label are left out, -1 matches
            nothing; over G granularities, the mean of the losses. Without keys, labels serve for both.
        prior: Share of false negatives, as in `debiased`.
        least: The lowest score there can be.
        beta: How much harder negatives count, as in `hardness`.
        through: The same.
        block: Scores held at once.

    Example:
        >>> import torch
        >>> in_batch(torch.eye(3), torch.eye(3))    # log(e + 2) - 1
        tensor([0.5514, 0.5514, 0.5514])
    """
    check_debiasing(prior, least)
    check_number("beta", beta, at_least=0, finite=True)
    check_whole("block", block, 1)
    given = as_vectors("anchors", anchors)
    scale = as_temperature(temperature, given)
    right = given if keys is None else as_vectors("keys", keys, given)
    own, rows, device = keys is None, len(given), given.device
    pairs = as_partner(partner, rows, len(right), device, own=own)
    left, right = given.to(computing(given)) / scale, right.to(computing(given))
    spare, row_inputs = None, [torch.as_tensor(floor_of(least, scale), dtype=left.dtype, device=device).expand(rows)]
    if negatives is not None:
        further = as_vectors("negatives", negatives, given, middle=True).to(left.dtype)
        valid = torch.ones(further.shape[:2], dtype=torch.bool, device=device)
        if negative_mask is not None:
            valid = as_mask(negative_mask, tuple(further.shape[:2]), device, "negative_mask")
        if share_negatives:
            spare = torch.cat([torch.ones(len(right), dtype=torch.bool, device=device), valid.flatten()])
            right = torch.cat([right, further.flatten(0, 1)])
        elif log_q is not None:
            raise_invalid("log_q", "None with negatives of an anchor's own", "log_q", "Their own is not known.")
        else:
            row_inputs += _log_sums(torch.einsum("nd,nkd->nk", left, further), valid, beta, through=through)
    elif negative_mask is not None:
        raise_invalid("negative_mask", "given with negatives", "a mask without them")
    size = len(right)
    same: tuple[Tensor | None, Tensor | None] = (None, None)
    if labels is not None:
        same = label_pair(labels, key_labels, rows, size, device, own=own)
    elif key_labels is not None:
        raise_invalid("key_labels", "given with labels", "key_labels without them")
    found = columns(rows, size, left, own=own, mask=mask, weights=weights, log_q=log_q, spare=spare)
    form = Contrast(found, pairs, *same, prior, beta, through)
    return blockwise(left, right, torch.stack(row_inputs), form, block).to(given.dtype)


def _log_sums(logits: Tensor, valid: Tensor, beta: float, *, through: bool) -> list[Tensor]:
    """(N,) each: log sums of e^{(1 + beta) s}, of e^{beta s} and of 1 over valid slots, -inf where there are none."""
    none = ~valid.any(dim=1)

    def log_sum(values: Tensor) -> Tensor:
        counted = values.masked_fill(~valid, -torch.inf).masked_fill(none[:, None], 0.0)
        return torch.logsumexp(counted, dim=1).masked_fill(none, -torch.inf)

    tilt = beta * (logits if through else logits.detach())
    return [log_sum(logits + tilt), log_sum(tilt), log_sum(torch.zeros_like(logits))]

"""Elimination of detected false negatives: they leave the denominator."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._batch import as_partner, own_batch
from naysay.losses._blocks import BLOCK
from naysay.losses._contrast import Contrast


@public
def eliminate(
    z: Tensor,
    partner: Any,
    labels: Any,
    *,
    temperature: Any,
    keys: Tensor | None = None,
    key_labels: Any = None,
    mask: Any = None,
    weights: Any = None,
    block: int = BLOCK,
) -> Tensor:
    """InfoNCE without the negatives that carry the anchor's own label, (N,): Eq. 3 of the paper.

        -log( e^{z_i.z_i'/t} / (e^{z_i.z_i'/t} + sum over j with y_j != y_i of w_ij e^{z_i.z_j/t}) )

    With no label accepted it is plain InfoNCE. A row whose negatives are all eliminated gives 0.

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.

    Args:
        z: (N, d), as given: normalise first for a cosine.
        partner: (N,) i', the row of i's positive.
        labels: (N,) pseudo-labels, or (G, N) for G granularities: the mean of the G losses. -1 is no label and
            matches nothing, not even -1. The partner stays whatever its label.
        temperature: T, above 0: a number, or a tensor of one number, which may be learnt.
        keys: (M, d) more negatives, of a queue, with key_labels (M,) or (G, M); without, they have no label.
        mask: True where a column may be a negative, weights at least 0: (N + M,), (N, N + M), or a function of a
            slice of rows that answers with (rows, N + M); columns are z, then keys. With a queue, mask the anchor's
            own older entries: mask=lambda rows: ids[rows, None] != ids_of_columns.
        block: Scores held at once; time and memory as in `in_batch`.

    Example:
        >>> import torch
        >>> z = torch.eye(4)
        >>> eliminate(z, [1, 0, 3, 2], [7, 7, 7, -1], temperature=1.0)    # log 2 has one negative left, log 3 has two
        tensor([0.6931, 0.6931, 0.0000, 1.0986])
    """
    ready = own_batch(
        z,
        labels,
        temperature=temperature,
        keys=keys,
        key_labels=key_labels,
        mask=mask,
        weights=weights,
        block=block,
    )
    rows = len(ready.left)
    pairs = as_partner(partner, rows, rows, ready.left.device, own=True)
    return ready.losses(Contrast(ready.columns, pairs, ready.labels, ready.key_labels))

"""Elimination of detected false negatives: they leave the denominator."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._blocks import BLOCK, own_batch
from naysay.losses._forms import Contrast


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
    """Compute InfoNCE without the negatives that have the anchor's own label: Eq. 3 of the paper.

        -log( e^{z_i.z_i'/t} / (e^{z_i.z_i'/t} + sum over j with y_j != y_i of w_ij e^{z_i.z_j/t}) )

    Without labels it is plain InfoNCE. A row whose negatives are all eliminated gives 0.

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.

    Args:
        z: (N, d), used as given: normalise first for cosines.
        partner: (N,) i', the row of i's positive, which stays whatever its label.
        labels: (N,) pseudo-labels, or (G, N) for G granularities: the mean of the G losses. -1 is no label and
            matches nothing, not even -1.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        keys: (M, d) more columns, of a queue for example.
        key_labels: (M,) or (G, M) labels of the keys; without them keys have no label.
        mask: True where a column may be a negative: (N + M,), (N, N + M), or a function of a slice of rows that
            returns (rows, N + M); columns are z, then keys. With a queue, mask the anchor's own older entries:
            mask=lambda rows: ids[rows, None] != ids_of_columns.
        weights: At least 0, in the same three shapes.
        block: Scores in memory at once; time and memory as in `in_batch`.

    Returns:
        (N,) losses, unreduced.

    Examples:
        >>> import torch
        >>> z = torch.eye(4)
        >>> eliminate(z, [1, 0, 3, 2], [7, 7, 7, -1], temperature=1.0)    # log 2: one negative left
        tensor([0.6931, 0.6931, 0.0000, 1.0986])
    """
    ready = own_batch(z, labels, temperature, keys, key_labels, mask, weights, block)
    return ready.losses(Contrast(ready.columns, ready.partner(partner), ready.labels, ready.key_labels))

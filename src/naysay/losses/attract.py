"""Attraction of detected false negatives: they join the positives."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._batch import as_partner, own_batch
from naysay.losses._blocks import BLOCK
from naysay.losses._gather import Gather


@public
def attract(
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
    """The mean over positives of -log softmax, where all of the anchor's own label are positives, (N,): Eq. 4.

        1/|P_i| sum over p in P_i of -log( e^{z_i.z_p/t} / sum over s != i of w_is e^{z_i.z_s/t} )

    P_i holds the partner and every column with i's label; they stay in the denominator. The arguments are those of
    `eliminate`. A weight counts a column that often, among the positives too.

    With no label accepted it is plain InfoNCE. The gradient in a positive that is near already can push it away: its
    coefficient is 1/|P_i| minus its softmax, which may be negative, and is not clamped.

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.

    Example:
        >>> import torch
        >>> z = torch.eye(4)
        >>> attract(z, [1, 0, 3, 2], [7, 7, -1, -1], temperature=1.0)    # all scores are 0: log 3
        tensor([1.0986, 1.0986, 1.0986, 1.0986])
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
    return ready.losses(Gather(ready.columns, ready.labels, ready.key_labels, partner=pairs))

"""Attraction of detected false negatives: they join the positives."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import public
from naysay.losses._blocks import BLOCK, own_batch
from naysay.losses._forms import Gather


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
    """Compute the mean over positives of -log softmax, where all columns of the anchor's label are positives: Eq. 4.

        1/|P_i| sum over p in P_i of -log( e^{z_i.z_p/t} / sum over s != i of w_is e^{z_i.z_s/t} )

    P_i has the partner and every column with i's label; they stay in the denominator. Without labels it is plain
    InfoNCE. The coefficient of a positive in the gradient is 1/|P_i| minus its softmax, which is negative for a
    positive that is already close: it is then pushed away. That is not clamped.

    Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022.

    Args:
        z: (N, d), used as given: normalise first for cosines.
        partner: (N,) the row of each anchor's positive.
        labels: (N,) pseudo-labels, or (G, N) for G granularities: the mean of the G losses. -1 matches nothing.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        keys: (M, d) more columns, of a queue for example.
        key_labels: (M,) or (G, M) labels of the keys; without them keys have no label.
        mask: True where a column counts, as in `eliminate`.
        weights: How often a column counts, also among the positives; as in `eliminate`.
        block: Scores in memory at once; time and memory as in `in_batch`.

    Returns:
        (N,) losses, unreduced.

    Examples:
        >>> import torch
        >>> z = torch.eye(4)
        >>> attract(z, [1, 0, 3, 2], [7, 7, -1, -1], temperature=1.0)    # all scores are 0: log 3
        tensor([1.0986, 1.0986, 1.0986, 1.0986])
    """
    ready = own_batch(z, labels, temperature, keys, key_labels, mask, weights, block)
    return ready.losses(Gather(ready.columns, ready.labels, ready.key_labels, partner=ready.partner(partner)))

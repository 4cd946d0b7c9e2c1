"""Supervised contrast: everything of the anchor's class is a positive."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_one_of
from naysay.losses.batch import own_batch
from naysay.losses.blocks import BLOCK
from naysay.losses.gather import Gather


def sup_con(
    z: Tensor,
    labels: Any,
    *,
    temperature: Any = 0.1,
    denominator: str = "all",
    keys: Tensor | None = None,
    key_labels: Any = None,
    mask: Any = None,
    weights: Any = None,
    block: int = BLOCK,
) -> Tensor:
    """The mean over an anchor's class P_i of -log( e^{z_i.z_p/t} / sum_s e^{z_i.z_s/t} ), (N,).

    z            (N, d), as given: normalise first for a cosine
    labels       (N,) classes, or (G, N) for G granularities: the mean of the losses. -1 is no class
    temperature  t, above 0: a number, or a tensor of one number, which may be learnt
    denominator  "all": over every s but i, as in the paper (its L_out). "negatives": over p and those of other classes,
                 so that positives do not compete: NT-Xent with labels
    keys         (M, d) further columns, with key_labels;  mask, weights, block   as in `eliminate`

    A row that is alone in its class gives 0. Over pairs instead of rows, weigh row i by |P_i|.

    Khosla et al. Supervised Contrastive Learning. NeurIPS 2020.

    >>> import torch
    >>> sup_con(torch.eye(3), [0, 0, 1], temperature=1.0)    # log 2 twice; the third is alone
    tensor([0.6931, 0.6931, 0.0000])
    """
    check_one_of("sup_con", "denominator", denominator, ("all", "negatives"))
    ready = own_batch(
        "sup_con",
        z,
        labels,
        temperature=temperature,
        keys=keys,
        key_labels=key_labels,
        mask=mask,
        weights=weights,
        block=block,
    )
    return ready.losses(Gather(ready.columns, ready.labels, ready.key_labels, apart=denominator == "negatives"))

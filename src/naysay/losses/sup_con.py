"""Supervised contrast: everything of the anchor's class is a positive."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from naysay.checks import check_one_of, public
from naysay.losses._blocks import BLOCK, own_batch
from naysay.losses._forms import Gather


@public
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
    """Compute the mean over an anchor's class P_i of -log( e^{z_i.z_p/t} / sum_s e^{z_i.z_s/t} ).

    A row that is alone in its class gives 0. For a mean over pairs instead of rows, weight row i by |P_i|.

    Khosla et al. Supervised Contrastive Learning. NeurIPS 2020.

    Args:
        z: (N, d), used as given: normalise first for cosines.
        labels: (N,) classes, or (G, N) for G granularities: the mean of the losses. -1 is no class.
        temperature: t, above 0: a number, or a tensor of one number, which may be learned.
        denominator: "all": over every s but i, as in the paper (its L_out). "negatives": over p and those of other
            classes, so that positives do not compete: NT-Xent with labels.
        keys: (M, d) more columns, of a queue for example.
        key_labels: (M,) or (G, M) classes of the keys; without them keys have no class.
        mask: True where a column counts, as in `eliminate`.
        weights: At least 0, as in `eliminate`.
        block: Scores in memory at once; time and memory as in `in_batch`.

    Returns:
        (N,) losses, unreduced.

    Examples:
        >>> import torch
        >>> sup_con(torch.eye(3), [0, 0, 1], temperature=1.0)    # log 2 twice; the third is alone
        tensor([0.6931, 0.6931, 0.0000])
    """
    check_one_of("denominator", denominator, ("all", "negatives"))
    ready = own_batch(z, labels, temperature, keys, key_labels, mask, weights, block)
    return ready.losses(Gather(ready.columns, ready.labels, ready.key_labels, apart=denominator == "negatives"))

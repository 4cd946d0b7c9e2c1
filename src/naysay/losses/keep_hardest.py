"""Which losses of a batch, or which slots of a row, are hard enough to train on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_number, check_whole, public, raise_invalid
from naysay.kernels.threads import in_rows
from naysay.kernels.top import highest_of_groups
from naysay.losses._inputs import as_indices, as_mask, as_scores, check_finite


@public
@torch.no_grad()
def keep_hardest(values: Tensor, keep: float, *, groups: Any = None, mask: Any = None) -> Tensor:
    """Return a weight of 1 for the highest values and of 0 for the rest, without gradient.

    For losses (B,) of a batch, (losses * keep_hardest(losses, 0.5)).sum() trains on the harder half. For values (B, K)
    of slots, the choice is made row by row, for `weights` of a loss. Of equal values the first ones stay. With
    `groups` at most one of each group stays, its hardest: near-duplicates do not fill the choice.

    Hard examples and wrong labels have high losses alike: with noisy labels this trains on the noise.

    Shrivastava, Gupta, Girshick. Training Region-based Object Detectors with Online Hard Example Mining. CVPR 2016
    (its groups are overlapping regions); Yuan, Yang, Zhang. Hard-Aware Deeply Cascaded Embedding. ICCV 2017 (each
    head keeps a share of the pairs; the paper's heads see what the head before found hard, its code sorts all anew).

    Args:
        values: (B,) or (B, K), higher is harder.
        keep: How many stay: a whole number of at least 1, or a share in (0, 1], rounded down; a share is a float.
        groups: Whole numbers of the shape of `values`; -1 is no group.
        mask: Bool, of that shape: True where there is a value. Shares are of these.

    Returns:
        Weights of the shape and dtype of `values`.

    Examples:
        >>> import torch
        >>> keep_hardest(torch.tensor([0.1, 0.9, 0.8, 0.4]), 2, groups=[0, 1, 1, -1])
        tensor([0., 1., 0., 1.])
    """
    rows = as_scores("values", values, (None,) * max(1, min(getattr(values, "ndim", 1), 2)))
    shape, device = tuple(rows.shape), rows.device
    valid = torch.ones(shape, dtype=torch.bool, device=device) if mask is None else as_mask(mask, shape, device)
    check_finite("values", rows, valid)
    rows, valid = (part.reshape(-1, shape[-1]) for part in (rows, valid))
    if isinstance(keep, float):
        share = check_number("keep", keep, above=0, at_most=1)
        count = (share * valid.sum(dim=1) + 1e-9).floor()[:, None].long()  # 0.1 of 30 is 3, not 2.99...
    else:
        count = torch.full((len(rows), 1), check_whole("keep", keep, 1), device=device)
    if groups is not None:
        group = as_indices("groups", groups, device)
        if tuple(group.shape) != shape:
            raise_invalid("groups", f"of shape {shape}", f"shape {tuple(group.shape)}")
        valid = valid & _hardest_of_group(rows, group.reshape(rows.shape), valid)
    return _highest(rows.masked_fill(~valid, -torch.inf), count).to(rows.dtype).reshape(shape)


def _highest(rows: Tensor, count: Tensor) -> Tensor:
    """(B, n) bool: the highest count[b] of row b, or all above -inf if there are fewer; of equal ones the first."""
    if rows.numel() == 0:
        return torch.zeros_like(rows, dtype=torch.bool)
    lowest_kept = _ascending(rows).gather(1, (rows.shape[1] - count).clamp(0, rows.shape[1] - 1))
    above = rows > lowest_kept
    equal = (rows == lowest_kept) & (rows > -torch.inf)
    n_equal_kept = count - above.sum(dim=1, keepdim=True)
    return above | (equal & (equal.cumsum(dim=1) <= n_equal_kept))


def _ascending(rows: Tensor) -> Tensor:
    """The values of each row in ascending order. NumPy's sort is several times quicker than torch's."""
    return rows.sort(dim=1).values if rows.device.type != "cpu" else to_torch(np.sort(to_numpy(rows), axis=1))


def _hardest_of_group(rows: Tensor, groups: Tensor, valid: Tensor) -> Tensor:
    """(B, n) bool: whether a slot is the hardest valid one of its group in its row; True for group -1."""
    values = to_numpy(rows.double() if rows.dtype in (torch.float16, torch.bfloat16) else rows)
    alone = torch.where(valid, groups, -1)
    first = np.empty(values.shape, np.bool_)
    in_rows(highest_of_groups, len(values), 4 * values.size, np.ascontiguousarray(values), to_numpy(alone), first)
    hardest: Tensor = to_torch(first, rows.device)
    return hardest

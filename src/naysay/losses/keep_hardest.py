"""Which losses of a batch, or which slots of a row, are hard enough to train on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from naysay.checks import check_number, check_whole, public, raise_invalid
from naysay.losses._inputs import as_indices, as_mask, as_scores, check_finite


@public
@torch.no_grad()
def keep_hardest(values: Tensor, keep: float, *, groups: Any = None, mask: Any = None) -> Tensor:
    """Return a weight of 1 for the highest values and of 0 for the rest, without gradient.

    For losses (B,) of a batch, (losses * keep_hardest(losses, 0.5)).sum() trains on the harder half. For values (B, K)
    of slots, the choice is made row by row, for `weights` of a loss. Of equal values the first ones stay. With
    `groups` at most one of each group stays, its hardest: near-duplicates do not fill the choice. Wrong labels have
    high losses, too: with noisy labels this trains on the noise.

    Shrivastava et al. Online Hard Example Mining. CVPR 2016; Yuan et al. Hard-Aware Deeply Cascaded. ICCV 2017.

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
        count = (share * valid.sum(dim=1, keepdim=True) + 1e-9).floor()  # 0.1 of 30 is 3, not 2.99...
    else:
        count = torch.full((len(rows), 1), check_whole("keep", keep, 1), device=device)
    hardest_first = rows.masked_fill(~valid, -torch.inf).argsort(dim=1, descending=True, stable=True)
    eligible = valid.gather(1, hardest_first)
    if groups is not None:
        group = as_indices("groups", groups, device)
        if tuple(group.shape) != shape:
            raise_invalid("groups", f"of shape {shape}", f"shape {tuple(group.shape)}")
        group = group.reshape(rows.shape).masked_fill(~valid, -1)
        eligible = eligible & ~_met_before(group.gather(1, hardest_first))
    chosen = eligible & (eligible.cumsum(dim=1) <= count)
    return torch.zeros_like(rows).scatter(1, hardest_first, chosen.to(rows.dtype)).reshape(shape)


def _met_before(groups: Tensor) -> Tensor:
    """(B, n) bool: whether a group stands in an earlier slot of its row; False for -1."""
    in_order, places = groups.sort(dim=1, stable=True)
    same = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    return torch.zeros_like(groups, dtype=torch.bool).scatter(1, places[:, 1:], same)

"""Squared loss over all items: every missing pair is a negative of small weight, without sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.arrays import to_numpy
from naysay.checks import check_number, public, raise_invalid
from naysay.losses._inputs import as_indices, as_vectors, as_weights, check_all, computing_dtype, without_autocast
from naysay.losses.check_values import values_are_checked
from naysay.positives import IGNORE, Positives


@public
def all_items(anchors: Tensor, items: Tensor, positives: Any, *, weight: Any = 0.1) -> Tensor:
    """Compute sum over all items i of c_i (y_i - r_i)^2: y = 1 and c = 1 for positives, y = 0 and c = weight else.

    r_i = a.v_i; an ignored pair has c = 0.

    The sum over all items of c_i r_i^2 is a' (V' C V) a, one matrix of (d, d) for the whole batch, so that
    the cost is O((B + n) d^2 + positives * d), not O(B n d); for the squared loss only. With weight 0 the optimum is
    the trivial r = 1. Chen et al. ENMF. TOIS 2020 (pass a * h as the anchors); Yu et al. SDM 2017.

    Args:
        anchors: (B, d).
        items: (n, d) all items.
        positives: A pair (known, users): a `Positives`, and (B,) the anchor ids of the batch; or (rows, ids), two
            arrays of one length: item ids[j] is a positive of anchors[rows[j]].
        weight: c of the other items, at least 0: a number, or (n,), such as popularity^0.5 scaled.

    Returns:
        (B,) losses, unreduced.

    Examples:
        >>> import torch
        >>> all_items(torch.ones(1, 1), torch.tensor([[0.5], [2.0]]), ([0], [0]), weight=0.1)    # 0.25 + 0.1 * 4
        tensor([0.6500])
    """
    given = as_vectors("anchors", anchors)
    left = given.to(computing_dtype(given))
    right = as_vectors("items", items, given).to(left.dtype)
    if isinstance(weight, int | float):
        cost = left.new_full((len(right),), check_number("weight", weight, at_least=0, finite=True))
    else:
        cost = as_weights(weight, (len(right),), left, parameter="weight")
    known, ignored = _pairs(positives, len(left), len(right), given.device)
    with without_autocast(left):
        every = torch.einsum("bd,de,be->b", left, right.T @ (cost[:, None] * right), left)
    own = _scores(left, right, known)
    as_missing = cost[known[1]] * own**2  # what `every` counts of a positive
    losses = every.index_add(0, known[0], (1.0 - own) ** 2 - as_missing)
    losses = losses.index_add(0, ignored[0], -cost[ignored[1]] * _scores(left, right, ignored) ** 2)
    return losses.to(given.dtype)


def _scores(left: Tensor, right: Tensor, pairs: tuple[Tensor, Tensor]) -> Tensor:
    """The dot product of each pair of a row and an item."""
    rows, ids = pairs
    return (left[rows] * right[ids]).sum(dim=1)


def _pairs(
    positives: Any, n_rows: int, n_items: int, device: Any
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """(rows, ids) of the positives and of the ignored pairs, checked; a pair that comes twice counts once."""
    if not isinstance(positives, tuple | list) or len(positives) != 2:
        rule = "a pair (known, users) of a Positives and ids, or (rows, ids)"
        raise_invalid("positives", rule, f"a {type(positives).__name__}")
    ignored: Any = ([], [])
    if isinstance(positives[0], Positives):
        positives, ignored = _pairs_of(positives[0], positives[1], n_rows)
    return _checked(positives, n_rows, n_items, device), _checked(ignored, n_rows, n_items, device)


def _checked(pairs: Any, n_rows: int, n_items: int, device: Any) -> tuple[Tensor, Tensor]:
    """Distinct (rows, ids) on the device."""
    rows, ids = (as_indices("positives", part, device) for part in pairs)
    if rows.ndim != 1 or rows.shape != ids.shape:
        raise_invalid("positives", "two arrays of one length", f"shapes {tuple(rows.shape)} and {tuple(ids.shape)}")
    for what, values, size in (("rows", rows, n_rows), ("ids", ids, n_items)):
        if values_are_checked(values):
            check_all("positives", values, (values >= 0) & (values < size), f"{what} from 0 to {size - 1}")
    if not len(rows):
        return rows, ids
    unique = torch.unique(rows * n_items + ids)
    return unique // n_items, unique % n_items


def _pairs_of(known: Positives, users: Any, n_rows: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """(rows, ids) of the positives of these anchors, and of their ignored pairs."""
    anchors = np.asarray(to_numpy(users))
    counts = known.count(anchors, relation="any")
    if len(anchors) != n_rows:
        raise_invalid("positives", f"with {n_rows} anchor ids, one for each row", len(anchors))
    rows = np.repeat(np.arange(n_rows), counts)
    place_in_row = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = known.indptr[anchors[rows]] + place_in_row
    ids = known.indices[places].astype(np.int64)
    ignored = np.zeros(len(ids), bool) if known.relation is None else known.relation[places] == IGNORE
    return (rows[~ignored], ids[~ignored]), (rows[ignored], ids[ignored])

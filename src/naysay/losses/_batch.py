"""What losses over vectors accept: vectors, partners and labels; and a batch whose keys are its own rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from naysay.arrays import to_numpy
from naysay.checks import check_whole, first_bad, raise_invalid
from naysay.losses._blocks import Form, blockwise
from naysay.losses._columns import Columns, columns
from naysay.losses._inputs import (
    as_indices,
    as_labels,
    as_scores,
    as_temperature,
    check_alike,
    check_finite,
    computing,
)


def as_vectors(parameter: str, values: Any, like: Tensor | None = None, *, middle: bool = False) -> Tensor:
    """Finite floating vectors (n, d), or (n, K, d) if `middle`, with d, dtype and device of `like`."""
    width = None if like is None else like.shape[-1]
    shape = (None if like is None else len(like), None, width) if middle else (None, width)
    vectors = as_scores(parameter, values, shape)
    if like is not None:
        check_alike(parameter, vectors, like, "the anchors")
    check_finite(parameter, vectors)
    return vectors


def as_partner(values: Any, rows: int, size: int, device: Any, *, own: bool) -> Tensor:
    """(rows,) the column of each row's positive; without values, column i for row i."""
    if values is None:
        if own:
            raise_invalid(
                "partner", "given without keys", "None", "It says which anchor is the positive of each anchor."
            )
        if size < rows:
            raise_invalid("keys", f"at least {rows}, one positive for each anchor", size, "Or pass partner.")
        return torch.arange(rows, device=device)
    partner = as_indices("partner", values, device)
    if tuple(partner.shape) != (rows,):
        raise_invalid("partner", f"of shape ({rows},)", f"shape {tuple(partner.shape)}")
    bad = (partner < 0) | (partner >= size)
    if bad.any():
        raise_invalid("partner", f"between 0 and {size - 1}", first_bad(to_numpy(partner), to_numpy(bad)))
    if own:
        bad = partner == torch.arange(rows, device=device)
        if bad.any():
            raise_invalid("partner", "another row than the row itself", first_bad(to_numpy(partner), to_numpy(bad)))
    return partner


def label_pair(labels: Any, key_labels: Any, rows: int, size: int, device: Any, *, own: bool) -> tuple[Tensor, Tensor]:
    """(G, rows) labels of the anchors and (G, size) of all columns.

    Args:
        own: Whether the first columns are the anchors themselves; then key_labels are those of the columns after
            them, and none if they are missing.
    """
    mine = as_labels("labels", labels, rows, device)
    further = size - rows if own else size
    if key_labels is None:
        if not own:
            raise_invalid("key_labels", "given with labels", "None")
        theirs = torch.full((len(mine), further), -1, device=device)
    else:
        theirs = as_labels("key_labels", key_labels, further, device)
    if len(theirs) != len(mine):
        raise_invalid("key_labels", f"of {len(mine)} granularities, as labels are", len(theirs))
    return mine, torch.cat([mine, theirs], dim=1) if own else theirs


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A batch whose columns are its own rows, then keys: what `eliminate`, `attract` and `sup_con` start from.

    left (N, d) divided by the temperature, right (N + M, d), labels (G, N), key_labels (G, N + M)
    """

    left: Tensor
    right: Tensor
    columns: Columns
    labels: Tensor
    key_labels: Tensor
    block: int
    dtype: torch.dtype

    def losses(self, form: Form) -> Tensor:
        """(N,) the form's losses in the caller's dtype."""
        return blockwise(self.left, self.right, None, form, self.block).to(self.dtype)


def own_batch(
    z: Any,
    labels: Any,
    *,
    temperature: Any,
    keys: Any,
    key_labels: Any,
    mask: Any,
    weights: Any,
    block: int,
) -> Batch:
    """Check all of a batch and make it ready."""
    check_whole("block", block, 1)
    given = as_vectors("z", z)
    scale = as_temperature(temperature, given)
    if keys is None and key_labels is not None:
        raise_invalid("key_labels", "given with keys", "key_labels without them")
    right = given if keys is None else torch.cat([given, as_vectors("keys", keys, given)])
    rows, size, left = len(given), len(right), given.to(computing(given)) / scale
    return Batch(
        left,
        right.to(left.dtype),
        columns(rows, size, left, own=True, mask=mask, weights=weights),
        *label_pair(labels, key_labels, rows, size, given.device, own=True),
        block,
        given.dtype,
    )

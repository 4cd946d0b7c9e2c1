"""Which columns of a batch are candidates for each row, known a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from naysay.arrays import is_torch
from naysay.checks import as_array, raise_invalid
from naysay.losses._inputs import as_log_q, as_mask, as_weights


@final
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Masks and weights of N rows by M columns, of which no more than a block is ever made.

    Args:
        own: Whether column i is row i itself, which is no candidate.
        mask: None, (M,) or (N, M) bool, or a function of a slice of rows that answers with (rows, M) bool.
        weights: None, (M,) or (N, M) numbers, or a function of a slice of rows.
        log_q: None or (M,): the log-probability with which each column was drawn.
        spare: None or (M,) bool: False for a column that holds nothing, whoever asks.
    """

    rows: int
    size: int
    like: Tensor
    own: bool = False
    mask: Any = None
    weights: Any = None
    log_q: Tensor | None = None
    spare: Tensor | None = None

    def hidden(self, rows: slice) -> Tensor | None:
        """(M,) or (rows, M) bool, True where a column is masked; None if none is."""
        mask: Tensor | None = self.mask
        if callable(self.mask):
            mask = as_mask(self.mask(rows), self.shape(rows), self.like.device)
        elif mask is not None and mask.ndim == 2:
            mask = mask[rows]
        if self.spare is not None:
            mask = self.spare if mask is None else mask & self.spare
        return None if mask is None else ~mask

    def log_weights(self, rows: slice) -> Tensor | None:
        """(M,) or (rows, M) log w_j - log q_j, -inf for a weight of 0; None if all are 1."""
        weights = self.weights
        if callable(weights):
            weights = as_weights(weights(rows), self.shape(rows), self.like).log()
        elif weights is not None:
            weights = (weights if weights.ndim == 1 else weights[rows]).log()
        counted: Tensor | None = weights
        if self.log_q is None:
            return counted
        return -self.log_q if counted is None else counted - self.log_q

    def blind(self, logits: Tensor, rows: slice, partner: Tensor | None = None) -> Tensor:
        """Fill -inf, in place, in a row's own column and in its partner's."""
        here = torch.arange(len(logits), device=logits.device)
        if self.own:
            logits[here, here + rows.start] = -torch.inf
        if partner is not None:
            logits[here, partner] = -torch.inf
        return logits

    def shape(self, rows: slice) -> tuple[int, int]:
        """The shape of the block of these rows."""
        return rows.stop - rows.start, self.size


def columns(
    rows: int,
    size: int,
    like: Tensor,
    *,
    own: bool,
    mask: Any = None,
    weights: Any = None,
    log_q: Any = None,
    spare: Tensor | None = None,
) -> Columns:
    """Check what a user gave as mask, weights and log_q; functions are checked when they are called."""
    return Columns(
        rows=rows,
        size=size,
        like=like.detach(),
        own=own,
        mask=_either("mask", mask, rows, size, lambda value, shape: as_mask(value, shape, like.device)),
        weights=_either("weights", weights, rows, size, lambda value, shape: as_weights(value, shape, like)),
        log_q=None if log_q is None else as_log_q(log_q, (size,), like),
        spare=spare,
    )


def _either(parameter: str, values: Any, rows: int, size: int, read: Callable[[Any, tuple[int, ...]], Tensor]) -> Any:
    """A function as it is; an array of one row for all, or of one for each."""
    if values is None or (callable(values) and not is_torch(values)):
        return values
    array = values if is_torch(values) else as_array(parameter, values)
    shape = tuple(array.shape)
    if shape not in ((size,), (rows, size)):
        rule = f"of shape ({size},) or ({rows}, {size}), or a function of a slice of rows"
        raise_invalid(parameter, rule, f"shape {shape}")
    return read(array, shape)

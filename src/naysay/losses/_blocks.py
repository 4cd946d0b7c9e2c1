"""Losses over a matrix of scores that is never stored: blocks of rows, forward and backward, exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from naysay.arrays import is_torch, to_numpy
from naysay.checks import as_array, check_whole, first_bad, raise_invalid
from naysay.losses import _inputs

# A form turns a block of scores, in place, into the gradient of its rows' losses in those scores. It returns the
# losses (rows,) and their gradients in the row inputs (R, rows), if there are any.
Form = Callable[[Tensor, slice, Tensor | None], tuple[Tensor, Tensor | None]]

BLOCK = 1 << 22  # scores in memory at once; larger blocks leave the cache and are not faster
_MIN_ROWS = 16  # of a block, however many columns there are


def blockwise(left: Tensor, right: Tensor, row_inputs: Tensor | None, form: Form, block: int, parameter: str) -> Tensor:
    """Return (N,) losses of rows left @ right.T, (N, M), with about `block` scores in memory at a time.

    The gradient of a row's loss in its scores is known in the forward pass, up to the factor g_i from the backward
    pass. So the forward pass also computes both products with it, for g = 1: three products in all, as many as the
    plain form has. The factor of a row scales that row of the left gradient. The right gradient sums over rows: the
    stored one is used if g is the same for all rows, as after .mean() or .sum(), and recomputed otherwise, with two
    products more. A matrix of at most one block is stored instead. left (N, d), right (M, d) and row_inputs (R, N) may
    take gradients; `parameter` is the caller's name for the vectors.
    """
    step = max(_MIN_ROWS, block // max(len(right), 1))
    losses: Tensor = _Blocks.apply(  # type: ignore[no-untyped-call]
        left, right, row_inputs, form, step, torch.is_grad_enabled()
    )
    good = losses.detach().isfinite()
    if not good.all():
        got = f"a loss of {first_bad(to_numpy(losses), to_numpy(~good))}"
        raise_invalid(parameter, "small enough for finite dot products", got, "Normalise, or raise the temperature.")
    return losses


class _Blocks(torch.autograd.Function):
    """The autograd node of `blockwise`."""

    @staticmethod
    def forward(  # wanted: whether gradients are enabled, which needs_input_grad does not say
        ctx: Any, left: Tensor, right: Tensor, row_inputs: Tensor | None, form: Form, step: int, wanted: object
    ) -> Tensor:
        """Losses, and the gradients for a factor of 1."""
        needs = [bool(wanted) and need for need in ctx.needs_input_grad[:3]]
        losses = left.new_empty(len(left))
        by_left = torch.empty_like(left) if needs[0] else None
        whole = 0 < len(left) <= step  # one block: it is stored, and the right gradient computed with the factors
        by_right = torch.zeros_like(right) if needs[1] and not whole else None
        by_row = torch.empty_like(row_inputs) if row_inputs is not None and needs[2] else None
        for rows, scores in _scores(left, right, step):
            losses[rows], in_rows = form(scores, rows, None if row_inputs is None else row_inputs[:, rows])
            if by_left is not None:
                torch.mm(scores, right, out=by_left[rows])
            if by_right is not None:
                by_right.addmm_(scores.T, left[rows])
            if by_row is not None and in_rows is not None:
                by_row[:, rows] = in_rows
        kept = scores if needs[1] and whole else None
        ctx.save_for_backward(left, right, row_inputs, by_left, by_right, by_row, kept)
        ctx.form, ctx.step = form, step
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Any, ...]:
        """The stored gradients times the factor; the right one is recomputed if the factor differs between rows."""
        left, right, row_inputs, by_left, by_right, by_row, kept = ctx.saved_tensors
        if kept is not None:
            by_right = kept.T @ (left * factor[:, None])
        elif by_right is not None and len(factor):
            if (factor == factor[0]).all():
                by_right = by_right * factor[0]
            else:
                by_right = torch.zeros_like(right)
                for rows, scores in _scores(left, right, ctx.step):
                    ctx.form(scores, rows, None if row_inputs is None else row_inputs[:, rows])
                    by_right.addmm_(scores.T, left[rows] * factor[rows, None])
        return (
            None if by_left is None else by_left * factor[:, None],
            by_right,
            None if by_row is None else by_row * factor,
            None,
            None,
            None,
        )


def _scores(left: Tensor, right: Tensor, step: int) -> Any:
    """Slices of rows and their scores, all in one buffer."""
    buffer = left.new_empty(min(step, len(left)), len(right))
    for start in range(0, len(left), step):
        rows = slice(start, min(start + step, len(left)))
        yield rows, torch.mm(left[rows], right.T, out=buffer[: rows.stop - start])


def soften(logits: Tensor, origin: Any = 0.0) -> tuple[Tensor, Tensor]:
    """Turn rows of logits, in place, into e^{logits - max}; return (log sum e^logits - origin, sum e^{logits - max}).

    A row of -inf has a log sum of -inf. Divide by the second to get the softmax; it is never 0.
    """
    top = logits.amax(dim=1, keepdim=True)
    top = top.masked_fill(top == -torch.inf, 0.0)
    total = logits.sub_(top).exp_().sum(dim=1)
    return total.log() + (top[:, 0] - origin), total.masked_fill(total == 0, 1.0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Which of M columns are candidates of N rows, and their weights, computed a block of rows at a time."""

    size: int  # M
    like: Tensor  # of the dtype and device of the scores
    own: bool  # column i is row i itself, which is not a candidate
    mask: Any  # None, (M,) or (N, M) bool, or a function of a slice of rows that returns (rows, M)
    weights: Any  # the same, with numbers
    log_q: Tensor | None  # (M,)
    filled: Tensor | None  # (M,) bool: False for a column that is empty for all rows

    def hidden(self, rows: slice) -> Tensor | None:
        """(M,) or (rows, M) bool, True where a column is masked; None if none is."""
        mask: Tensor | None = self.mask
        if callable(self.mask):
            mask = _inputs.as_mask(self.mask(rows), self.shape(rows), self.like.device)
        elif mask is not None and mask.ndim == 2:
            mask = mask[rows]
        if self.filled is not None:
            mask = self.filled if mask is None else mask & self.filled
        return None if mask is None else ~mask

    def log_weights(self, rows: slice) -> Tensor | None:
        """(M,) or (rows, M) log w_j - log q_j, -inf for a weight of 0; None if all are 1."""
        weights = self.weights
        if callable(weights):
            weights = _inputs.as_weights(weights(rows), self.shape(rows), self.like).log()
        elif weights is not None:
            weights = (weights if weights.ndim == 1 else weights[rows]).log()
        log_weights: Tensor | None = weights
        if self.log_q is None:
            return log_weights
        return -self.log_q if log_weights is None else log_weights - self.log_q

    def exclude_self(self, logits: Tensor, rows: slice, partner: Tensor | None = None) -> Tensor:
        """Set a row's own column and its partner's to -inf, in place."""
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
    filled: Tensor | None = None,
) -> Columns:
    """Check mask, weights and log_q; the results of functions are checked when they are called."""
    mask = _per_column("mask", mask, rows, size, lambda value, shape: _inputs.as_mask(value, shape, like.device))
    weights = _per_column("weights", weights, rows, size, lambda value, shape: _inputs.as_weights(value, shape, like))
    log_q = None if log_q is None else _inputs.as_log_q(log_q, (size,), like)
    return Columns(size, like.detach(), own, mask, weights, log_q, filled)


def _per_column(
    parameter: str, values: Any, rows: int, size: int, read: Callable[[Any, tuple[int, ...]], Tensor]
) -> Any:
    """Return a function as it is, or a checked array (size,) or (rows, size)."""
    if values is None or (callable(values) and not is_torch(values)):
        return values
    array = values if is_torch(values) else as_array(parameter, values)
    shape = tuple(array.shape)
    if shape not in ((size,), (rows, size)):
        rule = f"of shape ({size},) or ({rows}, {size}), or a function of a slice of rows"
        raise_invalid(parameter, rule, f"shape {shape}")
    return read(array, shape)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A batch whose columns are its own rows, then keys: the input of `eliminate`, `attract` and `sup_con`."""

    left: Tensor  # (N, d), divided by the temperature
    right: Tensor  # (N + M, d)
    columns: Columns
    labels: Tensor  # (G, N)
    key_labels: Tensor  # (G, N + M)
    block: int
    dtype: torch.dtype  # of the result

    def partner(self, values: Any) -> Tensor:
        """Return (N,) the row of each row's positive, checked."""
        return _inputs.as_partner(values, len(self.left), len(self.left), self.left.device, own=True)

    def losses(self, form: Form) -> Tensor:
        """Return the (N,) losses of a form in the caller's dtype."""
        return blockwise(self.left, self.right, None, form, self.block, "z").to(self.dtype)


def own_batch(
    z: Any, labels: Any, temperature: Any, keys: Any, key_labels: Any, mask: Any, weights: Any, block: int
) -> Batch:
    """Check the inputs of a loss over a batch and prepare them."""
    check_whole("block", block, 1)
    given = _inputs.as_vectors("z", z)
    scale = _inputs.as_temperature(temperature, given)
    if keys is None and key_labels is not None:
        raise_invalid("key_labels", "given with keys", "key_labels without them")
    right = given if keys is None else torch.cat([given, _inputs.as_vectors("keys", keys, given)])
    rows, size, left = len(given), len(right), given.to(_inputs.computing_dtype(given)) / scale
    return Batch(
        left,
        right.to(left.dtype),
        columns(rows, size, left, own=True, mask=mask, weights=weights),
        *_inputs.label_pair(labels, key_labels, rows, size, given.device, own=True),
        block,
        given.dtype,
    )

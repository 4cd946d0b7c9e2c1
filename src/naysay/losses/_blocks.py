"""Losses over a matrix of scores that is never stored: blocks of rows, and the columns that each row may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from naysay.checks import as_array, check_whole, raise_invalid
from naysay.losses import _inputs as inputs

BLOCK = 1 << 20  # scores in memory at once; larger blocks leave the cache and are not faster
_MIN_ROWS = 16  # of a block, however many columns there are

# The losses (rows,) of a block of scores (rows, M): losses_of(scores, slice of rows, inputs of these rows).
LossesOf = Callable[..., Tensor]


def by_blocks(left: Tensor, right: Tensor, losses_of: LossesOf, block: int, *row_inputs: Tensor) -> Tensor:
    """Return (N,) losses of rows left (N, d) @ right (M, d).T, with about `block` scores in memory at a time.

    A matrix of at most one block is ordinary torch. With several blocks, the forward pass on the CPU also computes the
    gradients for a factor of 1 before it throws a block away: three products in all, as many as the plain form has.
    They are scaled in the backward pass if it has one factor for all rows, as after .mean() or .sum(), and computed
    again otherwise. Other devices, where a look at the factors would wait, and torch.compile use `checkpoint`, which
    computes the scores of a block again: four products.

    Args:
        left: (N, d).
        right: (M, d).
        losses_of: Losses of a block, in ordinary torch.
        block: Scores in memory at once.
        row_inputs: Tensors of N rows, of which `losses_of` gets its own. Gradients flow to these, to left and to right.
    """
    n_rows = len(left)
    if n_rows == 0:
        return _scores(left, right).sum(dim=1)  # no losses, but both sides take part in the backward pass
    step = max(_MIN_ROWS, block // max(len(right), 1))
    if n_rows <= step:
        return losses_of(_scores(left, right), slice(0, n_rows), *row_inputs)
    if left.device.type != "cpu" or torch.compiler.is_compiling():
        return _checkpointed(losses_of, step, left, right, row_inputs)
    losses: Tensor = _WithGradients.apply(  # type: ignore[no-untyped-call]
        losses_of, step, torch.is_grad_enabled(), left, right, *row_inputs
    )
    return losses


def _scores(left: Tensor, right: Tensor) -> Tensor:
    """(rows, M) the dot products, in the precision of the vectors."""
    with inputs.without_autocast(left):
        return left @ right.T


def _checkpointed(
    losses_of: LossesOf, step: int, left: Tensor, right: Tensor, row_inputs: tuple[Tensor, ...]
) -> Tensor:
    """The losses; the backward pass computes each block again."""

    def losses_of_block(start: int, part: Tensor, *parts: Tensor) -> Tensor:
        return losses_of(_scores(part, right), slice(start, start + len(part)), *parts)

    blocks = zip(*(torch.split(values, step) for values in (left, *row_inputs)), strict=True)
    losses = [
        checkpoint(losses_of_block, place * step, *parts, use_reentrant=False, preserve_rng_state=False)
        for place, parts in enumerate(blocks)
    ]
    return torch.cat(losses)


class _WithGradients(torch.autograd.Function):
    """Losses of several blocks, and their gradients at once."""

    @staticmethod
    def forward(ctx: Any, losses_of: LossesOf, step: int, enabled: object, *tensors: Tensor) -> Tensor:
        """Losses, and the gradients for a factor of 1. `enabled`: whether the caller asked for gradients."""
        ctx.losses_of, ctx.step = losses_of, step
        ctx.needed = [bool(enabled) and needed for needed in ctx.needs_input_grad[3:]]
        losses, gradients = _losses_and_gradients(losses_of, step, tensors, ctx.needed)
        ctx.save_for_backward(*tensors, *gradients)
        return losses

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> tuple[Any, ...]:
        """The gradients times the factor of each row."""
        size = len(ctx.needed)
        tensors, gradients = ctx.saved_tensors[:size], ctx.saved_tensors[size:]
        if torch.is_grad_enabled():  # of the gradient, too: then it has to be ordinary torch
            # Views: the saved tensors depend on each other, and the gradient in one must not flow through another.
            tensors = tuple(tensor.view_as(tensor) for tensor in tensors)
            losses = _checkpointed(ctx.losses_of, ctx.step, tensors[0], tensors[1], tensors[2:])
            wanted = [tensor for tensor, needed in zip(tensors, ctx.needed, strict=True) if needed]
            found = iter(torch.autograd.grad(losses, wanted, factor, create_graph=True, allow_unused=True))
            return None, None, None, *(next(found) if needed else None for needed in ctx.needed)
        if (factor == factor[0]).all():
            scaled = [None if gradient is None else gradient * factor[0] for gradient in gradients]
        else:
            _, scaled = _losses_and_gradients(ctx.losses_of, ctx.step, tensors, ctx.needed, factor)
        return None, None, None, *scaled


def _losses_and_gradients(
    losses_of: LossesOf, step: int, tensors: tuple[Tensor, ...], needed: list[bool], factor: Tensor | None = None
) -> tuple[Tensor, list[Tensor | None]]:
    """(N,) losses, and the gradients of their sum, each times its factor, in the tensors that need one."""
    left, right, *row_inputs = tensors
    gradients = [torch.zeros_like(tensor) if one else None for tensor, one in zip(tensors, needed, strict=True)]
    grad_left, grad_right, *grad_inputs = gradients
    losses = left.new_empty(len(left))
    buffer = left.new_empty(min(step, len(left)), len(right))
    for start in range(0, len(left), step):
        rows = slice(start, min(start + step, len(left)))
        scores = torch.mm(left[rows], right.T, out=buffer[: rows.stop - start])
        leaves = [value.detach().requires_grad_() for value in (scores, *(values[rows] for values in row_inputs))]
        with torch.set_grad_enabled(any(needed)):
            found = losses_of(leaves[0], rows, *leaves[1:])
        losses[rows] = found.detach()
        if not any(needed):
            continue
        given = torch.ones_like(found) if factor is None else factor[rows]
        grad_scores, *grad_rows = torch.autograd.grad(found, leaves, given, allow_unused=True)
        if grad_left is not None:
            torch.mm(grad_scores, right, out=grad_left[rows])
        if grad_right is not None:
            grad_right.addmm_(grad_scores.T, left[rows])
        for whole, part in zip(grad_inputs, grad_rows, strict=True):
            if whole is not None and part is not None:
                whole[rows] = part
    return losses, gradients


@final
@dataclass(frozen=True, eq=False)
class Columns:
    """Which of M columns are candidates of N rows, and their weights, a block of rows at a time."""

    size: int  # M
    like: Tensor  # of the dtype and device of the scores
    own: bool  # column i is row i itself, which is not a candidate
    mask: Any = None  # None, (M,) or (N, M) bool, or a function of a slice of rows that returns (rows, M)
    weights: Any = None  # the same, with numbers
    log_q: Tensor | None = None  # (M,)
    filled: Tensor | None = None  # (M,) bool: False for a column that is empty for all rows

    def candidates(self, rows: slice) -> Tensor:
        """(rows, M) bool, a new tensor: the mask, without the row itself and without columns that are not filled."""
        shape = (rows.stop - rows.start, self.size)
        mask = self._of_rows(self.mask, rows, lambda values: inputs.as_mask(values, shape, self.like.device))
        if mask is None:
            kept = torch.ones(shape, dtype=torch.bool, device=self.like.device)
        else:
            kept = mask.expand(shape).clone()
        if self.filled is not None:
            kept &= self.filled
        if self.own:
            here = torch.arange(shape[0], device=kept.device)
            kept[here, here + rows.start] = False
        return kept

    def weights_of(self, rows: slice) -> Tensor | None:
        """(rows, M) the weights; None if all are 1."""
        shape = (rows.stop - rows.start, self.size)
        weights = self._of_rows(self.weights, rows, lambda values: inputs.as_weights(values, shape, self.like).detach())
        return None if weights is None else weights.expand(shape)

    def _of_rows(self, values: Any, rows: slice, read: Callable[[Any], Tensor]) -> Tensor | None:
        """What was given for these rows: (M,) for all, or (rows, M)."""
        if callable(values):
            return read(values(rows))
        chosen: Tensor | None = values if values is None or values.ndim == 1 else values[rows]
        return chosen


def as_columns(
    n_rows: int,
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
    like = like.detach()
    mask = _per_column("mask", mask, n_rows, size, lambda values, shape: inputs.as_mask(values, shape, like.device))
    weights = _per_column(
        "weights", weights, n_rows, size, lambda values, shape: inputs.as_weights(values, shape, like).detach()
    )
    log_q = None if log_q is None else inputs.as_log_q(log_q, (size,), like).detach()
    return Columns(size, like, own, mask, weights, log_q, filled)


def _per_column(
    parameter: str, values: Any, n_rows: int, size: int, read: Callable[[Any, tuple[int, ...]], Tensor]
) -> Any:
    """Return a function as it is, or a checked array (size,) or (n_rows, size)."""
    if values is None or (callable(values) and not isinstance(values, Tensor)):
        return values
    array = values if isinstance(values, Tensor) else as_array(parameter, values)
    shape = tuple(array.shape)
    if shape not in ((size,), (n_rows, size)):
        rule = f"of shape ({size},) or ({n_rows}, {size}), or a function of a slice of rows"
        raise_invalid(parameter, rule, f"shape {shape}")
    return read(array, shape)


def same_label(labels: Tensor, key_labels: Tensor, rows: slice) -> Tensor:
    """(rows, M) bool: one granularity of labels (N,) against (M,); -1 matches nothing."""
    own = labels[rows, None]
    return (own == key_labels) & (own >= 0)


@final
@dataclass(frozen=True, eq=False)
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
        return inputs.as_partner(values, len(self.left), len(self.left), self.left.device, own=True)

    def losses(self, losses_of: LossesOf, *row_inputs: Tensor) -> Tensor:
        """Return the (N,) losses in the caller's dtype."""
        losses = by_blocks(self.left, self.right, losses_of, self.block, *row_inputs)
        return inputs.check_result(losses, "z").to(self.dtype)


def as_batch(
    z: Any, labels: Any, temperature: Any, keys: Any, key_labels: Any, mask: Any, weights: Any, block: int
) -> Batch:
    """Check the inputs of a loss over a batch."""
    check_whole("block", block, 1)
    vectors = inputs.as_vectors("z", z)
    temperature = inputs.as_temperature(temperature, vectors)
    if keys is None and key_labels is not None:
        raise_invalid("key_labels", "given with keys", "key_labels without them")
    right = vectors if keys is None else torch.cat([vectors, inputs.as_vectors("keys", keys, vectors)])
    n_rows, size = len(vectors), len(right)
    left = vectors.to(inputs.computing_dtype(vectors)) / temperature
    row_labels, column_labels = inputs.label_pair(labels, key_labels, n_rows, size, vectors.device, own=True)
    return Batch(
        left=left,
        right=right.to(left.dtype),
        columns=as_columns(n_rows, size, left, own=True, mask=mask, weights=weights),
        labels=row_labels,
        key_labels=column_labels,
        block=block,
        dtype=vectors.dtype,
    )

"""Losses over a matrix of scores that is never stored: anchors against columns, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from naysay.checks import as_array, check_whole, raise_invalid
from naysay.losses import _inputs as inputs
from naysay.losses.check_values import values_are_checked

BLOCK = 1 << 20  # scores in memory at once; larger blocks leave the cache and are not faster
_MIN_ROWS = 16  # of a block, however many columns there are

# The losses (rows,) of a block of scores (rows, M): losses_of(scores, slice of rows, inputs of these rows).
LossesOf = Callable[..., Tensor]


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """Anchors and columns, and what each row may use of them."""

    left: Tensor  # (N, d) the anchors, divided by the temperature
    right: Tensor  # (M, d) the columns
    own: bool  # column i is row i itself, which is not a candidate
    mask: Any  # None, (M,) or (N, M) bool, or a function of a slice of rows that returns (rows, M)
    weights: Any  # the same, with numbers
    labels: tuple[Tensor, Tensor] | None  # (G, N) of the rows and (G, M) of the columns
    block: int
    vectors: str  # the parameter that the anchors were given as
    dtype: torch.dtype  # of the result

    def candidates(self, rows: slice) -> Tensor:
        """(rows, M) bool, a new tensor: the mask, without the row itself."""
        shape = (rows.stop - rows.start, len(self.right))
        mask = _of_rows(self.mask, rows, lambda values: inputs.as_mask(values, shape, self.left.device))
        if mask is None:
            kept = torch.ones(shape, dtype=torch.bool, device=self.left.device)
        else:
            kept = mask.expand(shape).clone()
        if self.own:
            here = torch.arange(shape[0], device=kept.device)
            kept[here, here + rows.start] = False
        return kept

    def weights_of(self, rows: slice) -> Tensor | None:
        """(rows, M) the weights; None if all are 1."""
        shape = (rows.stop - rows.start, len(self.right))
        weights = _of_rows(self.weights, rows, lambda values: inputs.as_weights(values, shape, self.left).detach())
        return None if weights is None else weights.expand(shape)

    def mean_over_labels(self, rows: slice, losses_of: Callable[[Tensor | None], Tensor]) -> Tensor:
        """(rows,) the mean over granularities of losses_of(same label), or losses_of(None) without labels.

        Same label is (rows, M) bool: columns with the row's label, where -1 matches nothing.
        """
        if self.labels is None:
            return losses_of(None)
        losses = []
        for row_labels, column_labels in zip(*self.labels, strict=True):
            label = row_labels[rows, None]
            losses.append(losses_of((label == column_labels) & (label >= 0)))
        return torch.stack(losses).mean(dim=0)

    def losses(self, losses_of: LossesOf, *row_inputs: Tensor) -> Tensor:
        """(N,) losses in the caller's dtype. `losses_of` gets its rows of row_inputs, which have N rows each."""
        losses = _by_blocks(self.left, self.right, losses_of, self.block, row_inputs)
        if values_are_checked(losses):
            values, rule = losses.detach(), "small enough for finite dot products"
            inputs.check_all(self.vectors, values, values.isfinite(), rule, "Normalise, or raise the temperature.")
        return losses.to(self.dtype)


def as_batch(
    parameter: str,
    anchors: Tensor,
    columns: Tensor,
    *,
    own: bool,
    block: Any,
    temperature: Any = 1.0,
    mask: Any = None,
    weights: Any = None,
    labels: Any = None,
    key_labels: Any = None,
) -> Batch:
    """Check the options of a loss over checked vectors; what functions return is checked when they are called."""
    check_whole("block", block, 1)
    if labels is None and key_labels is not None:
        raise_invalid("key_labels", "given with labels", "key_labels without them")
    dtype, device = inputs.computing_dtype(anchors), anchors.device
    size = (len(anchors), len(columns))
    left = anchors.to(dtype) / inputs.as_temperature(temperature, anchors)
    return Batch(
        left=left,
        right=columns.to(dtype),
        own=own,
        mask=_per_column("mask", mask, size, lambda values, shape: inputs.as_mask(values, shape, device)),
        weights=_per_column(
            "weights", weights, size, lambda values, shape: inputs.as_weights(values, shape, left).detach()
        ),
        labels=None if labels is None else inputs.label_pair(labels, key_labels, *size, device, own=own),
        block=block,
        vectors=parameter,
        dtype=anchors.dtype,
    )


def _per_column(
    parameter: str, values: Any, size: tuple[int, int], read: Callable[[Any, tuple[int, ...]], Tensor]
) -> Any:
    """A function as it is, or a checked array (M,) or (N, M)."""
    if values is None or (callable(values) and not isinstance(values, Tensor)):
        return values
    array = values if isinstance(values, Tensor) else as_array(parameter, values)
    shape = tuple(array.shape)
    if shape not in (size[1:], size):
        rule = f"of shape {size[1:]} or {size}, or a function of a slice of rows"
        raise_invalid(parameter, rule, f"shape {shape}")
    return read(array, shape)


def _of_rows(values: Any, rows: slice, read: Callable[[Any], Tensor]) -> Tensor | None:
    """What was given for these rows: (M,) for all, or (rows, M)."""
    if callable(values):
        return read(values(rows))
    chosen: Tensor | None = values if values is None or values.ndim == 1 else values[rows]
    return chosen


# ---- blocks ----------------------------------------------------------------------------------------------------------


def _by_blocks(left: Tensor, right: Tensor, losses_of: LossesOf, block: int, row_inputs: tuple[Tensor, ...]) -> Tensor:
    """(N,) losses of rows of left (N, d) @ right (M, d).T, with about `block` scores in memory at a time.

    A matrix of at most one block is ordinary torch. Of several blocks, torch's `checkpoint` computes each again in the
    backward pass: four products. On the CPU the forward pass computes the gradients at once: three, as without blocks.
    """
    if len(left) == 0:
        return _scores(left, right).sum(dim=1)  # no losses, but both sides take part in the backward pass
    step = max(_MIN_ROWS, block // max(len(right), 1))
    if len(left) <= step:
        return losses_of(_scores(left, right), slice(0, len(left)), *row_inputs)
    if left.device.type != "cpu" or torch.compiler.is_compiling():
        return _checkpointed(losses_of, step, left, right, *row_inputs)
    losses: Tensor = _EagerGradients.apply(  # type: ignore[no-untyped-call]
        losses_of, step, torch.is_grad_enabled(), left, right, *row_inputs
    )
    return losses


def _scores(left: Tensor, right: Tensor) -> Tensor:
    """(rows, M) the dot products, in the precision of the vectors."""
    with inputs.without_autocast(left):
        return left @ right.T


def _checkpointed(losses_of: LossesOf, step: int, left: Tensor, right: Tensor, *row_inputs: Tensor) -> Tensor:
    """(N,) losses; the backward pass computes each block again."""

    def losses_of_block(start: int, part: Tensor, *parts: Tensor) -> Tensor:
        return losses_of(_scores(part, right), slice(start, start + len(part)), *parts)

    blocks = zip(*(torch.split(values, step) for values in (left, *row_inputs)), strict=True)
    losses = [
        checkpoint(losses_of_block, place * step, *parts, use_reentrant=False, preserve_rng_state=False)
        for place, parts in enumerate(blocks)
    ]
    return torch.cat(losses)


class _EagerGradients(torch.autograd.Function):
    """Losses of several blocks, whose forward pass also computes the gradients of their sum.

    The backward pass scales them if it has one factor for all rows, as after .mean() or .sum(); else it computes them
    again.
    """

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
            losses = _checkpointed(ctx.losses_of, ctx.step, *tensors)
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
    with inputs.without_autocast(left):
        for start in range(0, len(left), step):
            rows = slice(start, min(start + step, len(left)))
            scores = left[rows] @ right.T
            leaves = [value.detach().requires_grad_() for value in (scores, *(values[rows] for values in row_inputs))]
            with torch.set_grad_enabled(any(needed)):
                found = losses_of(leaves[0], rows, *leaves[1:])
            losses[rows] = found.detach()
            if not any(needed):
                continue
            by_row = torch.ones_like(found) if factor is None else factor[rows]
            grad_scores, *grad_rows = torch.autograd.grad(found, leaves, by_row, allow_unused=True)
            if grad_left is not None:
                grad_left[rows] = grad_scores @ right
            if grad_right is not None:
                grad_right.addmm_(grad_scores.T, left[rows])
            for whole, part in zip(grad_inputs, grad_rows, strict=True):
                if whole is not None and part is not None:
                    whole[rows] = part
    return losses, gradients

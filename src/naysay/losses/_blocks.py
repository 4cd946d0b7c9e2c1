"""Losses over a matrix of scores that is never built: blocks of rows, forward and backward, exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# A form turns a block of scores, in place, into the gradient of its rows' losses in those scores. It answers with the
# losses (rows,) and with their gradients in the row inputs (R, rows), if there are any.
Form = Callable[[Tensor, slice, Tensor | None], tuple[Tensor, Tensor | None]]

BLOCK = 1 << 22  # scores held at once: more does not help, since a block should stay near the processor
_FEWEST_ROWS = 16  # of a block, however many columns there are: they are no more than the columns' own vectors


def blockwise(left: Tensor, right: Tensor, row_inputs: Tensor | None, form: Form, block: int) -> Tensor:
    """(N,) losses of rows left @ right.T, (N, M), of which about `block` scores exist at a time.

    left (N, d), right (M, d), row_inputs (R, N) or None: all may take gradients.

    A row's gradient in its scores is known as soon as its loss is, up to the factor g_i that comes from above. So
    the forward pass also makes both products with it, for g = 1: three products in all, as many as the plain form has.
    The factor of a row scales that row of the left gradient. The right gradient sums over rows: the kept one serves if
    g is the same for all rows, as after .mean() or .sum(), and is made anew otherwise, with two products more. A matrix
    of no more than one block is kept instead.
    """
    step = max(_FEWEST_ROWS, block // max(len(right), 1))
    losses: Tensor = _Blocks.apply(  # type: ignore[no-untyped-call]
        left, right, row_inputs, form, step, torch.is_grad_enabled()
    )
    return losses


class _Blocks(torch.autograd.Function):
    """The autograd node of `blockwise`."""

    @staticmethod
    def forward(  # wanted: gradients are; torch says that an input needs one even where they are switched off
        ctx: Any, left: Tensor, right: Tensor, row_inputs: Tensor | None, form: Form, step: int, wanted: object
    ) -> Tensor:
        """Losses, and the gradients for a factor of 1."""
        needs = [bool(wanted) and need for need in ctx.needs_input_grad[:3]]
        losses = left.new_empty(len(left))
        by_left = torch.empty_like(left) if needs[0] else None
        whole = 0 < len(left) <= step  # one block: it is kept, and the right gradient can wait for the factors
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
        """The kept gradients times the factor; the right one is summed again if the factor differs between rows."""
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


def soften(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Turn rows of logits, in place, into e^{logits - top}; answer with (log sum e^logits, sum e^{logits - top}).

    A row of -inf has a log sum of -inf. Divide by the second to get the softmax; it is never 0.
    """
    top = logits.amax(dim=1, keepdim=True)
    top = top.masked_fill(top == -torch.inf, 0.0)
    total = logits.sub_(top).exp_().sum(dim=1)
    return total.log() + top[:, 0], total.masked_fill(total == 0, 1.0)

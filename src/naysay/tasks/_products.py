"""The scores of anchors and items as one differentiable step, without a copy of each item's vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.kernels.products import add_row_gradients, row_products
from naysay.kernels.threads import in_rows


class _RowProducts(torch.autograd.Function):
    """See `row_scores`. torch's look-up copies every vector, and again for the gradient: three times the cost."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """The products."""
        ctx.save_for_backward(table, rows, others)
        arrays = [part.detach().numpy() for part in (table, rows, others)]
        out = np.empty(arrays[2].shape, arrays[0].dtype)
        in_rows(row_products, len(out), out.size * table.shape[1] // 8, *arrays, out)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """The gradient of the table, in one thread: two rows of a batch may share a row of the table."""
        table, rows, others = (part.detach().numpy() for part in ctx.saved_tensors)
        out = np.zeros_like(table)
        add: Any = add_row_gradients
        add(table, rows, others, gradients[0].contiguous().numpy(), out)
        return torch.from_numpy(out), None, None


def row_scores(table: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """(B, K) table[rows] (B,) times table[others] (B, K), with gradients of the table. For tensors of a processor."""
    multiply: Any = _RowProducts.apply
    found: Tensor = multiply(table, rows, others)
    return found

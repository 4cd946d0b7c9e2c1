"""Products of a row of a table with some other rows, and their gradients, without copies of the rows."""

from __future__ import annotations

from functools import partial
from typing import Any

from naysay.kernels.compile import compiled


@partial(compiled, reorder=True)
def row_products(start: Any, stop: Any, table: Any, rows: Any, others: Any, out: Any) -> None:
    """out[b, k] = table[rows[b]] . table[others[b, k]]."""
    width, many = table.shape[1], others.shape[1]
    for b in range(start, stop):
        own = table[rows[b]]
        for k in range(many):
            other = table[others[b, k]]
            total = own[0] * other[0]
            for place in range(1, width):
                total += own[place] * other[place]
            out[b, k] = total


@compiled
def add_row_gradients(table: Any, rows: Any, others: Any, slopes: Any, out: Any) -> None:
    """Add to out (the table's shape) the gradient of row_products whose slopes (B, K) are given, row after row."""
    width, many = table.shape[1], others.shape[1]
    for b in range(len(rows)):
        own, own_out = table[rows[b]], out[rows[b]]
        for k in range(many):
            slope = slopes[b, k]
            other, other_out = table[others[b, k]], out[others[b, k]]
            for place in range(width):
                own_out[place] += slope * other[place]
            for place in range(width):
                other_out[place] += slope * own[place]

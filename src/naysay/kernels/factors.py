"""Products and gradients of rows that are looked up in a table, without a copy of (B, n, d) rows.

Loops with `start` and `stop` write their own rows alone. The others add to rows of a table that may come several
times, so one thread runs them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from naysay.kernels.compile import compiled

_for_training = partial(compiled, reorder=True)


@_for_training
def looked_up_dots(start: Any, stop: Any, left: Any, table: Any, ids: Any, out: Any) -> None:
    """out[b, j] = left[b] . table[ids[b, j]]."""
    for b in range(start, stop):
        for j in range(ids.shape[1]):
            row = ids[b, j]
            total = 0.0
            for i in range(table.shape[1]):
                total += left[b, i] * table[row, i]
            out[b, j] = total


@_for_training
def looked_up_sums(start: Any, stop: Any, weights: Any, table: Any, ids: Any, out: Any) -> None:
    """out[b] = the sum over j of weights[b, j] * table[ids[b, j]]."""
    for b in range(start, stop):
        out[b] = 0.0
        for j in range(ids.shape[1]):
            row, weight = ids[b, j], weights[b, j]
            for i in range(table.shape[1]):
                out[b, i] += weight * table[row, i]


@compiled
def add_products(rate: Any, weights: Any, left: Any, ids: Any, table: Any) -> None:
    """table[ids[b, j]] += rate * weights[b, j] * left[b]."""
    for b in range(len(ids)):
        for j in range(ids.shape[1]):
            row, weight = ids[b, j], rate * weights[b, j]
            for i in range(table.shape[1]):
                table[row, i] += weight * left[b, i]


@compiled
def add_rows(rate: Any, rows: Any, ids: Any, table: Any) -> None:
    """table[ids[m]] += rate * rows[m]."""
    for m in range(len(ids)):
        row = ids[m]
        for i in range(table.shape[1]):
            table[row, i] += rate * rows[m, i]

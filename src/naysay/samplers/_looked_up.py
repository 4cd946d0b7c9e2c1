"""Rows of a table that ids look up: products with them, sums of them, and steps that are added to them.

The compiled loops read no row twice and make no copy (B, n, d). They do not check that a row exists, so this file does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_range
from naysay.kernels import factors as loops
from naysay.kernels.threads import in_rows

Floats = NDArray[np.float64]


def dots(left: Any, table: Floats, ids: Any) -> Floats:
    """(B, n) the products of left (B, d) with the rows ids (B, n) of a table."""
    rows, out = _rows(table, ids), np.empty(ids.shape)
    in_rows(loops.looked_up_dots, len(out), out.size * _steps(table), _floats(left), table, rows, out)
    return out


def sums(weights: Any, table: Floats, ids: Any) -> Floats:
    """(B, d) the sums of the rows ids (B, n), by weights (B, n)."""
    rows, out = _rows(table, ids), np.empty((len(ids), table.shape[1]))
    in_rows(loops.looked_up_sums, len(out), rows.size * _steps(table), _floats(weights), table, rows, out)
    return out


def add(table: Floats, ids: Any, rate: float, moves: Any, left: Any = None) -> None:
    """Add rate * moves to rows of a table, in place; a row that comes several times gets the sum.

    moves is (..., d) for ids (...), or (...) for a table of one dimension. With `left` (B, d) the moves are
    moves[b, j] * left[b] of (B, n).
    """
    rows = _rows(table, ids)
    view = table.reshape(len(table), -1).view()  # a table is contiguous: nothing is copied
    if left is None:
        loops.add_rows(float(rate), _floats(moves).reshape(-1, view.shape[1]), rows.ravel(), view)
    else:
        loops.add_products(float(rate), _floats(moves), _floats(left), rows, view)


def _rows(table: Floats, ids: Any) -> NDArray[np.int64]:
    check_range("ids", ids, len(table), "rows")
    return np.ascontiguousarray(ids, np.int64)


def _floats(array: Any) -> Floats:
    return np.ascontiguousarray(array, np.float64)


def _steps(table: Floats) -> int:
    """Elementary steps of one row: some products at a time."""
    return int(1 + table.shape[1] // 8)

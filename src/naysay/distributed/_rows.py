"""Rows of several processes: what each sends, and the arrays that they make together."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay._processes import check_same
from naysay._slots import PER_SLOT
from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, raise_invalid
from naysay.types import OF_ROWS, Negatives, Query, check_query


def sent(name: str, values: Any, rows: int | None = None) -> Any:
    """An array of rows in NumPy, which travels as it is; None for None."""
    if values is None:
        return None
    array = as_array(name, to_numpy(values))
    if rows is not None and (array.ndim == 0 or len(array) != rows):
        raise_invalid(name, f"a row for each of the {rows} of the query", f"shape {array.shape}")
    return array


def sent_query(query: Query) -> dict[str, Any]:
    """The parts of a query."""
    check_query(query)
    return {"rows": len(query), "step": query.step} | {name: sent(name, getattr(query, name)) for name in OF_ROWS}


def joined(name: str, everyone: list[dict[str, Any]], key: str | None = None) -> Any:
    """The rows of all processes, which must be there and as wide in all or in none. Empty arrays have no type."""
    parts = [one[key or name] for one in everyone]
    check_same(name, "given", ["None" if part is None else "an array" for part in parts])
    if parts[0] is None:
        return None
    full = [part for part in parts if len(part)] or parts[:1]
    check_same(name, "of one width", [part.shape[1:] for part in full])
    return np.concatenate(full)


def like(array: Any, like: Any) -> Any:
    """A joined array in the array type, on the device and, for floating-point tensors, in the type of `like`."""
    if array is None or not is_torch(like):
        return array
    tensor = to_torch(array, like.device)
    return tensor.to(like.dtype) if like.is_floating_point() and tensor.is_floating_point() else tensor


def joined_query(query: Query, everyone: list[dict[str, Any]]) -> Query:
    """The query of all processes, in the array type of this one."""
    check_same("query", "of one step", [one["step"] for one in everyone])
    arrays = {name: like(joined(name, everyone), getattr(query, name)) for name in OF_ROWS}
    return Query(step=query.step, **arrays)


def joined_negatives(negatives: Negatives, everyone: list[dict[str, Any]]) -> Negatives:
    """The negatives of all processes, in the array type of this one, without what was dropped."""
    names = [one["slots"] for one in everyone]
    check_same("negatives", "of the same source_names", names)
    arrays = {name: like(joined(name, everyone, f"slot {name}"), getattr(negatives, name)) for name in PER_SLOT}
    return Negatives(**arrays, source_names=names[0])

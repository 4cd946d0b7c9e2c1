"""Columns of vectors: Arrow in memory, Parquet copied once to raw bytes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, raise_invalid
from naysay.search._vector_files import DTYPES, RawFile, unreadable

_BATCH = 4096  # rows of a column that are decoded at a time


def is_arrow(given: object) -> bool:
    """Whether `given` is an Arrow table or column; pyarrow that nobody imported cannot have made one."""
    module = sys.modules.get("pyarrow")
    return module is not None and isinstance(given, module.Table | module.Array | module.ChunkedArray)


def arrow(parameter: str, given: Any, column: str | None) -> NDArray[Any]:
    """A column of lists of one length as an array (n, d), without a copy where it is in one piece."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        given = given.column(_column(parameter, given.schema, column))
    elif column is not None:
        raise_invalid("column", "None where the vectors are no table", repr(column))
    if _item(given.type) is None:
        raise_invalid(parameter, "a column of lists of floats", f"{given.type}")
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    return _matrix(parameter, given, 0, 0)


def parquet(parameter: str, path: Path, column: str | None) -> RawFile:
    """A column of lists of one length, copied batch by batch to a file of raw rows that is deleted after use."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
    except (pa.ArrowException, OSError) as error:
        unreadable(parameter, path, error)
    name = _column(parameter, schema, column)
    handle, copy = tempfile.mkstemp(prefix="naysay-", suffix=".rows")
    rows, width = 0, 0
    try:
        with os.fdopen(handle, "wb") as out, pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=[name]):
                block = _matrix(parameter, batch.column(0), rows, width)
                out.write(np.ascontiguousarray(block).data)
                rows, width = rows + len(block), block.shape[1] if len(block) else width
        kind = str(np.dtype(_item(schema.field(name).type).to_pandas_dtype()))
        shape = (rows, int(width or getattr(schema.field(name).type, "list_size", 1)))
        return RawFile(parameter, Path(copy), shape, kind, 0, ours=True)
    except BaseException as error:
        os.unlink(copy)
        if isinstance(error, pa.ArrowException | OSError):  # a damaged page is found when its turn comes
            unreadable(parameter, path, error)
        raise


def _item(kind: Any) -> Any:
    """The type inside a list of floats, or None."""
    import pyarrow as pa

    if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    return kind.value_type if pa.types.is_floating(kind.value_type) else None


def _column(parameter: str, schema: Any, wanted: str | None) -> str:
    """The column that is named, or else the only one of lists of floats."""
    if wanted is not None:
        check_one_of("column", wanted, schema.names)
        if schema.names.count(wanted) > 1 or _item(schema.field(wanted).type) is None:
            kind = "several columns" if schema.names.count(wanted) > 1 else schema.field(wanted).type
            raise_invalid("column", "one column of lists of floats", f"{wanted!r}: {kind}")
        return wanted
    fitting = [field.name for field in schema if _item(field.type) is not None]
    if len(fitting) != 1:
        got = "columns " + ", ".join(map(repr, schema.names)) if schema.names else "no columns"
        advice = "Choose with column." if fitting else ""
        raise_invalid(parameter, "a table with one column of lists of floats", got, advice)
    return str(fitting[0])


def _matrix(parameter: str, column: Any, start: int, width: int) -> NDArray[Any]:
    """A piece of a column as (n, d); nulls, and rows of another length than the first of all, are refused."""
    values = column.flatten()
    if column.null_count:
        first = start + int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise_invalid(parameter, "without nulls", f"null at row {first} ({column.null_count} such rows there)")
    if values.null_count:
        raise_invalid(parameter, "without nulls", f"{values.null_count} in rows {start} to {start + len(column) - 1}")
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if str(array.dtype) not in DTYPES:
        raise_invalid(parameter, "float16, float32 or float64", f"dtype {array.dtype}")
    fixed = getattr(column.type, "list_size", None)
    lengths = np.diff(np.asarray(column.offsets)) if fixed is None else np.full(len(column), fixed)
    expected = width or (int(lengths[0]) if len(lengths) else fixed or 1)
    wrong = np.flatnonzero(lengths != expected)
    if len(wrong):
        got = f"{lengths[wrong[0]]} at row {start + wrong[0]}"
        raise_invalid(parameter, f"vectors of one width, {expected} like the first", got)
    if expected == 0:
        raise_invalid(parameter, "of shape (n, d), a vector per row", f"width 0 at row {start}")
    return array.reshape(len(column), expected)

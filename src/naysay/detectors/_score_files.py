"""Files of scores: .npy, mapped, and columns of .parquet, both a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from naysay.checks import check_one_of, raise_invalid
from naysay.detectors._score_blocks import BLOCK, SHAPES, ScoreBlocks, Scores, Seen, sliced

_LISTS = 1 << 12  # rows of a column of lists that are decoded at a time
_NAMES = ("score", "scores")  # of a column, in this order
_SHOWN = 10  # columns that a refusal names


def mapped(path: Path, seen: Seen | None) -> ScoreBlocks:
    """An .npy file (n,) or (anchors, n), mapped: only the block that is read is in memory."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        _unreadable(path, error)
    if array.ndim not in (1, 2):
        raise_invalid("scores", SHAPES, f"shape {array.shape} in {str(path)!r}")
    return sliced(array, seen)


def parquet(path: Path, column: str | None, seen: Seen | None) -> ScoreBlocks:
    """A column of numbers, or of lists of numbers: then each list is a row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        _unreadable(path, error)
    name = _column(schema, column)
    step = _LISTS if pa.types.is_nested(schema.field(name).type) else BLOCK

    def read() -> Iterator[Any]:
        start = 0
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(batch_size=step, columns=[name]):
                    yield _values(name, batch.column(0), start)
                    start += len(batch)
        except (pa.ArrowException, OSError) as error:  # a damaged page is found when its turn comes
            _unreadable(path, error)

    return ScoreBlocks(read, again=True, rows=rows, seen=seen)


def _column(schema: Any, wanted: str | None) -> str:
    """The column that is named, or else the only column of numbers, or one that is called score or scores."""
    import pyarrow as pa

    def is_number(kind: Any) -> bool:
        inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) else kind
        inner = inner.value_type if pa.types.is_large_list(kind) else inner
        return any(fits(inner) for fits in (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal))

    if wanted is not None:
        check_one_of("column", wanted, schema.names)
        if schema.names.count(wanted) > 1:
            raise_invalid("column", "a column that is there once", f"{wanted!r}, {schema.names.count(wanted)} times")
        if not is_number(schema.field(wanted).type):
            raise_invalid("column", "a column of numbers", f"{wanted!r} of {schema.field(wanted).type}")
        return wanted
    fitting = [field.name for field in schema if is_number(field.type) and schema.names.count(field.name) == 1]
    chosen = [name for name in _NAMES if name in fitting] or fitting
    if not chosen or (len(chosen) > 1 and chosen[0] not in _NAMES):
        seen = [f"{field.name!r} of {field.type}" for field in schema][:_SHOWN]
        left = len(schema.names) - len(seen)
        got = ", ".join(seen) + f" and {left} others" * (left > 0) if seen else "no columns"
        advice = "Choose with `column`." if fitting else ""
        raise_invalid("scores", "a file with one column of numbers, or with one of them named score", got, advice)
    return str(chosen[0])


def _values(name: str, column: Any, start: int) -> Scores:
    """A batch of the column as (n,), or as (rows, n) if it holds lists of one length; nulls are refused."""
    import pyarrow as pa

    is_rows = pa.types.is_nested(column.type)
    values = column.flatten() if is_rows else column
    rule = f"a column without nulls ({name!r})"
    if column.null_count:
        first = start + int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise_invalid("column", rule, f"null at row {first} (the first of {column.null_count} in its block)")
    if values.null_count:
        got = f"{values.null_count} nulls in lists of rows {start} to {start + len(column) - 1}"
        raise_invalid("column", rule, got)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string()).cast(pa.float64())  # cast at once, 0.3 would not become the nearest float
    array: Scores = values.to_numpy(zero_copy_only=False)
    if not is_rows or not len(column):
        return array
    ends = np.asarray(column.offsets) if hasattr(column, "offsets") else column.type.list_size * np.arange(2)
    lengths = np.diff(ends)
    return array.reshape(len(column), -1) if (lengths == lengths[0]).all() else array


def _unreadable(path: Path, error: Exception) -> NoReturn:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    raise_invalid("scores", f"a readable {path.suffix.lower()} file", f"{str(path)!r} ({reason})")

"""Scores as users pass them: an array, a list, an .npy or .parquet file, or a stream of arrays."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from naysay.checks import check_one_of, raise_invalid, shown
from naysay.detectors._score_blocks import BLOCK, SHAPES, OnRows, ScoreBlocks, Scores, plain_scores
from naysay.files import raise_unreadable

_LISTS = 1 << 12  # rows of a column of lists that are decoded at a time
_NAMES = ("score", "scores")  # of a column, in this order
_SHOWN = 10  # columns that an error names


def open_scores(scores: Any, column: str | None = None, on_rows: OnRows | None = None) -> ScoreBlocks:
    """Scores in blocks. Errors of files are raised here, before work starts."""
    if isinstance(scores, ScoreBlocks):
        return scores
    kind = Path(scores).suffix.lower() if isinstance(scores, str | os.PathLike) else ""
    if column is not None and kind != ".parquet":
        raise_invalid("column", "left out, unless scores is a .parquet file", shown(column))
    if isinstance(scores, str | os.PathLike):
        if kind not in (".npy", ".parquet"):
            raise_invalid("scores", "a file that ends in .npy or .parquet", shown(str(scores)))
        if not _is_file(Path(scores)):
            raise_invalid("scores", "an existing file", repr(str(scores)))
        return _parquet(Path(scores), column, on_rows) if kind == ".parquet" else _mapped(Path(scores), on_rows)
    if isinstance(scores, list | tuple) and len(scores) and _is_block(scores[0]):
        return ScoreBlocks(lambda: iter(scores), rereadable=True, rows=None, on_rows=on_rows)
    if isinstance(scores, list | tuple | range | memoryview | array) or _is_array(scores):
        return _sliced(scores if _is_lazy(scores) else plain_scores(scores), on_rows)
    if not isinstance(scores, Iterable):
        rule = "an array, a list, a file or an iterable of arrays"
        raise_invalid("scores", rule, f"a {type(scores).__name__}")
    return ScoreBlocks(lambda: iter(scores), rereadable=False, rows=None, on_rows=on_rows)


def _is_array(scores: Any) -> bool:
    """Whether NumPy reads it as one array: its own, a tensor, a column of Arrow or of a data frame."""
    return hasattr(scores, "__array__") and not isinstance(scores, np.generic)


def _is_lazy(scores: Any) -> bool:
    """Whether slicing reads from disk: data sets of HDF5 and Zarr, which need not fit into memory."""
    return hasattr(scores, "chunks") and hasattr(scores, "ndim")


def _is_block(first: Any) -> bool:
    """Whether the first entry of a list is an array of scores, not a score. Arrays of no dimensions are scores."""
    return _is_array(first) and getattr(first, "ndim", 1) > 0


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long for any file
        return False


def _sliced(array: Any, on_rows: OnRows | None) -> ScoreBlocks:
    """An array in memory or in a file, in blocks of rows; one of a wrong shape as a whole, for its error."""
    if array.ndim not in (1, 2):
        return ScoreBlocks(lambda: iter([array]), rereadable=True, rows=None, on_rows=on_rows)
    step = max(1, BLOCK // max(1, int(np.prod(array.shape[1:]))))
    starts = range(0, len(array), step)
    return ScoreBlocks(lambda: (array[s : s + step] for s in starts), True, len(array), on_rows)


def _mapped(path: Path, on_rows: OnRows | None) -> ScoreBlocks:
    """An .npy file (n,) or (anchors, n), memory-mapped."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        _unreadable(path, error)
    if array.ndim not in (1, 2):
        raise_invalid("scores", SHAPES, f"shape {array.shape} in {str(path)!r}")
    return _sliced(array, on_rows)


def _parquet(path: Path, column: str | None, on_rows: OnRows | None) -> ScoreBlocks:
    """A column of numbers, or of lists of numbers, one list per row."""
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

    return ScoreBlocks(read, rereadable=True, rows=rows, on_rows=on_rows)


def _column(schema: Any, wanted: str | None) -> str:
    """The named column, else the one called score or scores, else the only column of numbers."""
    import pyarrow as pa

    def is_number(kind: Any) -> bool:
        inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) else kind
        inner = inner.value_type if pa.types.is_large_list(kind) else inner
        return any(fits(inner) for fits in (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal))

    if wanted is not None:
        check_one_of("column", wanted, schema.names)
        if schema.names.count(wanted) > 1:
            raise_invalid("column", "the name of exactly one column", f"{wanted!r}, {schema.names.count(wanted)} times")
        if not is_number(schema.field(wanted).type):
            raise_invalid("column", "a column of numbers", f"{wanted!r} of {schema.field(wanted).type}")
        return wanted
    fitting = [field.name for field in schema if is_number(field.type) and schema.names.count(field.name) == 1]
    chosen = [name for name in _NAMES if name in fitting] or fitting
    if not chosen or (len(chosen) > 1 and chosen[0] not in _NAMES):
        columns = [f"{field.name!r} of {field.type}" for field in schema][:_SHOWN]
        left = len(schema.names) - len(columns)
        got = ", ".join(columns) + f" and {left} others" * (left > 0) if columns else "no columns"
        advice = "Choose with `column`." if fitting else ""
        raise_invalid("scores", "a file with one column of numbers, or with one of them named score", got, advice)
    return str(chosen[0])


def _values(name: str, column: Any, start: int) -> Scores:
    """A batch of the column as (n,), or as (rows, n) if it holds lists of one length. Nulls are an error."""
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
    raise_unreadable("scores", f"a readable {path.suffix.lower()} file", path, error)

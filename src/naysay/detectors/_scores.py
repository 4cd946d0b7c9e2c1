"""Scores as users pass them (an array, a list, a file, a stream) in blocks that are checked on the way."""

from __future__ import annotations

import os
import shutil
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_exact, check_one_of, first_bad, raise_invalid, shown
from naysay.files import raise_unreadable
from naysay.places import Url, as_place, check_table, named_as, shards, table_suffix, temporary_copy
from naysay.tables import open_parquet, parquet_schema

BLOCK = 1 << 18  # scores: a block stays in the processor's cache
Scores = NDArray[Any]
_LISTS = 1 << 12  # rows of a column of lists that are decoded at a time
_NAMES = ("score", "scores")  # of a column, in this order
_SHOWN = 10  # columns that an error names
_SHAPES = "of shape (n,) or (anchors, n)"


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBlocks:
    """A source of scores.

    Args:
        read: Starts a pass over arrays (n,) or (anchors, n), not yet checked.
        rereadable: Whether a second pass gives the same scores.
        rows: The number of rows of a pass, or None if it is unknown.
        on_rows: Called with the number of rows of each array after it was used, for a progress bar.
    """

    read: Callable[[], Iterator[Any]]
    rereadable: bool = True
    rows: int | None = None
    on_rows: Callable[[int], object] | None = None

    def arrays(self) -> Iterator[Scores]:
        """Yield the arrays of a pass: finite floats of one precision. Whole numbers become float64."""
        start, dtype = 0, None
        for given in self.read():
            scores = _floats(given)
            if dtype is not None and scores.dtype != dtype:
                advice = "Convert all blocks to one."
                raise_invalid("scores", f"of one dtype, {dtype} like the first block", f"{scores.dtype}", advice)
            dtype = scores.dtype
            bad = ~np.isfinite(scores)
            if bad.any():
                got = first_bad(scores, bad, start)
                if self.rows != len(scores):  # later blocks have not been read
                    got = f"{got[:-1]} in its block)"
                raise_invalid("scores", "finite", got, "Leave out pairs that have no score.")
            yield scores
            start += len(scores)
            if self.on_rows is not None:
                self.on_rows(len(scores))

    def flat(self) -> Iterator[Scores]:
        """Yield the scores of a pass as (n,), at most BLOCK at a time."""
        for scores in self.arrays():
            flat = scores.reshape(-1)
            yield from (flat[start : start + BLOCK] for start in range(0, len(flat), BLOCK))


def plain_scores(given: Any) -> Scores:
    """Return scores as a NumPy array of any shape and dtype. Masked values, which NumPy would count, are an error."""
    return as_array("scores", to_numpy(given))


def rounded(values: Any, dtype: np.dtype[Any]) -> Scores:
    """Thresholds in the precision of the scores, to the nearest: as NumPy and torch compare an array with a number."""
    with np.errstate(over="ignore"):  # beyond the largest float16 comes infinity, which no score reaches
        return np.asarray(values, np.float64).astype(dtype)


def sorted_scores(scores: Scores) -> Scores:
    """A sorted copy. NumPy sorts 16 bits by radix if the sort is to be stable, and wider floats with vectors if not."""
    return np.sort(scores, kind="stable" if scores.dtype.itemsize == 2 else None)


def _floats(given: Any) -> Scores:
    """One array of a pass as floats. Its values are not yet checked."""
    scores = plain_scores(given)
    if scores.ndim not in (1, 2):
        advice = "" if scores.ndim else "Pass numbers as a list; a stream gives arrays."
        raise_invalid("scores", _SHAPES, f"shape {scores.shape}", advice)
    if scores.dtype.kind not in "iuf":
        raise_invalid("scores", "numbers", f"dtype {scores.dtype}")
    check_exact("scores", scores)
    wide = scores.dtype.kind != "f" or scores.dtype.itemsize > 8
    return scores.astype(np.float64 if wide else scores.dtype.newbyteorder("="), copy=False)


# ---- what users pass ------------------------------------------------------------------------------------


def open_scores(scores: Any, column: str | None = None) -> ScoreBlocks:
    """Scores in blocks. Errors of files are raised here, before work starts."""
    if isinstance(scores, ScoreBlocks):
        return scores
    if isinstance(scores, str | os.PathLike | Url):
        place = as_place("scores", scores)
        return _file(place, column) if isinstance(place, Path) else _copied(place, column)
    if column is not None:
        _raise_column(column)
    # The first entry of a list is an array of scores or a score; an array of no dimensions is a score.
    is_list = isinstance(scores, list | tuple)
    if is_list and len(scores) and _is_array(scores[0]) and getattr(scores[0], "ndim", 1) > 0:
        return ScoreBlocks(lambda: iter(scores))
    if is_list or isinstance(scores, range | memoryview | array) or _is_array(scores):
        # Data sets of HDF5 and Zarr, which need not fit into memory, are read as they are sliced.
        is_lazy = hasattr(scores, "chunks") and hasattr(scores, "ndim")
        return _sliced(scores if is_lazy else plain_scores(scores))
    if not isinstance(scores, Iterable):
        raise_invalid("scores", "an array, a list, a file or an iterable of arrays", f"a {type(scores).__name__}")
    return ScoreBlocks(lambda: iter(scores), rereadable=False)


def _is_array(scores: Any) -> bool:
    """Whether NumPy reads it as one array: its own, a tensor, a column of Arrow or of a data frame."""
    return hasattr(scores, "__array__") and not isinstance(scores, np.generic)


def _sliced(scores: Any) -> ScoreBlocks:
    """An array in memory or in a file, in blocks of rows; one of a wrong shape as a whole, for its error."""
    if scores.ndim not in (1, 2):
        return ScoreBlocks(lambda: iter([scores]))
    step = max(1, BLOCK // max(1, int(np.prod(scores.shape[1:]))))
    starts = range(0, len(scores), step)
    return ScoreBlocks(lambda: (scores[start : start + step] for start in starts), rows=len(scores))


def _raise_column(column: str) -> NoReturn:
    raise_invalid("column", "left out, unless scores is a .parquet file", shown(column))


def _copied(url: Url, column: str | None) -> ScoreBlocks:
    """A temporary copy of a file in a store, which is removed when nothing can read it any more."""
    copy, folder = temporary_copy("scores", url)
    try:
        with named_as(copy.names):
            blocks = _file(copy.path, column)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(blocks.read, shutil.rmtree, folder, ignore_errors=True)
    return blocks


def _file(path: Path, column: str | None) -> ScoreBlocks:
    """Parquet, one file or several, or an .npy file (n,) or (anchors, n), which is memory-mapped."""
    kind = table_suffix(path)
    if column is not None and kind != ".parquet":
        _raise_column(column)
    if kind not in (".npy", ".parquet"):
        raise_invalid("scores", "a file that ends in .npy or .parquet", shown(str(path)))
    check_table("scores", path)
    if kind == ".parquet":
        return _parquet(path, column)
    try:
        scores = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        _unreadable(path, error)
    if scores.ndim not in (1, 2):
        raise_invalid("scores", _SHAPES, f"shape {scores.shape} in {str(path)!r}")
    return _sliced(scores)


def _parquet(path: Path, column: str | None) -> ScoreBlocks:
    """A column of numbers, or of lists of numbers, one list per row."""
    import pyarrow as pa

    @contextmanager
    def readable(part: Path) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:  # a damaged page is found when its turn comes
            _unreadable(part, error)

    parts, rows = shards(path), 0
    with readable(path):
        schema = parquet_schema(path, "scores")
    for part in parts:
        with readable(part), open_parquet(part) as file:
            rows += file.metadata.num_rows
    name = _column(schema, column)
    step = _LISTS if pa.types.is_nested(schema.field(name).type) else BLOCK

    def read() -> Iterator[Any]:
        start = 0
        for part in parts:
            with readable(part), open_parquet(part) as file:
                for batch in file.iter_batches(batch_size=step, columns=[name]):
                    yield _values(name, batch.column(0), start)
                    start += len(batch)
                    del batch
                    pa.default_memory_pool().release_unused()  # else freed pages stay resident

    return ScoreBlocks(read, rows=rows)


def _column(schema: Any, wanted: str | None) -> str:
    """The named column, else the one called score or scores, else the only column of numbers."""
    import pyarrow as pa

    def is_number(kind: Any) -> bool:
        lists = (pa.types.is_list, pa.types.is_fixed_size_list, pa.types.is_large_list)
        inner = kind.value_type if any(fits(kind) for fits in lists) else kind
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
    scores: Scores = values.to_numpy(zero_copy_only=False)
    if not is_rows or not len(column):
        return scores
    ends = np.asarray(column.offsets) if hasattr(column, "offsets") else column.type.list_size * np.arange(2)
    lengths = np.diff(ends)
    return scores.reshape(len(column), -1) if (lengths == lengths[0]).all() else scores


def _unreadable(path: Path, error: Exception) -> NoReturn:
    raise_unreadable("scores", f"a readable {path.suffix.lower()} file", path, error)

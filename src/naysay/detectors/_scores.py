"""Scores of negatives as users pass them: an array, an .npy file or a column of a .parquet file, read in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, at_row, check_exact, check_one_of, first_bad, raise_invalid, shown, shown_names
from naysay.places import Url, check_table, local, shards, table_suffix
from naysay.tables import open_parquet, parquet_schema, reading

Scores = NDArray[Any]
ReadScores = Callable[[], Iterator[Scores]]  # starts a pass over all scores: (n,) finite floats at a time
_BLOCK = 1 << 18  # scores at a time: a block stays in the processor's cache
_LISTS = 1 << 12  # rows of a column of lists that are decoded at a time
_NAMES = ("score", "scores")  # of a column that is taken without being named


class _Block(NamedTuple):
    """Some rows of scores, not yet checked."""

    scores: Scores  # a row for each row; of a column of lists, their values one after another
    rows: int
    row_of_score: NDArray[np.int64] | None = None  # (n,) of a column of lists


@contextmanager
def open_scores(scores: Any, column: str | None = None) -> Iterator[ReadScores]:
    """Give a function that reads the scores from the start. Errors of a file's header are raised here."""
    if isinstance(scores, str | os.PathLike | Url):
        with local("scores", scores) as path:
            blocks = _file(path, column)
            yield lambda: _checked(blocks())
        return
    _check_no_column(column)
    table = as_array("scores", to_numpy(scores))
    _check_dimensions(table)
    yield lambda: _checked(_slices(table))


def _checked(blocks: Iterator[_Block]) -> Iterator[Scores]:
    """The scores as (n,), at most _BLOCK at a time: finite floats. Whole numbers become float64."""
    first_row = 0
    for block in blocks:
        scores = _floats(block.scores)
        bad = ~np.isfinite(scores)
        if bad.any():
            raise_invalid("scores", "finite", _first_bad(scores, bad, block, first_row), "Leave out such pairs.")
        flat = scores.reshape(-1)
        yield from (flat[start : start + _BLOCK] for start in range(0, len(flat), _BLOCK))
        first_row += block.rows


def _floats(scores: Scores) -> Scores:
    if scores.dtype.kind not in "iuf":
        raise_invalid("scores", "numbers", f"dtype {scores.dtype}")
    check_exact("scores", scores)
    wide = scores.dtype.kind != "f" or scores.dtype.itemsize > 8
    return scores.astype(np.float64 if wide else scores.dtype.newbyteorder("="), copy=False)


def _first_bad(scores: Scores, bad: NDArray[np.bool_], block: _Block, first_row: int) -> str:
    """The first bad score and its row, also of a column of lists."""
    if block.row_of_score is None:
        return first_bad(scores, bad, first_row)
    place = int(bad.argmax())
    row = int(block.row_of_score[place])
    slot = place - int(np.searchsorted(block.row_of_score, row))
    n_rows = len(np.unique(block.row_of_score[bad]))
    return at_row(scores[place], first_row + row, n_rows, f", slot {slot}")


def _slices(table: Scores) -> Iterator[_Block]:
    """An array in memory or memory-mapped, in blocks of rows."""
    width = max(1, int(np.prod(table.shape[1:])))
    step = max(1, _BLOCK // width)
    for start in range(0, len(table), step):
        rows = table[start : start + step]
        yield _Block(rows, len(rows))


def _file(path: Path, column: str | None) -> Callable[[], Iterator[_Block]]:
    """Parquet, one file or several, or an .npy file, which is memory-mapped."""
    suffix = table_suffix(path)
    if suffix not in (".npy", ".parquet"):
        raise_invalid("scores", "a file that ends in .npy or .parquet", shown(str(path)))
    if suffix == ".npy":
        _check_no_column(column)
    check_table("scores", path)
    if suffix == ".parquet":
        with reading("scores", path, "a readable .parquet file"):
            name = _chosen_column(parquet_schema(path, "scores"), column)
        return lambda: _parquet_blocks(path, name)
    with reading("scores", path, "a readable .npy file"):
        table = np.lib.format.open_memmap(path, mode="r")
    _check_dimensions(table)
    return lambda: _slices(table)


def _check_no_column(column: str | None) -> None:
    if column is not None:
        raise_invalid("column", "left out, unless scores is a .parquet file", shown(column))


def _check_dimensions(table: Scores) -> None:
    if table.ndim not in (1, 2):
        raise_invalid("scores", "of shape (n,) or (anchors, n)", f"shape {table.shape}")


def _chosen_column(schema: Any, wanted: str | None) -> str:
    """The named column, else the one called score or scores, else the only column of numbers."""
    import pyarrow as pa

    def is_number(kind: Any) -> bool:
        is_list = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)
        inner = kind.value_type if is_list else kind
        return bool(pa.types.is_floating(inner) or pa.types.is_integer(inner))

    unique = [field for field in schema if schema.names.count(field.name) == 1]
    numeric = [field.name for field in unique if is_number(field.type)]
    if wanted is not None:
        check_one_of("column", wanted, schema.names)
        if wanted not in numeric:
            raise_invalid("column", "the name of one column of numbers", shown(wanted))
        return wanted
    named = [name for name in _NAMES if name in numeric]
    if not named and len(numeric) != 1:
        rule = "a file with one column of numbers, or with one of them named score"
        raise_invalid("scores", rule, shown_names(schema.names), "Choose with `column`." if numeric else "")
    return str((named or numeric)[0])


def _parquet_blocks(path: Path, name: str) -> Iterator[_Block]:
    """A column of numbers, or of lists of numbers. Nulls are an error."""
    import pyarrow as pa

    for part in shards(path):
        with reading("scores", part, "a readable .parquet file"), open_parquet(part) as file:
            step = _LISTS if pa.types.is_nested(file.schema_arrow.field(name).type) else _BLOCK
            for batch in file.iter_batches(batch_size=step, columns=[name]):
                column = batch.column(0)
                is_list = hasattr(column, "flatten")
                values = column.flatten() if is_list else column
                if column.null_count or values.null_count:
                    got = f"{column.null_count + values.null_count} in a block"
                    raise_invalid("column", f"a column without nulls ({name!r})", got)
                row_of_score = column.value_parent_indices().to_numpy() if is_list else None
                yield _Block(values.to_numpy(zero_copy_only=False), len(column), row_of_score)
                del batch, column, values
                pa.default_memory_pool().release_unused()  # else freed pages stay resident

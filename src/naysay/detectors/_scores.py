"""Scores of negatives as users pass them: an array, an .npy file or a column of a .parquet file, read in blocks."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, at_row, check_exact, check_one_of, first_bad, raise_invalid, shown, shown_names
from naysay.files import raise_unreadable
from naysay.places import Url, as_place, check_table, named_as, shards, table_suffix, temporary_copy
from naysay.tables import open_parquet, parquet_schema

BLOCK = 1 << 18  # scores at a time: a block stays in the processor's cache
Scores = NDArray[Any]
_LISTS = 1 << 12  # rows of a column of lists that are decoded at a time
_NAMES = ("score", "scores")  # of a column that is taken without being named


class Block(NamedTuple):
    """Some rows of scores, not yet checked.

    Args:
        scores: An array of any shape, a row for each row; of a column of lists, their values one after another.
        rows: The number of rows.
        row_of_score: (n,) the row of each value of a column of lists, ascending; else None.
    """

    scores: Any
    rows: int
    row_of_score: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBlocks:
    """Scores that can be read several times.

    Args:
        read: Starts a pass over blocks.
        rows: The number of rows of a pass.
        on_rows: Called with the number of rows of each block after it was used, for a progress bar.
    """

    read: Callable[[], Iterator[Block]]
    rows: int
    on_rows: Callable[[int], object] | None = None

    def flat(self) -> Iterator[Scores]:
        """The scores of a pass as (n,), at most BLOCK at a time: finite floats. Whole numbers become float64."""
        first_row = 0
        for block in self.read():
            scores = _floats(block.scores)
            bad = ~np.isfinite(scores)
            if bad.any():
                got = _first_bad(scores, bad, block.row_of_score, first_row)
                raise_invalid("scores", "finite", got, "Leave out pairs without a score.")
            flat = scores.reshape(-1)
            yield from (flat[start : start + BLOCK] for start in range(0, len(flat), BLOCK))
            first_row += block.rows
            if self.on_rows is not None:
                self.on_rows(block.rows)


def open_scores(scores: Any, column: str | None = None) -> ScoreBlocks:
    """Scores in blocks. Errors of files are raised here, before work starts."""
    if isinstance(scores, ScoreBlocks):
        return scores
    if isinstance(scores, str | os.PathLike | Url):
        place = as_place("scores", scores)
        return _file(place, column) if isinstance(place, Path) else _copied(place, column)
    _check_no_column(column)
    array = plain_scores(scores)
    if array.ndim not in (1, 2):
        raise_invalid("scores", "of shape (n,) or (anchors, n)", f"shape {array.shape}")
    return _sliced(array)


def plain_scores(given: Any) -> Scores:
    """Scores as a NumPy array of any shape and dtype. Masked values, which NumPy would count, are an error."""
    return as_array("scores", to_numpy(given))


def rounded(values: Any, dtype: np.dtype[Any]) -> Scores:
    """Thresholds in the precision of the scores, to the nearest: as NumPy and torch compare an array with a number."""
    with np.errstate(over="ignore"):  # beyond the largest float16 comes infinity, which no score reaches
        return np.asarray(values, np.float64).astype(dtype)


def in_precision_of(scores: Any, thresholds: Any) -> NDArray[np.float64]:
    """The same as float64, for scores that were converted to it. Whole numbers are exact, and nothing is rounded."""
    precision = np.asarray(to_numpy(scores)).dtype
    return rounded(thresholds, precision if precision.kind == "f" else np.dtype(np.float64)).astype(np.float64)


def _floats(given: Any) -> Scores:
    """One array of a pass as floats. Its values are not yet checked."""
    scores = plain_scores(given)
    if scores.dtype.kind not in "iuf":
        raise_invalid("scores", "numbers", f"dtype {scores.dtype}")
    check_exact("scores", scores)
    wide = scores.dtype.kind != "f" or scores.dtype.itemsize > 8
    return scores.astype(np.float64 if wide else scores.dtype.newbyteorder("="), copy=False)


def _first_bad(scores: Scores, bad: NDArray[np.bool_], row_of_score: NDArray[np.int64] | None, first_row: int) -> str:
    """The first bad score and its row, as `first_bad` reports it, also of a column of lists."""
    if row_of_score is None:
        return first_bad(scores, bad, first_row)
    place = int(bad.argmax())
    row = int(row_of_score[place])
    slot = place - int(np.searchsorted(row_of_score, row))
    n_rows = len(np.unique(row_of_score[bad]))
    return at_row(scores[place], first_row + row, n_rows, f", slot {slot}")


def _sliced(scores: Scores) -> ScoreBlocks:
    """An array in memory or memory-mapped, in blocks of rows."""
    width = max(1, int(np.prod(scores.shape[1:])))
    step = max(1, BLOCK // width)

    def read() -> Iterator[Block]:
        for start in range(0, len(scores), step):
            rows = scores[start : start + step]
            yield Block(rows, len(rows))

    return ScoreBlocks(read, len(scores))


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
    suffix = table_suffix(path)
    if suffix not in (".npy", ".parquet"):
        raise_invalid("scores", "a file that ends in .npy or .parquet", shown(str(path)))
    if suffix == ".npy":
        _check_no_column(column)
    check_table("scores", path)
    if suffix == ".parquet":
        return _parquet(path, column)
    try:
        scores = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        _raise_unreadable(path, error)
    if scores.ndim not in (1, 2):
        raise_invalid("scores", "of shape (n,) or (anchors, n)", f"shape {scores.shape} in {str(path)!r}")
    return _sliced(scores)


def _check_no_column(column: str | None) -> None:
    if column is not None:
        raise_invalid("column", "left out, unless scores is a .parquet file", shown(column))


def _parquet(path: Path, column: str | None) -> ScoreBlocks:
    """A column of numbers, or of lists of numbers."""
    import pyarrow as pa

    @contextmanager
    def readable(part: Path) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:  # a damaged page is found when its turn comes
            _raise_unreadable(part, error)

    parts, rows = shards(path), 0
    with readable(path):
        schema = parquet_schema(path, "scores")
    for part in parts:
        with readable(part), open_parquet(part) as file:
            rows += file.metadata.num_rows
    name = _chosen_column(schema, column)
    step = _LISTS if pa.types.is_nested(schema.field(name).type) else BLOCK

    def read() -> Iterator[Block]:
        for part in parts:
            with readable(part), open_parquet(part) as file:
                for batch in file.iter_batches(batch_size=step, columns=[name]):
                    yield _block(name, batch.column(0))
                    del batch
                    pa.default_memory_pool().release_unused()  # else freed pages stay resident

    return ScoreBlocks(read, rows)


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


def _block(name: str, column: Any) -> Block:
    """A batch of the column. Nulls are an error."""
    is_list = hasattr(column, "flatten")
    values = column.flatten() if is_list else column
    nulls = column.null_count + values.null_count
    if nulls:
        raise_invalid("column", f"a column without nulls ({name!r})", f"{nulls} in a block")
    row_of_score = column.value_parent_indices().to_numpy() if is_list else None
    return Block(values.to_numpy(zero_copy_only=False), len(column), row_of_score)


def _raise_unreadable(path: Path, error: Exception) -> NoReturn:
    raise_unreadable("scores", f"a readable {path.suffix.lower()} file", path, error)

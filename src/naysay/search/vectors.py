"""Vectors in memory or in a file, read a block of rows at a time.

.npy and .safetensors files are read in place, Arrow columns as they are, and a Parquet column is copied once to raw
bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy
from naysay.checks import as_array, check_one_of, public, raise_invalid, shown, shown_names
from naysay.errors import NaysayError
from naysay.files import disk_reason, raise_unreadable
from naysay.places import Url, as_place, check_table, named_as, table_suffix, temporary_copy
from naysay.tables import parquet_batches, parquet_schema

Rows = NDArray[Any]
DTYPES = ("float16", "float32", "float64")
_STORED = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}
WINDOW = 1 << 22  # bytes of a file that are read at once
_GAP = 1 << 14  # bytes between two rows that are read rather than skipped
_MAX_HEADER = 100_000_000  # bytes, the limit of the safetensors format
_KINDS = "NumPy arrays, torch tensors, Arrow columns and the files .npy, .safetensors and .parquet are read."


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """n vectors of one width, made by `open_vectors`.

    Args:
        n: How many vectors.
        width: d, the coordinates of each.
        dtype: float16, float32 or float64, as stored; bfloat16 is read as float32.
        read: Function (start, stop) -> rows.
        take: Function of ascending ids -> rows, copied.
        whole: All of them, if they are in memory as float32 or float64, else None.

    Examples:
        >>> vectors = open_vectors(np.eye(3))
        >>> vectors.n, vectors.width, vectors.rows(1, 2).tolist()
        (3, 3, [[0.0, 1.0, 0.0]])
    """

    n: int
    width: int
    dtype: np.dtype[Any]
    read: Callable[[int, int], Rows]
    take: Callable[[NDArray[np.int64]], Rows]
    whole: Rows | None = None

    def rows(self, start: int, stop: int) -> Rows:
        """(stop - start, width) rows in their dtype: a view of memory, or read from the file."""
        return self.read(start, stop)


@public
def open_vectors(vectors: Any, column: str | None = None) -> Vectors:
    """Open vectors (n, d) of any source. Only the shape and the type are checked here; a search checks the values.

    A .npy or .safetensors file is read in place; a file that becomes shorter meanwhile raises an error. The column of a
    Parquet file is copied once, a batch at a time, to a temporary file that exists as long as the Vectors.

    Args:
        vectors: A NumPy array, nested lists, a torch tensor, an Arrow table or column, or the path of a .npy,
            .safetensors or .parquet file, or of a folder or glob of .parquet files; or a URL, of which a copy is
            made in the folder for temporary files. `Vectors` are returned as they are.
        column: The column of a table, or the tensor of a .safetensors file. Needed if there are several of the right
            type.

    Examples:
        >>> open_vectors([[1.0, 0.0], [0.5, 0.5]]).n
        2
    """
    return as_vectors("vectors", vectors, column)


def as_vectors(parameter: str, given: Any, column: str | None = None) -> Vectors:
    """Do what `open_vectors` does, with the caller's name of the parameter in errors."""
    if isinstance(given, Vectors):
        return given
    if isinstance(given, str | Path | Url):
        place = as_place(parameter, given)
        file = _of_path(parameter, place, column) if isinstance(place, Path) else _of_url(parameter, place, column)
        return Vectors(file.n, file.width, file.dtype, file.read, file.take)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(given, arrow.Table | arrow.Array | arrow.ChunkedArray):
        return of_array(_arrow(parameter, given, column))
    _check_no_column(column)
    if is_torch(given):
        return _of_tensor(parameter, given)
    array = as_array(parameter, given)
    if array.dtype.kind in "iu" and array.size and not isinstance(given, np.ndarray):  # nested lists of 0 and 1
        array = array.astype(np.float64)
    _check_rows(parameter, array.shape, array.dtype)
    return of_array(array)


def _of_path(parameter: str, path: Path, column: str | None) -> _RawFile:
    check_table(parameter, path, _KINDS)
    kind = table_suffix(path)
    if kind not in _READERS:
        raise_invalid(parameter, "a file of vectors", repr(str(path)), _KINDS)
    return _READERS[kind](parameter, path, column)


def _of_url(parameter: str, url: Url, column: str | None) -> _RawFile:
    """Open a temporary copy, which is removed with the vectors; that of Parquet at once, since its rows are copied."""
    copy, folder = temporary_copy(parameter, url)
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    try:
        with named_as(copy.names):
            file = _of_path(parameter, copy.path, column)
    except BaseException:
        remove()
        raise
    if file.path.is_relative_to(folder):
        weakref.finalize(file, remove)
    else:
        remove()
    return file


def floats(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows as the kernels read them: float32 or float64, in C order."""
    return np.ascontiguousarray(rows, np.float32 if rows.dtype == np.float16 else rows.dtype)


def of_array(array: Rows) -> Vectors:
    """Vectors of an array (n, d) of floats."""
    whole = array if array.dtype != np.float16 and array.flags.c_contiguous else None
    n, width = array.shape
    return Vectors(n, width, array.dtype, lambda start, stop: array[start:stop], lambda ids: array[ids], whole)


def _of_tensor(parameter: str, tensor: Any) -> Vectors:
    """Open a tensor on any device; bfloat16 becomes float32 block by block."""
    kind = str(tensor.dtype).removeprefix("torch.")
    _check_rows(parameter, tuple(tensor.shape), "float32" if kind == "bfloat16" else kind)
    if kind != "bfloat16" and tensor.device.type == "cpu":
        return of_array(to_numpy(tensor))

    def read(start: int, stop: int) -> Rows:
        return np.asarray(to_numpy(tensor[start:stop]))

    dtype = np.dtype("float32" if kind == "bfloat16" else kind)
    n, width = tensor.shape
    return Vectors(n, width, dtype, read, lambda ids: np.asarray(to_numpy(tensor[ids])))


# ---- files ----------------------------------------------------------------------------------------------------------


@final
class _RawFile:
    """Rows of a file from the byte `offset` on, read by position: nothing is mapped, so memory stays small."""

    def __init__(
        self, parameter: str, path: Path, shape: tuple[int, int], kind: str, offset: int, *, ours: bool
    ) -> None:
        """Raise if the file is too short for its shape. A file that is `ours` is deleted with this object."""
        self.parameter, self.path, self.offset = parameter, path, offset
        self.n, self.width = shape
        self.half = kind == "bfloat16"
        self.dtype = np.dtype("float32" if self.half else kind)
        self.stored = np.dtype("uint16") if self.half else self.dtype
        if ours:
            weakref.finalize(self, path.unlink, missing_ok=True)
        needed, there = offset + self.n * self.width * self.stored.itemsize, path.stat().st_size
        if there < needed:
            rule = f"a file of at least {needed} bytes for {self.n} x {self.width} {kind}"
            raise_invalid(parameter, rule, f"{there} in {str(path)!r}", "It seems cut off: write it again.")

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the rows from start to stop."""
        rows = np.empty((max(0, min(stop, self.n) - start), self.width), self.stored)
        with self._opened() as file:
            self._fill(file, start, rows)
        return self._floats(rows)

    def take(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """Read the rows of ascending ids; those near each other at once, with the rows between them."""
        row_bytes = self.width * self.stored.itemsize
        is_far = np.diff(ids) > 1 + _GAP // row_bytes
        in_next_window = np.diff(ids // max(1, WINDOW // row_bytes)) > 0
        run_edges = np.unique([0, *(np.flatnonzero(is_far | in_next_window) + 1), len(ids)])
        out = np.empty((len(ids), self.width), self.stored)
        with self._opened() as file:
            for start, stop in pairwise(run_edges.tolist()):
                run = ids[start:stop]
                rows = np.empty((int(run[-1] - run[0]) + 1, self.width), self.stored)
                self._fill(file, int(run[0]), rows)
                out[start:stop] = rows[run - run[0]]
        return self._floats(out)

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        """Raise if the file is not there any more, or cannot be read."""
        try:
            with self.path.open("rb", buffering=0) as file:
                yield file
        except OSError as error:
            got = f"{str(self.path)!r} ({error.strerror})"
            raise_invalid(self.parameter, "a file that stays where it is", got)

    def _fill(self, file: FileIO, start: int, rows: NDArray[Any]) -> None:
        """Read the rows from `start` on. Raises if the file became shorter; reading a memory map would crash."""
        file.seek(self.offset + start * self.width * self.stored.itemsize)
        view = rows.view(np.uint8).reshape(-1).data
        done = file.readinto(view)
        while done < rows.nbytes:
            got = file.readinto(view[done:])
            if not got:
                raise_invalid(self.parameter, "a file that does not change while it is read", repr(str(self.path)))
            done += got

    def _floats(self, array: NDArray[Any]) -> NDArray[Any]:
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32) if self.half else array


def _check_rows(parameter: str, shape: tuple[int, ...], dtype: Any, path: Path | None = None) -> None:
    """Raise unless the shape is (n, d) with d at least 1, and the type a float; `path` is that of a file."""
    where, again = ("", "") if path is None else (f" in {str(path)!r}", " and save again")
    if len(shape) != 2 or shape[1] == 0:
        raise_invalid(parameter, "of shape (n, d), a vector per row", f"shape {tuple(shape)}{where}")
    if str(dtype) not in DTYPES:
        advice = f"Convert them with .astype(np.float32){again}."
        raise_invalid(parameter, "float16, float32 or float64", f"dtype {dtype}{where}", advice)


def _check_no_column(column: str | None) -> None:
    """Raise if a column is given for vectors that are not a table."""
    if column is not None:
        raise_invalid("column", "left out where the vectors are no table", shown(column))


def _npy(parameter: str, path: Path, column: str | None = None) -> _RawFile:
    """Open an .npy file of shape (n, d), in C order and native byte order."""
    _check_no_column(column)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = reader(file)
            offset = file.tell()
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        raise_unreadable(parameter, f"a readable {path.suffix.lower()} file", path, error)
    _check_rows(parameter, shape, dtype, path)
    if fortran and min(shape) > 1:
        advice = "Save np.ascontiguousarray(vectors)."
        raise_invalid(parameter, "stored row by row", f"columns first in {str(path)!r}", advice)
    return _RawFile(parameter, path, (shape[0], shape[1]), str(dtype), offset, ours=False)


def _safetensors(parameter: str, path: Path, name: str | None) -> _RawFile:
    """Open a two-dimensional tensor of a .safetensors file: 8 bytes of length, a header in JSON, then raw bytes."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, _MAX_HEADER)))
        tensors = {key: _tensor(entry) for key, entry in header.items() if key != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise_unreadable(parameter, f"a readable {path.suffix.lower()} file", path, error)
    fitting = {key: entry for key, entry in tensors.items() if len(entry[1]) == 2 and entry[0] in _STORED}
    if name is None:
        if len(fitting) != 1:
            got = f"{len(fitting)} in {str(path)!r}: " + ", ".join(map(repr, sorted(fitting)))
            raise_invalid(parameter, "a file with one matrix of floats", got.rstrip(": "), "Choose with `column`.")
        name = next(iter(fitting))
    check_one_of("column", name, sorted(tensors))
    kind, shape, begin, end = tensors[name]
    if name not in fitting or shape[1] == 0:
        raise_invalid("column", "a matrix of floats", f"{name!r} of {kind} {shape}")
    chosen = _STORED[kind]
    if end - begin != shape[0] * shape[1] * (2 if chosen.endswith("16") else np.dtype(chosen).itemsize):
        raise_invalid(parameter, "a file whose tensors have their size", f"{name!r} of {end - begin} bytes")
    return _RawFile(parameter, path, (shape[0], shape[1]), chosen, 8 + length + begin, ours=False)


def _tensor(entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Kind, shape, begin and end of one entry of the header; raises ValueError if it is damaged."""
    damaged = "an entry of its header is damaged"
    shape, ends = entry["shape"], entry["data_offsets"]
    if len(ends) != 2 or not all(type(size) is int and size >= 0 for size in [*shape, *ends]) or ends[1] < ends[0]:
        raise ValueError(damaged)
    return str(entry["dtype"]), tuple(shape), ends[0], ends[1]


def _arrow(parameter: str, given: Any, column: str | None) -> NDArray[Any]:
    """Return a column of lists of one length as an array (n, d), without a copy if it is in one chunk."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        given = given.column(_column(parameter, given.schema, column))
    else:
        _check_no_column(column)
    if _float_type(given.type) is None:
        raise_invalid(parameter, "a column of lists of floats", f"{given.type}")
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    return _matrix(parameter, given, 0, 0)


def _parquet(parameter: str, path: Path, column: str | None) -> _RawFile:
    """Copy a column of lists of one length, batch by batch, to a temporary file of raw rows, deleted after use."""
    import pyarrow as pa

    try:
        schema = parquet_schema(path, parameter)
    except (pa.ArrowException, OSError) as error:
        raise_unreadable(parameter, f"a readable {path.suffix.lower()} file", path, error)
    name = _column(parameter, schema, column)
    handle, copy = tempfile.mkstemp(prefix="naysay-", suffix=".rows")
    rows, width = 0, 0
    try:
        for batch in parquet_batches(path, [name]):
            block = _matrix(parameter, batch.column(0), rows, width)
            _write(handle, Path(copy).parent, np.ascontiguousarray(block))
            rows, width = rows + len(block), block.shape[1] if len(block) else width
        kind = str(np.dtype(_float_type(schema.field(name).type).to_pandas_dtype()))
        shape = (rows, int(width or getattr(schema.field(name).type, "list_size", 1)))
        return _RawFile(parameter, Path(copy), shape, kind, 0, ours=True)
    except BaseException as error:
        os.unlink(copy)
        if isinstance(error, pa.ArrowException | OSError):  # a damaged page is found only when it is read
            raise_unreadable(parameter, f"a readable {path.suffix.lower()} file", path, error)
        raise
    finally:
        os.close(handle)


def _write(handle: int, folder: Path, rows: NDArray[Any]) -> None:
    """Write all bytes to a temporary file; a full disk is not an error of the file that is read."""
    view = rows.reshape(-1).view(np.uint8).data
    try:
        while view:
            view = view[os.write(handle, view) :]
    except OSError as error:
        place = f"the folder for temporary files, {str(folder)!r}, cannot be written ({disk_reason(error)})"
        message = f"{place}. Set TMPDIR to a folder with more space."
        raise NaysayError(message) from None


def _float_type(kind: Any) -> Any:
    """The type inside a list of floats, or None."""
    import pyarrow as pa

    if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    return kind.value_type if pa.types.is_floating(kind.value_type) else None


def _column(parameter: str, schema: Any, wanted: str | None) -> str:
    """Return the named column, or else the only one of lists of floats."""
    if wanted is not None:
        check_one_of("column", wanted, schema.names)
        if schema.names.count(wanted) > 1 or _float_type(schema.field(wanted).type) is None:
            kind = "several columns" if schema.names.count(wanted) > 1 else schema.field(wanted).type
            raise_invalid("column", "one column of lists of floats", f"{wanted!r}: {kind}")
        return wanted
    fitting = [field.name for field in schema if _float_type(field.type) is not None]
    if len(fitting) != 1:
        got = f"columns {shown_names(schema.names)}" if schema.names else "no columns"
        advice = "Choose with `column`." if fitting else ""
        raise_invalid(parameter, "a table with one column of lists of floats", got, advice)
    return str(fitting[0])


def _matrix(parameter: str, column: Any, start: int, width: int) -> NDArray[Any]:
    """Return a part of a column as (n, d); raise for nulls and for rows of another length than the first."""
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


_READERS: dict[str, Callable[[str, Path, str | None], _RawFile]] = {
    ".npy": _npy,
    ".safetensors": _safetensors,
    ".parquet": _parquet,
}

"""Sources of vectors: .npy and .safetensors files, read in place; Arrow columns; Parquet, copied once to raw bytes."""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, raise_invalid, shown, shown_names
from naysay.errors import NaysayError
from naysay.files import disk_reason, raise_unreadable
from naysay.tables import parquet_batches, parquet_schema

DTYPES = ("float16", "float32", "float64")
_STORED = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}
WINDOW = 1 << 22  # bytes of a file that are read at once
_GAP = 1 << 14  # bytes between two rows that are read rather than skipped
_MAX_HEADER = 100_000_000  # bytes, the limit of the safetensors format


@final
class RawFile:
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


def check_rows(parameter: str, shape: tuple[int, ...], dtype: Any, path: Path | None = None) -> None:
    """Raise unless the shape is (n, d) with d at least 1, and the type a float; `path` is that of a file."""
    where, again = ("", "") if path is None else (f" in {str(path)!r}", " and save again")
    if len(shape) != 2 or shape[1] == 0:
        raise_invalid(parameter, "of shape (n, d), a vector per row", f"shape {tuple(shape)}{where}")
    if str(dtype) not in DTYPES:
        advice = f"Convert them with .astype(np.float32){again}."
        raise_invalid(parameter, "float16, float32 or float64", f"dtype {dtype}{where}", advice)


def check_no_column(column: str | None) -> None:
    """Raise if a column is given for vectors that are not a table."""
    if column is not None:
        raise_invalid("column", "left out where the vectors are no table", shown(column))


def npy(parameter: str, path: Path, column: str | None = None) -> RawFile:
    """Open an .npy file of shape (n, d), in C order and native byte order."""
    check_no_column(column)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = reader(file)
            offset = file.tell()
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        raise_unreadable(parameter, f"a readable {path.suffix.lower()} file", path, error)
    check_rows(parameter, shape, dtype, path)
    if fortran and min(shape) > 1:
        advice = "Save np.ascontiguousarray(vectors)."
        raise_invalid(parameter, "stored row by row", f"columns first in {str(path)!r}", advice)
    return RawFile(parameter, path, (shape[0], shape[1]), str(dtype), offset, ours=False)


def safetensors(parameter: str, path: Path, name: str | None) -> RawFile:
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
    return RawFile(parameter, path, (shape[0], shape[1]), chosen, 8 + length + begin, ours=False)


def _tensor(entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Kind, shape, begin and end of one entry of the header; raises ValueError if it is damaged."""
    damaged = "an entry of its header is damaged"
    shape, ends = entry["shape"], entry["data_offsets"]
    if len(ends) != 2 or not all(type(size) is int and size >= 0 for size in [*shape, *ends]) or ends[1] < ends[0]:
        raise ValueError(damaged)
    return str(entry["dtype"]), tuple(shape), ends[0], ends[1]


def arrow(parameter: str, given: Any, column: str | None) -> NDArray[Any]:
    """Return a column of lists of one length as an array (n, d), without a copy if it is in one chunk."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        given = given.column(_column(parameter, given.schema, column))
    else:
        check_no_column(column)
    if _float_type(given.type) is None:
        raise_invalid(parameter, "a column of lists of floats", f"{given.type}")
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    return _matrix(parameter, given, 0, 0)


def parquet(parameter: str, path: Path, column: str | None) -> RawFile:
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
        return RawFile(parameter, Path(copy), shape, kind, 0, ours=True)
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


Reader = Callable[[str, Path, str | None], RawFile]
READERS: dict[str, Reader] = {".npy": npy, ".safetensors": safetensors, ".parquet": parquet}

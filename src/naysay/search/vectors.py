"""Vectors wherever they are: in memory or in a file, read a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy
from naysay.checks import as_array, raise_invalid, shown
from naysay.search import _vector_columns as vector_columns
from naysay.search import _vector_files as vector_files

Rows = NDArray[Any]
_KINDS = "NumPy arrays, torch tensors, Arrow columns and the files .npy, .safetensors and .parquet are read."


@final
@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """n vectors of one width.

    Args:
        n: The shape.
        width: The shape.
        dtype: Float16, float32 or float64, as stored; bfloat16 is read as float32.
        read: Rows from start to stop.
        take: The rows of ascending ids, copied.
        whole: All of them, where they are in memory as float32 or float64, else None.
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


def open_vectors(parameter: str, given: Any, column: str | None = None) -> Vectors:
    """Vectors (n, d) from what a user hands in; nothing but their shape is looked at yet.

    A .npy or .safetensors file is read where it lies. Of a Parquet file the column is copied once, a batch at a time,
    to an unnamed place on disk that lives as long as the Vectors: row groups can be larger than any memory, and a
    search reads rows more than once.

    Args:
        given: A NumPy array, nested lists, a torch tensor, an Arrow table or column, or the path of a .npy,
            .safetensors or .parquet file.
        column: The column of a table, or the tensor of a .safetensors file; needed where several fit.
    """
    if isinstance(given, str | Path):
        path = Path(given)
        if not path.is_file():
            raise_invalid(parameter, "an existing file", repr(str(path)), _KINDS)
        kind = path.suffix.lower()
        if kind == ".npy":
            _no_column(column)
            return _of_file(vector_files.npy(parameter, path))
        if kind == ".safetensors":
            return _of_file(vector_files.safetensors(parameter, path, column))
        if kind == ".parquet":
            return _of_file(vector_columns.parquet(parameter, path, column))
        raise_invalid(parameter, "a file of vectors", repr(str(path)), _KINDS)
    if vector_columns.is_arrow(given):
        return _of_array(vector_columns.arrow(parameter, given, column))
    _no_column(column)
    if is_torch(given):
        return _of_tensor(parameter, given)
    array = as_array(parameter, given)
    if array.dtype.kind in "iu" and array.size and not isinstance(given, np.ndarray):  # nested lists of 0 and 1
        array = array.astype(np.float64)
    _check(parameter, array.shape, array.dtype)
    return _of_array(array)


def _no_column(column: str | None) -> None:
    if column is not None:
        raise_invalid("column", "None where the vectors are no table", shown(column))


def _check(parameter: str, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse what is not (n, d) with d of at least 1, or not a float."""
    if len(shape) != 2 or shape[1] == 0:
        raise_invalid(parameter, "of shape (n, d), a vector per row", f"shape {tuple(shape)}")
    if str(dtype) not in vector_files.DTYPES:
        advice = "Convert them with .astype(np.float32)."
        raise_invalid(parameter, "float16, float32 or float64", f"dtype {dtype}", advice)


def _of_array(array: Rows) -> Vectors:
    whole = array if array.dtype != np.float16 and array.flags.c_contiguous else None
    rows, width = array.shape
    return Vectors(rows, width, array.dtype, lambda start, stop: array[start:stop], lambda ids: array[ids], whole)


def _of_tensor(parameter: str, tensor: Any) -> Vectors:
    """A tensor on any device; bfloat16 becomes float32 block by block."""
    kind = str(tensor.dtype).removeprefix("torch.")
    _check(parameter, tuple(tensor.shape), "float32" if kind == "bfloat16" else kind)
    if kind != "bfloat16" and tensor.device.type == "cpu":
        return _of_array(to_numpy(tensor))
    rows, width = tensor.shape
    dtype = np.dtype("float32" if kind == "bfloat16" else kind)

    def read(start: int, stop: int) -> Rows:
        return np.asarray(to_numpy(tensor[start:stop]))

    return Vectors(rows, width, dtype, read, lambda ids: np.asarray(to_numpy(tensor[ids])))


def _of_file(file: vector_files.RawFile) -> Vectors:
    return Vectors(file.n, file.width, file.dtype, file.read, file.take)

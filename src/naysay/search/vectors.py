"""Vectors in memory or in a file, read a block of rows at a time."""

from __future__ import annotations

import shutil
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy
from naysay.checks import as_array, public, raise_invalid
from naysay.places import Url, as_place, check_table, named_as, table_suffix, temporary_copy
from naysay.search import _vector_files as vector_files

Rows = NDArray[Any]
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

    A .npy or .safetensors file is read in place; a file that becomes shorter meanwhile raises an error. (A NumPy array
    that maps a file, `np.load(..., mmap_mode="r")`, ends the process in that case: pass the path.) The column of a
    Parquet file is copied once, a batch at a time, to a temporary file that exists as long as the Vectors: row groups
    can be larger than the memory, and a search reads rows more than once.

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
        return _of_array(vector_files.arrow(parameter, given, column))
    vector_files.check_no_column(column)
    if is_torch(given):
        return _of_tensor(parameter, given)
    array = as_array(parameter, given)
    if array.dtype.kind in "iu" and array.size and not isinstance(given, np.ndarray):  # nested lists of 0 and 1
        array = array.astype(np.float64)
    vector_files.check_rows(parameter, array.shape, array.dtype)
    return _of_array(array)


def _of_path(parameter: str, path: Path, column: str | None) -> vector_files.RawFile:
    check_table(parameter, path, _KINDS)
    kind = table_suffix(path)
    if kind not in vector_files.READERS:
        raise_invalid(parameter, "a file of vectors", repr(str(path)), _KINDS)
    return vector_files.READERS[kind](parameter, path, column)


def _of_url(parameter: str, url: Url, column: str | None) -> vector_files.RawFile:
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


def _of_array(array: Rows) -> Vectors:
    whole = array if array.dtype != np.float16 and array.flags.c_contiguous else None
    n, width = array.shape
    return Vectors(n, width, array.dtype, lambda start, stop: array[start:stop], lambda ids: array[ids], whole)


def _of_tensor(parameter: str, tensor: Any) -> Vectors:
    """Open a tensor on any device; bfloat16 becomes float32 block by block."""
    kind = str(tensor.dtype).removeprefix("torch.")
    vector_files.check_rows(parameter, tuple(tensor.shape), "float32" if kind == "bfloat16" else kind)
    if kind != "bfloat16" and tensor.device.type == "cpu":
        return _of_array(to_numpy(tensor))

    def read(start: int, stop: int) -> Rows:
        return np.asarray(to_numpy(tensor[start:stop]))

    dtype = np.dtype("float32" if kind == "bfloat16" else kind)
    n, width = tensor.shape
    return Vectors(n, width, dtype, read, lambda ids: np.asarray(to_numpy(tensor[ids])))

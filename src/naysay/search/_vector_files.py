"""Files that hold vectors as raw bytes: .npy, .safetensors, and the copies made of columns."""

from __future__ import annotations

import json
import os
import weakref
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, raise_invalid

DTYPES = ("float16", "float32", "float64")
_STORED = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}
WINDOW = 1 << 22  # bytes of a file that are mapped at once
_MOST_HEADER = 100_000_000  # bytes: what the safetensors format itself allows


@final
class RawFile:
    """Rows of a file from the byte `offset` on, read by position: pages are not mapped, so memory stays small."""

    def __init__(
        self, parameter: str, path: Path, shape: tuple[int, int], kind: str, offset: int, *, ours: bool
    ) -> None:
        """Refuse a file too short for its shape. A file that is `ours` is deleted with this object."""
        self.parameter, self.path, self.offset = parameter, path, offset
        self.n, self.width = shape
        self.half = kind == "bfloat16"
        self.dtype = np.dtype("float32" if self.half else kind)
        self.stored = np.dtype("uint16") if self.half else self.dtype
        if ours:
            weakref.finalize(self, _remove, str(path))
        needed, there = offset + self.n * self.width * self.stored.itemsize, path.stat().st_size
        if there < needed:
            rule = f"a file of at least {needed} bytes for {self.n} x {self.width} {kind}"
            raise_invalid(parameter, rule, f"{there} in {str(path)!r}", "It seems cut off: write it again.")

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows from start to stop, freshly read."""
        stop = min(stop, self.n)
        array = np.empty((max(0, stop - start), self.width), self.stored)
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset + start * self.width * self.stored.itemsize)
            view, done = array.reshape(-1).view(np.uint8).data, 0
            while done < array.nbytes:
                got = file.readinto(view[done:])
                if not got:
                    raise_invalid(self.parameter, "a file that nobody changes meanwhile", repr(str(self.path)))
                done += got
        return self._floats(array)

    def take(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """The rows of ascending ids, by maps of parts of the file that are let go again: few pages are held at once."""
        out = np.empty((len(ids), self.width), self.stored)
        size = self.width * self.stored.itemsize
        step = max(1, WINDOW // size)
        edges = np.searchsorted(ids, np.arange(0, self.n + step, step))
        for part in np.flatnonzero(edges[1:] > edges[:-1]):
            start, inside = int(part) * step, slice(edges[part], edges[part + 1])
            shape = (min(step, self.n - start), self.width)
            rows = np.memmap(self.path, self.stored, "r", self.offset + start * size, shape)
            out[inside] = rows[ids[inside] - start]
        return self._floats(out)

    def _floats(self, array: NDArray[Any]) -> NDArray[Any]:
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32) if self.half else array


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def npy(parameter: str, path: Path) -> RawFile:
    """An .npy file of shape (n, d), in C order and this machine's byte order."""
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = reader(file)
            offset = file.tell()
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        unreadable(parameter, path, error)
    if len(shape) != 2 or shape[1] == 0:
        raise_invalid(parameter, "of shape (n, d), a vector per row", f"shape {shape} in {str(path)!r}")
    if str(dtype) not in DTYPES:
        advice = "Convert them with .astype(np.float32) and save again."
        raise_invalid(parameter, "float16, float32 or float64", f"dtype {dtype} in {str(path)!r}", advice)
    if fortran and min(shape) > 1:
        advice = "Save np.ascontiguousarray(vectors)."
        raise_invalid(parameter, "stored row by row", f"columns first in {str(path)!r}", advice)
    return RawFile(parameter, path, (shape[0], shape[1]), str(dtype), offset, ours=False)


def safetensors(parameter: str, path: Path, name: str | None) -> RawFile:
    """A two-dimensional tensor of a .safetensors file: 8 bytes of length, a header in JSON, then raw bytes."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, _MOST_HEADER)))
        tensors = {key: _tensor(entry) for key, entry in header.items() if key != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        unreadable(parameter, path, error)
    fitting = {key: entry for key, entry in tensors.items() if len(entry[1]) == 2 and entry[0] in _STORED}
    if name is None:
        if len(fitting) != 1:
            got = f"{len(fitting)} in {str(path)!r}: " + ", ".join(map(repr, sorted(fitting)))
            raise_invalid(parameter, "a file with one matrix of floats", got.rstrip(": "), "Choose with column.")
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
    """Kind, shape and the two ends of one entry of the header; what does not fit is a ValueError."""
    damaged = "an entry of its header is damaged"
    shape, ends = entry["shape"], entry["data_offsets"]
    if len(ends) != 2 or not all(type(size) is int and size >= 0 for size in [*shape, *ends]) or ends[1] < ends[0]:
        raise ValueError(damaged)
    return str(entry["dtype"]), tuple(shape), ends[0], ends[1]


def unreadable(parameter: str, path: Path, error: Exception) -> NoReturn:
    """Refuse a file in one sentence, with the first line of what its reader said."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    raise_invalid(parameter, f"a readable {path.suffix.lower()} file", f"{str(path)!r} ({reason})")

"""Vectors of a job: read by position, and looked after while the job runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.search._vector_files import WINDOW
from naysay.search.vectors import Vectors, as_vectors

_NEAR = 1 << 15  # bytes between two wanted rows that are read along with them


def open_steady(option: str, path: Path) -> Vectors:
    """Vectors of a file, all of them read by position.

    A file that is cut short while it is mapped ends the process; one that is read so is a refusal. Rows that lie close
    together are read at once, a few megabytes at most.
    """
    vectors = as_vectors(option, path)
    size = vectors.width * vectors.dtype.itemsize
    gap, most = max(1, _NEAR // size), max(1, WINDOW // size)

    def read(start: int, stop: int) -> NDArray[Any]:
        try:
            return vectors.read(start, stop)
        except OSError as error:
            raise_invalid(option, "a file that stays where it is", f"{shown(str(path))} ({error.strerror})")

    def take(ids: NDArray[np.int64]) -> NDArray[Any]:
        found = np.empty((len(ids), vectors.width), vectors.dtype)
        apart = (np.diff(ids) > gap) | (np.diff(ids // most) > 0)
        for first, last in pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(ids)]):
            if last > first:
                run = read(int(ids[first]), int(ids[last - 1]) + 1)
                found[first:last] = run[ids[first:last] - ids[first]]
        return found

    return replace(vectors, read=read, take=take)


def check_size(option: str, path: Path, expected: int) -> None:
    """Refuse a file that has changed its size since the job began."""
    there = path.stat().st_size if path.is_file() else 0
    if there != expected:
        advice = "Put it back, and run again with --resume."
        raise_invalid(option, f"of {expected:,} bytes, as when the job began", f"{there:,} in {str(path)!r}", advice)

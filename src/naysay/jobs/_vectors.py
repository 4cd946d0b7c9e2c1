"""Vectors of a job: read by position, checked while the job runs, and mined in parts that fit the memory budget."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.mining._task import Task
from naysay.search._vector_files import WINDOW
from naysay.search.vectors import Vectors, as_vectors

_NEAR = 1 << 15  # bytes between two wanted rows that are read along with them
_SLOT = 200  # bytes of a candidate while the stages sort and judge it
_DEEP = 120  # bytes of a candidate of a deeper search
_FIXED = 112 << 20  # blocks of vectors and texts, and what the libraries take for themselves
_SMALLEST = 152 << 20
_ROWS, _PARTS = 4096, 16  # the fewest anchors of a part, and the fewest parts of a large job, if the budget allows both


def open_steady(option: str, path: Path) -> Vectors:
    """Open the vectors of a file, which is read by position.

    A file that is cut short while it is mapped ends the process; read by position, it raises an error. Rows that are
    close together are read at once, a few megabytes at most.
    """
    vectors = as_vectors(option, path)
    size = vectors.width * vectors.dtype.itemsize
    gap, longest = max(1, _NEAR // size), max(1, WINDOW // size)

    def read(start: int, stop: int) -> NDArray[Any]:
        try:
            return vectors.read(start, stop)
        except OSError as error:
            raise_invalid(option, "a file that stays where it is", f"{shown(str(path))} ({error.strerror})")

    def take(ids: NDArray[np.int64]) -> NDArray[Any]:
        rows = np.empty((len(ids), vectors.width), vectors.dtype)
        apart = (np.diff(ids) > gap) | (np.diff(ids // longest) > 0)
        for first, last in pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(ids)]):
            if last > first:
                block = read(int(ids[first]), int(ids[last - 1]) + 1)
                rows[first:last] = block[ids[first:last] - ids[first]]
        return rows

    return replace(vectors, read=read, take=take)


def check_size(option: str, path: Path, expected: int) -> None:
    """Raise if a file has changed its size since the job began."""
    size = path.stat().st_size if path.is_file() else 0
    if size != expected:
        advice = "Put it back, and run again with --resume."
        raise_invalid(option, f"of {expected:,} bytes, as when the job began", f"{size:,} in {str(path)!r}", advice)


def within(task: Task, budget: int) -> tuple[Task, int]:
    """Return the task with its share of the memory budget, and how many anchors to mine at a time.

    The search comes before the stages, so each may have nearly all. A large job has 16 parts or more: a kill loses one
    of them at most. A part has at least 4,096 anchors, since each reads the corpus. The result is the same for any.
    """
    slots = task.depth + sum(ids.shape[1] for ids in task.lists.values()) + task.width
    open_pairs = 6 * task.depth + 256
    searching = task.depth * 12 + open_pairs * 12 + task.corpus.width * 24 + 96
    each = max(slots * _SLOT, searching)
    exact = open_pairs * task.corpus.width * 24  # one query's open pairs while they are scored
    needed = max(_SMALLEST, _FIXED + exact * 2 + each)
    if budget < needed:
        raise_invalid("--budget", f"at least {-(-needed // 1_000_000)}MB for this job", f"{budget / 1e6:g}MB")
    free = budget - _FIXED
    rows = max(1, min(int(0.7 * free) // each, max(_ROWS, -(-task.queries.n // _PARTS))))
    options = replace(task.options, budget=int(0.9 * free))
    return replace(task, options=options, slots=max(task.depth, int(0.4 * free) // _DEEP)), rows

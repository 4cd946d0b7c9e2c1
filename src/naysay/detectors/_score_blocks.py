"""Scores in blocks: a pass over them, a little at a time, checked on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, raise_invalid

BLOCK = 1 << 18  # scores: a block and its keys stay in the processor's cache
SHAPES = "of shape (n,) or (anchors, n)"
Scores = NDArray[Any]
Seen = Callable[[int], object]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreBlocks:
    """Where scores are read from.

    Args:
        read: A fresh pass: arrays (n,) or (anchors, n), not yet checked.
        again: Whether a second pass gives the same scores.
        rows: How many rows a pass has, or None if nobody knows.
        seen: Called with the number of rows after each array, for a progress bar.
    """

    read: Callable[[], Iterator[Any]]
    again: bool
    rows: int | None
    seen: Seen | None = None

    def arrays(self) -> Iterator[Scores]:
        """The arrays of a pass: floats of one precision, finite; whole numbers become float64."""
        start, dtype = 0, None
        for given in self.read():
            array = _floats(given)
            if dtype is not None and array.dtype != dtype:
                advice = "Convert all blocks to one."
                raise_invalid("scores", f"of one dtype, {dtype} like the first block", f"{array.dtype}", advice)
            dtype = array.dtype
            _check_finite(array, start, self.rows)
            yield array
            start += len(array)
            if self.seen is not None:
                self.seen(len(array))

    def flat(self) -> Iterator[Scores]:
        """The same as (n,), at most BLOCK scores at a time."""
        for array in self.arrays():
            scores = array.reshape(-1)
            for start in range(0, len(scores), BLOCK):
                yield scores[start : start + BLOCK]


def plain_scores(given: Any) -> Scores:
    """An array as NumPy has it, of any shape and dtype; masked values, which NumPy would count, are refused."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        got = f"{np.count_nonzero(given.mask)} of {given.size} masked"
        raise_invalid("scores", "without masked values", got, "Pass scores.compressed() for the others.")
    return as_array("scores", to_numpy(given))


def first_slot(values: Scores, bad: NDArray[np.bool_], start: int = 0) -> str:
    """'nan at row 3, slot 7 (2 such rows)': the first bad score and how many rows have one; rows count from `start`."""
    values, bad = np.atleast_1d(values, bad)
    row, *slot = map(int, np.unravel_index(int(bad.argmax()), bad.shape))
    place = f", slot {', '.join(map(str, slot))}" if slot else ""
    rows = np.count_nonzero(bad.reshape(len(bad), -1).any(axis=1))
    return f"{values[(row, *slot)]} at row {start + row}{place} ({rows} such row{'s' if rows > 1 else ''})"


def sliced(array: Any, seen: Seen | None) -> ScoreBlocks:
    """An array in memory or in a file, in blocks of rows; what is no array of rows goes on to be refused."""
    if array.ndim not in (1, 2):
        return ScoreBlocks(lambda: iter([array]), again=True, rows=None, seen=seen)
    step = max(1, BLOCK // max(1, int(np.prod(array.shape[1:]))))
    starts = range(0, len(array), step)
    return ScoreBlocks(lambda: (array[s : s + step] for s in starts), again=True, rows=len(array), seen=seen)


def _floats(given: Any) -> Scores:
    """One array of a pass, checked but for its values."""
    array = plain_scores(given)
    if array.ndim not in (1, 2):
        advice = "" if array.ndim else "Pass numbers as a list; a stream gives arrays."
        raise_invalid("scores", SHAPES, f"shape {array.shape}", advice)
    if array.dtype.kind not in "iuf":
        raise_invalid("scores", "numbers", f"dtype {array.dtype}")
    wide = array.dtype.kind != "f" or array.dtype.itemsize > 8
    return array.astype(np.float64 if wide else array.dtype.newbyteorder("="), copy=False)


def _check_finite(array: Scores, start: int, rows: int | None) -> None:
    """Refuse NaN and infinity: the first bad score, and how many rows of its block have one."""
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    got = first_slot(array, bad, start)
    if rows != len(array):  # what comes after this block has not been looked at
        got = f"{got[:-1]} in its block)"
    raise_invalid("scores", "finite", got, "Leave out pairs that have no score.")

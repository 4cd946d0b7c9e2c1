"""Scores in blocks: one pass over them, checked on the way, and thresholds in their precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, raise_invalid

BLOCK = 1 << 18  # scores: a block stays in the processor's cache
SHAPES = "of shape (n,) or (anchors, n)"
Scores = NDArray[Any]
OnRows = Callable[[int], object]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreBlocks:
    """A source of scores.

    Args:
        read: Starts a pass over arrays (n,) or (anchors, n), not yet checked.
        rereadable: Whether a second pass gives the same scores.
        rows: The number of rows of a pass, or None if it is unknown.
        on_rows: Called with the number of rows of each array after it was used, for a progress bar.
    """

    read: Callable[[], Iterator[Any]]
    rereadable: bool
    rows: int | None
    on_rows: OnRows | None = None

    def arrays(self) -> Iterator[Scores]:
        """Yield the arrays of a pass: finite floats of one precision. Whole numbers become float64."""
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
            if self.on_rows is not None:
                self.on_rows(len(array))

    def flat(self) -> Iterator[Scores]:
        """Yield the scores of a pass as (n,), at most BLOCK at a time."""
        for array in self.arrays():
            scores = array.reshape(-1)
            for start in range(0, len(scores), BLOCK):
                yield scores[start : start + BLOCK]


def plain_scores(given: Any) -> Scores:
    """Return scores as a NumPy array of any shape and dtype. Masked values, which NumPy would count, are an error."""
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


def rounded(values: Any, dtype: np.dtype[Any]) -> Scores:
    """Thresholds in the precision of the scores, to the nearest: as NumPy and torch compare an array with a number."""
    with np.errstate(over="ignore"):  # beyond the largest float16 comes infinity, which no score reaches
        return np.asarray(values, np.float64).astype(dtype)


def _floats(given: Any) -> Scores:
    """One array of a pass as floats. Its values are not yet checked."""
    array = plain_scores(given)
    if array.ndim not in (1, 2):
        advice = "" if array.ndim else "Pass numbers as a list; a stream gives arrays."
        raise_invalid("scores", SHAPES, f"shape {array.shape}", advice)
    if array.dtype.kind not in "iuf":
        raise_invalid("scores", "numbers", f"dtype {array.dtype}")
    wide = array.dtype.kind != "f" or array.dtype.itemsize > 8
    return array.astype(np.float64 if wide else array.dtype.newbyteorder("="), copy=False)


def _check_finite(array: Scores, start: int, rows: int | None) -> None:
    """Raise if a score is NaN or infinite."""
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    got = first_slot(array, bad, start)
    if rows != len(array):  # later blocks have not been read
        got = f"{got[:-1]} in its block)"
    raise_invalid("scores", "finite", got, "Leave out pairs that have no score.")

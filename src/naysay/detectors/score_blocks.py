"""Scores in blocks: a pass over them, a little at a time, checked on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, first_bad, refuse

BLOCK = 1 << 18  # scores: a block and its keys stay in the processor's cache
SHAPES = "of shape (n,) or (anchors, n)"
Scores = NDArray[Any]
Seen = Callable[[int], object]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreBlocks:
    """Where scores are read from.

    read    a fresh pass: arrays (n,) or (anchors, n), not yet checked
    again   whether a second pass gives the same scores
    rows    how many rows a pass has, or None if nobody knows
    seen    called with the number of rows after each array, for a progress bar
    """

    read: Callable[[], Iterator[Any]]
    again: bool
    rows: int | None
    seen: Seen | None = None

    def arrays(self, owner: str) -> Iterator[Scores]:
        """The arrays of a pass: floats of one precision, finite; whole numbers become float64."""
        start, dtype = 0, None
        for given in self.read():
            array = _floats(owner, given)
            if dtype is not None and array.dtype != dtype:
                advice = "Convert all blocks to one."
                refuse(owner, "scores", f"of one dtype, {dtype} like the first block", f"{array.dtype}", advice)
            dtype = array.dtype
            _check_finite(owner, array, start)
            yield array
            start += len(array)
            if self.seen is not None:
                self.seen(len(array))

    def flat(self, owner: str) -> Iterator[Scores]:
        """The same as (n,), at most BLOCK scores at a time."""
        for array in self.arrays(owner):
            scores = array.reshape(-1)
            for start in range(0, len(scores), BLOCK):
                yield scores[start : start + BLOCK]


def sliced(array: Scores, seen: Seen | None) -> ScoreBlocks:
    """An array in memory or mapped from a file, in blocks of rows; what is no array of rows goes on to be refused."""
    if array.ndim not in (1, 2):
        return ScoreBlocks(lambda: iter([array]), again=True, rows=None, seen=seen)
    step = max(1, BLOCK // max(1, array[:1].size))
    starts = range(0, len(array), step)
    return ScoreBlocks(lambda: (array[s : s + step] for s in starts), again=True, rows=len(array), seen=seen)


def _floats(owner: str, given: Any) -> Scores:
    """One array of a pass, checked but for its values."""
    array = as_array(owner, "scores", to_numpy(given))
    if array.ndim not in (1, 2):
        refuse(owner, "scores", SHAPES, f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        refuse(owner, "scores", "numbers", f"dtype {array.dtype}")
    wide = array.dtype.kind != "f" or array.dtype.itemsize > 8
    return array.astype(np.float64 if wide else array.dtype.newbyteorder("="), copy=False)


def _check_finite(owner: str, array: Scores, start: int) -> None:
    """Refuse NaN and infinity: the first bad row, counted from the start of the pass, and how many in its block."""
    good = np.isfinite(array)
    if good.all():
        return
    got, advice = first_bad(array, ~good), "Leave out pairs that have no score."
    if start:
        place = f"row {start + int(np.flatnonzero(~good.reshape(len(good), -1).all(axis=1))[0])}"
        got = f"{array[~good][0]} at {place} (the first of {int((~good).sum())} in its block)"
    refuse(owner, "scores", "finite", got, advice)

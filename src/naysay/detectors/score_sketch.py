"""A sketch of many scores: how many are at or above any value, from one pass in little memory."""

from __future__ import annotations

from copy import copy
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay.checks import MOST_ROWS, check_whole, public, raise_invalid
from naysay.detectors._scores import Scores, open_scores, rounded, sorted_scores
from naysay.text import described

SIZE = 1 << 19


def reached_by(scores: Scores, weights: NDArray[np.int64]) -> tuple[Scores, NDArray[np.int64]]:
    """The distinct scores, ascending, and how many scores reach each of them, an entry standing for `weight` scores."""
    order = np.argsort(scores, kind="stable")  # which merges runs that are sorted already
    ordered, reached = scores[order], np.cumsum(weights[order][::-1])[::-1]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first], reached[first]


@final
@public
class ScoreSketch:
    """Counts of scores at or above any value, each with a guaranteed error of at most `rank_error` of all scores.

    Scores fill a buffer. Two full buffers of one weight are merged in order, and every second score of the merged
    one goes on as a full buffer of twice the weight (Munro and Paterson 1980). That moves a count by at most the old
    weight: up if the upper score of each pair is kept, down if the lower is. The direction with the smaller sum so
    far is used next. Both sums are kept, so the bound is known:

        n below 2 size   nothing is merged, and every count is exact
        after that       rank_error is about log2(n / size) / (4 size), whatever the scores and their order: below
                         1e-5 up to 1e11 scores, at the default size

    Sketches of parts `merge` to a sketch of the whole, with a bound of the same kind. Counts of a constant stream are
    exact. So are the smallest and the largest score.

    Cost: O(log(size)) per score, for a sort and one merge on average; memory O(size log(n / size)).

    Attributes:
        n: Scores so far.
        over: How far a count may be above the true one.
        under: How far a count may be below the true one.

    Args:
        size: Scores in a buffer.

    Examples:
        >>> sketch = ScoreSketch()
        >>> sketch.update([0.1, 0.4, 0.4, 0.9])
        >>> sketch.at_least([0.4, 0.5]).tolist(), sketch.n, sketch.rank_error
        ([3, 1], 4, 0.0)
    """

    def __init__(self, *, size: int = SIZE) -> None:
        self.size = check_whole("size", size, 1, MOST_ROWS)
        self.n = self.over = self.under = 0
        self._lock = Lock()
        self._about: tuple[np.dtype[Any], float, float] | None = None  # precision, smallest and largest score
        self._buffer: Scores = np.empty(0)  # unsorted, the first `_filled` are in use
        self._filled = 0
        self._levels: list[Scores | None] = []  # a sorted buffer of weight 2^level, or None

    @property
    def rank_error(self) -> float:
        """The largest possible error of a count, as a share of all scores."""
        return max(self.over, self.under) / self.n if self.n else 0.0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the scores. An empty sketch has none."""
        return self._known()[0]

    @property
    def smallest(self) -> float:
        """The smallest score."""
        return self._known()[1]

    @property
    def largest(self) -> float:
        """The largest score."""
        return self._known()[2]

    def _known(self) -> tuple[np.dtype[Any], float, float]:
        if self._about is None:
            raise_invalid("scores", "at least one", "none", "Call update first.")
        return self._about

    def update(self, scores: Any) -> None:
        """Add an array, a file or a stream of scores, as for `choose_thresholds`, of the dtype of those before.

        After an error nothing is added, but of a stream what came before the bad block.
        """
        blocks = open_scores(scores)
        if blocks.rereadable:
            for array in blocks.arrays():
                self._check_dtype(array.dtype)
        for block in blocks.flat():
            self.add(block)

    def add(self, block: NDArray[Any]) -> None:
        """Add a block (n,) of finite floats, all blocks of one dtype."""
        if not len(block):
            return
        scores = block + block.dtype.type(0)  # -0 + 0 is 0
        smallest, largest = float(scores.min()), float(scores.max())
        with self._lock:
            self._start(block.dtype, smallest, largest)
            self.n += len(scores)
            self._fill(scores)

    def merge(self, other: ScoreSketch) -> None:
        """Add all scores of another sketch of the same size and dtype, which is left as it is."""
        if not isinstance(other, ScoreSketch) or other is self:
            got = "itself" if other is self else f"a {type(other).__name__}"
            raise_invalid("other", "another ScoreSketch", got)
        if other.size != self.size:
            raise_invalid("other", f"of size {self.size}", f"size {other.size}")
        with other._lock:  # never both locks at once
            given = copy(other)
            given._buffer, given._levels = other._buffer[: other._filled].copy(), list(other._levels)
        if not given.n:
            return
        with self._lock:
            self._start(*given._known())
            self.n += given.n
            self.over, self.under = self.over + given.over, self.under + given.under
            for level, scores in enumerate(given._levels):
                if scores is not None:
                    self._carry(scores, level)
            self._fill(given._buffer)

    def at_least(self, values: Any) -> NDArray[np.int64]:
        """Count the scores at or above each of the values, which are rounded to the scores' precision first."""
        given = rounded(values, self._known()[0])
        counts = (weight * (len(scores) - np.searchsorted(scores, given)) for scores, weight in self._runs())
        return np.asarray(sum(counts), np.int64)

    def kept(self) -> tuple[Scores, NDArray[np.int64]]:
        """The distinct scores that are kept, ascending, and how many scores reach each, with at most the error."""
        runs = self._runs()
        weights = np.repeat([weight for _, weight in runs], [len(scores) for scores, _ in runs])
        return reached_by(np.concatenate([scores for scores, _ in runs]), weights)

    def _runs(self) -> list[tuple[Scores, int]]:
        """All scores that are kept: sorted arrays, each with the number of scores that an entry stands for."""
        with self._lock:
            merged = [(scores, 1 << level) for level, scores in enumerate(self._levels) if scores is not None]
            return [(sorted_scores(self._buffer[: self._filled]), 1), *merged]

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        if self._about is not None and self.dtype != dtype:
            raise_invalid("scores", f"of dtype {self.dtype}, like those before", str(dtype), "Convert to one dtype.")

    def _start(self, dtype: np.dtype[Any], smallest: float, largest: float) -> None:
        """Make the buffer when the first scores come, or check that they have its dtype, and widen the range."""
        self._check_dtype(dtype)
        if self._about is None:
            self._buffer, self._about = np.empty(self.size, dtype), (dtype, smallest, largest)
        self._about = dtype, min(self.smallest, smallest), max(self.largest, largest)

    def _fill(self, scores: Scores) -> None:
        """Put scores into the buffer. Whenever it is full, sort it and pass it on."""
        while len(scores):
            part = scores[: self.size - self._filled]
            self._buffer[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            scores = scores[len(part) :]
            if self._filled == self.size:
                self._carry(sorted_scores(self._buffer), 0)
                self._filled = 0

    def _carry(self, scores: Scores, level: int) -> None:
        """Put a full buffer on its level. Two on one level become one on the next, as in binary addition."""
        while level < len(self._levels) and (other := self._levels[level]) is not None:
            upper = self.over <= self.under
            merged = sorted_scores(np.concatenate([other, scores]))
            self.over += upper << level
            self.under += (not upper) << level
            self._levels[level] = None
            scores, level = merged[int(upper) :: 2].copy(), level + 1
        self._levels += [None] * (level + 1 - len(self._levels))
        self._levels[level] = scores

    def __repr__(self) -> str:
        return described(self, f"{self.n:,} scores")

"""A sketch of many scores: how many are at or above any value, from one pass in little memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_whole, public, raise_invalid
from naysay.detectors._score_inputs import open_scores
from naysay.detectors._score_keys import Keys, rounded, sorted_keys, to_keys, to_scores

SIZE = 1 << 19


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What a sketch has kept: sorted runs of keys, each with the number of scores that one of its keys stands for."""

    runs: list[tuple[Keys, int]]

    def at_least(self, wanted: Keys) -> NDArray[np.int64]:
        """How many scores are at or above each of the wanted keys."""
        found = np.zeros(len(wanted), np.int64)
        for keys, weight in self.runs:
            found += weight * (len(keys) - np.searchsorted(keys, wanted))
        return found

    def last_reached(self, number: int) -> int:
        """The largest key of all that at least `number` scores reach, or 0 if there is none; by halving the range."""
        dtype = self.runs[0][0].dtype
        low, high = 0, 1 << (8 * dtype.itemsize)
        while high - low > 1:
            middle = (low + high) // 2
            if self.at_least(np.array([middle], dtype))[0] >= number:
                low = middle
            else:
                high = middle
        return low

    def after(self, key: int) -> int | None:
        """The smallest kept key above a key."""
        places = [(keys, np.searchsorted(keys, keys.dtype.type(key), side="right")) for keys, _ in self.runs]
        return min((int(keys[place]) for keys, place in places if place < len(keys)), default=None)


@final
@public
class ScoreSketch:
    """Counts of scores at or above any value, each wrong by at most `rank_error` of all scores: a bound, not a chance.

    Scores fill a buffer. Two full buffers of one weight are merged in order, and every second of their keys goes on
    as a full buffer of twice the weight (Munro and Paterson 1980). That moves a count by at most the old weight: up
    if the upper key of each pair is kept, down if the lower is; the side that has been moved less has its turn. Both
    sums are kept, so the bound is known:

        n below 2 size   nothing is merged, and every count is exact
        after that       rank_error is about log2(n / size) / (4 size), whatever the scores and their order: below
                         1e-5 up to 1e11 scores, at the size that is given

    Sketches of parts, made in several processes, `merge` to a sketch of the whole, with a bound of the same kind. Equal
    scores lose nothing: counts of a constant stream are exact. So are the smallest and the largest score.

    n             scores so far
    over, under   how far a count may be above and below the truth
    ends          keys of the smallest and the largest score

    Cost: O(1) a score, for a radix sort and two merges on average; memory O(size log(n / size)).

    Args:
        size: Keys in a buffer.

    Example:
        >>> sketch = ScoreSketch()
        >>> sketch.update([0.1, 0.4, 0.4, 0.9])
        >>> sketch.at_least([0.4, 0.5]).tolist(), sketch.n, sketch.rank_error
        ([3, 1], 4, 0.0)
    """

    def __init__(self, *, size: int = SIZE) -> None:
        self.size = check_whole("size", size, 1)
        self.n = self.over = self.under = 0
        self._dtype: np.dtype[Any] | None = None
        self.ends: tuple[int, int] = (0, 0)
        self._loose: Keys = np.empty(0, np.uint32)  # a buffer in no order, of which `_filled` are taken
        self._filled = 0
        self._levels: list[Keys | None] = []  # a sorted buffer of weight 2^level, or none

    @property
    def rank_error(self) -> float:
        """The largest possible error of a count, as a share of all scores."""
        return max(self.over, self.under) / self.n if self.n else 0.0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the scores; a sketch of nothing has none."""
        if self._dtype is None:
            raise_invalid("scores", "at least one", "none", "Call update first.")
        return self._dtype

    @property
    def key_dtype(self) -> np.dtype[Any]:
        """The unsigned whole numbers that keys of such scores are."""
        return np.dtype(f"u{self.dtype.itemsize}")

    @property
    def smallest(self) -> float:
        """The smallest score."""
        return self.score_of(self.ends[0])

    @property
    def largest(self) -> float:
        """The largest score."""
        return self.score_of(self.ends[1])

    def update(self, scores: Any) -> None:
        """Take in scores as `choose_thresholds` does: an array, a file or a stream.

        Nothing is taken in if an array or a file is refused; of a stream, what came before the refusal is.
        """
        blocks = open_scores(scores)
        if blocks.again:
            for array in blocks.arrays():
                self._check_dtype(array.dtype)
        for block in blocks.flat():
            self._check_dtype(block.dtype)
            self.add(block)

    def add(self, block: NDArray[Any]) -> None:
        """Take in a block (n,) that has been checked."""
        if not len(block):
            return
        keys = to_keys(block)
        self._start(block.dtype, (int(keys.min()), int(keys.max())))
        self.n += len(keys)
        self._take(keys)

    def merge(self, other: ScoreSketch) -> None:
        """Take in all that another sketch of the same size has seen; the other is left as it is."""
        if not isinstance(other, ScoreSketch) or other is self:
            got = "itself" if other is self else f"a {type(other).__name__}"
            raise_invalid("other", "another ScoreSketch", got)
        if other.size != self.size:
            raise_invalid("other", f"of size {self.size}", f"size {other.size}")
        if not other.n:
            return
        self._check_dtype(other.dtype)
        self._start(other.dtype, other.ends)
        self.n += other.n
        self.over, self.under = self.over + other.over, self.under + other.under
        for level, keys in enumerate(other._levels):
            if keys is not None:
                self._carry(keys, level)
        self._take(other._loose[: other._filled])

    def at_least(self, values: Any) -> NDArray[np.int64]:
        """How many scores are at or above each of the values, which are rounded to the scores' precision first."""
        wanted = self.keys_of(values)
        return self.runs().at_least(wanted)

    def runs(self) -> Runs:
        """All that is kept; the loose scores as a run of their own."""
        held = [(keys, 1 << level) for level, keys in enumerate(self._levels) if keys is not None]
        return Runs([(sorted_keys(self._loose[: self._filled].copy()), 1), *held])

    def keys_of(self, values: Any) -> Keys:
        """The keys of values, in the scores' precision."""
        return to_keys(rounded(values, self.dtype))

    def score_of(self, key: int) -> float:
        """The score of a key."""
        return float(to_scores(np.array([key], self.key_dtype), self.dtype)[0])

    def _check_dtype(self, dtype: np.dtype[Any]) -> None:
        if self._dtype is not None and self._dtype != dtype:
            raise_invalid("scores", f"of dtype {self._dtype}, like those before", str(dtype), "Convert to one dtype.")

    def _start(self, dtype: np.dtype[Any], ends: tuple[int, int]) -> None:
        """Make the buffer when the first scores come, and widen the range."""
        if self._dtype is None:
            self._dtype, self.ends = dtype, ends
            self._loose = np.empty(self.size, self.key_dtype)
        self.ends = (min(self.ends[0], ends[0]), max(self.ends[1], ends[1]))

    def _take(self, keys: Keys) -> None:
        """Put keys into the loose buffer; whenever it is full, sort it and pass it on."""
        while len(keys):
            part = keys[: self.size - self._filled]
            self._loose[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            keys = keys[len(part) :]
            if self._filled == self.size:
                full, self._loose, self._filled = self._loose, np.empty_like(self._loose), 0
                self._carry(sorted_keys(full), 0)

    def _carry(self, keys: Keys, level: int) -> None:
        """Put a full buffer on its level; two on one level become one on the next, as in binary addition."""
        from naysay.kernels.sketch import halve

        while level < len(self._levels) and (held := self._levels[level]) is not None:
            upper = self.over <= self.under
            both = np.empty(self.size + 1, keys.dtype)
            halve(held, keys, int(upper), both)
            if upper:
                self.over += 1 << level
            else:
                self.under += 1 << level
            self._levels[level] = None
            keys, level = both[: self.size], level + 1
        self._levels += [None] * (level + 1 - len(self._levels))
        self._levels[level] = keys

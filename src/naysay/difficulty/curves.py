"""Scores ranked by difficulty, intervals of percentiles, and means by percentile with their errors over anchors.

The m negatives of an anchor are ranked by score, the hardest at rank 0; of equal scores the earlier slot comes first.
The percentile of a rank is the share of the m that are easier, (m - 1 - rank) / m: 0 for the easiest, below 1 for the
hardest. An interval [low, high) of percentiles is then the ranks floor((1 - high) m) to floor((1 - low) m), the last
not included: adjacent intervals share no negative and leave none out, and the hardest 0.1 % of fewer than 1,000 is
none. `samplers.Ring` uses the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_exact,
    check_number,
    check_whole,
    first_bad,
    raise_invalid,
    whole_numbers,
)
from naysay.kernels import percentiles as kernels
from naysay.kernels.threads import in_rows
from naysay.text import short_repr

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
HARD, HARDEST, BINS, TEMPERATURE = 0.05, 0.001, 20, 0.2
BANDS = ("easy", "hard", "hardest")
_MAX_BINS = 1_000_000
_SAME = 1e-12  # ends that differ by less, like 1 - 0.1 and 0.9, are one


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Scores and their order."""

    scores: NDArray[Any]  # (B, m) float32 or float64
    kept: Mask | None  # (B, m) which of them count, or None if all do
    order: NDArray[np.int32]  # (B, m) int32: slots, the hardest first, then -1
    counts: NDArray[np.int64]  # (B,) int64: how many count

    def ranks(self) -> NDArray[np.int64]:
        """(B, m) the rank of each slot, 0 the hardest; -1 for those that do not count."""
        rows, columns = np.nonzero(self.order >= 0)
        ranks = np.full(self.order.shape, -1, np.int64)
        ranks[rows, self.order[rows, columns]] = columns
        return ranks


def cut(counts: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return how many of `counts` negatives are the hardest `share` of them, rounded down."""
    return np.asarray(np.floor(share * counts + kernels.ROUNDING), np.int64)


def rank(scores: NDArray[Any], kept: Mask | None = None) -> Ranked:
    """Sort each row, O(m). Scores must be finite where they count; -0.0 equals 0.0."""
    rows, width = scores.shape
    plain = np.ascontiguousarray(scores + scores.dtype.type(0))  # turns -0 into 0
    order, counts = np.empty((rows, width), np.int32), np.empty(rows, np.int64)
    mask = np.empty((0, 0), np.bool_) if kept is None else np.ascontiguousarray(kept)
    bits = plain.view(np.uint32 if plain.itemsize == 4 else np.uint64)
    in_rows(kernels.hardest_first, rows, 8 * rows * width, bits, mask, order, counts)
    return Ranked(plain, kept, order, counts)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Groups of percentiles, each a union of consecutive elementary intervals."""

    ends: Floats  # (s + 1,) ends of the elementary intervals, from 0.0 to 1.0
    begins: NDArray[np.int64]  # (g,) the first elementary interval of each group
    stops: NDArray[np.int64]  # (g,) the last one of each group, not included

    @classmethod
    def of(cls, groups: list[tuple[float, float]]) -> Intervals:
        """The elementary intervals of these groups (low, high)."""
        given = np.array(groups)
        ends = np.unique(given)
        ends = ends[np.diff(ends, prepend=-1.0) > _SAME]
        begins, stops = np.searchsorted(ends, given.T - _SAME)
        return cls(ends, begins, stops)

    def sizes(self, counts: NDArray[np.int64]) -> Floats:
        """(B, g) how many negatives of a row each group has."""
        cuts = np.floor((1.0 - self.ends) * counts[:, None] + kernels.ROUNDING)
        return np.asarray(cuts[:, self.begins] - cuts[:, self.stops])

    def sums(self, ranked: Ranked, values: NDArray[Any]) -> Floats:
        """(B, g) the sums of values (B, m) over the negatives of each group, the hardest first."""
        rows, width = ranked.order.shape
        out = np.empty((rows, len(self.begins)))
        given = np.ascontiguousarray(values, np.float64)
        arguments = (ranked.order, ranked.counts, given, self.ends, self.begins, self.stops, out)
        in_rows(kernels.interval_sums, rows, rows * width, *arguments)
        return out


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A mean for each interval of percentiles, the easiest first.

    Attributes:
        low: (g,) start of the interval [low, high), 0.0 the easiest.
        high: (g,) end of the interval, 1.0 the hardest.
        mean: (g,) over all pairs in it; NaN where there is none.
        error: (g,) its standard error over anchors, for these negatives: pairs of an anchor are one observation.
            NaN with fewer than two anchors.
        pairs: (g,) int64: the number of pairs.

    Example: see `mean_score`.
    """

    low: Floats
    high: Floats
    mean: Floats
    error: Floats
    pairs: NDArray[np.int64]

    __repr__ = short_repr


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """Hard negatives, with the hardest, against easy ones of the same anchor.

    Attributes:
        hard: The mean over hard pairs.
        easy: The mean over easy pairs.
        difference: The mean over anchors of the difference; NaN if no anchor has both.
        low: Lower end of its 95 % CI, by Student's t over anchors.
        high: Upper end.
        anchors: The number of anchors that have both.

    Example: see `Study.gaps`.
    """

    hard: float
    easy: float
    difference: float
    low: float
    high: float
    anchors: int


@final
class CurveSums:
    """The sums of one measure, for each group (low, high) of percentiles.

    With `shares`, the sum over a group counts as a share of the anchor's whole, not as a mean over pairs. `compared`
    are the indices of two groups, easy and hard, for `gap`.
    """

    def __init__(
        self, groups: list[tuple[float, float]], *, shares: bool = False, compared: tuple[int, int] = (0, 0)
    ) -> None:
        self.groups, self.shares, self.compared = np.array(groups), shares, list(compared)
        self.intervals = Intervals.of([*groups, (0.0, 1.0)])
        self.moments, self.differences = np.zeros((len(groups), 6)), np.zeros((1, 6))
        self.pairs = np.zeros(len(groups), np.int64)

    def add(self, ranked: Ranked, values: NDArray[Any]) -> None:
        """Add a block of anchors, values (B, m)."""
        sums, sizes = self.intervals.sums(ranked, values), self.intervals.sizes(ranked.counts)
        self.pairs += sizes[:, :-1].sum(axis=0).astype(np.int64)
        if self.shares:
            whole = sums[:, -1:]
            sums = sums / np.where(whole > 0, whole, 1.0)
            sizes = np.broadcast_to(whole > 0, sums.shape).astype(np.float64)
        self._add(sums[:, :-1], sizes[:, :-1], self.moments)
        part, whole = sums[:, self.compared], sizes[:, self.compared]
        means, both = part / np.maximum(whole, 1), (whole > 0).all(axis=1, keepdims=True).astype(np.float64)
        self._add(means[:, 1:] - means[:, :1], both, self.differences)

    @staticmethod
    def _add(sums: Any, sizes: Any, moments: Floats) -> None:
        """In one layout: each other would be compiled for itself."""
        kernels.add_moments(np.ascontiguousarray(sums), np.ascontiguousarray(sizes), moments)

    def curve(self, groups: slice) -> Curve:
        """The means of some of the groups."""
        low, high = self.groups[groups].T
        mean, error = ratio(self.moments[groups])
        return Curve(low, high, mean, error, self.pairs[groups])

    def gap(self) -> Gap:
        """The difference of the two compared groups, with its interval."""
        from scipy.special import stdtrit

        easy, hard = ratio(self.moments[self.compared])[0].tolist()
        anchors = int(self.differences[0, 0])
        difference, error = (part.item() for part in ratio(self.differences))
        half = float(stdtrit(anchors - 1, 0.975)) * error if anchors > 1 else np.nan
        return Gap(hard, easy, difference, difference - half, difference + half, anchors)


def ratio(moments: Floats) -> tuple[Floats, Floats]:
    """sum(part) / sum(whole) of `moments` (g, 6), and its linearised standard error over rows.

    The variance over n rows is n / (n - 1) sum (part - R whole)^2 / (sum whole)^2.
    """
    rows, whole, part, squares, products, parts = moments.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = part / whole
        spread = np.maximum(parts - 2 * mean * products + mean * mean * squares, 0.0)
        error = np.where(rows > 1, np.sqrt(spread * rows / (rows - 1)) / whole, np.nan)
    return mean, error


def read_scores(
    scores: Any, mask: Any = None, *, parameter: str = "scores", start: int = 0
) -> tuple[NDArray[Any], Mask | None]:
    """Return scores (B, K) as float32 or float64, finite where they count, and the mask; `start` is their first row."""
    array = as_array(parameter, to_numpy(scores))
    if array.ndim != 2:
        raise_invalid(parameter, "of shape (B, K), a row per anchor", f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    check_exact(parameter, array)
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    array = array.astype(np.float32 if narrow else np.float64, copy=False)
    kept = None if mask is None else _mask(mask, array.shape)
    good = np.isfinite(array) if kept is None else np.isfinite(array) | ~kept
    if not good.all():
        raise_invalid(parameter, "finite", first_bad(array, ~good, start), "Leave out pairs that have no score.")
    return array, kept


def read_labels(parameter: str, labels: Any, size: int, of: str) -> NDArray[np.int64]:
    """Return classes (size,) as int64, from 0 on."""
    array = whole_numbers(parameter, to_numpy(labels))
    if len(array) != size:
        raise_invalid(parameter, f"one for each of the {size} {of}", f"{len(array)}")
    check_all(parameter, array, array >= 0, "0 or more", "Leave out what has no class.")
    return array.astype(np.int64)


def check_shares(hard: Any, hardest: Any) -> tuple[float, float]:
    """Return the shares of the hard (with the hardest) and of the hardest negatives."""
    hard_share = check_hard(hard)
    return hard_share, check_number("hardest", hardest, at_least=0, below=hard_share, advice="`hard` includes it.")


def check_hard(hard: Any) -> float:
    """Return the share of hard negatives, above 0 and below 1."""
    return check_number("hard", hard, above=0, below=1, advice="0.05 is the hardest 5 %.")


def check_temperature(temperature: Any) -> float:
    """Return a finite number above 0."""
    return check_number("temperature", temperature, above=0, finite=True)


def _mask(mask: Any, shape: tuple[int, ...]) -> Mask:
    array = as_array("mask", to_numpy(mask))
    if array.shape != shape or array.dtype != np.bool_:
        raise_invalid("mask", f"of shape {shape} and bool, like the scores", f"{array.shape} {array.dtype}")
    return array


def even_intervals(bins: Any) -> list[tuple[float, float]]:
    """Intervals of one width, the easiest first."""
    many = check_whole("bins", bins, 1, _MAX_BINS)
    return [(i / many, (i + 1) / many) for i in range(many)]

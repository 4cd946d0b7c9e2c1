"""Rows of scores in order of difficulty, and the one rule that turns places into percentiles and intervals.

The m candidates of an anchor stand by score, the hardest at place 0, of equal scores the earlier slot first. The
percentile of a place is the share of the m that stand after it, (m - 1 - place) / m: 0 for the easiest, below 1 for the
hardest. An interval [low, high) of percentiles is then the places floor((1 - high) m) to floor((1 - low) m), the last
not included: intervals that meet share no candidate and leave none out, and the hardest 0.1 % of fewer than 1,000 is
none. `samplers.Ring` keeps and removes by the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.kernels import percentiles as kernels
from naysay.kernels.threads import in_rows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
BANDS = ("easy", "hard", "hardest")
_SAME = 1e-12  # 1 - 0.1 and 0.9, computed in two ways, are one end


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Scores and their order.

    Args:
        scores: (B, m) float32 or float64.
        kept: (B, m) which of them count, or None if all do.
        order: (B, m) int32: slots, the hardest first, then -1.
        counts: (B,) int64: how many count.
    """

    scores: NDArray[Any]
    kept: Mask | None
    order: NDArray[np.int32]
    counts: NDArray[np.int64]

    def places(self) -> NDArray[np.int64]:
        """(B, m) the place of each slot, 0 the hardest; -1 for those that do not count."""
        rows, columns = np.nonzero(self.order >= 0)
        found = np.full(self.order.shape, -1, np.int64)
        found[rows, self.order[rows, columns]] = columns
        return found


def cut(counts: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """How many of `counts` candidates are the hardest `share` of them: rounded down."""
    found: NDArray[np.int64] = np.floor(share * counts + kernels.ROUNDING).astype(np.int64)
    return found


def rank(scores: NDArray[Any], kept: Mask | None = None) -> Ranked:
    """Sort each row, O(m): scores are finite where they count. -0.0 and 0.0 are equal."""
    rows, width = scores.shape
    plain = np.ascontiguousarray(scores + scores.dtype.type(0))  # which turns -0 into 0
    order, counts = np.empty((rows, width), np.int32), np.empty(rows, np.int64)
    mask = np.empty((0, 0), np.bool_) if kept is None else np.ascontiguousarray(kept)
    bits = plain.view(np.uint32 if plain.itemsize == 4 else np.uint64)
    in_rows(kernels.hardest_first, rows, 8 * rows * width, bits, mask, order, counts)
    return Ranked(plain, kept, order, counts)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Groups of percentiles, each a run of the finest intervals that are needed.

    Args:
        ends: (s + 1,) from 0.0 to 1.0.
        begins: (g,) a group is the intervals begins[g] to stops[g], the last not included.
        stops: (g,) a group is the intervals begins[g] to stops[g], the last not included.
    """

    ends: Floats
    begins: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, groups: list[tuple[float, float]]) -> Intervals:
        """The intervals that tell these groups (low, high) apart."""
        given = np.array(groups)
        ends = np.unique(given)
        ends = ends[np.diff(ends, prepend=-1.0) > _SAME]
        begins, stops = np.searchsorted(ends, given.T - _SAME)
        return cls(ends, begins, stops)

    def sizes(self, counts: NDArray[np.int64]) -> Floats:
        """(B, g) how many candidates of a row each group has."""
        cuts = np.floor((1.0 - self.ends) * counts[:, None] + kernels.ROUNDING)
        return np.asarray(cuts[:, self.begins] - cuts[:, self.stops])

    def sums(self, ranked: Ranked, values: NDArray[Any]) -> Floats:
        """(B, g) the sums of values (B, m) over the candidates of each group, the hardest first."""
        rows, width = ranked.order.shape
        out = np.empty((rows, len(self.begins)))
        given = np.ascontiguousarray(values, np.float64)
        arguments = (ranked.order, ranked.counts, given, self.ends, self.begins, self.stops, out)
        in_rows(kernels.interval_sums, rows, rows * width, *arguments)
        return out

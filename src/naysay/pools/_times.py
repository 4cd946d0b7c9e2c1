"""When known pairs became known, so that a draw excludes what was known at the time of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay._interactions import as_times
from naysay._rows import frozen, offsets, positions
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, check_lengths, raise_invalid
from naysay.pools._slots import pairs_of
from naysay.positives import Positives, aligned


@final
@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """The first time of each known pair."""

    first: NDArray[Any]  # (pairs,) in the order of the pairs: int64 or float64; the lowest number for one without
    dated: bool | None  # microseconds, not numbers as they were given; None if there are none

    @classmethod
    def of(cls, positives: Positives, given: Any) -> Self:
        """From rows (anchors, items, times), which are known pairs."""
        if not isinstance(given, tuple) or len(given) != 3:
            raise_invalid("times", "a tuple (anchors, items, times)", type(given).__name__)
        anchors, items = aligned(
            "times", given[0], given[1], positives.n_anchors, positives.anchor_names, positives.item_names
        )
        values, dated = _numbers("times", given[2])
        check_lengths(times=len(values), anchors=len(anchors))
        places = positions(*positives._rows, anchors, items)
        check_all("times", items, places >= 0, "of known pairs")
        first = np.full(len(positives), _earliest(values.dtype), values.dtype)
        first[places] = values
        np.minimum.at(first, places, values)
        return cls(frozen(first), dated)

    def of_pairs(self) -> NDArray[Any]:
        """(pairs,) the times in the order of the pairs, dates as dates. Raises NaysayError if a pair has none."""
        untold = int((self.first == _earliest(self.first.dtype)).sum())
        if untold:
            raise_invalid("times", "a time for each pair", f"none for {untold:,} of {len(self.first):,} pairs")
        return self.first.view("M8[us]") if self.dated else self.first

    def known_at(self, positives: Positives, anchors: NDArray[np.int64], times: Any) -> Positives:
        """What is known of each row's anchor at its time: row r of the result is row r of the query."""
        at, dated = _numbers("query.times", times)
        if None not in (dated, self.dated) and dated != self.dated:
            raise_invalid(
                "query.times", "dates" if self.dated else "numbers, like those of the pool", f"dtype {at.dtype}"
            )
        rows, places = pairs_of(positives, anchors)
        known = self.first[places] <= at[rows]
        indptr = offsets(np.bincount(rows[known], minlength=len(anchors)))
        return Positives(indptr, positives.indices[places[known]], positives.n_items)


def _numbers(parameter: str, given: Any) -> tuple[NDArray[Any], bool | None]:
    """Times as int64 or float64, and whether they are dates, None if there are none."""
    raw = as_array(parameter, to_numpy(given))
    values = as_times(raw)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers, dates or times of shape (n,)", f"{values.dtype} of shape {values.shape}")
    dated = raw.dtype.kind not in "iuf"
    missing = values == np.iinfo(np.int64).min if dated else np.isnan(values)  # NaT, or NaN
    check_all(parameter, raw, ~missing, "a time in each row")
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64), dated if len(values) else None


def _earliest(kind: np.dtype[Any]) -> Any:
    return -np.inf if kind.kind == "f" else np.iinfo(np.int64).min

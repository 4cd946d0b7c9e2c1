"""Ranked candidates of some anchors, each anchor with the score of one labelled positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_exact, first_bad, raise_invalid

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
_WINDOW, _FIRST = 0.4, 0.2  # of a list: the length of its background, and where that begins behind the positives
_LARGEST = 1e100  # sums of larger scores would not be finite


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Candidates of some anchors, nearest first.

    Args:
        scores: (A, M) descending, NaN where a list has ended.
        positives: (A,) the score of one labelled positive of each anchor, NaN without one.
        alike: (A, M) the largest cosine of a candidate to its anchor's labelled positives, NaN where unknown; or None.
    """

    scores: Floats
    positives: Floats
    alike: Floats | None

    @property
    def filled(self) -> Mask:
        """(A, M): slots with a candidate."""
        return ~np.isnan(self.scores)

    def take(self, rows: slice | NDArray[Any]) -> Lists:
        """Some anchors."""
        return Lists(self.scores[rows], self.positives[rows], None if self.alike is None else self.alike[rows])

    def nearest(self, k: int) -> Mask:
        """(A, M): the k nearest candidates of each anchor."""
        return self.filled & (np.arange(self.scores.shape[1]) < k)

    def cut(self, width: int) -> Lists:
        """The first candidates of each anchor."""
        return Lists(self.scores[:, :width], self.positives, None if self.alike is None else self.alike[:, :width])


def backgrounds(scores: Floats, expected: Floats | None = None, length: int = 0) -> Floats:
    """(A,) the mean score of some candidates of each list that are hardly positives: two fifths of it, in a row.

    They are the last ones, or those behind the first fifth and as many more as are expected to be positives, (A,). An
    anchor with many positives has them at its first ranks, and with a fixed place its background would be nearer.

    A list of fewer than `length` candidates is one of that length whose last ones are missing: its background is at the
    same ranks, as far as it reaches.
    """
    filled = ~np.isnan(scores)
    count = filled.sum(axis=1)
    whole = np.maximum(count, length)
    window = np.maximum((_WINDOW * whole).astype(np.int64), 1)
    start = np.maximum(whole - window, 0)
    if expected is not None:
        start = np.minimum(start, (_FIRST * whole + expected).astype(np.int64))
    sums = np.zeros((len(scores), scores.shape[1] + 1))
    np.cumsum(np.where(filled, scores, 0.0), axis=1, out=sums[:, 1:])
    rows = np.arange(len(scores))
    stop = np.minimum(start + window, count)
    start = np.minimum(start, stop)
    return np.asarray((sums[rows, stop] - sums[rows, start]) / np.maximum(stop - start, 1))


def read_lists(scores: Any, positive_scores: Any, alike: Any = None) -> tuple[Lists, Whole | None]:
    """Check lists, and sort each by score; also return the order, for `sorted_by` and `in_place`.

    -inf and NaN mark slots without a candidate. Equal scores keep their order.
    """
    values = numbers("scores", scores, 2)
    values = np.where(values == -np.inf, np.nan, values)
    if np.isinf(values).any():
        raise_invalid("scores", "finite, or -inf or NaN where a slot is empty", first_bad(values, np.isinf(values)))
    rows = len(values)
    positives = np.full(rows, np.nan) if positive_scores is None else numbers("positive_scores", positive_scores, 1)
    if positives.shape != (rows,):
        raise_invalid("positive_scores", f"of {rows} anchors, like `scores`", f"{len(positives)}")
    positives = np.where(np.isfinite(positives), positives, np.nan)
    similar, order = None, _order(values)
    if alike is not None:
        similar = numbers("alike", alike, 2)
        if similar.shape != values.shape:
            raise_invalid("alike", f"of shape {values.shape}, like `scores`", f"shape {similar.shape}")
        similar = sorted_by(np.where(np.isfinite(similar), similar, np.nan), order)
    values, positives = (np.clip(part, -_LARGEST, _LARGEST) for part in (values, positives))
    return Lists(sorted_by(values, order), positives, similar), order


def read_mask(parameter: str, mask: Any, lists: Lists, order: Whole | None) -> Mask:
    """(A, M) a mask of the candidates that `read_lists` read, in their order now."""
    chosen = as_array(parameter, to_numpy(mask))
    if chosen.shape != lists.scores.shape or chosen.dtype != bool:
        raise_invalid(parameter, f"bool of shape {lists.scores.shape}", f"{chosen.dtype} of shape {chosen.shape}")
    return np.asarray(sorted_by(chosen, order) & lists.filled)


def _order(values: Floats) -> Whole | None:
    """(A, M) the order of descending scores, NaN last; None if they are in order already."""
    with np.errstate(invalid="ignore"):
        behind = (values[:, 1:] <= values[:, :-1]) | np.isnan(values[:, 1:])
    return None if behind.all() else np.argsort(-values, axis=1, kind="stable")


def sorted_by(values: NDArray[Any], order: Whole | None) -> NDArray[Any]:
    """(A, M) values in the order that `read_lists` found."""
    return values if order is None else np.take_along_axis(values, order, axis=1)


def in_place(values: NDArray[Any], order: Whole | None) -> NDArray[Any]:
    """(A, M) the inverse of `sorted_by`."""
    if order is None:
        return values
    found = np.empty_like(values)
    np.put_along_axis(found, order, values, axis=1)
    return found


def numbers(parameter: str, values: Any, dimensions: int) -> Floats:
    """Numbers of so many dimensions, checked."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim != dimensions or array.dtype.kind not in "iuf":
        shape = "(A, M)" if dimensions == 2 else "(A,)"
        raise_invalid(parameter, f"numbers of shape {shape}", f"{array.dtype} of shape {array.shape}")
    check_exact(parameter, array)
    return array.astype(np.float64) + 0.0  # -0.0 becomes 0.0

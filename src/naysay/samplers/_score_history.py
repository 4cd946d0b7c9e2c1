"""The scores of cached ids and of positives over the last epochs, and how much a negative's probability varied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import positions
from naysay.detectors._states import Entry
from naysay.positives import Positives
from naysay.types import Query, positive_ids

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
_LARGEST = float(np.finfo(np.float32).max)


@final
class ScoreHistory:
    """Scores by epoch: (n_rows, size, epochs) of cached ids and (pairs, epochs) of known positives, NaN for none."""

    def __init__(self, known: Positives, size: int, epochs: int) -> None:
        self.known, self.epochs = known, epochs
        self.scores = np.full((known.n_anchors, size, epochs), np.nan, np.float32)
        self.positive_scores = np.full((len(known), epochs), np.nan, np.float32)

    def begin(self, epoch: int) -> None:
        """Forget the oldest epoch."""
        self.scores[:, :, epoch % self.epochs] = np.nan
        self.positive_scores[:, epoch % self.epochs] = np.nan

    def record(self, epoch: int, rows: Ids, old: Ids, new: Ids, scores: Floats) -> None:
        """Move the scores of the ids `old` (B, size) to the places of `new`, and store this epoch's (B, size)."""
        moved = aligned(old, self.scores[rows], new)
        moved[:, :, epoch % self.epochs] = np.where(new >= 0, scores, np.nan)
        self.scores[rows] = moved

    def record_positives(self, epoch: int, anchors: Ids, items: Ids, scores: Floats) -> None:
        """Store this epoch's scores (B,) of the pairs that are known."""
        place = self._places(anchors, items)
        self.positive_scores[place[place >= 0], epoch % self.epochs] = scores[place >= 0]

    def of(self, anchors: Ids, query: Query) -> tuple[Floats, Floats]:
        """(B, size, epochs) and (B, 1, epochs): the scores of the cached ids and of the query's positives."""
        place = self._places(anchors, positive_ids(query))
        positive = np.where((place >= 0)[:, None], self.positive_scores[place], np.float32(np.nan))
        return self.scores[anchors], positive[:, None, :]

    def _places(self, anchors: Ids, items: Ids) -> Ids:
        return positions(self.known.indptr, self.known.indices, self.known.filter, anchors, items)

    def arrays(self) -> dict[str, Any]:
        """Copies of both arrays."""
        return {"scores": self.scores.copy(), "positive_scores": self.positive_scores.copy()}

    def entries(self) -> dict[str, Entry]:
        """What a state must have."""
        arrays = {"scores": self.scores, "positive_scores": self.positive_scores}
        limits = Entry(at_least=-_LARGEST, at_most=_LARGEST, missing=True)
        return {name: limits._replace(shape=array.shape) for name, array in arrays.items()}

    def set_arrays(self, read: Mapping[str, Any], given: Ids, table: Ids) -> None:
        """Restore checked arrays of the ids `given` (n_rows, size); some may have left the cache's `table` since."""
        self.scores = read["scores"].astype(np.float32)
        self.positive_scores = read["positive_scores"].astype(np.float32)
        changed = np.flatnonzero((given != table).any(axis=1))
        self.scores[changed] = aligned(given[changed], self.scores[changed], table[changed])


def aligned(old: Ids, values: Floats, new: Ids) -> Floats:
    """(B, n, epochs) the values of the ids `old` (B, m) at the places of the same ids in `new` (B, n), else NaN."""
    same = (new[:, :, None] == old[:, None, :]) & (new[:, :, None] >= 0)
    moved = np.take_along_axis(values, same.argmax(axis=2)[:, :, None], axis=1)
    moved[~same.any(axis=2)] = np.nan
    return moved


def deviation(scores: Floats, positive: Floats) -> NDArray[np.float64]:
    """(B, n) the standard deviation of sigmoid(score - positive's) over the epochs that have both; 0 for less than two.

    The sum of squares is divided by the number of epochs, as in the published code.
    """
    chance = sigmoid(scores.astype(np.float64) - positive)
    there = ~np.isnan(chance)
    count = there.sum(axis=2)
    mean = np.where(there, chance, 0.0).sum(axis=2) / np.maximum(count, 1)
    squares = np.where(there, chance - mean[:, :, None], 0.0) ** 2
    return np.where(count >= 2, np.sqrt(squares.sum(axis=2) / np.maximum(count, 1)), 0.0)


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-values)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))

"""Answers that were paid for: which pairs a guide was asked about, and what it said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, raise_invalid, whole_numbers

Pairs = NDArray[np.int64]  # (n, w): the anchor, or a triple, and the id, or the corrupted triple
Floats = NDArray[np.float64]


@final
class Answers:
    """Pairs and their scores, the oldest first. `trim` forgets the oldest beyond a limit."""

    def __init__(self) -> None:
        """Start with none."""
        self.pairs: Pairs = np.empty((0, 2), np.int64)
        self.scores: Floats = np.empty(0)

    def look_up(self, pairs: Pairs) -> Floats:
        """(n,) the score of each of some distinct pairs, NaN for those that are not here; a sort of both."""
        found = np.full(len(pairs), np.nan)
        if len(self.pairs) == 0 or len(pairs) == 0 or self.pairs.shape[1] != pairs.shape[1]:
            return found
        both = np.concatenate([self.pairs, pairs])
        _, first, place = np.unique(both, axis=0, return_index=True, return_inverse=True)
        first = first[place.reshape(-1)[len(self.pairs) :]]
        here = first < len(self.pairs)
        found[here] = self.scores[first[here]]
        return found

    def add(self, pairs: Pairs, scores: Floats) -> None:
        """Keep the answers to pairs that are not here yet."""
        if self.pairs.shape[1] != pairs.shape[1]:  # triples after pairs: another question
            self.pairs, self.scores = pairs[:0], scores[:0]
        self.pairs = np.concatenate([self.pairs, pairs])
        self.scores = np.concatenate([self.scores, scores])

    def trim(self, limit: int) -> None:
        """Forget the oldest, so that at most `limit` are left."""
        start = max(len(self.pairs) - limit, 0)
        self.pairs, self.scores = self.pairs[start:].copy(), self.scores[start:].copy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Both arrays."""
        return {"pairs": self.pairs.copy(), "scores": self.scores.copy()}


def read_answers(state: Mapping[str, Any]) -> Answers:
    """Answers from what `Answers.state` gave, refused unless they fit together."""
    found = Answers()
    pairs = whole_numbers("pairs", to_numpy(state["pairs"]), "(n, w)").astype(np.int64)
    scores = as_array("scores", to_numpy(state["scores"]))
    if scores.shape != (len(pairs),) or scores.dtype.kind != "f" or not np.isfinite(scores).all():
        raise_invalid("scores", f"{len(pairs)} finite numbers, like pairs", f"shape {scores.shape} {scores.dtype}")
    if pairs.shape[1] not in (2, 6):
        raise_invalid("pairs", "of shape (n, 2), or (n, 6) for triples", f"shape {pairs.shape}")
    found.pairs, found.scores = pairs, scores.astype(np.float64)
    return found

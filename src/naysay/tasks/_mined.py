"""Negatives mined before training, once for equal vectors, and the estimated probability that a pair is a positive."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.mining import Mined, mine
from naysay.positives import Positives
from naysay.tasks._parts import Ids

K = 8
_KEPT = 6  # results of earlier seeds that are kept

Vectors = Callable[[], tuple[NDArray[Any], NDArray[Any]]]  # of queries and documents


class MinedOnce:
    """Mines training queries by the vectors before training. Equal keys are mined once."""

    def __init__(self, train: Positives, queries: Ids) -> None:
        """Keep the pairs, and the queries for which false negatives are estimated."""
        self.train, self.queries = train, queries
        self._found: dict[Any, tuple[Mined, float]] = {}

    def _mined(self, key: Any, vectors: Vectors, judge: str | None, rows: Ids) -> tuple[Mined, float]:
        """Negatives of some queries, and the processor seconds that they took."""
        key = key, judge, len(rows)
        if key not in self._found:
            began = time.process_time()
            place = np.full(self.train.n_anchors, -1)
            place[rows] = np.arange(len(rows))
            queries, documents = self.train.pairs()
            asked = place[queries] >= 0
            known = Positives.from_pairs(place[queries[asked]], documents[asked], len(rows), self.train.n_items)
            of_queries, of_documents = vectors()
            found = mine(of_queries[rows], of_documents, known, K, judge=judge)
            self._found = dict([*self._found.items()][-_KEPT:])
            self._found[key] = found, time.process_time() - began
        return self._found[key]

    def lists(self, key: Any, vectors: Vectors, judge: str | None) -> tuple[Ids, float]:
        """(queries, 8) negatives, -1 empty, and the processor seconds that they took."""
        rows = np.flatnonzero(self.train.count())
        found, seconds = self._mined(key, vectors, judge, rows)
        lists = np.full((self.train.n_anchors, found.ids.shape[1]), -1, np.int64)
        lists[rows] = found.ids
        return lists, seconds

    def false_share(self, key: Any, vectors: Vectors, queries: Ids, ids: Ids, mask: NDArray[np.bool_]) -> float:
        """The mean probability that drawn pairs (B, K) are positives, 0 beyond what was searched; NaN if unknown.

        Rows of queries for which it is not estimated are left out.
        """
        found, _ = self._mined(key, vectors, "auto", self.queries)
        place = np.searchsorted(self.queries, queries).clip(max=len(self.queries) - 1)
        there = (self.queries[place] == queries)[:, None] & mask
        if not there.any() or not getattr(found.judge, "fitted", False):
            return float("nan")
        listed = found.candidates
        filled, size = listed.ids >= 0, self.train.n_items
        keys = (np.arange(len(filled))[:, None] * size + listed.ids)[filled]
        order = np.argsort(keys)
        drawn = (place[:, None] * size + ids)[there]
        at = order[np.searchsorted(keys[order], drawn).clip(max=len(keys) - 1)]
        return float(np.where(keys[at] == drawn, listed.suspicion[filled][at], 0.0).mean())

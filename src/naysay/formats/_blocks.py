"""The rows of a training file, a block of anchors at a time: which anchor, positive and negative go together.

Everything here is ids; the formats turn ids into columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.formats._labels import Labels

Ids = NDArray[np.int64]
_CELLS = 8192  # negatives of a block: their texts are what a block holds in memory


@final
@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """All that there is to write.

    Args:
        ids: (n, k) int64, -1 empty.
        scores: (n, k) float32 or None.
        indptr: The positives of each anchor, as rows; pairs to ignore are not among them.
        items: The positives of each anchor, as rows; pairs to ignore are not among them.
        positive_scores: Float32, one beside each of `items`, or None.
        queries: What the rows are called.
        corpus: What the rows are called.
        corpus_id: What NeMo calls the corpus.
    """

    ids: Ids
    scores: NDArray[np.float32] | None
    indptr: Ids
    items: Ids
    positive_scores: NDArray[np.float32] | None
    queries: Labels
    corpus: Labels
    corpus_id: str = ""

    def blocks(self) -> Iterator[Block]:
        """All anchors in order, in blocks of about as many negatives; an anchor is never cut."""
        costs = np.maximum(1, np.diff(self.indptr)) * max(1, self.ids.shape[1])
        part = np.cumsum(costs) // _CELLS
        edges = np.flatnonzero(np.diff(part, prepend=-1, append=-1)) if len(part) else np.zeros(2, np.int64)
        for start, stop in pairwise(edges.tolist()):
            yield self.block(start, stop)

    def block(self, start: int, stop: int) -> Block:
        """The anchors from `start` to `stop`; none of them for the types of the columns alone."""
        first, last = self.indptr[start], self.indptr[stop]
        counts = np.diff(self.indptr[start : stop + 1])
        return Block(
            job=self,
            anchors=np.arange(start, stop),
            ids=self.ids[start:stop],
            scores=None if self.scores is None else _shortest(self.scores[start:stop]),
            pair_rows=np.repeat(np.arange(stop - start), counts),
            pair_items=self.items[first:last],
            pair_scores=None if self.positive_scores is None else _shortest(self.positive_scores[first:last]),
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some anchors, their negatives and their positives.

    Args:
        anchors: (a,) the anchors.
        ids: (a, k) their negatives, -1 empty.
        scores: (a, k) float64 or None: the numbers that print as the float32 scores do.
        pair_rows: (p,) for each known pair the row of its anchor in this block.
        pair_items: (p,) and its positive.
        pair_scores: (p,) float64 or None.
    """

    job: Job
    anchors: Ids
    ids: Ids
    scores: NDArray[np.float64] | None
    pair_rows: Ids
    pair_items: Ids
    pair_scores: NDArray[np.float64] | None

    def triples(self) -> tuple[Ids, Ids, Ids]:
        """For each (anchor, positive, negative): its pair, the row of its anchor, the column of its negative."""
        pairs, columns = np.nonzero(self.ids[self.pair_rows] >= 0)
        return pairs, self.pair_rows[pairs], columns

    def full(self) -> Ids:
        """The places of the pairs whose anchor has all k negatives."""
        missing = (self.ids < 0).sum(axis=1)
        return np.flatnonzero(missing[self.pair_rows] == 0)

    def useful(self) -> NDArray[np.bool_]:
        """(a,) which anchors have a positive and a negative."""
        return (self.ids >= 0).any(axis=1) & (np.bincount(self.pair_rows, minlength=len(self.anchors)) > 0)

    def positives(self, chosen: NDArray[np.bool_]) -> tuple[Ids, Ids]:
        """The positives of the chosen anchors, flat: where each anchor's begin (a + 1,), and places among the pairs."""
        places = np.flatnonzero(chosen[self.pair_rows])
        return offsets(np.bincount(self.pair_rows[places], minlength=len(chosen))[chosen]), places

    def negatives(self, chosen: NDArray[np.bool_]) -> tuple[Ids, Ids, Ids]:
        """The negatives of the chosen anchors, flat: where each anchor's begin, then their rows and columns."""
        filled = (self.ids >= 0) & chosen[:, None]
        rows, columns = np.nonzero(filled)
        return offsets(filled.sum(axis=1)[chosen]), rows, columns


def _shortest(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """The float64 with the shortest decimals that round to each float32: 0.1, not 0.10000000149011612."""
    return scores.astype(np.str_).astype(np.float64)


def sliced(values: list[Any], starts: Ids) -> list[list[Any]]:
    """A flat list cut at `starts`, (rows + 1,)."""
    edges = starts.tolist()
    return [values[start:stop] for start, stop in pairwise(edges)]

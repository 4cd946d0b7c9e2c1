"""The contents of a training file: ids of anchors, positives and negatives in blocks, and the columns made of them."""

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
_CELLS = 8192  # negatives of a block, whose texts are in memory together


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one kind, one for each row: Python objects, as JSON takes them.

    Kinds are "text", "number" and "float"; lists of them: "texts", "numbers", "floats"; and lists of objects:
    "passages" with docid and text, "titled" with a title as well.
    """

    kind: str
    values: list[Any]


Columns = dict[str, Column]


def lists(kind: str) -> str:
    """Return the kind of lists of values of a kind."""
    return f"{kind}s"


def arrow_schema(columns: Columns) -> Any:
    """Return the Arrow schema; strings are large, so that no block is too long for its offsets."""
    import pyarrow as pa

    plain = {"text": pa.large_string(), "number": pa.int64(), "float": pa.float32()}
    passage = [("docid", pa.large_string()), ("text", pa.large_string())]
    titled = [passage[0], ("title", pa.large_string()), passage[1]]
    kinds = plain | {lists(kind): pa.list_(inner) for kind, inner in plain.items()}
    kinds |= {"passages": pa.list_(pa.struct(passage)), "titled": pa.list_(pa.struct(titled))}
    return pa.schema([(name, kinds[column.kind]) for name, column in columns.items()])


def rows_of(columns: Columns) -> int:
    """Return the number of rows."""
    return len(next(iter(columns.values())).values)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """All that is written."""

    ids: Ids  # (n, k) negatives, -1 empty
    scores: NDArray[np.float32] | None  # (n, k)
    indptr: Ids  # (n + 1,) where the positives of each anchor begin in `items`
    items: Ids  # the positives, without pairs whose relation is "ignore"
    positive_scores: NDArray[np.float32] | None  # one for each of `items`
    queries: Labels
    corpus: Labels
    corpus_id: str = ""  # NeMo's name of the corpus

    def blocks(self) -> Iterator[Block]:
        """Yield all anchors in order, in blocks of about equally many negatives; an anchor is never split."""
        costs = np.maximum(1, np.diff(self.indptr)) * max(1, self.ids.shape[1])
        part = np.cumsum(costs) // _CELLS
        edges = np.flatnonzero(np.diff(part, prepend=-1, append=-1)) if len(part) else np.zeros(2, np.int64)
        for start, stop in pairwise(edges.tolist()):
            yield self.block(start, stop)

    def block(self, start: int, stop: int) -> Block:
        """Return the anchors from `start` to `stop`. An empty block is enough for the types of the columns."""
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
    """Some anchors, their negatives and their positives. Scores are the float64 that print as the float32 do."""

    job: Job
    anchors: Ids  # (a,)
    ids: Ids  # (a, k) their negatives, -1 empty
    scores: NDArray[np.float64] | None  # (a, k)
    pair_rows: Ids  # (p,) for each known pair the row of its anchor in this block
    pair_items: Ids  # (p,) its positive
    pair_scores: NDArray[np.float64] | None  # (p,)

    def triples(self) -> tuple[Ids, Ids, Ids]:
        """For each (anchor, positive, negative): its pair, the row of its anchor, the column of its negative."""
        pairs, columns = np.nonzero(self.ids[self.pair_rows] >= 0)
        return pairs, self.pair_rows[pairs], columns

    def wide(self, pairs: Ids) -> tuple[Ids, NDArray[np.float64] | None]:
        """(m, 1 + k) the positive of each pair and the negatives of its anchor, and their scores if both have some."""
        rows = self.pair_rows[pairs]
        items = np.concatenate([self.pair_items[pairs, None], self.ids[rows]], axis=1)
        if self.scores is None or self.pair_scores is None:
            return items, None
        return items, np.concatenate([self.pair_scores[pairs, None], self.scores[rows]], axis=1)

    def full(self) -> Ids:
        """The places of the pairs whose anchor has all k negatives."""
        missing = (self.ids < 0).sum(axis=1)
        return np.flatnonzero(missing[self.pair_rows] == 0)

    def useful(self) -> NDArray[np.bool_]:
        """(a,) which anchors have a positive and a negative."""
        return (self.ids >= 0).any(axis=1) & (np.bincount(self.pair_rows, minlength=len(self.anchors)) > 0)

    def queries(self, rows: Ids) -> Column:
        """The column of the anchors in these rows of the block: texts, or else ids."""
        return Column(self.job.queries.kind(), self.job.queries.values(self.anchors[rows]))

    def documents(self, items: Ids) -> Column:
        """The column of these documents: texts, or else ids."""
        return Column(self.job.corpus.kind(), self.job.corpus.values(items))

    def per_anchor(self, chosen: NDArray[np.bool_]) -> tuple[Ids, Lists, Lists]:
        """The chosen anchors (a,), and the lists of their positives and of their negatives."""
        pairs = np.flatnonzero(chosen[self.pair_rows])
        filled = (self.ids >= 0) & chosen[:, None]
        positives = Lists(
            self.pair_items[pairs],
            None if self.pair_scores is None else self.pair_scores[pairs],
            offsets(np.bincount(self.pair_rows[pairs], minlength=len(chosen))[chosen]),
        )
        scores = None if self.scores is None else self.scores[filled]
        return self.anchors[chosen], positives, Lists(self.ids[filled], scores, offsets(filled.sum(axis=1)[chosen]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Documents of each anchor, flat."""

    items: Ids  # (m,)
    scores: NDArray[np.float64] | None  # (m,)
    starts: Ids  # (a + 1,) where those of each anchor begin

    def column(self, kind: str, values: list[Any]) -> Column:
        """The column of lists of these values, one value for each document."""
        return Column(kind, sliced(values, self.starts))

    def score_column(self) -> Column:
        """The column of lists of scores."""
        return self.column("floats", [] if self.scores is None else self.scores.tolist())


def _shortest(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the float64 with the shortest decimals that round to each float32: 0.1, not 0.10000000149011612."""
    return scores.astype(np.str_).astype(np.float64)


def sliced(values: list[Any], starts: Ids) -> list[list[Any]]:
    """Split a flat list at `starts`, (rows + 1,)."""
    edges = starts.tolist()
    return [values[start:stop] for start, stop in pairwise(edges)]

"""The contents of a training file: ids of anchors, positives and negatives in blocks, and the columns made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.formats._labels import Labels

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
_CELLS = 8192  # negatives of a block, whose texts are in memory together


@final
class Part(NamedTuple):
    """A column by rows of the queries or of the corpus, before their texts are gathered."""

    # "query" or "document" (a text, or else an id), the same with " id" or " name" added, "passage", "object" or "pair"
    # (documents as JSON), "corpus" (its name), or "number"
    what: str
    values: NDArray[Any]  # rows; or the numbers themselves
    starts: Ids | None = None  # where each list begins, (rows + 1,); None if a row has one value
    scores: Scores | None = None  # of documents


Parts = dict[str, Part]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """All that is written."""

    ids: Ids  # (n, k) negatives, -1 empty
    scores: Scores | None  # (n, k)
    indptr: Ids  # (n + 1,) where the positives of each anchor begin in `items`
    items: Ids  # the positives, without pairs whose relation is "ignore"
    positive_scores: Scores | None  # one for each of `items`
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
        pairs = slice(self.indptr[start], self.indptr[stop])
        return Block(
            anchors=np.arange(start, stop),
            ids=self.ids[start:stop],
            scores=None if self.scores is None else self.scores[start:stop],
            pair_rows=np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1])),
            pair_items=self.items[pairs],
            pair_scores=None if self.positive_scores is None else self.positive_scores[pairs],
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some anchors, their negatives and their positives."""

    anchors: Ids  # (a,)
    ids: Ids  # (a, k) their negatives, -1 empty
    scores: Scores | None  # (a, k)
    pair_rows: Ids  # (p,) for each known pair the row of its anchor in this block
    pair_items: Ids  # (p,) its positive
    pair_scores: Scores | None  # (p,)

    def queries(self, rows: Ids) -> Part:
        """The column of the anchors in these rows of the block."""
        return Part("query", self.anchors[rows])

    def triples(self) -> tuple[Ids, Ids, Ids]:
        """For each (anchor, positive, negative): its pair, the row of its anchor, the column of its negative."""
        pairs, columns = np.nonzero(self.ids[self.pair_rows] >= 0)
        return pairs, self.pair_rows[pairs], columns

    def wide(self, pairs: Ids) -> tuple[Ids, Scores | None]:
        """(m, 1 + k) the positive of each pair and the negatives of its anchor, and their scores if both have some."""
        rows = self.pair_rows[pairs]
        items = np.concatenate([self.pair_items[pairs, None], self.ids[rows]], axis=1)
        if self.scores is None or self.pair_scores is None:
            return items, None
        return items, np.concatenate([self.pair_scores[pairs, None], self.scores[rows]], axis=1)

    def full(self) -> Ids:
        """The places of the pairs whose anchor has all k negatives."""
        return np.flatnonzero((self.ids[self.pair_rows] >= 0).all(axis=1))

    def useful(self) -> NDArray[np.bool_]:
        """(a,) which anchors have a positive and a negative."""
        return (self.ids >= 0).any(axis=1) & (np.bincount(self.pair_rows, minlength=len(self.anchors)) > 0)

    def lists(self, chosen: NDArray[np.bool_]) -> tuple[Part, Part]:
        """The positives and the negatives of the chosen anchors (a,), in lists."""
        pairs = np.flatnonzero(chosen[self.pair_rows])
        counts = np.bincount(self.pair_rows[pairs], minlength=len(chosen))[chosen]
        beside = None if self.pair_scores is None else self.pair_scores[pairs]
        filled = (self.ids >= 0) & chosen[:, None]
        scores = None if self.scores is None else self.scores[filled]
        negatives = Part("document", self.ids[filled], offsets(filled.sum(axis=1)[chosen]), scores)
        return Part("document", self.pair_items[pairs], offsets(counts), beside), negatives


@final
class Column(NamedTuple):
    """Values of one kind, one for each row.

    Kinds are "text", "number", "float", "passage", "titled passage", "object" and "pair", and lists of them, with an s.
    """

    kind: str
    values: list[Any]


Columns = dict[str, Column]


def rows_of(columns: Columns) -> int:
    """Return the number of rows."""
    return len(next(iter(columns.values())).values)


def arrow_schema(columns: Columns) -> Any:
    """Return the Arrow schema; strings are large, so that no block is too long for its offsets."""
    import pyarrow as pa

    text = pa.large_string()
    kinds = {"text": text, "number": pa.int64(), "float": pa.float32()}
    kinds["passage"] = pa.struct([("docid", text), ("text", text)])
    kinds["titled passage"] = pa.struct([("docid", text), ("title", text), ("text", text)])
    kinds |= {f"{kind}s": pa.list_(inner) for kind, inner in kinds.items()}
    return pa.schema([(name, kinds[column.kind]) for name, column in columns.items()])


def column_of(part: Part, job: Job) -> Column:
    """Gather the texts of a column."""
    kind, flat = _gathered(part, job)
    if part.starts is None:
        return Column(kind, flat)
    return Column(f"{kind}s", [flat[start:stop] for start, stop in pairwise(part.starts.tolist())])


def _gathered(part: Part, job: Job) -> tuple[str, list[Any]]:
    """Return the kind of the values, and the values without their lists."""
    side, _, how = part.what.partition(" ")
    rows, labels = part.values, job.queries if side == "query" else job.corpus
    scores = None if part.scores is None or side not in ("object", "pair") else _shortest(part.scores)
    if side == "number":
        return ("float", _shortest(rows)) if rows.dtype.kind == "f" else ("number", rows.tolist())
    if side == "corpus":
        return "text", [job.corpus_id] * len(rows)
    if side == "pair":
        return side, list(map(list, zip(rows.tolist(), scores or (), strict=True)))
    if side == "object":
        names = labels.called(rows)
        if scores is None:
            return side, [{"id": name} for name in names]
        return side, [{"id": name, "score": score} for name, score in zip(names, scores, strict=True)]
    if side == "passage":
        parts = {
            "docid": labels.called(rows),
            "title": labels.titles and labels.titles(rows),
            "text": labels.values(rows),
        }
        parts = {name: values for name, values in parts.items() if values is not None}
        passages = [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
        return ("passage" if labels.titles is None else "titled passage"), passages
    if how == "name":
        return "text", labels.called(rows)
    if how == "id":
        return labels.kind(of_ids=True), labels.ids(rows)
    return labels.kind(), labels.values(rows)


def _shortest(scores: NDArray[np.float32]) -> list[float]:
    """Return the numbers with the shortest decimals that round to each float32: 0.1, not 0.10000000149011612."""
    found: list[float] = scores.astype(np.str_).astype(np.float64).tolist()
    return found

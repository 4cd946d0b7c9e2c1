"""Hard negatives as Arrow tables, in the four forms that sentence-transformers trains on. No row is a Python object."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.integrations._hard_negatives import Picked
from naysay.integrations._text_pairs import TextPairs

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
FORMATS = ("triplet", "n-tuple", "labeled-pair", "labeled-list")
_CHUNK = 1 << 27  # bytes of text in a chunk: 32-bit offsets, which `datasets` uses, end at 2^31
_ROW = 8  # bytes that a row counts for, besides its text


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What the formats are made of.

    Args:
        names: [anchor, positive], the columns' names.
        pairs: The texts and who is paired with whom.
        picked: The negatives.
    """

    names: list[str]
    pairs: TextPairs
    picked: Picked

    def table(self, form: str, *, with_scores: bool) -> Any:
        """An Arrow table of one of the four forms."""
        makers = dict(zip(FORMATS, (self._triplets, self._tuples, self._labelled_pairs, self._lists), strict=True))
        return makers[form](with_scores=with_scores)

    def triples(self) -> tuple[Ids, Ids, Ids]:
        """For each (anchor, positive, negative): its pair, the row of its anchor, the column of its negative."""
        places, columns = np.nonzero(self.picked.ids[self.pairs.anchors] >= 0)
        return places, self.pairs.anchors[places], columns

    def _triplets(self, *, with_scores: bool) -> Any:
        places, rows, columns = self.triples()
        found = self._texts(rows, self.pairs.items[places]) | {
            "negative": texts(self.pairs.corpus, self.picked.ids[rows, columns])
        }
        if with_scores:
            both = np.stack([self.picked.positive_scores[places], self.picked.scores[rows, columns]], axis=1)
            found["scores"] = number_lists(both)
        return _table(found)

    def _tuples(self, *, with_scores: bool) -> Any:
        full = np.all(self.picked.ids >= 0, axis=1)
        places = np.flatnonzero(full[self.pairs.anchors])
        rows = self.pairs.anchors[places]
        found = self._texts(rows, self.pairs.items[places])
        for column in range(self.picked.ids.shape[1]):
            found[f"negative_{column + 1}"] = texts(self.pairs.corpus, self.picked.ids[rows, column])
        if with_scores:
            both = np.concatenate([self.picked.positive_scores[places, None], self.picked.scores[rows]], axis=1)
            found["scores"] = number_lists(both)
        return _table(found)

    def _labelled_pairs(self, *, with_scores: bool) -> Any:
        import pyarrow as pa

        rows, columns = np.nonzero(self.picked.ids >= 0)
        anchors = np.concatenate([self.pairs.anchors, rows])
        order = np.argsort(anchors, kind="stable")  # the positives of an anchor, then its negatives
        items = np.concatenate([self.pairs.items, self.picked.ids[rows, columns]])[order]
        found = self._texts(anchors[order], items)
        if with_scores:
            scores = np.concatenate([self.picked.positive_scores, self.picked.scores[rows, columns]])[order]
            found["score"] = pa.chunked_array([pa.array(scores.astype(np.float64))])
        else:
            found["label"] = pa.chunked_array([pa.array((order < len(self.pairs.anchors)).astype(np.int64))])
        return _table(found)

    def _lists(self, *, with_scores: bool) -> Any:
        some = np.any(self.picked.ids >= 0, axis=1)
        pairs = np.flatnonzero(some[self.pairs.anchors])
        anchors = self.pairs.anchors[pairs]
        rows, columns = np.nonzero(self.picked.ids[anchors] >= 0)
        owners = np.concatenate([np.arange(len(pairs)), rows])
        order = np.argsort(owners, kind="stable")  # the positive, then the negatives
        negatives = self.picked.ids[anchors[rows], columns]
        items = np.concatenate([self.pairs.items[pairs], negatives])[order]
        counts = np.bincount(owners, minlength=len(pairs))
        anchor, positive = self.names
        found = {anchor: texts(self.pairs.queries, anchors), positive: text_lists(self.pairs.corpus, items, counts)}
        if with_scores:
            scores = np.concatenate([self.picked.positive_scores[pairs], self.picked.scores[anchors[rows], columns]])
            found["scores"] = lists_of(scores[order].astype(np.float64), counts)
        else:
            found["labels"] = lists_of((order < len(pairs)).astype(np.int64), counts)
        return _table(found)

    def _texts(self, anchors: Ids, items: Ids) -> dict[str, Any]:
        anchor, positive = self.names
        return {anchor: texts(self.pairs.queries, anchors), positive: texts(self.pairs.corpus, items)}


def names_of(form: str, count: int, *, with_scores: bool) -> list[str]:
    """What the columns of a form are called besides the first two."""
    if form == "triplet":
        return ["negative", *["scores"] * with_scores]
    if form == "n-tuple":
        return [*(f"negative_{place + 1}" for place in range(count)), *["scores"] * with_scores]
    singular = "score" if with_scores else "label"
    return [singular if form == "labeled-pair" else f"{singular}s"]


def _table(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def fingerprint(table: Any) -> str:
    """16 hexadecimal digits of the contents of a table, read where they lie.

    `datasets` would make its own from a pickle, which takes several times the memory of the table.
    """
    digest = hashlib.blake2b(str(table.schema).encode(), digest_size=8)
    for column in table.columns:
        for chunk in column.chunks:
            digest.update(len(chunk).to_bytes(8, "little"))
            for buffer in chunk.buffers():
                digest.update(b"" if buffer is None else buffer)
    return digest.hexdigest()


def texts(array: Any, ids: Ids) -> Any:
    """The texts of these rows as a column of strings, in chunks that 32-bit offsets can hold."""
    import pyarrow as pa

    chunks = [_taken(array, ids[start:stop]) for start, stop in pairwise(_edges(_weights(array, ids)))]
    return pa.chunked_array(chunks, pa.string())


def text_lists(array: Any, ids: Ids, counts: Ids) -> Any:
    """Lists of texts, `counts` of them in each row."""
    import pyarrow as pa

    starts = offsets(counts)
    whole = np.add.reduceat(_weights(array, ids), starts[:-1]) if len(counts) else np.empty(0, np.int64)
    chunks = [
        pa.ListArray.from_arrays(
            pa.array((starts[first : last + 1] - starts[first]).astype(np.int32)),
            _taken(array, ids[starts[first] : starts[last]]),
        )
        for first, last in pairwise(_edges(whole))
    ]
    return pa.chunked_array(chunks, pa.list_(pa.string()))


def lists_of(values: NDArray[Any], counts: Ids) -> Any:
    """Lists of numbers, `counts` of them in each row."""
    import pyarrow as pa

    starts = offsets(counts)
    chunks = [
        pa.ListArray.from_arrays(
            pa.array((starts[first : last + 1] - starts[first]).astype(np.int32)),
            pa.array(values[starts[first] : starts[last]]),
        )
        for first, last in pairwise(_edges(counts * values.itemsize))
    ]
    return pa.chunked_array(chunks, pa.list_(pa.from_numpy_dtype(values.dtype)))


def number_lists(rows: NDArray[np.float32]) -> Any:
    """(rows, w) numbers as lists of float64, which is what they become from Python's floats."""
    return lists_of(rows.astype(np.float64).reshape(-1), np.full(len(rows), rows.shape[1]))


def _taken(array: Any, ids: Ids) -> Any:
    import pyarrow as pa

    return array.take(pa.array(ids)).cast(pa.string())


def _weights(array: Any, ids: Ids) -> Ids:
    """(rows,) how many bytes each of these texts takes."""
    import pyarrow.compute as pc

    sizes: Ids = pc.binary_length(array).to_numpy(zero_copy_only=False)
    return sizes[ids] + _ROW


def _edges(weights: Ids) -> list[int]:
    """Where chunks of rows begin, and the end of the last, so that none is much heavier than it may be."""
    part = np.cumsum(weights) // _CHUNK
    return [*np.flatnonzero(np.diff(part, prepend=-1)).tolist(), len(weights)] if len(weights) else []

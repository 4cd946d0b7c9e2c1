"""Results of `mine_hard_negatives`: Arrow tables in four formats, built without Python objects, and statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.integrations._hard_negative_inputs import TextPairs
from naysay.integrations._hard_negatives import Picked

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
FORMATS = ("triplet", "n-tuple", "labeled-pair", "labeled-list")
_CHUNK = 1 << 27  # bytes of text in a chunk: 32-bit offsets, which `datasets` uses, end at 2^31
_ROW = 8  # bytes that a row counts for, besides its text


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The contents of a result: the names of its columns, [anchor, positive], the pairs, and their negatives."""

    names: list[str]
    pairs: TextPairs
    picked: Picked

    def table(self, format: str, *, with_scores: bool) -> Any:
        """Return an Arrow table in one of the four formats."""
        makers = dict(zip(FORMATS, (self._triplets, self._tuples, self._labelled_pairs, self._lists), strict=True))
        return makers[format](with_scores=with_scores)

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


def names_of(format: str, count: int, *, with_scores: bool) -> list[str]:
    """Return the names of the columns of a format after the first two."""
    if format == "triplet":
        return ["negative", *["scores"] * with_scores]
    if format == "n-tuple":
        return [*(f"negative_{place + 1}" for place in range(count)), *["scores"] * with_scores]
    singular = "score" if with_scores else "label"
    return [singular if format == "labeled-pair" else f"{singular}s"]


def _table(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def fingerprint(table: Any) -> str:
    """Return a hash of the contents of a table, in 16 hexadecimal digits.

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
    """Return the texts of these rows as a column of strings, in chunks that 32-bit offsets can hold."""
    import pyarrow as pa

    chunks = [_taken(array, ids[start:stop]) for start, stop in pairwise(_edges(_weights(array, ids)))]
    return pa.chunked_array(chunks, pa.string())


def text_lists(array: Any, ids: Ids, counts: Ids) -> Any:
    """Return lists of texts, `counts` of them in each row."""
    import pyarrow as pa

    starts = offsets(counts)[:-1]
    weights = np.add.reduceat(_weights(array, ids), starts) if len(counts) else np.empty(0, np.int64)
    return _lists(lambda part: _taken(array, ids[part]), counts, weights, pa.string())


def lists_of(values: NDArray[Any], counts: Ids) -> Any:
    """Return lists of numbers, `counts` of them in each row."""
    import pyarrow as pa

    return _lists(
        lambda part: pa.array(values[part]), counts, counts * values.itemsize, pa.from_numpy_dtype(values.dtype)
    )


def _lists(values: Callable[[slice], Any], counts: Ids, weights: Ids, kind: Any) -> Any:
    """A column of lists, `counts` of values in each row, in chunks by the weights of rows."""
    import pyarrow as pa

    starts = offsets(counts)
    chunks = [
        pa.ListArray.from_arrays(
            pa.array((starts[first : last + 1] - starts[first]).astype(np.int32)),
            values(slice(starts[first], starts[last])),
        )
        for first, last in pairwise(_edges(weights))
    ]
    return pa.chunked_array(chunks, pa.list_(kind))


def number_lists(rows: NDArray[np.float32]) -> Any:
    """Return (rows, w) numbers as lists of float64, like Python's floats."""
    return lists_of(rows.astype(np.float64).reshape(-1), np.full(len(rows), rows.shape[1]))


def _taken(array: Any, ids: Ids) -> Any:
    import pyarrow as pa

    return array.take(pa.array(ids)).cast(pa.string())


def _weights(array: Any, ids: Ids) -> Ids:
    """(rows,) the bytes of each of these texts."""
    import pyarrow.compute as pc

    sizes: Ids = pc.binary_length(array).to_numpy(zero_copy_only=False)
    return sizes[ids] + _ROW


def _edges(weights: Ids) -> list[int]:
    """Return where chunks of rows begin, and the end of the last, so that none is much larger than _CHUNK."""
    part = np.cumsum(weights) // _CHUNK
    return [*np.flatnonzero(np.diff(part, prepend=-1)).tolist(), len(weights)] if len(weights) else []


def measured(scores: NDArray[np.float32]) -> dict[str, float]:
    """Return {measure: value} of these scores; {} if there are none."""
    if not len(scores):
        return {}
    wide = scores.astype(np.float64)
    lowest, quarter, median, three, highest = np.quantile(wide, [0, 0.25, 0.5, 0.75, 1]).tolist()
    values = {"Mean": float(wide.mean()), "Std": float(wide.std()), "Min": lowest, "25%": quarter}
    return values | {"Median": median, "75%": three, "Max": highest}


def statistics(rows: Rows, values: dict[str, Any], wanted: int) -> str:
    """Return a table of scores, and of what was skipped and what is missing, as text.

    "Negative" is over (anchor, positive, negative), so an anchor with two positives has each of its negatives twice, as
    in a file of triplets. A candidate is counted for one rule, the first that it broke. Shares are of all candidates
    within the ranks. `values` are {parameter: value}, for the rules that dropped something; `wanted` is k.
    """
    picked, pairs = rows.picked, rows.pairs
    places, owners, columns = rows.triples()
    positive, negative = picked.positive_scores, picked.scores[owners, columns]
    parts = (positive, negative, positive[places] - negative)
    lines = [f"{'':<6} {'Positive':>14} {'Negative':>14} {'Difference':>14}"]
    lines.append(f"{'Count':<6} {len(positive):>14,} {len(negative):>14,}")
    measures = [measured(part) for part in parts]
    for name in measures[0]:
        cells = [f"{of[name]:.4f}" if of else "-" for of in measures]
        lines.append(f"{name:<6} {cells[0]:>14} {cells[1]:>14} {cells[2]:>14}")
    for rule, count in picked.dropped.items():
        setting = f" of {values[rule]}" if rule in values else ""
        share = count / max(1, picked.considered)
        lines.append(f"Skipped {count:,} of {picked.considered:,} candidates ({share:.2%}): {rule}{setting}.")
    missing = wanted - np.count_nonzero(picked.ids >= 0, axis=1)
    short = int(np.count_nonzero(missing))
    if short:
        share = short / len(pairs.queries)
        ways = ["a larger range_max"] * picked.cut + ["looser bounds"] * bool(picked.dropped)
        advice = f"{' or '.join(ways).capitalize()} would find more." if ways else "There are no more documents."
        lines.append(
            f"{short:,} of {len(pairs.queries):,} anchors ({share:.2%}) have fewer than {wanted} negatives; "
            f"{int(missing.sum()):,} are missing. {advice}"
        )
    return "\n".join(lines)

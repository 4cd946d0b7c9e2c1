"""TrainingFile: the pairs and negatives of a training file, collected into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import public, raise_invalid, shown
from naysay.formats._formats import FORMATS
from naysay.positives import Positives

Ids = NDArray[np.int64]
_MANY = 1 << 24  # rows that fit in memory even if most of them are empty


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class TrainingFile:
    """The contents of a training file, in the terms of `write_negatives`.

    Documents are numbered in the order in which they occur: all positives first, then negatives.

    Args:
        path: The file.
        format: Its format.
        rows: The rows, or lines, of the file.
        ids: (n, k) int64, -1 empty: the distinct negatives of each anchor, in the order in which they occur.
        scores: (n, k) float32 or None; NaN where the slot is empty, or the file has no score for it.
        positives: The positive pairs of the file. A negative that is also a positive stays a negative here, so that
            such contradictions can be found.
        positive_scores: One for each pair of `positives`, or None.
        query_ids: The names of the anchors; None if the file has row numbers or texts only.
        query_texts: The texts of the anchors, if the file has them. Without ids, distinct texts are distinct anchors.
        corpus_ids: The names of the documents, likewise.
        corpus_texts: The texts of the documents, likewise.

    Examples:
        >>> from tempfile import mkdtemp
        >>> from naysay.formats import read_negatives
        >>> path = Path(mkdtemp()) / "train.jsonl"
        >>> _ = path.write_text('{"query": "cat", "pos": ["a cat"], "neg": ["a dog", "a car"]}')
        >>> training = read_negatives(path)
        >>> training.query_texts, [training.corpus_texts[document] for document in training.ids[0]]
        (['cat'], ['a dog', 'a car'])
    """

    path: Path
    format: str
    rows: int
    ids: Ids
    scores: NDArray[np.float32] | None
    positives: Positives
    positive_scores: NDArray[np.float32] | None
    query_ids: list[str] | None
    query_texts: list[str] | None
    corpus_ids: list[str] | None
    corpus_texts: list[str] | None


@final
class Side:
    """The queries, or the documents, of a file: names or texts in order of first occurrence, or row numbers."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.index: dict[Any, int] = {}
        self.numbered: bool | None = None  # unknown before the first value
        self.size = 0
        self.texts: dict[int, str] = {}

    def codes(self, values: Sequence[Any]) -> Ids:
        """(m,) the row of each value; integers are rows themselves."""
        kinds = {*map(type, values)}
        if not kinds:
            return np.empty(0, np.int64)
        if self.numbered is None:
            self.numbered = kinds == {int}
        if kinds != ({int} if self.numbered else {str}):
            odd = next(value for value in values if type(value) is not (int if self.numbered else str))
            wanted = "whole numbers throughout" if self.numbered else "strings throughout"
            raise_invalid("path", f"a file with {self.what} that are {wanted}", shown(odd))
        if self.numbered:
            rows = np.array(values, np.int64)
            if rows.min() < 0:
                raise_invalid("path", f"a file with {self.what} numbered from 0", int(rows.min()))
            self.size = max(self.size, int(rows.max()) + 1)
            return rows
        index = self.index
        rows = np.fromiter((index.setdefault(value, len(index)) for value in values), np.int64, len(values))
        self.size = len(index)
        return rows

    def named(self, ids: Sequence[Any], texts: Sequence[str]) -> Ids:
        """Return the rows of ids and store their texts; raise for an id with two texts."""
        rows = self.codes(ids)
        for place, (row, text) in enumerate(zip(rows.tolist(), texts, strict=True)):
            if self.texts.setdefault(row, text) != text:
                got = f"two for {shown(ids[place])}"
                raise_invalid("path", f"a file with one text for each of its {self.what}", got)
        return rows

    def in_order(self, occurrences: list[Ids]) -> Ids:
        """(size,) a new number for each row, by the order of occurrence, whatever blocks it was read in."""
        order = np.arange(self.size)
        if self.index:
            used, first = np.unique(np.concatenate(occurrences), return_index=True)
            order[used[np.argsort(first)]] = np.arange(len(used))
            names = list(self.index)
            back = np.argsort(order).tolist()
            self.texts = {place: self.texts[row] for place, row in enumerate(back) if row in self.texts}
            self.index = {names[row]: place for place, row in enumerate(back)}
        return order

    def result(self, *, are_texts: bool) -> tuple[list[str] | None, list[str] | None]:
        """(ids, texts) of all rows; either may be None."""
        if self.texts:
            names = None if self.numbered else list(self.index)
            return names, [self.texts.get(row, "") for row in range(self.size)]
        if self.numbered or not self.index:
            return None, None
        return (None, list(self.index)) if are_texts else (list(self.index), None)


Pairs = tuple[Ids, Ids, NDArray[np.float32]]  # anchors, items and scores


@final
class Collector:
    """Pairs of rows, collected block by block."""

    def __init__(self) -> None:
        self.queries, self.corpus = Side("queries"), Side("documents")
        self.pairs: dict[bool, list[Pairs]] = {True: [], False: []}  # of positives, and of negatives
        self.scored = {True: False, False: False}
        self.rows = 0

    def add(self, anchors: Ids, items: Ids, scores: Any, *, positive: bool) -> None:
        """Add (m,) pairs, and their scores if the file has any."""
        self.scored[positive] |= scores is not None
        beside = np.full(len(items), np.nan, np.float32) if scores is None else np.array(scores, np.float32)
        self.pairs[positive].append((anchors, items, beside))

    def finished(self, path: Path, name: str) -> TrainingFile:
        """Return everything as arrays; a repeated pair is kept once, with its first score."""
        every = [items for _, items, _ in (*self.pairs[True], *self.pairs[False])]
        count = sum(map(len, every))
        for side in (self.queries, self.corpus):
            if side.size > _MANY and side.size > 100 * count:  # database keys: most rows would be empty
                rule = f"a file with {side.what} numbered from 0 without wide gaps"
                raise_invalid("path", rule, f"{side.size - 1} among {count} of them")
        order = self.corpus.in_order(every)
        anchors, items, scores = _first(self.pairs[False], order, by_item=False)
        places = np.arange(len(anchors)) - np.searchsorted(anchors, anchors)
        shape = (self.queries.size, int(places.max(initial=-1)) + 1)
        ids, values = np.full(shape, -1, np.int64), np.full(shape, np.nan, np.float32)
        ids[anchors, places], values[anchors, places] = items, scores
        owners, known, beside = _first(self.pairs[True], order, by_item=True)
        query_ids, query_texts = self.queries.result(are_texts=FORMATS[name].text_only)
        corpus_ids, corpus_texts = self.corpus.result(are_texts=FORMATS[name].text_only)
        return TrainingFile(
            path=path,
            format=name,
            rows=self.rows,
            ids=ids,
            scores=values if self.scored[False] else None,
            positives=Positives.from_pairs(owners, known, self.queries.size, self.corpus.size),
            positive_scores=beside if self.scored[True] else None,
            query_ids=query_ids,
            query_texts=query_texts,
            corpus_ids=corpus_ids,
            corpus_texts=corpus_texts,
        )


def _first(parts: list[Pairs], order: Ids, *, by_item: bool) -> Pairs:
    """Return the distinct pairs, sorted by anchor, then by item or by order of occurrence."""
    none = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    anchors, items, scores = (np.concatenate(column) for column in zip(none, *parts, strict=True))
    items = order[items]
    _, first = np.unique(anchors * max(1, len(order)) + items, return_index=True)
    if not by_item:
        first = np.sort(first)
        first = first[np.argsort(anchors[first], kind="stable")]
    return anchors[first], items[first], scores[first]

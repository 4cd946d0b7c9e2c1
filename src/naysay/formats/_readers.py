"""Readers of the rows of each format: one function per format, from a block of rows to the collector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.formats.training_file import Collector

Ids = NDArray[np.int64]
_LABELS = ("label", "labels", "score", "scores")  # columns that sentence-transformers takes for labels


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows of a file."""

    names: tuple[str, ...]  # the columns of the file
    numbers: Sequence[int]  # the line, or row, number of each row
    rows: list[Any]  # objects or arrays
    where: str  # "line" or "row", for errors

    def raise_invalid(self, place: int, rule: str, got: object) -> NoReturn:
        """Raise for the row at `place` of this block."""
        raise_invalid("path", rule, f"{shown(got)} in {self.where} {self.numbers[place]}")

    def column(self, name: str, kinds: tuple[type, ...] = (str, int)) -> list[Any]:
        """Return a column of single values: strings or integers."""
        values = [row.get(name) for row in self.rows]
        if not {*map(type, values)} <= {*kinds}:
            place = next(place for place, value in enumerate(values) if type(value) not in kinds)
            what = "a string or a whole number" if int in kinds else "a string"
            self.raise_invalid(place, f"a file with {what} for {name!r} in every {self.where}", values[place])
        return values

    def named(self, name: str, text: str) -> tuple[list[Any], list[str]]:
        """Return a column of ids and the column of their texts."""
        return self.column(name), self.column(text, (str,))

    def lists(self, name: str, inner: tuple[type, ...] = (str, int)) -> tuple[Ids, list[Any]]:
        """Return a column of lists, flat: the row of each value in this block, and the values."""
        values = [row.get(name) for row in self.rows]
        kinds = {*map(type, values)} - {list}
        if kinds or not {*map(type, chain.from_iterable(values))} <= {*inner}:
            place = next(place for place, value in enumerate(values) if not _is_list(value, inner))
            words = " or ".join(_WORDS[kind] for kind in inner)
            self.raise_invalid(
                place, f"a file with a list of {words} for {name!r} in every {self.where}", values[place]
            )
        counts = np.fromiter(map(len, values), np.int64, len(values))
        return np.repeat(np.arange(len(values)), counts), list(chain.from_iterable(values))

    def scores(self, name: str, rows: Ids) -> list[float] | None:
        """Return the scores that belong to a column of lists, or None; raise if the lengths differ."""
        if name not in self.names:
            return None
        own, values = self.lists(name, (float, int))
        if not np.array_equal(own, rows):
            counts = np.bincount(own, minlength=len(self.rows)) != np.bincount(rows, minlength=len(self.rows))
            place = int(np.argmax(counts))
            self.raise_invalid(place, f"a file with one of {name!r} for each document", self.rows[place].get(name))
        return values

    @property
    def texts(self) -> list[str]:
        """The columns that hold neither labels nor scores."""
        return [name for name in self.names if name not in _LABELS]


_WORDS = {str: "strings", int: "whole numbers", float: "numbers", dict: "objects"}


def _is_list(value: Any, inner: tuple[type, ...]) -> bool:
    return isinstance(value, list) and {*map(type, value)} <= {*inner}


def _tuples(rows: Rows, into: Collector) -> None:
    """Triplets and n-tuples: the first column is the anchor, the second its positive, the others negatives."""
    names = rows.texts
    anchors = into.queries.codes(rows.column(names[0]))
    count = len(names) - 2
    documents = [into.corpus.codes(rows.column(name)) for name in names[1:]]
    scores = None
    if "scores" in rows.names:
        owners, flat = rows.lists("scores", (float, int))
        lengths = np.bincount(owners, minlength=len(anchors))
        if (lengths != count + 1).any():
            place = int(np.argmax(lengths != count + 1))
            rows.raise_invalid(
                place, f"a file with {count + 1} scores in every {rows.where}", rows.rows[place]["scores"]
            )
        scores = np.array(flat, np.float32).reshape(-1, count + 1)
    into.add(anchors, documents[0], None if scores is None else scores[:, 0].tolist(), positive=True)
    negatives = np.stack(documents[1:], axis=1).ravel() if count else np.empty(0, np.int64)
    into.add(
        np.repeat(anchors, count), negatives, None if scores is None else scores[:, 1:].ravel().tolist(), positive=False
    )


def _labelled_pair(rows: Rows, into: Collector) -> None:
    """The first column is the anchor, the second a document, `label` 1 or 0."""
    anchors = into.queries.codes(rows.column(rows.texts[0]))
    items = into.corpus.codes(rows.column(rows.texts[1]))
    labels = np.array([_label(rows, place, row.get("label")) for place, row in enumerate(rows.rows)], bool)
    into.add(anchors[labels], items[labels], None, positive=True)
    into.add(anchors[~labels], items[~labels], None, positive=False)


def _labelled_list(rows: Rows, into: Collector) -> None:
    """The first column is the anchor, the second its documents, `labels` beside them; or scores, the positive first."""
    anchors = into.queries.codes(rows.column(rows.texts[0]))
    owners, documents = rows.lists(rows.texts[1])
    items = into.corpus.codes(documents)
    scores = rows.scores("scores", owners)
    if "labels" in rows.names:
        marks = rows.scores("labels", owners) or []
        labels = np.array([_label(rows, int(owner), mark) for owner, mark in zip(owners, marks, strict=True)], bool)
    else:
        labels = np.ones(len(owners), bool)
        labels[1:] = owners[1:] != owners[:-1]
    for positive, chosen in ((True, labels), (False, ~labels)):
        beside = None if scores is None else np.array(scores, np.float32)[chosen].tolist()
        into.add(anchors[owners[chosen]], items[chosen], beside, positive=positive)


def _label(rows: Rows, place: int, mark: Any) -> bool:
    if mark not in (0, 1):
        rows.raise_invalid(place, "a file with labels of 0 and 1", mark)
    return bool(mark)


def _per_anchor(
    anchor: str, positives: str, negatives: str, positive_scores: str, negative_scores: str
) -> Callable[[Rows, Collector], None]:
    """Make a reader of one row per anchor: a column of positives, one of negatives, and their scores."""

    def read(rows: Rows, into: Collector) -> None:
        anchors = into.queries.codes(rows.column(anchor))
        for positive, name, beside in ((True, positives, positive_scores), (False, negatives, negative_scores)):
            owners, documents = rows.lists(name)
            into.add(anchors[owners], into.corpus.codes(documents), rows.scores(beside, owners), positive=positive)

    return read


def _tevatron(rows: Rows, into: Collector) -> None:
    """query_id and query; passages with docid, title and text."""
    anchors = into.queries.named(*rows.named("query_id", "query"))
    for positive, name in ((True, "positive_passages"), (False, "negative_passages")):
        owners, passages = rows.lists(name, (dict,))
        for place, passage in zip(owners.tolist(), passages, strict=True):
            if not isinstance(passage.get("docid"), str) or not isinstance(passage.get("text"), str):
                rows.raise_invalid(place, f"a file with docid and text, strings, in all {name}", passage)
        texts = [" ".join(filter(None, (each.get("title"), each["text"]))) for each in passages]
        items = into.corpus.named([each["docid"] for each in passages], texts)
        into.add(anchors[owners], items, None, positive=positive)


def _tevatron_ids(rows: Rows, into: Collector) -> None:
    """query_id and query_text (query in some files); ids of documents."""
    text = "query_text" if "query_text" in rows.names else "query"
    anchors = into.queries.named(*rows.named("query_id", text))
    for positive, name in ((True, "positive_document_ids"), (False, "negative_document_ids")):
        owners, documents = rows.lists(name)
        into.add(anchors[owners], into.corpus.codes(documents), None, positive=positive)


def _nemo(rows: Rows, into: Collector) -> None:
    """question_id and question; documents as ids, or as objects of id and score."""
    anchors = into.queries.named(*rows.named("question_id", "question"))
    for positive, name in ((True, "pos_doc"), (False, "neg_doc")):
        owners, documents = rows.lists(name, (dict, str))
        named = [each.get("id") if isinstance(each, dict) else each for each in documents]
        for place, (value, each) in enumerate(zip(named, documents, strict=True)):
            if not isinstance(value, str):
                rows.raise_invalid(int(owners[place]), f"a file with an id, a string, in all of {name}", each)
        scored = [each.get("score") if isinstance(each, dict) else None for each in documents]
        scores = [np.nan if score is None else float(score) for score in scored]
        beside = scores if any(score is not None for score in scored) else None
        into.add(anchors[owners], into.corpus.codes(named), beside, positive=positive)


def _nemo_inline(rows: Rows, into: Collector) -> None:
    """query, pos_doc and neg_doc; one positive or a list of them."""
    for row in rows.rows:
        if isinstance(row.get("pos_doc"), str):
            row["pos_doc"] = [row["pos_doc"]]
    _per_anchor("query", "pos_doc", "neg_doc", "", "")(rows, into)


def _colbert(rows: Rows, into: Collector) -> None:
    """[query, positive, negative, ...], a passage as a number or as [number, score]."""
    for place, row in enumerate(rows.rows):
        if len(row) < 3 or type(row[0]) is not int or len({*map(type, row[1:])}) > 1:
            rows.raise_invalid(place, f"a file with [query, positive, negative, ...] in every {rows.where}", row)
    counts = np.fromiter(map(len, rows.rows), np.int64, len(rows.rows)) - 1
    anchors = np.repeat(into.queries.codes([row[0] for row in rows.rows]), counts)
    flat = list(chain.from_iterable(row[1:] for row in rows.rows))
    scored = [each for each in flat if isinstance(each, list) and len(each) == 2]
    if scored and len(scored) != len(flat):
        rows.raise_invalid(0, "a file in which all passages have a score, or none", rows.rows[0])
    scores = np.array([score for _, score in scored], np.float32) if scored else None
    items = into.corpus.codes([passage for passage, _ in scored] if scored else flat)
    first = np.zeros(len(flat), bool)
    first[np.cumsum(counts) - counts] = True
    for positive, chosen in ((True, first), (False, ~first)):
        beside = None if scores is None else scores[chosen].tolist()
        into.add(anchors[chosen], items[chosen], beside, positive=positive)


READERS: Mapping[str, Callable[[Rows, Collector], None]] = {
    "triplet": _tuples,
    "n-tuple": _tuples,
    "labelled-pair": _labelled_pair,
    "labelled-list": _labelled_list,
    "flagembedding": _per_anchor("query", "pos", "neg", "pos_scores", "neg_scores"),
    "tevatron": _tevatron,
    "tevatron-ids": _tevatron_ids,
    "nemo": _nemo,
    "nemo-inline": _nemo_inline,
    "colbert": _colbert,
    "colbert-nway": _colbert,
    "ids": _per_anchor("anchor", "positives", "negatives", "positive_scores", "negative_scores"),
}

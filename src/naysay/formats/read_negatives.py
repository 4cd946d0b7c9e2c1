"""read_negatives: the anchors, positives and negatives of a training file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import public, raise_invalid, shown
from naysay.errors import NaysayError
from naysay.formats._table import FORMATS, SCORES, Format, format_called
from naysay.formats._table_files import Table, opened_table
from naysay.formats.training_file import Collector, TrainingFile
from naysay.text import first_line

Ids = NDArray[np.int64]
Documents = tuple[Ids, Ids, list[float] | None]  # the row of each in the block, its row in the corpus, and its score
_LABELS = ("label", "labels", "score", "scores")  # columns that sentence-transformers takes for labels
_WORDS = {str: "strings", int: "whole numbers", float: "numbers", dict: "objects"}


@public
def read_negatives(path: str | Path, format: str | None = None) -> TrainingFile:
    """Read a training file in any format that `write_negatives` writes, except "trec" (use `read_run`).

    In the formats of sentence-transformers the order of columns counts, not their names: the first is the anchor, the
    second the positive. Labelled pairs with scores instead of labels cannot be read: the file does not contain which
    are positives. Titles and texts of "tevatron" are joined by a space. Texts stay as they are, even broken ones.
    Memory: the distinct texts, and 20 bytes for each pair.

    Args:
        path: .parquet, .jsonl or .json (also .gz or .xz), or .hf, a data set on disk.
        format: The format; recognised by the columns by default.

    Returns:
        The contents as arrays, in the terms of `write_negatives`.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "train.jsonl"
        >>> _ = path.write_text('{"anchor": "cat", "positive": "a cat", "negative": "a dog"}')
        >>> training = read_negatives(path)
        >>> training.format, training.corpus_texts, training.ids.tolist()
        ('triplet', ['a cat', 'a dog'], [[1]])
    """
    name, into = collected(Path(path), format)
    return into.finished(Path(path), name)


def collected(path: Path, format: str | None) -> tuple[str, Collector]:
    """Return the format of a file, and all its pairs as they are read, also repeated ones."""
    name = None if format is None else format_called(format)
    table = opened_table(path)
    name = name or _format_of(table)
    _check_fit(FORMATS[name], table)
    into = Collector()
    for numbers, rows in table.blocks:
        try:
            _read_rows(FORMATS[name], _Rows(table.names, numbers, rows, table.where), into)
        except NaysayError:
            raise
        except (TypeError, ValueError, OverflowError) as error:  # a score that is text, a number too large
            got = f"{first_line(error)} in {table.where}s {numbers[0]} to {numbers[-1]}"
            raise_invalid("path", f"a file of the format {name!r}", got)
        into.rows += len(rows)
    return name, into


def _format_of(table: Table) -> str:
    """Recognise the format by its own columns; those of sentence-transformers by labels and number of columns."""
    if table.first is None and not table.names:
        raise_invalid("path", "a file with rows", f"none in {str(table.path)!r}", "Pass `format` for an empty one.")
    if table.arrays:
        return "colbert" if len(table.first) == 3 and type(table.first[1]) is int else "colbert-nway"
    present = {*table.names}
    for name, each in FORMATS.items():
        if each.lists and present >= {*each.marks}:
            return name
    if "label" in present or "score" in present:
        return "labelled-pair"
    plain = len([column for column in table.names if column not in _LABELS])
    if plain == 2 and plain < len(table.names):
        return "labelled-list"
    if plain >= 3:
        return "triplet" if plain == 3 else "n-tuple"
    has_lists = isinstance(table.first, dict) and any(isinstance(value, list) for value in table.first.values())
    if plain == 2 and table.first is not None and not has_lists:
        raise_invalid("path", "a file with negatives", f"{_listed(table)} alone", "Mine some: `naysay mine`.")
    got = _listed(table) if table.names else shown(table.first)
    raise_invalid("path", "a file of a known format", got, "Pass `format`.")


def _check_fit(chosen: Format, table: Table) -> None:
    """Raise if the columns are not those of the format."""
    name, present = chosen.name, {*table.names}
    if table.first is None and not table.names:
        return
    if chosen.arrays != table.arrays:
        kind = "arrays" if chosen.arrays else "objects"
        raise_invalid("path", f"lines of JSON {kind} for the format {name!r}", shown(table.first))
    if missing := [column for column in chosen.marks if column not in present]:
        rule = f"a file with the columns {', '.join(map(repr, chosen.marks))} for the format {name!r}"
        raise_invalid("path", rule, f"no {missing[0]!r} among {', '.join(map(repr, table.names))}")
    plain = len([column for column in table.names if column not in _LABELS])
    if name == "labelled-pair" and ("label" not in present or plain != 2):
        advice = "Scores alone do not say which documents are positives." if "score" in present else ""
        raise_invalid("path", "a file with an anchor, a document and 'label'", _listed(table), advice)
    if name == "labelled-list" and (plain != 2 or not present & {"labels", "scores"}):
        raise_invalid("path", "a file with an anchor, documents and 'labels' or 'scores'", _listed(table))
    if (name == "triplet" and plain != 3) or (name == "n-tuple" and plain < 3):
        count = "three" if name == "triplet" else "three or more"
        raise_invalid("path", f"a file with {count} columns beside scores for the format {name!r}", _listed(table))


def _listed(table: Table) -> str:
    return "columns " + ", ".join(map(repr, table.names))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
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

    def lists(self, name: str, inner: tuple[type, ...] = (str, int)) -> tuple[Ids, list[Any]]:
        """Return a column of lists, flat: the row of each value in this block, and the values."""
        values = [row.get(name) for row in self.rows]
        for place, value in enumerate(values):
            if not isinstance(value, list) or not {*map(type, value)} <= {*inner}:
                words = " or ".join(_WORDS[kind] for kind in inner)
                self.raise_invalid(place, f"a file with a list of {words} for {name!r} in every {self.where}", value)
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

    def labels(self, marks: Sequence[Any], owners: Sequence[int] | Ids) -> NDArray[np.bool_]:
        """Return labels as booleans; raise for the row of one that is neither 0 nor 1."""
        for place, mark in enumerate(marks):
            if mark not in (0, 1):
                self.raise_invalid(int(owners[place]), "a file with labels of 0 and 1", mark)
        return np.array(marks, bool)

    @property
    def texts(self) -> list[str]:
        """The columns that hold neither labels nor scores."""
        return [name for name in self.names if name not in _LABELS]


def _read_rows(chosen: Format, rows: _Rows, into: Collector) -> None:
    """Add the pairs of some rows of a file of that format."""
    if chosen.lists:
        _lists(chosen, rows, into)
    elif chosen.arrays:
        _colbert(rows, into)
    else:
        _READERS.get(chosen.name, _tuples)(rows, into)


def _tuples(rows: _Rows, into: Collector) -> None:
    """Triplets and n-tuples: the first column is the anchor, the second its positive, the others negatives."""
    names, scores = rows.texts, None
    anchors = into.queries.codes(rows.column(names[0]))
    items = np.stack([into.corpus.codes(rows.column(name)) for name in names[1:]], axis=1)
    if "scores" in rows.names:
        owners, scores = rows.lists("scores", (float, int))
        wrong = np.bincount(owners, minlength=len(anchors)) != items.shape[1]
        if wrong.any():
            place, rule = int(np.argmax(wrong)), f"a file with {items.shape[1]} scores in every {rows.where}"
            rows.raise_invalid(place, rule, rows.rows[place]["scores"])
    positive = np.broadcast_to(np.arange(items.shape[1]) == 0, items.shape).ravel()
    into.add_marked(np.repeat(anchors, items.shape[1]), items.ravel(), scores, positive)


def _labelled_pair(rows: _Rows, into: Collector) -> None:
    """The first column is the anchor, the second a document, `label` 1 or 0."""
    anchors = into.queries.codes(rows.column(rows.texts[0]))
    items = into.corpus.codes(rows.column(rows.texts[1]))
    labels = rows.labels([row.get("label") for row in rows.rows], range(len(rows.rows)))
    into.add_marked(anchors, items, None, labels)


def _labelled_list(rows: _Rows, into: Collector) -> None:
    """The first column is the anchor, the second its documents, `labels` beside them; or scores, the positive first."""
    anchors = into.queries.codes(rows.column(rows.texts[0]))
    owners, documents = rows.lists(rows.texts[1])
    items = into.corpus.codes(documents)
    scores = rows.scores("scores", owners)
    if "labels" in rows.names:
        labels = rows.labels(rows.scores("labels", owners) or [], owners)
    else:
        labels = np.diff(owners, prepend=-1) != 0
    into.add_marked(anchors[owners], items, scores, labels)


_READERS: dict[str, Callable[[_Rows, Collector], None]] = {
    "labelled-pair": _labelled_pair,
    "labelled-list": _labelled_list,
}


def _lists(chosen: Format, rows: _Rows, into: Collector) -> None:
    """A row with lists of positives and negatives. In "nemo-inline" a positive may be by itself."""
    names = chosen.lists
    if "query name" in names:
        text = names["query"] if names["query"] in rows.names else "query"
        anchors = into.queries.named(rows.column(names["query name"]), rows.column(text, (str,)))
    else:
        anchors = into.queries.codes(rows.column(names.get("query", "anchor")))
    if chosen.name == "nemo-inline":
        for row in rows.rows:
            if isinstance(row.get("pos_doc"), str):
                row["pos_doc"] = [row["pos_doc"]]
    for what, scores in SCORES.items():
        owners, items, beside = _documents(chosen, rows, into, names[what], names.get(scores, ""))
        into.add(anchors[owners], items, beside, positive=what == "positives")


def _documents(chosen: Format, rows: _Rows, into: Collector, name: str, scores: str) -> Documents:
    """Return the documents of a column of lists: ids or texts, passages, or objects of id and score."""
    if chosen.documents == "passage":
        owners, passages = rows.lists(name, (dict,))
        for place, passage in zip(owners.tolist(), passages, strict=True):
            if not isinstance(passage.get("docid"), str) or not isinstance(passage.get("text"), str):
                rows.raise_invalid(place, f"a file with docid and text, strings, in all {name}", passage)
        texts = [" ".join(filter(None, (each.get("title"), each["text"]))) for each in passages]
        return owners, into.corpus.named([each["docid"] for each in passages], texts), None
    if chosen.documents != "object":
        owners, documents = rows.lists(name)
        return owners, into.corpus.codes(documents), rows.scores(scores, owners)
    owners, documents = rows.lists(name, (dict, str))
    objects = [each if isinstance(each, dict) else {"id": each} for each in documents]
    for place, each in enumerate(objects):
        if not isinstance(each.get("id"), str):
            rows.raise_invalid(int(owners[place]), f"a file with an id, a string, in all of {name}", documents[place])
    scored = [each.get("score") for each in objects]
    beside = [np.nan if score is None else float(score) for score in scored]
    has_scores = any(score is not None for score in scored)
    return owners, into.corpus.codes([each["id"] for each in objects]), beside if has_scores else None


def _colbert(rows: _Rows, into: Collector) -> None:
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
    items = into.corpus.codes([passage for passage, _ in scored] if scored else flat)
    first = np.zeros(len(flat), bool)
    first[np.cumsum(counts) - counts] = True
    into.add_marked(anchors, items, [score for _, score in scored] if scored else None, first)

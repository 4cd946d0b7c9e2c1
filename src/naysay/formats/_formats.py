"""The table of formats: which rows a file has, and its columns, each of which knows how to write and to read a cell.

To add a format, add a row to `FORMATS`, its golden rows to the tests, and a line to the page on formats.

In the formats of sentence-transformers the order of columns counts, and a column `scores` is taken for labels. The
formats with one row per anchor (FlagEmbedding, Tevatron, NeMo, ms-swift) sample from the lists while they train and
fail on an empty one, so an anchor without a positive or without a negative is left out. ColBERT numbers queries and
passages by their row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import nan
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import check_one_of
from naysay.formats._contents import (
    Block,
    Documents,
    Ids,
    Labels,
    Rows,
    one_each,
    per_anchor,
    per_any_anchor,
    per_document,
    per_full_pair,
    per_negative,
    per_pair,
)

# ---- Values: how a cell is written, as an Arrow array of many, and how one is read -----------------------------------


Cell = str | int  # the key of a query or a document: its id, or its text, or its row number


@final
class Read(NamedTuple):
    """A query or a document that was read."""

    key: Cell
    text: str | None = None  # its text, where the key is another
    score: float = nan


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """The queries, or the documents, of a block of rows: those of the first row first."""

    keys: list[Cell]
    counts: list[int]  # of each row
    texts: list[str | None] | None = None  # where the keys are others
    scores: list[float] | None = None

    @classmethod
    def of(cls, values: list[Any], counts: list[int]) -> Reads:
        """Of keys, and of keys with a text or a score."""
        if Read not in {*map(type, values)}:
            return cls(values, counts)
        reads = [value if type(value) is Read else Read(value) for value in values]
        return cls([read.key for read in reads], counts, [read.text for read in reads], [read.score for read in reads])

    @property
    def places(self) -> Ids:
        """Of each within its row."""
        return np.arange(len(self.keys)) - np.repeat(offsets(np.array(self.counts))[:-1], self.counts)

    def part(self, chosen: NDArray[np.bool_]) -> Reads:
        """Those that are chosen."""
        counts = np.bincount(np.repeat(np.arange(len(self.counts)), self.counts)[chosen], minlength=len(self.counts))
        texts = None if self.texts is None else [*compress(self.texts, chosen)]
        scores = None if self.scores is None else [*compress(self.scores, chosen)]
        return Reads([*compress(self.keys, chosen)], counts.tolist(), texts, scores)

    def one_by_one(self) -> list[Read]:
        """The same as a list."""
        texts = self.texts or [None] * len(self.keys)
        scores = self.scores or [nan] * len(self.keys)
        return [*map(Read, self.keys, texts, scores)]


@final
class Unfit(Exception):
    """A cell that the format cannot hold."""

    def __init__(self, rule: str, cell: object) -> None:
        super().__init__(rule)
        self.rule, self.cell = rule, cell


def raise_unfit(rule: str, cell: object) -> NoReturn:
    """Raise for a cell: `rule` is what each row must have."""
    raise Unfit(rule, cell) from None


@final
@dataclass(frozen=True, slots=True)
class Value:
    """One kind of cell."""

    write: Callable[[Labels, Documents], Any]
    read: Callable[[Any], Any]


def _read_key(cell: Any) -> Cell:
    if type(cell) is not str and type(cell) is not int:
        raise_unfit("a string or a whole number", cell)
    return cell


def _read_text(cell: Any) -> str:
    if type(cell) is not str:
        raise_unfit("a string", cell)
    return cell


def _read_score(cell: Any) -> float:
    if type(cell) is not float and not (type(cell) is int and abs(cell) < 1 << 63):
        raise_unfit("a number", cell)
    return float(cell)


def _read_label(cell: Any) -> bool:
    if cell not in (0, 1):
        raise_unfit("labels of 0 and 1", cell)
    return bool(cell)


def _numbers(labels: Labels, documents: Documents) -> Any:
    """Row numbers; pairs of [row number, score] if there are scores."""
    rows = pa.array(documents.items, pa.int64())
    if documents.scores is None:
        return rows
    return pa.StructArray.from_arrays([rows, pa.array(documents.scores)], ["number", "score"])


def _read_number(cell: Any) -> int | Read:
    if type(cell) is int:
        return cell
    if not isinstance(cell, list) or len(cell) != 2 or type(cell[0]) is not int:
        raise_unfit("a whole number, or [number, score]", cell)
    return Read(cell[0], score=_read_score(cell[1]))


def _passages(labels: Labels, documents: Documents) -> Any:
    """Objects of docid, title if there are titles, and text."""
    parts = {"docid": labels.names(documents.items), "title": labels.titles(documents.items)}
    parts["text"] = labels.texts_or_ids(documents.items)
    known = {name: part for name, part in parts.items() if part is not None}
    return pa.StructArray.from_arrays(list(known.values()), list(known))


def _read_passage(cell: Any) -> Read:
    """The title is put before the text."""
    parts = [cell.get(name) for name in ("docid", "title", "text")] if isinstance(cell, dict) else [None] * 3
    docid, title, text = parts
    if not (isinstance(docid, str) and isinstance(title, str | None) and isinstance(text, str)):
        raise_unfit("an object of docid and text, both strings,", cell)
    return Read(docid, f"{title} {text}" if title else text)


def _objects(labels: Labels, documents: Documents) -> Any:
    """Objects of id, and score if there are scores."""
    parts = {"id": labels.names(documents.items)}
    if documents.scores is not None:
        parts["score"] = pa.array(documents.scores)
    return pa.StructArray.from_arrays(list(parts.values()), list(parts))


def _read_object(cell: Any) -> Read:
    """An id may stand by itself."""
    given = cell if isinstance(cell, dict) else {"id": cell}
    if not isinstance(given.get("id"), str):
        raise_unfit("an object with an id, a string,", cell)
    score = given.get("score")
    return Read(given["id"], score=nan if score is None else _read_score(score))


def _messages(labels: Labels, documents: Documents) -> Any:
    """Conversations of one message: [{"role": "user", "content": text}]."""
    count = len(documents.items)
    parts = [pa.array(["user"] * count, pa.large_string()), labels.texts_or_ids(documents.items)]
    message = pa.StructArray.from_arrays(parts, ["role", "content"])
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), message)


def _read_messages(cell: Any) -> str:
    """The contents of several messages are joined by line ends."""
    messages = cell if isinstance(cell, list) and cell else [None]
    contents: list[Any] = [each.get("content") if isinstance(each, dict) else None for each in messages]
    if not all(isinstance(content, str) for content in contents):
        raise_unfit("messages with a content, a string,", cell)
    return "\n".join(contents)


def _scores(labels: Labels, documents: Documents) -> Any:
    """Scores; None, which leaves the column out, if there are none."""
    return None if documents.scores is None else pa.array(documents.scores, pa.float32())


def _relevance(labels: Labels, documents: Documents) -> Any:
    """1 for positives, 0 for negatives; None if scores replace them, as in sentence-transformers."""
    return None if documents.scores is not None else pa.array(documents.labels, pa.int64())


def _corpus_name(labels: Labels, documents: Documents) -> Any:
    return pa.array([labels.name] * len(documents.items), pa.large_string())


KEY = Value(lambda labels, documents: labels.texts_or_ids(documents.items), _read_key)  # texts, or else ids
IDS = Value(lambda labels, documents: labels.ids(documents.items), _read_key)  # names, or else row numbers
NAMES = Value(lambda labels, documents: labels.names(documents.items), _read_key)  # the same as strings
TEXT = Value(lambda labels, documents: labels.texts_or_ids(documents.items), _read_text)  # of a query that has an id
NUMBERS = Value(_numbers, _read_number)
PASSAGES = Value(_passages, _read_passage)
OBJECTS = Value(_objects, _read_object)
MESSAGES = Value(_messages, _read_messages)
SCORES = Value(_scores, _read_score)
LABELS = Value(_relevance, _read_label)
CORPUS = Value(_corpus_name, _read_text)


# ---- Columns and formats ---------------------------------------------------------------------------------------------

QUERY, POSITIVES, NEGATIVES, DOCUMENTS = "queries", "positives", "negatives", "documents"


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file: of what, and which value."""

    name: str
    of: str  # QUERY, or which documents
    value: Value
    shape: str = "one"  # "one" value in a row, a "list", or one "each": a column for each document of a row
    needed: bool = True  # whether a file without it is of another format
    also: str = ""  # another name that files have
    lenient: bool = False  # whether a file may have one value for a list, a list for one value, or nothing

    @property
    def is_document(self) -> bool:
        """Whether it holds documents, not what is known of them."""
        return self.of != QUERY and self.value not in (SCORES, LABELS)

    def arrays(self, rows: Rows, queries: Labels, corpus: Labels) -> dict[str, Any]:
        """{name: Arrow array} of what this column writes."""
        if self.of == QUERY:
            labels = corpus if self.value is CORPUS else queries
            return {self.name: self.value.write(labels, one_each(rows.queries))}
        documents: Documents = getattr(rows, self.of)
        if self.shape == "each":
            places = range(rows.k)
            return {f"{self.name}_{place + 1}": self.value.write(corpus, documents.column(place)) for place in places}
        array = self.value.write(corpus, documents)
        if array is None:
            return {}
        if self.shape == "list":
            array = pa.ListArray.from_arrays(pa.array(documents.starts, pa.int32()), array)
        return {self.name: array}

    def cells(self, row: Mapping[str, Any], name: str) -> list[Any]:
        """The cells of one row in a column of the file."""
        cell = row.get(name)
        if self.lenient and (cell is None or isinstance(cell, list)):
            return cell or []
        if self.shape != "list" or self.lenient:
            return [cell]
        if not isinstance(cell, list):
            raise_unfit("a list", cell)
        return cell

    def read(self, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[list[Any], list[int]]:
        """What some rows have in these columns of the file, and how many values each has."""
        values: list[Any] = []
        counts = []
        for row in rows:
            before = len(values)
            for name in names:
                try:
                    values += map(self.value.read, self.cells(row, name))
                except Unfit as error:
                    raise_unfit(f"{error.rule} for {name!r}", row.get(name))
            counts.append(len(values) - before)
        return values, counts


@final
class ReadBlock(NamedTuple):
    """Some rows of a file, read."""

    queries: Reads
    positives: Reads
    negatives: Reads
    places: Ids  # of the negatives among the cells of their row that hold them


@final
class ReadRow(NamedTuple):
    """The same of one row."""

    query: Read
    positives: list[Read]
    negatives: list[Read]
    places: list[int]


_TABLES, _LINES = (".parquet", ".jsonl", ".hf"), (".jsonl",)
Fill = Callable[[], Any]  # returns the cell of another document, None if there is none
Places = Mapping[Column, Sequence[str]]  # {column of the format: the columns of a file that it is}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One format of training files."""

    name: str
    rows: Callable[[Block], Rows]
    columns: tuple[Column, ...]
    suffixes: tuple[str, ...] = _TABLES  # the kinds of file that it can be written as
    scores: str = "both"  # which it can hold: "both" (of positives and negatives together), "any" or "none"
    texts: tuple[str, ...] = ()  # which it needs: of "query" and "corpus"
    text_only: bool = False  # whether its strings are texts, not ids
    by_order: bool = False  # whether columns are told by their order, not by their names
    arrays: bool = False  # whether a line is a JSON array without names

    @property
    def rectangular(self) -> bool:
        """Whether a row needs all k negatives."""
        return self.rows is per_full_pair

    @property
    def keeps(self) -> bool:
        """Whether anchors without a positive or a negative stay in the file."""
        return self.rows in (per_any_anchor, per_document)

    def table(self, block: Block, queries: Labels, corpus: Labels) -> Any:
        """Return the rows of a block of anchors as an Arrow table."""
        rows = self.rows(block)
        arrays: dict[str, Any] = {}
        for column in self.columns:
            arrays |= column.arrays(rows, queries, corpus)
        return pa.table(arrays)

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a file with these columns may be of this format."""
        needed = [each for each in self.columns if each.needed]
        if not self.by_order:
            return {each.name for each in needed} <= {*names}
        plain = plain_columns(names)
        has_each = any(each.shape == "each" for each in needed)
        marks = {each.name for each in self.columns if each.value in (SCORES, LABELS)} - {"score"}
        is_marked = bool(marks & {*names}) or "negative" in {each.name for each in needed}
        return is_marked and (len(plain) >= len(needed) if has_each else len(plain) == len(needed))

    def places(self, names: Sequence[str]) -> Places:
        """Where the columns of this format are in a file with columns of these names."""
        plain = plain_columns(names)
        by_order = {QUERY: plain[:1], POSITIVES: plain[1:2], DOCUMENTS: plain[1:2], NEGATIVES: plain[2:]}
        found = {}
        for column in self.columns:
            if self.by_order and column.value not in (SCORES, LABELS):
                found[column] = by_order[column.of]
            else:
                present = [name for name in (column.name, column.also) if name in names]
                found[column] = present[:1] or [column.name] * column.lenient
        return found

    def read(self, rows: Sequence[Mapping[str, Any]], places: Places) -> ReadBlock:
        """Return what some rows hold; raise Unfit for a cell of another kind."""
        found: dict[str, Reads] = {}
        scores: dict[str, tuple[list[float], list[int]]] = {}
        labels = None
        for column, names in places.items():
            if not names or column.value is CORPUS:
                continue
            values, counts = column.read(rows, names)
            if column.value is SCORES:
                scores[column.of] = values, counts
            elif column.value is LABELS:
                labels = values, counts
            elif column.of in found:  # the text of a query, after its id
                found[column.of] = replace(found[column.of], texts=values)
            else:
                found[column.of] = Reads.of(values, counts)
        for of in (each for each in scores if each in found):
            found[of] = _scored(scores[of], found[of])[0]
        if DOCUMENTS not in found:
            positives, negatives = found[POSITIVES], found[NEGATIVES]
            if DOCUMENTS in scores:  # one list of scores for both
                positives, negatives = _scored(scores[DOCUMENTS], positives, negatives)
            return ReadBlock(found[QUERY], positives, negatives, negatives.places)
        documents = found[DOCUMENTS]
        if labels is None:  # of a list of documents the first one is the positive
            is_positive = documents.places == 0
        elif labels[1] == documents.counts:
            is_positive = np.array(labels[0], np.bool_)
        else:
            raise_unfit(f"a label for each of {len(documents.keys)} documents", labels[0])
        is_negative = ~is_positive
        negatives = documents.part(is_negative)
        return ReadBlock(found[QUERY], documents.part(is_positive), negatives, documents.places[is_negative])

    def read_row(self, row: Mapping[str, Any], places: Places) -> ReadRow:
        """The same of one row."""
        block = self.read([row], places)
        (query,), positives, negatives = (part.one_by_one() for part in block[:3])
        return ReadRow(query, positives, negatives, block.places.tolist())

    def without(self, row: dict[str, Any], places: Places, dropped: Sequence[int], fill: Fill) -> dict[str, Any] | None:
        """The row without the negatives in some places; None if it has none left, or must have all of them.

        In a row with a column for each negative another document takes the place, or the row goes where there is none,
        or its score would be missing.
        """
        column = next(each for each in self.columns if each.is_document and each.of in (NEGATIVES, DOCUMENTS))
        beside = [each for each in self.columns if each.of == column.of and each.value in (SCORES, LABELS)]
        if column.shape == "each" and not self._has_scores(row, places):
            filled = {places[column][place]: fill() for place in dropped}
            return None if None in filled.values() else row | filled
        if column.shape != "list":
            return None
        changed = dict(row)
        for name in (name for each in (column, *beside) for name in places[each]):
            changed[name] = [cell for place, cell in enumerate(column.cells(row, name)) if place not in dropped]
        has_negatives = self.keeps or bool(self.read_row(changed, places).negatives)
        return changed if has_negatives else None

    def holds_several_positives(self, places: Places) -> bool:
        """Whether a negative of a row can become another positive of it."""
        return any(
            (column.of == POSITIVES and column.is_document and column.shape == "list") or column.value is LABELS
            for column, names in places.items()
            if names
        )

    def with_positives(
        self, row: dict[str, Any], places: Places, chosen: Sequence[int]
    ) -> tuple[dict[str, Any], Sequence[int]]:
        """The row in which some negatives are positives, too, and which of them are yet to leave the negatives.

        A label changes in its place; in formats with a list of positives, a negative is added to it with its score.
        """
        labels = next((names[0] for column, names in places.items() if column.value is LABELS and names), None)
        if labels is not None and isinstance(row[labels], list):
            new = [1 if place in chosen else label for place, label in enumerate(row[labels])]
            return row | {labels: new}, []
        if labels is not None:
            return row | {labels: 1}, []
        changed = dict(row)
        by_kind = {(column.of, column.value is SCORES): column for column in self.columns if column.shape == "list"}
        for is_score in (False, True):
            columns = [by_kind.get((kind, is_score)) for kind in (POSITIVES, NEGATIVES)]
            names = [places[column][0] if column is not None and places[column] else None for column in columns]
            if columns[1] is not None and names[0] is not None and names[1] is not None:
                cells = columns[1].cells(row, names[1])
                changed[names[0]] = [*(row.get(names[0]) or []), *(cells[place] for place in chosen)]
        return changed, chosen

    def _has_scores(self, row: Mapping[str, Any], places: Places) -> bool:
        """Whether a row has a column of scores, or cells of [number, score]."""
        has_column = any(places[each] for each in self.columns if each.value is SCORES)
        numbers = (name for each, names in places.items() if each.value is NUMBERS for name in names)
        return has_column or any(isinstance(row[name], list) for name in numbers)


def _scored(scores: tuple[list[float], list[int]], *parts: Reads) -> list[Reads]:
    """The documents of all parts with their scores; the list of a row has those of the first part first."""
    values, counts = scores
    counts_by_part = np.array([part.counts for part in parts], np.int64)
    if counts_by_part.sum(axis=0).tolist() != counts:
        raise_unfit(f"a score for each of {counts_by_part.sum()} documents", values)
    part_of_score = np.repeat(np.tile(np.arange(len(parts)), len(counts)), counts_by_part.T.ravel())
    return [replace(part, scores=[*compress(values, part_of_score == place)]) for place, part in enumerate(parts)]


def plain_columns(names: Sequence[str]) -> list[str]:
    """The columns that hold neither labels nor scores, by the names that sentence-transformers knows."""
    return [name for name in names if name not in ("label", "labels", "score", "scores")]


def _optional(name: str, of: str, value: Value, shape: str = "list", also: str = "") -> Column:
    return Column(name, of, value, shape, needed=False, also=also)


_ANCHOR, _POSITIVE = Column("anchor", QUERY, KEY), Column("positive", POSITIVES, KEY)
_SCORES = _optional("scores", DOCUMENTS, SCORES)
_NUMBERED = (Column("query", QUERY, NUMBERS), Column("positive", POSITIVES, NUMBERS))
_OF_TEXTS: dict[str, Any] = {"texts": ("query", "corpus"), "text_only": True}
_BY_ORDER: dict[str, Any] = {**_OF_TEXTS, "by_order": True}
_ARRAYS: dict[str, Any] = {"suffixes": _LINES, "by_order": True, "arrays": True}
# fmt: off
_FORMATS = (
    Format("triplet", per_negative, (
        _ANCHOR, _POSITIVE, Column("negative", NEGATIVES, KEY), _SCORES), **_BY_ORDER),
    Format("n-tuple", per_full_pair, (
        _ANCHOR, _POSITIVE, Column("negative", NEGATIVES, KEY, "each"), _SCORES), **_BY_ORDER),
    Format("labelled-pair", per_document, (  # with scores the file does not contain which documents are positives
        _ANCHOR, Column("document", DOCUMENTS, KEY), _optional("label", DOCUMENTS, LABELS, "one"),
        _optional("score", DOCUMENTS, SCORES, "one")), **_BY_ORDER),
    Format("labelled-list", per_pair, (  # with scores the positive is still the first document
        _ANCHOR, Column("documents", DOCUMENTS, KEY, "list"), _optional("labels", DOCUMENTS, LABELS), _SCORES),
        **_BY_ORDER),
    Format("flagembedding", per_anchor, (
        Column("query", QUERY, KEY), Column("pos", POSITIVES, KEY, "list"), Column("neg", NEGATIVES, KEY, "list"),
        _optional("pos_scores", POSITIVES, SCORES), _optional("neg_scores", NEGATIVES, SCORES)), **_OF_TEXTS),
    Format("tevatron", per_anchor, (
        Column("query_id", QUERY, NAMES), Column("query", QUERY, TEXT),
        Column("positive_passages", POSITIVES, PASSAGES, "list"),
        Column("negative_passages", NEGATIVES, PASSAGES, "list")), scores="none", texts=("query", "corpus")),
    Format("tevatron-ids", per_anchor, (  # a corpus beside the file
        Column("query_id", QUERY, NAMES), _optional("query_text", QUERY, TEXT, "one", also="query"),
        Column("positive_document_ids", POSITIVES, NAMES, "list"),
        Column("negative_document_ids", NEGATIVES, NAMES, "list")), scores="none", texts=("query",)),
    Format("nemo", per_anchor, (
        Column("question_id", QUERY, NAMES), Column("question", QUERY, TEXT),
        _optional("corpus_id", QUERY, CORPUS, "one"), Column("pos_doc", POSITIVES, OBJECTS, "list"),
        Column("neg_doc", NEGATIVES, OBJECTS, "list")), (".json",), scores="any", texts=("query",)),
    Format("nemo-inline", per_pair, (
        Column("query", QUERY, KEY), Column("pos_doc", POSITIVES, KEY, lenient=True),
        Column("neg_doc", NEGATIVES, KEY, "list", lenient=True)), _LINES, scores="none", **_OF_TEXTS),
    Format("ms-swift", per_anchor, (
        Column("messages", QUERY, MESSAGES), Column("positive_messages", POSITIVES, MESSAGES, "list"),
        Column("negative_messages", NEGATIVES, MESSAGES, "list", needed=False, lenient=True)),
        _LINES, scores="none", **_OF_TEXTS),
    Format("colbert", per_negative, (*_NUMBERED, Column("negative", NEGATIVES, NUMBERS)), scores="none", **_ARRAYS),
    Format("colbert-nway", per_full_pair, (  # with scores a passage is [passage, score], for distillation
        *_NUMBERED, Column("negative", NEGATIVES, NUMBERS, "each")), **_ARRAYS),
    Format("ids", per_any_anchor, (
        Column("anchor", QUERY, IDS), Column("positives", POSITIVES, IDS, "list"),
        Column("negatives", NEGATIVES, IDS, "list"), _optional("positive_scores", POSITIVES, SCORES),
        _optional("negative_scores", NEGATIVES, SCORES)), scores="any"),
)
# fmt: on
FORMATS: Mapping[str, Format] = {each.name: each for each in _FORMATS}
_SPELLINGS = {"labeled-pair": "labelled-pair", "labeled-list": "labelled-list"}  # of sentence-transformers


def format_called(name: object, *others: str) -> str:
    """Return the name of a format, also in the spelling of sentence-transformers; raise if it is unknown."""
    name = _SPELLINGS.get(name, name) if isinstance(name, str) else name
    check_one_of("format", name, (*FORMATS, *others))
    return str(name)

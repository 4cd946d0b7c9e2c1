"""read_negatives: training files of other libraries, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay import tables
from naysay.checks import public, raise_invalid, shown
from naysay.errors import NaysayError
from naysay.formats import _formats as formats
from naysay.formats._formats import (
    DOCUMENTS,
    FORMATS,
    NEGATIVES,
    POSITIVES,
    QUERY,
    Column,
    Format,
    format_called,
    plain_columns,
)
from naysay.formats._writing import need_datasets
from naysay.formats.training_file import Collector, TrainingFile
from naysay.places import check_table, table_suffix
from naysay.text import first_line

Ids = NDArray[np.int64]
_ROWS = 4096  # rows that are read at a time
_WORDS = {str: "strings", int: "whole numbers", float: "numbers", dict: "objects", list: "lists"}
_ARRAY = ("query", "positive", "negatives")  # what a JSON array of ColBERT is read as


@public
def read_negatives(path: str | Path, format: str | None = None) -> TrainingFile:
    """Read a training file in any format that `write_negatives` writes, except "trec" (use `read_run`).

    In the formats of sentence-transformers the order of columns counts, not their names: the first is the anchor, the
    second the positive. Labelled pairs with scores instead of labels cannot be read: the file does not contain which
    are positives. Titles and texts of "tevatron" are joined by a space.
    Memory: the distinct texts, and 20 bytes for each pair.

    Args:
        path: .parquet, .jsonl or .json (also .gz), or .hf, a data set on disk.
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
    file = _open_rows(path)
    name = name or _format_of(file)
    chosen = FORMATS[name]
    _check_fit(chosen, file)
    into = Collector()
    for numbers, rows in file.blocks:
        try:
            _read_rows(chosen, _Rows(file.names, numbers, rows, file.where), into)
        except NaysayError:
            raise
        except (TypeError, ValueError, OverflowError) as error:  # a score that is text, a number too large
            got = f"{first_line(error)} in {file.where}s {numbers[0]} to {numbers[-1]}"
            raise_invalid("path", f"a file of the format {name!r}", got)
        into.rows += len(rows)
    return name, into


# ---- The rows of a file ----------------------------------------------------------------------------------------------

Blocks = Iterator[tuple[Sequence[int], list[Any]]]  # (the number of each line or row, its object or array)


@final
class _File(NamedTuple):
    """The rows of a file."""

    path: Path
    names: tuple[str, ...]  # the columns: of the schema, or of the first line; none if lines are JSON arrays
    first: Any  # the first row, an object or an array; None for an empty file
    blocks: Blocks
    where: str  # "line" or "row": what the numbers count

    @property
    def arrays(self) -> bool:
        """Whether lines are JSON arrays."""
        return isinstance(self.first, list)


def _open_rows(path: Path) -> _File:
    """Open a training file and read its first block."""
    kind = path.with_suffix("").suffix.lower() if path.suffix == ".gz" else table_suffix(path)
    names: tuple[str, ...] | None = None
    where = "line"
    if kind == ".jsonl":
        blocks: Blocks = tables.json_blocks(path)
    elif kind == ".json":
        rows = tables.json_document(path)
        blocks = _numbered(path, (rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS)))
    elif kind == ".parquet":
        check_table("path", path)
        names, where = tuple(tables.parquet_names(path)), "row"
        blocks = _numbered(path, (batch.to_pylist() for batch in tables.parquet_batches(path)))
    elif kind == ".hf":
        names, blocks = _data_set(path)
        where = "row"
    else:
        rule = "a file that ends in .parquet, .jsonl, .json or .hf"
        raise_invalid("path", rule, repr(str(path)), ".jsonl and .json may be compressed: .gz.")
    head = next(blocks, ([], []))
    first = head[1][0] if head[1] else None
    if names is None:
        names = tuple(first) if isinstance(first, dict) else ()
    return _File(path, names, first, _of_one_kind(path, chain([head], blocks), where), where)


def _data_set(path: Path) -> tuple[tuple[str, ...], Blocks]:
    """A data set on disk, mapped."""
    datasets = need_datasets()
    if not (path / "dataset_info.json").is_file():
        raise_invalid("path", "a data set on disk", repr(str(path)))
    with tables.reading("path", path, "a data set on disk"):
        data = datasets.load_from_disk(str(path))
    return tuple(data.column_names), _numbered(
        path, (data.select(range(at, min(at + _ROWS, len(data)))).to_list() for at in range(0, len(data), _ROWS))
    )


def _numbered(path: Path, blocks: Iterator[list[Any]]) -> Blocks:
    """Yield (numbers, rows) of blocks of rows. A damaged page is found only when it is read."""
    start = 0
    with tables.reading("path", path):
        for rows in blocks:
            yield range(start, start + len(rows)), rows
            start += len(rows)


def _of_one_kind(path: Path, blocks: Blocks, where: str) -> Blocks:
    """Yield blocks; raise for a row of another kind than the first, an object or an array."""
    kind: type | None = None
    for numbers, rows in blocks:
        if not rows:
            continue
        kind = kind or (list if isinstance(rows[0], list) else dict)
        tables.check_rows("path", path, kind, where, numbers, rows)
        yield numbers, rows


# ---- Which format ----------------------------------------------------------------------------------------------------


def _format_of(file: _File) -> str:
    """Recognise the format by its columns: the first of the table that fits."""
    if file.first is None and not file.names:
        raise_invalid("path", "a file with rows", f"none in {str(file.path)!r}", "Pass `format` for an empty one.")
    if file.arrays:
        return "colbert" if len(file.first) == 3 and type(file.first[1]) is int else "colbert-nway"
    for each in sorted(FORMATS.values(), key=lambda each: each.by_order):  # names tell more than the order of columns
        if not each.arrays and each.fits(file.names):
            return each.name
    listed = f"columns {', '.join(map(repr, file.names))}" if file.names else shown(file.first)
    if "score" in file.names:
        raise_invalid("path", "a file with labels", listed, "Scores alone do not say which documents are positives.")
    has_lists = isinstance(file.first, dict) and any(isinstance(value, list) for value in file.first.values())
    if len(plain_columns(file.names)) == 2 and file.first is not None and not has_lists:
        raise_invalid("path", "a file with negatives", f"{listed} alone", "Mine some: `naysay mine`.")
    raise_invalid("path", "a file of a known format", listed, "Pass `format`.")


def _check_fit(chosen: Format, file: _File) -> None:
    """Raise if the columns are not those of the format."""
    if file.first is None and not file.names:
        return
    if chosen.arrays != file.arrays:
        kind = "arrays" if chosen.arrays else "objects"
        raise_invalid("path", f"lines of JSON {kind} for the format {chosen.name!r}", shown(file.first))
    if not chosen.arrays and not chosen.fits(file.names):
        wanted = ", ".join(each.name for each in chosen.columns)
        rule = f"a file with columns like {wanted} for the format {chosen.name!r}"
        advice = "Scores alone do not say which documents are positives." if "score" in file.names else ""
        raise_invalid("path", rule, f"columns {', '.join(map(repr, file.names))}", advice)


# ---- The pairs of some rows ------------------------------------------------------------------------------------------


@final
class _Found(NamedTuple):
    """Documents that were read: the row of each in its block, its row in the corpus, and its score."""

    owners: Ids
    items: Ids
    scores: Any  # numbers, or None


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

    def scores(self, name: str, owners: Ids) -> list[float] | None:
        """Return the scores that belong to documents of these rows, or None; raise if there are more or fewer."""
        if name not in self.names:
            return None
        rows, values = self.lists(name, (float, int))
        wanted = np.bincount(owners, minlength=len(self.rows))
        if not np.array_equal(np.bincount(rows, minlength=len(self.rows)), wanted):
            place = int(np.argmax(np.bincount(rows, minlength=len(self.rows)) != wanted))
            rule = f"a file with one of {name!r} for each document, {wanted[place]} scores in this {self.where}"
            self.raise_invalid(place, rule, self.rows[place].get(name))
        return values

    def labels(self, marks: Sequence[Any], owners: Ids) -> NDArray[np.bool_]:
        """Return labels as booleans; raise for the row of one that is neither 0 nor 1."""
        for place, mark in enumerate(marks):
            if mark not in (0, 1):
                self.raise_invalid(int(owners[place]), "a file with labels of 0 and 1", mark)
        return np.array(marks, bool)


def _read_rows(chosen: Format, rows: _Rows, into: Collector) -> None:
    """Add the pairs of some rows of a file of that format."""
    if chosen.arrays:
        rows = _of_arrays(rows)
    anchors = _anchors(chosen, rows, into)
    found = {}
    for column in chosen.columns:
        if column.of != QUERY and column.value not in (formats.scores, formats.relevance):
            found[column.of] = _documents(chosen, column, rows, into)
    if DOCUMENTS in found:
        found = _by_label(rows, found[DOCUMENTS])
    elif "scores" in rows.names and chosen.by_order:
        found = _with_common_scores(rows, found[POSITIVES], found[NEGATIVES])
    for kind, documents in found.items():
        into.add(anchors[documents.owners], documents.items, documents.scores, positive=kind == POSITIVES)


def _anchors(chosen: Format, rows: _Rows, into: Collector) -> Ids:
    """(rows,) the query of each row, with its text if the file has both."""
    if chosen.by_order:
        return into.queries.codes(rows.column(plain_columns(rows.names)[0]))
    columns = {each.value: each for each in chosen.columns if each.of == QUERY}
    if formats.names in columns:
        text = columns[formats.text]
        name = text.name if text.name in rows.names else text.also or text.name
        return into.queries.named(rows.column(columns[formats.names].name), rows.column(name, (str,)))
    return into.queries.codes(rows.column(next(iter(columns.values())).name))


def _documents(chosen: Format, column: Column, rows: _Rows, into: Collector) -> _Found:
    """The documents of a column, whatever it holds: ids or texts, passages, objects, or numbers with scores."""
    if column.value is formats.passages:
        return _passages(rows, column.name, into)
    if column.value is formats.objects:
        return _objects(rows, column.name, into)
    if column.value is formats.numbers:
        return _numbers(rows, _ARRAY[2] if column.of == NEGATIVES else _ARRAY[1], into)
    names = [column.name]
    if chosen.by_order:  # anchor, positive, negative, ...; or anchor, document
        plain = plain_columns(rows.names)
        names = plain[2:] if column.of == NEGATIVES else plain[1:2]
    first = rows.rows[0].get(names[0]) if rows.rows else None
    if column.shape == "list" or (isinstance(first, list) and not chosen.by_order):  # nemo-inline has both forms
        owners, values = rows.lists(names[0])
        beside = [each.name for each in chosen.columns if each.value is formats.scores and each.of == column.of]
        has_own = bool(beside) and column.of != DOCUMENTS
        return _Found(owners, into.corpus.codes(values), rows.scores(beside[0], owners) if has_own else None)
    items = np.stack([into.corpus.codes(rows.column(name)) for name in names], axis=1)
    return _Found(np.repeat(np.arange(len(items)), len(names)), items.ravel(), None)


def _of_arrays(rows: _Rows) -> _Rows:
    """JSON arrays [query, positive, negative, ...] as objects."""
    for place, row in enumerate(rows.rows):
        if len(row) < 3 or type(row[0]) is not int or len({*map(type, row[1:])}) > 1:
            rows.raise_invalid(place, f"a file with [query, positive, negative, ...] in every {rows.where}", row)
    objects = [dict(zip(_ARRAY, (row[0], row[1:2], row[2:]), strict=True)) for row in rows.rows]
    return _Rows(_ARRAY, rows.numbers, objects, rows.where)


def _numbers(rows: _Rows, name: str, into: Collector) -> _Found:
    """Numbers of passages, or [number, score]."""
    owners, values = rows.lists(name, (int, list))
    scored = [each for each in values if isinstance(each, list) and len(each) == 2]
    if not scored and not any(isinstance(each, list) for each in values):
        return _Found(owners, into.corpus.codes(values), None)
    if len(scored) != len(values):
        rows.raise_invalid(0, "a file in which all passages have a score, or none", values)
    return _Found(owners, into.corpus.codes([number for number, _ in scored]), [score for _, score in scored])


def _passages(rows: _Rows, name: str, into: Collector) -> _Found:
    """Objects of docid and text, and perhaps a title, which is put before the text."""
    owners, passages = rows.lists(name, (dict,))
    for place, passage in zip(owners.tolist(), passages, strict=True):
        if not isinstance(passage.get("docid"), str) or not isinstance(passage.get("text"), str):
            rows.raise_invalid(place, f"a file with docid and text, strings, in all {name}", passage)
    texts = [" ".join(filter(None, (each.get("title"), each["text"]))) for each in passages]
    return _Found(owners, into.corpus.named([each["docid"] for each in passages], texts), None)


def _objects(rows: _Rows, name: str, into: Collector) -> _Found:
    """Objects of id, and perhaps a score; or ids by themselves."""
    owners, documents = rows.lists(name, (dict, str))
    objects = [each if isinstance(each, dict) else {"id": each} for each in documents]
    for place, each in enumerate(objects):
        if not isinstance(each.get("id"), str):
            rows.raise_invalid(int(owners[place]), f"a file with an id, a string, in all of {name}", documents[place])
    scores = [each.get("score") for each in objects]
    items = into.corpus.codes([each["id"] for each in objects])
    if all(score is None for score in scores):
        return _Found(owners, items, None)
    return _Found(owners, items, [np.nan if score is None else float(score) for score in scores])


def _by_label(rows: _Rows, documents: _Found) -> dict[str, _Found]:
    """Documents of both kinds by their labels; without labels the first of a row is its positive."""
    owners, scores = documents.owners, rows.scores("scores", documents.owners)
    if "label" in rows.names:
        is_positive = rows.labels([row.get("label") for row in rows.rows], owners)
    elif "labels" in rows.names:
        is_positive = rows.labels(rows.scores("labels", owners) or [], owners)
    else:
        is_positive = np.diff(owners, prepend=-1) != 0
    found = {}
    for kind, chosen in ((POSITIVES, is_positive), (NEGATIVES, ~is_positive)):
        beside = None if scores is None else np.array(scores, np.float32)[chosen]
        found[kind] = _Found(owners[chosen], documents.items[chosen], beside)
    return found


def _with_common_scores(rows: _Rows, positives: _Found, negatives: _Found) -> dict[str, _Found]:
    """Positives and negatives, whose scores are in one list a row: that of the positive, then those of negatives."""
    owners = np.concatenate([positives.owners, negatives.owners])
    scores = np.empty(len(owners), np.float32)
    scores[np.argsort(owners, kind="stable")] = rows.scores("scores", owners)
    own, rest = np.split(scores, [len(positives.owners)])
    return {POSITIVES: positives._replace(scores=own), NEGATIVES: negatives._replace(scores=rest)}

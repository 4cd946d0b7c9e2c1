"""read_negatives: training files of other libraries, as arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay import tables
from naysay._packages import need_datasets
from naysay._rows import offsets
from naysay.checks import public, raise_invalid, shown
from naysay.formats._formats import FORMATS, Format, ReadBlock, Reads, Unfit, format_called, plain_columns, raise_unfit
from naysay.places import check_table, table_suffix
from naysay.positives import Positives

Ids = NDArray[np.int64]
_ROWS = 4096  # rows of a data set that are read at a time
_MANY = 1 << 24  # rows that fit in memory even if most of them are empty
_NONE = np.empty(0, np.int64)
_NO_LABELS = "Scores alone do not say which documents are positives."


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
        duplicates: Negatives that repeat another one of the same anchor and positive (the first one of a row).

    Example: see `read_negatives`.
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
    duplicates: int = 0


@public
def read_negatives(path: str | Path, format: str | None = None) -> TrainingFile:
    """Read a training file in any format that `write_negatives` writes, except "trec" (use `read_run`).

    In the formats of sentence-transformers the order of columns counts, not their names. Labelled pairs with scores
    instead of labels cannot be read: the file does not contain which are positives. Titles and texts of "tevatron" are
    joined by a space, several messages of "ms-swift" by line ends. Memory: the distinct texts, and 28 bytes a pair.

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
    return read_file(Path(path), format)


def read_file(path: Path, format: str | None) -> TrainingFile:
    """`read_negatives` for internal callers, whose errors name them."""
    name = None if format is None else format_called(format)
    file = open_rows(path)
    chosen = format_of(file, name)
    places = chosen.places(file.names)
    collector = _Collector(chosen)
    for numbers, rows in file.blocks:
        try:
            collector.add(chosen.read(rows, places))
        except Unfit:
            for number, row in zip(numbers, rows, strict=True):  # to find the first row that does not fit
                try:
                    collector.add(chosen.read([row], places))
                except Unfit as error:
                    rule = f"a file with {error.rule} in every {file.where}"
                    raise_invalid("path", rule, f"{shown(error.cell)} in {file.where} {number}")
            raise
    return collector.finished(file.path)


# ---- The rows of a file ----------------------------------------------------------------------------------------------

Blocks = Iterator[tuple[Sequence[int], list[Any]]]  # (the number of each line or row, its object or array)


@final
class RowFile(NamedTuple):
    """The rows of a file, each as an object; JSON arrays have their places as names."""

    path: Path
    names: tuple[str, ...]  # the columns: of the schema, or of the first line
    first: Any  # the first row as it is in the file, an object or an array; None for an empty file
    blocks: Blocks  # of rows, as objects
    where: str  # "line" or "row": what the numbers count


def open_rows(path: Path) -> RowFile:
    """Open a training file and read its first block."""
    kind = path.with_suffix("").suffix.lower() if path.suffix == ".gz" else table_suffix(path)
    names: list[str] | None = None
    if kind == ".jsonl":
        blocks: Blocks = tables.json_blocks(path)
    elif kind == ".json":
        blocks = _numbered(path, iter([tables.json_document(path)]))
    elif kind == ".parquet":
        check_table("path", path)
        names = tables.parquet_names(path)
        blocks = _numbered(path, (batch.to_pylist() for batch in tables.parquet_batches(path)))
    elif kind == ".hf":
        data = _data_set(path)
        names = data.column_names
        starts = range(0, len(data), _ROWS)
        blocks = _numbered(path, (data.select(range(at, min(at + _ROWS, len(data)))).to_list() for at in starts))
    else:
        rule = "a file that ends in .parquet, .jsonl, .json or .hf"
        raise_invalid("path", rule, repr(str(path)), ".jsonl and .json may be compressed: .gz.")
    where = "line" if names is None else "row"
    head = next(blocks, ([], []))
    first = head[1][0] if head[1] else None
    if names is None:
        names = list(_as_object(first)) if isinstance(first, dict | list) else []
    return RowFile(path, tuple(names), first, _objects(path, chain([head], blocks), first, where), where)


def _data_set(path: Path) -> Any:
    """A data set on disk, mapped."""
    datasets = need_datasets()
    if not (path / "dataset_info.json").is_file():
        raise_invalid("path", "a data set on disk", repr(str(path)))
    with tables.reading("path", path, "a data set on disk"):
        return datasets.load_from_disk(str(path))


def _numbered(path: Path, blocks: Iterator[list[Any]]) -> Blocks:
    """Yield (numbers, rows) of blocks of rows. A damaged page is found only when it is read."""
    start = 0
    with tables.reading("path", path):
        for rows in blocks:
            yield range(start, start + len(rows)), rows
            start += len(rows)


def _objects(path: Path, blocks: Blocks, first: Any, where: str) -> Blocks:
    """Yield the same blocks with rows as objects; raise for one that is not an object, or an array, like the first."""
    kind = list if isinstance(first, list) else dict
    for numbers, rows in blocks:
        if rows:
            tables.check_rows("path", path, kind, where, numbers, rows)
            yield numbers, [*map(_as_object, rows)]


def _as_object(row: Any) -> dict[str, Any]:
    return row if isinstance(row, dict) else {str(place): value for place, value in enumerate(row)}


def format_of(file: RowFile, name: str | None = None) -> Format:
    """The format of that name, or the first of the table that fits; raise if the columns are those of another."""
    is_empty = file.first is None and not file.names
    has_arrays = isinstance(file.first, list)
    if name is not None:
        chosen = FORMATS[name]
        if is_empty or (chosen.arrays == has_arrays and chosen.fits(file.names)):
            return chosen
        wanted = ", ".join(each.name for each in chosen.columns)
        what = f"arrays of {wanted}" if chosen.arrays else f"columns like {wanted}"
        _raise_unknown(file, f"a file with {what} for the format {name!r}", "")
    if is_empty:
        raise_invalid("path", "a file with rows", f"none in {str(file.path)!r}", "Pass `format` for an empty one.")
    for each in sorted(FORMATS.values(), key=lambda each: each.by_order):  # names tell more than the order of columns
        if each.arrays == has_arrays and each.fits(file.names) and not (has_arrays and _scored_triple(file, each)):
            return each
    has_lists = isinstance(file.first, dict) and any(isinstance(value, list) for value in file.first.values())
    if len(plain_columns(file.names)) == 2 and "score" not in file.names and file.first is not None and not has_lists:
        _raise_unknown(file, "a file with negatives", "Mine some: `naysay mine`.")
    _raise_unknown(file, "a file of a known format", "Pass `format`.")


def _scored_triple(file: RowFile, chosen: Format) -> bool:
    """Whether a line of three has scores, which only the lines of several negatives have."""
    return chosen.scores == "none" and isinstance(file.first[-1], list)


def _raise_unknown(file: RowFile, rule: str, advice: str) -> NoReturn:
    listed = f"columns {', '.join(map(repr, file.names))}" if isinstance(file.first, dict) else shown(file.first)
    raise_invalid("path", rule, listed, _NO_LABELS if "score" in file.names else advice)


# ---- All rows as arrays ----------------------------------------------------------------------------------------------


@final
class _Side:
    """The queries, or the documents, of a file: each is numbered when it first occurs."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.kind: type | None = None  # of all keys: strings, or whole numbers; unknown before the first
        self.index: defaultdict[str | int, int] = defaultdict()
        self.index.default_factory = self.index.__len__
        self.texts: dict[str | int, str] = {}

    def numbers(self, reads: Reads) -> Ids:
        """The numbers of some of them."""
        if self.kind is None and reads.keys:
            self.kind = type(reads.keys[0])
        if {*map(type, reads.keys)} - {self.kind}:
            wanted = "whole numbers" if self.kind is int else "strings"
            other = next(key for key in reads.keys if type(key) is not self.kind)
            raise_unfit(f"{self.what} that are {wanted} throughout", other)
        for key in reads.keys if self.kind is int else ():
            if not 0 <= int(key) < 1 << 62:
                raise_unfit(f"{self.what} numbered from 0", key)
        for key, text in zip(reads.keys, reads.texts or (), strict=False):
            if text is not None and self.texts.setdefault(key, text) != text:
                raise_unfit(f"one text for each of its {self.what}", key)
        return np.array([self.index[key] for key in reads.keys], np.int64)

    def rows(self, row_of_number: Ids) -> tuple[Ids, int]:
        """(m,) the row of each number, and how many rows there are: row numbers are those of the file."""
        if self.kind is not int:
            return row_of_number, len(row_of_number)
        rows = np.array(list(self.index), np.int64)
        size = int(rows.max()) + 1
        if size > max(_MANY, 100 * len(rows)):  # database keys, of which most rows would be empty
            rule = f"a file with {self.what} numbered from 0 without wide gaps"
            raise_invalid("path", rule, f"{size - 1} among {len(rows)} of them")
        return rows, size

    def names_and_texts(self, row_of_number: Ids, *, are_texts: bool) -> tuple[list[str] | None, list[str] | None]:
        """(ids, texts) of all rows; either may be None."""
        if self.kind is not str:
            return None, None
        keys = list(self.index)
        names = [str(keys[number]) for number in np.argsort(row_of_number).tolist()]
        if self.texts:
            return names, [self.texts.get(name, "") for name in names]
        return (None, names) if are_texts else (names, None)


@final
class _Pairs:
    """Pairs of a query and a document, by their numbers, with scores."""

    def __init__(self) -> None:
        self.anchors, self.items, self.scores = [_NONE], [_NONE], [np.empty(0, np.float32)]

    def add(self, queries: Ids, items: Ids, documents: Reads) -> None:
        """Add the documents of some rows."""
        self.anchors.append(np.repeat(queries, documents.counts))
        self.items.append(items)
        scores = np.full(len(items), np.nan) if documents.scores is None else np.array(documents.scores, np.float64)
        with np.errstate(over="ignore"):  # of numbers too large for float32, which are infinite
            self.scores.append(scores.astype(np.float32))

    def distinct(self, queries: Ids, documents: Ids) -> tuple[Ids, Ids, NDArray[np.float32]]:
        """(anchors, items, scores) of the distinct pairs as rows, by anchor, in order of first occurrence."""
        anchors, items = queries[np.concatenate(self.anchors)], documents[np.concatenate(self.items)]
        _, first = np.unique(anchors * (1 + documents.max(initial=0)) + items, return_index=True)
        first = first[np.lexsort((first, anchors[first]))]
        return anchors[first], items[first], np.concatenate(self.scores)[first]


@final
class _Collector:
    """Rows of a file, collected into arrays."""

    def __init__(self, chosen: Format) -> None:
        self.chosen = chosen
        self.queries, self.corpus = _Side("queries"), _Side("documents")
        self.positives, self.negatives = _Pairs(), _Pairs()
        self.first_positives = [_NONE]  # for each negative the first positive of its row, -1 for none
        self.rows = 0

    def add(self, block: ReadBlock) -> None:
        """Add some rows."""
        queries = self.queries.numbers(block.queries)
        positives, negatives = self.corpus.numbers(block.positives), self.corpus.numbers(block.negatives)
        self.positives.add(queries, positives, block.positives)
        self.negatives.add(queries, negatives, block.negatives)
        starts = offsets(np.array(block.positives.counts))[:-1]
        firsts = np.where(block.positives.counts, np.append(positives, -1)[starts], -1)
        self.first_positives.append(np.repeat(firsts, block.negatives.counts))
        self.rows += len(queries)

    def _duplicates(self) -> int:
        """Negatives that repeat another one of the same anchor and first positive."""
        parts = self.negatives.anchors, self.first_positives, self.negatives.items
        slots = np.stack([np.concatenate(part) for part in parts])
        is_again = np.diff(slots[:, np.lexsort(slots)], axis=1) == 0
        return int(is_again.all(axis=0).sum())

    def finished(self, path: Path) -> TrainingFile:
        """Return everything as arrays; a repeated pair is kept once, with its first score."""
        occurrences = np.concatenate([*self.positives.items, *self.negatives.items])
        used, first = np.unique(occurrences, return_index=True)
        document_rows = np.empty(len(used), np.int64)  # by their first occurrence, positives first
        document_rows[np.argsort(first)] = np.arange(len(used))
        query_rows = np.arange(len(self.queries.index))
        (queries, n_queries), (documents, n_documents) = self.queries.rows(query_rows), self.corpus.rows(document_rows)
        anchors, items, scores = self.negatives.distinct(queries, documents)
        places = np.arange(len(anchors)) - np.searchsorted(anchors, anchors)
        shape = (n_queries, int(places.max(initial=-1)) + 1)
        ids, values = np.full(shape, -1, np.int64), np.full(shape, np.nan, np.float32)
        ids[anchors, places], values[anchors, places] = items, scores
        pair_anchors, pair_items, pair_scores = self.positives.distinct(queries, documents)
        by_item = np.lexsort((pair_items, pair_anchors))  # the order of `Positives.pairs`
        are_texts = self.chosen.text_only
        query_ids, query_texts = self.queries.names_and_texts(query_rows, are_texts=are_texts)
        corpus_ids, corpus_texts = self.corpus.names_and_texts(document_rows, are_texts=are_texts)
        return TrainingFile(
            path=path,
            format=self.chosen.name,
            rows=self.rows,
            ids=ids,
            scores=None if np.isnan(scores).all() else values,
            positives=Positives.from_pairs(pair_anchors, pair_items, n_queries, n_documents),
            positive_scores=None if np.isnan(pair_scores).all() else pair_scores[by_item],
            query_ids=query_ids,
            query_texts=query_texts,
            corpus_ids=corpus_ids,
            corpus_texts=corpus_texts,
            duplicates=self._duplicates(),
        )

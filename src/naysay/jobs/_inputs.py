"""The tables of a job: pairs, queries and documents, as row numbers and as texts on disk; anchors among documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_range, raise_invalid, shown, shown_names, with_option_names
from naysay.detectors import _text_hash
from naysay.formats._table_files import batches, chosen_column, column_names
from naysay.jobs._folder import JobFolder
from naysay.jobs._texts import (
    Keys,
    Texts,
    distinct,
    first_repeat,
    keys_of,
    places_of,
    read_keys,
    write_keys,
    write_texts,
)

Ids = NDArray[np.int64]
Pairs = tuple[Ids, Ids]  # anchors and items
_COPIES = 100  # documents with one and the same text that are left out by it
_TOO_LARGE = 1 << 63  # a larger whole number is an id, not a row
_ID = ("id", "_id", "docid", "doc_id", "query_id", "qid")
_TEXT = ("text", "contents", "passage", "document", "query", "question", "title")
_ANCHOR = ("anchor", "query", "question", "query_id", "query-id")
_POSITIVE = ("positive", "pos", "positives", "document", "answer", "corpus_id", "corpus-id", "doc_id")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column of the pairs in a file."""

    option: str  # what the file is called in an error
    path: Path
    names: tuple[str, str]  # the columns of anchors and of positives
    side: int  # which of the two this is
    numbers: Ids | None  # (p,) if all values are whole numbers
    keys: Keys  # (p, 2) the keys of the values as strings
    rows: Ids  # (p,) the row of the file that each pair is in: a row may hold several positives

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.names[self.side]

    def blocks(self) -> Iterator[list[str]]:
        """The values again, as strings."""
        for batch in _pair_batches(self.option, self.path, self.names):
            yield list(map(str, batch[self.side]))

    def value(self, row: int) -> str:
        """One of them, to be shown."""
        start = 0
        for block in self.blocks():
            if row < start + len(block):
                return shown(block[row - start])
            start += len(block)
        return "nothing"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The queries, or the documents."""

    n: int
    ids: Texts | None  # on disk
    texts: Texts | None
    keys: Path  # the file of the keys of the ids
    broken: dict[str, int]  # {"ids" or "texts": the first row that is not valid UTF-8}
    named: bool = False  # whether the texts are the names of rows: the pairs hold them, and there is no file


def read_pairs(option: str, path: Path, anchor: str, positive: str) -> tuple[Column, Column]:
    """Both columns of a file of pairs."""
    names = _names(option, path)
    found = []
    for place, (setting, given, usual) in enumerate(
        (("--anchor-column", anchor, _ANCHOR), ("--positive-column", positive, _POSITIVE))
    ):
        name = chosen_column(setting, names, given, usual, place)
        if name is None:
            raise_invalid(setting, "given for these columns", shown_names(names))
        found.append(name)
    if found[0] == found[1]:
        raise_invalid("--positive-column", "another than --anchor-column", repr(found[1]))
    names_of_both = found[0], found[1]
    keys: list[list[Keys]] = [[np.empty((0, 2), np.uint64)], [np.empty((0, 2), np.uint64)]]
    numbers: list[list[Ids]] = [[np.empty(0, np.int64)], [np.empty(0, np.int64)]]
    all_rows = [np.empty(0, np.int64)]
    whole = [True, True]
    for anchors, positives, rows in _pair_batches(option, path, names_of_both):
        for side, values in enumerate((anchors, positives)):
            kinds = {*map(type, values)}
            if not kinds <= {int, str}:
                odd = next(place for place, value in enumerate(values) if type(value) not in (str, int))
                got = f"{shown(values[odd])} at row {rows[odd]}"
                raise_invalid(option, f"a file with strings or whole numbers in {found[side]!r}", got)
            whole[side] = whole[side] and kinds <= {int} and all(-_TOO_LARGE <= value < _TOO_LARGE for value in values)
            keys[side].append(keys_of(list(map(str, values))))
            if whole[side]:
                numbers[side].append(np.array(values, np.int64))
        all_rows.append(np.array(rows, np.int64))
    rows_of_pairs = np.concatenate(all_rows)
    if not len(rows_of_pairs):
        raise_invalid(option, "a file with at least one pair", f"none in {str(path)!r}")
    made = [
        Column(
            option,
            path,
            names_of_both,
            side,
            np.concatenate(numbers[side]) if whole[side] else None,
            np.concatenate(keys[side]),
            rows_of_pairs,
        )
        for side in (0, 1)
    ]
    return made[0], made[1]


def _pair_batches(option: str, path: Path, names: tuple[str, str]) -> Iterator[tuple[list[Any], list[Any], list[int]]]:
    """Yield (anchors, positives, rows of the file), a block at a time.

    A list of positives, as in the files of FlagEmbedding (query, pos, neg) and in the format "ids", is a pair for each.
    """
    start = 0
    for anchors, positives in _batches(option, path, list(names)):
        rows = range(start, start + len(anchors))
        start += len(anchors)
        if not any(type(value) is list for value in positives):
            yield anchors, positives, list(rows)
            continue
        pairs = [
            (anchor, positive, row)
            for anchor, value, row in zip(anchors, positives, rows, strict=True)
            for positive in (value if type(value) is list else [value])
        ]
        yield [pair[0] for pair in pairs], [pair[1] for pair in pairs], [pair[2] for pair in pairs]


@contextmanager
def reading(option: str) -> Iterator[None]:
    """Report errors of a reader under the name of the option that the file was given with."""
    try:
        with with_option_names("mine", {"path": option}):
            yield
    except (RecursionError, UnicodeDecodeError) as error:
        got = "values nested too deep" if isinstance(error, RecursionError) else f"other bytes ({error})"
        raise_invalid(option, "a file of plain values, with texts in UTF-8", got)


def _names(option: str, path: Path) -> list[str]:
    with reading(option):
        return column_names(option, path)


def _batches(option: str, path: Path, columns: list[str]) -> Iterator[list[list[Any]]]:
    with reading(option):
        yield from batches(option, path, columns)


def write_side(
    option: str, path: Path, folder: JobFolder, name: str, id_column: str, text_column: str, title_column: str
) -> dict[str, int]:
    """Copy the ids and texts of a file of queries or documents to disk; return the rows that are not valid UTF-8.

    An id that is in two rows raises an error.
    """
    names, of = _names(option, path), "--query" if name == "query" else "-"
    key = chosen_column(f"{of}-id-column", names, id_column, _ID)
    text = chosen_column(f"{of}-text-column", names, text_column, _TEXT)
    if title_column:
        chosen_column("--title-column", names, title_column, ())
    if key is None and text is None:
        advice = f"Name them with {of}-id-column and {of}-text-column."
        raise_invalid(option, "a file with a column of ids or of texts", shown_names(names), advice)
    broken = {}
    if key is not None:
        broken["ids"] = _write(folder, f"{name}_ids", _strings(option, path, [key], of_ids=True))
        ids, keys = Texts(folder.path / f"{name}_ids"), f"{name}_ids.keys"
        with folder.file(keys) as stream:
            write_keys(stream, ids.blocks())
        twice = first_repeat(folder.path / keys)
        if twice is not None:
            got = f"{shown(ids[twice[0]])} at rows {twice[0]} and {twice[1]}"
            raise_invalid(option, f"a file with each id of {key!r} once", got)
    if text is not None:
        wanted = [title_column, text] if title_column else [text]
        blocks = _strings(option, path, wanted, of_ids=False)
        broken["texts"] = _write(folder, f"{name}_texts", blocks)
    return {part: row for part, row in broken.items() if row >= 0}


def _write(folder: JobFolder, name: str, blocks: Iterator[list[str]]) -> int:
    """Write texts to files of the job; return the first row that is not valid UTF-8, or -1."""
    with folder.file(f"{name}.bytes") as run, folder.file(f"{name}.starts") as starts:
        return write_texts(run, starts, blocks)


def _strings(option: str, path: Path, columns: list[str], *, of_ids: bool) -> Iterator[list[str]]:
    """The strings of a column, those of several joined by a space; ids may be whole numbers."""
    start, kinds = 0, {str, int} if of_ids else {str}
    for batch in _batches(option, path, columns):
        for name, values in zip(columns, batch, strict=True):
            if not {*map(type, values)} <= kinds:
                odd = next(place for place, value in enumerate(values) if type(value) not in kinds)
                got = f"{shown(values[odd])} at row {start + odd}"
                raise_invalid(option, f"a file with strings in {name!r}", got)
        start += len(batch[0])
        yield [" ".join(map(str, row)).strip() if len(row) > 1 else str(row[0]) for row in zip(*batch, strict=True)]


def write_distinct(column: Column, folder: JobFolder, name: str) -> dict[str, int]:
    """Copy the distinct values of a column to disk, in the order of their first appearance."""
    first = distinct(column.keys).first

    def firsts() -> Iterator[list[str]]:
        start = 0
        for block in column.blocks():
            here = first[np.searchsorted(first, start) : np.searchsorted(first, start + len(block))] - start
            yield list(map(block.__getitem__, here.tolist()))
            start += len(block)

    broken = _write(folder, f"{name}_texts", firsts())
    return {"texts": broken} if broken >= 0 else {}


def open_side(folder: JobFolder, name: str, n: int, broken: dict[str, int], *, named: bool) -> Side:
    """What `write_side` or `write_distinct` left."""
    parts = [f"{name}_ids", f"{name}_texts"]
    ids, texts = (Texts(folder.path / part) if f"{part}.bytes" in folder.files else None for part in parts)
    size = n if ids is None and texts is None else len(ids if ids is not None else texts or ())
    return Side(size, ids, texts, folder.path / f"{name}_ids.keys", broken, named)


def rows_in(column: Column, side: Side, what: str) -> Ids:
    """(p,) the row that each value of a column means: by the ids of a side, by its texts, or as a number.

    All values are ids, or all are texts: whichever more of them are.
    """
    if side.ids is None and column.numbers is not None:
        check_range(column.option, column.numbers, side.n, f"{what}, by row number")
        return column.numbers
    known = distinct(column.keys)
    rows = np.full(len(known.first), -1, np.int64)
    expected = "texts"
    if side.ids is not None:
        rows = places_of(known.keys, read_keys(side.keys))
        expected = "ids"
    if side.texts is not None and (rows < 0).any():
        by_text = places_of(known.keys, map(keys_of, side.texts.blocks()))
        if np.count_nonzero(by_text[known.which] >= 0) > np.count_nonzero(rows[known.which] >= 0):
            rows, expected = by_text, "texts"
    if side.ids is not None and side.texts is not None and not (rows >= 0).any():
        expected = "ids or texts"
    missing = np.flatnonzero(rows[known.which] < 0)
    if len(missing):
        first, count = int(missing[0]), len(missing)
        got = f"{column.value(first)} at row {column.rows[first]} ({count} such row{'s' if count > 1 else ''})"
        rule = f"a file whose {column.name!r} holds {expected} of the {side.n:,} {what}"
        raise_invalid(column.option, rule, got)
    return rows[known.which]


def strings_of(side: Any) -> Any:
    """All texts of a side in memory, as an encoder takes them."""
    import pyarrow as pa

    try:
        parts = [pa.array(block, pa.large_string()) for block in side.blocks()]
    except UnicodeEncodeError as error:
        raise_invalid("texts", "valid UTF-8 to be encoded", shown(error.object))
    return pa.chunked_array(parts, pa.large_string())


def own_by_id(queries: Side, corpus: Side) -> Pairs:
    """(anchors, documents) with the same id; without ids, or if none is shared, by row."""
    if queries.ids is not None and corpus.ids is not None:
        wanted = np.concatenate([np.empty((0, 2), np.uint64), *read_keys(queries.keys)])
        rows = places_of(wanted, read_keys(corpus.keys))
        anchors = np.flatnonzero(rows >= 0)
        if len(anchors):
            return anchors, rows[anchors]
    if queries.n != corpus.n:
        rule = f"left out unless anchors and documents share ids, or anchors are the {corpus.n:,} documents by row"
        advice = "Pass --queries and --corpus with ids."
        raise_invalid("--same-ids", rule, f"{queries.n:,} anchors without the id of a document", advice)
    return np.arange(queries.n), np.arange(queries.n)


def own_by_text(queries: Side, corpus: Side) -> Pairs:
    """(anchors, documents) whose texts are equal but for whitespace; none where a side has no texts.

    8 bytes of memory for each anchor, and a pass over the texts of both sides.
    """
    none: Ids = np.empty(0, np.int64)
    if queries.texts is None or corpus.texts is None:
        return none, none
    keys = np.concatenate([np.empty(0, np.uint64), *map(text_keys, queries.texts.blocks())])
    return equal_pairs(keys, map(text_keys, corpus.texts.blocks()))


def text_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """(n,) equal keys for texts that are equal but for whitespace; 0 for an empty one, which equals nothing."""
    return _text_hash.keys_of([" ".join(text.split()).encode("utf-8", "surrogatepass") for text in texts])


def equal_pairs(keys: NDArray[Any], blocks: Iterable[NDArray[Any]]) -> Pairs:
    """(anchors, items) of equal keys, of the first 100 items with each key; a key of 0 equals nothing.

    `keys` are those of the anchors, `blocks` those of the items, some at a time. A sort of the anchors' keys.
    """
    distinct, which = np.unique(keys, return_inverse=True)
    found, seen, start = [np.empty((2, 0), np.int64)], np.zeros(len(distinct), np.int64), 0
    for block in blocks:
        place = np.minimum(np.searchsorted(distinct, block), len(distinct) - 1) if len(distinct) else block[:0]
        hits = np.flatnonzero((distinct[place] == block) & (block != 0)) if len(distinct) else np.empty(0, np.int64)
        order = hits[np.argsort(place[hits], kind="stable")]
        groups, firsts, counts = np.unique(place[order], return_index=True, return_counts=True)
        nth = np.arange(len(order)) - np.repeat(firsts, counts) + np.repeat(seen[groups], counts)
        kept = order[nth < _COPIES]
        found.append(np.stack([place[kept].astype(np.int64), start + kept]))
        seen[groups] += counts
        start += len(block)
    group, items = np.concatenate(found, axis=1)
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    counts = np.diff(starts)[group]
    anchors = order[np.repeat(starts[group] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
    return anchors.astype(np.int64), np.repeat(items, counts)

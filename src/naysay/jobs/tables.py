"""The tables of a job: pairs, queries and documents. Ids and texts are on disk, as Arrow files that are mapped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from naysay.checks import check_range, raise_invalid, shown, shown_names
from naysay.jobs.folder import JobFolder, raise_damaged
from naysay.tables import batches, chosen_column, column_names

Ids = NDArray[np.int64]
STRING = pa.large_string()
MAX_COPIES = 100  # documents with one anchor's text that are left out
NO_PAIRS = np.empty(0, np.int64), np.empty(0, np.int64)
_ID = ("id", "_id", "docid", "doc_id", "query_id", "qid")
_TEXT = ("text", "contents", "passage", "document", "query", "question", "title")
_ANCHOR = ("anchor", "query", "question", "query_id", "query-id")
_POSITIVE = ("positive", "pos", "positives", "document", "answer", "corpus_id", "corpus-id", "doc_id")


# ---- queries and documents ------------------------------------------------------------------------------------------


@final
class Texts:
    """A column of strings on disk, which is read by row."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.column = column
        self._starts = np.cumsum([0, *map(len, column.chunks)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, row: int) -> str:
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        return self.gather(np.array([row % len(self)]))[0]

    def gather(self, rows: Ids) -> list[str]:
        """The strings of some rows. Only the chunks that hold one of them are read."""
        texts = np.empty(len(rows), object)
        chunk_of_row = np.searchsorted(self._starts, rows, side="right") - 1
        for chunk in np.unique(chunk_of_row).tolist():
            here = np.flatnonzero(chunk_of_row == chunk)
            texts[here] = self.column.chunk(chunk).take(pa.array(rows[here] - self._starts[chunk])).to_pylist()
        return texts.tolist()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The queries, or the documents."""

    n: int
    ids: Texts | None
    texts: Texts | None
    named: bool = False  # whether the texts are the names of rows: the pairs hold them, and there is no file


def write_side(
    option: str, path: Path, folder: JobFolder, name: str, id_column: str, text_column: str, title_column: str
) -> None:
    """Copy the ids and texts of a file of queries or documents to disk. An id that is in two rows raises an error.

    The ids are in memory while they are checked.
    """
    names = column_names(option, path)
    flag = "--query" if name == "query" else "-"
    id_name = chosen_column(f"{flag}-id-column", names, id_column, _ID)
    text_name = chosen_column(f"{flag}-text-column", names, text_column, _TEXT)
    if title_column:
        chosen_column("--title-column", names, title_column, ())
    if id_name is None and text_name is None:
        advice = f"Name them with {flag}-id-column and {flag}-text-column."
        raise_invalid(option, "a file with a column of ids or of texts", shown_names(names), advice)
    wanted = [column for column in (id_name, title_column, text_name) if column]

    def blocks() -> Iterator[dict[str, pa.Array]]:
        start = 0
        for values in batches(option, path, wanted):
            columns = dict(zip(wanted, values, strict=True))
            block = {}
            if id_name is not None:
                block["id"] = _strings(option, id_name, columns[id_name], start, numbers=True)
            if text_name is not None:
                block["text"] = _strings(option, text_name, columns[text_name], start)
            if text_name is not None and title_column:
                titles = _strings(option, title_column, columns[title_column], start)
                block["text"] = pc.utf8_trim_whitespace(
                    pc.binary_join_element_wise(titles, block["text"], pa.scalar(" ", STRING))
                )
            start += len(values[0])
            yield block

    kinds = [kind for kind, column in (("id", id_name), ("text", text_name)) if column is not None]
    _write(folder, name, kinds, blocks())
    if id_name is not None:
        _check_distinct(option, id_name, _table(folder, name).column("id"))


def write_distinct(column: PairColumn, folder: JobFolder, name: str) -> None:
    """Write the distinct values of a column of pairs, in the order of their first appearance."""
    _write(folder, name, ["text"], iter([{"text": column.distinct}]))


def open_side(folder: JobFolder, name: str, n: int, *, named: bool) -> Side:
    """What `write_side` or `write_distinct` left; `n` is the number of rows where there is no table."""
    if f"{name}.arrow" not in folder.files:
        return Side(n, None, None, named)
    table = _table(folder, name)
    ids = Texts(table.column("id")) if "id" in table.column_names else None
    texts = Texts(table.column("text")) if "text" in table.column_names else None
    return Side(len(table), ids, texts, named)


def _write(folder: JobFolder, name: str, columns: list[str], blocks: Iterator[dict[str, pa.Array]]) -> None:
    schema = pa.schema([(column, STRING) for column in columns])
    with folder.writing(f"{name}.arrow") as stream, pa.ipc.new_file(stream, schema) as writer:
        for block in blocks:
            writer.write_batch(pa.record_batch([block[column] for column in columns], schema=schema))


def _table(folder: JobFolder, name: str) -> pa.Table:
    try:
        return pa.ipc.open_file(pa.memory_map(str(folder.path / f"{name}.arrow"))).read_all()
    except (OSError, pa.ArrowInvalid):
        raise_damaged(f"{name}.arrow")


def _check_distinct(option: str, column: str, ids: pa.ChunkedArray) -> None:
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    codes = _codes(ids.dictionary_encode().unify_dictionaries())
    first_rows = np.unique(codes, return_index=True)[1]
    repeat = int(np.setdiff1d(np.arange(len(codes)), first_rows)[0])
    first = int(first_rows[codes[repeat]])
    got = f"{shown(ids[repeat].as_py())} at rows {first} and {repeat}"
    raise_invalid(option, f"a file with each id of {column!r} once", got)


# ---- pairs ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairColumn:
    """The anchors, or the positives, of a file of pairs. Each distinct value is in memory once."""

    option: str  # what the file is called in an error
    name: str
    distinct: pa.Array  # (m,) strings, in the order of their first appearance
    codes: Ids  # (p,) which of them each pair has
    numbers: Ids | None  # (p,) if all values are whole numbers
    file_rows: Ids  # (p,) the row of the file that each pair is in: a row may hold several positives


def read_pairs(option: str, path: Path, anchor: str, positive: str) -> tuple[PairColumn, PairColumn]:
    """Both columns of a file of pairs."""
    names = _pair_columns(column_names(option, path), anchor, positive)
    values: tuple[list[pa.Array], list[pa.Array]] = [], []
    file_rows: list[Ids] = [np.empty(0, np.int64)]
    start = 0
    for batch in batches(option, path, list(names)):
        rows = np.arange(start, start + len(batch[0]))
        start += len(batch[0])
        anchors, positives, rows = _one_positive_a_row(batch[0], batch[1], rows)
        for column, one in zip((0, 1), (anchors, positives), strict=True):
            values[column].append(_checked_values(option, names[column], one, rows))
        file_rows.append(rows)
    all_rows = np.concatenate(file_rows)
    if not len(all_rows):
        raise_invalid(option, "a file with at least one pair", f"none in {str(path)!r}")
    both = [_pair_column(option, name, chunks, all_rows) for name, chunks in zip(names, values, strict=True)]
    return both[0], both[1]


def _pair_columns(names: list[str], anchor: str, positive: str) -> tuple[str, str]:
    anchor_name = chosen_column("--anchor-column", names, anchor, _ANCHOR, 0)
    positive_name = chosen_column("--positive-column", names, positive, _POSITIVE, 1)
    if anchor_name is None:
        raise_invalid("--anchor-column", "given for these columns", shown_names(names))
    if positive_name is None:
        raise_invalid("--positive-column", "given for these columns", shown_names(names))
    if anchor_name == positive_name:
        raise_invalid("--positive-column", "another than --anchor-column", repr(positive_name))
    return anchor_name, positive_name


def _one_positive_a_row(anchors: list[Any], positives: list[Any], rows: Ids) -> tuple[list[Any], list[Any], Ids]:
    """A pair for each positive of a list, as in the files of FlagEmbedding and in the format "ids"."""
    if not any(type(value) is list for value in positives):
        return anchors, positives, rows
    lists = [value if type(value) is list else [value] for value in positives]
    counts = [len(value) for value in lists]
    repeated = [anchor for anchor, count in zip(anchors, counts, strict=True) for _ in range(count)]
    return repeated, [one for value in lists for one in value], np.repeat(rows, counts)


def _checked_values(option: str, name: str, values: list[Any], rows: Ids) -> pa.Array:
    """The values as int64 if all are whole numbers, else as strings."""
    _check_types(option, name, values, (str, int), "strings or whole numbers", rows)
    if str not in {*map(type, values)}:
        try:
            return pa.array(values, pa.int64())
        except (OverflowError, pa.ArrowInvalid):  # a larger whole number is an id, not a row
            pass
    return _as_strings(option, values)


def _pair_column(option: str, name: str, chunks: list[pa.Array], file_rows: Ids) -> PairColumn:
    numbers = None
    if all(chunk.type == pa.int64() for chunk in chunks):
        numbers = np.asarray(pa.chunked_array(chunks, pa.int64()))
    strings = pa.chunked_array([chunk.cast(STRING) for chunk in chunks], STRING)
    encoded = strings.dictionary_encode().unify_dictionaries()
    distinct = encoded.chunk(0).dictionary
    return PairColumn(option, name, distinct, _codes(encoded), numbers, file_rows)


def rows_in(column: PairColumn, side: Side, what: str) -> Ids:
    """(p,) the row that each value of a column means: by the ids of a side, by its texts, or as a number.

    All values are ids, or all are texts: whichever more of them are.
    """
    if side.ids is None and column.numbers is not None:
        check_range(column.option, column.numbers, side.n, f"{what}, by row number")
        return column.numbers
    rows = np.full(len(column.distinct), -1, np.int64)
    expected = "texts"
    if side.ids is not None:
        rows = first_rows(column.distinct, side.ids)
        expected = "ids"
    if side.texts is not None and (rows < 0).any():
        by_text = first_rows(column.distinct, side.texts)
        if np.count_nonzero(by_text[column.codes] >= 0) > np.count_nonzero(rows[column.codes] >= 0):
            rows = by_text
            expected = "texts"
    if side.ids is not None and side.texts is not None and not (rows >= 0).any():
        expected = "ids or texts"
    found = rows[column.codes]
    missing = np.flatnonzero(found < 0)
    if len(missing):
        first = int(missing[0])
        value = shown(column.distinct[int(column.codes[first])].as_py())
        got = f"{value} at row {column.file_rows[first]} ({len(missing)} such row{'s' if len(missing) > 1 else ''})"
        rule = f"a file whose {column.name!r} holds {expected} of the {side.n:,} {what}"
        raise_invalid(column.option, rule, got)
    return found


def first_rows(wanted: pa.Array, texts: Texts) -> Ids:
    """(m,) the first row of each wanted string, which are distinct; -1 where there is none."""
    first = np.full(len(wanted), -1, np.int64)
    start = 0
    for chunk in texts.column.chunks:
        which = pc.fill_null(pc.index_in(chunk, value_set=wanted), -1).to_numpy()
        hits = np.flatnonzero(which >= 0)
        new = hits[first[which[hits]] < 0]
        first[which[new[::-1]]] = start + new[::-1]  # of equal ones the first is written last
        start += len(chunk)
    return first


# ---- anchors that are documents -------------------------------------------------------------------------------------


def same_id_pairs(queries: Side, corpus: Side) -> tuple[Ids, Ids]:
    """(anchors, documents) with the same id; without ids, or if none is shared, by row."""
    if queries.ids is not None and corpus.ids is not None:
        rows = first_rows(queries.ids.column.combine_chunks(), corpus.ids)
        anchors = np.flatnonzero(rows >= 0)
        if len(anchors):
            return anchors, rows[anchors]
    if queries.n != corpus.n:
        rule = f"left out unless anchors and documents share ids, or anchors are the {corpus.n:,} documents by row"
        advice = "Pass --queries and --corpus with ids."
        raise_invalid("--same-ids", rule, f"{queries.n:,} anchors without the id of a document", advice)
    return np.arange(queries.n), np.arange(queries.n)


def same_text_pairs(queries: Side, corpus: Side) -> tuple[Ids, Ids]:
    """(anchors, documents) whose texts are equal but for whitespace; none where a side has no texts.

    Of the documents with one text, the first 100 count. The texts of the queries are in memory.
    """
    if queries.texts is None or corpus.texts is None or queries.n == 0:
        return NO_PAIRS
    encoded = _without_spacing(queries.texts.column).combine_chunks().dictionary_encode()
    wanted = encoded.dictionary
    codes = np.asarray(encoded.indices).astype(np.int64)
    matches: list[NDArray[np.int64]] = [np.empty((2, 0), np.int64)]
    start = 0
    for chunk in corpus.texts.column.chunks:
        texts = _without_spacing(chunk)
        which = pc.fill_null(pc.index_in(texts, value_set=wanted), -1).to_numpy()
        hits = np.flatnonzero((which >= 0) & (pc.binary_length(texts).to_numpy() > 0))
        matches.append(np.stack([which[hits], start + hits]))
        start += len(chunk)
    code, document = np.concatenate(matches, axis=1)
    order = np.argsort(code, kind="stable")
    code = code[order]
    document = document[order]
    is_early = np.arange(len(code)) - np.searchsorted(code, code) < MAX_COPIES
    return _anchors_by_code(codes, code[is_early], document[is_early])


def _anchors_by_code(anchor_codes: Ids, codes: Ids, documents: Ids) -> tuple[Ids, Ids]:
    """(anchors, documents) of all anchors that have the code of a document."""
    by_code = np.argsort(anchor_codes, kind="stable")
    ordered = anchor_codes[by_code]
    first = np.searchsorted(ordered, codes)
    counts = np.searchsorted(ordered, codes, side="right") - first
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return by_code[np.repeat(first, counts) + within], np.repeat(documents, counts)


def _without_spacing(texts: Any) -> Any:
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[\s\p{Z}]+", " "))


# ---- reading --------------------------------------------------------------------------------------------------------


def _codes(encoded: pa.ChunkedArray) -> Ids:
    return np.concatenate([np.empty(0, np.int64), *(np.asarray(chunk.indices) for chunk in encoded.chunks)])


def _strings(option: str, name: str, values: list[Any], start: int, *, numbers: bool = False) -> pa.Array:
    """The values of a column as strings; ids may be whole numbers."""
    types = (str, int) if numbers else (str,)
    _check_types(option, name, values, types, "strings", range(start, start + len(values)))
    return _as_strings(option, values)


def _check_types(option: str, name: str, values: list[Any], types: tuple[type, ...], wanted: str, rows: Any) -> None:
    """Raise for a value of another type; `rows` are those of the file that the values are in."""
    if not {*map(type, values)} <= {*types}:
        place = next(place for place, value in enumerate(values) if type(value) not in types)
        raise_invalid(option, f"a file with {wanted} in {name!r}", f"{shown(values[place])} at row {rows[place]}")


def _as_strings(option: str, values: list[Any]) -> pa.Array:
    try:
        return pa.array(map(str, values), STRING)
    except UnicodeEncodeError as error:
        raise_invalid(option, "a file of plain values, with texts in UTF-8", shown(error.object))

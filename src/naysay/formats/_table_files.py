"""Tables in files, a block of rows at a time: Parquet, JSON, CSV and data sets on disk; and lines of text.

An error names the parameter that the file was passed as, and the line or row. Bytes that are not UTF-8 become lone
surrogates (PEP 383) in lines and JSON, so that no text is lost or changed. Parquet and CSV must be UTF-8.
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, final

from naysay._tables import check_pages, parquet_batches, parquet_schema
from naysay.checks import check_one_of, raise_invalid, shown
from naysay.errors import MissingExtraError, NaysayError
from naysay.files import check_source, raise_unreadable
from naysay.formats._whole_files import need_datasets
from naysay.locations import check_table, shards, table_suffix
from naysay.text import first_line

Blocks = Iterator[tuple[Sequence[int], list[Any]]]
_ROWS = 4096  # rows of a table that are read at a time
_BYTES = 1 << 22  # bytes of lines that are read at a time
_MARK = b"\xef\xbb\xbf"  # a byte order mark, which some editors put before the first line
_KINDS = ".parquet, .jsonl (also .gz or .xz), .csv and .tsv are read."
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_WHOLE = "a file that can be read to its end"


@contextmanager
def _reading(parameter: str, rule: str, path: Path) -> Iterator[None]:
    """Turn any error of a reader into one sentence. A damaged file raises many kinds of errors, often late."""
    try:
        yield
    except (NaysayError, MissingExtraError):
        raise
    except Exception as error:
        raise_unreadable(parameter, rule, path, error)


def _kind(path: Path) -> str:
    """The ending of a file without .gz or .xz; .parquet for a folder of files."""
    return path.with_suffix("").suffix.lower() if path.suffix in (".gz", ".xz") else table_suffix(path)


@contextmanager
def _opened(parameter: str, path: Path) -> Iterator[BinaryIO]:
    """Open a file as bytes, through .gz or .xz; raise if it is missing or damaged."""
    ways: dict[str, Any] = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile}
    check_source(parameter, path)
    try:
        stream: BinaryIO = ways.get(path.suffix, open)(path, "rb")
    except FileNotFoundError:
        raise_invalid(parameter, "an existing file", repr(str(path)))
    except OSError as error:
        raise_invalid(parameter, "a file that can be read", f"{shown(str(path))} ({error.strerror})")
    with stream, _reading(parameter, "a whole file", path):
        yield stream


def line_blocks(path: Path, parameter: str = "path") -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield blocks of (numbers, lines), counted from 1, without blank lines."""
    count = 0
    with _opened(parameter, path) as stream:
        while lines := stream.readlines(_BYTES):
            if count == 0:
                lines[0] = lines[0].removeprefix(_MARK)
            kept = [(number, line) for number, line in enumerate(lines, count + 1) if not line.isspace()]
            count += len(lines)
            if kept:
                numbers, texts = zip(*kept, strict=True)
                yield list(numbers), list(texts)


def json_blocks(path: Path, parameter: str = "path") -> Iterator[tuple[list[int], list[Any]]]:
    """Yield blocks of (numbers, values), one JSON value per line."""
    for numbers, lines in line_blocks(path, parameter):
        values: list[Any] = []
        try:
            values.extend(map(json.loads, map(decoded, lines)))
        except (ValueError, RecursionError) as error:
            what = first_line(error)
            if isinstance(error, json.JSONDecodeError):
                what = f"{error.msg} at character {error.pos}"
            got = f"{what} in line {numbers[len(values)]} of {path.name}"
            raise_invalid(parameter, "a file of one JSON value a line", got)
        yield numbers, values


def decoded(line: bytes) -> str:
    """Return the text of a line, without losing bytes."""
    return line.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes that `decoded` was given."""
    return text.encode("utf-8", "surrogateescape")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a file."""

    path: Path
    names: tuple[str, ...]  # the columns: of the schema, or of the first line; none if lines are JSON arrays
    first: Any  # the first row, an object or an array; None for an empty file
    arrays: bool  # whether lines are JSON arrays
    blocks: Blocks  # (numbers, rows): the number of each line or row, and its object or array
    where: str  # "line" or "row": what the numbers count


def opened_table(path: Path) -> Table:
    """Open a training file, the parameter `path`, and read its first block."""
    kind, names, where = _kind(path), None, "line"
    if kind in (".parquet", ".hf"):
        names, blocks = _parquet(path) if kind == ".parquet" else _data_set(path)
        where = "row"
    elif kind in (".jsonl", ".json"):
        blocks = json_blocks(path) if kind == ".jsonl" else _document(path)
    else:
        rule = "a file that ends in .parquet, .jsonl, .json or .hf"
        raise_invalid("path", rule, repr(str(path)), ".jsonl and .json may be compressed: .gz or .xz.")
    head = next(blocks, ([], []))
    first = head[1][0] if head[1] else None
    if names is None:
        names = tuple(first) if isinstance(first, dict) else ()
    return Table(path, names, first, isinstance(first, list), _checked("path", path, head, blocks, where), where)


def _checked(parameter: str, path: Path, head: tuple[Sequence[int], list[Any]], rest: Blocks, where: str) -> Blocks:
    """Yield the first block and the rest; raise for a row of another kind than the first, an object or an array."""
    kind, wanted = (list, "a JSON array") if head[1] and isinstance(head[1][0], list) else (dict, "a JSON object")
    block: tuple[Sequence[int], list[Any]] | None = head
    while block is not None:
        numbers, rows = block
        if not {*map(type, rows)} <= {kind}:
            place = next(place for place, row in enumerate(rows) if not isinstance(row, kind))
            got = f"{shown(rows[place])} in {where} {numbers[place]} of {path.name}"
            raise_invalid(parameter, f"a file in which every {where} is {wanted}", got)
        if rows:
            yield numbers, rows
        block = next(rest, None)


def _parquet(path: Path) -> tuple[tuple[str, ...], Blocks]:
    check_table("path", path)
    with _reading("path", "a file of Parquet", path):
        names = tuple(parquet_schema(path).names)
    return names, _numbered(path, "a file of Parquet", (batch.to_pylist() for batch in parquet_batches(path)))


def _data_set(path: Path) -> tuple[tuple[str, ...], Blocks]:
    """Read a data set on disk, mapped."""
    datasets = need_datasets()
    if not (path / "dataset_info.json").is_file():
        raise_invalid("path", "a data set on disk", repr(str(path)))
    with _reading("path", "a data set on disk", path):
        data = datasets.load_from_disk(str(path))
        names = tuple(data.column_names)
    return names, _numbered(path, "a data set on disk", (data[at : at + _ROWS] for at in range(0, len(data), _ROWS)))


def _document(path: Path) -> Blocks:
    """Read the list "data" of one JSON object, or a list by itself; the whole file is in memory."""
    with _opened("path", path) as stream:
        text = decoded(stream.read()).removeprefix("\ufeff")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise_invalid("path", "a file of one JSON object", f"{first_line(error)} in {path.name}")
    rows = found.get("data") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise_invalid("path", 'a file of one JSON object with a list "data"', f"{shown(rows)} in {path.name}")
    return _numbered(path, "", (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)))


def _numbered(path: Path, rule: str, blocks: Iterable[Any]) -> Blocks:
    """Yield (numbers, rows) of blocks: rows, or {column: values}. A damaged page is found only when it is read."""
    start = 0
    with _reading("path", rule, path):
        for block in blocks:
            rows = block
            if isinstance(block, dict):
                rows = [dict(zip(block, row, strict=True)) for row in zip(*block.values(), strict=True)]
            yield range(start, start + len(rows)), rows
            start += len(rows)


def column_names(parameter: str, path: Path) -> list[str]:
    """Return the columns of a table; those of the first line for JSON lines."""
    check_table(parameter, path, _KINDS)
    kind = _kind(path)
    if kind not in (".parquet", ".jsonl", *_DELIMITERS) or (kind != ".jsonl" and path.suffix in (".gz", ".xz")):
        raise_invalid(parameter, "a table", repr(str(path)), _KINDS)
    if kind == ".jsonl":
        return list(next(_objects(parameter, path), [{}])[0])
    with _reading(parameter, _WHOLE, path):
        if kind == ".parquet":
            return list(parquet_schema(path, parameter).names)
        with _csv(path, kind, None) as reader:
            return list(reader.schema.names)


def check_memory(parameter: str, path: Path, limit: int) -> None:
    """Raise if a page of a Parquet file takes more than `limit` bytes of memory; other files are read by lines."""
    if _kind(path) == ".parquet" and all(part.is_file() for part in shards(path)):
        with _reading(parameter, _WHOLE, path):
            check_pages(parameter, path, limit)


def batches(parameter: str, path: Path, columns: list[str], optional: Sequence[str] = ()) -> Iterator[list[list[Any]]]:
    """Yield the values of some columns, a batch of rows at a time; raise for a missing value, with its row.

    Columns that are `optional` may have missing values.
    """
    start = 0
    for batch in _columns(parameter, path, columns):
        for name, values in zip(columns, batch, strict=True):
            if None in values and name not in optional:
                got = f"nothing in {name!r} at row {start + values.index(None)}"
                raise_invalid(parameter, f"a file with a value in every row of {name!r}", got)
        start += len(batch[0])
        yield batch


def _columns(parameter: str, path: Path, columns: list[str]) -> Iterator[list[list[Any]]]:
    kind = _kind(path)
    if kind == ".jsonl":
        for rows in _objects(parameter, path):
            yield [[row.get(name) for row in rows] for name in columns]
        return
    with _reading(parameter, _WHOLE, path):
        for batch in parquet_batches(path, columns) if kind == ".parquet" else _csv(path, kind, columns):
            yield [batch.column(name).to_pylist() for name in columns]


def _objects(parameter: str, path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield blocks of JSON objects, one per line."""
    blocks = json_blocks(path, parameter)
    for _, rows in _checked(parameter, path, ([], []), blocks, "line"):
        yield rows


def _csv(path: Path, kind: str, columns: list[str] | None) -> Any:
    """Return a reader of CSV. Every value is a string, because ids such as 007 are not numbers."""
    import pyarrow as pa
    from pyarrow import csv

    parsing = csv.ParseOptions(delimiter=_DELIMITERS[kind], newlines_in_values=True)
    wanted = None
    if columns is not None:
        kinds = dict.fromkeys(columns, pa.large_string())
        wanted = csv.ConvertOptions(include_columns=columns, column_types=kinds, strings_can_be_null=False)
    return csv.open_csv(path, parse_options=parsing, convert_options=wanted)


def chosen_column(
    option: str, names: list[str], given: str, usual: tuple[str, ...], place: int | None = None
) -> str | None:
    """Return the given column, else the first usual name that exists, else None.

    In a file of two columns, that at `place` is chosen whatever its name.
    """
    if given:
        check_one_of(option, given, names)
    by_place = names[place] if place is not None and len(names) == 2 else None
    chosen = given or next((name for name in usual if name in names), by_place)
    if chosen is not None and names.count(chosen) > 1:
        raise_invalid(option, "the name of exactly one column", f"{chosen!r}, {names.count(chosen)} times")
    return chosen

"""Readers of tables, a block of rows at a time: Parquet, JSON, CSV, and data sets on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from naysay.checks import check_one_of, raise_invalid, shown
from naysay.files import raise_unreadable
from naysay.formats._text_lines import decoded, json_blocks, opened
from naysay.formats._whole_files import need_datasets

Blocks = Iterator[tuple[Sequence[int], list[Any]]]
_ROWS = 4096  # rows of a table that are read at a time
_KINDS = ".parquet, .jsonl (also .gz or .xz), .csv and .tsv are read."
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a file.

    Args:
        path: The file.
        names: The columns, in order: of the schema, or of the first line; none if lines are JSON arrays.
        first: The first row, an object or an array; None for an empty file.
        arrays: Whether lines are JSON arrays.
        blocks: (numbers, rows): the number of each line or row, and its object or array.
        where: "line" or "row": what the numbers count.
    """

    path: Path
    names: tuple[str, ...]
    first: Any
    arrays: bool
    blocks: Blocks
    where: str


def opened_table(path: Path) -> Table:
    """Open a file and read its first block."""
    kind = (path.with_suffix("") if path.suffix in (".gz", ".xz") else path).suffix.lower()
    if kind in (".parquet", ".hf"):
        names, blocks = _parquet(path) if kind == ".parquet" else _data_set(path)
        where = "row"
    elif kind in (".jsonl", ".json"):
        names, where = None, "line"
        blocks = json_blocks(path) if kind == ".jsonl" else _document(path)
    else:
        rule = "a file that ends in .parquet, .jsonl, .json or .hf"
        raise_invalid("path", rule, repr(str(path)), ".jsonl and .json may be compressed: .gz or .xz.")
    head = next(blocks, ([], []))
    first = head[1][0] if head[1] else None
    arrays = isinstance(first, list)
    if names is None:
        names = tuple(first) if isinstance(first, dict) else ()
    return Table(path, names, first, arrays, _checked(path, head, blocks, where, arrays=arrays), where)


def _checked(
    path: Path,
    head: tuple[Sequence[int], list[Any]],
    blocks: Blocks,
    where: str,
    *,
    arrays: bool,
) -> Blocks:
    """Yield all blocks from the first; raise for a row of another kind."""
    kind, wanted = (list, "a JSON array") if arrays else (dict, "a JSON object")
    block: tuple[Sequence[int], list[Any]] | None = head
    while block is not None:
        numbers, rows = block
        if not {*map(type, rows)} <= {kind}:
            place = next(place for place, row in enumerate(rows) if not isinstance(row, kind))
            got = f"{shown(rows[place])} in {where} {numbers[place]} of {path.name}"
            raise_invalid("path", f"a file in which every {where} is {wanted}", got)
        if rows:
            yield numbers, rows
        block = next(blocks, None)


def _parquet(path: Path) -> tuple[tuple[str, ...], Blocks]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read() -> Blocks:
        start = 0
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=_ROWS):
                    yield range(start, start + len(batch)), batch.to_pylist()
                    start += len(batch)
        except (pa.ArrowException, OSError) as error:  # a damaged page is found only when it is read
            raise_unreadable("path", "a file of Parquet", path, error)

    try:
        names = tuple(pq.read_schema(path).names)
    except FileNotFoundError:
        raise_invalid("path", "an existing file", repr(str(path)))
    except (pa.ArrowException, OSError) as error:
        raise_unreadable("path", "a file of Parquet", path, error)
    return names, read()


def _data_set(path: Path) -> tuple[tuple[str, ...], Blocks]:
    """Read a data set on disk, mapped."""
    datasets = need_datasets()
    if not (path / "dataset_info.json").is_file():
        raise_invalid("path", "a data set on disk", repr(str(path)))
    found = datasets.load_from_disk(str(path))

    def read() -> Blocks:
        for start in range(0, len(found), _ROWS):
            rows = found[start : start + _ROWS]
            names = list(rows)
            values = zip(*rows.values(), strict=True)
            listed = [dict(zip(names, row, strict=True)) for row in values]
            yield range(start, start + len(listed)), listed

    return tuple(found.column_names), read()


def _document(path: Path) -> Blocks:
    """Read the list "data" of one JSON object, or a list by itself; the whole file is in memory."""
    with opened(path) as stream:
        text = decoded(stream.read()).removeprefix("\ufeff")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise_invalid("path", "a file of one JSON object", f"{error} in {path.name}")
    rows = found.get("data") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise_invalid("path", 'a file of one JSON object with a list "data"', f"{shown(rows)} in {path.name}")
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        yield range(start, start + len(part)), part


def column_names(parameter: str, path: Path) -> list[str]:
    """Return the columns of a file; those of the first line for JSON lines."""
    kind = _kind(parameter, path)
    if kind == ".jsonl":
        for _, rows in json_blocks(path, parameter):
            if not isinstance(rows[0], dict):
                raise_invalid(parameter, "a file with a JSON object in each line", shown(rows[0]))
            return list(rows[0])
        return []
    import pyarrow as pa

    try:
        if kind == ".parquet":
            import pyarrow.parquet as pq

            return list(pq.read_schema(path).names)
        with _csv(path, kind, None) as reader:
            return list(reader.schema.names)
    except (pa.ArrowException, OSError) as error:
        raise_unreadable(parameter, "a file that can be read to its end", path, error)


def batches(parameter: str, path: Path, columns: list[str]) -> Iterator[list[list[Any]]]:
    """Yield the values of some columns, a batch of rows at a time; raise for a missing value, with its row."""
    kind, start = _kind(parameter, path), 0
    found = (
        _json_columns(parameter, path, columns) if kind == ".jsonl" else _arrow_columns(parameter, path, kind, columns)
    )
    for batch in found:
        for name, values in zip(columns, batch, strict=True):
            if None in values:
                got = f"nothing in {name!r} at row {start + values.index(None)}"
                raise_invalid(parameter, f"a file with a value in every row of {name!r}", got)
        start += len(batch[0])
        yield batch


def _json_columns(parameter: str, path: Path, columns: list[str]) -> Iterator[list[list[Any]]]:
    for numbers, rows in json_blocks(path, parameter):
        if not {*map(type, rows)} <= {dict}:
            place = next(place for place, row in enumerate(rows) if not isinstance(row, dict))
            got = f"{shown(rows[place])} in line {numbers[place]}"
            raise_invalid(parameter, "a file with a JSON object in each line", got)
        yield [[row.get(name) for row in rows] for name in columns]


def _arrow_columns(parameter: str, path: Path, kind: str, columns: list[str]) -> Iterator[list[list[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if kind == ".parquet":
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
                    yield [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in columns]
            return
        with _csv(path, kind, columns) as reader:
            for batch in reader:
                yield [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in columns]
    except (pa.ArrowException, OSError) as error:  # a damaged page is found only when it is read
        raise_unreadable(parameter, "a file that can be read to its end", path, error)


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


def _kind(parameter: str, path: Path) -> str:
    if not path.is_file():
        raise_invalid(parameter, "an existing file", repr(str(path)), _KINDS)
    kind = (path.with_suffix("") if path.suffix in (".gz", ".xz") else path).suffix.lower()
    if kind not in (".parquet", ".jsonl", *_DELIMITERS) or (kind != ".jsonl" and path.suffix in (".gz", ".xz")):
        raise_invalid(parameter, "a table", repr(str(path)), _KINDS)
    return kind


def chosen_column(
    option: str, names: list[str], given: str, usual: tuple[str, ...], place: int | None = None
) -> str | None:
    """Return the given column, else the first usual name that exists, else a column by its place, else None.

    Args:
        option: The parameter, for the error.
        names: The columns of the file.
        given: The column that the user named, or "".
        usual: Names to try.
        place: 0 or 1: which column of a file of two columns to use, whatever its name; None for neither.
    """
    if given:
        check_one_of(option, given, names)
        return given
    for name in usual:
        if name in names:
            return name
    return names[place] if place is not None and len(names) == 2 else None

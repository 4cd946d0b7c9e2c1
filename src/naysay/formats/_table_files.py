"""Columns of the files that a job reads: Parquet, JSON lines, CSV and TSV, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from naysay.checks import check_one_of, raise_invalid, shown
from naysay.formats._text_lines import json_blocks

_ROWS = 4096
_KINDS = ".parquet, .jsonl (also .gz or .xz), .csv and .tsv are read."
_BETWEEN = {".csv": ",", ".tsv": "\t"}


def column_names(parameter: str, path: Path) -> list[str]:
    """The columns of a file, of JSON lines those of the first."""
    kind = _kind(parameter, path)
    if kind == ".jsonl":
        for _, rows in json_blocks(path):
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
        _unreadable(parameter, path, error)


def batches(parameter: str, path: Path, columns: list[str]) -> Iterator[list[list[Any]]]:
    """The values of some columns, some rows at a time; a missing one is None, which is refused with its row."""
    kind, start = _kind(parameter, path), 0
    found = _json(parameter, path, columns) if kind == ".jsonl" else _arrow(parameter, path, kind, columns)
    for batch in found:
        for name, values in zip(columns, batch, strict=True):
            if None in values:
                got = f"nothing in {name!r} at row {start + values.index(None)}"
                raise_invalid(parameter, f"a file with a value in every row of {name!r}", got)
        start += len(batch[0])
        yield batch


def _json(parameter: str, path: Path, columns: list[str]) -> Iterator[list[list[Any]]]:
    for numbers, rows in json_blocks(path):
        if not {*map(type, rows)} <= {dict}:
            place = next(place for place, row in enumerate(rows) if not isinstance(row, dict))
            got = f"{shown(rows[place])} in line {numbers[place]}"
            raise_invalid(parameter, "a file with a JSON object in each line", got)
        yield [[row.get(name) for row in rows] for name in columns]


def _arrow(parameter: str, path: Path, kind: str, columns: list[str]) -> Iterator[list[list[Any]]]:
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
    except (pa.ArrowException, OSError) as error:  # a damaged page is found when its turn comes
        _unreadable(parameter, path, error)


def _csv(path: Path, kind: str, columns: list[str] | None) -> Any:
    """A reader of CSV; every value is a string, because ids such as 007 are no numbers."""
    import pyarrow as pa
    from pyarrow import csv

    parsing = csv.ParseOptions(delimiter=_BETWEEN[kind], newlines_in_values=True)
    wanted = None
    if columns is not None:
        kinds = dict.fromkeys(columns, pa.large_string())
        wanted = csv.ConvertOptions(include_columns=columns, column_types=kinds, strings_can_be_null=False)
    return csv.open_csv(path, parse_options=parsing, convert_options=wanted)


def _kind(parameter: str, path: Path) -> str:
    if not path.is_file():
        raise_invalid(parameter, "an existing file", repr(str(path)), _KINDS)
    kind = (path.with_suffix("") if path.suffix in (".gz", ".xz") else path).suffix.lower()
    if kind not in (".parquet", ".jsonl", *_BETWEEN) or (kind != ".jsonl" and path.suffix in (".gz", ".xz")):
        raise_invalid(parameter, "a table", repr(str(path)), _KINDS)
    return kind


def _unreadable(parameter: str, path: Path, error: Exception) -> NoReturn:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    raise_invalid(parameter, "a file that can be read to its end", f"{str(path)!r} ({reason})")


def chosen_column(
    option: str, names: list[str], given: str, usual: tuple[str, ...], place: int | None = None
) -> str | None:
    """The column that is named; else the first usual name that is there; else, of a file of two columns, that one.

    Args:
        place: 0 or 1: which column of a file of two, whatever it is called; None: none of them.
    """
    if given:
        check_one_of(option, given, names)
        return given
    for name in usual:
        if name in names:
            return name
    return names[place] if place is not None and len(names) == 2 else None

"""A training file once more, in its own format, without some of its negatives: all else stays as it is."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

import pyarrow as pa

from naysay import tables
from naysay._packages import need_datasets
from naysay.checks import raise_invalid
from naysay.files import draft_of
from naysay.formats._formats import ReadRow
from naysay.formats.read_negatives import format_of, open_rows
from naysay.formats.write_negatives import check_place, data_set_writer, json_line, parquet_writer
from naysay.places import table_suffix

# (number of a row, the row) -> {which of its negatives go: whether it becomes a positive}
Choose = Callable[[int, ReadRow], Mapping[int, bool]]
Fill = Callable[[int, ReadRow], Any]  # the same -> the cell of another document, None if there is none
Row = dict[str, Any]
_ROWS = 4096  # rows of a table that are written at a time


@final
class Rewritten(NamedTuple):
    """How many rows a file had, how many the new one has, and how many documents in them are other ones."""

    rows: int
    kept: int
    filled: int


def check_rewritable(source: Path, target: Path) -> None:
    """Raise unless the new file is of the kind of the old one, and can be written."""
    wanted = source.with_suffix("").suffix.lower() if source.suffix == ".gz" else table_suffix(source)
    if target.suffix.lower() != wanted:
        raise_invalid("path", f"a file that ends in {wanted!r}, like the set", repr(str(target)))
    check_place(target)


def check_several_positives(source: Path, format: str | None) -> None:
    """Raise unless rows of the file can hold several positives."""
    file = open_rows(source)
    chosen = format_of(file, format)
    if not chosen.holds_several_positives(chosen.places(file.names)):
        rule = f"'drop' for the format {chosen.name!r}, whose rows hold one positive"
        raise_invalid("false_negatives", rule, "'positive'")


def rewrite(source: Path, target: Path, format: str | None, choose: Choose, fill: Fill) -> Rewritten:
    """Write `target`, whole or not at all."""
    file = open_rows(source)
    chosen = format_of(file, format)
    places = chosen.places(file.names)
    count = kept = filled = 0

    def new_rows() -> Iterator[Row]:
        nonlocal count, kept, filled
        for number, row in (pair for block in file.blocks for pair in zip(*block, strict=True)):
            count += 1
            read = chosen.read_row(row, places)
            changed = {read.places[place]: is_positive for place, is_positive in choose(number, read).items()}
            found = [place for place, is_positive in changed.items() if is_positive]
            row, moved = chosen.with_positives(row, places, found) if found else (row, [])
            dropped = [place for place in changed if place in moved or place not in found]
            new = chosen.without(row, places, dropped, partial(fill, number, read)) if dropped else row
            if new is not None:
                kept += 1
                filled += len(dropped) if chosen.rectangular else 0
                yield new

    with draft_of(target, "path") as draft:
        if target.suffix.lower() == ".jsonl":
            _write_lines(draft, new_rows(), arrays=chosen.arrays)
        elif target.suffix.lower() == ".json":
            _write_document(source, draft, new_rows())
        else:
            _write_table(source, draft, new_rows())
    return Rewritten(count, kept, filled)


def json_as_read(value: Any) -> bytes:
    """JSON in UTF-8; with NaN, infinity or half a surrogate pair, which a file may have, as Python writes them."""
    try:
        return json_line(value)
    except ValueError:
        return json.dumps(value).encode()


def _write_lines(draft: Path, rows: Iterator[Row], *, arrays: bool) -> None:
    with draft.open("wb", buffering=1 << 20) as stream:
        for row in rows:
            stream.writelines((json_as_read(list(row.values()) if arrays else row), b"\n"))


def _write_document(source: Path, draft: Path, rows: Iterator[Row]) -> None:
    """The JSON document of the source with other rows in its list "data", or in its place."""
    with gzip.open(source) if source.suffix == ".gz" else source.open("rb") as stream:
        document = json.load(stream)
    new = {**document, "data": list(rows)} if isinstance(document, dict) else list(rows)
    draft.write_bytes(json_as_read(new))


def _write_table(source: Path, draft: Path, rows: Iterator[Row]) -> None:
    """Parquet, or a data set, with the schema of the source."""
    if source.suffix.lower() == ".hf":
        schema = need_datasets().load_from_disk(str(source)).features.arrow_schema
        writer = data_set_writer(draft, schema)
    else:
        schema = tables.parquet_schema(source)
        writer = parquet_writer(draft, schema)
    with writer as write:
        while block := list(islice(rows, _ROWS)):
            write(pa.Table.from_pylist(block, schema=schema))

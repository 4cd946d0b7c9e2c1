"""Files that appear whole or not at all: rows go to a draft beside the target, which then takes its place.

Each of these is entered with `with` and gives a function that writes a block of columns.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from naysay.checks import raise_invalid, shown
from naysay.errors import MissingExtraError
from naysay.files import check_target
from naysay.formats._columns import Column, Columns, arrow_schema, rows_of

Write = Callable[[Columns], None]
_GROUP = 1 << 25  # bytes of a row group of Parquet, or of a batch of Arrow
_PART = 1 << 24  # characters that are turned into Arrow at a time
# Lone surrogates have no UTF-8, and these three end a line for `str.splitlines`: JSON can escape them all.
_ESCAPED = re.compile("[\x85\u2028\u2029\ud800-\udfff]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def check_place(path: Path) -> None:
    """Refuse a place that cannot be written to, before any work."""
    if path.suffix.lower() != ".hf":
        check_target("path", path)
    elif not path.parent.is_dir():
        raise_invalid("path", "in an existing folder", repr(str(path)))
    elif path.exists() and not (path / "dataset_info.json").is_file():  # what may be replaced is a data set
        raise_invalid("path", "new, or a data set on disk", repr(str(path)))


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A draft beside `path` that takes its place at the end, and is gone if anything fails."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    old = draft.with_name(draft.name + ".old")
    try:
        yield draft
        if path.is_dir():
            os.replace(path, old)  # a folder cannot be replaced in one step
        try:
            os.replace(draft, path)
        except BaseException:
            if old.exists():
                os.replace(old, path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise_invalid("path", "a file that can be written", f"{shown(str(path))} ({error.strerror})")
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def json_line(row: Any) -> bytes:
    """A row as JSON in UTF-8; what UTF-8 cannot hold, and what some readers take for the end of a line, is escaped."""
    text = _ENCODER.encode(row)
    if not text.isascii():
        text = _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode()


def _objects(columns: Columns, *, arrays: bool) -> Iterator[Any]:
    """The rows as JSON objects, or as arrays without names."""
    rows = zip(*(column.values for column in columns.values()), strict=True)
    names = list(columns)
    return map(list, rows) if arrays else (dict(zip(names, row, strict=True)) for row in rows)


@contextmanager
def json_lines(draft: Path, *, arrays: bool) -> Iterator[Write]:
    """One JSON object a line, or one array; a line is written as soon as it is made."""
    with draft.open("wb", buffering=1 << 20) as stream:
        yield lambda columns: stream.writelines(
            chain.from_iterable((json_line(row), b"\n") for row in _objects(columns, arrays=arrays))
        )


@contextmanager
def json_document(draft: Path, header: dict[str, Any]) -> Iterator[Write]:
    """One JSON object: the header, and the rows as the list "data"; streamed all the same."""
    with draft.open("wb", buffering=1 << 20) as stream:
        stream.write(json_line(header)[:-1] + b', "data": [')
        between = [b"\n"]

        def write(columns: Columns) -> None:
            for row in _objects(columns, arrays=False):
                stream.writelines((between[0], json_line(row)))
                between[0] = b",\n"

        yield write
        stream.write(b"\n]}\n")


@contextmanager
def parquet(draft: Path, empty: Columns) -> Iterator[Write]:
    """Parquet, in row groups of some 32 MB; `empty` are the columns without rows."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(draft, arrow_schema(empty), compression="zstd") as file, _grouped(file, empty) as write:
        yield write


@contextmanager
def data_set(draft: Path, empty: Columns) -> Iterator[Write]:
    """A folder as `datasets.load_from_disk` reads it; the rows pass through one file of Arrow beside it."""
    import pyarrow as pa

    datasets = need_datasets()
    stream = draft.with_name(draft.name + ".arrow")
    try:
        with pa.ipc.new_stream(stream, arrow_schema(empty)) as file, _grouped(file, empty) as write:
            yield write
        datasets.Dataset.from_file(str(stream)).save_to_disk(str(draft))
    finally:
        stream.unlink(missing_ok=True)


def need_datasets() -> Any:
    """The package `datasets`, or a refusal that names the pip command."""
    try:
        datasets: Any = importlib.import_module("datasets")
    except ImportError as error:
        message = "datasets is not installed. Run: pip install datasets"
        raise MissingExtraError(message) from error
    return datasets


@contextmanager
def _grouped(file: Any, empty: Columns) -> Iterator[Write]:
    """Blocks gathered into tables of some size, written by `file.write_table`."""
    import pyarrow as pa

    schema = arrow_schema(empty)
    waiting: list[Any] = []

    def flush() -> None:
        if waiting:
            file.write_table(pa.concat_tables(waiting))
            waiting.clear()

    def write(columns: Columns) -> None:
        for part in _parts(columns):
            arrays = [pa.array(part[field.name].values, field.type) for field in schema]
            waiting.append(pa.Table.from_arrays(arrays, schema=schema))
            if sum(table.nbytes for table in waiting) > _GROUP:
                flush()

    yield write
    flush()


def _parts(columns: Columns) -> Iterator[Columns]:
    """The rows halved until a part has few enough characters, or is one row."""
    rows = rows_of(columns)
    if rows <= 1 or sum(_characters(column) for column in columns.values()) <= _PART:
        if rows:
            yield columns
        return
    for start, stop in ((0, rows // 2), (rows // 2, rows)):
        yield from _parts({name: Column(each.kind, each.values[start:stop]) for name, each in columns.items()})


def _characters(column: Column) -> int:
    """How long the texts of a column are."""
    if column.kind == "text":
        return sum(map(len, column.values))
    if column.kind == "texts":
        return sum(map(len, chain.from_iterable(column.values)))
    if column.kind in ("passages", "titled"):
        return sum(len(passage["text"]) for passage in chain.from_iterable(column.values))
    return 0

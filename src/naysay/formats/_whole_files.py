"""Writers of training files, block by block: JSON, Parquet and data sets. A file appears whole or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from naysay._packages import need_package
from naysay.checks import raise_invalid
from naysay.files import check_target, draft_of
from naysay.formats._blocks import Block, Column, Columns, Job, arrow_schema, column_of, rows_of
from naysay.formats._table import Format

Write = Callable[[Columns], None]
_GROUP = 1 << 25  # bytes of a row group of Parquet, or of a batch of Arrow
_PART = 1 << 24  # characters that are turned into Arrow at a time
# Lone surrogates have no UTF-8, and these three end a line for `str.splitlines`: JSON can escape them all.
_ESCAPED = re.compile("[\x85\u2028\u2029\ud800-\udfff]")
_DATA_SET = re.compile(r"(dataset_info|state|dataset_dict)\.json|(data|cache)-[\w-]+\.arrow|indices\.arrow")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def check_place(path: Path) -> None:
    """Raise unless a training file can be written at `path`."""
    if path.suffix.lower() != ".hf":
        check_target("path", path)
    elif not path.parent.is_dir():
        raise_invalid("path", "in an existing folder", repr(str(path)))
    elif path.exists() and not (path / "dataset_info.json").is_file():  # what may be replaced is a data set
        raise_invalid("path", "new, or a data set on disk", repr(str(path)))
    for file in path.iterdir() if path.is_dir() else ():
        if _DATA_SET.fullmatch(file.name) is None:  # it would be removed with the data set
            raise_invalid("path", "a data set and nothing else", f"{str(path)!r}, which holds {file.name!r}")


def write_blocks(
    target: Path, chosen: Format, job: Job, corpus_path: str | None, wrote: Callable[[int], None] | None = None
) -> int:
    """Write all blocks to `target`, by way of a draft, and return the number of rows.

    `corpus_path` is for NeMo's header; `wrote` is called with the number of anchors of each block.
    """

    def columns_of(block: Block) -> Columns:
        return {name: column_of(part, job) for name, part in chosen.columns(block).items()}

    def writer(draft: Path, kind: str) -> AbstractContextManager[Write]:
        if kind not in (".parquet", ".hf"):
            header = {"corpus": {"path": corpus_path}} if kind == ".json" else None
            return json_rows(draft, arrays=chosen.arrays, header=header)
        empty = columns_of(job.block(0, 0))
        return parquet(draft, empty) if kind == ".parquet" else data_set(draft, empty)

    rows = 0
    with draft_of(target, "path") as draft, writer(draft, target.suffix.lower()) as write:
        for block in job.blocks():
            columns = columns_of(block)
            write(columns)
            rows += rows_of(columns)
            if wrote is not None:
                wrote(len(block.anchors))
    return rows


def json_line(row: Any) -> bytes:
    """Return a row as JSON in UTF-8; lone surrogates, and what some readers take for the end of a line, are escaped."""
    text = _ENCODER.encode(row)
    if not text.isascii():
        text = _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode()


@contextmanager
def json_rows(draft: Path, *, arrays: bool, header: dict[str, Any] | None) -> Iterator[Write]:
    """Write one JSON object, or one array, per line; with a header one JSON object, its list "data" the rows."""
    with draft.open("wb", buffering=1 << 20) as stream:
        before, after = (b"", b"\n") if header is None else (b"\n", b"")
        if header is not None:
            stream.write(json_line(header)[:-1] + b', "data": [')

        def write(columns: Columns) -> None:
            nonlocal before
            for values in zip(*(column.values for column in columns.values()), strict=True):
                row = list(values) if arrays else dict(zip(columns, values, strict=True))
                stream.writelines((before, json_line(row), after))
                before = b"" if header is None else b",\n"

        yield write
        stream.write(b"" if header is None else b"\n]}\n")


@contextmanager
def parquet(draft: Path, empty: Columns) -> Iterator[Write]:
    """Write Parquet in row groups of about 32 MB; `empty` are the columns without rows."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(draft, arrow_schema(empty), compression="zstd") as file, _grouped(file, empty) as write:
        yield write


@contextmanager
def data_set(draft: Path, empty: Columns) -> Iterator[Write]:
    """Write a folder for `datasets.load_from_disk`; the rows pass through one Arrow file beside it."""
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
    """Import the package `datasets`; raise with the pip command if it is missing or too old."""
    return need_package("datasets", "4.0")


@contextmanager
def _grouped(file: Any, empty: Columns) -> Iterator[Write]:
    """Collect blocks into larger tables, written by `file.write_table`."""
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
    """Halve the rows until a part has few enough characters, or is one row."""
    rows = rows_of(columns)
    if rows <= 1 or sum(_characters(column) for column in columns.values()) <= _PART:
        if rows:
            yield columns
        return
    for start, stop in ((0, rows // 2), (rows // 2, rows)):
        yield from _parts({name: Column(each.kind, each.values[start:stop]) for name, each in columns.items()})


def _characters(column: Column) -> int:
    """Count the characters of a column."""
    if column.kind == "text":
        return sum(map(len, column.values))
    if column.kind == "texts":
        return sum(map(len, chain.from_iterable(column.values)))
    if column.kind.endswith("passages"):
        return sum(len(passage["text"]) for passage in chain.from_iterable(column.values))
    return 0

"""The rows of a table in a file: Parquet, JSON lines, one JSON document, or a data set on disk; a block at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from naysay.checks import raise_invalid, shown
from naysay.formats._text_lines import decoded, json_blocks, opened
from naysay.formats._whole_files import need_datasets

_ROWS = 4096  # rows of Parquet that are read at a time


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a file.

    Args:
        names: The columns, in order: of the schema, or of the first line; none if lines are JSON arrays.
        first: The first row, as a mapping or an array; None of an empty file.
        arrays: Whether lines are JSON arrays.
        blocks: (numbers, rows): the line, or row, of each, and its values, objects or arrays as `first`.
        where: "line" or "row": what the numbers count.
    """

    path: Path
    names: tuple[str, ...]
    first: Any
    arrays: bool
    blocks: Iterator[tuple[Sequence[int], list[Any]]]
    where: str


def opened_table(path: Path) -> Table:
    """Look at the first row of a file, and be ready to read them all."""
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
    ahead = next(blocks, ([], []))
    first = ahead[1][0] if ahead[1] else None
    arrays = isinstance(first, list)
    if names is None:
        names = tuple(first) if isinstance(first, dict) else ()
    return Table(path, names, first, arrays, _checked(path, ahead, blocks, where, arrays=arrays), where)


def _checked(
    path: Path,
    ahead: tuple[Sequence[int], list[Any]],
    blocks: Iterator[tuple[Sequence[int], list[Any]]],
    where: str,
    *,
    arrays: bool,
) -> Iterator[tuple[Sequence[int], list[Any]]]:
    """All blocks again from the first; a row of another kind is refused with its number."""
    kind, wanted = (list, "a JSON array") if arrays else (dict, "a JSON object")
    block: tuple[Sequence[int], list[Any]] | None = ahead
    while block is not None:
        numbers, rows = block
        if not {*map(type, rows)} <= {kind}:
            place = next(place for place, row in enumerate(rows) if not isinstance(row, kind))
            got = f"{shown(rows[place])} in {where} {numbers[place]} of {path.name}"
            raise_invalid("path", f"a file in which every {where} is {wanted}", got)
        if rows:
            yield numbers, rows
        block = next(blocks, None)


def _parquet(path: Path) -> tuple[tuple[str, ...], Iterator[tuple[Sequence[int], list[Any]]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read() -> Iterator[tuple[Sequence[int], list[Any]]]:
        start = 0
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=_ROWS):
                    yield range(start, start + len(batch)), batch.to_pylist()
                    start += len(batch)
        except (pa.ArrowException, OSError) as error:  # a damaged page is found when its turn comes
            raise_invalid("path", "a file of Parquet", f"{str(path)!r} ({str(error).splitlines()[0]})")

    try:
        names = tuple(pq.read_schema(path).names)
    except FileNotFoundError:
        raise_invalid("path", "an existing file", repr(str(path)))
    except (pa.ArrowException, OSError) as error:
        raise_invalid("path", "a file of Parquet", f"{str(path)!r} ({str(error).splitlines()[0]})")
    return names, read()


def _data_set(path: Path) -> tuple[tuple[str, ...], Iterator[tuple[Sequence[int], list[Any]]]]:
    """A data set on disk, mapped."""
    datasets = need_datasets()
    if not (path / "dataset_info.json").is_file():
        raise_invalid("path", "a data set on disk", repr(str(path)))
    found = datasets.load_from_disk(str(path))

    def read() -> Iterator[tuple[Sequence[int], list[Any]]]:
        for start in range(0, len(found), _ROWS):
            rows = found[start : start + _ROWS]
            names = list(rows)
            values = zip(*rows.values(), strict=True)
            listed = [dict(zip(names, row, strict=True)) for row in values]
            yield range(start, start + len(listed)), listed

    return tuple(found.column_names), read()


def _document(path: Path) -> Iterator[tuple[Sequence[int], list[Any]]]:
    """The list "data" of one JSON object, or a list by itself; the whole file is in memory, as JSON must be."""
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

"""Writers of training files, block by block: JSON, Parquet and data sets. A file appears whole or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay._packages import need_package
from naysay.checks import raise_invalid
from naysay.files import check_target, draft_of
from naysay.formats._contents import Block, Ids, Labels, Scores
from naysay.formats._formats import Format

Write = Callable[[Any], None]  # writes an Arrow table
_FIRST_BLOCK, _MOST_CELLS = 64, 8192  # negatives of a block: a few at first, as texts may be long, then more
_BLOCK_BYTES = 1 << 23  # bytes of a block from which on the next ones do not grow
_GROUP = 1 << 25  # bytes of a row group of Parquet, or of a batch of Arrow
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")  # which end a line for `str.splitlines`: JSON can escape them
_DATA_SET = re.compile(r"(dataset_info|state|dataset_dict)\.json|(data|cache)-[\w-]+\.arrow|indices\.arrow")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All that is written."""

    ids: Ids  # (n, k) negatives, -1 empty
    scores: Scores | None  # (n, k)
    indptr: Ids  # (n + 1,) where the positives of each anchor begin in `items`
    items: Ids  # the positives, without pairs whose relation is "ignore"
    positive_scores: Scores | None  # one for each of `items`
    queries: Labels
    corpus: Labels

    def tables(self, chosen: Format) -> Iterator[tuple[int, Any]]:
        """Yield (anchors, Arrow table) of all anchors in order. An anchor is never split."""
        cells_before = np.cumsum(np.maximum(1, np.diff(self.indptr)) * self.ids.shape[1])
        start, cells = 0, _FIRST_BLOCK
        while start < len(self.ids):
            done = cells_before[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(cells_before, done + cells, side="right")))
            table = chosen.table(self._block(start, stop), self.queries, self.corpus)
            yield stop - start, table
            start = stop
            is_large = table.nbytes > _BLOCK_BYTES
            cells = max(1, cells // 2) if is_large else min(_MOST_CELLS, 2 * cells)

    def schema(self, chosen: Format) -> Any:
        """The columns and their types, which a block without anchors has, too."""
        return chosen.table(self._block(0, 0), self.queries, self.corpus).schema

    def _block(self, start: int, stop: int) -> Block:
        pairs = slice(self.indptr[start], self.indptr[stop])
        return Block(
            anchors=np.arange(start, stop),
            ids=self.ids[start:stop],
            scores=None if self.scores is None else self.scores[start:stop],
            pair_rows=np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1])),
            pair_items=self.items[pairs],
            pair_scores=None if self.positive_scores is None else self.positive_scores[pairs],
        )


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


def write_contents(
    target: Path,
    chosen: Format,
    contents: Contents,
    corpus_path: str | None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write everything to `target`, by way of a draft, and return the number of rows.

    `corpus_path` is for NeMo's header; `on_progress` is called with the number of anchors of each block.
    """
    kind = target.suffix.lower()
    rows = 0
    with draft_of(target, "path") as draft:
        if kind == ".parquet":
            writer = parquet_writer(draft, contents.schema(chosen))
        elif kind == ".hf":
            writer = data_set_writer(draft, contents.schema(chosen))
        elif kind == ".json":
            header = json_line({"corpus": {"path": corpus_path}}).removesuffix(b"}")
            writer = _json(draft, header + b', "data": [\n', b",\n", b"\n]}\n")
        else:
            writer = _json(draft, arrays=chosen.arrays)
        with writer as write:
            for anchors, table in contents.tables(chosen):
                write(table)
                rows += table.num_rows
                on_progress(anchors)
    return rows


# ---- JSON ------------------------------------------------------------------------------------------------------------


def json_line(row: Any) -> bytes:
    """Return a row as JSON in UTF-8, in which what some readers take for the end of a line is escaped."""
    text = _ENCODER.encode(row)
    if not text.isascii():
        text = _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode()


@contextmanager
def _json(
    draft: Path, head: bytes = b"", between: bytes = b"\n", tail: bytes = b"\n", *, arrays: bool = False
) -> Iterator[Write]:
    """Write JSON objects, or arrays, one a line; `head` and `tail` make one document of them."""
    with draft.open("wb", buffering=1 << 20) as stream:
        stream.write(head)
        before = b""

        def write(table: Any) -> None:
            nonlocal before
            for row in _with_short_numbers(table).to_pylist():
                stream.writelines((before, json_line(_as_array(row) if arrays else row)))
                before = between

        yield write
        if before or head:
            stream.write(tail)


def _as_array(row: dict[str, Any]) -> list[Any]:
    """The values of a row; a passage with its score is [passage, score]."""
    return [list(value.values()) if isinstance(value, dict) else value for value in row.values()]


def _with_short_numbers(table: Any) -> Any:
    """The same table with float32 as the shortest decimals that round to them: 0.1, not 0.10000000149011612."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if "float" in str(field.type):
            column = table.column(place)
            for wanted in (pa.string(), pa.float64()):
                column = column.cast(with_types(field.type, {pa.float32(): wanted}))
            table = table.set_column(place, field.name, column)
    return table


def with_types(kind: Any, wanted: Mapping[Any, Any]) -> Any:
    """An Arrow type in which some types are others, also inside of lists and objects."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.list_(with_types(kind.value_type, wanted))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, with_types(field.type, wanted)) for field in kind])
    return wanted.get(kind, kind)


# ---- Parquet and data sets -------------------------------------------------------------------------------------------


@contextmanager
def parquet_writer(draft: Path, schema: Any) -> Iterator[Write]:
    """Write Parquet in row groups of about 32 MB."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(draft, schema, compression="zstd") as file, _grouped(file) as write:
        yield write


@contextmanager
def data_set_writer(draft: Path, schema: Any) -> Iterator[Write]:
    """Write a folder for `datasets.load_from_disk`; the rows pass through one Arrow file beside it."""
    import pyarrow as pa

    datasets = need_datasets()
    stream = draft.with_name(draft.name + ".arrow")
    try:
        with pa.ipc.new_stream(stream, schema) as file, _grouped(file) as write:
            yield write
        data = datasets.Dataset.from_file(str(stream))
        data.save_to_disk(str(draft), num_shards=None if len(data) else 1)  # by default 0 for no rows, not to be read
    finally:
        stream.unlink(missing_ok=True)


@contextmanager
def _grouped(file: Any) -> Iterator[Write]:
    """Collect blocks into larger tables, written by `file.write_table`."""
    import pyarrow as pa

    waiting: list[Any] = []

    def flush() -> None:
        if waiting:
            file.write_table(pa.concat_tables(waiting))
            waiting.clear()

    def write(table: Any) -> None:
        waiting.append(table)
        if sum(part.nbytes for part in waiting) > _GROUP:
            flush()

    yield write
    flush()


def need_datasets() -> Any:
    """Import the package `datasets`; raise with the pip command if it is missing or too old."""
    return need_package("datasets", "4.0")

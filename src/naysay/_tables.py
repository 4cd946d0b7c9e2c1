"""Columns of tables as arrays of ids: Arrow, Parquet and CSV in, whole numbers (and a vocabulary) out."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import as_array, at_row, raise_invalid, shown, shown_names, whole_numbers
from naysay.errors import NaysayWarning
from naysay.files import check_source, raise_unreadable
from naysay.locations import check_table, local, shards
from naysay.text import first_line
from naysay.vocabulary import Vocabulary, ids_of_names

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS = 4096  # rows of a batch
_BATCH = 1 << 22  # bytes of a batch
_PAGE, _PAGE_ROWS = 1.6, 1024  # memory that a page takes while it is read, in its size; and rows of a page
# Usual headings of the first column, the second, and so on, by the number of columns of a text file.
_SOURCES = ("source", "src", "from", "head", "user", "user_id", "node", "node_id", "node1", "subject")
_TARGETS = ("target", "dst", "to", "tail", "item", "item_id", "label", "class", "node2", "object")
_RELATIONS = ("relation", "rel", "predicate", "property", "edge", "type", "label")
_HEADINGS = {2: (_SOURCES, _TARGETS), 3: (_SOURCES, _RELATIONS, _TARGETS)}
Names = Vocabulary | bool | None  # True makes a vocabulary, also of whole numbers


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file so that a page of each column is in memory, not a row group, which can be the whole file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pa.OSFile(os.fsencode(path))  # Arrow itself would read the name as UTF-8, which it need not be
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 16, page_checksum_verification=True)


def parquet_schema(path: Path, parameter: str = "path") -> pa.Schema:
    """Return the Arrow schema of a table; raise if the files of a table have other columns than the first."""
    first: pa.Schema | None = None
    for part in shards(path):
        with open_parquet(part) as file:
            schema = file.schema_arrow
        first = first or schema
        here, there = ({one.name: str(one.type) for one in each} for each in (schema, first))
        for name in (name for name in here | there if here.get(name) != there.get(name)):
            got = f"{name!r} of {here[name]}" if name in here else f"no {name!r}"
            raise_invalid(parameter, f"files with the columns of {shards(path)[0].name!r}", f"{got} in {str(part)!r}")
    return first


def parquet_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a table, or all, in batches of a few megabytes."""
    for part in shards(path):
        yield from _batches(part, columns)


def _batches(path: Path, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The same of one file."""
    import pyarrow as pa

    with open_parquet(path) as file:
        size = 0
        for group in map(file.metadata.row_group, range(file.num_row_groups)):
            leaves = map(group.column, range(group.num_columns))
            used = [one for one in leaves if columns is None or _is_part(one.path_in_schema, columns)]
            size = max(size, sum(one.total_uncompressed_size for one in used) // max(1, group.num_rows))
        rows = min(_ROWS, max(1, _BATCH // max(1, size)))
        for batch in file.iter_batches(rows, columns=columns):
            yield batch
            del batch
            pa.default_memory_pool().release_unused()  # else freed pages stay resident, several times a batch


def check_pages(parameter: str, path: Path, limit: int) -> None:
    """Raise if the first page of each column of a file of a table takes more than `limit` bytes while it is read.

    The usual writers put 1,024 rows or more in a page. Only where so many rows would be too large, a page is read.
    """
    for part in shards(path):
        _check_pages(parameter, part, limit)


def _check_pages(parameter: str, path: Path, limit: int) -> None:
    """The same of one file."""
    import pyarrow as pa

    with open_parquet(path) as file:
        groups = [file.metadata.row_group(place) for place in range(file.num_row_groups)]
        if not any(_PAGE * group.total_byte_size * _PAGE_ROWS > limit * max(1, group.num_rows) for group in groups):
            return
        pool = pa.default_memory_pool()
        before = pool.bytes_allocated()
        reader = file.iter_batches(1)  # which holds its pages
        next(reader, None)
        taken = int(_PAGE * (pool.bytes_allocated() - before))
        del reader
    if taken > limit:
        advice = "Pass a larger --budget, or write the file with smaller pages (pyarrow: write_batch_size=64)."
        rule = f"a file whose pages take at most {limit / 1e6:g}MB"
        raise_invalid(parameter, rule, f"{taken / 1e6:.0f}MB for a page of {str(path)!r}", advice)


def _is_part(leaf: str, columns: list[str]) -> bool:
    """Whether a leaf of the schema belongs to one of the columns."""
    return any(leaf == name or leaf.startswith(f"{name}.") for name in columns)


def read_parquet(path: str | Path, **columns: str | None) -> pa.Table:
    """The named columns of a table, one file or several; `columns` maps a parameter to the column it names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with local("path", path) as file:
        check_columns(parquet_names(file), columns)
        wanted = list(dict.fromkeys(columns.values()))
        parts = (_opened(part, lambda name: pq.ParquetFile(name).read(columns=wanted)) for part in shards(file))
        return pa.concat_tables(parts, promote_options="default")


def parquet_names(path: str | Path) -> list[str]:
    """The names of the columns of a Parquet file."""
    check_table("path", Path(path))
    return list(_opened(path, lambda name: parquet_schema(Path(name)).names))


def csv_names(path: str | Path, delimiter: str) -> list[str]:
    """The names of the columns of a CSV file with a header line."""
    from pyarrow import csv

    with _opened(path, lambda name: csv.open_csv(name, parse_options=csv.ParseOptions(delimiter=delimiter))) as reader:
        return list(_opened(path, lambda _: reader.schema.names))


def read_csv(path: str | Path, delimiter: str, text: Sequence[str | None] = (), **columns: str | None) -> pa.Table:
    """The named columns of a CSV file with a header line; those of `text` as strings even if they look like numbers."""
    import pyarrow as pa
    from pyarrow import csv

    _check_delimiter(delimiter)
    parsing = csv.ParseOptions(delimiter=delimiter)
    with _opened(path, lambda name: csv.open_csv(name, parse_options=parsing)) as reader:
        check_columns(_opened(path, lambda _: reader.schema.names), columns)
    kinds = dict.fromkeys(text, pa.large_string())
    wanted = csv.ConvertOptions(include_columns=list(dict.fromkeys(columns.values())), column_types=kinds)
    return _opened(path, lambda name: csv.read_csv(name, parse_options=parsing, convert_options=wanted))


def read_lines(path: str | Path, delimiter: str, columns: Sequence[str], skip: int = 0) -> pa.Table:
    """All columns of a text file, after `skip` lines, as strings, also if they look like numbers.

    Such files have no header. A first line of usual headings is left out nevertheless, with a NaysayWarning.
    """
    import pyarrow as pa
    from pyarrow import csv

    _check_delimiter(delimiter)
    reading = csv.ReadOptions(column_names=list(columns), skip_rows=skip)
    parsing = csv.ParseOptions(delimiter=delimiter, quote_char=False)
    text = csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.large_string()))
    table = _opened(path, lambda name: csv.read_csv(name, reading, parsing, text))
    return _without_header(table, path)


def _without_header(table: pa.Table, path: str | Path) -> pa.Table:
    """The table without its first row, if that has the usual headings and none of them is a name in another row."""
    import pyarrow.compute as pc

    if table.num_rows < 2:
        return table
    first = [str(column[0]) for column in table.columns]
    headings = _HEADINGS.get(len(first), [()] * len(first))
    usual = all(word.strip().casefold() in known for word, known in zip(first, headings, strict=True))
    rest = zip(first, table.columns, strict=True)
    if not usual or any(pc.index(column, word, start=1).as_py() >= 0 for word, column in rest):
        return table
    line = " ".join(first)
    text = f"{str(path)!r}: the first line, {line!r}, is taken for a header. Remove it, or rename a node of that name."
    warnings.warn(text, NaysayWarning, stacklevel=4)
    return table.slice(1)


def read_json_lines(path: str | Path) -> pa.Table:
    """A file of one JSON object a line, as a table."""
    from pyarrow import json

    return _opened(path, lambda name: json.read_json(name))


def string_column(values: list[str]) -> pa.Array:
    """Strings as a column of Arrow's, as `columns` returns them."""
    import pyarrow as pa

    return pa.array(values, pa.large_string())


def as_table(parameter: str, data: Any) -> pa.Table:
    """A table as one of pyarrow's, by the Arrow PyCapsule interface, which pandas, Polars and DuckDB have, too."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if not hasattr(data, "__arrow_c_stream__"):
        raise_invalid(parameter, "a pyarrow.Table, or another table with __arrow_c_stream__", type(data).__name__)
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:  # columns of mixed types, a stream that was read
        raise_invalid(parameter, "a table that Arrow can read", first_line(error))


def columns(table: Any, **names: str | None) -> dict[str, Any]:
    """The named columns of an Arrow table, each whole: NumPy for numbers, Arrow for strings; no nulls."""
    table = as_table("table", table)
    check_columns(table.column_names, names)
    return {
        parameter: _whole(parameter, f"a column without nulls ({name!r})", table.column(name))
        for parameter, name in names.items()
    }


def _whole(parameter: str, rule: str, column: Any) -> Any:
    """An Arrow column in one piece, without nulls or dictionary: NumPy for numbers, Arrow for strings."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):  # it may have nulls, unused names, or numbers
        if pa.types.is_string_view(column.type.value_type):  # of Polars; pyarrow cannot decode these
            names = column.dictionary.cast(pa.large_string())
            column = pa.DictionaryArray.from_arrays(column.indices, names)
        column = column.dictionary_decode()
    if column.null_count:
        rows = np.flatnonzero(np.asarray(column.is_null()))
        raise_invalid(parameter, rule, at_row("null", rows[0], len(rows)))
    if pa.types.is_string_view(column.type):  # which Polars has
        column = column.cast(pa.large_string())
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return column if is_text else column.to_numpy(zero_copy_only=False)


def encode(parameter: str, values: Any, names: Names = None) -> tuple[NDArray[Any], Vocabulary | None]:
    """Ids as they are; strings by `names`, or else in the order of their first appearance; with the vocabulary.

    With names=True whole numbers are names, too.
    """
    if _is_arrow(values):
        values = _whole(parameter, "without nulls", values)
    if not _is_arrow(values):
        array = as_array(parameter, values)
        text = is_text(array)
        if not text and names is not True:
            return whole_numbers(parameter, array), names or None
        import pyarrow as pa

        values = (
            pa.array(_strings(parameter, array), pa.large_string())
            if text
            else pa.array(whole_numbers(parameter, array))
        )
    if isinstance(names, Vocabulary):
        return ids_of_names(names, parameter, values), names
    encoded = values.dictionary_encode()
    ids: NDArray[Any] = encoded.indices.to_numpy(zero_copy_only=False)
    return ids.astype(np.int64, copy=False), Vocabulary(encoded.dictionary)


def _is_arrow(values: object) -> bool:
    """Whether this is a column of Arrow's. If pyarrow was never imported, it is not."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(values, arrow.Array | arrow.ChunkedArray)


def joined(one: Any, other: Any) -> Any:
    """One column after the other: two of Arrow's, or two of NumPy's."""
    import pyarrow as pa

    if isinstance(one, pa.Array) and isinstance(other, pa.Array):
        return pa.concat_arrays([part.cast(pa.large_string()) for part in (one, other)])
    return np.concatenate([np.asarray(one), np.asarray(other)])


def look_up(parameter: str, values: Any, names: Vocabulary | None) -> NDArray[Any]:
    """Ids as they are; strings by an existing vocabulary."""
    array = as_array(parameter, values)
    if names is None or not is_text(array):
        return whole_numbers(parameter, array)
    return ids_of_names(names, parameter, _strings(parameter, array))


def is_text(column: Any) -> bool:
    """Whether a column, of NumPy or as `columns` returns it, may hold strings: of objects this is not certain."""
    kind = column.dtype.kind if isinstance(column, np.ndarray) else "U"
    return kind in "UT" or (kind == "O" and column.size > 0)


def _strings(parameter: str, array: NDArray[Any]) -> list[str]:
    """An array of text as a list. Raises if it has anything but strings."""
    if array.ndim != 1:
        raise_invalid(parameter, "of shape (n,)", f"shape {array.shape}")
    strings: list[str] = array.tolist()
    kinds = {type(value).__name__ for value in strings if not isinstance(value, str)}
    if kinds:
        got = "values of type " + ", ".join(sorted(kinds))
        raise_invalid(parameter, "whole numbers, or strings throughout", got)
    return strings


def _opened(path: str | Path, reader: Any) -> Any:
    """`reader(path)`. Raises NaysayError if the file is missing or unreadable."""
    import pyarrow as pa

    check_source("path", Path(path))
    try:
        return reader(str(path))
    except FileNotFoundError:
        raise_invalid("path", "an existing file", repr(str(path)))
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError) as error:
        raise_unreadable("path", "a file of that format", Path(path), error)


def _check_delimiter(delimiter: object) -> None:
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise_invalid("delimiter", "one character", shown(delimiter))


def check_columns(present: Sequence[Any], wanted: Mapping[str, str | None]) -> None:
    """Raise if a column is missing, with the nearest name and all there are."""
    for parameter, name in wanted.items():
        if not isinstance(name, str) or name not in present:
            near = difflib.get_close_matches(str(name), present, n=1)
            advice = f"Did you mean {near[0]!r}?" if near else ""
            raise_invalid(parameter, f"one of the columns {shown_names(present)}", shown(name), advice)
        if present.count(name) > 1:
            raise_invalid(parameter, "the name of exactly one column", f"{name!r}, {present.count(name)} times")

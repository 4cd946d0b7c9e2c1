"""Tables: Parquet, CSV, JSON lines and data frames as Arrow, in blocks, and their columns as arrays of ids.

An error names the parameter that the file was passed as, and the line or row. All text must be UTF-8.
"""

from __future__ import annotations

import difflib
import gzip
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import as_array, at_row, check_one_of, raise_invalid, shown, shown_names, whole_numbers
from naysay.errors import MissingExtraError, NaysayError, NaysayWarning
from naysay.files import check_source, raise_unreadable
from naysay.places import check_table, local, shards, table_suffix
from naysay.text import first_line
from naysay.vocabulary import Vocabulary, ids_of_names

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Names = Vocabulary | bool | None  # True makes a vocabulary, also of whole numbers
_ROWS = 4096  # rows of a batch, at most
_STREAMED_ROWS = 10_000  # rows of a block of a data set that is streamed
_BYTES = 1 << 22  # bytes of a batch, about
_PAGE_MEMORY = 1.6  # memory that a page of Parquet takes while it is read, in its size
_PAGE_ROWS = 1024  # rows of a page that the usual writers make, at least
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors put before the first line
_WHOLE = "a file that can be read to its end"
_KINDS = ".parquet, .jsonl (also .gz), .csv and .tsv are read."
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
# Usual headings of the first column, the second, and so on, by the number of columns of a text file.
_SOURCES = ("source", "src", "from", "head", "user", "user_id", "node", "node_id", "node1", "subject")
_TARGETS = ("target", "dst", "to", "tail", "item", "item_id", "label", "class", "node2", "object")
_RELATIONS = ("relation", "rel", "predicate", "property", "edge", "type", "label")
_HEADINGS = {2: (_SOURCES, _TARGETS), 3: (_SOURCES, _RELATIONS, _TARGETS)}


@contextmanager
def reading(parameter: str, path: str | Path, rule: str = "a file of that format") -> Iterator[None]:
    """Turn any error of a reader into one sentence. A damaged file raises many kinds of errors, often late."""
    check_source(parameter, Path(path))
    try:
        yield
    except (NaysayError, MissingExtraError):
        raise
    except FileNotFoundError:
        raise_invalid(parameter, "an existing file", repr(str(path)))
    except UnicodeDecodeError as error:
        raise_unreadable(parameter, "a file with text in UTF-8", Path(path), error)
    except Exception as error:
        raise_unreadable(parameter, rule, Path(path), error)


# ---- Parquet ---------------------------------------------------------------------------------------------------------


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
        here, there = ({field.name: str(field.type) for field in each} for each in (schema, first))
        for name in (name for name in here | there if here.get(name) != there.get(name)):
            got = f"{name!r} of {here[name]}" if name in here else f"no {name!r}"
            raise_invalid(parameter, f"files with the columns of {shards(path)[0].name!r}", f"{got} in {str(part)!r}")
    return first


def parquet_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a table, or all, in batches of a few megabytes."""
    import pyarrow as pa

    for part in shards(path):
        with open_parquet(part) as file:
            rows = min(_ROWS, max(1, _BYTES // _bytes_per_row(file.metadata, columns)))
            for batch in file.iter_batches(rows, columns=columns):
                yield batch
                del batch
                pa.default_memory_pool().release_unused()  # else freed pages stay resident, several times a batch


def _bytes_per_row(metadata: Any, columns: list[str] | None) -> int:
    """The mean bytes of a row in some columns, of the row group where it is the most."""
    most = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        leaves = map(group.column, range(group.num_columns))
        used = [leaf for leaf in leaves if columns is None or leaf.path_in_schema.startswith(tuple(columns))]
        most = max(most, sum(leaf.total_uncompressed_size for leaf in used) // max(1, group.num_rows))
    return most


def check_memory(parameter: str, path: Path, limit: int) -> None:
    """Raise if the first page of each column of a Parquet file takes more than `limit` bytes while it is read.

    Only where the rows of a usual page would be too large, a page is read. Other files are read by lines.
    """
    import pyarrow as pa

    parts = shards(path) if _kind(path) == ".parquet" else []
    for part in parts if all(part.is_file() for part in parts) else ():
        with reading(parameter, path, _WHOLE), open_parquet(part) as file:
            if _PAGE_MEMORY * _PAGE_ROWS * _bytes_per_row(file.metadata, None) <= limit:
                continue
            pool = pa.default_memory_pool()
            before = pool.bytes_allocated()
            reader = file.iter_batches(1)  # which holds its pages
            next(reader, None)
            taken = int(_PAGE_MEMORY * (pool.bytes_allocated() - before))
            del reader
        if taken > limit:
            advice = "Pass a larger --budget, or write the file with smaller pages (pyarrow: write_batch_size=64)."
            rule = f"a file whose pages take at most {limit / 1e6:g}MB"
            raise_invalid(parameter, rule, f"{taken / 1e6:.0f}MB for a page of {str(part)!r}", advice)


def parquet_names(path: str | Path) -> list[str]:
    """The names of the columns of a Parquet file."""
    check_table("path", Path(path))
    with reading("path", path):
        return list(parquet_schema(Path(path)).names)


def read_parquet(path: str | Path, **columns: str | None) -> pa.Table:
    """The named columns of a table, one file or several; `columns` maps a parameter to the column it names."""
    import pyarrow as pa

    with local("path", path) as file:
        check_columns(parquet_names(file), columns)
        wanted = [name for name in dict.fromkeys(columns.values()) if name is not None]
        with reading("path", file):
            read = [pa.table(batch.select(wanted)) for batch in parquet_batches(file, wanted)]
            empty = parquet_schema(file).empty_table().select(wanted)
            return pa.concat_tables([empty, *read], promote_options="default")


# ---- Text files ------------------------------------------------------------------------------------------------------


def _csv(path: str | Path, delimiter: str, columns: Sequence[str] | None = None, text: Sequence[str] = ()) -> Any:
    """Return a reader of CSV with a header line: some columns, of which those of `text` are read as strings."""
    import pyarrow as pa
    from pyarrow import csv

    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise_invalid("delimiter", "one character", shown(delimiter))
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    kinds = dict.fromkeys(text, pa.large_string())
    wanted = csv.ConvertOptions(include_columns=columns, column_types=kinds)
    return csv.open_csv(str(path), parse_options=parsing, convert_options=wanted)


def csv_names(path: str | Path, delimiter: str) -> list[str]:
    """The names of the columns of a CSV file with a header line."""
    with reading("path", path), _csv(path, delimiter) as reader:
        return list(reader.schema.names)


def read_csv(path: str | Path, delimiter: str, text: Sequence[str | None] = (), **columns: str | None) -> pa.Table:
    """The named columns of a CSV file with a header line; those of `text` as strings even if they look like numbers."""
    check_columns(csv_names(path, delimiter), columns)
    wanted = [name for name in dict.fromkeys(columns.values()) if name is not None]
    with reading("path", path), _csv(path, delimiter, wanted, [name for name in text if name]) as reader:
        return reader.read_all()


def read_lines(path: str | Path, delimiter: str, columns: Sequence[str], skip: int = 0) -> pa.Table:
    """All columns of a text file, after `skip` lines, as strings, also if they look like numbers.

    Such files have no header. A first line of usual headings is left out nevertheless, with a NaysayWarning.
    """
    import pyarrow as pa
    from pyarrow import csv

    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise_invalid("delimiter", "one character", shown(delimiter))
    options = csv.ReadOptions(column_names=list(columns), skip_rows=skip)
    parsing = csv.ParseOptions(delimiter=delimiter, quote_char=False)
    text = csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.large_string()))
    with reading("path", path):
        table = csv.read_csv(str(path), options, parsing, text)
    return _without_header(table, path)


def _without_header(table: pa.Table, path: str | Path) -> pa.Table:
    """The table without its first row, if that has the usual headings and none of them is a name in another row."""
    import pyarrow.compute as pc

    if table.num_rows < 2 or table.num_columns not in _HEADINGS:
        return table
    first = [str(column[0]) for column in table.columns]
    usual = zip(first, _HEADINGS[len(first)], strict=True)
    if not all(word.strip().casefold() in known for word, known in usual):
        return table
    if any(pc.index(column, word, start=1).as_py() >= 0 for word, column in zip(first, table.columns, strict=True)):
        return table
    line = " ".join(first)
    text = f"{str(path)!r}: the first line, {line!r}, is taken for a header. Remove it, or rename a node of that name."
    warnings.warn(text, NaysayWarning, stacklevel=4)
    return table.slice(1)


def read_json_lines(path: str | Path) -> pa.Table:
    """A file of one JSON object a line, as a table."""
    from pyarrow import json as arrow_json

    with reading("path", path):
        return arrow_json.read_json(str(path))


def line_blocks(path: Path, parameter: str = "path") -> Iterator[tuple[list[int], list[str]]]:
    """Yield blocks of (numbers, lines) of a file, plain or .gz, counted from 1, without blank lines."""
    count = 0
    with reading(parameter, path, "a whole file"), _opened(path) as stream:
        while lines := stream.readlines(_BYTES):
            if count == 0:
                lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
            kept = [(number, line.decode()) for number, line in enumerate(lines, count + 1) if not line.isspace()]
            count += len(lines)
            if kept:
                yield [number for number, _ in kept], [line for _, line in kept]


def _opened(path: Path) -> Any:
    return gzip.GzipFile(path, "rb") if path.suffix == ".gz" else path.open("rb")


def json_blocks(path: Path, parameter: str = "path") -> Iterator[tuple[list[int], list[Any]]]:
    """Yield blocks of (numbers, values), one JSON value per line."""
    for numbers, lines in line_blocks(path, parameter):
        values: list[Any] = []
        try:
            values.extend(map(json.loads, lines))
        except (ValueError, RecursionError) as error:
            what = first_line(error)
            if isinstance(error, json.JSONDecodeError):
                what = f"{error.msg} at character {error.pos}"
            got = f"{what} in line {numbers[len(values)]} of {path.name}"
            raise_invalid(parameter, "a file of one JSON value a line", got)
        yield numbers, values


def json_document(path: Path) -> list[Any]:
    """Return the list "data" of one JSON object, or a list by itself; the whole file is in memory."""
    with reading("path", path, "a whole file"), _opened(path) as stream:
        text = stream.read().removeprefix(_BYTE_ORDER_MARK).decode()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise_invalid("path", "a file of one JSON object", f"{first_line(error)} in {path.name}")
    rows = document.get("data") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise_invalid("path", 'a file of one JSON object with a list "data"', f"{shown(rows)} in {path.name}")
    return rows


# ---- Files of any kind -----------------------------------------------------------------------------------------------


def _kind(path: Path) -> str:
    """The ending of a file without .gz; .parquet for a folder of files."""
    return path.with_suffix("").suffix.lower() if path.suffix == ".gz" else table_suffix(path)


def column_names(parameter: str, path: Path) -> list[str]:
    """Return the columns of a table; those of the first line for JSON lines."""
    check_table(parameter, path, _KINDS)
    kind = _kind(path)
    if kind not in (".parquet", ".jsonl", *_DELIMITERS) or (kind != ".jsonl" and path.suffix == ".gz"):
        raise_invalid(parameter, "a table", repr(str(path)), _KINDS)
    if kind == ".jsonl":
        return list(next(_objects(parameter, path), [{}])[0])
    with reading(parameter, path, _WHOLE):
        if kind == ".parquet":
            return list(parquet_schema(path, parameter).names)
        with _csv(path, _DELIMITERS[kind]) as reader:
            return list(reader.schema.names)


def batches(parameter: str, path: Path, columns: list[str], optional: Sequence[str] = ()) -> Iterator[list[list[Any]]]:
    """Yield the values of some columns, a batch of rows at a time; raise for a missing value, with its row.

    Columns that are `optional` may have missing values. All values of CSV are strings: ids such as 007 are no numbers.
    """
    start = 0
    for batch in _column_batches(parameter, path, columns):
        for name, values in zip(columns, batch, strict=True):
            if None in values and name not in optional:
                got = f"nothing in {name!r} at row {start + values.index(None)}"
                raise_invalid(parameter, f"a file with a value in every row of {name!r}", got)
        start += len(batch[0])
        yield batch


def _column_batches(parameter: str, path: Path, columns: list[str]) -> Iterator[list[list[Any]]]:
    kind = _kind(path)
    if kind == ".jsonl":
        for rows in _objects(parameter, path):
            yield [[row.get(name) for row in rows] for name in columns]
        return
    with reading(parameter, path, _WHOLE):
        if kind == ".parquet":
            found: Iterable[Any] = parquet_batches(path, columns)
        else:
            found = _csv(path, _DELIMITERS[kind], columns, columns)
        for batch in found:
            yield [batch.column(name).to_pylist() for name in columns]


def _objects(parameter: str, path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield blocks of JSON objects, one per line."""
    for numbers, rows in json_blocks(path, parameter):
        check_rows(parameter, path, dict, "line", numbers, rows)
        yield rows


def check_rows(parameter: str, path: Path, kind: type, where: str, numbers: Sequence[int], rows: list[Any]) -> None:
    """Raise unless all rows are JSON objects (dict), or all are arrays (list)."""
    if {*map(type, rows)} <= {kind}:
        return
    place = next(place for place, row in enumerate(rows) if not isinstance(row, kind))
    wanted = "a JSON array" if kind is list else "a JSON object"
    got = f"{shown(rows[place])} in {where} {numbers[place]} of {path.name}"
    raise_invalid(parameter, f"a file in which every {where} is {wanted}", got)


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


# ---- Columns ---------------------------------------------------------------------------------------------------------


def check_columns(present: Sequence[Any], wanted: Mapping[str, str | None]) -> None:
    """Raise if a column is missing, with the nearest name and all there are."""
    for parameter, name in wanted.items():
        if not isinstance(name, str) or name not in present:
            near = difflib.get_close_matches(str(name), present, n=1)
            advice = f"Did you mean {near[0]!r}?" if near else ""
            raise_invalid(parameter, f"one of the columns {shown_names(present)}", shown(name), advice)
        if present.count(name) > 1:
            raise_invalid(parameter, "the name of exactly one column", f"{name!r}, {present.count(name)} times")


def columns(table: Any, **names: str | None) -> dict[str, Any]:
    """The named columns of a table, each whole: NumPy for numbers, Arrow for strings; no nulls."""
    arrow = as_table("table", table, names)
    return {
        parameter: _whole(parameter, f"a column without nulls ({name!r})", arrow.column(name))
        for parameter, name in names.items()
    }


def as_table(parameter: str, data: Any, names: Mapping[str, str | None]) -> pa.Table:
    """The named columns of a table as pyarrow's, by the Arrow PyCapsule interface.

    pandas, Polars, DuckDB and others have it. A data set of Hugging Face is asked for Arrow, streamed or not.
    """
    import pyarrow as pa

    if is_data_set(data):
        check_columns(data_set_columns(data), names)
        return data_set_table(data, list(dict.fromkeys(names.values())))
    if not hasattr(data, "__arrow_c_stream__"):
        advice = ""
        if isinstance(data, Mapping) and any(hasattr(split, "with_format") for split in data.values()):
            advice = f"Choose a split: table[{next(iter(data))!r}]."
        elif hasattr(data, "collect"):
            advice = "Pass the result of collect()."
        raise_invalid(parameter, "a table with __arrow_c_stream__", type(data).__name__, advice)
    if hasattr(data, "reset_index"):  # a data frame of pandas: other columns, and its index, may be of mixed types
        check_columns(list(data.columns), names)
        data = data[list(dict.fromkeys(names.values()))].reset_index(drop=True)
    try:
        found = data if isinstance(data, pa.Table) else pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:  # columns of mixed types, a stream that was read
        raise_invalid(parameter, "a table that Arrow can read", first_line(error))
    check_columns(found.column_names, names)
    return found


def is_data_set(data: Any) -> bool:
    """Whether this is a `datasets.Dataset`, or an `IterableDataset`, which is streamed."""
    has_splits = isinstance(data, Mapping)
    return hasattr(data, "with_format") and hasattr(data, "select_columns") and not has_splits


def data_set_columns(data: Any) -> list[str]:
    """The names of the columns of a data set; if it is streamed, its first row may be read for them."""
    if data.column_names is not None:
        return list(data.column_names)
    return list(next(iter(data.take(1)), {}))


def data_set_table(data: Any, names: Sequence[Any]) -> pa.Table:
    """The named columns of a data set, rows as selected and shuffled; one that is streamed is read once, in blocks."""
    import pyarrow as pa

    chosen = data.select_columns(list(names)).with_format("arrow")
    if hasattr(data, "__len__"):
        return chosen[:]
    blocks = list(chosen.iter(batch_size=_STREAMED_ROWS))
    return pa.concat_tables(blocks) if blocks else pa.table({name: pa.array([], pa.large_string()) for name in names})


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


def string_column(values: list[str]) -> pa.Array:
    """Strings as a column of Arrow's, as `columns` returns them."""
    import pyarrow as pa

    return pa.array(values, pa.large_string())


def joined(one: Any, other: Any) -> Any:
    """One column after the other: two of Arrow's, or two of NumPy's."""
    import pyarrow as pa

    if isinstance(one, pa.Array) and isinstance(other, pa.Array):
        return pa.concat_arrays([part.cast(pa.large_string()) for part in (one, other)])
    return np.concatenate([np.asarray(one), np.asarray(other)])


def is_text(column: Any) -> bool:
    """Whether a column, of NumPy or as `columns` returns it, may hold strings: of objects this is not certain."""
    kind = column.dtype.kind if isinstance(column, np.ndarray) else "U"
    return kind in "UT" or (kind == "O" and column.size > 0)


def encode(parameter: str, values: Any, names: Names = None) -> tuple[NDArray[Any], Vocabulary | None]:
    """Ids as they are; strings by `names`, or else in the order of their first appearance; with the vocabulary.

    With names=True whole numbers are names, too.
    """
    if _is_arrow(values):
        values = _whole(parameter, "without nulls", values)
    if not _is_arrow(values):
        array = as_array(parameter, values)
        if not is_text(array) and names is not True:
            return whole_numbers(parameter, array), names or None
        import pyarrow as pa

        if is_text(array):
            values = string_column(_strings(parameter, array))
        else:
            values = pa.array(whole_numbers(parameter, array))
    if isinstance(names, Vocabulary):
        return ids_of_names(names, parameter, values), names
    encoded = values.dictionary_encode()
    ids: NDArray[Any] = encoded.indices.to_numpy(zero_copy_only=False)
    return ids.astype(np.int64, copy=False), Vocabulary(encoded.dictionary)


def _is_arrow(values: object) -> bool:
    """Whether this is a column of Arrow's. If pyarrow was never imported, it is not."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(values, arrow.Array | arrow.ChunkedArray)


def look_up(parameter: str, values: Any, names: Vocabulary | None) -> NDArray[Any]:
    """Ids as they are; strings by an existing vocabulary."""
    array = as_array(parameter, values)
    if names is None or not is_text(array):
        return whole_numbers(parameter, array)
    return ids_of_names(names, parameter, _strings(parameter, array))


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

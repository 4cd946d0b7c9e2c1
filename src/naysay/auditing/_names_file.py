"""The names of vectors' rows, in a file: one a line, or the only column of a table."""

from __future__ import annotations

from pathlib import Path

from naysay.checks import raise_invalid
from naysay.formats._table_files import batches, column_names


def read_names(parameter: str, path: Path) -> list[str]:
    """The names in order: the lines of a .txt file, or the column of a .parquet, .jsonl, .csv or .tsv file."""
    if path.suffix.lower() != ".txt":
        columns = column_names(parameter, path)
        if len(columns) != 1:
            raise_invalid(parameter, "a file with one column", f"{len(columns)} in {str(path)!r}")
        return [str(value) for (values,) in batches(parameter, path, columns) for value in values]
    if not path.is_file():
        raise_invalid(parameter, "an existing file", repr(str(path)))
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]

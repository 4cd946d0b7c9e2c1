"""Files of the five domains: which file is which part, columns as ids, and .npz files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from naysay import tables
from naysay.checks import raise_invalid, shown_names
from naysay.errors import NaysayError
from naysay.files import as_path, check_file, raise_unreadable
from naysay.lab._domain import Ids
from naysay.tables import batches, chosen_column, column_names
from naysay.vocabulary import Vocabulary

File = str | Path


def part_files(path: File, validation: File | None, test: File | None) -> dict[str, Path]:
    """{parameter: file} of the parts that are given. Validation alone is an error."""
    if validation is not None and test is None:
        raise_invalid("test", "given along with `validation`", "nothing")
    given = {"path": path, "validation": validation, "test": test}
    return {name: as_path(name, file) for name, file in given.items() if file is not None}


def left_out(why: str, **options: Any) -> None:
    """Raise if one of some options is given."""
    for name, value in options.items():
        if value is not None:
            raise_invalid(name, f"left out {why}", repr(str(value)))


def ids_of(parameter: str, columns: Sequence[Any], *, numbers: bool = True) -> tuple[list[Ids], Vocabulary | None]:
    """Several columns as ids over the same names, in the order of their first appearance, and the names.

    With `numbers`, whole numbers are names, too.
    """
    ids, names = tables.encode(parameter, reduce(tables.joined, columns), True if numbers else None)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return np.split(ids.astype(np.int64), ends), names


def text_lines(parameter: str, path: Path, names: Sequence[str], delimiter: str | None = None) -> list[Any]:
    """The columns of a text file without headings, as strings.

    Without a delimiter it is that of the first line; lines at the beginning that start with # are skipped.
    """
    check_file(parameter, path)
    skip = 0
    if delimiter is None:
        delimiter, skip = _delimiter(parameter, path)
    try:
        table = tables.read_lines(path, delimiter, names, skip)
    except NaysayError as error:
        error.args = (error.args[0].replace("`path`", f"`{parameter}`"),)
        raise
    return [*tables.columns(table, **{name: name for name in names}).values()]


def _delimiter(parameter: str, path: Path) -> tuple[str, int]:
    """What separates the columns of a text file, and the number of comments before them."""
    skip, first = 0, ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not line.startswith("#"):
                first = line.strip()
                break
            skip += 1
    delimiter = next((mark for mark in "\t, " if mark in first), None)
    if delimiter is None:
        raise_invalid(parameter, "two names in each line, separated by a tab, a comma or a space", repr(first))
    return delimiter, skip


def read_npz(path: Path) -> dict[str, Any]:
    """All arrays of an .npz file."""
    check_file("path", path)
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise_unreadable("path", "an .npz file of arrays", path, error)


def usual_column(
    parameter: str, path: Path, usual: Sequence[str], place: int | None, taken: Sequence[str] = ()
) -> str | None:
    """The column of a table with one of the usual names, or at a place; None if it is not there, or taken."""
    name = chosen_column(parameter, column_names(parameter, path), "", tuple(usual), place)
    return None if name in taken else name


def needed_column(parameter: str, path: Path, usual: Sequence[str], place: int | None, taken: Sequence[str]) -> str:
    """The same, or an error."""
    name = usual_column(parameter, path, usual, place, taken)
    if name is None:
        rule = f"a table with a column named {' or '.join(usual[:2])}"
        raise_invalid(parameter, rule, f"columns {shown_names(column_names(parameter, path))}")
    return name


def string_columns(parameter: str, path: Path, names: list[str]) -> list[list[str]]:
    """Columns of a table as strings."""
    columns: list[list[str]] = [[] for _ in names]
    for batch in batches(parameter, path, names):
        for column, values in zip(columns, batch, strict=True):
            column += map(str, values)
    return columns

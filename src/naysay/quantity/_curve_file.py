"""Read a curve of AUCs from the command line: numbers, or a CSV, JSON or NumPy file."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from naysay.checks import check_one_of, is_number, raise_invalid, shown
from naysay.files import first_line, read_array
from naysay.quantity.separation import Floats

_NAMES = ("val_auc", "auc")  # in this order, where a file has both


def read_curve(text: str, column: str = "") -> Floats:
    """Return the (T,) AUCs of `text`: numbers separated by commas, or the name of a file.

    A file that ends in .json holds a list of numbers, one that ends in .npy an array (T,); any other is CSV.

    Args:
        text: The numbers, or the path.
        column: The column of a CSV file with several; by default val_auc or auc. Without a header the columns are
            called 1, 2 and so on.

    Examples:
        >>> read_curve("0.52, 0.61,0.66").tolist()
        [0.52, 0.61, 0.66]
    """
    kind = Path(text).suffix.lower()
    if _number(text.split(",")[0]) is not None:
        kind = "numbers"
    elif not _is_file(text):
        raise_invalid("val_auc", "an existing file, or numbers separated by commas", shown(text))
    if column and kind in ("numbers", ".json", ".npy"):
        raise_invalid("column", "left out, unless `val_auc` is a CSV file", shown(column))
    if kind == "numbers":
        return _checked(list(enumerate(text.split(","), 1)), "place")
    if kind == ".npy":
        return _from_numpy(text)
    if kind == ".json":
        return _from_json(text)
    return _from_csv(text, column)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # a name that is too long for any file
        return False


def _from_csv(path: str, column: str) -> Floats:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise_invalid("val_auc", "a readable CSV file", f"{shown(path)} ({first_line(error)})")
    rows = [(line, cells) for line, cells in rows if any(cells)]
    if not rows:
        raise_invalid("val_auc", "a file with at least one AUC", f"{shown(path)}, which is empty")
    first = rows[0][1]
    has_header = any(_number(cell) is None for cell in first)
    names = first if has_header else [str(place) for place in range(1, len(first) + 1)]
    chosen = _column(names, column)
    values = [(line, cells[chosen] if chosen < len(cells) else "") for line, cells in rows[has_header:]]
    if not values:
        raise_invalid("val_auc", "a file with at least one AUC", f"{shown(path)}, which has a header only")
    return _checked(values, "line")


def _column(names: list[str], wanted: str) -> int:
    """The place of the column to read."""
    if wanted:
        check_one_of("column", wanted, names)
        if names.count(wanted) > 1:
            raise_invalid("column", "the name of exactly one column", f"{wanted!r}, {names.count(wanted)} times")
        return names.index(wanted)
    if len(names) == 1:
        return 0
    lower = [name.lower() for name in names]
    usual = [lower.index(name) for name in _NAMES if lower.count(name) == 1]
    if not usual:
        got = "columns " + ", ".join(map(repr, names))
        raise_invalid("val_auc", "one column, or one that is named auc or val_auc", got, "Choose one with `column`.")
    return usual[0]


def _from_json(path: str) -> Floats:
    try:
        values: Any = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise_invalid("val_auc", "a readable JSON file", f"{shown(path)} ({first_line(error)})")
    if not isinstance(values, list) or not values:
        raise_invalid("val_auc", "a JSON list of at least one AUC", shown(values))
    if not all(map(is_number, values)):
        raise_invalid("val_auc", "a JSON list of numbers", shown(values))
    return _checked([(place, repr(value)) for place, value in enumerate(values, 1)], "place")


def _from_numpy(path: str) -> Floats:
    try:
        values = read_array(Path(path))
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        raise_invalid("val_auc", "a readable NumPy file", f"{shown(path)} ({first_line(error)})")
    if values.ndim != 1 or values.dtype.kind not in "iuf" or not values.size:
        raise_invalid("val_auc", "an array (T,) of at least one number", f"shape {values.shape} of {values.dtype}")
    return _checked([(place, repr(value)) for place, value in enumerate(values.tolist(), 1)], "place")


def _checked(values: Sequence[tuple[int, str]], what: str) -> Floats:
    """Return the values as floats, or raise with the first that is not an AUC and how many there are."""
    floats = [_number(value) for _, value in values]
    bad = [row for row, value in enumerate(floats) if value is None or not 0 <= value <= 1]
    if bad:
        place, value = values[bad[0]]
        raise_invalid(
            "val_auc",
            "numbers between 0 and 1",
            f"{shown(value)} at {what} {place} ({len(bad)} such {what}{'s'[: len(bad) > 1]})",
        )
    return np.array(floats, np.float64)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

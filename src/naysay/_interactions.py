"""Files of interactions: tables with or without a header, and lists of items for each user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import tables
from naysay.checks import as_floats, check_number, raise_invalid, shown, shown_names
from naysay.files import check_file

SUFFIXES = {".parquet": "", ".jsonl": "", ".csv": ",", ".tsv": "\t", ".inter": "\t", ".data": "\t", ".txt": ""}
_COLUMNS = {
    "user": ("user", "user_id", "userid", "uid", "anchor"),
    "item": ("item", "item_id", "itemid", "iid", "movie_id", "movieid", "product_id", "business_id", "positive"),
    "time": ("time", "timestamp", "ts", "date"),
    "rating": ("rating", "stars", "score"),
}
_WITHOUT_HEADER = ("user", "item", "rating", "time")  # the order of MovieLens's u.data
_HIGHEST_RATING = 1e6  # a third column without a heading is of ratings if all are below this, else of times


def read_interaction_file(parameter: str, path: Path, text: Sequence[str] = ()) -> tuple[dict[str, Any], str]:
    """({user, item, and time and rating if there are any: column}, sentence) of a file; those of `text` as strings.

    The sentence says what was taken for what; it is empty if the file has headings.

    .parquet, .jsonl, .csv, .tsv, .inter   a table with headings
    .csv, .tsv, .data, .txt                without headings: user, item, and if there are any rating and time
    .txt                                   lines "user item item ...", separated by spaces, as LightGCN has them
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise_invalid(parameter, f"a file that ends in {', '.join(SUFFIXES)}", repr(str(path)))
    check_file(parameter, path)
    delimiter = SUFFIXES[suffix]
    if suffix == ".txt":
        first = _first_line(parameter, path)
        delimiter = next((mark for mark in "\t," if mark in first), "")
        if not delimiter:
            return _item_lists(parameter, path), f"{path.name} was read as lines of a user and the user's items."
    if delimiter and suffix != ".inter":
        found = _without_header(parameter, path, delimiter)
        if found is not None:
            return found, f"{path.name} has no headings: its columns were taken as {', '.join(found)}."
    return _with_header(parameter, path, delimiter, text), ""


def _with_header(parameter: str, path: Path, delimiter: str, text: Sequence[str]) -> dict[str, Any]:
    """The columns of a table, found by their headings."""
    whole = None
    if path.suffix.lower() == ".jsonl":
        whole = tables.read_json_lines(path)
        present = whole.column_names
    else:
        present = tables.parquet_names(path) if not delimiter else tables.csv_names(path, delimiter)
    plain = {heading.partition(":")[0].strip().casefold(): heading for heading in present}
    found = {}
    for name, known in _COLUMNS.items():
        heading = next((plain[one] for one in known if one in plain), None)
        if heading is not None:
            found[name] = heading
        elif name in ("user", "item"):
            rule = f"a table with a column named {' or '.join(known[:2])}"
            raise_invalid(parameter, rule, f"columns {shown_names(present)}")
    kinds = [found[name] for name in text]
    if whole is None:
        whole = tables.read_csv(path, delimiter, kinds, **found) if delimiter else tables.read_parquet(path, **found)
    if not whole.num_rows:
        raise_invalid(parameter, "a table with rows", "none")
    return tables.columns(whole, **found)


def _first_line(parameter: str, path: Path) -> str:
    with tables.reading(parameter, path), path.open(encoding="utf-8-sig") as lines:
        return next(lines, "").rstrip("\r\n")


def _without_header(parameter: str, path: Path, delimiter: str) -> dict[str, Any] | None:
    """The columns of a table by their places; None if its first line is a header.

    The first line is a row if it begins with two numbers, or if its user or item is that of another row, too, and it
    has no heading of a user or an item.
    """
    cells = [cell.strip().strip('"') for cell in _first_line(parameter, path).split(delimiter)]
    headings = {cell.partition(":")[0].strip().casefold() for cell in cells}
    if not 2 <= len(cells) <= len(_WITHOUT_HEADER) or headings & {*_COLUMNS["user"], *_COLUMNS["item"]}:
        return None
    names = _WITHOUT_HEADER[: len(cells)]
    read = tables.columns(tables.read_lines(path, delimiter, names), **{name: name for name in names})
    starts_with_numbers = all(cell.isdecimal() for cell in cells[:2])
    recurs = any((np.asarray(read[name]) == cell).sum() > 1 for name, cell in zip(names[:2], cells, strict=False))
    if not starts_with_numbers and not recurs:
        return None
    for name in names[2:]:
        try:
            read[name] = np.asarray(read[name]).astype(np.float64)
        except ValueError:
            raise_invalid(
                parameter, f"a table with headings, or with numbers as {name}", repr(cells[names.index(name)])
            )
    if len(names) == 3 and (read["rating"] >= _HIGHEST_RATING).any():
        read["time"] = read.pop("rating")
    return read


def _item_lists(parameter: str, path: Path) -> dict[str, Any]:
    """The pairs of a file of lines "user item item ...", as strings. A user without items has no pair."""
    users: list[str] = []
    items: list[str] = []
    with tables.reading(parameter, path), path.open(encoding="utf-8-sig") as lines:
        for line in lines:
            user, *items_of_user = line.split() or [""]
            users += [user] * len(items_of_user)
            items += items_of_user
    if not users:
        raise_invalid(parameter, 'lines "user item item ...", separated by spaces', "no line with an item")
    return {"user": tables.string_column(users), "item": tables.string_column(items)}


def liked_rows(part: dict[str, Any], least: float) -> dict[str, Any]:
    """The rows with a high rating."""
    if "rating" not in part:
        raise_invalid("liked", "left out for a table without a column of ratings", least)
    kept = as_floats("rating", np.asarray(part["rating"])) >= least
    if not kept.any():
        raise_invalid("liked", "at most the highest rating", least, "Every rating is lower.")
    return rows_of(part, kept)


def as_times(column: Any) -> NDArray[Any]:
    """A column of times as numbers: microseconds for dates and times of Arrow or NumPy, or as text."""
    values = np.asarray(column)
    if values.dtype.kind in "MOUT":
        try:
            values = values.astype("datetime64[us]")
        except ValueError:
            raise_invalid("time", "numbers, dates or times", repr(str(values[0])))
    return values.astype(np.int64) if values.dtype.kind == "M" else values


def earlier(times: Any, before: Any) -> NDArray[np.bool_]:
    """Which times are earlier than `before`, which is read as they are: numbers with numbers, dates with dates."""
    values = as_times(times)
    if np.asarray(times).dtype.kind in "iuf":
        return np.asarray(values < check_number("before", before))
    try:
        limit = np.datetime64(before, "us").astype(np.int64)
    except (ValueError, TypeError):
        raise_invalid("before", "a date or a time, like the column of times", shown(before))
    return np.asarray(values < limit)


def rows_of(part: dict[str, Any], kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Some rows of all columns."""
    places = np.flatnonzero(kept)
    return {name: values.take(places) for name, values in part.items()}

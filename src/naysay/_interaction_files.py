"""Files of interactions: Parquet, CSV and the atomic files of RecBole, with columns found by their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import _tables as tables
from naysay.checks import as_floats, raise_invalid, shown_names
from naysay.files import check_file

SUFFIXES = {".parquet": "", ".csv": ",", ".tsv": "\t", ".inter": "\t"}
_COLUMNS = {
    "user": ("user", "user_id", "userid", "uid", "anchor"),
    "item": ("item", "item_id", "itemid", "iid", "movie_id", "movieid", "product_id", "business_id"),
    "time": ("time", "timestamp", "ts", "date"),
    "rating": ("rating", "stars", "score"),
}


def interaction_columns(parameter: str, path: Path, text: Sequence[str] = ()) -> dict[str, Any]:
    """{user, item, and time and rating if there are any: column} of a file; those of `text` as strings."""
    if path.suffix.lower() not in SUFFIXES:
        raise_invalid(parameter, f"a file that ends in {', '.join(SUFFIXES)}", repr(str(path)))
    check_file(parameter, path)
    delimiter = SUFFIXES[path.suffix.lower()]
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
    read = tables.read_csv(path, delimiter, kinds, **found) if delimiter else tables.read_parquet(path, **found)
    if not read.num_rows:
        raise_invalid(parameter, "a table with rows", "none")
    return tables.columns(read, **found)


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
    if values.dtype.kind in "MO" or values.dtype.kind in "UT":
        try:
            values = values.astype("datetime64[us]")
        except ValueError:
            raise_invalid("time", "numbers, dates or times", repr(str(values[0])))
    return values.astype(np.int64) if values.dtype.kind == "M" else values


def rows_of(part: dict[str, Any], kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Some rows of all columns."""
    places = np.flatnonzero(kept)
    return {name: values.take(places) for name, values in part.items()}

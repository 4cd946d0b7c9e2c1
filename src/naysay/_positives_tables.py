"""`Positives` from tables: data frames, Arrow, Parquet, CSV, datasets of Hugging Face, and RecBole's files.

Each function is bound to the class as a constructor, so that errors carry the name of `Positives`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from naysay import _inputs as inputs
from naysay import _tables as tables
from naysay._interaction_files import as_times, interaction_columns, liked_rows, rows_of
from naysay.checks import check_number, raise_invalid, shown
from naysay.files import as_path
from naysay.vocabulary import Vocabulary, ids_of_names

Names = Vocabulary | bool | None


class Built(Protocol):
    """What this module needs of `Positives`, which stands above it."""

    @classmethod
    def _built(cls, made: inputs.Made, unused_items: int) -> Self: ...


_Known = TypeVar("_Known", bound=Built)


def from_arrow(
    cls: type[_Known],
    table: Any,
    anchors: str | None = None,
    items: str | None = None,
    *,
    n_items: int | None = None,
    anchor_names: Names = None,
    item_names: Names = None,
    n_anchors: int | None = None,
) -> _Known:
    """From two named columns of an Arrow table, or of anything with `__arrow_c_stream__`, such as a DuckDB result.

    Args:
        table: The table.
        anchors: The column of anchors: whole numbers or strings.
        items: The column of items.
        n_items: As in `from_pairs`.
        anchor_names: As in `from_pairs`.
        item_names: As in `from_pairs`.
        n_anchors: As in `from_pairs`.
    """
    return cls._built(*inputs.columns(table, anchors, items, n_anchors, n_items, anchor_names, item_names))


def from_parquet(
    cls: type[_Known],
    path: str | Path,
    anchors: str | None = None,
    items: str | None = None,
    *,
    n_anchors: int | None = None,
    n_items: int | None = None,
    anchor_names: Names = None,
    item_names: Names = None,
) -> _Known:
    """From two named columns of a Parquet file, like `from_arrow`; other columns are not read."""
    table = tables.read_parquet(path, anchors=anchors, items=items)
    return cls._built(*inputs.columns(table, anchors, items, n_anchors, n_items, anchor_names, item_names))


def from_csv(
    cls: type[_Known],
    path: str | Path,
    anchors: str | None = None,
    items: str | None = None,
    *,
    delimiter: str = ",",
    n_anchors: int | None = None,
    n_items: int | None = None,
    anchor_names: Names = None,
    item_names: Names = None,
) -> _Known:
    """From two named columns of a CSV file with a header line; a column with a vocabulary is read as names."""
    text = [name for name, names in ((anchors, anchor_names), (items, item_names)) if names is not None]
    table = tables.read_csv(path, delimiter, text, anchors=anchors, items=items)
    return cls._built(*inputs.columns(table, anchors, items, n_anchors, n_items, anchor_names, item_names))


def from_pandas(
    cls: type[_Known],
    frame: Any,
    anchors: str,
    items: str,
    *,
    times: str | None = None,
    before: Any = None,
    n_items: int | None = None,
    anchor_names: Names = None,
    item_names: Names = None,
) -> _Known:
    """From two named columns of a data frame of pandas (2.2 or newer); the index is not used.

    Args:
        frame: The data frame.
        anchors: The column of anchors: whole numbers or strings, without missing values.
        items: The column of items, the same.
        times: The column of times: numbers, dates or times. Only needed for `before`.
        before: If given, only rows with an earlier time are known. A number, a date, a time, or text such as
            "2024-05-01".
        n_items: As in `from_pairs`.
        anchor_names: The vocabulary of another split, of which the column has names, also as whole numbers; True
            makes one. By default strings get a new one, and whole numbers are ids.
        item_names: The same for items; True is for raw ids with gaps.
    """
    names = n_items, anchor_names, item_names
    return _of_frame(cls, "a data frame of pandas", frame, (anchors, items, times), before, names)


def from_polars(
    cls: type[_Known],
    frame: Any,
    anchors: str,
    items: str,
    *,
    times: str | None = None,
    before: Any = None,
    n_items: int | None = None,
    anchor_names: Names = None,
    item_names: Names = None,
) -> _Known:
    """From two named columns of a data frame of Polars; arguments as in `from_pandas`. Collect a lazy frame first."""
    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        raise_invalid("frame", "a data frame of Polars", type(frame).__name__, "Pass frame.collect().")
    names = n_items, anchor_names, item_names
    return _of_frame(cls, "a data frame of Polars", frame, (anchors, items, times), before, names)


def from_hf_dataset(
    cls: type[_Known],
    dataset: Any,
    anchors: str,
    items: str,
    *,
    times: str | None = None,
    before: Any = None,
    n_items: int | None = None,
    anchor_names: Names = None,
    item_names: Names = None,
) -> _Known:
    """From two named columns of a `datasets.Dataset` of Hugging Face, one split; arguments as in `from_pandas`."""
    if not hasattr(dataset, "with_format") or not isinstance(getattr(dataset, "column_names", None), list):
        splits = list(dataset) if isinstance(dataset, Mapping) else []
        advice = f"Choose a split: dataset[{splits[0]!r}]." if splits else ""
        raise_invalid("dataset", "a datasets.Dataset", type(dataset).__name__, advice)
    if not hasattr(dataset, "__len__"):
        advice = "Download it: load_dataset(..., streaming=False)."
        raise_invalid("dataset", "a datasets.Dataset", type(dataset).__name__, advice)
    wanted = _wanted(anchors, items, times, before)
    tables.check_columns(dataset.column_names, wanted)
    table = dataset.select_columns(list(dict.fromkeys(wanted.values()))).with_format("arrow")[:]
    return _of_table(cls, table, wanted, before, (n_items, anchor_names, item_names))


def from_recbole(
    cls: type[_Known],
    path: str | Path,
    *,
    liked: float | None = None,
    before: Any = None,
    anchor_names: Vocabulary | bool = True,
    item_names: Vocabulary | bool = True,
) -> _Known:
    """From an atomic file of RecBole: tabs, and headings such as user_id:token.

    Ids of RecBole are tokens, also where they look like numbers. So anchors and items are numbered in the order of
    their first appearance, and `anchor_names` and `item_names` have the tokens.

    Args:
        path: The file that ends in .inter, or the folder NAME with the file NAME.inter.
        liked: If given, only rows with a rating of at least this are known.
        before: If given, only rows with an earlier timestamp are known.
        anchor_names: The vocabulary of another split, or True for a new one; False keeps whole numbers as they are.
        item_names: The same for items.
    """
    file = as_path("path", path)
    file = file / f"{file.name}.inter" if file.is_dir() else file
    if file.suffix.lower() != ".inter":
        raise_invalid("path", "a file that ends in .inter, or its folder", repr(str(path)))
    tokens = [name for name, names in (("user", anchor_names), ("item", item_names)) if names is not False]
    found = interaction_columns("path", file, tokens)
    if liked is not None:
        found = liked_rows(found, check_number("liked", liked, finite=True))
    if before is not None:
        if "time" not in found:
            raise_invalid("before", "left out for a table without a column of times", shown(before))
        found = rows_of(found, _earlier(found["time"], before))
    return cls._built(*inputs.pairs(found["user"], found["item"], None, None, anchor_names or None, item_names or None))


def _wanted(anchors: Any, items: Any, times: Any, before: Any) -> dict[str, str]:
    """{parameter: column} of the columns to read."""
    if (times is None) != (before is None):
        missing, given = ("times", "before") if times is None else ("before", "times")
        raise_invalid(missing, f"given along with `{given}`", None)
    return {"anchors": anchors, "items": items} | ({} if times is None else {"times": times})


def _of_frame(
    cls: type[_Known],
    kind: str,
    frame: Any,
    columns: tuple[str, str, str | None],
    before: Any,
    names: tuple[int | None, Names, Names],
) -> _Known:
    """The chosen columns of a data frame, converted by the Arrow PyCapsule interface."""
    if not hasattr(frame, "__arrow_c_stream__") or not hasattr(frame, "columns"):
        raise_invalid("frame", kind, type(frame).__name__)
    wanted = _wanted(*columns, before)
    tables.check_columns(list(frame.columns), wanted)
    chosen = frame[list(dict.fromkeys(wanted.values()))]
    if hasattr(chosen, "reset_index"):  # pandas passes its index on as a column, which may be of mixed types
        chosen = chosen.reset_index(drop=True)
    table = tables.as_table("frame", chosen)
    return _of_table(cls, table, wanted, before, names)


def _of_table(
    cls: type[_Known],
    table: Any,
    wanted: dict[str, str],
    before: Any,
    names: tuple[int | None, Names, Names],
) -> _Known:
    found = tables.columns(table, **wanted)
    if before is not None:
        found = rows_of(found, _earlier(found["times"], before))
    n_items, anchor_names, item_names = names
    for parameter, known in (("anchors", anchor_names), ("items", item_names)):
        if isinstance(known, Vocabulary) and not tables.is_text(found[parameter]):  # as `from_csv` reads them
            found[parameter] = ids_of_names(known, parameter, found[parameter])
    return cls._built(*inputs.pairs(found["anchors"], found["items"], None, n_items, anchor_names, item_names))


def _earlier(times: Any, before: Any) -> NDArray[np.bool_]:
    """Which times are earlier than `before`, which is read as they are: numbers with numbers, dates with dates."""
    values = as_times(times)
    if np.asarray(times).dtype.kind in "iuf":
        return np.asarray(values < check_number("before", before))
    try:
        limit = np.datetime64(before, "us").astype(np.int64)
    except (ValueError, TypeError):
        raise_invalid("before", "a date or a time, like the column of times", shown(before))
    return np.asarray(values < limit)

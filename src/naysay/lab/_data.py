"""What the data of the five domains share: three parts without leaks, files as columns of ids, and .npz files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import tables
from naysay.checks import check_kind, raise_invalid
from naysay.errors import NaysayError
from naysay.files import as_path, check_file, raise_unreadable
from naysay.positives import Positives
from naysay.text import counted
from naysay.vocabulary import Vocabulary

PARTS = ("train", "validation", "test")

Ids = NDArray[np.int64]
Parts = tuple[Positives, Positives, Positives]  # for training, validation and test
File = str | Path


# ---- three parts -----------------------------------------------------------------------------------------------------


def check_parts(data: Any, kind: type, noun: str) -> None:
    """Raise unless the three parts of a data set are of a kind, of one size, and not empty."""
    for name in PARTS:
        part = getattr(data, name)
        check_kind(name, part, kind, f"of type {kind.__name__}")
        if not len(part):
            raise_invalid(name, f"at least one {noun}", "none")
        if isinstance(part, Positives):
            size = data.train.n_anchors, data.train.n_items
            if (part.n_anchors, part.n_items) != size:
                raise_invalid(name, f"of {size[0]} anchors and {size[1]} items, like `train`", part)


def rows_kept(
    data: Any, name: str, noun: str, reasons: Mapping[str, NDArray[np.bool_]], rule: str
) -> NDArray[np.bool_]:
    """Which rows of a held-out part are kept; a note counts those left out by the first reason that holds.

    Raises if none is kept.
    """
    total = len(next(iter(reasons.values())))
    kept = np.ones(total, bool)
    notes = []
    for reason, bad in reasons.items():
        count = int((bad & kept).sum())
        kept &= ~bad
        if count:
            notes.append(f"{counted(count, f'{name} {noun}')} of {total:,} left out: {reason}.")
    if not kept.any():
        raise_invalid(name, rule, f"none of {total:,}", " ".join(notes))
    object.__setattr__(data, "notes", (*data.notes, *notes))
    return kept


def keep_new_pairs(
    data: Any, rule: str, reasons_of: Callable[[Ids, Ids], dict[str, NDArray[np.bool_]]] = lambda anchors, items: {}
) -> None:
    """Leave out held-out pairs that are in an earlier part, or that `reasons_of` names."""
    earlier = data.train
    for name in PARTS[1:]:
        anchors, items = getattr(data, name).pairs()
        reasons = reasons_of(anchors, items) | {"in an earlier part, too": earlier.contains(anchors, items)}
        kept = rows_kept(data, name, "pair", reasons, rule)
        part = Positives.from_pairs(anchors[kept], items[kept], earlier.n_anchors, earlier.n_items)
        object.__setattr__(data, name, part)
        earlier = earlier.union(part)


def checksum(*values: Any) -> str:
    """A checksum of arrays and texts, 16 digits."""
    state = hashlib.sha256()
    for value in values:
        raw = value.encode(errors="surrogatepass") if isinstance(value, str) else np.ascontiguousarray(value).tobytes()
        state.update(f"{len(raw)} ".encode() + raw)
    return state.hexdigest()[:16]


def sizes_of_parts(data: Any, noun: str) -> str:
    """'train 48 pairs, validation 6 pairs, test 6 pairs'."""
    return ", ".join(f"{name} {counted(len(getattr(data, name)), noun)}" for name in PARTS)


def pairs_by_part(anchors: Ids, items: Ids, part: Ids, sizes: Positives) -> Parts:
    """The pairs by the number of their part."""
    train, validation, test = (
        Positives.from_pairs(anchors[part == one], items[part == one], sizes.n_anchors, sizes.n_items)
        for one in range(len(PARTS))
    )
    return train, validation, test


def random_tenths(rows: NDArray[Any], seed: int) -> list[NDArray[Any]]:
    """Eight tenths of the rows for training, one for validation and one for the test."""
    order = np.random.default_rng(seed).permutation(len(rows))
    tenth = len(rows) // 10
    return np.split(rows[order], [len(rows) - 2 * tenth, len(rows) - tenth])


def at_most_anchors(pairs: Positives, most: int) -> Positives:
    """The pairs of at most so many anchors, the same ones each time."""
    anchors, items = pairs.pairs()
    present = np.unique(anchors)
    if len(present) <= most:
        return pairs
    kept = np.isin(anchors, np.random.default_rng(0).choice(present, most, replace=False))
    return Positives.from_pairs(anchors[kept], items[kept], pairs.n_anchors, pairs.n_items)


# ---- files -----------------------------------------------------------------------------------------------------------


def part_files(path: File, validation: File | None, test: File | None) -> dict[str, Path]:
    """{parameter: file} of the parts that are given. Validation alone is an error."""
    if validation is not None and test is None:
        raise_invalid("test", "given along with `validation`", "nothing")
    files = {"path": path, "validation": validation, "test": test}
    return {name: as_path(name, file) for name, file in files.items() if file is not None}


def check_left_out(why: str, **options: Any) -> None:
    """Raise if one of the options is given."""
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
    comments = 0
    if delimiter is None:
        delimiter, comments = _delimiter(parameter, path)
    try:
        table = tables.read_lines(path, delimiter, names, comments)
    except NaysayError as error:
        error.args = (error.args[0].replace("`path`", f"`{parameter}`"),)
        raise
    return [*tables.columns(table, **{name: name for name in names}).values()]


def _delimiter(parameter: str, path: Path) -> tuple[str, int]:
    """What separates the columns of a text file, and the number of comments before them."""
    comments, first = 0, ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not line.startswith("#"):
                first = line.strip()
                break
            comments += 1
    delimiter = next((mark for mark in "\t, " if mark in first), None)
    if delimiter is None:
        raise_invalid(parameter, "two names in each line, separated by a tab, a comma or a space", repr(first))
    return delimiter, comments


def read_npz(path: Path) -> dict[str, Any]:
    """All arrays of an .npz file."""
    check_file("path", path)
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise_unreadable("path", "an .npz file of arrays", path, error)


def first_present(arrays: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The array with the first of the names that is there, or None."""
    return next((arrays[name] for name in names if name in arrays), None)

"""The file of pairs that a person reviews: `--review` writes it, `--reviewed` reads it back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown, shown_names
from naysay.files import digest_of
from naysay.jobs.tables import STRING, Side, first_rows, reading
from naysay.mining.review import ToReview
from naysay.places import Place, check_target, is_there, local
from naysay.tables import batches, column_names
from naysay.text import from_spreadsheet_cell, spreadsheet_cell

Ids = NDArray[np.int64]
ANSWER = "false_negative"
_IDS = ("query_id", "document_id")
COLUMNS = ("query_id", "query", "document_id", "document", "score", "posterior", ANSWER)
_CELL = 30_000  # characters that a cell of a spreadsheet may hold
_ENDINGS = (".csv", ".jsonl", ".parquet")
_ANSWERS = {"yes": True, "no": False, "y": True, "n": False, "true": True, "false": False}


def check_review_file(path: Place) -> None:
    """Raise if pairs to review cannot be written there."""
    if path.suffix.lower() not in _ENDINGS:
        raise_invalid("--review-file", f"a file that ends in {', '.join(_ENDINGS[:-1])} or .parquet", repr(str(path)))
    check_target("--review-file", path)


def check_new_review(path: Place, written: str | None) -> None:
    """Raise if there is a file, which a person may have filled in.

    The file that this job wrote before it was killed is accepted: it has the checksum `written`.
    """
    if not is_there("--review-file", path):
        return
    if written is not None:
        with local("--review-file", path) as copy:
            if digest_of(copy) == written:
                return
    advice = "Move it away, or pass another --review-file."
    raise_invalid("--review-file", "a new file, since a filled one would be lost", repr(str(path)), advice)


def write_review(path: Path, pairs: ToReview, queries: Side, corpus: Side) -> None:
    """Write the pairs with their texts, and an empty column for the answers."""
    columns: list[list[Any]] = []
    for side, rows in ((queries, pairs.anchors), (corpus, pairs.items)):
        columns.append(rows.astype(str).tolist() if side.ids is None else side.ids.gather(rows))
        columns.append([""] * len(rows) if side.texts is None else [text[:_CELL] for text in side.texts.gather(rows)])
    columns.append([round(score, 6) for score in pairs.scores.tolist()])
    columns.append([None if np.isnan(one) else round(one, 6) for one in pairs.posterior.tolist()])
    columns.append([""] * len(pairs.anchors))
    kind = path.suffix.lower()
    if kind == ".parquet":
        pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), path)
        return
    rows_of = list(zip(*columns, strict=True))
    with io.StringIO(newline="") as text:
        if kind == ".csv":
            csv.writer(text).writerows([COLUMNS, *(map(_cell, row) for row in rows_of)])
        else:
            objects = (dict(zip(COLUMNS, row, strict=True)) for row in rows_of)
            text.writelines(f"{json.dumps(one, ensure_ascii=False)}\n" for one in objects)
        path.write_bytes(text.getvalue().encode())


def _cell(value: Any) -> Any:
    """A value in a CSV file. A text is never a formula; a negative score is a number."""
    if value is None:
        return ""
    return spreadsheet_cell(value) if isinstance(value, str) else value


def read_review(path: Path, queries: Side, corpus: Side) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """(anchors, documents, whether they are false negatives) of the rows of a file that have an answer."""
    option, wanted = "--reviewed", [*_IDS, ANSWER]
    with reading(option):
        names = column_names(option, path)
        missing = [name for name in wanted if names.count(name) != 1]
        if missing:
            got = f"{path.name!r} with {shown_names(names)}"
            raise_invalid(option, f"a file of --review, with the columns {', '.join(wanted)}", got)
        parts = [list(zip(*batch, strict=True)) for batch in batches(option, path, wanted, optional=(ANSWER,))]
    rows = [(place, *row) for place, row in enumerate(row for part in parts for row in part)]
    answers = [(place, _answer(path, place, given)) for place, *_, given in rows]
    chosen = [place for place, answer in answers if answer is not None]
    if not chosen:
        rule = f"a file with yes or no in {ANSWER!r}"
        raise_invalid(option, rule, f"{path.name!r}, in which all {len(rows):,} rows are blank")
    found = []
    for column, (name, side, what) in enumerate(zip(_IDS, (queries, corpus), ("anchors", "documents"), strict=True), 1):
        values = [str(rows[place][column]) for place in chosen]
        if path.suffix.lower() == ".csv":
            values = list(map(from_spreadsheet_cell, values))
        numbers = _rows_of(values, side)
        for place, value, row in zip(chosen, values, numbers.tolist(), strict=True):
            if row < 0:
                _raise_row(path, place, f"{name} that are among the {side.n:,} {what}", shown(value))
        found.append(numbers)
    truth = np.array([bool(answers[place][1]) for place in chosen])
    _check_once(path, chosen, found, truth)
    return found[0], found[1], truth


def _answer(path: Path, row: int, given: Any) -> bool | None:
    """An answer as a bool; None for a blank."""
    if given is None or isinstance(given, bool):
        return given
    text = str(given).strip().lower()
    if text and text not in _ANSWERS:
        _raise_row(path, row, f"yes, no or nothing in {ANSWER!r}", shown(given))
    return _ANSWERS.get(text)


def _rows_of(names: list[str], side: Side) -> Ids:
    """The rows with these ids, or these row numbers where a side has no ids; -1 for others."""
    if side.ids is None:
        whole = [int(name) if name.isdecimal() and len(name) < 19 else -1 for name in names]
        return np.array([row if row < side.n else -1 for row in whole], np.int64)
    encoded = pa.array(names, STRING).dictionary_encode()
    rows: Ids = first_rows(encoded.dictionary, side.ids)[np.asarray(encoded.indices)]
    return rows


def _check_once(path: Path, rows: list[int], found: list[Ids], truth: NDArray[np.bool_]) -> None:
    """Raise if a pair has two different answers."""
    first: dict[tuple[int, int], bool] = {}
    for row, *pair, answer in zip(rows, *(part.tolist() for part in found), truth.tolist(), strict=True):
        if first.setdefault((pair[0], pair[1]), answer) != answer:
            _raise_row(path, row, "one answer for each pair", "another than before")


def _raise_row(path: Path, row: int, rule: str, got: str) -> NoReturn:
    raise_invalid("--reviewed", f"a file with {rule}", f"{got} at row {row} of {path.name!r}")

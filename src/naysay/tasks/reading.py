"""Files of interactions: tables with or without headings, the atomic files of RecBole, and LightGCN's lists."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np

from naysay import tables
from naysay._interactions import as_times, liked_rows, read_interaction_file
from naysay.checks import check_number, check_one_of, public, raise_invalid
from naysay.errors import NaysayError
from naysay.files import as_path
from naysay.positives import Positives
from naysay.tasks.interactions import Interactions, split_by_time, split_by_user

SPLITS = ("auto", "user", "time")


@public
def read_interactions(
    path: str | Path,
    *,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    split: str = "auto",
    liked: float | None = None,
    seed: int = 0,
) -> Interactions:
    r"""Read a file of interactions, and split it.

    A table is .parquet, .jsonl, .csv, .tsv or .inter (RecBole: tabs, and headings such as user_id:token). Columns are
    found by their names: user or user_id (or anchor), item or item_id (or positive), and if there are any timestamp or
    time, and rating. A .csv, .tsv, .data or .txt file may lack headings: its columns are then user, item, rating and
    time, as in MovieLens's u.data; a third column of numbers above a million is of times. A .txt file without tabs or
    commas has a line "user item item ..." for each user, as LightGCN's train.txt. A note says how such a file was read.
    Ids are whole numbers or strings.

    Args:
        path: All interactions, or those to train on if `test` is given.
        validation: The interactions for validation; if only `test` is given, a tenth of each user's training pairs.
        test: The interactions for the test.
        split: "user" holds out a tenth of each user's pairs twice, "time" the last two tenths of all pairs. "auto" is
            "time" if there is a column of times and training knows user and item of at least half of the held-out
            pairs, else "user". Not used if the parts are given.
        liked: If given, only rows with a rating of at least this are positives.
        seed: Of the split by user.

    Raises:
        NaysayError: If a file or column is missing, a value is not valid, or there are too few pairs for the split.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "clicks.csv"
        ...     _ = file.write_text("user,item\n" + "".join(f"u{n % 6},i{n // 6}\n" for n in range(60)))
        ...     read_interactions(file)
        Interactions(6 users, 10 items, train 48 pairs, validation 6 pairs, test 6 pairs)
    """
    check_one_of("split", split, SPLITS)
    if validation is not None and test is None:
        raise_invalid("test", "given along with `validation`", "nothing")
    if liked is not None:
        check_number("liked", liked, finite=True)
    named = {"path": path, "validation": validation, "test": test}
    read = [read_interaction_file(name, as_path(name, file)) for name, file in named.items() if file is not None]
    parts, notes = [part for part, _ in read], [note for _, note in read if note]
    if liked is not None:
        parts = [liked_rows(part, liked) for part in parts]
    elif "rating" in parts[0]:
        notes.append("Ratings are not used: every row is a positive. Pass `liked` to keep high ratings only.")
    joined = {name: _joined([part[name] for part in parts]) for name in ("user", "item")}
    users, items = (tables.encode(name, values, True)[0] for name, values in joined.items())
    if test is not None:
        sizes = int(users.max()) + 1, int(items.max()) + 1
        ends = np.cumsum([len(part["user"]) for part in parts])[:-1]
        rows = zip(np.split(users, ends), np.split(items, ends), strict=True)
        train, *held = (Positives.from_pairs(*each, *sizes) for each in rows)
        if validation is None:
            own = split_by_user(*train.pairs(), *sizes, seed=seed)
            train, held = own.train.union(own.test), [own.validation, *held]
        return Interactions(train, held[0], held[1], tuple(notes))
    if split == "time" and "time" not in parts[0]:
        raise_invalid("split", "'user' for a table without a column of times", "'time'", "Call the column timestamp.")
    made = None
    if split != "user" and "time" in parts[0]:
        times, kept = as_times(parts[0]["time"]), 0
        with suppress(NaysayError) if split == "auto" else nullcontext():  # no pair is left, say
            made = split_by_time(users, items, times)
            kept = len(made.validation) + len(made.test)
        later = 2 * (len(Positives.from_pairs(users, items)) // 10)
        if split == "auto" and 2 * kept < later:
            notes.append(f"Split by user: training would know user and item of only {kept:,} of {later:,} later pairs.")
            made = None
    if made is None:
        made = split_by_user(users, items, seed=seed)
    object.__setattr__(made, "notes", (*notes, *made.notes))
    return made


def _joined(columns: list[Any]) -> Any:
    whole = columns[0]
    for column in columns[1:]:
        whole = tables.joined(whole, column)
    return whole

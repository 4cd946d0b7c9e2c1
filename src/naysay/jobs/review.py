"""The file of pairs that a person reviews: `--review` writes it, `--reviewed` reads it back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.detectors.reviewer import ENDINGS, FALSE_NEGATIVE, Pairs, read_review_file, write_review_file
from naysay.files import digest_of
from naysay.jobs.tables import STRING, Side, first_rows, reading
from naysay.mining.review import ToReview
from naysay.places import Place, check_target, is_there, local

Ids = NDArray[np.int64]


def check_review_file(path: Place) -> None:
    """Raise if pairs to review cannot be written there."""
    if path.suffix.lower() not in ENDINGS:
        raise_invalid("--review-file", f"a file that ends in {', '.join(ENDINGS[:-1])} or .parquet", repr(str(path)))
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
    sides = ((queries, pairs.anchors), (corpus, pairs.items))
    texts = [None if side.texts is None else side.texts.gather(rows) for side, rows in sides]
    ids = [None if side.ids is None else side.ids.gather(rows) for side, rows in sides]
    asked = Pairs(pairs.anchors, pairs.items, texts[0], texts[1], query_ids=ids[0], document_ids=ids[1])
    write_review_file("--review-file", path, [asked], pairs.scores, pairs.posterior)


def read_review(path: Path, queries: Side, corpus: Side) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """(anchors, documents, whether they are false negatives) of the rows of a file that have an answer."""
    option = "--reviewed"
    with reading(option):
        answers = read_review_file(option, path)
    if not answers:
        rule = f"a file with yes or no in {FALSE_NEGATIVE!r}"
        raise_invalid(option, rule, f"{path.name!r}, in which all rows are blank")
    sides = []
    whats = ("query_id that are among the {:,} anchors", "document_id that are among the {:,} documents")
    truth, numbers = zip(*answers.values(), strict=True)
    for names, side, what in zip(zip(*answers, strict=True), (queries, corpus), whats, strict=True):
        rows = _rows_of(list(names), side)
        if (rows < 0).any():
            place = int((rows < 0).argmax())
            got = f"{shown(names[place])} at row {numbers[place]} of {path.name!r}"
            raise_invalid(option, f"a file with {what.format(side.n)}", got)
        sides.append(rows)
    return sides[0], sides[1], np.array(truth)


def _rows_of(names: list[str], side: Side) -> Ids:
    """The rows with these ids, or these row numbers where a side has no ids; -1 for others."""
    if side.ids is None:
        whole = [int(name) if name.isdecimal() and len(name) < 19 else -1 for name in names]
        return np.array([row if row < side.n else -1 for row in whole], np.int64)
    encoded = pa.array(names, STRING).dictionary_encode()
    rows: Ids = first_rows(encoded.dictionary, side.ids)[np.asarray(encoded.indices)]
    return rows

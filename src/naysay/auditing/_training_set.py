"""What is audited: the negatives of a training set, wherever they come from, in one shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.formats._readers import READERS, Rows
from naysay.formats._table import format_called
from naysay.formats._table_files import opened_table
from naysay.formats.read_negatives import check_fit, format_of
from naysay.formats.training_file import Collector, TrainingFile
from naysay.mining.mined import Mined
from naysay.positives import POSITIVE, Positives

Ids = NDArray[np.int64]
# Formats in which a row has one positive, so that the negatives of an anchor with several stand in several rows.
_BY_PAIR = ("triplet", "n-tuple", "labelled-list", "nemo-inline", "colbert", "colbert-nway")
_TEXT_ONLY = ("triplet", "n-tuple", "labelled-pair", "labelled-list", "flagembedding", "nemo-inline")


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Anchors, their positives and their negatives.

    Args:
        name: Where it comes from, for people.
        path: Of the file, or None.
        format: Of the file, or None.
        ids: (n, k) int64, -1 empty: the distinct negatives of each anchor.
        scores: (n, k) float32, NaN where there is none; or None.
        positives: What the set calls positive.
        positive_scores: (pairs,) float32 beside positives.pairs(), NaN where there is none; or None.
        query_names: What rows are called: ids where there are some, else texts, else None.
        corpus_names: What rows are called: ids where there are some, else texts, else None.
        query_texts: Or None.
        corpus_texts: Or None.
        duplicates: Slots that give an anchor a negative once more for the same positive; None where that is not
            known.
    """

    name: str
    path: Path | None
    format: str | None
    ids: Ids
    scores: NDArray[np.float32] | None
    positives: Positives
    positive_scores: NDArray[np.float32] | None
    query_names: list[str] | None
    corpus_names: list[str] | None
    query_texts: list[str] | None
    corpus_texts: list[str] | None
    duplicates: int | None


def training_set(given: Any, format: str | None) -> TrainingSet:
    """A file in any format that `read_negatives` reads, what it answered, or `Mined`; a TrainingSet as it is."""
    if isinstance(given, TrainingSet):
        return given
    if isinstance(given, str | Path):
        read, duplicates = _read(Path(given), format)
        found = _of_file(read, duplicates)
    elif format is not None:
        raise_invalid("format", "None where the negatives are no file", repr(format))
    elif isinstance(given, TrainingFile):
        found = _of_file(given, None)
    elif isinstance(given, Mined):
        found = _of_mined(given)
    else:
        rule = "the path of a training file, a TrainingFile or Mined"
        raise_invalid("negatives", rule, f"a {type(given).__name__}")
    if not (found.ids >= 0).any():
        raise_invalid("negatives", "at least one negative", f"none in {found.name}")
    return found


def _read(path: Path, format: str | None) -> tuple[TrainingFile, int]:
    """The file as `read_negatives` gives it, and how many slots are duplicates, which that leaves out."""
    name = None if format is None else format_called(format)
    table = opened_table(path)
    if name is None:
        name = format_of(table)
    check_fit(name, table)
    into = Collector()
    for numbers, rows in table.blocks:
        READERS[name](Rows(table.names, numbers, rows, table.where), into)
        into.rows += len(rows)
    anchors, items = (
        np.concatenate([np.empty(0, np.int64), *(part[side] for part in into.negative)]) for side in (0, 1)
    )
    pairs = anchors * max(1, into.corpus.size) + items
    read = into.finished(path, name, are_texts=name in _TEXT_ONLY)
    return read, _surplus(pairs, max(1, into.corpus.size), read.positives, by_pair=name in _BY_PAIR)


def _surplus(pairs: Ids, n_items: int, positives: Positives, *, by_pair: bool) -> int:
    """How many of the pairs (anchor, negative) come more often than the anchor has rows."""
    distinct, counts = np.unique(pairs, return_counts=True)
    allowed = np.maximum(positives.count(distinct // n_items), 1) if by_pair and len(distinct) else 1
    return int(np.maximum(counts - allowed, 0).sum())


def _of_file(read: TrainingFile, duplicates: int | None) -> TrainingSet:
    return TrainingSet(
        name=str(read.path),
        path=read.path,
        format=read.format,
        ids=read.ids,
        scores=read.scores,
        positives=read.positives,
        positive_scores=read.positive_scores,
        query_names=read.query_ids or read.query_texts,
        corpus_names=read.corpus_ids or read.corpus_texts,
        query_texts=read.query_texts,
        corpus_texts=read.corpus_texts,
        duplicates=duplicates,
    )


def _of_mined(mined: Mined) -> TrainingSet:
    """What was mined, with its scores; pairs to ignore are no positives."""
    known, scores = mined.known, mined.known_scores
    if known.relation is not None:
        anchors, items = known.pairs()
        kept = known.relation == POSITIVE
        known = Positives.from_pairs(anchors[kept], items[kept], known.n_anchors, known.n_items)
        scores = None if scores is None else scores[kept]
    return TrainingSet(
        name="what was mined",
        path=None,
        format=None,
        ids=mined.ids,
        scores=np.where(mined.mask, mined.scores, np.float32(np.nan)),
        positives=known,
        positive_scores=scores,
        query_names=None,
        corpus_names=None,
        query_texts=None,
        corpus_texts=None,
        duplicates=0,
    )

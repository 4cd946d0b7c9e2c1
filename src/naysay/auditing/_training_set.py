"""What is audited: the negatives of a training set, whatever its source, in one shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.formats._table_files import batches, column_names
from naysay.formats.read_negatives import TEXT_ONLY, collected
from naysay.formats.training_file import TrainingFile
from naysay.mining.mined import Mined
from naysay.positives import POSITIVE, Positives

Ids = NDArray[np.int64]
# Formats with one positive per row: the negatives of an anchor with several positives are in several rows.
_BY_PAIR = ("triplet", "n-tuple", "labelled-list", "nemo-inline", "colbert", "colbert-nway")


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Anchors, their positives and their negatives.

    Args:
        name: The path, or "mined negatives".
        path: The file, or None.
        format: The format of the file, or None.
        ids: (n, k) int64, -1 empty: the distinct negatives of each anchor.
        scores: (n, k) float32, NaN where there is none; or None.
        positives: The set's own positives.
        positive_scores: (pairs,) float32 beside positives.pairs(), NaN where there is none; or None.
        query_names: The ids of the anchors, or else their texts, or None.
        corpus_names: The ids of the documents, or else their texts, or None.
        query_texts: The texts of the anchors, or None.
        corpus_texts: The texts of the documents, or None.
        duplicates: Slots that repeat a negative of the same anchor and positive; None if unknown.
    """

    name: str
    path: Path | None
    format: str | None
    ids: Ids
    scores: NDArray[np.float32] | None
    positives: Positives
    positive_scores: NDArray[np.float32] | None
    query_names: list[str] | None = None
    corpus_names: list[str] | None = None
    query_texts: list[str] | None = None
    corpus_texts: list[str] | None = None
    duplicates: int | None = None

    def label(self, side: str, row: int) -> str:
        """Return the text of a row of "query" or "corpus", or else its name, or else its number."""
        for known in (getattr(self, f"{side}_texts"), getattr(self, f"{side}_names")):
            if known is not None:
                return str(known[row])
        return f"row {row}"


def training_set(given: Any, format: str | None) -> TrainingSet:
    """Return a file in any format of `read_negatives`, a `TrainingFile`, or `Mined` as a TrainingSet."""
    if isinstance(given, TrainingSet):
        return given
    if isinstance(given, str | Path):
        result = _of_file(*_read(Path(given), format))
    elif format is not None:
        raise_invalid("format", "left out where the negatives are not a file", repr(format))
    elif isinstance(given, TrainingFile):
        result = _of_file(given, None)
    elif isinstance(given, Mined):
        result = _of_mined(given)
    else:
        rule = "the path of a training file, a TrainingFile or Mined"
        raise_invalid("negatives", rule, f"a {type(given).__name__}")
    if not (result.ids >= 0).any():
        raise_invalid("negatives", "at least one negative", f"none in {result.name}")
    return result


def read_names(parameter: str, path: Path) -> list[str]:
    """Return the lines of a .txt file, or the only column of a .parquet, .jsonl, .csv or .tsv file."""
    if path.suffix.lower() != ".txt":
        columns = column_names(parameter, path)
        if len(columns) != 1:
            raise_invalid(parameter, "a file with one column", f"{len(columns)} in {str(path)!r}")
        return [str(value) for (values,) in batches(parameter, path, columns) for value in values]
    if not path.is_file():
        raise_invalid(parameter, "an existing file", repr(str(path)))
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _read(path: Path, format: str | None) -> tuple[TrainingFile, int]:
    """Return the file as `read_negatives` does, and the number of duplicate slots, which that leaves out."""
    name, into = collected(path, format)
    anchors, items = (
        np.concatenate([np.empty(0, np.int64), *(part[side] for part in into.negative)]) for side in (0, 1)
    )
    pairs = anchors * max(1, into.corpus.size) + items
    read = into.finished(path, name, are_texts=name in TEXT_ONLY)
    return read, _surplus(pairs, max(1, into.corpus.size), read.positives, by_pair=name in _BY_PAIR)


def _surplus(pairs: Ids, n_items: int, positives: Positives, *, by_pair: bool) -> int:
    """Count the (anchor, negative) pairs that occur more often than the anchor has rows."""
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
    """Return mined negatives with their scores. Pairs to ignore are not positives."""
    known, scores = mined.known, mined.known_scores
    if known.relation is not None:
        anchors, items = known.pairs()
        kept = known.relation == POSITIVE
        known = Positives.from_pairs(anchors[kept], items[kept], known.n_anchors, known.n_items)
        scores = None if scores is None else scores[kept]
    return TrainingSet(
        name="mined negatives",
        path=None,
        format=None,
        ids=mined.ids,
        scores=np.where(mined.mask, mined.scores, np.float32(np.nan)),
        positives=known,
        positive_scores=scores,
        duplicates=0,
    )

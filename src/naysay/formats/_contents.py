"""What is written: the names and texts of rows, gathered as Arrow arrays; and a block of anchors with its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import raise_invalid, shown
from naysay.encode._inputs import text_array
from naysay.vocabulary import Vocabulary

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Gather = Callable[[Ids], Any]  # the strings of some rows, as a list or an Arrow array
_BLOCK = 4096  # names that are Python strings at a time


# ---- names and texts ------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The names and texts of the queries, or of the corpus. Without names, rows are called by their numbers."""

    n: int
    ids_of: Gather | None = None
    texts_of: Gather | None = None
    titles_of: Gather | None = None
    name: str = ""  # of the whole corpus

    def ids(self, rows: Ids) -> Any:
        """Names, or else numbers."""
        return pa.array(rows, pa.int64()) if self.ids_of is None else _strings(self.ids_of(rows))

    def names(self, rows: Ids) -> Any:
        """Names, or else numbers as strings."""
        return self.ids(rows).cast("large_string")

    def texts_or_ids(self, rows: Ids) -> Any:
        """Texts, or else ids."""
        return self.ids(rows) if self.texts_of is None else _strings(self.texts_of(rows))

    def titles(self, rows: Ids) -> Any:
        """Titles; None if there are none."""
        return None if self.titles_of is None else _strings(self.titles_of(rows))

    def name_blocks(self) -> Iterator[list[str]]:
        """All names in order, a block at a time; none if there are none."""
        for start in range(0, self.n if self.ids_of is not None else 0, _BLOCK):
            yield self.ids(np.arange(start, min(start + _BLOCK, self.n))).to_pylist()


def _strings(gathered: Any) -> Any:
    is_arrow = isinstance(gathered, pa.Array | pa.ChunkedArray)
    return gathered.cast(pa.large_string()) if is_arrow else pa.array(gathered, pa.large_string())


def labels_of(
    side: str, n: int | None, *, ids: Any = None, texts: Any = None, titles: Any = None, name: str = ""
) -> Labels:
    """Check names, texts and titles of `n` rows, or of as many as there are strings; `side` is "query" or "corpus"."""
    gathers: dict[str, Gather] = {}
    for what, values in (("ids", ids), ("texts", texts), ("titles", titles)):
        if values is not None:
            size, gathers[what] = _gather(f"{side}_{what}", values)
            n = size if n is None else n
            if size != n:
                raise_invalid(f"{side}_{what}", f"of {n} strings, one for each row", size)
    labels = Labels(n or 0, gathers.get("ids"), gathers.get("texts"), gathers.get("titles"), name)
    if ids is not None and not isinstance(ids, Vocabulary):
        check_distinct(f"{side}_ids", [name for block in labels.name_blocks() for name in block])
    return labels


def strings(parameter: str, values: Any) -> list[str]:
    """Return a list of strings from a list, an array, an Arrow array or a vocabulary."""
    if isinstance(values, Vocabulary):
        return values.names(np.arange(len(values)))
    listed: list[str] = text_array(parameter, values).to_pylist()
    return listed


def _gather(parameter: str, values: Any) -> tuple[int, Gather]:
    """How many strings there are, and the function that gathers them by row."""
    if isinstance(values, Vocabulary):
        return len(values), values.names
    texts = text_array(parameter, values)
    return len(texts), lambda rows: texts.take(pa.array(rows))


def check_distinct(parameter: str, names: Sequence[str]) -> None:
    """Raise for an id that occurs twice, with both rows."""
    if len({*names}) == len(names):
        return
    first: dict[str, int] = {}
    row = next(row for row, name in enumerate(names) if first.setdefault(name, row) != row)
    raise_invalid(parameter, "distinct", f"{shown(names[row])} at rows {first[names[row]]} and {row}")


# ---- a block of anchors, and its rows --------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some anchors, their negatives and their positives."""

    anchors: Ids  # (a,)
    ids: Ids  # (a, k) their negatives, -1 empty
    scores: Scores | None  # (a, k)
    pair_rows: Ids  # (p,) for each known pair the row of its anchor in this block
    pair_items: Ids  # (p,) its positive
    pair_scores: Scores | None  # (p,)


@final
class Documents(NamedTuple):
    """The documents of some rows, those of the first row first."""

    items: Ids
    starts: Ids  # (rows + 1,) where the documents of each row begin
    scores: Scores | None = None
    labels: Any = None  # (documents,) 1 positive, 0 negative

    def column(self, place: int) -> Documents:
        """The document at one place of each row, where all rows have as many."""
        at = self.starts[:-1] + place
        return one_each(self.items[at], _at(self.scores, at))


def one_each(items: Ids, scores: Scores | None = None) -> Documents:
    """One document in each row."""
    return Documents(items, np.arange(len(items) + 1), scores)


def _at(scores: Scores | None, places: Any) -> Scores | None:
    return None if scores is None else scores[places]


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a file: the query of each, its positives and its negatives."""

    queries: Ids
    positives: Documents
    negatives: Documents
    k: int  # columns of negatives, where each has one

    @cached_property
    def documents(self) -> Documents:
        """The positives of each row, then its negatives, with labels."""
        both = (self.positives, self.negatives)
        owners = np.concatenate([np.repeat(np.arange(len(self.queries)), np.diff(part.starts)) for part in both])
        order = np.argsort(owners, kind="stable")
        items = np.concatenate([part.items for part in both])[order]
        scores = None
        if self.positives.scores is not None and self.negatives.scores is not None:
            scores = np.concatenate([self.positives.scores, self.negatives.scores])[order]
        labels = (order < len(self.positives.items)).astype(np.int64)
        return Documents(items, self.positives.starts + self.negatives.starts, scores, labels)


def per_negative(block: Block) -> Rows:
    """A row for each negative of each (anchor, positive)."""
    pairs, places = np.nonzero(block.ids[block.pair_rows] >= 0)
    rows = block.pair_rows[pairs]
    positives = one_each(block.pair_items[pairs], _at(block.pair_scores, pairs))
    negatives = one_each(block.ids[rows, places], _at(block.scores, (rows, places)))
    return Rows(block.anchors[rows], positives, negatives, 1)


def per_pair(block: Block) -> Rows:
    """A row for each (anchor, positive) that has a negative."""
    return _of_pairs(block, np.any(block.ids >= 0, axis=1))


def per_full_pair(block: Block) -> Rows:
    """A row for each (anchor, positive) whose anchor has all k negatives: rows of one length."""
    return _of_pairs(block, np.all(block.ids >= 0, axis=1))


def per_anchor(block: Block) -> Rows:
    """A row for each anchor with a positive and a negative."""
    has_positive = np.bincount(block.pair_rows, minlength=len(block.anchors)) > 0
    return _of_anchors(block, has_positive & (block.ids >= 0).any(axis=1))


def per_any_anchor(block: Block) -> Rows:
    """A row for each anchor, also without a positive or a negative."""
    return _of_anchors(block, np.ones(len(block.anchors), np.bool_))


def per_document(block: Block) -> Rows:
    """A row for each document of each anchor: its positives, then its negatives."""
    anchors = per_any_anchor(block)
    every = anchors.documents
    queries = np.repeat(anchors.queries, np.diff(every.starts))
    positives, negatives = (
        Documents(every.items[chosen], offsets(chosen), _at(every.scores, chosen))
        for chosen in (np.equal(every.labels, 1), np.equal(every.labels, 0))
    )
    return Rows(queries, positives, negatives, 1)


def _of_pairs(block: Block, chosen: Any) -> Rows:
    pairs = np.flatnonzero(chosen[block.pair_rows])
    rows = block.pair_rows[pairs]
    positives = one_each(block.pair_items[pairs], _at(block.pair_scores, pairs))
    negatives = _filled(block.ids[rows], _at(block.scores, rows))
    return Rows(block.anchors[rows], positives, negatives, block.ids.shape[1])


def _of_anchors(block: Block, chosen: NDArray[np.bool_]) -> Rows:
    pairs = np.flatnonzero(chosen[block.pair_rows])
    counts = np.bincount(block.pair_rows[pairs], minlength=len(chosen))[chosen]
    positives = Documents(block.pair_items[pairs], offsets(counts), _at(block.pair_scores, pairs))
    negatives = _filled(block.ids[chosen], _at(block.scores, chosen))
    return Rows(block.anchors[chosen], positives, negatives, block.ids.shape[1])


def _filled(ids: Ids, scores: Scores | None) -> Documents:
    """The negatives (rows, k) that are not empty."""
    filled = ids >= 0
    return Documents(ids[filled], offsets(filled.sum(axis=1)), _at(scores, filled))

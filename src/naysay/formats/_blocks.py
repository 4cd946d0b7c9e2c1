"""A block of anchors with their positives and negatives, and the rows that a file has for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]


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

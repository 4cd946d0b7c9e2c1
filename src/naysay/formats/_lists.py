"""Labelled pairs and lists, in the column order of sentence-transformers, and plain ids."""

from __future__ import annotations

import numpy as np

from naysay._rows import offsets
from naysay.formats._blocks import Block, sliced
from naysay.formats._columns import Column, Columns, lists


def labelled_pair(block: Block) -> Columns:
    """anchor, document, label: the positives of an anchor with 1, then its negatives with 0.

    With scores, `score` takes the place of `label`, as in sentence-transformers; then the file no longer says which
    documents are positives. An anchor without negatives, or without positives, keeps the pairs that it has.
    """
    rows, places = np.nonzero(block.ids >= 0)
    order = np.argsort(np.concatenate([block.pair_rows, rows]), kind="stable")  # positives stay first
    owners = np.concatenate([block.pair_rows, rows])[order]
    items = np.concatenate([block.pair_items, block.ids[rows, places]])[order]
    queries, corpus = block.job.queries, block.job.corpus
    columns = {
        "anchor": Column(queries.kind(), queries.values(block.anchors[owners])),
        "document": Column(corpus.kind(), corpus.values(items)),
    }
    if block.scores is not None and block.pair_scores is not None:
        scores = np.concatenate([block.pair_scores, block.scores[rows, places]])[order]
        columns["score"] = Column("float", scores.tolist())
    else:
        columns["label"] = Column("number", (order < len(block.pair_rows)).astype(np.int64).tolist())
    return columns


def labelled_list(block: Block) -> Columns:
    """anchor, documents, labels: a row for each (anchor, positive): the positive with 1, then the negatives with 0.

    With scores, `scores` takes the place of `labels`; the positive is still the first document.
    """
    filled = (block.ids >= 0)[block.pair_rows]
    pairs = np.flatnonzero(filled.any(axis=1))
    rows, chosen = block.pair_rows[pairs], filled[pairs]
    items = np.concatenate([block.pair_items[pairs, None], block.ids[rows]], axis=1)
    kept = np.concatenate([np.ones((len(pairs), 1), bool), chosen], axis=1)
    starts = offsets(kept.sum(axis=1))
    queries, corpus = block.job.queries, block.job.corpus
    columns = {
        "anchor": Column(queries.kind(), queries.values(block.anchors[rows])),
        "documents": Column(lists(corpus.kind()), sliced(corpus.values(items[kept]), starts)),
    }
    if block.scores is not None and block.pair_scores is not None:
        scores = np.concatenate([block.pair_scores[pairs, None], block.scores[rows]], axis=1)
        columns["scores"] = Column("floats", sliced(scores[kept].tolist(), starts))
    else:
        labels = np.broadcast_to(np.arange(items.shape[1]) == 0, kept.shape)[kept].astype(np.int64)
        columns["labels"] = Column("numbers", sliced(labels.tolist(), starts))
    return columns


def plain_ids(block: Block) -> Columns:
    """anchor, positives, negatives: a row for each anchor, ids only, nothing left out; scores beside them if any."""
    everyone = np.ones(len(block.anchors), bool)
    queries, corpus = block.job.queries, block.job.corpus
    starts, pairs = block.positives(everyone)
    places, rows, slots = block.negatives(everyone)
    names = lists(corpus.kind(of_ids=True))
    columns = {
        "anchor": Column(queries.kind(of_ids=True), queries.ids(block.anchors)),
        "positives": Column(names, sliced(corpus.ids(block.pair_items[pairs]), starts)),
        "negatives": Column(names, sliced(corpus.ids(block.ids[rows, slots]), places)),
    }
    if block.pair_scores is not None:
        columns["positive_scores"] = Column("floats", sliced(block.pair_scores[pairs].tolist(), starts))
    if block.scores is not None:
        columns["negative_scores"] = Column("floats", sliced(block.scores[rows, slots].tolist(), places))
    return columns

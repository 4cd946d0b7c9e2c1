"""Triplets and n-tuples, in the column order of sentence-transformers: one row for each (anchor, positive).

An anchor with several positives has a row, or k of them, for each: its negatives are repeated. The library goes by the
order of columns, and takes one that is called `scores` for labels.
"""

from __future__ import annotations

import numpy as np

from naysay.formats._blocks import Block
from naysay.formats._columns import Column, Columns


def triplet(block: Block) -> Columns:
    """anchor, positive, negative: a row for each negative; `scores` [positive, negative] where there are some."""
    pairs, rows, places = block.triples()
    queries, corpus = block.job.queries, block.job.corpus
    columns = {
        "anchor": Column(queries.kind(), queries.values(block.anchors[rows])),
        "positive": Column(corpus.kind(), corpus.values(block.pair_items[pairs])),
        "negative": Column(corpus.kind(), corpus.values(block.ids[rows, places])),
    }
    if block.scores is not None and block.pair_scores is not None:
        scores = np.stack([block.pair_scores[pairs], block.scores[rows, places]], axis=1)
        columns["scores"] = Column("floats", scores.tolist())
    return columns


def n_tuple(block: Block) -> Columns:
    """anchor, positive, negative_1 to negative_k: rows of one length, so an anchor with fewer than k is left out.

    `scores` is [positive, negative_1, ..., negative_k] where there are some.
    """
    pairs = block.full()
    rows = block.pair_rows[pairs]
    queries, corpus = block.job.queries, block.job.corpus
    columns = {
        "anchor": Column(queries.kind(), queries.values(block.anchors[rows])),
        "positive": Column(corpus.kind(), corpus.values(block.pair_items[pairs])),
    }
    for place in range(block.ids.shape[1]):
        columns[f"negative_{place + 1}"] = Column(corpus.kind(), corpus.values(block.ids[rows, place]))
    if block.scores is not None and block.pair_scores is not None:
        scores = np.concatenate([block.pair_scores[pairs, None], block.scores[rows]], axis=1)
        columns["scores"] = Column("floats", scores.tolist())
    return columns

"""ColBERT's examples: JSON arrays of numbers, [query, positive, negative, ...].

Queries and passages are called by their row numbers: a passage is its line in the collection.
"""

from __future__ import annotations

import numpy as np

from naysay.formats._blocks import Block
from naysay.formats._columns import Column, Columns


def colbert(block: Block) -> Columns:
    """[query, positive, negative]: a line for each negative of each (anchor, positive)."""
    pairs, rows, places = block.triples()
    return {
        "query": Column("number", block.anchors[rows].tolist()),
        "positive": Column("number", block.pair_items[pairs].tolist()),
        "negative": Column("number", block.ids[rows, places].tolist()),
    }


def colbert_nway(block: Block) -> Columns:
    """[query, positive, negative_1, ..., negative_k]: lines of one length, so an anchor with fewer is left out.

    With scores each passage is [passage, score], the teacher's score that distillation reads.
    """
    pairs = block.full()
    rows = block.pair_rows[pairs]
    items = np.concatenate([block.pair_items[pairs, None], block.ids[rows]], axis=1)
    columns = {"query": Column("number", block.anchors[rows].tolist())}
    scores = None
    if block.scores is not None and block.pair_scores is not None:
        scores = np.concatenate([block.pair_scores[pairs, None], block.scores[rows]], axis=1)
    for place in range(items.shape[1]):
        passages = items[:, place].tolist()
        if scores is not None:
            passages = list(map(list, zip(passages, scores[:, place].tolist(), strict=True)))
        columns[f"passage_{place}"] = Column("number" if scores is None else "objects", passages)
    return columns

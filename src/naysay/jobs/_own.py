"""Anchors that are in the corpus themselves: by id, by row, or by their text."""

from __future__ import annotations

import numpy as np

from naysay.checks import raise_invalid
from naysay.jobs._inputs import Side
from naysay.jobs._texts import places_of, read_keys
from naysay.mining._known import Ids, Pairs, equal_pairs, text_keys


def own_by_id(queries: Side, corpus: Side) -> Pairs:
    """(anchors, documents) with the same id; without ids, or if none is shared, by row."""
    if queries.ids is not None and corpus.ids is not None:
        wanted = np.concatenate([np.empty((0, 2), np.uint64), *read_keys(queries.keys)])
        rows = places_of(wanted, read_keys(corpus.keys))
        anchors = np.flatnonzero(rows >= 0)
        if len(anchors):
            return anchors, rows[anchors]
    if queries.n != corpus.n:
        rule = f"left out unless anchors and documents share ids, or anchors are the {corpus.n:,} documents by row"
        advice = "Pass --queries and --corpus with ids."
        raise_invalid("--same-ids", rule, f"{queries.n:,} anchors without the id of a document", advice)
    return np.arange(queries.n), np.arange(queries.n)


def own_by_text(queries: Side, corpus: Side) -> Pairs:
    """(anchors, documents) whose texts are equal but for whitespace; none where a side has no texts.

    8 bytes of memory for each anchor, and a pass over the texts of both sides.
    """
    none: Ids = np.empty(0, np.int64)
    if queries.texts is None or corpus.texts is None:
        return none, none
    keys = np.concatenate([np.empty(0, np.uint64), *map(text_keys, queries.texts.blocks())])
    return equal_pairs(keys, map(text_keys, corpus.texts.blocks()))

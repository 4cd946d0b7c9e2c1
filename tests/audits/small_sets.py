"""Small training sets to audit."""

from pathlib import Path

import numpy as np

import naysay as ns


def a_set(ids, pairs, *, scores=None, positive_scores=None, n_items=None, query_texts=None, corpus_texts=None):
    """A training set from lists, as `read_negatives` returns one."""
    ids = np.array(ids, np.int64).reshape(len(ids), -1)
    anchors, items = np.array(pairs, np.int64).reshape(-1, 2).T
    size = n_items or int(max(ids.max(initial=0), items.max(initial=0))) + 1
    return ns.formats.TrainingFile(
        path=Path("a set"),
        format="ids",
        rows=len(ids),
        ids=ids,
        scores=None if scores is None else np.array(scores, np.float32).reshape(ids.shape),
        positives=ns.Positives.from_pairs(anchors, items, len(ids), size),
        positive_scores=None if positive_scores is None else np.array(positive_scores, np.float32),
        query_ids=None,
        query_texts=query_texts,
        corpus_ids=None,
        corpus_texts=corpus_texts,
    )

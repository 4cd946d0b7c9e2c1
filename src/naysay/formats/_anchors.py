"""One row for each anchor: FlagEmbedding, Tevatron (both of its forms) and NeMo's two.

All of them sample from the lists while they train, and fail on an empty one: an anchor without a positive or without a
negative is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.formats._blocks import Block, sliced
from naysay.formats._columns import Column, Columns, lists

Ids = NDArray[np.int64]


def flag_embedding(block: Block) -> Columns:
    """query, pos, neg: texts in lists, and with scores pos_scores and neg_scores for distillation."""
    chosen = block.useful()
    (starts, pairs), (places, rows, slots) = block.positives(chosen), block.negatives(chosen)
    queries, corpus = block.job.queries, block.job.corpus
    columns = {
        "query": Column(queries.kind(), queries.values(block.anchors[chosen])),
        "pos": Column(lists(corpus.kind()), sliced(corpus.values(block.pair_items[pairs]), starts)),
        "neg": Column(lists(corpus.kind()), sliced(corpus.values(block.ids[rows, slots]), places)),
    }
    if block.scores is not None and block.pair_scores is not None:
        columns["pos_scores"] = Column("floats", sliced(block.pair_scores[pairs].tolist(), starts))
        columns["neg_scores"] = Column("floats", sliced(block.scores[rows, slots].tolist(), places))
    return columns


def tevatron(block: Block) -> Columns:
    """query_id, query, positive_passages and negative_passages: objects of docid, title (if there are any) and text."""
    chosen = block.useful()
    (starts, pairs), (places, rows, slots) = block.positives(chosen), block.negatives(chosen)
    queries = block.job.queries
    kind = "passages" if block.job.corpus.titles is None else "titled"
    return {
        "query_id": Column("text", queries.called(block.anchors[chosen])),
        "query": Column("text", _texts(queries, block.anchors[chosen])),
        "positive_passages": Column(kind, sliced(_passages(block, block.pair_items[pairs]), starts)),
        "negative_passages": Column(kind, sliced(_passages(block, block.ids[rows, slots]), places)),
    }


def tevatron_ids(block: Block) -> Columns:
    """query_id, query_text, positive_document_ids and negative_document_ids: the form with a corpus beside it."""
    chosen = block.useful()
    (starts, pairs), (places, rows, slots) = block.positives(chosen), block.negatives(chosen)
    queries, corpus = block.job.queries, block.job.corpus
    return {
        "query_id": Column("text", queries.called(block.anchors[chosen])),
        "query_text": Column("text", _texts(queries, block.anchors[chosen])),
        "positive_document_ids": Column("texts", sliced(corpus.called(block.pair_items[pairs]), starts)),
        "negative_document_ids": Column("texts", sliced(corpus.called(block.ids[rows, slots]), places)),
    }


def nemo(block: Block) -> Columns:
    """question_id, question, corpus_id, pos_doc and neg_doc: objects of id and, where there are some, score."""
    chosen = block.useful()
    (starts, pairs), (places, rows, slots) = block.positives(chosen), block.negatives(chosen)
    queries = block.job.queries
    negative_scores = None if block.scores is None else block.scores[rows, slots]
    positive_scores = None if block.pair_scores is None else block.pair_scores[pairs]
    return {
        "question_id": Column("text", queries.called(block.anchors[chosen])),
        "question": Column("text", _texts(queries, block.anchors[chosen])),
        "corpus_id": Column("text", [block.job.corpus_id] * int(chosen.sum())),
        "pos_doc": Column("objects", sliced(_scored(block, block.pair_items[pairs], positive_scores), starts)),
        "neg_doc": Column("objects", sliced(_scored(block, block.ids[rows, slots], negative_scores), places)),
    }


def nemo_inline(block: Block) -> Columns:
    """query, pos_doc, neg_doc: texts, a row for each (anchor, positive), because a row has one positive there."""
    chosen = block.useful()
    pairs = np.flatnonzero(chosen[block.pair_rows])
    places, rows, slots = block.negatives(chosen)
    queries, corpus = block.job.queries, block.job.corpus
    negatives = sliced(corpus.values(block.ids[rows, slots]), places)
    order = (np.cumsum(chosen) - 1)[block.pair_rows[pairs]]
    return {
        "query": Column("text", queries.values(block.anchors[block.pair_rows[pairs]])),
        "pos_doc": Column("text", corpus.values(block.pair_items[pairs])),
        "neg_doc": Column("texts", list(map(negatives.__getitem__, order.tolist()))),
    }


def _texts(labels: Any, rows: Ids) -> list[str]:
    texts: list[str] = labels.texts(rows)
    return texts


def _passages(block: Block, items: Ids) -> list[dict[str, str]]:
    """Objects of docid, title and text."""
    corpus = block.job.corpus
    names = ("docid", "text") if corpus.titles is None else ("docid", "title", "text")
    parts = [corpus.called(items), _texts(corpus, items)]
    if corpus.titles is not None:
        parts.insert(1, corpus.titles(items))
    return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]


def _scored(block: Block, items: Ids, scores: NDArray[np.float64] | None) -> list[dict[str, Any]]:
    """Objects of id and score."""
    called = block.job.corpus.called(items)
    if scores is None:
        return [{"id": name} for name in called]
    return [{"id": name, "score": score} for name, score in zip(called, scores.tolist(), strict=True)]

"""The columns of each format, made of a block of anchors; and the table of formats.

In the formats of sentence-transformers the order of columns counts, and a column `scores` is taken for labels. An
anchor with several positives has a row for each of them, with the same negatives. The formats with one row per anchor
(FlagEmbedding, Tevatron, NeMo) sample from the lists while they train and fail on an empty one, so an anchor without a
positive or without a negative is left out. ColBERT numbers queries and passages by their row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay._rows import offsets
from naysay.checks import check_one_of
from naysay.formats._blocks import Block, Column, Columns, Ids, Lists, lists, sliced


def triplet(block: Block) -> Columns:
    """anchor, positive, negative: a row for each negative; `scores` is [positive, negative]."""
    pairs, rows, places = block.triples()
    columns = {
        "anchor": block.queries(rows),
        "positive": block.documents(block.pair_items[pairs]),
        "negative": block.documents(block.ids[rows, places]),
    }
    if block.scores is not None and block.pair_scores is not None:
        scores = np.stack([block.pair_scores[pairs], block.scores[rows, places]], axis=1)
        columns["scores"] = Column("floats", scores.tolist())
    return columns


def n_tuple(block: Block) -> Columns:
    """anchor, positive, negative_1 to negative_k: rows of one length, so an anchor with fewer than k is left out.

    `scores` is [positive, negative_1, ..., negative_k].
    """
    pairs = block.full()
    items, scores = block.wide(pairs)
    names = ["positive", *(f"negative_{place}" for place in range(1, items.shape[1]))]
    columns = {"anchor": block.queries(block.pair_rows[pairs])}
    columns |= {name: block.documents(items[:, place]) for place, name in enumerate(names)}
    if scores is not None:
        columns["scores"] = Column("floats", scores.tolist())
    return columns


def labelled_pair(block: Block) -> Columns:
    """anchor, document, label: the positives of an anchor with 1, then its negatives with 0.

    With scores, `score` replaces `label`, as in sentence-transformers; then the file does not contain which documents
    are positives. An anchor without negatives, or without positives, keeps the pairs that it has.
    """
    rows, places = np.nonzero(block.ids >= 0)
    order = np.argsort(np.concatenate([block.pair_rows, rows]), kind="stable")  # positives stay first
    owners = np.concatenate([block.pair_rows, rows])[order]
    items = np.concatenate([block.pair_items, block.ids[rows, places]])[order]
    columns = {"anchor": block.queries(owners), "document": block.documents(items)}
    if block.scores is not None and block.pair_scores is not None:
        scores = np.concatenate([block.pair_scores, block.scores[rows, places]])[order]
        columns["score"] = Column("float", scores.tolist())
    else:
        columns["label"] = Column("number", (order < len(block.pair_rows)).astype(np.int64).tolist())
    return columns


def labelled_list(block: Block) -> Columns:
    """anchor, documents, labels: a row for each (anchor, positive): the positive with 1, then the negatives with 0.

    With scores, `scores` replaces `labels`; the positive is still the first document.
    """
    filled = (block.ids >= 0)[block.pair_rows]
    pairs = np.flatnonzero(filled.any(axis=1))
    items, scores = block.wide(pairs)
    kept = np.concatenate([np.ones((len(pairs), 1), bool), filled[pairs]], axis=1)
    starts = offsets(kept.sum(axis=1))
    corpus = block.job.corpus
    columns = {
        "anchor": block.queries(block.pair_rows[pairs]),
        "documents": Column(lists(corpus.kind()), sliced(corpus.values(items[kept]), starts)),
    }
    if scores is not None:
        columns["scores"] = Column("floats", sliced(scores[kept].tolist(), starts))
    else:
        labels = np.broadcast_to(np.arange(items.shape[1]) == 0, kept.shape)[kept].astype(np.int64)
        columns["labels"] = Column("numbers", sliced(labels.tolist(), starts))
    return columns


def plain_ids(block: Block) -> Columns:
    """anchor, positives, negatives: a row for each anchor, ids only, nothing left out; with scores if there are any."""
    anchors, positives, negatives = block.per_anchor(np.ones(len(block.anchors), bool))
    queries, corpus = block.job.queries, block.job.corpus
    kind = lists(corpus.kind(of_ids=True))
    columns = {
        "anchor": Column(queries.kind(of_ids=True), queries.ids(anchors)),
        "positives": positives.column(kind, corpus.ids(positives.items)),
        "negatives": negatives.column(kind, corpus.ids(negatives.items)),
    }
    if positives.scores is not None:
        columns["positive_scores"] = positives.score_column()
    if negatives.scores is not None:
        columns["negative_scores"] = negatives.score_column()
    return columns


def flag_embedding(block: Block) -> Columns:
    """query, pos, neg: texts in lists, and with scores pos_scores and neg_scores for distillation."""
    anchors, positives, negatives = block.per_anchor(block.useful())
    queries, corpus = block.job.queries, block.job.corpus
    kind = lists(corpus.kind())
    columns = {
        "query": Column(queries.kind(), queries.values(anchors)),
        "pos": positives.column(kind, corpus.values(positives.items)),
        "neg": negatives.column(kind, corpus.values(negatives.items)),
    }
    if positives.scores is not None and negatives.scores is not None:
        columns |= {"pos_scores": positives.score_column(), "neg_scores": negatives.score_column()}
    return columns


def tevatron(block: Block) -> Columns:
    """query_id, query, positive_passages and negative_passages: objects of docid, title (if there are any) and text."""
    anchors, positives, negatives = block.per_anchor(block.useful())
    kind = "passages" if block.job.corpus.titles is None else "titled"
    return {
        "query_id": Column("text", block.job.queries.called(anchors)),
        "query": Column("text", block.job.queries.values(anchors)),
        "positive_passages": positives.column(kind, _passages(block, positives.items)),
        "negative_passages": negatives.column(kind, _passages(block, negatives.items)),
    }


def tevatron_ids(block: Block) -> Columns:
    """query_id, query_text, positive_document_ids and negative_document_ids: the form with a corpus beside it."""
    anchors, positives, negatives = block.per_anchor(block.useful())
    queries, corpus = block.job.queries, block.job.corpus
    return {
        "query_id": Column("text", queries.called(anchors)),
        "query_text": Column("text", queries.values(anchors)),
        "positive_document_ids": positives.column("texts", corpus.called(positives.items)),
        "negative_document_ids": negatives.column("texts", corpus.called(negatives.items)),
    }


def nemo(block: Block) -> Columns:
    """question_id, question, corpus_id, pos_doc and neg_doc: objects of id and, if there are any, score."""
    anchors, positives, negatives = block.per_anchor(block.useful())
    return {
        "question_id": Column("text", block.job.queries.called(anchors)),
        "question": Column("text", block.job.queries.values(anchors)),
        "corpus_id": Column("text", [block.job.corpus_id] * len(anchors)),
        "pos_doc": positives.column("objects", _scored(block, positives)),
        "neg_doc": negatives.column("objects", _scored(block, negatives)),
    }


def nemo_inline(block: Block) -> Columns:
    """query, pos_doc, neg_doc: texts, a row for each (anchor, positive), because a row has one positive there."""
    chosen = block.useful()
    pairs = np.flatnonzero(chosen[block.pair_rows])
    _, _, negatives = block.per_anchor(chosen)
    texts = sliced(block.job.corpus.values(negatives.items), negatives.starts)
    order = (np.cumsum(chosen) - 1)[block.pair_rows[pairs]]
    return {
        "query": Column("text", block.queries(block.pair_rows[pairs]).values),
        "pos_doc": Column("text", block.documents(block.pair_items[pairs]).values),
        "neg_doc": Column("texts", list(map(texts.__getitem__, order.tolist()))),
    }


def _passages(block: Block, items: Ids) -> list[dict[str, str]]:
    """Objects of docid, title and text."""
    corpus = block.job.corpus
    names = ("docid", "text") if corpus.titles is None else ("docid", "title", "text")
    parts = [corpus.called(items), corpus.values(items)]
    if corpus.titles is not None:
        parts.insert(1, corpus.titles(items))
    return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]


def _scored(block: Block, documents: Lists) -> list[dict[str, Any]]:
    """Objects of id and score."""
    names = block.job.corpus.called(documents.items)
    if documents.scores is None:
        return [{"id": name} for name in names]
    return [{"id": name, "score": score} for name, score in zip(names, documents.scores.tolist(), strict=True)]


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

    With scores each passage is [passage, score], the teacher's score for distillation.
    """
    pairs = block.full()
    items, scores = block.wide(pairs)
    columns = {"query": Column("number", block.anchors[block.pair_rows[pairs]].tolist())}
    for place in range(items.shape[1]):
        passages = items[:, place].tolist()
        if scores is not None:
            passages = list(map(list, zip(passages, scores[:, place].tolist(), strict=True)))
        columns[f"passage_{place}"] = Column("number" if scores is None else "objects", passages)
    return columns


_TABLES = (".parquet", ".jsonl", ".hf")
_LINES = (".jsonl",)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One format of training files."""

    name: str
    columns: Callable[[Block], Columns]  # makes the columns of a block of anchors
    suffixes: tuple[str, ...]  # the kinds of file that it can be written as
    rectangular: bool = False  # whether a row needs all k negatives
    scores: str = "both"  # which it can hold: "both" (of positives and negatives together), "any" or "none"
    texts: tuple[str, ...] = ()  # which it needs: of "query" and "corpus"
    keeps: bool = False  # whether anchors without a positive or a negative stay in the file
    arrays: bool = False  # whether a line is a JSON array without names


_BOTH = ("query", "corpus")
_FORMATS = (
    Format("triplet", triplet, _TABLES),
    Format("n-tuple", n_tuple, _TABLES, rectangular=True),
    Format("labelled-pair", labelled_pair, _TABLES, keeps=True),
    Format("labelled-list", labelled_list, _TABLES),
    Format("flagembedding", flag_embedding, _TABLES, texts=_BOTH),
    Format("tevatron", tevatron, _TABLES, scores="none", texts=_BOTH),
    Format("tevatron-ids", tevatron_ids, _TABLES, scores="none", texts=("query",)),
    Format("nemo", nemo, (".json",), scores="any", texts=("query",)),
    Format("nemo-inline", nemo_inline, _LINES, scores="none", texts=_BOTH),
    Format("colbert", colbert, _LINES, scores="none", arrays=True),
    Format("colbert-nway", colbert_nway, _LINES, rectangular=True, arrays=True),
    Format("ids", plain_ids, _TABLES, scores="any", keeps=True),
)

FORMATS: Mapping[str, Format] = {each.name: each for each in _FORMATS}
_SPELLINGS = {"labeled-pair": "labelled-pair", "labeled-list": "labelled-list"}


def format_called(name: object, *others: str) -> str:
    """Return the name of a format, also in the spelling of sentence-transformers; raise if it is unknown."""
    name = _SPELLINGS.get(name, name) if isinstance(name, str) else name
    check_one_of("format", name, (*FORMATS, *others))
    return str(name)

"""The table of formats, and the columns of each, made of a block of anchors.

In the formats of sentence-transformers the order of columns counts, and a column `scores` is taken for labels. An
anchor with several positives has a row for each of them, with the same negatives. The formats with one row per anchor
(FlagEmbedding, Tevatron, NeMo) sample from the lists while they train and fail on an empty one, so an anchor without a
positive or without a negative is left out. ColBERT numbers queries and passages by their row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from naysay._rows import offsets
from naysay.checks import check_one_of
from naysay.formats._blocks import Block, Part, Parts, Scores


def triplet(block: Block) -> Parts:
    """anchor, positive, negative: a row for each negative; `scores` is [positive, negative]."""
    pairs, rows, places = block.triples()
    columns = {
        "anchor": block.queries(rows),
        "positive": Part("document", block.pair_items[pairs]),
        "negative": Part("document", block.ids[rows, places]),
    }
    if block.scores is not None and block.pair_scores is not None:
        columns["scores"] = _equal_lists(np.stack([block.pair_scores[pairs], block.scores[rows, places]], axis=1))
    return columns


def n_tuple(block: Block) -> Parts:
    """anchor, positive, negative_1 to negative_k: rows of one length, so an anchor with fewer than k is left out.

    `scores` is [positive, negative_1, ..., negative_k].
    """
    pairs = block.full()
    items, scores = block.wide(pairs)
    names = ["positive", *(f"negative_{place}" for place in range(1, items.shape[1]))]
    columns = {"anchor": block.queries(block.pair_rows[pairs])}
    columns |= {name: Part("document", items[:, place]) for place, name in enumerate(names)}
    return columns if scores is None else columns | {"scores": _equal_lists(scores)}


def _equal_lists(scores: Scores) -> Part:
    """A column of lists of one length."""
    return Part("number", scores.ravel(), scores.shape[1] * np.arange(len(scores) + 1))


def labelled_pair(block: Block) -> Parts:
    """anchor, document, label: the positives of an anchor with 1, then its negatives with 0.

    With scores, `score` replaces `label`, as in sentence-transformers; then the file does not contain which documents
    are positives. An anchor without negatives, or without positives, keeps the pairs that it has.
    """
    rows, places = np.nonzero(block.ids >= 0)
    owners = np.concatenate([block.pair_rows, rows])
    order = np.argsort(owners, kind="stable")  # positives stay first
    items = np.concatenate([block.pair_items, block.ids[rows, places]])[order]
    columns = {"anchor": block.queries(owners[order]), "document": Part("document", items)}
    if block.scores is None or block.pair_scores is None:
        return columns | {"label": Part("number", (order < len(block.pair_rows)).astype(np.int64))}
    return columns | {"score": Part("number", np.concatenate([block.pair_scores, block.scores[rows, places]])[order])}


def labelled_list(block: Block) -> Parts:
    """anchor, documents, labels: a row for each (anchor, positive): the positive with 1, then the negatives with 0.

    With scores, `scores` replaces `labels`; the positive is still the first document.
    """
    filled = (block.ids >= 0)[block.pair_rows]
    pairs = np.flatnonzero(filled.any(axis=1))
    items, scores = block.wide(pairs)
    kept = np.concatenate([np.ones((len(pairs), 1), bool), filled[pairs]], axis=1)
    starts = offsets(kept.sum(axis=1))
    columns = {"anchor": block.queries(block.pair_rows[pairs]), "documents": Part("document", items[kept], starts)}
    if scores is not None:
        return columns | {"scores": Part("number", scores[kept], starts)}
    labels = np.broadcast_to(np.arange(items.shape[1]) == 0, kept.shape)[kept].astype(np.int64)
    return columns | {"labels": Part("number", labels, starts)}


def colbert(block: Block) -> Parts:
    """[query, positive, negative]: a line for each negative of each (anchor, positive)."""
    pairs, rows, places = block.triples()
    parts = block.anchors[rows], block.pair_items[pairs], block.ids[rows, places]
    return {str(place): Part("number", values) for place, values in enumerate(parts)}


def colbert_nway(block: Block) -> Parts:
    """[query, positive, negative_1, ..., negative_k]: lines of one length, so an anchor with fewer is left out.

    With scores each passage is [passage, score], the teacher's score for distillation.
    """
    pairs = block.full()
    items, scores = block.wide(pairs)
    columns = {"query": Part("number", block.anchors[block.pair_rows[pairs]])}
    for place in range(items.shape[1]):
        beside = None if scores is None else scores[:, place]
        columns[str(place)] = Part("number" if scores is None else "pair", items[:, place], scores=beside)
    return columns


def nemo_inline(block: Block) -> Parts:
    """query, pos_doc, neg_doc: texts, a row for each (anchor, positive), because a row has one positive there."""
    filled = (block.ids >= 0)[block.pair_rows]
    pairs = np.flatnonzero(filled.any(axis=1))
    rows = block.pair_rows[pairs]
    return {
        "query": block.queries(rows),
        "pos_doc": Part("document", block.pair_items[pairs]),
        "neg_doc": Part("document", block.ids[rows][filled[pairs]], offsets(filled[pairs].sum(axis=1))),
    }


_TABLES = (".parquet", ".jsonl", ".hf")
_LINES = (".jsonl",)
_BOTH = ("query", "corpus")
SCORES = {"positives": "positive scores", "negatives": "negative scores"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One format of training files."""

    name: str
    make: Callable[[Block], Parts] | None  # makes the columns of a block; None: a row per anchor, by `lists`
    suffixes: tuple[str, ...] = _TABLES  # the kinds of file that it can be written as
    rectangular: bool = False  # whether a row needs all k negatives
    scores: str = "both"  # which it can hold: "both" (of positives and negatives together), "any" or "none"
    texts: tuple[str, ...] = ()  # which it needs: of "query" and "corpus"
    text_only: bool = False  # whether its strings are texts, not ids
    keeps: bool = False  # whether anchors without a positive or a negative stay in the file
    arrays: bool = False  # whether a line is a JSON array without names
    # {what: column} of a row with lists: a query (see `Part.what`), "corpus", "positives", "negatives", their scores
    lists: Mapping[str, str] = field(default_factory=dict)
    documents: str = "document"  # what the lists hold: see `Part.what`

    @property
    def marks(self) -> tuple[str, ...]:
        """The columns that a file needs, by which the format is recognised. Some files have no query_text."""
        names = (name for what, name in self.lists.items() if what not in ("corpus", *SCORES.values()))
        return tuple(name for name in names if name != "query_text")

    def columns(self, block: Block) -> Parts:
        """Return the columns of a block of anchors."""
        if self.make is not None:
            return self.make(block)
        chosen = np.ones(len(block.anchors), bool) if self.keeps else block.useful()
        parts: Parts = {}
        for what, part in zip(SCORES, block.lists(chosen), strict=True):
            parts[what] = part._replace(what=self.documents)
            if part.scores is not None:
                parts[SCORES[what]] = Part("number", part.scores, part.starts)
        parts |= {what: Part(what, block.anchors[chosen]) for what in ("query", "query id", "query name", "corpus")}
        return {name: parts[what] for what, name in self.lists.items() if what in parts}


def _lists(what: tuple[str, ...], names: str) -> dict[str, str]:
    return dict(zip(what, names.split(), strict=True))


_PLAIN = ("query", *SCORES)
_NAMED = ("query name", "query", *SCORES)
_NUMBERS = ("query id", *SCORES, *SCORES.values())
_FLAG = _lists((*_PLAIN, *SCORES.values()), "query pos neg pos_scores neg_scores")
_TEVATRON = _lists(_NAMED, "query_id query positive_passages negative_passages")
_BESIDE = _lists(_NAMED, "query_id query_text positive_document_ids negative_document_ids")  # a corpus beside the file
_NEMO = _lists(("query name", "query", "corpus", *SCORES), "question_id question corpus_id pos_doc neg_doc")
_INLINE = _lists(_PLAIN, "query pos_doc neg_doc")
_IDS = _lists(_NUMBERS, "anchor positives negatives positive_scores negative_scores")
_FORMATS = (
    Format("triplet", triplet, texts=_BOTH, text_only=True),
    Format("n-tuple", n_tuple, rectangular=True, texts=_BOTH, text_only=True),
    Format("labelled-pair", labelled_pair, keeps=True, texts=_BOTH, text_only=True),
    Format("labelled-list", labelled_list, texts=_BOTH, text_only=True),
    Format("flagembedding", None, texts=_BOTH, text_only=True, lists=_FLAG),
    Format("tevatron", None, scores="none", texts=_BOTH, lists=_TEVATRON, documents="passage"),
    Format("tevatron-ids", None, scores="none", texts=("query",), lists=_BESIDE, documents="document name"),
    Format("nemo", None, (".json",), scores="any", texts=("query",), lists=_NEMO, documents="object"),
    Format("nemo-inline", nemo_inline, _LINES, scores="none", texts=_BOTH, text_only=True, lists=_INLINE),
    Format("colbert", colbert, _LINES, scores="none", arrays=True),
    Format("colbert-nway", colbert_nway, _LINES, rectangular=True, arrays=True),
    Format("ids", None, scores="any", keeps=True, lists=_IDS, documents="document id"),
)
FORMATS: Mapping[str, Format] = {each.name: each for each in _FORMATS}
_SPELLINGS = {"labeled-pair": "labelled-pair", "labeled-list": "labelled-list"}


def format_called(name: object, *others: str) -> str:
    """Return the name of a format, also in the spelling of sentence-transformers; raise if it is unknown."""
    name = _SPELLINGS.get(name, name) if isinstance(name, str) else name
    check_one_of("format", name, (*FORMATS, *others))
    return str(name)

"""The table of formats: which rows a file has, and its columns, each of which knows what to write.

To add a format, add a row to `FORMATS` and a golden file to the tests; the reader follows the same row.

In the formats of sentence-transformers the order of columns counts, and a column `scores` is taken for labels. The
formats with one row per anchor (FlagEmbedding, Tevatron, NeMo) sample from the lists while they train and fail on an
empty one, so an anchor without a positive or without a negative is left out. ColBERT numbers queries and passages by
their row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import offsets
from naysay.checks import check_one_of
from naysay.formats._labels import Labels

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]


# ---- What is written: a block of anchors, and the rows made of it ----------------------------------------------------


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
    scores: Scores | None
    labels: Any = None  # (documents,) 1 positive, 0 negative

    def column(self, place: int) -> Documents:
        """The document at one place of each row, where all rows have as many."""
        at = self.starts[:-1] + place
        return Documents(self.items[at], np.arange(len(at) + 1), _at(self.scores, at))


def _at(scores: Scores | None, places: Any) -> Scores | None:
    """Some of the scores, if there are any."""
    return None if scores is None else scores[places]


def _singles(items: Ids, scores: Scores | None) -> Documents:
    """One document in each row."""
    return Documents(items, np.arange(len(items) + 1), scores)


def _filled(ids: Ids, scores: Scores | None) -> Documents:
    """The negatives (rows, k) that are not empty."""
    filled = ids >= 0
    return Documents(ids[filled], offsets(filled.sum(axis=1)), _at(scores, filled))


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
    positives = _singles(block.pair_items[pairs], _at(block.pair_scores, pairs))
    negatives = _singles(block.ids[rows, places], _at(block.scores, (rows, places)))
    return Rows(block.anchors[rows], positives, negatives, 1)


def per_pair(block: Block) -> Rows:
    """A row for each (anchor, positive) that has a negative."""
    return _of_pairs(block, np.any(block.ids >= 0, axis=1))


def per_full_pair(block: Block) -> Rows:
    """A row for each (anchor, positive) whose anchor has all k negatives: rows of one length."""
    return _of_pairs(block, np.all(block.ids >= 0, axis=1))


def _of_pairs(block: Block, chosen: Any) -> Rows:
    pairs = np.flatnonzero(chosen[block.pair_rows])
    rows = block.pair_rows[pairs]
    positives = _singles(block.pair_items[pairs], _at(block.pair_scores, pairs))
    negatives = _filled(block.ids[rows], _at(block.scores, rows))
    return Rows(block.anchors[rows], positives, negatives, block.ids.shape[1])


def per_anchor(block: Block) -> Rows:
    """A row for each anchor with a positive and a negative."""
    has_positive = np.bincount(block.pair_rows, minlength=len(block.anchors)) > 0
    return _of_anchors(block, has_positive & (block.ids >= 0).any(axis=1))


def per_any_anchor(block: Block) -> Rows:
    """A row for each anchor, also without a positive or a negative."""
    return _of_anchors(block, np.ones(len(block.anchors), np.bool_))


def _of_anchors(block: Block, chosen: NDArray[np.bool_]) -> Rows:
    pairs = np.flatnonzero(chosen[block.pair_rows])
    counts = np.bincount(block.pair_rows[pairs], minlength=len(chosen))[chosen]
    positives = Documents(block.pair_items[pairs], offsets(counts), _at(block.pair_scores, pairs))
    negatives = _filled(block.ids[chosen], _at(block.scores, chosen))
    return Rows(block.anchors[chosen], positives, negatives, block.ids.shape[1])


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


# ---- What a column holds: Arrow arrays of queries or documents -------------------------------------------------------


def text(labels: Labels, documents: Documents) -> Any:
    """Texts, or else ids."""
    return labels.texts_or_ids(documents.items)


def ids(labels: Labels, documents: Documents) -> Any:
    """Names, or else row numbers."""
    return labels.ids(documents.items)


def names(labels: Labels, documents: Documents) -> Any:
    """Names, or else row numbers as strings."""
    return labels.names(documents.items)


def numbers(labels: Labels, documents: Documents) -> Any:
    """Row numbers; pairs of [row number, score] if there are scores."""
    import pyarrow as pa

    rows = pa.array(documents.items, pa.int64())
    if documents.scores is None:
        return rows
    return pa.StructArray.from_arrays([rows, pa.array(documents.scores)], ["number", "score"])


def passages(labels: Labels, documents: Documents) -> Any:
    """Objects of docid, title if there are titles, and text."""
    import pyarrow as pa

    parts = {"docid": labels.names(documents.items), "text": labels.texts_or_ids(documents.items)}
    if labels.has_titles:
        parts = {"docid": parts["docid"], "title": labels.titles(documents.items), "text": parts["text"]}
    return pa.StructArray.from_arrays(list(parts.values()), list(parts))


def objects(labels: Labels, documents: Documents) -> Any:
    """Objects of id, and score if there are scores."""
    import pyarrow as pa

    parts = {"id": labels.names(documents.items)}
    if documents.scores is not None:
        parts["score"] = pa.array(documents.scores)
    return pa.StructArray.from_arrays(list(parts.values()), list(parts))


def scores(labels: Labels, documents: Documents) -> Any:
    """Scores; None, which leaves the column out, if there are none."""
    import pyarrow as pa

    return None if documents.scores is None else pa.array(documents.scores, pa.float32())


def relevance(labels: Labels, documents: Documents) -> Any:
    """1 for positives, 0 for negatives; None if scores replace them, as in sentence-transformers."""
    import pyarrow as pa

    return None if documents.scores is not None else pa.array(documents.labels, pa.int64())


def corpus_name(labels: Labels, documents: Documents) -> Any:
    """The name of the corpus in every row."""
    import pyarrow as pa

    return pa.array([labels.name] * len(documents.items), pa.large_string())


Value = Callable[[Labels, Documents], Any]
QUERY, POSITIVES, NEGATIVES, DOCUMENTS = "queries", "positives", "negatives", "documents"


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file: of what, and which value."""

    name: str
    of: str  # QUERY, or which documents
    value: Value
    shape: str = "one"  # "one" value in a row, a "list", or one "each": a column for each document of a row
    needed: bool = True  # whether a file without it is of another format
    also: str = ""  # another name that files have

    def arrays(self, rows: Rows, queries: Labels, corpus: Labels) -> dict[str, Any]:
        """{name: Arrow array} of what this column writes."""
        import pyarrow as pa

        if self.of == QUERY:
            labels = corpus if self.value is corpus_name else queries
            return {self.name: self.value(labels, _singles(rows.queries, None))}
        documents: Documents = getattr(rows, self.of)
        if self.shape == "each":
            found = {f"{self.name}_{at + 1}": self.value(corpus, documents.column(at)) for at in range(rows.k)}
        else:
            found = {self.name: self.value(corpus, documents)}
        if self.shape == "list" and found[self.name] is not None:
            starts = pa.array(documents.starts, pa.int32())
            found = {self.name: pa.ListArray.from_arrays(starts, found[self.name])}
        return {name: array for name, array in found.items() if array is not None}


# ---- The formats -----------------------------------------------------------------------------------------------------

_TABLES, _LINES = (".parquet", ".jsonl", ".hf"), (".jsonl",)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One format of training files."""

    name: str
    rows: Callable[[Block], Rows]
    columns: tuple[Column, ...]
    suffixes: tuple[str, ...] = _TABLES  # the kinds of file that it can be written as
    scores: str = "both"  # which it can hold: "both" (of positives and negatives together), "any" or "none"
    texts: tuple[str, ...] = ()  # which it needs: of "query" and "corpus"
    text_only: bool = False  # whether its strings are texts, not ids
    by_order: bool = False  # whether columns are told by their order, not by their names
    arrays: bool = False  # whether a line is a JSON array without names

    @property
    def rectangular(self) -> bool:
        """Whether a row needs all k negatives."""
        return self.rows is per_full_pair

    @property
    def keeps(self) -> bool:
        """Whether anchors without a positive or a negative stay in the file."""
        return self.rows in (per_any_anchor, per_document)

    def table(self, block: Block, queries: Labels, corpus: Labels) -> Any:
        """Return the rows of a block of anchors as an Arrow table."""
        import pyarrow as pa

        rows = self.rows(block)
        arrays: dict[str, Any] = {}
        for column in self.columns:
            arrays |= column.arrays(rows, queries, corpus)
        return pa.table(arrays)

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a file with these columns may be of this format."""
        needed = [each for each in self.columns if each.needed]
        if not self.by_order:
            return {each.name for each in needed} <= {*names}
        plain = plain_columns(names)
        has_each = any(each.shape == "each" for each in needed)
        marks = {each.name for each in self.columns if each.value in (scores, relevance)} - {"score"}
        is_marked = bool(marks & {*names}) or "negative" in {each.name for each in needed}
        return is_marked and (len(plain) >= len(needed) if has_each else len(plain) == len(needed))


def plain_columns(names: Sequence[str]) -> list[str]:
    """The columns that hold neither labels nor scores, by the names that sentence-transformers knows."""
    return [name for name in names if name not in ("label", "labels", "score", "scores")]


def _optional(name: str, of: str, value: Value, shape: str = "list", also: str = "") -> Column:
    return Column(name, of, value, shape, needed=False, also=also)


_ANCHOR, _POSITIVE = Column("anchor", QUERY, text), Column("positive", POSITIVES, text)
_SCORES = _optional("scores", DOCUMENTS, scores)
_TEXTS: dict[str, Any] = {"texts": ("query", "corpus"), "text_only": True}
_NUMBERED = (Column("query", QUERY, numbers), Column("positive", POSITIVES, numbers))
# fmt: off
_FORMATS = (
    Format("triplet", per_negative, (
        _ANCHOR, _POSITIVE, Column("negative", NEGATIVES, text), _SCORES), **_TEXTS, by_order=True),
    Format("n-tuple", per_full_pair, (
        _ANCHOR, _POSITIVE, Column("negative", NEGATIVES, text, "each"), _SCORES), **_TEXTS, by_order=True),
    Format("labelled-pair", per_document, (  # with scores the file does not contain which documents are positives
        _ANCHOR, Column("document", DOCUMENTS, text), _optional("label", DOCUMENTS, relevance, "one"),
        _optional("score", DOCUMENTS, scores, "one")), **_TEXTS, by_order=True),
    Format("labelled-list", per_pair, (  # with scores the positive is still the first document
        _ANCHOR, Column("documents", DOCUMENTS, text, "list"), _optional("labels", DOCUMENTS, relevance), _SCORES),
        **_TEXTS, by_order=True),
    Format("flagembedding", per_anchor, (
        Column("query", QUERY, text), Column("pos", POSITIVES, text, "list"), Column("neg", NEGATIVES, text, "list"),
        _optional("pos_scores", POSITIVES, scores), _optional("neg_scores", NEGATIVES, scores)), **_TEXTS),
    Format("tevatron", per_anchor, (
        Column("query_id", QUERY, names), Column("query", QUERY, text),
        Column("positive_passages", POSITIVES, passages, "list"),
        Column("negative_passages", NEGATIVES, passages, "list")), scores="none", texts=("query", "corpus")),
    Format("tevatron-ids", per_anchor, (  # a corpus beside the file
        Column("query_id", QUERY, names), _optional("query_text", QUERY, text, "one", also="query"),
        Column("positive_document_ids", POSITIVES, names, "list"),
        Column("negative_document_ids", NEGATIVES, names, "list")), scores="none", texts=("query",)),
    Format("nemo", per_anchor, (
        Column("question_id", QUERY, names), Column("question", QUERY, text),
        _optional("corpus_id", QUERY, corpus_name, "one"), Column("pos_doc", POSITIVES, objects, "list"),
        Column("neg_doc", NEGATIVES, objects, "list")), (".json",), scores="any", texts=("query",)),
    Format("nemo-inline", per_pair, (
        Column("query", QUERY, text), Column("pos_doc", POSITIVES, text), Column("neg_doc", NEGATIVES, text, "list")),
        _LINES, scores="none", **_TEXTS),
    Format("colbert", per_negative, (
        *_NUMBERED, Column("negative", NEGATIVES, numbers)), _LINES, scores="none", arrays=True),
    Format("colbert-nway", per_full_pair, (  # with scores a passage is [passage, score], for distillation
        *_NUMBERED, Column("negative", NEGATIVES, numbers, "each")), _LINES, arrays=True),
    Format("ids", per_any_anchor, (
        Column("anchor", QUERY, ids), Column("positives", POSITIVES, ids, "list"),
        Column("negatives", NEGATIVES, ids, "list"), _optional("positive_scores", POSITIVES, scores),
        _optional("negative_scores", NEGATIVES, scores)), scores="any"),
)
# fmt: on
FORMATS: Mapping[str, Format] = {each.name: each for each in _FORMATS}
_SPELLINGS = {"labeled-pair": "labelled-pair", "labeled-list": "labelled-list"}  # of sentence-transformers


def format_called(name: object, *others: str) -> str:
    """Return the name of a format, also in the spelling of sentence-transformers; raise if it is unknown."""
    name = _SPELLINGS.get(name, name) if isinstance(name, str) else name
    check_one_of("format", name, (*FORMATS, *others))
    return str(name)

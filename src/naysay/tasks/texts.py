"""Pairs of queries and documents in three parts, with texts, vectors, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from naysay.checks import check_all, check_kind, public, raise_invalid, shown_names
from naysay.files import as_path
from naysay.formats.beir import read_beir
from naysay.positives import Positives
from naysay.search.vectors import as_vectors
from naysay.tables import batches, chosen_column, column_names
from naysay.tasks._parts import PARTS, Parts, add_notes, check_parts, checksum, in_parts, kept_of
from naysay.text import counted
from naysay.vocabulary import Vocabulary, ids_of_names

_ID = ("id", "_id", "docid", "doc_id", "query_id", "qid")
_TEXT = ("text", "contents", "passage", "document", "query", "question", "title")
_ANCHOR = ("anchor", "query", "question", "query_id", "query-id")
_POSITIVE = ("positive", "pos", "document", "answer", "corpus_id", "corpus-id", "doc_id")
_SIDES = ("query", "document")


@final
@public
@dataclass(frozen=True, eq=False)
class TextPairs:
    """Which documents answer which queries, in three parts over the same ids; with texts, vectors, or both.

    A held-out pair that is in an earlier part is left out, and a note counts them. Documents may be in several parts:
    an encoder can rank what training never saw.

    Args:
        train: Pairs of queries and documents to train on.
        validation: Pairs that choose the learning rate and the best step.
        test: Pairs that are measured once.
        query_texts: A text for each query.
        document_texts: A text for each document.
        query_vectors: (queries, d) a vector for each query, of any encoder; kept as float32 of length 1.
        document_vectors: (documents, d) a vector for each document.
        notes: Sentences about the data.

    Raises:
        NaysayError: If a part is empty, sizes differ, or there are neither texts nor vectors of both sides.

    Examples:
        >>> import naysay as ns
        >>> parts = [ns.Positives.from_pairs([query], [query], 3, 3) for query in range(3)]
        >>> TextPairs(*parts, query_texts=["a", "b", "c"], document_texts=["A", "B", "C"])
        TextPairs(3 queries, 3 documents, train 1 pair, validation 1 pair, test 1 pair)
    """

    train: Positives
    validation: Positives
    test: Positives
    query_texts: Sequence[str] | None = None
    document_texts: Sequence[str] | None = None
    query_vectors: Any = None
    document_vectors: Any = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parts(self, Positives, "pair")
        for side, size in zip(_SIDES, (self.n_queries, self.n_documents), strict=True):
            texts, vectors = (getattr(self, f"{side}_{what}") for what in ("texts", "vectors"))
            if texts is not None and len(texts) != size:
                raise_invalid(f"{side}_texts", f"of length {size}, the number of them in `train`", len(texts))
            if vectors is not None:
                object.__setattr__(self, f"{side}_vectors", _unit(f"{side}_vectors", vectors, size))
        for what in ("texts", "vectors"):
            given = [side for side in _SIDES if getattr(self, f"{side}_{what}") is not None]
            if len(given) == 1:
                other = _SIDES[given == ["query"]]
                raise_invalid(f"{other}_{what}", f"given along with `{given[0]}_{what}`", "nothing")
        if not self.has("texts") and not self.has("vectors"):
            raise_invalid("query_texts", "given with `document_texts`, or vectors of both", "neither")
        if self.has("vectors") and self.query_vectors.shape[1] != self.document_vectors.shape[1]:
            width = self.document_vectors.shape[1]
            raise_invalid("query_vectors", f"of width {width}, like `document_vectors`", self.query_vectors.shape[1])
        earlier = self.train
        for name in PARTS[1:]:
            queries, documents = getattr(self, name).pairs()
            reasons = {"in an earlier part, too": earlier.contains(queries, documents)}
            kept, notes = kept_of(name, "pair", reasons, "at least one pair that is in no earlier part")
            part = Positives.from_pairs(queries[kept], documents[kept], self.n_queries, self.n_documents)
            object.__setattr__(self, name, part)
            add_notes(self, *notes)
            earlier = earlier.union(part)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self.train.n_anchors

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return self.train.n_items

    def has(self, what: str) -> bool:
        """Whether both sides have "texts" or "vectors"."""
        return all(getattr(self, f"{side}_{what}") is not None for side in _SIDES)

    def fingerprint(self) -> str:
        """A checksum of all pairs, texts and vectors, 16 digits."""
        pairs = [ids for name in PARTS for ids in getattr(self, name).pairs()]
        texts = ["\0".join(getattr(self, f"{side}_texts") or ()) for side in _SIDES]
        vectors = [getattr(self, f"{side}_vectors") for side in _SIDES if self.has("vectors")]
        return checksum(*pairs, *(text.encode(errors="surrogatepass").hex() for text in texts), *vectors)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {counted(len(getattr(self, name)), 'pair')}" for name in PARTS)
        queries = "1 query" if self.n_queries == 1 else f"{self.n_queries:,} queries"
        return f"TextPairs({queries}, {counted(self.n_documents, 'document')}, {parts})"


def _unit(parameter: str, vectors: Any, size: int) -> NDArray[np.float32]:
    """Vectors as float32 of length 1."""
    opened = as_vectors(parameter, vectors)
    if opened.n != size:
        raise_invalid(parameter, f"of {size} rows, one for each text or id", f"{opened.n}")
    found = np.asarray(opened.rows(0, opened.n), np.float32)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    check_all(parameter, lengths[:, 0], np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0), "of a length above 0")
    return np.asarray(found / lengths, np.float32)


@public
def split_by_document(pairs: Positives, *, seed: int = 0) -> Parts:
    """Hold out a tenth of the queries for validation and a tenth for the test, so that parts share no document.

    Queries that share a document stay together, also over several steps. The largest such group is in training.

    Args:
        pairs: All pairs of queries and documents.
        seed: Of the choice.

    Returns:
        For training, validation and test.

    Raises:
        NaysayError: If there are fewer than three groups.

    Examples:
        >>> import naysay as ns
        >>> pairs = ns.Positives.from_pairs(range(40), np.arange(40) // 2)
        >>> [len(part) for part in split_by_document(pairs)]
        [32, 4, 4]
    """
    check_kind("pairs", pairs, Positives, "a Positives")
    queries, documents = pairs.pairs()
    size = pairs.n_anchors + pairs.n_items
    edges = coo_array((np.ones(len(queries), np.int8), (queries, documents + pairs.n_anchors)), (size, size))
    group = connected_components(edges, directed=False)[1][queries]
    first = np.unique(queries, return_index=True)[1]
    names, counts = np.unique(group[first], return_counts=True)
    if len(names) < 3:
        advice = "Pass the parts instead."
        raise_invalid("pairs", "at least three groups of queries that share no document", len(names), advice)
    order = np.random.default_rng(seed).permutation(len(names))
    order = np.concatenate([order[order != counts.argmax()], [counts.argmax()]])
    before, tenth = np.cumsum(counts[order]) - counts[order], max(1, len(first) // 10)
    part = np.where(before < tenth, 1, np.where(before < max(2 * tenth, counts[order[0]] + 1), 2, 0))
    part[-1] = 0
    of_group = np.zeros(group.max() + 1, np.int64)
    of_group[names[order]] = part
    return in_parts(queries, documents, of_group[group], pairs)


@public
def read_texts(
    path: str | Path,
    *,
    corpus: str | Path | None = None,
    query_vectors: Any = None,
    corpus_vectors: Any = None,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    seed: int = 0,
) -> TextPairs:
    r"""Read pairs of queries and documents, and split them by document.

    Args:
        path: A table of pairs (.parquet, .jsonl, .csv or .tsv) with columns such as anchor or query, and positive or
            document; or a folder of BEIR with qrels/train.tsv and, if there are any, dev.tsv and test.tsv.
        corpus: A table of all documents, with ids, texts or both. The positives of the pairs are then its ids, or its
            texts if none of them is an id; for a table without ids also row numbers. Without `corpus`, documents are
            the distinct positives, and their texts.
        query_vectors: A vector for each distinct query, in the order of their first appearance (validation and test
            after training), or of a BEIR folder's judged queries: an array, or a .npy, .safetensors or .parquet file.
        corpus_vectors: A vector for each document, in the order of `corpus`, or of the first appearance.
        validation: The pairs for validation; if only `test` is given, a tenth of the training queries.
        test: The pairs for the test.
        seed: Of the split.

    Raises:
        NaysayError: If a file or column is missing, an id is unknown, or there are too few pairs.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "pairs.csv"
        ...     _ = file.write_text("query,document\n" + "".join(f"what is {n},it is {n}\n" for n in range(20)))
        ...     read_texts(file)
        TextPairs(20 queries, 20 documents, train 16 pairs, validation 2 pairs, test 2 pairs)
    """
    if validation is not None and test is None:
        raise_invalid("test", "given along with `validation`", "nothing")
    root = as_path("path", path)
    if root.is_dir():
        for name, value in {"corpus": corpus, "validation": validation, "test": test}.items():
            if value is not None:
                raise_invalid(name, "left out for a folder of BEIR", repr(str(value)))
        read, texts = _beir(root)
    else:
        files = {"path": root, "validation": validation, "test": test}
        given = {name: as_path(name, file) for name, file in files.items() if file is not None}
        read, texts = _tables(given, None if corpus is None else as_path("corpus", corpus))
    train, held, test_pairs = read[0], read[min(1, len(read) - 1)], read[-1]
    if len(read) < 3:
        train, held, other = split_by_document(read[0], seed=seed)
        train, test_pairs = (train, other) if len(read) == 1 else (train.union(other), read[1])
    return TextPairs(train, held, test_pairs, texts[0], texts[1], query_vectors, corpus_vectors)


def _beir(folder: Path) -> tuple[list[Positives], list[list[str]]]:
    """The pairs of train, dev and test, those that there are, and the texts of queries and documents."""
    names = [name for name in ("train", "dev", "test") if any((folder / "qrels").glob(f"{name}.tsv*"))]
    if "train" not in names:
        raise_invalid("path", "a folder with qrels/train.tsv", repr(str(folder)))
    read = [read_beir(folder, name) for name in names]
    firsts = np.cumsum([0, *(len(one.query_texts) for one in read)])
    parts = []
    for one, first in zip(read, firsts[:-1].tolist(), strict=True):
        queries, documents = one.positives.pairs()
        parts.append(Positives.from_pairs(queries + first, documents, int(firsts[-1]), one.positives.n_items))
    return parts, [[text for one in read for text in one.query_texts], read[0].documents()]


def _tables(files: dict[str, Path], corpus: Path | None) -> tuple[list[Positives], list[list[str]]]:
    """The same of tables of pairs, and of a table of documents."""
    columns = [_read(name, file, (_ANCHOR, _POSITIVE)) for name, file in files.items()]
    queries = list(dict.fromkeys(text for part in columns for text in part[0]))
    if corpus is None:
        documents = list(dict.fromkeys(text for part in columns for text in part[1]))
        names, texts = Vocabulary(documents), documents
    else:
        names, texts = _documents(corpus, {text for part in columns for text in part[1]})
    asked, parts = Vocabulary(queries), []
    for parameter, part in zip(files, columns, strict=True):
        rows = ids_of_names(asked, parameter, part[0]), ids_of_names(names, parameter, part[1])
        parts.append(Positives.from_pairs(*rows, len(queries), len(texts)))
    return parts, [queries, texts]


def _documents(path: Path, positives: set[str]) -> tuple[Vocabulary, list[str]]:
    """What the positives of the pairs are to be found among, ids, texts or row numbers; and the texts.

    The order is that of `mine`: ids if one of them is a positive, else texts.
    """
    present = column_names("corpus", path)
    by_place = len(present) == 2
    id_column = chosen_column("corpus", present, "", _ID, 0 if by_place else None)
    text_column = chosen_column("corpus", present, "", _TEXT, 1 if by_place else None)
    if text_column is None:
        rule = f"a table with a column named {' or '.join(_TEXT[:2])}"
        raise_invalid("corpus", rule, f"columns {', '.join(map(repr, present))}")
    if id_column is None or id_column == text_column:
        texts = _column("corpus", path, text_column)
        rows = [str(row) for row in range(len(texts))]
        known = rows if positives <= {*rows} else texts
    else:
        ids, texts = _column("corpus", path, id_column), _column("corpus", path, text_column)
        known = ids if positives & {*ids} or not positives & {*texts} else texts
    return Vocabulary(_told_apart(known) if known is texts else known), texts


def _told_apart(texts: list[str]) -> list[str]:
    """Texts as names: a text that is there again keeps its place but cannot be asked for, the first one is."""
    seen: set[str] = set()
    names = []
    for place, text in enumerate(texts):
        names.append(f"{text}\0{place}" if text in seen else text)
        seen.add(text)
    return names


def _column(parameter: str, path: Path, name: str) -> list[str]:
    return [str(value) for (values,) in batches(parameter, path, [name]) for value in values]


def _read(parameter: str, path: Path, usual: Sequence[tuple[str, ...]]) -> list[list[str]]:
    """Two columns of a table as strings, found by their usual names, or by their places if there are two."""
    present = column_names(parameter, path)
    chosen: list[str] = []
    for place, names in enumerate(usual):
        found = chosen_column(parameter, present, "", names, place)
        if found is None or found in chosen:
            rule = f"a table with a column named {' or '.join(names[:2])}"
            raise_invalid(parameter, rule, f"columns {shown_names(present)}")
        chosen.append(found)
    read: list[list[str]] = [[], []]
    for batch in batches(parameter, path, chosen):
        for column, values in zip(read, batch, strict=True):
            column += map(str, values)
    if not read[0]:
        raise_invalid(parameter, "a table with rows", "none")
    return read

"""Retrieval: pairs of queries and documents; an adapter on given vectors or a small text encoder, by nDCG."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, normalize

from naysay import losses, pools
from naysay.arrays import to_numpy, to_torch
from naysay.checks import check_all, check_kind, public, raise_invalid, shown_names
from naysay.files import as_path
from naysay.formats.beir import read_beir
from naysay.lab._data import (
    PARTS,
    File,
    Ids,
    Parts,
    at_most_anchors,
    check_left_out,
    check_parts,
    checksum,
    keep_new_pairs,
    pairs_by_part,
    part_files,
    sizes_of_parts,
)
from naysay.lab._task import (
    ADAPTIVE_K,
    BLOCK,
    NUMBERS,
    Device,
    Learner,
    Step,
    Task,
    in_blocks,
    parts_of_positives,
    row_products,
    uses,
)
from naysay.lab.ranking import ranking
from naysay.mining import Mined, mine
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search.vectors import as_vectors
from naysay.tables import batches, chosen_column, column_names
from naysay.text import counted
from naysay.types import Negatives, Query

_ID = ("id", "_id", "docid", "doc_id", "query_id", "qid")
_TEXT = ("text", "contents", "passage", "document", "query", "question", "title")
_ANCHOR = ("anchor", "query", "question", "query_id", "query-id")
_POSITIVE = ("positive", "pos", "document", "answer", "corpus_id", "corpus-id", "doc_id")
_SIDES = ("query", "document")
_BUCKETS, _DIM = 1 << 15, 64  # of the text encoder
_TOKENS = re.compile(r"[a-z0-9]+|[^\w\s]")
_RATES = {"adapter": (0.0001, 0.0003, 0.001, 0.003, 0.01), "subwords": (0.001, 0.003, 0.01, 0.03, 0.1)}
_NEEDS = {"adapter": "vectors", "subwords": "texts"}
_TOP, TEMPERATURE = 10, 0.05
_VALIDATED, _SEARCHED = 1000, 10_000  # queries and documents that are ranked for validation; the test ranks all
_JUDGED = 2000  # training queries for which the share of false negatives is estimated
_MINED = 8  # negatives of a query that are mined
_RESULTS_KEPT = 6  # mined negatives of earlier seeds
_ESTIMATED = "Negatives that are probably positives, estimated by detectors.Posterior on the vectors before training."


# ---- data ------------------------------------------------------------------------------------------------------------


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
        reviewed: Pairs without a label that a review found relevant. The test measures them, too; nothing is trained.

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
    reviewed: Positives | None = None

    def __post_init__(self) -> None:
        check_parts(self, Positives, "pair")
        for side, size in zip(_SIDES, (self.n_queries, self.n_documents), strict=True):
            texts, vectors = (getattr(self, f"{side}_{what}") for what in ("texts", "vectors"))
            if texts is not None and len(texts) != size:
                raise_invalid(f"{side}_texts", f"of length {size}, the number of them in `train`", len(texts))
            if vectors is not None:
                object.__setattr__(self, f"{side}_vectors", _unit(f"{side}_vectors", vectors, size))
        for what in ("texts", "vectors"):
            sides = [side for side in _SIDES if getattr(self, f"{side}_{what}") is not None]
            if len(sides) == 1:
                other = "document" if sides == ["query"] else "query"
                raise_invalid(f"{other}_{what}", f"given along with `{sides[0]}_{what}`", "nothing")
        if not self.has("texts") and not self.has("vectors"):
            raise_invalid("query_texts", "given with `document_texts`, or vectors of both", "neither")
        if self.has("vectors") and self.query_vectors.shape[1] != self.document_vectors.shape[1]:
            width = self.document_vectors.shape[1]
            raise_invalid("query_vectors", f"of width {width}, like `document_vectors`", self.query_vectors.shape[1])
        keep_new_pairs(self, "at least one pair that is in no earlier part")
        if self.reviewed is not None:
            check_kind("reviewed", self.reviewed, Positives, "a Positives")
            sizes = self.n_queries, self.n_documents
            if (self.reviewed.n_anchors, self.reviewed.n_items) != sizes:
                raise_invalid("reviewed", f"of {sizes[0]} anchors and {sizes[1]} items, like `train`", self.reviewed)

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
        pairs += [] if self.reviewed is None else self.reviewed.pairs()
        texts = ["\0".join(getattr(self, f"{side}_texts") or ()) for side in _SIDES]
        vectors = [getattr(self, f"{side}_vectors") for side in _SIDES if self.has("vectors")]
        return checksum(*pairs, *texts, *vectors)

    def __repr__(self) -> str:
        queries = "1 query" if self.n_queries == 1 else f"{self.n_queries:,} queries"
        return f"TextPairs({queries}, {counted(self.n_documents, 'document')}, {sizes_of_parts(self, 'pair')})"


def _unit(parameter: str, vectors: Any, size: int) -> NDArray[np.float32]:
    """Vectors as float32 of length 1."""
    opened = as_vectors(parameter, vectors)
    if opened.n != size:
        raise_invalid(parameter, f"of {size} rows, one for each text or id", f"{opened.n}")
    rows = np.asarray(opened.rows(0, opened.n), np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    check_all(parameter, lengths[:, 0], np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0), "of a length above 0")
    return np.asarray(rows / lengths, np.float32)


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
    first_rows = np.unique(queries, return_index=True)[1]
    groups, counts = np.unique(group[first_rows], return_counts=True)  # queries of each group
    if len(groups) < 3:
        advice = "Pass the parts instead."
        raise_invalid("pairs", "at least three groups of queries that share no document", len(groups), advice)
    largest = counts.argmax()
    order = np.random.default_rng(seed).permutation(len(groups))
    order = np.append(order[order != largest], largest)
    before = np.cumsum(counts[order]) - counts[order]  # queries of the groups before
    tenth = max(1, len(first_rows) // 10)
    end_of_test = max(2 * tenth, counts[order[0]] + 1)
    part = np.where(before < tenth, 1, np.where(before < end_of_test, 2, 0))
    part[-1] = 0
    part_of_group = np.zeros(group.max() + 1, np.int64)
    part_of_group[groups[order]] = part
    return pairs_by_part(queries, documents, part_of_group[group], pairs)


@public
def read_texts(
    path: File,
    *,
    corpus: File | None = None,
    query_vectors: Any = None,
    corpus_vectors: Any = None,
    validation: File | None = None,
    test: File | None = None,
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
    files = part_files(path, validation, test)
    if files["path"].is_dir():
        check_left_out("for a folder of BEIR", corpus=corpus, validation=validation, test=test)
        parts, query_texts, document_texts = _read_beir_folder(files["path"])
    else:
        parts, query_texts, document_texts = _read_tables(files, None if corpus is None else as_path("corpus", corpus))
    if len(parts) < 3:
        train, held_out, other = split_by_document(parts[0], seed=seed)
        parts = [train, held_out, other] if len(parts) == 1 else [train.union(other), held_out, parts[1]]
    train, held_out, tested = parts
    return TextPairs(train, held_out, tested, query_texts, document_texts, query_vectors, corpus_vectors)


def _read_beir_folder(folder: Path) -> tuple[list[Positives], list[str], list[str]]:
    """The pairs of train, dev and test, those that there are, and the texts of queries and documents."""
    names = [name for name in ("train", "dev", "test") if any((folder / "qrels").glob(f"{name}.tsv*"))]
    if "train" not in names:
        raise_invalid("path", "a folder with qrels/train.tsv", repr(str(folder)))
    read = [read_beir(folder, name) for name in names]
    query_texts = [text for one in read for text in one.query_texts]
    parts, first_query = [], 0
    for one in read:
        queries, documents = one.positives.pairs()
        sizes = len(query_texts), one.positives.n_items
        parts.append(Positives.from_pairs(queries + first_query, documents, *sizes))
        first_query += len(one.query_texts)
    return parts, query_texts, read[0].documents()


def _read_tables(files: dict[str, Path], corpus: Path | None) -> tuple[list[Positives], list[str], list[str]]:
    """The same of tables of pairs, and of a table of documents."""
    columns = {parameter: _read_pairs(parameter, file) for parameter, file in files.items()}
    queries = list(dict.fromkeys(text for asked, _ in columns.values() for text in asked))
    documents = list(dict.fromkeys(text for _, answers in columns.values() for text in answers))
    row_of_query = {text: row for row, text in enumerate(queries)}
    row_of_document = {text: row for row, text in enumerate(documents)}
    if corpus is not None:
        row_of_document, documents = _read_documents(corpus, {*documents})
    parts = []
    for parameter, (asked, answers) in columns.items():
        unknown = [name for name in answers if name not in row_of_document]
        if unknown:
            raise_invalid(parameter, "documents of `corpus`, by their ids or texts", shown_names(unknown))
        pairs = [row_of_query[text] for text in asked], [row_of_document[name] for name in answers]
        parts.append(Positives.from_pairs(*pairs, len(queries), len(documents)))
    return parts, queries, documents


def _read_pairs(parameter: str, path: Path) -> list[list[str]]:
    """The queries and the documents of a table, found by the usual names of columns, or by their places."""
    anchor = _needed_column(parameter, path, _ANCHOR, 0)
    positive = _needed_column(parameter, path, _POSITIVE, 1, taken=anchor)
    columns = _string_columns(parameter, path, [anchor, positive])
    if not columns[0]:
        raise_invalid(parameter, "a table with rows", "none")
    return columns


def _read_documents(path: Path, positives: set[str]) -> tuple[dict[str, int], list[str]]:
    """{name: row} of documents, and the texts of all rows.

    Names are ids, or row numbers where there are no ids; texts, if no positive is such a name. Of equal texts it is the
    first.
    """
    text_column = _needed_column("corpus", path, _TEXT, 1)
    id_column = _usual_column("corpus", path, _ID, 0)
    if id_column in (None, text_column):
        (texts,) = _string_columns("corpus", path, [text_column])
        names = [str(row) for row in range(len(texts))]
    else:
        names, texts = _string_columns("corpus", path, [str(id_column), text_column])
    if positives.isdisjoint(names) and not positives.isdisjoint(texts):
        names = texts
    return {name: row for row, name in reversed([*enumerate(names)])}, texts


def _usual_column(parameter: str, path: Path, usual: tuple[str, ...], place: int) -> str | None:
    """The column with one of the usual names, or at a place of a table of two columns."""
    return chosen_column(parameter, column_names(parameter, path), "", usual, place)


def _needed_column(parameter: str, path: Path, usual: tuple[str, ...], place: int, taken: str = "") -> str:
    """The same, or an error."""
    name = _usual_column(parameter, path, usual, place)
    if name in (None, taken):
        rule = f"a table with a column named {' or '.join(usual[:2])}"
        raise_invalid(parameter, rule, f"columns {shown_names(column_names(parameter, path))}")
    return str(name)


def _string_columns(parameter: str, path: Path, names: list[str]) -> list[list[str]]:
    """Columns of a table as strings."""
    columns: list[list[str]] = [[] for _ in names]
    for batch in batches(parameter, path, names):
        for column, values in zip(columns, batch, strict=True):
            column += map(str, values)
    return columns


# ---- models ----------------------------------------------------------------------------------------------------------


@final
@public
class Pieces:
    """The hashed pieces of many texts: each word, its runs of 3, 4 and 5 letters, and each punctuation mark.

    A hash must be the same in every process: CRC-32 is, Python's own is not. Pieces in the same bucket share a vector;
    with 32,768 buckets few do.

    Args:
        texts: The texts, of any length; an empty one has the piece 0.

    Attributes:
        ids: (pieces,) int32, from 0 to 32,767, text after text.
        starts: (n + 1,) where each text begins.

    Examples:
        >>> pieces = Pieces(["a cat", "the cat sat"])
        >>> len(pieces), pieces.ids.max() < 32_768
        (2, np.True_)
    """

    def __init__(self, texts: Sequence[str]) -> None:
        hashed = lru_cache(maxsize=None)(_hashed)
        blocks, sizes = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for first in range(0, len(texts), BLOCK):
            words = (_TOKENS.findall(text.lower()) for text in texts[first : first + BLOCK])
            pieces = [[piece for word in each for piece in hashed(word)] or [0] for each in words]
            sizes.append(np.fromiter(map(len, pieces), np.int64, len(pieces)))
            blocks.append(np.fromiter((piece for each in pieces for piece in each), np.int32, sizes[-1].sum()))
        self.starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        self.ids = np.concatenate(blocks)

    def of(self, rows: Ids) -> tuple[Tensor, Tensor]:
        """Return the pieces of some texts, concatenated, and where each text begins."""
        sizes = self.starts[rows + 1] - self.starts[rows]
        begins = np.cumsum(sizes) - sizes
        places = np.arange(sizes.sum()) + np.repeat(self.starts[rows] - begins, sizes)
        return torch.from_numpy(self.ids[places].astype(np.int64)), torch.from_numpy(begins)

    def __len__(self) -> int:
        return len(self.starts) - 1


def _hashed(word: str) -> list[int]:
    """The buckets of a word and of its runs of letters; < and > mark its ends."""
    marked = f"<{word}>"
    runs = [marked[at : at + size] for size in (3, 4, 5) if size < len(marked) for at in range(len(marked) - size + 1)]
    return [zlib.crc32(piece.encode()) % _BUCKETS for piece in (marked, *runs)]


@final
@public
class SubwordEncoder(nn.Module):
    """A text is the normalised sum of its pieces' vectors; queries and documents share a table of 32,768 x 64 numbers.

    Vectors begin at random, those of rare pieces longer, so that texts that share rare pieces are close at once.

    Args:
        texts: All texts that it will be trained on, for the counts of pieces.
        rng: Of the first vectors.

    Examples:
        >>> import naysay as ns
        >>> texts = Pieces(["a cat", "the cat sat"])
        >>> SubwordEncoder([texts], ns.rng_for(0)).vectors(texts).shape
        (2, 64)
    """

    def __init__(self, texts: Sequence[Pieces], rng: np.random.Generator) -> None:
        super().__init__()
        counts = sum((np.bincount(each.ids, minlength=_BUCKETS) for each in texts), np.zeros(_BUCKETS, np.int64))
        rarity = np.log((1 + counts.sum()) / (1 + counts)) / np.log(1 + counts.sum())
        table = rng.standard_normal((_BUCKETS, _DIM)) * rarity[:, None]
        self.table = nn.Parameter(torch.from_numpy(table.astype(np.float32)))

    def forward(self, texts: Pieces, rows: Ids) -> Tensor:
        """Return (n, 64) vectors of some texts."""
        pieces, begins = (part.to(self.table.device) for part in texts.of(rows))
        return normalize(embedding_bag(pieces, self.table, begins, mode="sum"), dim=1)

    @torch.no_grad()
    def vectors(self, texts: Pieces) -> NDArray[np.float32]:
        """Return (n, 64) vectors of all texts, as NumPy."""
        vectors: NDArray[np.float32] = to_numpy(in_blocks(lambda rows: self(texts, rows), np.arange(len(texts))))
        return vectors


class Adapter(nn.Module):
    """x + x W, normalised: a change of given vectors. W is one matrix for queries and documents, and begins at 0."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim, dim))

    def forward(self, vectors: Tensor, rows: Ids) -> Tensor:
        """(n, dim) of some rows of the given vectors."""
        chosen = vectors[to_torch(rows, vectors.device)]
        return normalize(chosen + chosen @ self.weight, dim=1)


# ---- task ------------------------------------------------------------------------------------------------------------


def _ranked_among(wanted: Positives, known: Positives, most: int) -> tuple[Ids, Ids, Positives, Positives]:
    """The anchors that want something, at most so many items with all wanted ones, and both pairs over these ids."""
    rows, items = np.flatnonzero(wanted.count()), np.unique(wanted.pairs()[1])
    others = np.setdiff1d(np.arange(wanted.n_items), items)
    distractors = np.random.default_rng(0).permutation(others)[: max(0, most - len(items))]
    items = np.sort(np.concatenate([items, distractors]))
    place_of_anchor, place_of_item = (np.full(size, -1) for size in (wanted.n_anchors, wanted.n_items))
    place_of_anchor[rows] = np.arange(len(rows))
    place_of_item[items] = np.arange(len(items))

    def renumbered(pairs: Positives) -> Positives:
        pair_anchors, pair_items = pairs.pairs()
        anchors, there = place_of_anchor[pair_anchors], place_of_item[pair_items]
        kept = (anchors >= 0) & (there >= 0)
        return Positives.from_pairs(anchors[kept], there[kept], len(rows), len(items))

    return rows, items, renumbered(wanted), renumbered(known)


def _of_same_anchors(pairs: Positives, others: Positives) -> Positives:
    """The pairs whose anchor has one of the other pairs."""
    anchors, items = pairs.pairs()
    kept = others.count()[anchors] > 0
    return Positives.from_pairs(anchors[kept], items[kept], pairs.n_anchors, pairs.n_items)


@final
@public
class Retrieval(Task):
    """The task of finding documents for queries: data, model and measures, the same for all kinds of negatives.

    A step takes a batch of training pairs and minimises InfoNCE of cosines at temperature 0.05. Validation ranks 1,000
    queries among 10,000 documents at most, the test all among all; known documents of a query are left out. The test
    has a second nDCG, by which unlabelled documents that a review found, or that are probably relevant, count, too:
    labels alone prefer negatives that push such documents away.

    Args:
        data: Pairs with texts or vectors.
        model: "adapter" (x + x W on given vectors) or "subwords" (hashed pieces of words); by default the first that
            the data allows.
        batch: Pairs of a step; by default a hundredth of the training pairs, rounded to a power of two from 256 to
            4,096, and at most all.
        device: Where torch encodes and trains, such as "cuda". Draws, mining and ranks are made on the processor.

    Examples:
        >>> import naysay as ns
        >>> pairs = ns.lab.split_by_document(ns.Positives.from_pairs(range(30), range(30)))
        >>> vectors = np.eye(30)
        >>> task = Retrieval(ns.lab.TextPairs(*pairs, query_vectors=vectors, document_vectors=vectors))
        >>> task.measure, task.model, task.pairs
        ('ndcg@10', 'adapter', 24)
    """

    name = "text"
    models = tuple(_RATES)
    measure = f"ndcg@{_TOP}"
    methods: Mapping[str, str] = MappingProxyType(
        {
            "in-batch": "in_batch()",
            "SimCSE": "in_batch()",
            "N-pair": "in_batch()",
            "mined": "Static(mined(None))",
            "judged": "Static(mined('auto'))",
            "nearest": "Static(Nearest(vectors, depth=200, positives=positives))",
            "ANCE": "Static(Nearest(vectors, depth=200, positives=positives))",
            "in-batch + uniform": "in_batch(Static(Everything(positives)))",
            "in-batch + mined": "in_batch(Static(mined(None)))",
            "in-batch + judged": "in_batch(Static(mined('auto')))",
            "DPR": "in_batch(Static(mined(None)))",
            **ADAPTIVE_K,
        }
    )
    quick_steps = 60
    quick = ("uniform:8", "in-batch", "mined:8", "judged:8", "in-batch + judged:8")
    defaults = (
        *("uniform:8", "in-batch", "nearest:8", "mined:8", "judged:8"),
        *("mixed-sources:8", "in-batch + mined:8", "in-batch + judged:8"),
    )

    def __init__(
        self, data: TextPairs, model: str | None = None, *, batch: int | None = None, device: Device = "cpu"
    ) -> None:
        """Keep the parts of the data in the forms that training needs."""
        check_kind("data", data, TextPairs, "TextPairs")
        super().__init__(data, TextPairs, model or ("adapter" if data.has("vectors") else "subwords"), device)
        needed = _NEEDS[self.model]
        if not data.has(needed):
            other = "subwords" if self.model == "adapter" else "adapter"
            raise_invalid("model", f"{other!r} for data without {needed}", repr(self.model))
        self.learning_rates = _RATES[self.model]
        self.queries, self.documents = data.train.pairs()
        self.set_batch(len(data.train), batch)
        inputs: list[Any] = [getattr(data, f"{side}_{needed}") for side in _SIDES]
        self.sides: list[Any] = [Pieces(part) if needed == "texts" else to_torch(part, self.device) for part in inputs]
        self.validated = _ranked_among(at_most_anchors(data.validation, _VALIDATED), data.train, _SEARCHED)
        validated, searched = len(self.validated[0]), len(self.validated[1])
        tested = int((data.test.count() > 0).sum())
        self.test_work = tested * data.n_documents / (validated * searched)
        self.ranked = (
            f"Validation ranks {searched:,} documents for {validated:,} queries, "
            f"the test {data.n_documents:,} for {tested:,}."
        )
        self.mined = lru_cache(maxsize=_RESULTS_KEPT)(self._mine)
        self.unlabelled = lru_cache(maxsize=_RESULTS_KEPT)(self._unlabelled)
        self.sizes = {"temperature": TEMPERATURE, "false negatives": _ESTIMATED}

    def start(self, seed: int) -> Retriever:
        """A model before training, the same for equal seeds."""
        return Retriever(self, seed)

    def _mine(self, seed: int, judge: str | None, most: int, part: str = "train") -> tuple[Mined, Ids, float]:
        """Mine at most so many queries of a part by the vectors before training; the queries, and processor seconds."""
        began = time.process_time()
        queries, documents = at_most_anchors(getattr(self.data, part), most).pairs()
        rows, places = np.unique(queries, return_inverse=True)
        known = Positives.from_pairs(places, documents, len(rows), self.data.n_documents)
        untrained = self.start(seed)
        vectors = to_numpy(untrained.all_vectors(0, rows)), to_numpy(untrained.all_vectors(1))
        mined = mine(*vectors, known, _MINED, judge=judge)
        return mined, rows, time.process_time() - began

    def _unlabelled(self, seed: int) -> tuple[str, Positives | None]:
        """What a review found, or else what is probably relevant, of the test queries; the word for it, and pairs.

        A document is probably relevant if `detectors.Posterior` on the vectors before training says so with 0.5 or
        more. None if it could not be fitted.
        """
        if self.data.reviewed is not None:
            return "reviewed", self.data.reviewed
        mined, rows, _ = self.mined(seed, "auto", self.data.n_queries, "test")
        if not getattr(mined.judge, "fitted", False):
            return "estimated", None
        nearest = mined.candidates
        places, slots = np.nonzero((nearest.ids >= 0) & (nearest.suspicion >= 0.5))
        pairs = rows[places], nearest.ids[places, slots]
        return "estimated", Positives.from_pairs(*pairs, self.data.n_queries, self.data.n_documents)


@final
class Retriever(Learner):
    """A model of `Retrieval` in training."""

    def __init__(self, task: Retrieval, seed: int) -> None:
        self.task, self.seed = task, seed
        if task.model == "adapter":
            self.network: nn.Module = Adapter(task.sides[0].shape[1])
        else:
            self.network = SubwordEncoder(task.sides, rng_for(seed, worker=2))
        self.network.to(task.device)
        self.untrained_seed = 0 if task.model == "adapter" else seed  # an adapter begins the same for all seeds
        self._nearest_pools: list[pools.Nearest] = []

    def encode(self, side: int, ids: Any) -> Tensor:
        """(..., d) vectors of queries (side 0) or documents (side 1), each encoded once; -1 gets any."""
        asked = np.maximum(np.asarray(to_numpy(ids)), 0)
        distinct, inverse = np.unique(asked, return_inverse=True)
        vectors: Tensor = self.network(self.task.sides[side], distinct)
        return vectors[to_torch(inverse.reshape(asked.shape), vectors.device)]

    @torch.no_grad()
    def all_vectors(self, side: int, rows: Ids | None = None) -> Tensor:
        """The vectors of a side: all, or those of some rows."""
        inputs = self.task.sides[side]
        return in_blocks(lambda block: self.network(inputs, block), np.arange(len(inputs)) if rows is None else rows)

    @torch.no_grad()
    def score(self, queries: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the cosines of documents (B, n) and queries (B,)."""
        return row_products(self.encode(0, queries), self.encode(1, ids))

    @torch.no_grad()
    def similarity(self, documents: Tensor, ids: Tensor) -> Tensor:
        """(B, n) the cosines of documents (B, n) and documents (B,)."""
        return row_products(self.encode(1, documents), self.encode(1, ids))

    def parts(self) -> dict[str, Any]:
        """See `Learner.parts`."""
        model = {
            "score": self.score,
            "similarity": self.similarity,
            "vectors": lambda: self.all_vectors(1),
            "Nearest": self._nearest,
            "in_batch": self._in_batch,
            "mined": self._mined,
        }
        known = parts_of_positives(self.task.data.train)
        return {**super().parts(), **known, **model, **NUMBERS, "margin": 0.1}

    def _mined(self, judge: str | None) -> pools.Local:
        """The mined negatives of each training query, as a pool of lists."""
        train = self.task.data.train
        mined, rows, seconds = self.task.mined(self.untrained_seed, judge, train.n_anchors)
        self.processor_seconds_spared += seconds
        lists = np.full((train.n_anchors, mined.ids.shape[1]), -1, np.int64)
        lists[rows] = mined.ids
        return pools.Local(lists, train)

    def _nearest(self, vectors: Callable[[], Tensor], depth: int, positives: Positives) -> pools.Nearest:
        """A pool of the nearest documents, whose vectors are renewed once an epoch."""
        pool = pools.Nearest(vectors(), min(depth, positives.n_items), positives)
        self._nearest_pools.append(pool)
        return pool

    def query(self, rows: Ids, step: int) -> Query:
        """See `Learner.query`."""
        queries, documents = (
            to_torch(side[rows], self.task.device) for side in (self.task.queries, self.task.documents)
        )
        return Query(queries, positives=documents, vectors=self.encode(0, queries), step=step)

    def after_step(self, *, epoch_ends: bool) -> None:
        """See `Learner.after_step`. Pools of the nearest documents get the vectors of the model as it is now."""
        super().after_step(epoch_ends=epoch_ends)
        if epoch_ends:
            for pool in self._nearest_pools:
                pool.update(self.all_vectors(1))

    def scores(self, query: Query, negatives: Negatives) -> tuple[Tensor, Tensor]:
        """See `Learner.scores`."""
        positive = (query.vectors * self.encode(1, query.positives)).sum(dim=1)
        return positive / TEMPERATURE, row_products(query.vectors, self.encode(1, negatives.ids)) / TEMPERATURE

    def _in_batch(self, sampler: Any = None) -> Step:
        """A step with the other documents of the batch as negatives, and further ones of a sampler."""
        batch = pools.InBatch(self.task.data.train)

        def step_of(rows: Ids, k: int, *, step: int) -> tuple[Tensor, Negatives]:
            query = self.query(rows, step)
            documents = self.encode(1, query.positives)
            negatives = batch.draw(query, rng=rng_for(self.seed, step, worker=1)).like(query)
            scores = query.vectors @ documents.T / TEMPERATURE
            positive = scores.diagonal()
            further: dict[str, Any] = {}
            mask = negatives.mask
            if sampler is not None:
                drawn = sampler.sample(query, k, rng=rng_for(self.seed, step))
                vectors = self.encode(1, drawn.ids)
                further = {"negatives": vectors, "negative_mask": drawn.mask}
                negatives = Negatives(torch.cat([negatives.ids, drawn.ids], dim=1))
                scores = torch.cat([scores, row_products(query.vectors, vectors) / TEMPERATURE], dim=1)
            self.note_hardness(positive, scores, negatives.mask)
            loss = losses.in_batch(query.vectors, documents, temperature=TEMPERATURE, mask=mask, **further)
            return loss.mean(), negatives

        return uses("batch" if sampler is None else "batch + {k}", step_of)

    def false_share(self, rows: Ids, negatives: Negatives) -> float:
        """The mean probability that drawn pairs are positives, by `Posterior` on the vectors before training.

        It is fitted to 2,000 training queries at most, and rows of other queries are left out. Documents that are not
        among a query's nearest count as 0. NaN if the posterior could not be fitted.
        """
        mined, judged, _ = self.task.mined(self.untrained_seed, "auto", _JUDGED)
        drawn, queries = negatives.numpy(), self.task.queries[rows]
        row_of_query = np.searchsorted(judged, queries).clip(max=len(judged) - 1)
        estimated = (judged[row_of_query] == queries)[:, None] & drawn.mask
        if not estimated.any() or not getattr(mined.judge, "fitted", False):
            return nan
        nearest = mined.candidates
        places = np.nonzero(nearest.ids >= 0)
        shape = len(judged), self.task.data.n_documents
        suspicion = csr_array((nearest.suspicion[places], (places[0], nearest.ids[places])), shape)
        drawn_rows = np.broadcast_to(row_of_query[:, None], drawn.ids.shape)[estimated]
        return float(suspicion[drawn_rows, drawn.ids[estimated]].toarray().mean())

    def measured(self, part: str) -> dict[str, float]:
        """See `Learner.measured`."""
        data = self.task.data
        rows, documents, wanted, known = self.task.validated
        if part == "test":
            wanted, known = data.test, data.train.union(data.validation)
            rows, documents = np.arange(wanted.n_anchors), np.arange(wanted.n_items)
        queries, items = self.all_vectors(0, rows), self.all_vectors(1, documents)
        ranks = ranking(queries, wanted, items=items, known=known)
        measures = {self.task.measure: ranks.ndcg(_TOP)}
        if part == "test":
            kind, unlabelled = self.task.unlabelled(self.untrained_seed)
            if unlabelled is not None:
                relevant = _of_same_anchors(unlabelled, wanted).union(wanted)
                name = f"{self.task.measure}, {kind} positives too"
                measures[name] = ranking(queries, relevant, items=items, known=known).ndcg(_TOP)
        return measures | {f"recall@{_TOP}": ranks.recall(_TOP), "mrr": ranks.mrr, "auc": ranks.auc}

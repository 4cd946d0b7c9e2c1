"""write_negatives: mined negatives as a training file of another library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from naysay._packages import need_datasets
from naysay._rows import offsets
from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_kind,
    check_one_of,
    check_range,
    first_bad,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.files import check_target, draft_of
from naysay.formats import runs
from naysay.formats._contents import Block, Ids, Labels, Scores, labels_of
from naysay.formats._formats import FORMATS, Format, format_called
from naysay.places import Url
from naysay.positives import POSITIVE, Positives

_BLOCK = 1 << 16  # anchors whose negatives are compared with known pairs at a time
Write = Callable[[Any], None]  # writes an Arrow table
_FIRST_BLOCK, _MOST_CELLS = 64, 8192  # negatives of a block: a few at first, as texts may be long, then more
_BLOCK_BYTES = 1 << 23  # bytes of a block from which on the next ones do not grow
_GROUP = 1 << 25  # bytes of a row group of Parquet, or of a batch of Arrow
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")  # which end a line for `str.splitlines`: JSON can escape them
_DATA_SET = re.compile(r"(dataset_info|state|dataset_dict)\.json|(data|cache)-[\w-]+\.arrow|indices\.arrow")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """What `write_negatives` wrote.

    Args:
        path: The file.
        format: Its format.
        rows: The rows, or lines, of the file.
        dropped: {reason: anchors} that the format has no row for.

    Examples:
        >>> Written(Path("train.jsonl"), "triplet", 3, {"no negative": 1}).dropped
        {'no negative': 1}
    """

    path: Path
    format: str
    rows: int
    dropped: Mapping[str, int] = field(default_factory=dict)


@public
def write_negatives(
    path: str | Path,
    format: str,
    *,
    ids: ArrayLike,
    positives: Positives,
    scores: ArrayLike | None = None,
    positive_scores: ArrayLike | None = None,
    query_ids: Any = None,
    corpus_ids: Any = None,
    query_texts: Any = None,
    corpus_texts: Any = None,
    corpus_titles: Any = None,
    with_scores: bool = False,
    short: str | None = None,
    corpus_path: str | None = None,
    tag: str | None = None,
) -> Written:
    """Write the negatives of each anchor in a format that a trainer reads.

    In the formats whose row is a pair or a triple, an anchor with several positives has a row for each of them, as in
    sentence-transformers. The file appears whole or not at all. Memory of one block.

    Args:
        path: A file in an existing folder. Its ending decides the kind: .parquet, .jsonl or .hf (a data set on disk).
        format: The name of one of `FORMATS`, such as "triplet" or "flagembedding"; or "trec".
        ids: (n, k), the negatives of anchor i in row i, -1 empty.
        positives: The known pairs. No negative may be one of them, or be marked to be ignored.
        scores: (n, k). "trec" needs them, the other formats write them if `with_scores`.
        positive_scores: One for each pair of `positives`, in the order of `positives.pairs()`.
        query_ids: Names of the anchors: a list, an Arrow array or a Vocabulary. Row numbers by default.
        corpus_ids: Names of the documents, likewise.
        query_texts: Texts of the anchors, which most formats need; "ids", "colbert" and "trec" do without.
        corpus_texts: Texts of the documents, likewise.
        corpus_titles: Titles of the documents; only for "tevatron".
        with_scores: Whether scores are written beside the documents. In the labelled formats they replace the labels.
        short: What "n-tuple" and "colbert-nway" do with an anchor that has fewer than k negatives: "drop" (the
            default; counted in `Written.dropped`) or "raise".
        corpus_path: The path of the corpus, for "nemo"; its last part is the corpus_id.
        tag: The name of the run, for "trec"; "naysay" by default.

    Returns:
        The number of rows, and of anchors that were dropped.

    Examples:
        >>> from tempfile import mkdtemp
        >>> known = Positives.from_pairs([0, 1], [2, 0], n_items=4)
        >>> texts = {"query_texts": ["capital?", "river?"], "corpus_texts": ["Seine", "Lyon", "Paris", "Nice"]}
        >>> path = f"{mkdtemp()}/train.jsonl"
        >>> written = write_negatives(path, "triplet", ids=[[1, 3], [2, -1]], positives=known, **texts)
        >>> print(written.path.read_text(), end="")
        {"anchor": "capital?", "positive": "Paris", "negative": "Lyon"}
        {"anchor": "capital?", "positive": "Paris", "negative": "Nice"}
        {"anchor": "river?", "positive": "Seine", "negative": "Paris"}
    """
    name, target = format_called(format, "trec"), Path(path)
    check_place(target)
    negatives = whole_numbers("ids", to_numpy(ids), "(n, k)").astype(np.int64, copy=False)
    if not negatives.shape[1]:
        raise_invalid("ids", "of shape (n, k), k at least 1", f"shape {negatives.shape}")
    has_titles = corpus_titles is not None
    check_options(name, target, short, corpus_path, tag, with_scores=with_scores, has_titles=has_titles)
    check_kind("positives", positives, Positives, "a Positives")
    queries = labels_of("query", len(negatives), ids=query_ids, texts=query_texts)
    has_names = any(values is not None for values in (corpus_ids, corpus_texts, corpus_titles))
    size = None if has_names else max(positives.n_items, int(negatives.max(initial=-1)) + 1)
    corpus_name = "" if corpus_path is None else Path(corpus_path).name
    corpus = labels_of("corpus", size, ids=corpus_ids, texts=corpus_texts, titles=corpus_titles, name=corpus_name)
    check_range("ids", negatives, corpus.n, "documents", least=-1)
    _check_known(positives, negatives, corpus.n)
    has_scores = with_scores or name == "trec"
    negative_scores = _score_array("scores", scores, negatives.shape, (negatives >= 0) & has_scores)
    if name == "trec":
        if negative_scores is None:
            raise_invalid("scores", "given for the format 'trec'", None)
        rows = runs.write_lines(target, negatives, negative_scores, queries, corpus, "naysay" if tag is None else tag)
        return Written(target, "trec", rows)
    chosen = FORMATS[name]
    indptr, items, is_positive = _pairs(positives, len(negatives))
    known_scores = _score_array("positive_scores", positive_scores, is_positive.shape, is_positive & has_scores)
    if not with_scores:
        negative_scores = known_scores = None
    elif known_scores is not None:
        known_scores = known_scores[is_positive]
    for side, labels in (("query", queries), ("corpus", corpus)):
        if side in chosen.texts and labels.texts_of is None:
            advice = "Pass query_texts and corpus_texts, or write row numbers and names with format='ids'."
            raise_invalid(f"{side}_texts", f"given for the format {name!r}", None, advice)
    if with_scores and negative_scores is None:
        raise_invalid("scores", "given for a file with scores", None)
    if with_scores and chosen.scores == "both" and known_scores is None:
        raise_invalid("positive_scores", f"given for a file with scores in the format {name!r}", None)
    contents = Contents(negatives, negative_scores, indptr, items, known_scores, queries, corpus)
    dropped = _dropped(chosen, contents, short)
    rows = write_contents(target, chosen, contents, corpus_path)
    return Written(target, name, rows, dropped)


def _pairs(positives: Positives, n: int) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """(indptr, items, kept): the positives of n anchors, and which of the known pairs they are."""
    kept = np.ones(len(positives), bool) if positives.relation is None else positives.relation == POSITIVE
    counts = np.zeros(n, np.int64)
    counts[: positives.n_anchors] = positives.count()
    return offsets(counts), positives.indices[kept].astype(np.int64), kept


def _dropped(chosen: Format, contents: Contents, short: str | None) -> dict[str, int]:
    """{reason: anchors} that have no row; raises for an anchor short of negatives if short="raise"."""
    found, k = (contents.ids >= 0).sum(axis=1), contents.ids.shape[1]
    if short == "raise" and (found < k).any():
        rule = f"{k} negatives for each anchor, because `short` is 'raise'"
        raise_invalid("ids", rule, first_bad(found, found < k))
    if chosen.keeps:
        return {}
    without = np.diff(contents.indptr) == 0
    reasons = {"no positive": without, "no negative": ~without & (found == 0)}
    if chosen.rectangular:
        reasons[f"fewer than {k} negatives"] = ~without & (found > 0) & (found < k)
    return {reason: int(anchors.sum()) for reason, anchors in reasons.items() if anchors.any()}


def check_options(
    name: str,
    target: Path | Url,
    short: str | None,
    corpus_path: str | None,
    tag: str | None,
    *,
    with_scores: bool = False,
    has_titles: bool = False,
) -> None:
    """Raise for options that do not fit the format, and for one that is missing."""
    if has_titles and name != "tevatron":
        advice = "Join titles and texts first."
        raise_invalid("corpus_titles", f"left out for the format {name!r}", "titles", advice)
    if short is not None:
        check_one_of("short", short, ("drop", "raise"))
        if name == "trec" or not FORMATS[name].rectangular:
            raise_invalid("short", f"left out for the format {name!r}, which holds rows of any length", repr(short))
    for parameter, given, only in (("corpus_path", corpus_path, "nemo"), ("tag", tag, "trec")):
        if given is not None and name != only:
            raise_invalid(parameter, f"left out for the format {name!r}", repr(given))
    if corpus_path is None and name == "nemo":
        advice = "It is the folder of the corpus that the documents' ids are of."
        raise_invalid("corpus_path", "given for the format 'nemo'", None, advice)
    if name == "trec":
        return
    suffixes = FORMATS[name].suffixes
    if target.suffix.lower() not in suffixes:
        rule = f"a file that ends in {' or '.join(suffixes)} for the format {name!r}"
        raise_invalid("path", rule, repr(str(target)))
    if with_scores and FORMATS[name].scores == "none":
        raise_invalid("with_scores", f"left out for the format {name!r}, which has no place for scores", True)


def _check_known(positives: Positives, ids: Ids, n_items: int) -> None:
    """Raise if a negative is a known pair."""
    if positives.n_anchors > len(ids):
        raise_invalid("positives", f"of at most {len(ids)} anchors, the rows of ids", positives.n_anchors)
    if positives.n_items > n_items:
        raise_invalid("positives", f"of at most {n_items} items, the size of the corpus", positives.n_items)
    first, count = "", 0
    for start in range(0, positives.n_anchors, _BLOCK):
        stop = min(start + _BLOCK, positives.n_anchors)
        block = np.where(ids[start:stop] < positives.n_items, ids[start:stop], -1)
        rows, places = np.nonzero(positives.contains(np.arange(start, stop), block, relation="any"))
        if len(rows):
            first = first or f"item {block[rows[0], places[0]]} of anchor {start + rows[0]}"
            count += len(rows)
    if count:
        rule = "negatives, none of them known to be a positive or to be ignored"
        raise_invalid("ids", rule, f"{first} ({count} such pair{'s' if count > 1 else ''})")


def _score_array(
    parameter: str, given: ArrayLike | None, shape: tuple[int, ...], used: NDArray[np.bool_]
) -> NDArray[np.float32] | None:
    """Return scores as float32; raise unless they are finite where `used`."""
    if given is None:
        return None
    scores = as_array(parameter, to_numpy(given))
    if scores.shape != shape or scores.dtype.kind not in "fiu":
        raise_invalid(parameter, f"numbers of shape {shape}", f"shape {scores.shape} {scores.dtype}")
    with np.errstate(over="ignore"):  # too large for float32 raises below
        number = scores.astype(np.float32)
    check_all(parameter, number, np.isfinite(number) | ~used, "finite")
    return number


# ---- a file, block by block, which appears whole or not at all -------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All that is written."""

    ids: Ids  # (n, k) negatives, -1 empty
    scores: Scores | None  # (n, k)
    indptr: Ids  # (n + 1,) where the positives of each anchor begin in `items`
    items: Ids  # the positives, without pairs whose relation is "ignore"
    positive_scores: Scores | None  # one for each of `items`
    queries: Labels
    corpus: Labels

    def tables(self, chosen: Format) -> Iterator[tuple[int, Any]]:
        """Yield (anchors, Arrow table) of all anchors in order. An anchor is never split."""
        cells_before = np.cumsum(np.maximum(1, np.diff(self.indptr)) * self.ids.shape[1])
        start, cells = 0, _FIRST_BLOCK
        while start < len(self.ids):
            done = cells_before[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(cells_before, done + cells, side="right")))
            table = chosen.table(self._block(start, stop), self.queries, self.corpus)
            yield stop - start, table
            start = stop
            is_large = table.nbytes > _BLOCK_BYTES
            cells = max(1, cells // 2) if is_large else min(_MOST_CELLS, 2 * cells)

    def schema(self, chosen: Format) -> Any:
        """The columns and their types, which a block without anchors has, too."""
        return chosen.table(self._block(0, 0), self.queries, self.corpus).schema

    def _block(self, start: int, stop: int) -> Block:
        pairs = slice(self.indptr[start], self.indptr[stop])
        return Block(
            anchors=np.arange(start, stop),
            ids=self.ids[start:stop],
            scores=None if self.scores is None else self.scores[start:stop],
            pair_rows=np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1])),
            pair_items=self.items[pairs],
            pair_scores=None if self.positive_scores is None else self.positive_scores[pairs],
        )


def check_place(path: Path) -> None:
    """Raise unless a training file can be written at `path`."""
    if path.suffix.lower() != ".hf":
        check_target("path", path)
    elif not path.parent.is_dir():
        raise_invalid("path", "in an existing folder", repr(str(path)))
    elif path.exists() and not (path / "dataset_info.json").is_file():  # what may be replaced is a data set
        raise_invalid("path", "new, or a data set on disk", repr(str(path)))
    for file in path.iterdir() if path.is_dir() else ():
        if _DATA_SET.fullmatch(file.name) is None:  # it would be removed with the data set
            raise_invalid("path", "a data set and nothing else", f"{str(path)!r}, which holds {file.name!r}")


def write_contents(
    target: Path,
    chosen: Format,
    contents: Contents,
    corpus_path: str | None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write everything to `target`, by way of a draft, and return the number of rows.

    `corpus_path` is for NeMo's header; `on_progress` is called with the number of anchors of each block.
    """
    kind = target.suffix.lower()
    rows = 0
    with draft_of(target, "path") as draft:
        if kind == ".parquet":
            writer = parquet_writer(draft, contents.schema(chosen))
        elif kind == ".hf":
            writer = data_set_writer(draft, contents.schema(chosen))
        elif kind == ".json":
            header = json_line({"corpus": {"path": corpus_path}}).removesuffix(b"}")
            writer = _json(draft, header + b', "data": [\n', b",\n", b"\n]}\n")
        else:
            writer = _json(draft, arrays=chosen.arrays)
        with writer as write:
            for anchors, table in contents.tables(chosen):
                write(table)
                rows += table.num_rows
                on_progress(anchors)
    return rows


# ---- JSON ------------------------------------------------------------------------------------------------------------


def json_line(row: Any) -> bytes:
    """Return a row as JSON in UTF-8, in which what some readers take for the end of a line is escaped."""
    text = _ENCODER.encode(row)
    if not text.isascii():
        text = _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode()


@contextmanager
def _json(
    draft: Path, head: bytes = b"", between: bytes = b"\n", tail: bytes = b"\n", *, arrays: bool = False
) -> Iterator[Write]:
    """Write JSON objects, or arrays, one a line; `head` and `tail` make one document of them."""
    with draft.open("wb", buffering=1 << 20) as stream:
        stream.write(head)
        before = b""

        def write(table: Any) -> None:
            nonlocal before
            for row in _with_short_numbers(table).to_pylist():
                stream.writelines((before, json_line(_as_array(row) if arrays else row)))
                before = between

        yield write
        if before or head:
            stream.write(tail)


def _as_array(row: dict[str, Any]) -> list[Any]:
    """The values of a row; a passage with its score is [passage, score]."""
    return [list(value.values()) if isinstance(value, dict) else value for value in row.values()]


def _with_short_numbers(table: Any) -> Any:
    """The same table with float32 as the shortest decimals that round to them: 0.1, not 0.10000000149011612."""
    for place, each in enumerate(table.schema):
        if "float" in str(each.type):
            column = table.column(place)
            for wanted in (pa.string(), pa.float64()):
                column = column.cast(with_types(each.type, {pa.float32(): wanted}))
            table = table.set_column(place, each.name, column)
    return table


def with_types(kind: Any, wanted: Mapping[Any, Any]) -> Any:
    """An Arrow type in which some types are others, also inside of lists and objects."""
    if pa.types.is_list(kind):
        return pa.list_(with_types(kind.value_type, wanted))
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, with_types(each.type, wanted)) for each in kind])
    return wanted.get(kind, kind)


# ---- Parquet and data sets -------------------------------------------------------------------------------------------


@contextmanager
def parquet_writer(draft: Path, schema: Any) -> Iterator[Write]:
    """Write Parquet in row groups of about 32 MB."""
    with pq.ParquetWriter(draft, schema, compression="zstd") as file, _grouped(file) as write:
        yield write


@contextmanager
def data_set_writer(draft: Path, schema: Any) -> Iterator[Write]:
    """Write a folder for `datasets.load_from_disk`; the rows pass through one Arrow file beside it."""
    datasets = need_datasets()
    stream = draft.with_name(draft.name + ".arrow")
    try:
        with pa.ipc.new_stream(stream, schema) as file, _grouped(file) as write:
            yield write
        data = datasets.Dataset.from_file(str(stream))
        data.save_to_disk(str(draft), num_shards=None if len(data) else 1)  # by default 0 for no rows, not to be read
    finally:
        stream.unlink(missing_ok=True)


@contextmanager
def _grouped(file: Any) -> Iterator[Write]:
    """Collect blocks into larger tables, written by `file.write_table`."""
    waiting: list[Any] = []

    def flush() -> None:
        if waiting:
            file.write_table(pa.concat_tables(waiting))
            waiting.clear()

    def write(table: Any) -> None:
        waiting.append(table)
        if sum(part.nbytes for part in waiting) > _GROUP:
            flush()

    yield write
    flush()

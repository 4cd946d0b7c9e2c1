"""Reviewers: who can answer whether a document answers a query, and the file that keeps their answers.

A reviewer is any function of `Pairs` that returns (n,) numbers from 0 to 1, or an object with such a method `review`;
0.5 and above is a yes. The kinds are `CrossEncoder`, `Encoder`, `LLM` (`detectors.llm`) and `People`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats, need_torch, to_numpy
from naysay.checks import as_array, check_number, check_whole, public, raise_invalid, shown, shown_names, with_parameter
from naysay.encode.model import load_sentence_transformer
from naysay.errors import NaysayError
from naysay.files import as_path, raise_unwritable, write_whole
from naysay.tables import batches, column_names
from naysay.text import described, from_spreadsheet_cell, spreadsheet_cell

Ids = NDArray[np.int64]
FALSE_NEGATIVE = "false_negative"  # the column of the answers in a review file
COLUMNS = ("query_id", "query", "document_id", "document", "score", "posterior", FALSE_NEGATIVE)
_CELL = 30_000  # characters that a cell of a spreadsheet may hold
ENDINGS = (".csv", ".jsonl", ".parquet")
_YES_NO = {"yes": True, "no": False, "y": True, "n": False, "true": True, "false": False, "": None}
_COSINE_SCALE = 0.05  # a cosine this far above the threshold of an encoder is an answer of 0.73
_FOUND_SHARE = 0.75  # of the labelled positives are above the threshold of an encoder that is given none


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Queries and documents that a reviewer is asked about.

    Args:
        anchors: (n,) rows of the queries.
        items: (n,) rows of the documents.
        queries: (n,) their texts; None if there are none.
        documents: (n,) the same of the documents.
        query_vectors: (n, d) or None.
        document_vectors: (n, d) or None.
        query_ids: (n,) names of the queries; the row numbers by default.
        document_ids: (n,) names of the documents.

    Examples:
        >>> pairs = Pairs(np.array([0, 0]), np.array([4, 7]), ["a query"] * 2, ["a document", "another"])
        >>> len(pairs), pairs.take(np.array([1])).documents, pairs.names
        (2, ['another'], [('0', '4'), ('0', '7')])
    """

    anchors: Ids
    items: Ids
    queries: Sequence[str] | None = None
    documents: Sequence[str] | None = None
    query_vectors: NDArray[Any] | None = None
    document_vectors: NDArray[Any] | None = None
    query_ids: Sequence[str] | None = None
    document_ids: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.anchors)

    def take(self, places: Ids) -> Pairs:
        """Some of the pairs."""
        columns: dict[str, Any] = {}
        for name in self.__slots__:
            column = getattr(self, name)
            is_list = column is not None and not isinstance(column, np.ndarray)
            columns[name] = (
                [column[place] for place in places] if is_list else None if column is None else column[places]
            )
        return Pairs(**columns)

    @property
    def names(self) -> list[tuple[str, str]]:
        """The names of query and document of each pair."""
        queries = self.query_ids or [str(row) for row in self.anchors.tolist()]
        documents = self.document_ids or [str(row) for row in self.items.tolist()]
        return list(zip(queries, documents, strict=True))

    def hashes(self) -> list[tuple[str, str]]:
        """A hash of query and document of each pair: of texts, else of vectors, else of names."""
        sides = []
        names = zip(*self.names, strict=True) if len(self) else ((), ())
        for texts, vectors, ids in zip(
            (self.queries, self.documents), (self.query_vectors, self.document_vectors), names, strict=True
        ):
            contents = (text.encode() for text in texts or ids)
            if texts is None and vectors is not None:
                contents = (np.ascontiguousarray(vector).tobytes() for vector in vectors)
            sides.append([hashlib.sha256(content).hexdigest()[:32] for content in contents])
        return list(zip(*sides, strict=True))


@runtime_checkable
class Reviewer(Protocol):
    """Who can answer. Optional attributes: `name`, by which its answers are kept, and `needs_texts`."""

    def review(self, pairs: Pairs) -> Any:
        """(n,) from 0 to 1: how surely the document answers the query. NaN: no answer."""


@final
@dataclass(frozen=True, slots=True)
class Function:
    """A user's function of pairs as a reviewer. It must answer about all of them; its answers are not kept."""

    function: Callable[[Pairs], Any]

    def review(self, pairs: Pairs) -> Any:
        """What the function answers, which may not be NaN."""
        answers = as_array("reviewer", to_numpy(self.function(pairs)))
        if answers.dtype.kind == "f" and np.isnan(answers).any():
            place = int(np.flatnonzero(np.isnan(answers.reshape(-1)))[0])
            raise_invalid("reviewer", "a function that answers with numbers from 0 to 1", f"NaN for pair {place}")
        return answers


# ---- Answers that are kept -------------------------------------------------------------------------------------------


@final
@public
class AnswerFile:
    """Answers on disk, so that no pair is asked about twice: one JSON object a line, each written as it arrives.

    A line has the hashes of query and document, the name of the reviewer, and the answer, null where it could not be
    read. It holds no texts. A last line that a killed process left unfinished is ignored.

    Args:
        path: The file, which is made if there is none.

    Examples:
        >>> import tempfile
        >>> file = AnswerFile(Path(tempfile.mkdtemp()) / "answers.jsonl")
        >>> file.add("a reviewer", ("query hash", "document hash"), 0.75)
        >>> AnswerFile(file.path).of("a reviewer")
        {('query hash', 'document hash'): 0.75}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = as_path("path", path)
        self._answers: dict[str, dict[tuple[str, str], float]] = {}
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        whole, _, unfinished = text.rpartition("\n")
        for number, line in enumerate(whole.splitlines(), 1):
            if line:
                self._read(line, number)
        self._starts_with = "\n" if unfinished else ""

    def _read(self, line: str, number: int) -> None:
        try:
            one = json.loads(line)
            answer = np.nan if one["answer"] is None else float(one["answer"])
            self._answers.setdefault(one["reviewer"], {})[one["query"], one["document"]] = answer
        except (ValueError, KeyError, TypeError):
            if not line.startswith("{") or line.endswith("}"):  # else a killed process left it
                raise_invalid("path", "a file of answers", f"{shown(line[:80])} in line {number} of {self.path.name}")

    def __repr__(self) -> str:
        return described(self, f"{sum(map(len, self._answers.values())):,} answers")

    def of(self, reviewer: str) -> dict[tuple[str, str], float]:
        """The answers of a reviewer by the hashes of pairs."""
        return self._answers.setdefault(reviewer, {})

    def add(self, reviewer: str, pair: tuple[str, str], answer: float) -> None:
        """Keep an answer. It is on disk when this returns."""
        self.of(reviewer)[pair] = answer
        value = None if np.isnan(answer) else answer
        line = json.dumps({"query": pair[0], "document": pair[1], "reviewer": reviewer, "answer": value})
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(f"{self._starts_with}{line}\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise_unwritable("path", self.path, error)
        self._starts_with = ""


def ask(reviewer: Reviewer, pairs: Pairs, file: AnswerFile | None = None) -> Floats:
    """(n,) the answers of a reviewer, NaN where it has none. Those in the file are not asked for again."""
    if getattr(reviewer, "needs_texts", False) and (pairs.queries is None or pairs.documents is None):
        raise_invalid("reviewer", "one that needs no texts, where there are none", type(reviewer).__name__)
    name = getattr(reviewer, "name", None)
    if file is None or name is None:
        return _checked(reviewer, pairs)
    kept, hashes = file.of(name), pairs.hashes()
    unknown = list({pair: place for place, pair in reversed(list(enumerate(hashes))) if pair not in kept}.values())
    places = np.array(sorted(unknown), np.int64)
    for place, answer in _each(reviewer, pairs.take(places)):
        file.add(name, hashes[places[place]], answer)
    return np.array([kept.get(pair, np.nan) for pair in hashes], np.float64)


def _each(reviewer: Reviewer, pairs: Pairs) -> Iterator[tuple[int, float]]:
    """(place, answer) of pairs, as they arrive if the reviewer tells them one by one."""
    if not len(pairs):
        return
    if isinstance(reviewer, _OneByOne):
        yield from reviewer.each(pairs)
        return
    for place, answer in enumerate(_checked(reviewer, pairs).tolist()):
        if not np.isnan(answer):
            yield place, answer


@runtime_checkable
class _OneByOne(Protocol):
    def each(self, pairs: Pairs) -> Iterator[tuple[int, float]]: ...


def _checked(reviewer: Reviewer, pairs: Pairs) -> Floats:
    """(n,) answers from 0 to 1, or NaN."""
    n = len(pairs)
    if not n:
        return np.empty(0)
    rule = f"one that answers with {n} numbers from 0 to 1 for {n} pairs"
    try:
        given = reviewer.review(pairs)
    except NaysayError:
        raise
    except Exception as error:
        error_text = f"`reviewer` must be {rule}, got {type(error).__name__}: {error}."
        raise NaysayError(error_text) from error
    answers = as_array("reviewer", to_numpy(given))
    if answers.shape not in ((n,), (n, 1)) or answers.dtype.kind not in "biuf":
        raise_invalid("reviewer", rule, f"shape {answers.shape} {answers.dtype}")
    answers = answers.reshape(-1).astype(np.float64)
    bad = (answers < 0) | (answers > 1)
    if bad.any():
        raise_invalid("reviewer", rule, f"{answers[bad][0]:g} for pair {int(bad.argmax())} ({bad.sum()} such)")
    return answers


# ---- Models ----------------------------------------------------------------------------------------------------------


@final
@public
class CrossEncoder:
    """A cross-encoder of sentence-transformers as a reviewer: 1 / (1 + exp(threshold - logit)).

    Args:
        path: A folder, or a name on the hub. A model with one label.
        threshold: The logit from which it says yes.
        device: "cpu", "cuda", ...; chosen by sentence-transformers by default.
        batch: Pairs at a time.
    """

    needs_texts = True

    def __init__(self, path: str | Path, *, threshold: float = 0.0, device: str | None = None, batch: int = 32) -> None:
        self.threshold = check_number("threshold", threshold, finite=True)
        self.batch = check_whole("batch", batch, 1)
        self.name = f"cross-encoder:{path} from {self.threshold:g}"
        with with_parameter("path", instead_of="name"):
            self.model = load_sentence_transformer("CrossEncoder", path, device)
        if self.model.num_labels != 1:
            raise_invalid("path", "a cross-encoder with one label", f"{self.model.num_labels}")

    def review(self, pairs: Pairs) -> Floats:
        """(n,) its answers."""
        texts = list(zip(pairs.queries or (), pairs.documents or (), strict=True))
        identity = need_torch().nn.Identity()
        logits = self.model.predict(texts, batch_size=self.batch, activation_fn=identity, show_progress_bar=False)
        return _logistic(np.asarray(logits, np.float64) - self.threshold)


@final
@public
class Encoder:
    """A stronger embedding model of sentence-transformers as a reviewer: it says yes from a cosine on.

    Args:
        path: A folder, or a name on the hub.
        threshold: The cosine from which it says yes. By default mining chooses it, so that three of four labelled
            positives are above it.
        device: "cpu", "cuda", ...; chosen by sentence-transformers by default.
        batch: Texts at a time.
    """

    needs_texts = True
    name = None  # it is cheaper to ask than to read, and its threshold depends on the data

    def __init__(
        self, path: str | Path, *, threshold: float | None = None, device: str | None = None, batch: int = 64
    ) -> None:
        self.threshold = None if threshold is None else check_number("threshold", threshold, at_least=-1, at_most=1)
        self.batch = check_whole("batch", batch, 1)
        with with_parameter("path", instead_of="name"):
            self.model = load_sentence_transformer("SentenceTransformer", path, device)

    def fit(self, positives: Pairs) -> None:
        """Choose the threshold by labelled positives, if none was given."""
        if self.threshold is None and len(positives):
            self.threshold = float(np.quantile(self._cosines(positives), 1 - _FOUND_SHARE))

    def review(self, pairs: Pairs) -> Floats:
        """(n,) its answers."""
        if self.threshold is None:
            raise_invalid("threshold", "given where there are no labelled positives to choose it by", None)
        return _logistic((self._cosines(pairs) - self.threshold) / _COSINE_SCALE)

    def _cosines(self, pairs: Pairs) -> Floats:
        settings: dict[str, Any] = {
            "batch_size": self.batch,
            "normalize_embeddings": True,
            "show_progress_bar": False,
        }
        queries = self.model.encode_query(list(pairs.queries or ()), **settings)
        documents = self.model.encode_document(list(pairs.documents or ()), **settings)
        return np.asarray((queries * documents).sum(axis=1), np.float64)


def _logistic(values: Floats) -> Floats:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


# ---- People ----------------------------------------------------------------------------------------------------------


@final
@public
class People:
    """People who answer in a file: what it does not answer is written for them, and read back by the next run.

    The file has a row for each pair, with its texts and a column "false_negative" for yes or no; .csv, .jsonl or
    .parquet. The page of a mining report makes the same file.

    Args:
        path: The file; it need not exist yet.

    Attributes:
        pending: Pairs that were asked for and have no answer yet.

    Examples:
        >>> import tempfile
        >>> people = People(Path(tempfile.mkdtemp()) / "review.csv")
        >>> people.review(Pairs(np.array([0]), np.array([7]))), len(people.pending)
        (array([nan]), 1)
    """

    name = None  # the file itself keeps the answers
    is_trusted = True

    def __init__(self, path: str | Path) -> None:
        self.path = as_path("path", path)
        if self.path.suffix.lower() not in ENDINGS:
            raise_invalid("path", f"a file that ends in {', '.join(ENDINGS[:-1])} or .parquet", shown(str(path)))
        filled = read_review_file("path", self.path) if self.path.exists() else {}
        self.answers = {pair: answer for pair, (answer, _) in filled.items()}
        self.pending: list[Pairs] = []

    def __repr__(self) -> str:
        return described(self, f"{len(self.answers):,} answers")

    def review(self, pairs: Pairs) -> Floats:
        """(n,) what the file answers, NaN where it does not."""
        answers = np.array([self.answers.get(names, np.nan) for names in pairs.names], np.float64)
        unanswered = np.flatnonzero(np.isnan(answers))
        if len(unanswered):
            self.pending.append(pairs.take(unanswered))
        return answers


def write_review_file(parameter: str, path: Path, pairs: Sequence[Pairs], scores: Floats, probability: Floats) -> None:
    """Write pairs with their texts, and an empty column for the answers."""
    names = [name for one in pairs for name in one.names]
    columns: list[list[Any]] = [
        [query for query, _ in names],
        [text[:_CELL] for one in pairs for text in one.queries or [""] * len(one)],
        [document for _, document in names],
        [text[:_CELL] for one in pairs for text in one.documents or [""] * len(one)],
        *([None if np.isnan(one) else round(one, 6) for one in part.tolist()] for part in (scores, probability)),
        [""] * len(names),
    ]
    rows = list(zip(*columns, strict=True))
    kind = path.suffix.lower()
    if kind == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), buffer)
        write_whole(parameter, path, buffer.getvalue())
        return
    with io.StringIO(newline="") as text:
        if kind == ".csv":
            cells = ([spreadsheet_cell(value) if isinstance(value, str) else value for value in row] for row in rows)
            csv.writer(text).writerows([COLUMNS, *cells])
        else:
            objects = (dict(zip(COLUMNS, row, strict=True)) for row in rows)
            text.writelines(f"{json.dumps(one, ensure_ascii=False)}\n" for one in objects)
        write_whole(parameter, path, text.getvalue().encode())


def read_review_file(parameter: str, path: Path) -> dict[tuple[str, str], tuple[bool, int]]:
    """{(query id, document id): (whether it is a false negative, its row)} of the rows that have an answer."""
    wanted = ["query_id", "document_id", FALSE_NEGATIVE]
    names = column_names(parameter, path)
    if any(names.count(name) != 1 for name in wanted):
        rule = f"a file of a review, with the columns {', '.join(wanted)}"
        raise_invalid(parameter, rule, f"{path.name!r} with {shown_names(names)}")
    answers: dict[tuple[str, str], tuple[bool, int]] = {}
    columns = batches(parameter, path, wanted, optional=(FALSE_NEGATIVE,))
    rows = (row for batch in columns for row in zip(*batch, strict=True))
    for number, (query, document, given) in enumerate(rows):
        text = "" if given is None else str(given).strip().lower()
        if text not in _YES_NO:
            rule = f"a file with yes, no or nothing in {FALSE_NEGATIVE!r}"
            raise_invalid(parameter, rule, f"{shown(given)} at row {number} of {path.name!r}")
        pair = str(query), str(document)
        if path.suffix.lower() == ".csv":
            pair = from_spreadsheet_cell(pair[0]), from_spreadsheet_cell(pair[1])
        answer = _YES_NO[text]
        if answer is not None and answers.setdefault(pair, (answer, number))[0] != answer:
            rule = "a file with one answer for each pair"
            raise_invalid(parameter, rule, f"another than before at row {number} of {path.name!r}")
    return answers

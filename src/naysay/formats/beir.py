"""BEIR folders: a corpus, queries and relevance judgements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.checks import check_whole, public, raise_invalid, shown
from naysay.positives import Positives
from naysay.tables import json_blocks, line_blocks
from naysay.vocabulary import Vocabulary

_GRADE = re.compile(r"-?\d{1,18}")


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Beir:
    """A data set in BEIR's layout, as `read_beir` returns it.

    Args:
        query_ids: The ids of the queries that the split judges, in the order of their file.
        query_texts: Their texts.
        corpus_ids: The ids of all documents.
        corpus_titles: Their titles, "" where there is none.
        corpus_texts: Their texts.
        positives: Pairs with a grade of at least `min_grade`; their vocabularies are the ids.
        dropped: {"grade below 1": judgements}: judged, but not positive.

    Examples:
        >>> Beir(["q1"], ["cat"], ["d1"], ["Cats"], ["They purr."], Positives.from_pairs([0], [0])).documents()
        ['Cats They purr.']
    """

    query_ids: list[str]
    query_texts: list[str]
    corpus_ids: list[str]
    corpus_titles: list[str]
    corpus_texts: list[str]
    positives: Positives
    dropped: Mapping[str, int] = field(default_factory=dict)

    def documents(self) -> list[str]:
        """Join title and text by a space, as BEIR's own models read them."""
        return [f"{title} {text}".strip() for title, text in zip(self.corpus_titles, self.corpus_texts, strict=True)]


@public
def read_beir(folder: str | Path, split: str = "test", *, min_grade: int = 1) -> Beir:
    r"""Read corpus.jsonl, queries.jsonl and qrels/{split}.tsv of a folder; each may be compressed, .gz.

    Queries that the split does not judge are left out, as BEIR does.

    Args:
        folder: The folder.
        split: The name of the file of judgements, without its ending.
        min_grade: The lowest grade that makes a document a positive.

    Returns:
        Queries, documents and positives.

    Examples:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "a cat"}')
        >>> _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "cat"}')
        >>> (folder / "qrels").mkdir()
        >>> _ = (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1")
        >>> read_beir(folder).positives.pairs()[1].tolist()
        [0]
    """
    root = Path(folder)
    check_whole("min_grade", min_grade, 1)
    if not root.is_dir():
        raise_invalid("folder", "an existing folder", repr(str(root)))
    judged = _file(root / "qrels", f"{split}.tsv", "split")
    corpus_ids, titles, texts = _records(_file(root, "corpus.jsonl", "folder"))
    query_ids, _, queries = _records(_file(root, "queries.jsonl", "folder"))
    anchors, items, grades = _judgements(judged, query_ids, corpus_ids)
    used = np.unique(anchors)
    positive = grades >= min_grade
    names = list(query_ids)
    positives = Positives.from_pairs(
        np.searchsorted(used, anchors[positive]),
        items[positive],
        len(used),
        len(corpus_ids),
        anchor_names=Vocabulary([names[row] for row in used.tolist()]),
        item_names=Vocabulary(list(corpus_ids)),
    )
    below = int((~positive).sum())
    return Beir(
        query_ids=[names[row] for row in used.tolist()],
        query_texts=[queries[row] for row in used.tolist()],
        corpus_ids=list(corpus_ids),
        corpus_titles=titles,
        corpus_texts=texts,
        positives=positives,
        dropped={f"grade below {min_grade}": below} if below else {},
    )


def _file(folder: Path, name: str, parameter: str) -> Path:
    """Return the file of that name, plain or compressed."""
    for suffix in ("", ".gz"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    there = sorted(file.name for file in folder.glob("*")) if folder.is_dir() else []
    rule = f"one with {folder.name}/{name}, also .gz"
    raise_invalid(parameter, rule, f"{shown(', '.join(there)) if there else 'no such folder, or nothing in it'}")


def _records(path: Path) -> tuple[dict[str, int], list[str], list[str]]:
    """{id: row}, titles and texts of a file of objects with _id, text and perhaps a title."""
    rows: dict[str, int] = {}
    titles, texts = [], []
    for numbers, values in json_blocks(path, "folder"):
        for number, value in zip(numbers, values, strict=True):
            given = value if isinstance(value, dict) else {}
            name, text, title = given.get("_id"), given.get("text"), given.get("title")
            name = str(name) if type(name) is int else name
            if not (isinstance(name, str) and isinstance(text, str) and isinstance(title, str | None)):
                rule = "one with an object of _id and text, both strings, in every line"
                raise_invalid("folder", rule, f"{shown(value)} in line {number} of {path.name}")
            if name in rows:
                got = f"{shown(name)} again in line {number} of {path.name}"
                raise_invalid("folder", "one in which every id is there once", got)
            rows[name] = len(rows)
            titles.append(title or "")
            texts.append(text)
    return rows, titles, texts


def _judgements(path: Path, queries: dict[str, int], corpus: dict[str, int]) -> tuple[Any, Any, Any]:
    """(queries, documents, grades) as rows; the first line is a header."""
    judged: list[tuple[int, int, int]] = []
    lines = chain.from_iterable(zip(*block, strict=True) for block in line_blocks(path, "split"))
    for number, line in islice(lines, 1, None):
        fields = line.rstrip("\r\n").split("\t")
        rule = ""
        if len(fields) != 3 or not _GRADE.fullmatch(fields[2]):
            rule = "one whose judgements are query, document and a whole number, with tabs between"
        elif fields[0] not in queries or fields[1] not in corpus:
            rule = "one that judges queries and documents of the folder"
        if rule:
            raise_invalid("split", rule, f"{shown(fields)} in line {number} of {path.name}")
        judged.append((queries[fields[0]], corpus[fields[1]], int(fields[2])))
    columns = np.array(judged, np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]

"""Reads the data: two collections of queries, packages with their descriptions, and triples.

The project ships no data. A missing file raises an error before any computation.
"""

from __future__ import annotations

import gzip
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
FILES = {
    "scifact": (
        "scifact/corpus.jsonl.xz",
        "scifact/qrels_train.tsv.gz",
        "scifact/qrels_test.tsv.gz",
        "scifact-minilm/embeddings.npz",
    ),
    "cranfield": ("cranfield/corpus.jsonl.gz", "cranfield/queries.jsonl.gz", "cranfield/qrels.tsv.gz"),
    "debian": ("debian-desc/packages.jsonl.xz",),
    "codex": ("codex-s/triples.npz", "codex-s/relations.tsv.gz"),
}
SPLITS = ("train", "valid", "test", "valid_negatives", "test_negatives")


@dataclass(frozen=True, eq=False)
class Collection:
    """Queries, documents, and which of them go together.

    queries, documents   (n, d) float64 of unit length: a score is their product, a cosine
    anchors, items       (pairs,) both: the labelled positives, each pair once
    texts                of the documents
    vectors              where the vectors come from, in words
    """

    queries: Floats
    documents: Floats
    anchors: Ids
    items: Ids
    texts: list[str]
    vectors: str

    def per_anchor(self) -> Ids:
        """(queries,) how many positives each has."""
        return np.bincount(self.anchors, minlength=len(self.queries))


@dataclass(frozen=True, eq=False)
class Packages:
    """Packages that have a long description.

    short, long      the two descriptions
    source, tags     (n,) which source package, and which set of tags; -1 for no tags
    tag_counts       (n,) how many tags
    """

    short: list[str]
    long: list[str]
    source: Ids
    tags: Ids
    tag_counts: Ids


def check_files(folder: Path, parts: list[str]) -> None:
    """Raise an error that names the first missing file of the chosen parts."""
    missing = [name for part in parts for name in FILES[part] if not (folder / name).is_file()]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        advice = f"It lacks {missing[0]}{more}; name with --only the parts that it has, of {', '.join(FILES)}."
        raise_invalid("DATA", f"a folder with the data of {', '.join(parts)}", repr(str(folder)), advice)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a .jsonl.gz or .jsonl.xz file."""
    opened = lzma.open if path.suffix == ".xz" else gzip.open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def judgements(path: Path) -> list[tuple[str, str, int]]:
    """(query, document, code) of a .tsv.gz file with one line of headings."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        cells = [line.rstrip("\n").split("\t") for line in file][1:]
    return [(query, document, int(code)) for query, document, code in cells]


def scifact(folder: Path) -> Collection:
    """Claims and abstracts with the vectors of a sentence encoder; both splits' judgements together."""
    with np.load(folder / FILES["scifact"][3]) as file:
        queries, documents = (_unit(file[name].astype(np.float64)) for name in ("query", "doc"))
        places = [{name: place for place, name in enumerate(file[key].tolist())} for key in ("query_id", "doc_id")]
    texts = {row["_id"]: f"{row['title']} {row['text']}" for row in rows_of(folder / FILES["scifact"][0])}
    pairs = judgements(folder / FILES["scifact"][1]) + judgements(folder / FILES["scifact"][2])
    anchors, items = _pairs([pair for pair in pairs if pair[2] > 0], *places)
    made = f"all-MiniLM-L6-v2, {queries.shape[1]} wide, cosine"
    return Collection(queries, documents, anchors, items, [texts[name] for name in places[1]], made)


def cranfield(folder: Path, width: int = 200) -> Collection:
    """Questions and abstracts on aerodynamics, with vectors made here; codes 1 to 4 are positive, -1 is dropped."""
    corpus, questions = (rows_of(folder / name) for name in FILES["cranfield"][:2])
    texts = [row["text"] for row in corpus]
    documents, queries = latent_vectors(texts, [row["text"] for row in questions], width=width)
    places = [{row["_id"]: place for place, row in enumerate(rows)} for rows in (questions, corpus)]
    kept = [pair for pair in judgements(folder / FILES["cranfield"][2]) if 1 <= pair[2] <= 4]
    anchors, items = _pairs(kept, *places)
    made = f"TF-IDF of the documents, {documents.shape[1]} singular vectors, cosine"
    return Collection(queries, documents, anchors, items, texts, made)


def packages(folder: Path) -> Packages:
    """All packages with a long description."""
    rows = [row for row in rows_of(folder / FILES["debian"][0]) if row["long"]]
    tags = [" ".join(sorted(row["tags"] or ())) for row in rows]
    codes = np.unique(tags, return_inverse=True)[1].astype(np.int64)
    counts = np.array([len(row["tags"] or ()) for row in rows])
    source = np.unique([row["source"] for row in rows], return_inverse=True)[1].astype(np.int64)
    short, long = ([row[name] for row in rows] for name in ("short", "long"))
    return Packages(short, long, source, np.where(counts > 0, codes, -1), counts)


def triples(folder: Path) -> dict[str, Ids]:
    """The five sets of triples, (n, 3) each; raises if one is missing."""
    with np.load(folder / FILES["codex"][0]) as file:
        missing = [name for name in SPLITS if name not in file]
        if missing:
            raise_invalid("DATA", f"a triples.npz with {', '.join(SPLITS)}", f"none named {missing[0]}")
        return {name: file[name].astype(np.int64) for name in SPLITS}


def relation_names(folder: Path) -> list[str]:
    """The name of each relation, by id: what stands before the dash in `id, code, name - description` lines."""
    with gzip.open(folder / FILES["codex"][1], "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [text.split(" - ")[0] for _, _, text in sorted(rows, key=lambda row: int(row[0]))]


def latent_vectors(texts: list[str], *others: list[str], width: int) -> list[Floats]:
    """Unit vectors of `texts` and of `others`: logarithmic TF-IDF, then the first singular vectors, of `texts` alone.

    A text without a known word gets the mean direction of all, for it must have one.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=60_000, stop_words="english", dtype=np.float32)
    counted = words.fit_transform(texts)
    width = min(width, min(counted.shape) - 1)
    axes = TruncatedSVD(width, n_iter=4, random_state=0).fit(counted)
    found = [axes.transform(part) for part in (counted, *(words.transform(other) for other in others))]
    centre = found[0].mean(axis=0)
    return [_unit(np.where(np.abs(part).sum(axis=1, keepdims=True) > 0, part, centre)) for part in found]


def _pairs(rows: list[tuple[str, str, int]], queries: dict[str, int], documents: dict[str, int]) -> tuple[Ids, Ids]:
    codes = np.unique([queries[query] * len(documents) + documents[document] for query, document, _ in rows])
    return codes // len(documents), codes % len(documents)


def _unit(vectors: Any) -> Floats:
    long = np.asarray(vectors, np.float64)
    return long / np.linalg.norm(long, axis=1, keepdims=True)

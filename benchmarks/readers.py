"""Reads the data sets of `benchmarks.data` into memory, as the studies use them."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
LIKED = 4  # stars


@dataclass(frozen=True, eq=False)
class Collection:
    """Queries and documents as unit vectors, and all relevant pairs, each once.

    source   (n,) of package data: rows of one source are relevant to each other; else None
    """

    queries: Floats
    documents: Floats
    anchors: Ids
    items: Ids
    source: Ids | None = None


def arrays(folder: Path, name: str, file: str) -> dict[str, NDArray[Any]]:
    """The arrays of folder / name / file; ends with advice if it is not there."""
    path = folder / name / file
    if not path.is_file():
        sys.exit(f"{path} is not there: python -m benchmarks.data {name} --folder {folder}")
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key].astype(np.int64) if stored[key].dtype.kind in "iu" else stored[key] for key in stored}


def lines(path: Path) -> list[str]:
    """The lines of a text file that may be compressed."""
    if not path.is_file():
        sys.exit(f"{path} is not there: python -m benchmarks.data {path.parent.name} --folder {path.parent.parent}")
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def unit(vectors: Any) -> Floats:
    """Rows of length 1."""
    wide = np.asarray(vectors, np.float64)
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)


# ---- recommendation --------------------------------------------------------------------------------------------------


@cache
def ratings(folder: Path) -> tuple[ns.Positives, ns.Positives]:
    """What users of ml-100k rated 4 or 5 stars, and what they rated lower; ids from 0."""
    data = arrays(folder, "ml-100k", "ratings.npz")
    users, items = data["user"] - 1, data["item"] - 1
    sizes = int(users.max()) + 1, int(items.max()) + 1
    liked = data["rating"] >= LIKED
    return tuple(ns.Positives.from_pairs(users[rows], items[rows], *sizes) for rows in (liked, ~liked))  # type: ignore[return-value]


@cache
def yelp(folder: Path) -> tuple[ns.Positives, ns.Positives]:
    """The published training and test part of yelp2018."""
    data = arrays(folder, "yelp2018", "interactions.npz")
    sizes = int(data["n_users"]), int(data["n_items"])
    parts = ((data[f"{part}_user"], data[f"{part}_item"]) for part in ("train", "test"))
    return tuple(ns.Positives.from_pairs(*pairs, *sizes) for pairs in parts)  # type: ignore[return-value]


# ---- texts -----------------------------------------------------------------------------------------------------------


@cache
def scifact(folder: Path) -> Collection:
    """Claims and abstracts by all-MiniLM-L6-v2, the judgements of both parts."""
    stored = arrays(folder, "scifact-minilm", "embeddings.npz")
    places = [{name: place for place, name in enumerate(stored[key].tolist())} for key in ("query_id", "doc_id")]
    pairs = [pair for part in ("train", "test") for pair in _judged(folder / f"scifact/qrels_{part}.tsv.gz", (1,))]
    return Collection(unit(stored["query"]), unit(stored["doc"]), *_pairs(pairs, *places))


@cache
def cranfield(folder: Path, dim: int = 200) -> Collection:
    """Questions and abstracts on aerodynamics; codes 1 to 4 are relevant, the undocumented -1 is dropped."""
    corpus, questions = (
        [json.loads(line) for line in lines(folder / f"cranfield/{name}.jsonl.gz")] for name in ("corpus", "queries")
    )
    documents, queries = latent_vectors([row["text"] for row in corpus], [row["text"] for row in questions], dim=dim)
    places = [{row["_id"]: place for place, row in enumerate(rows)} for rows in (questions, corpus)]
    pairs = _judged(folder / "cranfield/qrels.tsv.gz", (1, 2, 3, 4))
    return Collection(queries, documents, *_pairs(pairs, *places))


@cache
def packages(folder: Path, dim: int = 256) -> Collection:
    """Short descriptions of Debian packages as queries, long ones as documents: TF-IDF and singular vectors."""
    rows = [json.loads(line) for line in lines(folder / "debian-desc/packages.jsonl.xz")]
    long, short = latent_vectors([row["long"] for row in rows], [row["short"] for row in rows], dim=dim)
    source = np.unique([row["source"] for row in rows], return_inverse=True)[1].astype(np.int64)
    none = np.zeros(0, np.int64)
    return Collection(short, long, none, none, source)


def latent_vectors(texts: list[str], *others: list[str], dim: int) -> list[Floats]:
    """Unit vectors of `texts` and of `others`: logarithmic TF-IDF, then the first singular vectors, of `texts` alone.

    A text without a known word gets the mean direction of all, for it must have one.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=60_000, stop_words="english", dtype=np.float32)
    counted = words.fit_transform(texts)
    axes = TruncatedSVD(min(dim, min(counted.shape) - 1), n_iter=4, random_state=0).fit(counted)
    found = [axes.transform(part) for part in (counted, *(words.transform(other) for other in others))]
    centre = found[0].mean(axis=0)
    return [unit(np.where(np.abs(part).sum(axis=1, keepdims=True) > 0, part, centre)) for part in found]


def _judged(path: Path, relevant: tuple[int, ...]) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in lines(path)[1:])
    return [(query, document) for query, document, score in rows if int(score) in relevant]


def _pairs(rows: list[tuple[str, str]], queries: dict[str, int], documents: dict[str, int]) -> tuple[Ids, Ids]:
    codes = np.unique([queries[query] * len(documents) + documents[document] for query, document in rows])
    return codes // len(documents), codes % len(documents)


# ---- pictures --------------------------------------------------------------------------------------------------------


@cache
def pictures(folder: Path, name: str, part: str) -> tuple[Floats, Ids]:
    """Pictures (n, channels, side, side) from 0 to 1 and classes; "train" or "test" of MNIST's like or CIFAR-10."""
    if name == "cifar-10":
        stored = arrays(folder, name, "pictures.npz")
        return (stored[f"{part}_images"] / 255).astype(np.float32), stored[f"{part}_classes"]
    start = folder / name / {"train": "train", "test": "t10k"}[part]
    images, classes = (read_idx(Path(f"{start}-{kind}-ubyte.gz")) for kind in ("images-idx3", "labels-idx1"))
    return (images[:, None] / 255).astype(np.float32), classes.astype(np.int64)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of a gzipped IDX file of bytes: two zeros, a type, how many dimensions, their lengths, the data."""
    if not path.is_file():
        sys.exit(f"{path} is not there: python -m benchmarks.data {path.parent.name} --folder {path.parent.parent}")
    with gzip.open(path, "rb") as file:
        dimensions = file.read(4)[3]
        shape = np.frombuffer(file.read(4 * dimensions), ">u4")
        return np.frombuffer(file.read(), np.uint8).reshape(shape)

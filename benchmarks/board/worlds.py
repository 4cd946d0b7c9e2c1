"""Makes the data of the board: `python -m benchmarks.board.worlds --data DIR --board DIR`.

Each world has 5 splits. A split is two files: WORLD-SPLIT.npz, which a method may read, and WORLD-SPLIT.truth.npz,
which only the score reads. `VERSION` changes with any of them. Their digests are in digests.json beside this file;
vectors are left out of the digests, because the last bit of a floating-point sum differs between machines.

What a method may read:

    queries (n, d), documents (N, d)       unit vectors, float32
    labelled (n,)                          the one labelled positive of each query, a row of documents
    candidates (n, 50)                     the nearest documents but the labelled one, highest score first
    test_queries, test_documents           the test part; it shares no relevant pair with the training part

The truth: `relevant` and `test_relevant`, (m, 2) all relevant pairs; CoDEx-S has `verified_negative`, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import readers
from benchmarks.board.score import DEPTH, NEAREST, SPLITS, VERSION, are_relevant
from benchmarks.readers import Floats, Ids

TRAINED = 1500  # training queries of a split at most
TESTED = 1000  # test queries of a split at most
TRUTH = ("relevant", "test_relevant", "verified_negative")
DIGESTS = Path(__file__).with_name("digests.json")
Split = dict[str, NDArray[Any]]


def static_vectors(folder: Path, texts: list[str]) -> Floats:
    """The mean of wordllama's static word vectors; a text without words gets the mean direction of all."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (table,) = load_file(folder / "wordllama" / "table.safetensors").values()
    tokenizer = Tokenizer.from_file(str(folder / "wordllama" / "tokenizer.json"))
    tokenizer.no_padding()
    words = [encoded.ids for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
    sums = np.stack([table[ids].astype(np.float64).sum(axis=0) for ids in words])
    is_empty = ~np.abs(sums).any(axis=1)
    sums[is_empty] = sums.sum(axis=0)
    return readers.unit(sums)


def one_split(queries: Floats, documents: Floats, relevant: Ids, labelled: Ids, others: Split) -> Split:
    """All arrays of a split: `relevant` (m, 2) pairs, `labelled` one document of each query, `others` the test part."""
    scores = queries @ documents.T
    scores[np.arange(len(queries)), labelled] = -np.inf
    nearest = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    return {
        "queries": queries,
        "documents": documents,
        "labelled": labelled.astype(np.int32),
        "candidates": nearest.astype(np.int32),
        "relevant": relevant.astype(np.int32),
        **others,
    }


def one_of_each(relevant: Ids, rng: np.random.Generator) -> Ids:
    """One relevant document of each query, at random; every query has one."""
    shuffled = relevant[rng.permutation(len(relevant))]
    _queries, first = np.unique(shuffled[:, 0], return_index=True)
    return shuffled[first, 1]


# ---- Debian: packages of one source are relevant to each other -------------------------------------------------------


def debian(folder: Path, rng: np.random.Generator, sizes: tuple[int, int], *, own_label: bool) -> Split:
    """Short descriptions against long ones; half of the sources are the training part."""
    rows = [json.loads(line) for line in readers.lines(folder / "debian-desc/packages.jsonl.xz")]
    sources = np.unique([row["source"] for row in rows], return_inverse=True)[1].astype(np.int64)
    counts = np.bincount(sources)
    chosen = rng.permutation(np.flatnonzero((counts >= sizes[0]) & (counts <= sizes[1])))
    # As many sources as have about four documents a query.
    n_sources = int(np.searchsorted(np.cumsum(counts[chosen]), 4 * (TRAINED + TESTED)))
    halves = np.array_split(chosen[:n_sources], 2)
    parts = []
    for sources_of_part, n_queries in zip(halves, (TRAINED, TESTED), strict=True):
        packages = np.flatnonzero(np.isin(sources, sources_of_part))
        asked = np.sort(rng.permutation(len(packages))[:n_queries])
        relevant = np.argwhere(sources[packages[asked]][:, None] == sources[packages])
        queries = static_vectors(folder, [rows[place]["short"] for place in packages[asked]])
        documents = static_vectors(folder, [rows[place]["long"] for place in packages])
        parts.append((queries, documents, relevant, asked))
    (queries, documents, relevant, asked), (test_queries, test_documents, test_relevant, _) = parts
    labelled = asked if own_label else one_of_each(relevant, rng)
    test = {"test_queries": test_queries, "test_documents": test_documents, "test_relevant": test_relevant}
    return one_split(queries, documents, relevant, labelled, test)


# ---- Cranfield: a weak encoder, graded by people ---------------------------------------------------------------------


def cranfield(folder: Path, rng: np.random.Generator) -> Split:
    """Questions on aerodynamics against all abstracts; the questions are split in halves."""
    texts = readers.cranfield(folder)
    asked = np.unique(texts.anchors)
    halves = np.array_split(rng.permutation(asked), 2)
    parts = []
    for half in (np.sort(part) for part in halves):
        of_half = np.isin(texts.anchors, half)
        relevant = np.stack([np.searchsorted(half, texts.anchors[of_half]), texts.items[of_half]], axis=1)
        parts.append((texts.queries[half], relevant))
    (queries, relevant), (test_queries, test_relevant) = parts
    test = {"test_queries": test_queries, "test_documents": texts.documents, "test_relevant": test_relevant}
    return one_split(queries, texts.documents, relevant, one_of_each(relevant, rng), test)


# ---- Fashion-MNIST: every tenth picture is of the same class ---------------------------------------------------------


def fashion(folder: Path, rng: np.random.Generator) -> Split:
    """Pictures against others, by 64 principal components of their pixels; pictures of one class are relevant."""
    pictures, classes = readers.pictures(folder, "fashion-mnist", "train")
    chosen = rng.permutation(len(pictures))[: 2 * (TRAINED + TESTED)]
    pixels = pictures[chosen].reshape(len(chosen), -1).astype(np.float64)
    pixels -= pixels.mean(axis=0)
    components = np.linalg.eigh(pixels.T @ pixels)[1][:, ::-1][:, :64]
    vectors = readers.unit(pixels @ components)
    ends = np.cumsum([TRAINED, TRAINED, TESTED])
    queries, documents, test_queries, test_documents = np.split(vectors, ends)
    of_queries, of_documents, of_test_queries, of_test_documents = np.split(classes[chosen], ends)
    relevant = np.argwhere(of_queries[:, None] == of_documents)
    test = {
        "test_queries": test_queries,
        "test_documents": test_documents,
        "test_relevant": np.argwhere(of_test_queries[:, None] == of_test_documents),
    }
    return one_split(queries, documents, relevant, one_of_each(relevant, rng), test)


# ---- CoDEx-S: triples that people verified to be false ---------------------------------------------------------------


def codex(folder: Path, rng: np.random.Generator) -> Split:
    """(head, relation) against tails, by singular vectors of a random half of the triples.

    Relevant are all triples of CoDEx-S. The labelled tail of a query is one of that half. Queries with verified
    negatives come first.
    """
    triples = readers.arrays(folder, "codex-s", "triples.npz")
    every = np.concatenate([triples[name] for name in ("train", "valid", "test")])
    verified = np.concatenate([triples[name] for name in ("valid_negatives", "test_negatives")])
    n_relations = int(every[:, 1].max()) + 1
    n_entities = int(np.concatenate([every, verified])[:, [0, 2]].max()) + 1
    codes, queries_of = np.unique(every[:, 0] * n_relations + every[:, 1], return_inverse=True)
    is_known = rng.random(len(every)) < 0.5
    table = np.zeros((len(codes), n_entities))
    table[queries_of[is_known], every[is_known, 2]] = 1
    row_degrees, column_degrees = table.sum(axis=1, keepdims=True), table.sum(axis=0)
    table /= np.sqrt(np.maximum(row_degrees, 1) * np.maximum(column_degrees, 1))
    left, strengths, right = np.linalg.svd(table, full_matrices=False)
    query_vectors, entity_vectors = (side[:, :64] * np.sqrt(strengths[:64]) for side in (left, right.T))
    usable_queries = np.flatnonzero((row_degrees[:, 0] > 0) & (np.abs(query_vectors).sum(axis=1) > 1e-9))
    usable_entities = np.flatnonzero(np.abs(entity_vectors).sum(axis=1) > 1e-9)
    verified_codes = verified[:, 0] * n_relations + verified[:, 1]
    has_verified = np.isin(codes[usable_queries], verified_codes)
    shuffled = usable_queries[np.lexsort((rng.random(len(usable_queries)), ~has_verified))]
    train_queries, test_queries = (np.sort(part) for part in np.split(shuffled[: TRAINED + TESTED], [TRAINED]))

    def pairs_of(triple_codes: Ids, tails: Ids, asked: Ids) -> Ids:
        """(m, 2) rows of `asked` queries and of usable entities, each pair once."""
        inside = np.isin(triple_codes, codes[asked]) & np.isin(tails, usable_entities)
        rows = np.searchsorted(codes[asked], triple_codes[inside])
        return np.unique(np.stack([rows, np.searchsorted(usable_entities, tails[inside])], axis=1), axis=0)

    labelled = one_of_each(pairs_of(codes[queries_of[is_known]], every[is_known, 2], train_queries), rng)
    documents = readers.unit(entity_vectors[usable_entities])
    others = {
        "test_queries": readers.unit(query_vectors[test_queries]),
        "test_documents": documents,
        "test_relevant": pairs_of(codes[queries_of], every[:, 2], test_queries),
        "verified_negative": pairs_of(verified_codes, verified[:, 2], train_queries),
    }
    relevant = pairs_of(codes[queries_of], every[:, 2], train_queries)
    return one_split(readers.unit(query_vectors[train_queries]), documents, relevant, labelled, others)


WORLDS: dict[str, Callable[[Path, np.random.Generator], Split]] = {
    "debian-dense": lambda folder, rng: debian(folder, rng, (4, 20), own_label=False),
    "debian-natural": lambda folder, rng: debian(folder, rng, (1, 20), own_label=True),
    "cranfield": cranfield,
    "fashion-mnist": fashion,
    "codex-s": codex,
}


def digest(split: Split) -> str:
    """SHA-256 of all arrays that are the same on every machine."""
    found = hashlib.sha256()
    for name in ("labelled", "relevant", "test_relevant"):
        array = np.ascontiguousarray(split[name], np.int32)
        found.update(f"{name} {array.shape} ".encode() + array.tobytes())
    return found.hexdigest()[:16]


def main() -> None:
    """Make every split that is not there, and compare its digest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of benchmarks.data")
    parser.add_argument("--board", type=Path, required=True, help="where the splits are written")
    parser.add_argument("--record", action="store_true", help="write the digests instead of comparing them")
    args = parser.parse_args()
    args.board.mkdir(parents=True, exist_ok=True)
    digests = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    for place, (world, make) in enumerate(WORLDS.items()):
        for number in range(SPLITS):
            name = f"{world}-{number}"
            path = args.board / f"{name}.npz"
            if path.exists() and not args.record:
                continue
            split = make(args.data, np.random.default_rng([VERSION, place, number]))
            if args.record:
                digests[name] = digest(split)
            elif digests.get(name) != digest(split):
                sys.exit(
                    f"{name} is not what the board was made of: check the data with python -m benchmarks.data --check"
                )
            truth = {key: split.pop(key).astype(np.int32) for key in TRUTH if key in split}
            np.savez_compressed(args.board / f"{name}.truth.npz", **truth)
            np.savez_compressed(path, **split)
            share = are_relevant(split["candidates"][:, :NEAREST], truth["relevant"]).mean()
            sizes = f"{len(split['queries'])} queries, {len(split['documents'])} documents"
            print(f"{name}: {sizes}, {share:.1%} of the nearest {NEAREST} are false", flush=True)
    if args.record:
        DIGESTS.write_text(json.dumps({"version": VERSION, **digests}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The worlds of the study of judging: who is an anchor, what is labelled, and what is true but not labelled.

A world has three parts that share no document. In training every anchor has one labelled positive, by chance. The
validation part has labelled pairs only, the test part all that is relevant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.detectors.posterior import package_vectors
from benchmarks.hidden_positives.readers import Packages, packages, scifact

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Pairs = tuple[Ids, Ids]
SIZES = {"deb": (2, 20), "debH": (4, 20), "dose": (6, 20)}
DOSES = (0.0, 0.05, 0.1, 0.2, 0.4)
K, MOST_CHECKED, MOST_TESTED = 10, 1500, 3000  # queries
_TRAIN, _VALIDATION = 0.5, 0.2  # of sources, or of groups of documents; the rest is the test part


@dataclass(frozen=True, eq=False)
class Texts:
    """All that a world is cut from: unit vectors of queries and documents, and which belong together.

    anchors, items   (pairs,) all relevant pairs, or empty where `source` decides
    source           (n,) of queries and documents alike, or empty
    read             the packages, for encoders of texts
    """

    queries: NDArray[np.float32]
    documents: NDArray[np.float32]
    anchors: Ids
    items: Ids
    source: Ids
    encoder: str
    read: Packages | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """Queries and documents of one part, as rows of `Texts`; pairs count within the part."""

    queries: Ids
    documents: Ids
    pairs: Pairs

    def relevant(self) -> ns.Positives:
        """The pairs as a table."""
        return ns.Positives.from_pairs(*self.pairs, len(self.queries), len(self.documents))


@dataclass(frozen=True, eq=False)
class World:
    """One split of the texts.

    train     one labelled positive for each anchor, in order
    truth     all relevant pairs of the training part
    ignored   pairs that no arm may return: relevant ones that are known to be so, at a dose
    """

    name: str
    texts: Texts
    train: Part
    truth: ns.Positives
    validation: Part
    test: Part
    ignored: Pairs | None = None

    @property
    def labels(self) -> Ids:
        """(anchors,) the labelled positive of each."""
        return self.train.pairs[1]

    def vectors(self, part: Part) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Those of the queries and of the documents of a part."""
        return self.texts.queries[part.queries], self.texts.documents[part.documents]


def read_packages(folder: Path, cache: Path | None = None) -> Texts:
    """Short descriptions as queries, long ones as documents; vectors of wordllama where it can be imported."""
    read = packages(folder)
    short, long, encoder = package_vectors(read, cache)
    none = np.zeros(0, np.int64)
    return Texts(short.astype(np.float32), long.astype(np.float32), none, none, read.source, encoder, read)


def read_scifact(folder: Path) -> Texts:
    """Claims and abstracts, both splits' judgements together."""
    read, none = scifact(folder), np.zeros(0, np.int64)
    queries, documents = read.queries.astype(np.float32), read.documents.astype(np.float32)
    return Texts(queries, documents, read.anchors, read.items, none, read.vectors)


def by_source(name: str, texts: Texts, seed: int) -> World:
    """Packages of sources of some sizes, split by source. Training has one anchor for each source."""
    rng = ns.rng_for(seed)
    counts = np.bincount(texts.source)
    low, high = SIZES[name]
    sources = rng.permutation(np.flatnonzero((counts >= low) & (counts <= high)))
    ends = (np.array([_TRAIN, _TRAIN + _VALIDATION]) * len(sources)).astype(int)
    kept = [np.flatnonzero(np.isin(texts.source, part)) for part in np.split(sources, ends)]
    order = rng.permutation(kept[0])
    anchors = np.sort(order[np.unique(texts.source[order], return_index=True)[1]])
    most = MOST_CHECKED, MOST_TESTED
    asked = [np.sort(rng.permutation(rows)[:n]) for rows, n in zip(kept[1:], most, strict=True)]
    train, checked, test = (_of_source(texts, *part) for part in zip((anchors, *asked), kept, strict=True))
    truth = train.relevant()
    return World(name, texts, one_of_each(train, rng), truth, one_of_each(checked, rng), test)


def _of_source(texts: Texts, queries: Ids, documents: Ids) -> Part:
    """All pairs of one source."""
    order = np.argsort(texts.source[documents], kind="stable")
    source = texts.source[documents][order]
    first, last = (np.searchsorted(source, texts.source[queries], side) for side in ("left", "right"))
    rows = np.repeat(np.arange(len(queries)), last - first)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return Part(queries, documents, (rows, order[first[rows] + places]))


def one_of_each(part: Part, rng: np.random.Generator) -> Part:
    """The part with one pair of each query, by chance."""
    order = np.lexsort((rng.random(len(part.pairs[0])), part.pairs[0]))
    rows, first = np.unique(part.pairs[0][order], return_index=True)
    return replace(part, pairs=(rows, part.pairs[1][order][first]))


def by_document(name: str, texts: Texts, seed: int) -> World:
    """Claims split so that no two parts share a document; a document without claims is of one part, by chance."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    rng, n, m = ns.rng_for(seed), len(texts.queries), len(texts.documents)
    ends = (texts.anchors, n + texts.items)
    graph = coo_matrix((np.ones(len(ends[0])), ends), shape=(n + m, n + m))
    group = connected_components(graph, directed=False)[1]
    part = rng.choice(3, group.max() + 1, p=[_TRAIN, _VALIDATION, 1 - _TRAIN - _VALIDATION])[group]
    asked = np.unique(texts.anchors)
    parts = []
    for which in range(3):
        queries, documents = asked[part[asked] == which], np.flatnonzero(part[n:] == which)
        mine = part[texts.anchors] == which
        rows = np.searchsorted(queries, texts.anchors[mine])
        parts.append(Part(queries, documents, (rows, np.searchsorted(documents, texts.items[mine]))))
    train, checked, test = parts
    return World(name, texts, one_of_each(train, rng), train.relevant(), one_of_each(checked, rng), test)


def at_dose(world: World, dose: float, seed: int) -> World:
    """The same world with so many false negatives among the nearest k that their share is `dose`.

    Every unlabelled relevant pair has a random number; those above a limit may be returned by no arm, as if somebody
    had found them. The limit is found by bisection. All else is as before: anchors, labels, documents, test.
    """
    rows, items = world.truth.pairs()
    hidden = items != world.labels[rows]
    rows, items = rows[hidden], items[hidden]
    chance = ns.rng_for(seed, 1).random(len(rows))
    queries, documents = world.vectors(world.train)
    listed = ns.mine(queries, documents, world.labels, K + 20, judge=None).ids
    place = np.full((len(queries), len(documents)), 2.0, np.float32)  # 2: not relevant
    place[rows, items] = chance
    listed_chance = np.take_along_axis(place, listed, axis=1)

    def share(limit: float) -> float:
        left = (listed_chance == 2) | (listed_chance < limit)
        taken = left & (left.cumsum(axis=1) <= K)
        return float((listed_chance[taken] < 2).mean())

    low, high = 0.0, 1.0
    for _ in range(30 if dose else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < dose else (low, middle)
    away = chance >= (high if dose else 0.0)
    return replace(world, name=f"dose {100 * dose:g} %", ignored=(rows[away], items[away]))


def made(name: str, texts: Texts, seed: int, dose: float | None = None) -> World:
    """The world of a name and a seed, at a dose if one is given."""
    world = by_document(name, texts, seed) if name == "scifact" else by_source(name, texts, seed)
    return world if dose is None else at_dose(world, dose, seed)

"""The worlds of the coverage benchmark: planted ones, and real data in which positives were hidden."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.detectors.posterior import package_vectors
from benchmarks.hidden_positives.readers import FILES, cranfield, packages, scifact, triples

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
WIDTH, PER_TOPIC = 48, 25
NOISE = {"strong": 0.25, "medium": 0.45, "weak": 0.7}
MOST = 1000  # anchors of real data


@dataclass(frozen=True, eq=False)
class World:
    """Vectors of unit length, and all positives.

    queries, items   (A, d), (N, d)
    labels           (A,) the labelled item of each anchor
    true             (anchors, items) of all positives, labelled ones included, sorted by anchor
    biased           whether labels are the easiest
    """

    queries: Floats
    items: Floats
    labels: Ids
    true: tuple[Ids, Ids]
    biased: bool = False

    def is_true(self, rows: Ids, ids: Ids) -> NDArray[np.bool_]:
        """(n, m): whether ids (n, m) are positives of rows (n,)."""
        known = ns.Positives.from_pairs(*self.true, len(self.queries), len(self.items))
        return known.contains(np.repeat(rows, ids.shape[1]), ids.ravel()).reshape(ids.shape)


def planted(anchors: int, kind: str, labels: str, encoder: str, seed: int) -> World:
    """A planted world: see `benchmarks.detectors.coverage`."""
    rng = np.random.default_rng([seed, anchors, len(kind), len(labels), len(encoder)])
    counts = np.full(anchors, 3)
    if kind == "uneven":
        counts = np.where(rng.random(anchors) < 0.5, 1, np.minimum(rng.zipf(1.6, anchors), 20) + 1)
    topics = _unit(rng.normal(size=(-(-anchors // PER_TOPIC), WIDTH)))
    centres = _unit(topics[np.arange(anchors) // PER_TOPIC] + 0.9 * _unit(rng.normal(size=(anchors, WIDTH))))
    owner = np.repeat(np.arange(anchors), counts)
    spread, noise = 0.5, NOISE[encoder]
    items = np.concatenate(
        [centres[owner] + spread * _unit(rng.normal(size=(len(owner), WIDTH))), np.zeros((0, WIDTH))]
    )
    others = topics[rng.integers(0, len(topics), max(1000, anchors))]
    others = _unit(others + 0.9 * _unit(rng.normal(size=others.shape)))
    items = np.concatenate([items, others + spread * _unit(rng.normal(size=others.shape))])
    queries = centres + spread * _unit(rng.normal(size=centres.shape))
    queries, items = (_unit(_unit(part) + noise * _unit(rng.normal(size=part.shape))) for part in (queries, items))
    return _world(queries, items, owner, np.arange(len(owner)), labels, rng)


def _world(
    queries: NDArray[np.float64],
    items: NDArray[np.float64],
    anchors: Ids,
    positives: Ids,
    labels: str,
    rng: np.random.Generator,
) -> World:
    """A world whose labels are random or the easiest of each anchor; every anchor has a positive."""
    scores = (queries[anchors] * items[positives]).sum(axis=1)
    order = np.lexsort((-scores if labels == "easiest" else rng.random(len(scores)), anchors))
    first = order[np.unique(anchors[order], return_index=True)[1]]
    sort = np.lexsort((positives, anchors))
    true = anchors[sort].astype(np.int64), positives[sort].astype(np.int64)
    parts = queries.astype(np.float32), items.astype(np.float32)
    return World(*parts, positives[first].astype(np.int64), true, labels != "random")


def real_worlds(folder: Path, vectors: Path | None) -> dict[str, Callable[[int], World]]:
    """{cell: maker(seed)} of the data that are there. Data are read when the first world is made."""
    made: dict[str, Callable[[int], World]] = {}
    for name, files in FILES.items():
        if not all((folder / file).is_file() for file in files):
            print(f"{name}: no data", file=sys.stderr)
        elif name == "debian":
            made |= {f"debian, {labels}": _debian(folder, vectors, labels) for labels in ("random", "own")}
        elif name == "codex":
            made["codex-s"] = _codex(folder)
        else:
            made[name] = _collection(folder, name)
    return made


def _debian(folder: Path, vectors: Path | None, labels: str) -> Callable[[int], World]:
    def make(seed: int) -> World:
        data = packages(folder)
        short, long, _ = package_vectors(data, vectors)
        rng = ns.rng_for(seed, 11)
        counts = np.bincount(data.source)
        chosen = rng.permutation(np.flatnonzero((counts >= 2) & (counts <= 20)))[: 3 * MOST]
        kept = np.flatnonzero(np.isin(data.source, chosen))
        order = rng.permutation(len(kept))
        rows = kept[order[np.unique(data.source[kept][order], return_index=True)[1]]][:MOST]
        source = data.source[kept]
        pairs = [(row, item) for row, one in enumerate(rows) for item in np.flatnonzero(source == data.source[one])]
        anchors, items = (np.array(part) for part in zip(*pairs, strict=True))
        world = _world(short[rows], long[kept], anchors, items, "random", rng)
        own = np.searchsorted(kept, rows)
        return world if labels == "random" else World(world.queries, world.items, own, world.true, biased=True)

    return make


def _collection(folder: Path, name: str) -> Callable[[int], World]:
    def make(seed: int) -> World:
        data = {"scifact": scifact, "cranfield": cranfield}[name](folder)
        rng = ns.rng_for(seed, 12)
        anchors, items, documents = data.anchors, data.items, np.arange(len(data.documents))
        if name == "scifact":  # half of the documents, and queries all of whose documents are there
            half = rng.random(len(documents)) < 0.5
            lost = np.bincount(anchors, ~half[items], len(data.queries)) > 0
            anchors, items, documents = anchors[~lost[anchors]], items[~lost[anchors]], np.flatnonzero(half)
        asked, anchors = np.unique(anchors, return_inverse=True)
        return _world(
            *(data.queries[asked], data.documents[documents], anchors, np.searchsorted(documents, items)),
            *("random", rng),
        )

    return make


def _codex(folder: Path) -> Callable[[int], World]:
    def make(seed: int) -> World:
        from scipy.sparse import csr_array
        from scipy.sparse.linalg import svds

        data, rng = triples(folder), ns.rng_for(seed, 13)
        size = int(max(part.max() for part in data.values())) + 1
        keys = {name: (part[:, 0] * size + part[:, 1], part[:, 2]) for name, part in data.items()}
        asked, rows = np.unique(keys["train"][0], return_inverse=True)
        table = csr_array((np.ones(len(rows)), (rows, keys["train"][1])), shape=(len(asked), size))
        left, values, right = svds(table, k=64, random_state=0)
        queries, items = _unit(left * values + 1e-9), _unit(right.T * values + 1e-9)
        hidden = [np.concatenate([keys[part][side] for part in ("valid", "test")]) for side in (0, 1)]
        inside = np.isin(hidden[0], asked)
        pairs = np.unique(np.stack([np.searchsorted(asked, hidden[0][inside]), hidden[1][inside]], axis=1), axis=0)
        chosen = rng.permutation(len(asked))[:MOST]
        place = np.full(len(asked), -1)
        place[chosen] = np.arange(len(chosen))
        anchors = np.concatenate([place[rows], place[pairs[:, 0]]])
        tails, used = np.concatenate([keys["train"][1], pairs[:, 1]]), anchors >= 0
        labelled = _world(
            queries[chosen], items, place[rows][place[rows] >= 0], keys["train"][1][place[rows] >= 0], "random", rng
        )
        whole = np.unique(np.stack([anchors[used], tails[used]], axis=1), axis=0)
        return World(labelled.queries, labelled.items, labelled.labels, (whole[:, 0], whole[:, 1]), biased=False)

    return make


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

"""Test vectors, and the miners that the benchmark compares in one process."""

from __future__ import annotations

import random  # noqa: TID251  # what the rule that is compared with draws by
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from naysay.detectors import ShareOfPositive
from naysay.mining import Mined, mine

WIDTH, CLUSTERS, TOPICS, OWN = 384, 2000, 200, 3
WINDOW, TAKEN, BATCH = (10, 210), 15, 64  # FlagEmbedding's own
Rows = list[list[int]]


@dataclass(frozen=True, eq=False)
class World:
    """Queries, documents, and the one positive of each query; unit vectors, float32."""

    queries: NDArray[np.float32]
    documents: NDArray[np.float32]
    positives: NDArray[np.int64]


def world(n_queries: int, n_documents: int, seed: int = 0) -> World:
    """Documents in clusters, some of near copies and some wide; a query is its document with more or less noise."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((CLUSTERS, WIDTH), np.float32)
    wide = rng.uniform(0.1, 1.0, CLUSTERS).astype(np.float32)  # within a cluster, cosines are 1 / (1 + wide^2)
    own = rng.integers(0, CLUSTERS, n_documents)
    documents = rng.standard_normal((n_documents, WIDTH), np.float32)
    documents *= wide[own][:, None]
    documents += centres[own]
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    positives = rng.permutation(n_documents)[:n_queries].astype(np.int64)
    noise = rng.standard_normal((n_queries, WIDTH), np.float32) / np.float32(np.sqrt(WIDTH))
    queries = documents[positives] + rng.uniform(0.4, 1.0, (n_queries, 1)).astype(np.float32) * noise
    return World(queries / np.linalg.norm(queries, axis=1, keepdims=True), documents, positives)


def spread_out(n_queries: int, n_documents: int, seed: int = 0) -> World:
    """Documents in no clusters: all directions alike; a query is its document with more or less noise."""
    rng = np.random.default_rng(seed)
    documents = rng.standard_normal((n_documents, WIDTH), np.float32)
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    positives = rng.permutation(n_documents)[:n_queries].astype(np.int64)
    noise = rng.standard_normal((n_queries, WIDTH), np.float32) / np.float32(np.sqrt(WIDTH))
    queries = documents[positives] + rng.uniform(0.4, 1.0, (n_queries, 1)).astype(np.float32) * noise
    return World(queries / np.linalg.norm(queries, axis=1, keepdims=True), documents, positives)


def labelled_by_chance(n_queries: int, n_documents: int, seed: int = 0) -> World:
    """Documents in threes around centres, of some topics; a query is near a centre, and one of its three is labelled.

    The only world here whose labels are a random part of the positives, so that `mine` estimates false negatives.
    """
    rng = np.random.default_rng(seed)
    families = n_documents // OWN
    centres = rng.standard_normal((families + 1, WIDTH), np.float32)
    centres += 0.7 * rng.standard_normal((TOPICS, WIDTH), np.float32)[rng.integers(0, TOPICS, families + 1)]
    documents = rng.standard_normal((n_documents, WIDTH), np.float32)
    documents *= rng.uniform(0.5, 1.1, (n_documents, 1)).astype(np.float32)
    documents += centres[np.arange(n_documents) // OWN]
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    own = rng.integers(0, families, n_queries)
    queries = rng.standard_normal((n_queries, WIDTH), np.float32)
    queries *= rng.uniform(0.5, 1.5, (n_queries, 1)).astype(np.float32)
    queries += centres[own]
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return World(queries, documents, OWN * own + rng.integers(0, OWN, n_queries))


def margin_by_faiss(data: World, k: int, margin: float) -> NDArray[np.int64]:
    """(n, k) the margin rule by hand: faiss's exact search, top 10 k + 1, and NumPy; -1 where short."""
    index = faiss.IndexFlatIP(WIDTH)
    index.add(data.documents)
    scores, ids = index.search(data.queries, 10 * k + 1)
    own = np.einsum("nd,nd->n", data.queries, data.documents[data.positives])
    away = (ids == data.positives[:, None]) | (scores > (own - np.abs(own) * margin)[:, None])
    order = np.argsort(away, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(away, order, 1), -1, np.take_along_axis(ids, order, 1))


def margin_by_ours(data: World, k: int, margin: float) -> NDArray[np.int64]:
    """(n, k) the same rule by `mine`."""
    return mine(data.queries, data.documents, data.positives, k, judge=ShareOfPositive(share=1 - margin)).ids


def window_by_lists(data: World) -> Rows:
    """FlagEmbedding's rule, from its description: an exact search in batches of 64, answers as lists, a sample of each.

    Its miner is a script outside its package, so it cannot be installed and called.
    """
    index = faiss.IndexFlatIP(WIDTH)
    index.add(data.documents)
    listed: Rows = []
    for start in range(0, len(data.queries), BATCH):
        listed.extend(index.search(data.queries[start : start + BATCH], WINDOW[1])[1].tolist())
    chance = random.Random(0)
    taken = []
    for row, own in zip(listed, data.positives.tolist(), strict=True):
        left = [i for i in row[WINDOW[0] : WINDOW[1]] if i not in (-1, own)]
        taken.append(chance.sample(left, TAKEN) if len(left) > TAKEN else left)
    return taken


def window_by_ours(data: World) -> NDArray[np.int64]:
    """(n, 15) the same window by `mine`; ranks count from 1, after the positive is out."""
    found: Mined = mine(
        data.queries,
        data.documents,
        data.positives,
        TAKEN,
        judge=None,
        rank_range=(WINDOW[0] + 1, WINDOW[1]),
        select="random",
    )
    return found.ids


def compared(
    ours: NDArray[np.int64], theirs: NDArray[np.int64], vectors: NDArray[np.float32], margin: float
) -> dict[str, Any]:
    """Rows (anchor, positive, negatives) of two miners side by side, in numbers of texts; one positive an anchor.

    Why a row differs, by scores in float64; float32 sums in another order cannot separate scores within 1e-6:

    tie                each slot that differs has two scores within 1e-6
    at the threshold   a candidate that only one of them has is within 1e-6 of the threshold
    other              neither
    """
    common, one, other = np.intersect1d(ours[:, 0], theirs[:, 0], return_indices=True)
    a, b = ours[one], theirs[other]
    rows = np.flatnonzero((a[:, 2:] != b[:, 2:]).any(axis=1))
    why = {"tie": 0, "at the threshold": 0, "other": 0}
    for left, right in zip(a[rows], b[rows], strict=True):
        asked = vectors[left[0]].astype(np.float64)
        scores = [vectors[side[2:]] @ asked for side in (left, right)]
        own = float(vectors[left[1]] @ asked)
        only = np.setxor1d(left[2:], right[2:])
        near = np.abs(vectors[only] @ asked - (own - abs(own) * margin)) < 1e-6
        tie = bool((np.abs(scores[0] - scores[1])[left[2:] != right[2:]] < 1e-6).all())
        why["tie" if tie else "at the threshold" if near.any() else "other"] += 1
    return {
        "rows_of_ours": len(ours),
        "rows_of_theirs": len(theirs),
        "rows_of_both": len(common),
        "positives_differ": int((a[:, 1] != b[:, 1]).sum()),
        "rows_that_differ": len(rows),
        "why": why,
    }

"""Generated data for speed: pairs with sizes as in real recommendation data, and vectors to mine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIM, CLUSTERS, TOPICS, OWN = 384, 2000, 200, 3  # of vectors to mine
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], int, int]


def recommendation(n_users: int = 50_000, n_items: int = 40_000, n_pairs: int = 1_900_000, seed: int = 0) -> Pairs:
    """About n_pairs distinct pairs (users, items): activity log-normal, popularity Zipf with exponent 0.8."""
    rng = np.random.default_rng(seed)
    activity = rng.lognormal(0.0, 0.8, n_users)
    popularity = 1.0 / np.arange(1, n_items + 1) ** 0.8
    drawn = int(n_pairs * 1.1)
    users = _by_weight(rng, activity, drawn)
    items = rng.permutation(n_items)[_by_weight(rng, popularity, drawn)]
    codes = np.unique(users * n_items + items)
    codes = rng.permutation(codes)[:n_pairs]
    return codes // n_items, codes % n_items, n_users, n_items


def uniform_pairs(n_anchors: int, n_items: int, n_pairs: int, seed: int = 0) -> Pairs:
    """n_pairs uniform pairs, duplicates left in."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_anchors, n_pairs), rng.integers(0, n_items, n_pairs), n_anchors, n_items


def _by_weight(rng: np.random.Generator, weights: NDArray[Any], n: int) -> NDArray[np.int64]:
    running = np.cumsum(weights)
    return np.searchsorted(running, rng.random(n) * running[-1], side="right")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Queries, documents, and the one positive of each query; unit vectors, float32."""

    queries: NDArray[np.float32]
    documents: NDArray[np.float32]
    positives: NDArray[np.int64]


def clustered(n_queries: int, n_documents: int, seed: int = 0) -> Corpus:
    """Documents in clusters, some of near copies and some wide; a query is its document with more or less noise."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((CLUSTERS, DIM), np.float32)
    wide = rng.uniform(0.1, 1.0, CLUSTERS).astype(np.float32)  # within a cluster, cosines are 1 / (1 + wide^2)
    own = rng.integers(0, CLUSTERS, n_documents)
    documents = rng.standard_normal((n_documents, DIM), np.float32)
    documents *= wide[own][:, None]
    documents += centres[own]
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    positives = rng.permutation(n_documents)[:n_queries].astype(np.int64)
    noise = rng.standard_normal((n_queries, DIM), np.float32) / np.float32(np.sqrt(DIM))
    queries = documents[positives] + rng.uniform(0.4, 1.0, (n_queries, 1)).astype(np.float32) * noise
    return Corpus(queries / np.linalg.norm(queries, axis=1, keepdims=True), documents, positives)


def spread_out(n_queries: int, n_documents: int, seed: int = 0) -> Corpus:
    """Documents in no clusters: all directions alike; a query is its document with more or less noise."""
    rng = np.random.default_rng(seed)
    documents = rng.standard_normal((n_documents, DIM), np.float32)
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    positives = rng.permutation(n_documents)[:n_queries].astype(np.int64)
    noise = rng.standard_normal((n_queries, DIM), np.float32) / np.float32(np.sqrt(DIM))
    queries = documents[positives] + rng.uniform(0.4, 1.0, (n_queries, 1)).astype(np.float32) * noise
    return Corpus(queries / np.linalg.norm(queries, axis=1, keepdims=True), documents, positives)


def labelled_by_chance(n_queries: int, n_documents: int, seed: int = 0) -> Corpus:
    """Documents in threes around centres, of some topics; a query is near a centre, and one of its three is labelled.

    The only world here whose labels are a random part of the positives, so that `mine` estimates false negatives.
    """
    rng = np.random.default_rng(seed)
    families = n_documents // OWN
    centres = rng.standard_normal((families + 1, DIM), np.float32)
    centres += 0.7 * rng.standard_normal((TOPICS, DIM), np.float32)[rng.integers(0, TOPICS, families + 1)]
    documents = rng.standard_normal((n_documents, DIM), np.float32)
    documents *= rng.uniform(0.5, 1.1, (n_documents, 1)).astype(np.float32)
    documents += centres[np.arange(n_documents) // OWN]
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    own = rng.integers(0, families, n_queries)
    queries = rng.standard_normal((n_queries, DIM), np.float32)
    queries *= rng.uniform(0.5, 1.5, (n_queries, 1)).astype(np.float32)
    queries += centres[own]
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    return Corpus(queries, documents, OWN * own + rng.integers(0, OWN, n_queries))

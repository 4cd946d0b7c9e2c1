"""The contract of a search in plain loops, and small worlds to search in."""

import math

import numpy as np

import naysay as ns
from naysay.search import Found

METRICS = ("cosine", "dot", "l2")


def plain_score(metric, query, row):
    """Float64, in index order, rounded to float32 once."""
    if metric == "l2":
        total = 0.0
        for a, b in zip(query, row, strict=True):
            total += (a - b) * (a - b)
        return np.float32(-math.sqrt(total) + 0.0)
    dot, one, two = 0.0, 0.0, 0.0
    for a, b in zip(query, row, strict=True):
        dot += a * b
        one += a * a
        two += b * b
    return np.float32((dot / (math.sqrt(one) * math.sqrt(two)) if metric == "cosine" else dot) + 0.0)


def plain(queries, corpus, depth, metric, known=frozenset()):
    ids = np.full((len(queries), depth), -1, np.int64)
    scores = np.full((len(queries), depth), -np.inf, np.float32)
    corpus = np.asarray(corpus, np.float64).tolist()
    for q, query in enumerate(np.asarray(queries, np.float64).tolist()):
        rows = [(-plain_score(metric, query, row), i) for i, row in enumerate(corpus) if (q, i) not in known]
        for place, (score, i) in enumerate(sorted(rows)[:depth]):
            ids[q, place], scores[q, place] = i, -score + np.float32(0)
    return Found(ids, scores)


def world(seed, n_queries, n_corpus, width, dtype=np.float32):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, width))
    queries = centres[rng.integers(0, 5, n_queries)] + 0.3 * rng.normal(size=(n_queries, width))
    corpus = centres[rng.integers(0, 5, n_corpus)] + 0.3 * rng.normal(size=(n_corpus, width))
    return queries.astype(dtype), corpus.astype(dtype)


def positives(seed, n_queries, n_corpus, each=4):
    rng = np.random.default_rng(seed)
    anchors, items = np.repeat(np.arange(n_queries), each), rng.integers(0, n_corpus, n_queries * each)
    pairs = set(zip(anchors.tolist(), items.tolist(), strict=True))
    return ns.Positives.from_pairs(anchors, items, n_queries, n_corpus), pairs


def clustered(n, seed, width=16, spread=0.2):
    """Points around 60 centres."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).normal(size=(60, width))
    return (middles[rng.integers(0, 60, n)] + spread * rng.normal(size=(n, width))).astype(np.float32)


def even(n, seed, width=16):
    """Points without clusters."""
    return np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)


def same(one, other):
    assert one.ids.tolist() == other.ids.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()

"""The contract of a search in plain loops: float64 sums in index order, score descending, id ascending."""

import math
from types import SimpleNamespace

import numpy as np


def plain_score(query, row, metric):
    """The score of a pair, as rule 3 says it."""
    one, other = [float(value) for value in query], [float(value) for value in row]
    if metric == "l2":
        total = 0.0
        for a, b in zip(one, other, strict=True):
            total += (a - b) * (a - b)
        return np.float32(-math.sqrt(total))
    total = first = second = 0.0
    for a, b in zip(one, other, strict=True):
        total += a * b
        first += a * a
        second += b * b
    return np.float32(total / (math.sqrt(first) * math.sqrt(second)) if metric == "cosine" else total)


def plain_scores(queries, corpus, metric="cosine"):
    """(n, N) the scores of all pairs."""
    return np.array([[plain_score(q, c, metric) for c in corpus] for q in queries], np.float32).reshape(
        len(queries), len(corpus)
    )


def plain_search(queries, corpus, depth, *, metric="cosine", exclude=None):
    """The `depth` best rows of each query that are not excluded."""
    scores = plain_scores(queries, corpus, metric)
    ids = np.full((len(queries), depth), -1)
    best = np.full((len(queries), depth), -np.inf, np.float32)
    for row in range(len(queries)):
        free = [i for i in range(len(corpus)) if exclude is None or not exclude.contains([row], [i], relation="any")[0]]
        free.sort(key=lambda i: (-scores[row, i], i))
        for slot, i in enumerate(free[:depth]):
            ids[row, slot], best[row, slot] = i, scores[row, i]
    return SimpleNamespace(ids=ids, scores=best)


def vectors(n, width, seed, *, values=None):
    """Random float32 vectors; of few `values`, so that scores are equal often."""
    rng = np.random.default_rng(seed)
    if values is None:
        return rng.standard_normal((n, width)).astype(np.float32)
    made = rng.choice(values, (n, width)).astype(np.float32)
    made[:, 0] = 1  # none is zero
    return made


def check_counts(candidates):
    """Every candidate is in play or has one reason; the counts of reasons add up."""
    inside = dict(candidates.dropped)
    for reason, counts in candidates.outside.items():
        inside[reason] = inside[reason] - counts
    lost = sum(inside.values(), np.zeros(len(candidates), np.int64))
    assert (candidates.filled.sum(axis=1) == candidates.kept.sum(axis=1) + lost).all()
    assert not (candidates.kept & ~candidates.filled).any()
    assert all((counts >= 0).all() for counts in inside.values())

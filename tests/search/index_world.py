"""Points for tests of the index: with clusters and without."""

import numpy as np

KINDS = ("ivf", "hnsw")
METRICS = ("cosine", "dot", "l2")


def clustered(n, seed, width=16, spread=0.2):
    """Points around 60 centres, and queries like them."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).normal(size=(60, width))
    return (middles[rng.integers(0, 60, n)] + spread * rng.normal(size=(n, width))).astype(np.float32)


def even(n, seed, width=16):
    """Points without clusters."""
    return np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)


CORPUS, QUERIES = clustered(3000, 1), clustered(40, 2)


def same(one, other):
    assert one.ids.tolist() == other.ids.tolist()
    assert one.scores.tobytes() == other.scores.tobytes()

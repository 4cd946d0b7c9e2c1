"""The approximate index by setting: recall and seconds against the exact search, with and without clusters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.mining.contenders import CLUSTERS, WIDTH
from naysay.search.exact import search
from naysay.search.index import Index

DEPTH, INNER = 100, 48
Vectors = NDArray[np.float32]


def clustered(n: int, seed: int) -> Vectors:
    """Unit vectors around 2,000 centres."""
    centres = np.random.default_rng(0).standard_normal((CLUSTERS, WIDTH), np.float32)
    rng = np.random.default_rng(seed)
    rows = centres[rng.integers(0, CLUSTERS, n)] + 0.7 * rng.standard_normal((n, WIDTH), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def even(n: int, seed: int) -> Vectors:
    """Unit vectors of one Gaussian in 48 dimensions, laid into as many as the others have."""
    turn = np.random.default_rng(0).standard_normal((INNER, WIDTH), np.float32)
    rows = np.random.default_rng(seed).standard_normal((n, INNER), np.float32) @ turn
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


WAYS = {"clustered": clustered, "even": even}


def index_part(way: str, n_documents: int, n_queries: int, threads: int) -> dict[str, Any]:
    """Building, the exact search, and one setting after another, for one kind of vectors."""
    documents, queries = WAYS[way](n_documents, 1), WAYS[way](n_queries, 2)
    few = documents[:1500]
    Index.build(few, threads=threads).search(few[:100], DEPTH)  # compiled
    start = time.perf_counter()
    index = Index.build(documents, threads=threads)
    built = time.perf_counter() - start
    exact = min(_seconds(lambda: search(queries, documents, DEPTH, threads=threads)) for _ in range(2))
    rungs: list[dict[str, Any]] = []
    for effort in _efforts(min(4 * math.isqrt(len(documents)), 1 << 16)):
        index.effort = effort
        spent = min(_seconds(lambda: index.search(queries, DEPTH)) for _ in range(2))
        recall = index.measure(queries, DEPTH)
        found = {"setting": recall.setting, "recall": recall.value, "low": recall.low, "high": recall.high}
        rungs.append({**found, "seconds": spent, "of_exact": spent / exact})
    shape = {"documents": len(documents), "queries": len(queries), "width": WIDTH, "depth": DEPTH, "threads": threads}
    return {"vectors": way, **shape, "build_seconds": built, "exact_seconds": exact, "rungs": rungs}


def _efforts(lists: int) -> list[int]:
    """Settings up to an eighth of the lists, which is further than `tune` goes: to see where exact is quicker."""
    return [*(8 << step for step in range(12) if 8 << step < lists // 8), lists // 8]


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start

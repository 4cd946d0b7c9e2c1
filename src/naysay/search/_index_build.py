"""How an index is filled: centres from a sample, then the corpus block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.rng import rng_for
from naysay.search import _index_faiss as faiss_parts
from naysay.search import _index_rules as rules
from naysay.search._index_centres import centres, nearest
from naysay.search._index_euclid import Euclid
from naysay.search._unresolved_pairs import floats
from naysay.search.vectors import Vectors

_ROUNDS = 10  # of k-means


def built(corpus: Vectors, space: Euclid, kind: str, *, seed: int, budget: int, threads: int) -> Any:
    """The index, faiss's own, of a corpus that was surveyed, within a budget that was checked.

    Blocks are of one size whatever the budget and the threads: a graph depends on them.
    """
    some = np.sort(rng_for(seed).choice(corpus.n, rules.sample_for(kind, corpus.n), replace=False))
    sample = space.corpus(floats(corpus.take(some)))
    means = None
    if kind == "ivf":
        working = max(rules.WORK // 2, budget // 2 - sample.nbytes)
        lists = rules.lists_for(corpus.n)
        means = centres(sample, lists, rounds=_ROUNDS, seed=seed, budget=working, threads=threads)
    index = faiss_parts.empty_graph(sample, seed) if means is None else faiss_parts.empty_lists(means, sample)
    del sample
    step = max(1, rules.BLOCK // corpus.width)
    for start in range(0, corpus.n, step):
        rows = space.corpus(floats(corpus.rows(start, start + step)))
        own = None
        if means is not None:
            own = nearest(rows, means, 1, budget=rules.WORK // 2, threads=threads)[:, 0]
        faiss_parts.add(index, rows, own)
    return index

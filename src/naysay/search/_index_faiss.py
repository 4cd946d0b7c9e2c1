"""What faiss does for us: lists and graphs of 8-bit codes.

Each call runs where faiss has one thread, in threads of ours. With threads of its own a graph would come out
differently each time, and sums would be rounded differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.search import _index_rules as rules

Ids = NDArray[np.int64]
Block = NDArray[np.float32]


def in_threads(count: int, function: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
    """[function(item), ...] in threads that are new and end with the call: nobody's setting of faiss moves."""
    import faiss

    with ThreadPoolExecutor(count, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(function, *items))


def empty_lists(centres: Block, sample: Block) -> Any:
    """Inverted lists of 8-bit codes around these centres; the ranges of codes are those of the sample."""
    import faiss

    lists, width = centres.shape
    coarse = faiss.IndexFlatL2(width)
    coarse.add(centres)
    index = faiss.IndexIVFScalarQuantizer(coarse, width, lists, faiss.ScalarQuantizer.QT_8bit)
    in_threads(1, index.train, [sample[: rules.ENCODER]])
    return index


def empty_graph(sample: Block, seed: int) -> Any:
    """A graph over 8-bit codes; the levels of rows are drawn by the seed."""
    import faiss

    library: Any = faiss
    index = library.IndexHNSWSQ(sample.shape[1], faiss.ScalarQuantizer.QT_8bit, rules.LINKS)
    graph: Any = index.hnsw
    graph.efConstruction, graph.rng = rules.REACH, library.RandomGenerator(seed & 0x7FFFFFFF)
    in_threads(1, index.train, [sample])
    return index


def add(index: Any, rows: Block, lists: Ids | None) -> None:
    """Add rows; to these lists, if it has lists."""
    import faiss

    if lists is None:
        in_threads(1, index.add, [rows])
        return
    nearest = np.ascontiguousarray(lists)
    in_threads(
        1, lambda given: index.add_core(len(given), faiss.swig_ptr(given), None, faiss.swig_ptr(nearest)), [rows]
    )


def fetch_lists(index: Any, queries: Block, count: int, lists: Ids) -> Ids:
    """(n, count) the best codes in these lists (n, nprobe), -1 where there are fewer."""
    import faiss

    library: Any = faiss
    n, probes = lists.shape
    nearest, unused = np.ascontiguousarray(lists), np.zeros(lists.shape, np.float32)
    distances, ids = np.empty((n, count), np.float32), np.empty((n, count), np.int64)
    given = (n, faiss.swig_ptr(queries), count, faiss.swig_ptr(nearest), faiss.swig_ptr(unused))
    answers = (faiss.swig_ptr(distances), faiss.swig_ptr(ids), False, library.SearchParametersIVF(nprobe=probes))
    index.search_preassigned_c(*given, *answers)
    return ids


def fetch_graph(index: Any, queries: Block, count: int, reach: int) -> Ids:
    """(n, count) the best codes that a walk with max(reach, count) candidates meets, -1 where there are fewer."""
    import faiss

    library: Any = faiss
    return np.asarray(index.search(queries, count, params=library.SearchParametersHNSW(efSearch=max(reach, count)))[1])

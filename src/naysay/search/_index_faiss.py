"""The faiss side of an index: built by exact k-means, searched by codes, and a folder on disk.

Each call runs where faiss has one thread, in threads of ours. With threads of its own a graph would differ each time,
and sums would be rounded differently.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._packages import need_faiss
from naysay.checks import raise_invalid
from naysay.files import HEADER, check_replaceable, digest_of, draft_of, raise_unreadable, read_header, sync
from naysay.rng import rng_for
from naysay.search import _index_rules as rules
from naysay.search._index_rules import KINDS, Block, Euclid
from naysay.search._scores import METRICS
from naysay.search.exact import search
from naysay.search.vectors import Vectors, floats

Ids = NDArray[np.int64]
_ROUNDS = 10  # of k-means
_SMALL, _WIDE = 1 << 27, 1 << 14  # products of numbers, and row widths, up to which float32 is the fastest engine
_KIND, _FORMAT = "approximate index", 1
_FILE = "index.faiss"
_ENTRIES = ("kind", "format", "corpus", "file", "about")  # of its header
_SAMPLE = 1024  # rows of the corpus that are compared


def build_index(corpus: Vectors, space: Euclid, kind: str, *, seed: int, budget: int, threads: int) -> Any:
    """Build the faiss index of a corpus that was surveyed, within a budget that was checked.

    Blocks are of one size whatever the budget and the threads: a graph depends on them.
    """
    some = np.sort(rng_for(seed).choice(corpus.n, rules.sample_for(kind, corpus.n), replace=False))
    sample = space.corpus(floats(corpus.take(some)))
    means = None
    if kind == "ivf":
        working = max(rules.WORK // 2, budget // 2 - sample.nbytes)
        lists = rules.lists_for(corpus.n)
        means = centres(sample, lists, rounds=_ROUNDS, seed=seed, budget=working, threads=threads)
    index = empty_graph(sample, seed) if means is None else empty_lists(means, sample)
    del sample
    step = max(1, rules.BLOCK // corpus.width)
    for start in range(0, corpus.n, step):
        rows = space.corpus(floats(corpus.rows(start, start + step)))
        own = None
        if means is not None:
            own = nearest(rows, means, 1, budget=rules.WORK // 2, threads=threads)[:, 0]
        add(index, rows, own)
    return index


def nearest(rows: Block, means: Block, count: int, *, budget: int, threads: int) -> NDArray[np.int64]:
    """(n, count) the nearest centres of each row, in order, by an exact search: the same for many rows or few."""
    small = rows.size * len(means) <= _SMALL and rows.shape[1] <= _WIDE
    engine = "float32" if small else "auto"
    return search(rows, means, count, metric="l2", engine=engine, budget=budget, threads=threads).ids


def centres(sample: Block, count: int, *, rounds: int, seed: int, budget: int, threads: int) -> Block:
    """(count, d) centres of Lloyd's Euclidean k-means, from `count` different rows of the sample.

    The nearest centre of each row is found by `search`, and a mean is a float64 sum in the order of rows: nothing
    depends on threads. A centre without rows starts again at a row of the sample.

    Cost: rounds s count d.
    """
    rng = rng_for(seed)
    means = sample[np.sort(rng.choice(len(sample), count, replace=False))]
    for _ in range(rounds):
        own = nearest(sample, means, 1, budget=budget, threads=threads)[:, 0]
        order = np.argsort(own, kind="stable")
        sizes = np.bincount(own, minlength=count)
        full = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[full]
        means = np.empty_like(means)
        means[full] = np.add.reduceat(sample[order], starts, axis=0, dtype=np.float64) / sizes[full, None]
        means[~full] = sample[rng.integers(0, len(sample), int((~full).sum()))]
    return means


def in_threads(count: int, function: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
    """[function(item), ...] in new threads that end with the call, so that no setting of faiss changes elsewhere."""
    faiss = need_faiss()

    with ThreadPoolExecutor(count, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(function, *items))


def empty_lists(centres: Block, sample: Block) -> Any:
    """Return empty inverted lists of 8-bit codes around these centres; the sample sets the ranges of codes."""
    faiss = need_faiss()

    lists, width = centres.shape
    coarse = faiss.IndexFlatL2(width)
    coarse.add(centres)
    index = faiss.IndexIVFScalarQuantizer(coarse, width, lists, faiss.ScalarQuantizer.QT_8bit)
    in_threads(1, index.train, [sample[: rules.ENCODER]])
    return index


def empty_graph(sample: Block, seed: int) -> Any:
    """Return an empty graph over 8-bit codes; the seed draws the levels of rows."""
    faiss = need_faiss()

    library: Any = faiss
    index = library.IndexHNSWSQ(sample.shape[1], faiss.ScalarQuantizer.QT_8bit, rules.LINKS)
    graph: Any = index.hnsw
    graph.efConstruction, graph.rng = rules.BUILD_REACH, library.RandomGenerator(seed & 0x7FFFFFFF)
    in_threads(1, index.train, [sample])
    return index


def add(index: Any, rows: Block, lists: Ids | None) -> None:
    """Add rows, to these lists if the index has lists."""
    faiss = need_faiss()

    if lists is None:
        in_threads(1, index.add, [rows])
        return
    nearest = np.ascontiguousarray(lists)
    in_threads(
        1, lambda given: index.add_core(len(given), faiss.swig_ptr(given), None, faiss.swig_ptr(nearest)), [rows]
    )


def fetch_lists(index: Any, queries: Block, count: int, lists: Ids) -> Ids:
    """(n, count) the best codes in these lists (n, nprobe), -1 where there are fewer."""
    faiss = need_faiss()

    library: Any = faiss
    n, probes = lists.shape
    nearest, unused = np.ascontiguousarray(lists), np.zeros(lists.shape, np.float32)
    distances, ids = np.empty((n, count), np.float32), np.empty((n, count), np.int64)
    given = (n, faiss.swig_ptr(queries), count, faiss.swig_ptr(nearest), faiss.swig_ptr(unused))
    outputs = (faiss.swig_ptr(distances), faiss.swig_ptr(ids), False, library.SearchParametersIVF(nprobe=probes))
    index.search_preassigned_c(*given, *outputs)
    return ids


def fetch_graph(index: Any, queries: Block, count: int, reach: int) -> Ids:
    """(n, count) the best codes of a walk with max(reach, count) candidates, -1 where there are fewer."""
    faiss = need_faiss()

    library: Any = faiss
    return np.asarray(index.search(queries, count, params=library.SearchParametersHNSW(efSearch=max(reach, count)))[1])


@final
@dataclass(frozen=True, slots=True)
class About:
    """How an index was built, and of what."""

    kind: str
    metric: str
    n: int
    width: int
    largest: float  # norm of a row of the corpus
    effort: int  # nprobe or efSearch
    seed: int


def save(path: Path, index: Any, about: About, corpus: Vectors) -> None:
    """Write the folder, by way of a draft beside it."""
    faiss = need_faiss()

    check_replaceable(path, _ENTRIES, own=(_FILE,))
    if not path.parent.is_dir():
        raise_invalid("path", "in an existing folder", repr(str(path)))
    content = content_of(corpus)
    with draft_of(path, "path") as draft:
        draft.mkdir()
        try:
            faiss.write_index(index, str(draft / _FILE))
        except RuntimeError as error:
            raise_invalid("path", "a place that can be written to", repr(str(path)), str(error).splitlines()[-1])
        header = {"kind": _KIND, "format": _FORMAT, "corpus": content, "file": digest_of(draft / _FILE)}
        (draft / HEADER).write_text(json.dumps({**header, "about": asdict(about)}, indent=1) + "\n")
        for name in (_FILE, HEADER):
            sync(draft / name)


def about(path: Path, corpus: Vectors) -> About:
    """Return how the index at `path` was built; raise if naysay did not write it, or if it is of another corpus."""
    header = read_header(path, _ENTRIES)
    if header is None or header["kind"] != _KIND:
        raise_invalid("path", "an index that naysay wrote", repr(str(path)))
    found = _about(header)
    if found is None or str(header["format"]) != str(_FORMAT):
        raise_invalid("path", f"an index with a sound header of format {_FORMAT}", repr(str(path / HEADER)))
    if (corpus.n, corpus.width) != (found.n, found.width):
        got = f"{corpus.n} x {corpus.width}"
        raise_invalid("corpus", f"the one of the index, {found.n} x {found.width}", got)
    if content_of(corpus) != header["corpus"]:
        raise_invalid("corpus", "the one of the index", "other values, or another dtype", "Build a new index.")
    return found


def read(path: Path, found: About, corpus: Vectors) -> Any:
    """Read the faiss index; raise before faiss reads it if the file has changed since it was written."""
    faiss = need_faiss()

    header = read_header(path, _ENTRIES) or {}
    file = path / _FILE
    if not file.is_file() or digest_of(file) != header.get("file"):
        raise_invalid("path", "a folder as it was written", f"{_FILE}, missing or changed")
    try:
        index = faiss.read_index(str(file))
    except RuntimeError as error:
        raise_unreadable("path", "a folder as it was written", file, error)
    width = found.width + (found.metric == "dot")
    if (index.ntotal, index.d, hasattr(index, "nlist")) != (corpus.n, width, found.kind == "ivf"):
        raise_invalid("path", "a folder as it was written", f"{_FILE} of {index.ntotal} x {index.d}")
    return index


def content_of(corpus: Vectors) -> str:
    """A hash of the dtype and of up to 1,024 rows, the first and the last among them."""
    some = np.unique(np.linspace(0, corpus.n - 1, min(_SAMPLE, corpus.n)).astype(np.int64))
    digest = hashlib.sha256(str(corpus.dtype).encode())
    digest.update(floats(corpus.take(some)).tobytes())
    return digest.hexdigest()


def _about(header: dict[str, Any]) -> About | None:
    """The entry `about` of the header, or None if it is damaged."""
    try:
        found = About(**header["about"])
    except TypeError:
        return None
    whole = (found.n, found.width, found.effort, found.seed)
    good = (
        isinstance(found.kind, str)
        and found.kind in KINDS[1:]
        and isinstance(found.metric, str)
        and found.metric in METRICS
        and all(type(number) is int and 0 <= number < 1 << 63 for number in whole)
        and 0 < found.effort < 1 << 31
        and type(found.largest) is float
        and 0 <= found.largest < np.inf
    )
    return found if good else None

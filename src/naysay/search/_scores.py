"""What all searches share: exact scores of pairs, and threads.

A score is the float64 sum over the coordinates in order, rounded to float32, by one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import Floats, need_torch
from naysay.kernels import dots
from naysay.kernels.dots import COSINE, DOT, L2
from naysay.kernels.threads import check_threads, in_rows
from naysay.kernels.threads import threads as usual_threads
from naysay.search import _plain as plain
from naysay.search.vectors import Vectors, floats

Ids = NDArray[np.int64]
METRICS: Mapping[str, int] = MappingProxyType({"dot": DOT, "cosine": COSINE, "l2": L2})
_NUMBERS = 1 << 20  # coordinates of either side that are copied at a time
_RUN = 64  # pairs of one query that are scored together
_GROUPED = 2  # with so many pairs to a run of one query, pairs are not sorted before
_FEW = 8  # with fewer pairs than corpus rows / 8, rows are copied instead of using the whole corpus
FETCHED = 2048  # rows of a file that are scored at a time


def norms_of(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the norms of rows."""
    return plain.norms(frozen(rows))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactScores:
    """Scores of listed pairs of query vectors and rows of a corpus, whose norms are given if it is in memory."""

    metric: int
    corpus: Vectors
    norms: NDArray[np.float64] | None

    def of(
        self, queries: NDArray[Any], query_norms: NDArray[np.float64], counts: Any, ids: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """(n, m) scores of the first counts[row] ids of each row, which ascend; the rest is undefined."""
        out = np.empty(ids.shape, np.float32)
        whole, norms = self.corpus.whole, self.norms
        if whole is not None and norms is not None:
            arguments = (queries, query_norms, frozen(whole), frozen(norms), 0, counts, ids, out)
            dots.listed_scores(0, len(ids), self.metric, *arguments)
            return out
        used = np.arange(ids.shape[1]) < counts[:, None]
        wanted, inverse = np.unique(ids[used], return_inverse=True)
        places = np.zeros_like(ids)
        places[used] = inverse
        for first in range(0, len(wanted), FETCHED):
            rows = floats(self.corpus.take(wanted[first : first + FETCHED].astype(np.int64)))
            arguments = (queries, query_norms, frozen(rows), frozen(norms_of(rows)), first, counts, places, out)
            dots.listed_scores(0, len(ids), self.metric, *arguments)
        return out


def pair_scores(
    queries: Vectors, corpus: Vectors, anchors: Ids, items: Ids, metric: str, norms: Floats | None = None
) -> NDArray[np.float32]:
    """(p,) the score of each pair (query row, corpus row), as a search gives it. The norms of the corpus save time.

    Pairs of a corpus on disk are scored in the order of their items, so that it is read once. O(p d).
    """
    if corpus.whole is not None and (norms is not None or len(items) >= corpus.n // _FEW):
        return _whole_pair_scores(queries, corpus, anchors, items, METRICS[metric], norms)
    scores = np.empty(len(items), np.float32)
    order = np.argsort(items, kind="stable")
    step = max(1, _NUMBERS // max(1, corpus.width))
    for start in range(0, len(order), step):
        part = order[start : start + step]
        sides = [frozen(taken(side, ids[part])) for side, ids in ((queries, anchors), (corpus, items))]
        lengths = [_lengths(side) for side in sides]
        if plain.is_few(*sides):
            scores[part] = plain.pair_scores(METRICS[metric], sides[0], lengths[0], sides[1], lengths[1])
            continue
        out = np.empty((len(part), 1), np.float32)
        own, one = frozen(np.arange(len(part))[:, None]), frozen(np.ones(len(part), np.int64))
        arguments = (METRICS[metric], sides[0], lengths[0], sides[1], lengths[1], 0, one, own, out)
        in_rows(dots.listed_scores, len(part), sides[0].size, *arguments)
        scores[part] = out[:, 0]
    return scores


def _whole_pair_scores(
    queries: Vectors, corpus: Vectors, anchors: Ids, items: Ids, metric: int, given: Floats | None
) -> NDArray[np.float32]:
    """The same for a corpus in memory, which is not copied: runs of pairs with one query, at most 64, at a time."""
    whole = frozen(floats(corpus.rows(0, corpus.n)))
    if 2 * len(items) * corpus.width <= plain.FEW_NUMBERS:
        row_norms = _lengths(whole) if given is None else given
        left = taken(queries, anchors)
        return plain.pair_scores(metric, left, plain.norms(left), whole[items], row_norms[items])
    norms, scores = _lengths(whole) if given is None else frozen(given), np.empty(len(items), np.float32)
    runs = np.count_nonzero(np.diff(anchors))
    order = np.arange(len(items)) if _GROUPED * runs < len(items) else np.lexsort((items, anchors))
    ordered = anchors[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    place = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    starts = np.append(np.flatnonzero(place % _RUN == 0), len(order))  # of runs
    step = max(1, _NUMBERS // (2 * max(_RUN, corpus.width)))
    for at in range(0, len(starts) - 1, step):
        edges = starts[at : at + step + 1]
        counts, part = np.diff(edges), order[edges[0] : edges[-1]]
        used = np.arange(counts.max()) < counts[:, None]
        ids, out = np.zeros(used.shape, np.int64), np.empty(used.shape, np.float32)
        ids[used] = items[part]
        rows = frozen(taken(queries, ordered[edges[:-1]]))
        arguments = (metric, rows, _lengths(rows), whole, norms, 0, frozen(counts), frozen(ids), out)
        in_rows(dots.listed_scores, len(rows), len(part) * corpus.width, *arguments)
        scores[part] = out[used]
    return scores


def _lengths(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The norms of rows, read-only."""
    return frozen(plain.norms(rows))


def taken(vectors: Vectors, ids: Ids) -> NDArray[Any]:
    """(p, d) the rows of these ids, which may repeat, as float32 or float64."""
    wanted, places = np.unique(ids, return_inverse=True)
    return floats(np.asarray(vectors.take(wanted)))[places.reshape(-1)]


def lowest_of(anchors: Ids, scores: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """(n,) the lowest score of each anchor, NaN where it has none."""
    lowest = np.full(n, np.inf, np.float32)
    np.minimum.at(lowest, anchors, scores)
    return np.where(np.isinf(lowest), np.float32(np.nan), lowest)


def thread_count(threads: int | None) -> int:
    """Return the number of threads, the library's setting for None."""
    return usual_threads() if threads is None else check_threads("threads", threads)


@final
class Workers:
    """Threads inside `with Workers(...)`, each with one thread of torch's where torch multiplies in them.

    More threads of torch would only wait for the scan, at full load. The number is restored at the end.
    """

    def __init__(self, count: int, *, torch: bool) -> None:
        self.count = count
        self.torch = need_torch() if torch else None
        self.before = self.torch.get_num_threads() if self.torch else 0
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="naysay-search", initializer=self._alone)

    def _alone(self) -> None:
        if self.torch:
            self.torch.set_num_threads(1)

    def each(self, function: Callable[[Any], Any], items: Iterable[Any]) -> None:
        """Call `function` on every item. A single one runs in the caller's thread: a small search starts none."""
        listed = list(items)
        if len(listed) == 1 and self.torch is None:
            function(listed[0])
            return
        for _ in self.pool.map(function, listed):
            pass

    def rows(self, loop: Callable[..., Any], rows: int, *arguments: Any) -> None:
        """Run `loop(start, stop, *arguments)` over all rows, in a few parts for each thread."""
        parts = min(4 * self.count if self.count > 1 else 1, max(1, rows // 64))
        edges = [rows * part // parts for part in range(parts + 1)]
        self.each(lambda part: loop(edges[part], edges[part + 1], *arguments), range(parts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()
        if self.torch:
            self.torch.set_num_threads(self.before)

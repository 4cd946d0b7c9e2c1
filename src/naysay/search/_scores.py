"""What all searches share: exact scores of listed pairs, and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
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
_FEW_NUMBERS = 1 << 22  # coordinates up to which NumPy takes some milliseconds, and compiling a loop a second
_FEW = 8  # with fewer pairs than corpus rows / 8, rows are copied instead of measuring the norms of all
FETCHED = 2048  # rows of a file that are scored at a time
norms_of = plain.norms


def listed_scores(
    metric: int,
    queries: NDArray[Any],
    query_norms: Floats,
    corpus: Vectors,
    corpus_norms: Floats | None,
    counts: Ids,
    ids: NDArray[Any],
) -> NDArray[np.float32]:
    """(n, m) scores of the first counts[row] ids of each row, which ascend; the rest is -inf.

    The norms of the corpus are given if it is in memory.
    """
    scores = np.full(ids.shape, -np.inf, np.float32)
    starts = np.arange(len(ids)) * ids.shape[1]
    left = metric, frozen(queries), frozen(query_norms)
    if corpus.whole is not None and corpus_norms is not None:
        right = frozen(corpus.whole), frozen(corpus_norms), 0
        dots.listed_scores(0, len(ids), *left, *right, starts, starts + counts, ids.reshape(-1), scores.reshape(-1))
        return scores
    used = np.arange(ids.shape[1]) < counts[:, None]
    wanted, inverse = np.unique(ids[used], return_inverse=True)
    places = np.zeros_like(ids)
    places[used] = inverse
    for first in range(0, len(wanted), FETCHED):
        rows = floats(corpus.take(wanted[first : first + FETCHED].astype(np.int64)))
        right = frozen(rows), frozen(norms_of(rows)), first
        dots.listed_scores(0, len(ids), *left, *right, starts, starts + counts, places.reshape(-1), scores.reshape(-1))
    return scores


def pair_scores(
    queries: Vectors, corpus: Vectors, anchors: Ids, items: Ids, metric: str, norms: Floats | None = None
) -> NDArray[np.float32]:
    """(p,) the score of each pair (query row, corpus row), as a search gives it. The norms of the corpus save time.

    Pairs of a corpus on disk are scored in the order of their items, so that it is read once. O(p d).
    """
    scores = np.empty(len(items), np.float32)
    whole = corpus.whole if norms is not None or len(items) >= corpus.n // _FEW else None
    if whole is not None and norms is None:
        norms = norms_of(whole)
    are_few = 2 * len(items) * corpus.width <= _FEW_NUMBERS
    order = np.argsort(items if whole is None else anchors, kind="stable")
    pairs_at_once = max(1, _NUMBERS // max(1, corpus.width))
    for start in range(0, len(order), pairs_at_once):
        part = order[start : start + pairs_at_once]
        part = part[np.lexsort((items[part], anchors[part]))]
        left_ids, starts, owners = np.unique(anchors[part], return_index=True, return_inverse=True)
        left = floats(np.asarray(queries.take(left_ids)))
        left_norms = norms_of(left)
        right, right_norms, places = whole, norms, items[part]
        if right is None or right_norms is None:
            right_ids, places = np.unique(items[part], return_inverse=True)
            right = floats(np.asarray(corpus.take(right_ids)))
            right_norms = norms_of(right)
        if are_few:
            sides = left[owners], left_norms[owners], right[places], right_norms[places]
            scores[part] = plain.pair_scores(METRICS[metric], *sides)
            continue
        out = np.empty(len(part), np.float32)
        sides = frozen(left), frozen(left_norms), frozen(right), frozen(right_norms)
        ends = np.append(starts[1:], len(part))
        in_rows(
            dots.listed_scores,
            len(left),
            len(part) * corpus.width,
            METRICS[metric],
            *sides,
            0,
            starts,
            ends,
            places,
            out,
        )
        scores[part] = out
    return scores


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
        self.torch_threads = self.torch.get_num_threads() if self.torch else 0
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="naysay-search", initializer=self._limit_torch)

    def _limit_torch(self) -> None:
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
            self.torch.set_num_threads(self.torch_threads)

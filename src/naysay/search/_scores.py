"""Exact scores: norms, scores of pairs and of all pairs, the best of a row; and the threads of a search.

A score is the float64 sum over the coordinates in index order, each product and each sum rounded, then rounded to
float32 once. Few pairs are scored in NumPy, because a compiled loop takes a second to compile; the bytes are those of
`kernels.dots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import Floats, need_torch
from naysay.checks import raise_invalid
from naysay.kernels import dots
from naysay.kernels.dots import COSINE, DOT, L2
from naysay.kernels.threads import in_rows
from naysay.kernels.threads import threads as usual_threads
from naysay.search.vectors import Vectors, floats

Ids = NDArray[np.int64]
METRICS: Mapping[str, int] = MappingProxyType({"dot": DOT, "cosine": COSINE, "l2": L2})
BUDGET = 1 << 30  # bytes of a search by default
FETCHED = 2048  # rows of a file that are scored at a time
SLOT_BYTES = 12  # of a slot of a result: id and score; and of an open pair: id, upper and lower bound
_NUMBERS = 1 << 20  # coordinates of either side that are copied at a time
_FEW_NUMBERS = 1 << 22  # coordinates up to which NumPy takes some milliseconds, and compiling a loop a second
_FEW = 8  # with fewer pairs than corpus rows / 8, rows are copied instead of measuring the norms of all
_CACHED = 1 << 17  # scores of a block, or coordinates of either side: 1 MB of float64, what a cache holds
_CELL_BYTES = 44  # of a score of a block: sum, term, score and sorting keys
_NORM_NUMBERS = 1 << 16  # coordinates whose squares stay in the cache
_EMPTY = np.uint64(0xFFFFFFFF)  # the id of an empty slot in a sorting key


def fill_norms(start: int, stop: int, rows: NDArray[Any], out: Floats) -> None:
    """out[row] = the square root of the sum of squares in index order, for the rows from start to stop."""
    at_once = max(1, _NORM_NUMBERS // max(1, rows.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):  # a survey finds such rows by their norms
        for first in range(start, stop, at_once):
            last = min(first + at_once, stop)
            squares = np.array(rows[first:last].T, np.float64, order="C")
            squares *= squares
            # NumPy adds the coordinates, which are the rows here, one after another.
            np.sqrt(np.add.reduce(squares, axis=0), out=out[first:last])


def norms_of(rows: NDArray[Any]) -> Floats:
    """(n,) the norms of rows (n, d)."""
    found = np.empty(len(rows))
    fill_norms(0, len(rows), rows, found)
    return found


def _rounded(metric: int, totals: Floats, query_norms: Floats, row_norms: Floats) -> NDArray[np.float32]:
    """The float32 scores of float64 sums; adding 0 turns -0 into 0, so that equal scores are equal bytes."""
    if metric == COSINE:
        with np.errstate(invalid="ignore", divide="ignore"):  # a zero vector has no cosine: NaN, as in the loops
            totals = totals / (query_norms * row_norms)
    elif metric == L2:
        totals = -np.sqrt(totals)
    return np.asarray((totals + 0.0).astype(np.float32))


def _few_scores(
    metric: int, queries: NDArray[Any], query_norms: Floats, rows: NDArray[Any], row_norms: Floats
) -> NDArray[np.float32]:
    """(p,) the score of queries[i] and rows[i], both (p, d)."""
    totals = np.zeros(len(queries))
    columns = (np.ascontiguousarray(side.T, np.float64) for side in (queries, rows))
    for one, other in zip(*columns, strict=True):
        totals += (one - other) ** 2 if metric == L2 else one * other
    return _rounded(metric, totals, query_norms, row_norms)


def _all_scores(
    metric: int, queries: NDArray[Any], query_norms: Floats, columns: Floats, row_norms: Floats
) -> NDArray[np.float32]:
    """(n, m) the score of every pair; `columns` are the rows of the corpus transposed, (d, m) float64."""
    totals = np.zeros((len(queries), columns.shape[1]))
    term = np.empty_like(totals)
    coordinates = queries.astype(np.float64)
    for place, column in enumerate(columns):
        coordinate = coordinates[:, place, None]
        if metric == L2:
            np.subtract(coordinate, column, out=term)
            np.multiply(term, term, out=term)
        else:
            np.multiply(coordinate, column, out=term)
        totals += term
    return _rounded(metric, totals, query_norms[:, None], row_norms)


def top(ids: NDArray[Any], scores: NDArray[np.float32], depth: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(n, min(m, depth)) the best of each row: score descending, id ascending; -1 where a score is -inf.

    `ids` are (m,) or (n, m), below 2^32 - 1. No score is NaN or -0. A key has the score, as a number that sorts
    downwards, in its upper half and the id below, so that one sort of numbers gives the order.
    """
    bits = np.ascontiguousarray(scores).view(np.uint32)
    falling = np.where(bits >> np.uint32(31), bits, np.uint32(0x7FFFFFFF) - bits)
    keys = falling.astype(np.uint64) << np.uint64(32)
    keys |= np.where(np.isneginf(scores), _EMPTY, ids.astype(np.uint64))
    if keys.shape[1] > depth:
        keys.partition(depth - 1, axis=1)
        keys = keys[:, :depth].copy()
    keys.sort(axis=1)
    low = keys & _EMPTY
    falling = (keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(falling >> np.uint32(31), falling, np.uint32(0x7FFFFFFF) - falling)
    return np.where(low == _EMPTY, -1, low.astype(np.int64)), bits.view(np.float32)


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
            scores[part] = _few_scores(METRICS[metric], *sides)
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


# ---- all pairs ------------------------------------------------------------------------------------------------------


def _sizes(n_queries: int, corpus: Vectors) -> tuple[int, int]:
    """Queries and corpus rows of a block."""
    items = min(corpus.n, max(1, _CACHED // corpus.width))
    queries = min(n_queries, max(1, min(_CACHED // max(1, items), _CACHED // corpus.width)))
    return queries, items


def all_pairs_bytes(n_queries: int, corpus: Vectors, depth: int) -> int:
    """The memory of `score_all`."""
    queries, items = _sizes(n_queries, corpus)
    block_bytes = (queries + items) * corpus.width * (2 * corpus.dtype.itemsize + 8) + queries * items * _CELL_BYTES
    return result_bytes(n_queries, corpus, depth) + block_bytes


def check_memory(budget: int | None, needed: int, n_queries: int, corpus: Vectors, depth: int) -> None:
    """Raise if a search needs more bytes than the budget. The error is about what to change: budget or depth."""
    total = BUDGET if budget is None else budget
    if needed <= total:
        return
    if depth > corpus.n and needed - SLOT_BYTES * n_queries * (depth - corpus.n) <= total:
        raise_invalid("depth", f"at most {corpus.n}, the rows of the corpus, for a memory of {total} bytes", depth)
    raise_invalid("budget", f"at least {needed} bytes for this search", total, f"Pass a `budget` of {needed} or more.")


def result_bytes(n_queries: int, corpus: Vectors, depth: int) -> int:
    """The memory of a result, and of the norms."""
    in_memory = 8 * corpus.n if corpus.whole is not None else 0
    return SLOT_BYTES * n_queries * depth + 8 * n_queries + in_memory


def score_all(
    metric: int,
    queries: Vectors,
    query_norms: Floats | None,
    corpus: Vectors,
    corpus_norms: Floats | None,
    excluded: tuple[NDArray[np.int64], NDArray[Any]],
    found_ids: NDArray[np.int64],
    found_scores: NDArray[np.float32],
    on_progress: Callable[[float], None] | None,
) -> None:
    """Fill ids and scores by the scores of all pairs. `excluded` is (indptr, indices) of rows that are left out."""
    depth = found_ids.shape[1]
    queries_at_once, items_at_once = _sizes(queries.n, corpus)
    for first in range(0, corpus.n, items_at_once):
        last = min(first + items_at_once, corpus.n)
        items = floats(corpus.rows(first, last))
        item_norms = norms_of(items) if corpus_norms is None else corpus_norms[first:last]
        columns = np.array(items.T, np.float64, order="C")
        ids = np.arange(first, last)
        for start in range(0, queries.n, queries_at_once):
            stop = min(start + queries_at_once, queries.n)
            rows = floats(queries.rows(start, stop))
            row_norms = norms_of(rows) if query_norms is None else query_norms[start:stop]
            scores = _all_scores(metric, rows, row_norms, columns, item_norms)
            _exclude(scores, excluded, start, first)
            best_ids, best_scores = top(ids, scores, depth)
            if first > 0:
                best_ids = np.concatenate([found_ids[start:stop], best_ids], axis=1)
                best_scores = np.concatenate([found_scores[start:stop], best_scores], axis=1)
                best_ids, best_scores = top(best_ids, best_scores, depth)
            width = best_ids.shape[1]
            found_ids[start:stop, :width], found_scores[start:stop, :width] = best_ids, best_scores
            if on_progress is not None:
                on_progress((stop - start) * (last - first) / corpus.n)


def _exclude(
    scores: NDArray[np.float32], excluded: tuple[NDArray[np.int64], NDArray[Any]], first_query: int, first_item: int
) -> None:
    """Set the scores of excluded pairs of a block to -inf."""
    indptr, indices = excluded
    ends = indptr[first_query : first_query + len(scores) + 1]
    rows = np.repeat(np.arange(len(scores)), np.diff(ends))
    columns = indices[ends[0] : ends[-1]].astype(np.int64) - first_item
    inside = (columns >= 0) & (columns < scores.shape[1])
    scores[rows[inside], columns[inside]] = -np.inf


# ---- threads --------------------------------------------------------------------------------------------------------


def thread_count(threads: int | None) -> int:
    """Return the number of threads, the library's setting for None."""
    return usual_threads() if threads is None else threads


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

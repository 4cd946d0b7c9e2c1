"""What all searches share: exact scores of pairs, one check of all vectors, threads, and blocks that fit the memory.

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
from naysay.checks import at_row, check_whole, raise_invalid
from naysay.kernels import dots
from naysay.kernels.dots import COSINE, DOT, L2
from naysay.kernels.threads import check_threads, in_rows
from naysay.kernels.threads import threads as usual_threads
from naysay.search._vector_files import WINDOW
from naysay.search.vectors import Vectors, floats

Ids = NDArray[np.int64]
METRICS: Mapping[str, int] = MappingProxyType({"dot": DOT, "cosine": COSINE, "l2": L2})
_NUMBERS, _SURVEYED = 1 << 20, 1 << 21  # numbers of vectors that are held at a time, on either side; that are checked
_RUN, _FEW = 64, 8  # pairs that one query vector is read for; fewer pairs than that part of the corpus are copied
SMALLEST_NORM, _LARGEST_NORM = 1e-140, 1e140  # norms whose squares float64 holds with all its digits
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_BUDGET, _LIBRARIES = 1 << 30, 8 << 20  # bytes of a search by default; that the libraries take for themselves
_COLUMNS, _STRIP, _SMALLEST = 4096, 128, 32  # corpus rows of a block, queries of a strip, and the smallest of both
FETCHED, _PAIR = 2048, 12  # rows of a file that are scored at a time; bytes of an open pair: id, upper and lower bound
_BLOCK, _PART = 14 << 20, 3  # bytes of a block of queries without a budget; or this part of the corpus


def norms_of(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the norms of rows."""
    norms = np.empty(len(rows))
    dots.norms(0, len(rows), frozen(rows), norms)
    return norms


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactScores:
    """Scores of listed pairs of query vectors and rows of a corpus, whose norms are given if it is in memory."""

    metric: int
    corpus: Vectors
    norms: NDArray[np.float64] | None

    def of(
        self, queries: NDArray[np.float64], query_norms: NDArray[np.float64], counts: Any, ids: NDArray[np.int32]
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
    norms, scores = _lengths(whole) if given is None else frozen(given), np.empty(len(items), np.float32)
    order = np.lexsort((items, anchors))
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
    """The norms of rows, by several threads."""
    found = np.empty(len(rows))
    in_rows(dots.norms, len(rows), rows.size, rows, found)
    return frozen(found)


def taken(vectors: Vectors, ids: Ids) -> NDArray[Any]:
    """(p, d) the rows of these ids, which may repeat, as float32 or float64."""
    wanted, places = np.unique(ids, return_inverse=True)
    return floats(np.asarray(vectors.take(wanted)))[places.reshape(-1)]


def lowest_of(anchors: Ids, scores: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """(n,) the lowest score of each anchor, NaN where it has none."""
    lowest = np.full(n, np.inf, np.float32)
    np.minimum.at(lowest, anchors, scores)
    return np.where(np.isinf(lowest), np.float32(np.nan), lowest)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The largest norm, and all norms where the vectors are in memory anyway."""

    largest: float
    norms: NDArray[np.float64] | None


def survey(parameter: str, vectors: Vectors, metric: int, threads: int) -> Survey:
    """Measure the norms of vectors in one pass; raise if a row has no score: the first bad row and how many."""
    step = max(1, _SURVEYED // vectors.width)
    all_norms = np.empty(vectors.n if vectors.whole is not None else 0)
    largest, bad, first = 0.0, 0, None
    with Workers(threads, torch=False) as workers:
        for start in range(0, vectors.n, step):
            rows = floats(vectors.rows(start, start + step))
            block = all_norms[start : start + step] if vectors.whole is not None else np.empty(len(rows))
            workers.rows(dots.norms, len(rows), frozen(rows), block)
            wrong = ~(block < _LARGEST_NORM)
            if metric == COSINE:
                wrong |= block < SMALLEST_NORM
            if wrong.any():
                places = np.flatnonzero(wrong)
                bad += len(places)
                if first is None:
                    first = (start + int(places[0]), *_reason(metric, rows[places[0]]))
            largest = max(largest, float(block[~wrong].max(initial=0.0)))
    if first is not None:
        row, rule, got = first
        raise_invalid(parameter, rule, at_row(got, row, bad))
    return Survey(largest, all_norms if vectors.whole is not None else None)


def survey_both(queries: Vectors, corpus: Vectors, metric: int, threads: int) -> tuple[Survey, Survey]:
    """Survey both sides of a search; raise also if a score can be too large for float32."""
    left, right = (survey(name, side, metric, threads) for name, side in (("queries", queries), ("corpus", corpus)))
    check_score_range(metric, left.largest, right.largest)
    return left, right


def check_score_range(metric: int, query_norm: float, corpus_norm: float) -> None:
    """Raise if vectors up to these norms can have scores that float32 does not hold."""
    largest = {DOT: query_norm * corpus_norm, COSINE: 1.0, L2: query_norm + corpus_norm}[metric]
    if not largest < _FLOAT32_MAX:
        advice = "Scale the vectors down."
        raise_invalid("queries", "of norms whose scores float32 holds", f"scores up to {largest:.3g}", advice)


def _reason(metric: int, row: NDArray[Any]) -> tuple[str, str]:
    """The rule that a row breaks, and what it has instead."""
    odd = row[~np.isfinite(row)]
    if len(odd):
        return "finite", str(odd[0])
    if metric == COSINE and not row.any():
        return "without zero vectors, which have no cosine", "a zero vector"
    return f"of norms between {SMALLEST_NORM} and {_LARGEST_NORM}", f"a largest coordinate of {np.abs(row).max()}"


def budget_bytes(budget: int | None) -> int:
    """Return the memory budget in bytes, 1 GiB for None."""
    return _BUDGET if budget is None else check_whole("budget", budget, 1)


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
        """Call `function` on every item."""
        for _ in self.pool.map(function, items):
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


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of blocks."""

    rows: int  # queries whose unresolved pairs are held at once
    strip: int  # queries that one thread multiplies at once
    columns: int  # corpus rows of a block
    capacity: int  # unresolved pairs of a query
    at_once: int  # queries that are scored exactly together when their capacity is reached


def plan(queries: Vectors, corpus: Vectors, depth: int, engine: Any, threads: int, budget: int | None) -> Plan:
    """Return the largest blocks within the budget; raise if not even small ones fit, for the argument to change."""
    total = budget_bytes(budget)
    capacity = min(corpus.n, 6 * min(depth, corpus.n) + 256)
    wide, code = 8 if corpus.dtype == np.float64 else 4, np.dtype(engine.codes).itemsize
    fetched = min(capacity, FETCHED) * corpus.width * 3 * wide
    per_row = capacity * _PAIR + corpus.width * (8 + 8 + code) + 96

    def around(strip: int, columns: int, depth: int, threads: int) -> int:
        """Bytes beside the rows of a block."""
        beside = 8 * corpus.n if corpus.whole is not None else threads * WINDOW  # norms, or a part of the file
        block = columns * (corpus.width * (corpus.dtype.itemsize + wide + code) + 64)
        strips = threads * strip * (columns * engine.bytes + 64)
        return int(queries.n * depth * 12 + beside + _LIBRARIES + fetched + block + strips)

    strip, columns = _STRIP, _COLUMNS
    while True:
        left = total - around(strip, columns, depth, threads)
        rows = left // per_row
        if rows >= min(queries.n, threads * strip) or strip == _SMALLEST:
            break
        strip, columns = strip // 2, columns // 2
    if rows < 1:
        usual = min(threads, usual_threads())
        if usual < threads and around(strip, columns, depth, usual) + per_row <= total:
            each = around(strip, columns, depth, 1) - around(strip, columns, depth, 0)
            most = (total - per_row - around(strip, columns, depth, 0)) // each
            raise_invalid("threads", f"at most {most} for a memory of {total} bytes", threads)
        if depth > corpus.n and around(strip, columns, corpus.n, usual) + per_row <= total:
            raise_invalid("depth", f"at most {corpus.n}, the rows of the corpus, for a memory of {total} bytes", depth)
        needed = total - left + per_row
        advice = f"Pass a `budget` of {needed} or more."
        raise_invalid("budget", f"at least {needed} bytes for this search", total, advice)
    rows = min(rows, max(1, queries.n))
    if budget is None and corpus.whole is not None:  # to read and round it again costs little
        rows = min(rows, max(threads * strip, max(_BLOCK, corpus.whole.nbytes // _PART) // per_row))
    at_once = max(1, (left - rows * per_row) // threads // max(1, fetched + 32 * capacity))
    return Plan(rows, min(strip, rows), columns, capacity, min(at_once, strip))

"""The scan of an exact search: products of rounded vectors, bounds that rule pairs out, exact scores for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats
from naysay.kernels import bounds_scan
from naysay.search._products import (
    Engine,
    Rounded,
    Terms,
    Units,
    corpus_terms,
    moved,
    product,
    query_terms,
    round_rows,
)
from naysay.search._scores import (
    BUDGET,
    FETCHED,
    SLOT_BYTES,
    Ids,
    Workers,
    check_memory,
    listed_scores,
    norms_of,
    result_bytes,
    top,
)
from naysay.search.vectors import WINDOW, Vectors, floats

_NO_ID = np.iinfo(np.int32).max  # sorts behind all ids
_LIBRARIES = 8 << 20  # bytes that torch and others take for themselves
# Queries that a thread multiplies at a time, and the corpus rows of the block that they meet: the first that fit.
_SIZES = ((128, 8192), (64, 4096), (32, 2048), (32, 1024))
_PRODUCT = 4  # bytes of a product
# Open pairs for each wanted one. If a query has more, they are scored early: slow where the rows are in a file.
_OPEN, _OPEN_IN_FILE = 6, 10
_OPEN_MORE = 256
_BLOCK = 14 << 20  # bytes of the open pairs of a block of queries where no budget is given
_PART = 3  # or a third of the corpus, if that is more
_SMALL_BLOCK = 6 << 20  # bytes of the same where the rounded corpus is kept, and reading it again costs little
_KEPT_SHARE = 4  # a rounded corpus is kept if it takes at most a quarter of the corpus, and of the budget


def open_pairs(corpus: Vectors, depth: int) -> int:
    """How many open pairs of a query are held."""
    each = _OPEN if corpus.whole is not None else _OPEN_IN_FILE
    return min(corpus.n, each * min(depth, corpus.n) + _OPEN_MORE)


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of blocks."""

    threads: int  # as many as were asked for, or as fit
    rows: int  # queries whose open pairs are held at once
    strip: int  # queries that one thread multiplies at once
    columns: int  # corpus rows of a block
    capacity: int  # open pairs of a query
    at_once: int  # queries that one thread scores exactly at once
    keeps: bool  # whether the whole corpus is rounded once, and not again for each block of queries


def plan(n_queries: int, corpus: Vectors, depth: int, engine: Engine, threads: int, budget: int | None) -> Plan:
    """Return the largest blocks within the budget; raise if not even small ones fit."""
    budget_bytes = BUDGET if budget is None else budget
    capacity = open_pairs(corpus, depth)
    stored, code = corpus.dtype.itemsize, np.dtype(engine.codes).itemsize
    as_float = max(4, stored)
    fixed_bytes = result_bytes(n_queries, corpus, depth) + _LIBRARIES
    query_bytes = capacity * SLOT_BYTES + corpus.width * (8 + 8 + code) + 96
    scoring_bytes = min(capacity, FETCHED) * corpus.width * 3 * as_float
    for strip, columns in _SIZES:  # if none fits, the last is the smallest
        block_bytes = columns * (corpus.width * (stored + as_float + code) + 64)
        thread_bytes = strip * (columns * _PRODUCT + 64) + (WINDOW if corpus.whole is None else 0)
        free_bytes = budget_bytes - fixed_bytes - scoring_bytes - block_bytes
        fitting_threads = min(threads, max(1, (free_bytes - query_bytes) // thread_bytes))
        rows = (free_bytes - fitting_threads * thread_bytes) // query_bytes
        if fitting_threads == threads and rows >= min(n_queries, threads * strip):
            break
    check_memory(budget, budget_bytes - free_bytes + thread_bytes + query_bytes, n_queries, corpus, depth)
    rows, keeps = min(rows, max(1, n_queries)), False
    if budget is None and corpus.whole is not None:
        keeps = _KEPT_SHARE * corpus.n * corpus.width * code <= min(budget_bytes, corpus.whole.nbytes)
        open_pair_bytes = _SMALL_BLOCK if keeps else max(_BLOCK, corpus.whole.nbytes // _PART)
        full_strips = fitting_threads * strip  # a strip that is not full takes nearly as long as a full one
        rows = min(rows, -(-open_pair_bytes // (query_bytes * full_strips)) * full_strips)
    left_bytes = free_bytes - fitting_threads * thread_bytes - rows * query_bytes
    at_once = max(1, min(strip, left_bytes // fitting_threads // (scoring_bytes + 48 * capacity)))
    return Plan(fitting_threads, rows, min(strip, rows), columns, capacity, at_once, keeps)


@final
class OpenPairs:
    """Per query: a limit, and the pairs that no bound has ruled out yet, ascending by id. Blocks share the buffers."""

    def __init__(self, queries: int, wanted: int, capacity: int) -> None:
        self.wanted = wanted
        self.limits, self.counts = np.empty(queries, np.float32), np.empty(queries, np.int64)
        self.ids = np.empty((queries, capacity), np.int32)
        self.uppers, self.lowers = np.empty((queries, capacity), np.float32), np.empty((queries, capacity), np.float32)

    def clear(self) -> None:
        """Remove all pairs."""
        self.limits[:], self.counts[:] = -np.inf, 0

    def part(self, start: int, stop: int) -> tuple[NDArray[Any], ...]:
        """limits, counts, ids, uppers, lowers of some queries, as the kernels take them."""
        part = slice(start, stop)
        return self.limits[part], self.counts[part], self.ids[part], self.uppers[part], self.lowers[part]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A search that has been checked and planned."""

    corpus: Vectors
    corpus_norms: Floats | None  # where the corpus is in memory
    engine: Engine
    units: Units
    plan: Plan
    workers: Workers
    kept: Rounded | None  # the whole corpus, if the plan keeps it
    device: Any  # where torch multiplies, None for the processor

    def run(
        self,
        queries: Vectors,
        query_norms: Floats | None,
        excluded: tuple[Ids, NDArray[Any]],
        ids: Ids,
        scores: NDArray[np.float32],
        on_progress: Callable[[float], None] | None,
    ) -> None:
        """Fill ids and scores, a block of queries at a time. `excluded` is (indptr, indices) of rows to leave out."""
        plan, width = self.plan, self.corpus.width
        wanted = min(ids.shape[1], self.corpus.n)
        pairs = OpenPairs(plan.rows, wanted, plan.capacity)
        query_codes = Rounded.empty(self.engine, plan.rows, width)
        corpus_codes = Rounded.empty(self.engine, plan.columns if self.kept is None else 0, width)
        multiply = [product(self.engine.name, plan.strip, plan.columns, self.device) for _ in range(plan.threads)]
        indptr, indices = excluded
        for start in range(0, queries.n, plan.rows):
            stop = min(start + plan.rows, queries.n)
            rows = floats(queries.rows(start, stop))
            norms = norms_of(rows) if query_norms is None else query_norms[start:stop]
            rounded = query_codes.part(0, stop - start)
            block = _QueryBlock(self, rows, norms, rounded, indptr[start : stop + 1], indices, pairs, multiply)
            block.scan(corpus_codes, on_progress)
            block.write_best(ids[start:stop, :wanted], scores[start:stop, :wanted])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _QueryBlock:
    """A block of queries against the whole corpus."""

    task: Scan
    queries: NDArray[Any]
    norms: Floats
    rounded: Rounded
    indptr: Ids
    indices: NDArray[Any]
    pairs: OpenPairs
    multiply: list[Any]  # a function for each thread

    def scan(self, buffer: Rounded, on_progress: Callable[[float], None] | None) -> None:
        """Leave in `pairs` what the bounds leave open of all corpus rows; `buffer` is for a block of them."""
        task, n_queries, n_threads = self.task, len(self.queries), self.task.plan.threads
        self.pairs.clear()
        task.workers.rows(round_rows, n_queries, self.queries, self.rounded)
        terms = query_terms(task.units, self.rounded)
        codes = moved(self.rounded.codes, task.device)
        strips = range(0, n_queries, task.plan.strip)
        for first in range(0, task.corpus.n, task.plan.columns):
            last = min(first + task.plan.columns, task.corpus.n)
            if task.kept is not None:
                block = task.kept.part(first, last)
            else:
                block = buffer.part(0, last - first)
                task.workers.rows(round_rows, last - first, floats(task.corpus.rows(first, last)), block)
            row_terms = corpus_terms(task.engine, task.units, block)
            row_codes = moved(block.codes, task.device)

            def work(thread: int, first: int = first, row_terms: Terms = row_terms, row_codes: Any = row_codes) -> None:
                for start in strips[thread::n_threads]:
                    stop = min(start + task.plan.strip, n_queries)
                    products = self.multiply[thread](codes[start:stop], row_codes)
                    strip_terms = tuple(term[start:stop] for term in terms)
                    self._absorb(start, stop, first, products, strip_terms, row_terms)

            task.workers.each(work, range(min(n_threads, len(strips))))
            if on_progress is not None:
                on_progress(n_queries * (last - first) / task.corpus.n)
        task.workers.rows(bounds_scan.tighten, n_queries, self.pairs.wanted, *self.pairs.part(0, n_queries))

    def _absorb(self, start: int, stop: int, first: int, products: Any, terms: Any, row_terms: Terms) -> None:
        """Add the pairs of a strip of products; queries whose buffer is full are resolved and go on."""
        pairs = self.pairs.part(start, stop)
        columns = np.zeros(stop - start, np.int64)
        excluded = self.indptr[start : stop + 1], self.indices
        while True:
            given = products, first, terms, row_terms, self.pairs.wanted, *excluded
            bounds_scan.scan(0, stop - start, *given, columns, *pairs)
            full = np.flatnonzero(columns < 0)
            if not len(full):
                return
            columns[full] = -1 - columns[full]
            for part in range(0, len(full), self.task.plan.at_once):
                self._resolve(start + full[part : part + self.task.plan.at_once])

    def _resolve(self, rows: Ids) -> None:
        """Score all open pairs of these queries exactly and keep the best as pairs with sharp bounds.

        This bounds the memory where thousands of corpus rows have nearly the same score.
        """
        pairs = self.pairs
        ids, scores = self._best(rows)
        order = np.argsort(np.where(ids < 0, _NO_ID, ids), axis=1)
        ids, scores = np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
        bounds = self.task.units.of_scores(scores, self.norms[rows, None])
        width = ids.shape[1]
        pairs.ids[rows, :width] = ids
        pairs.uppers[rows, :width] = pairs.lowers[rows, :width] = bounds
        pairs.counts[rows] = np.count_nonzero(ids >= 0, axis=1)
        # The lowest of as many as are wanted; with fewer than that the limit stays.
        complete = pairs.counts[rows] == pairs.wanted
        pairs.limits[rows] = np.where(complete, bounds.min(axis=1), pairs.limits[rows])

    def _best(self, rows: Any) -> tuple[Ids, NDArray[np.float32]]:
        """The best open pairs of some queries by their exact scores."""
        task, counts = self.task, self.pairs.counts[rows]
        ids = np.ascontiguousarray(self.pairs.ids[rows, : counts.max()])
        queries = self.queries[rows], self.norms[rows]
        scores = listed_scores(task.units.metric, *queries, task.corpus, task.corpus_norms, counts, ids)
        return top(ids, scores, self.pairs.wanted)

    def write_best(self, ids: Ids, scores: NDArray[np.float32]) -> None:
        """Score what is open and write the best in order."""
        at_once = max(self.task.plan.at_once, 1)

        def work(start: int) -> None:
            part = slice(start, min(start + at_once, len(ids)))
            best_ids, best_scores = self._best(part)
            width = best_ids.shape[1]
            ids[part, :width], scores[part, :width] = best_ids, best_scores

        self.task.workers.each(work, range(0, len(ids), at_once))

"""The scan of an exact search: products of rounded vectors, bounds that rule pairs out, exact scores for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.kernels import bounds_scan, dots
from naysay.search._multiply import moved, product
from naysay.search._plan import Plan
from naysay.search._products import Engine, Rounded, Units, cap_sides, column_sides, row_sides
from naysay.search._scores import ExactScores, Workers, norms_of
from naysay.search.vectors import Vectors, floats


def round_rows(workers: Workers, engine: Engine, rows: NDArray[Any], to: Rounded) -> None:
    """Round rows, if the engine does."""
    if engine.rounds:
        workers.rows(engine.round, len(rows), rows, to.codes, to.scales, to.sizes, to.errors)


@final
class UnresolvedPairs:
    """Per query: a limit, and the pairs that no bound has ruled out yet, ascending by id.

    A query holds `capacity` pairs; if there are more, they are scored exactly at once. Blocks share the buffers.
    """

    def __init__(self, rows: int, wanted: int, capacity: int) -> None:
        self.wanted = wanted
        self.limits, self.counts = np.empty(rows, np.float32), np.empty(rows, np.int64)
        self.above = np.empty(rows, np.int64)
        self.ids = np.empty((rows, capacity), np.int32)
        self.uppers, self.lowers = np.empty((rows, capacity), np.float32), np.empty((rows, capacity), np.float32)

    def reset(self) -> None:
        """Remove all pairs."""
        self.limits[:], self.counts[:], self.above[:] = -np.inf, 0, 0

    def part(self, start: int, stop: int) -> tuple[NDArray[Any], ...]:
        """limits, counts, ids, uppers, lowers of some queries, as the kernels take them."""
        part = slice(start, stop)
        return self.limits[part], self.counts[part], self.ids[part], self.uppers[part], self.lowers[part]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A search that has been checked and planned."""

    queries: Vectors
    corpus: Vectors
    excluded: tuple[NDArray[Any], ...]  # (indptr, indices, filter): corpus rows that each query may not get
    caps: NDArray[np.float32]  # (n,) the highest score that each query may get
    engine: Engine
    units: Units
    plan: Plan
    exact: ExactScores
    workers: Workers
    kept: Rounded | None  # the whole corpus, if the plan keeps it
    on_progress: Callable[[float], None] | None  # gets the number of further queries done, in fractions
    device: Any = None  # where torch multiplies, None for the processor

    def run(self, ids: NDArray[np.int64], scores: NDArray[np.float32], above: NDArray[np.int64]) -> None:
        """Fill what is found, and how many score above the caps, a block of queries at a time."""
        rows, columns, width = self.plan.rows, self.plan.columns, self.corpus.width
        pairs = UnresolvedPairs(rows, min(ids.shape[1], self.corpus.n), self.plan.capacity)
        rounded = Rounded.empty(self.engine, rows, width)
        buffer = Rounded.empty(self.engine, columns if self.kept is None else 0, width)
        size = (self.plan.strip, columns)
        products: list[Any] = [
            product(self.engine.name, *size, self.device) if self.engine.rounds else np.empty(size, np.float32)
            for _ in range(self.workers.count)
        ]
        for start in range(0, self.queries.n, rows):
            stop = min(start + rows, self.queries.n)
            queries = frozen(floats(self.queries.rows(start, stop)))
            norms = norms_of(queries)
            caps = self.caps[start:stop]
            sides = cap_sides(self.units, caps, norms)
            block = _Block(self, start, queries, norms, caps, sides, rounded.part(0, stop - start), pairs, products)
            block.scan(buffer)
            block.finish(ids[start:stop], scores[start:stop], above[start:stop])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """A block of queries against the whole corpus."""

    task: Scan
    start: int
    queries: NDArray[Any]
    norms: NDArray[np.float64]
    caps: NDArray[np.float32]
    cap_sides: NDArray[np.float32]
    rounded: Rounded
    pairs: UnresolvedPairs
    products: list[Any]

    def scan(self, buffer: Rounded) -> None:
        """Leave in `pairs` what the bounds leave unresolved of all corpus rows; `buffer` is for some of them."""
        task, size, count = self.task, len(self.queries), self.task.workers.count
        self.pairs.reset()
        round_rows(task.workers, task.engine, self.queries, self.rounded)
        sides, codes = row_sides(task.engine, task.units, self.rounded), moved(self.rounded.codes, task.device)
        strips = range(0, size, task.plan.strip)
        for first in range(0, task.corpus.n, task.plan.columns):
            rows = frozen(floats(task.corpus.rows(first, first + task.plan.columns)))
            block = buffer.part(0, len(rows)) if task.kept is None else task.kept.part(first, first + len(rows))
            if task.kept is None:
                round_rows(task.workers, task.engine, rows, block)
            columns, block_codes = column_sides(task.engine, task.units, block), moved(block.codes, task.device)
            row_norms = norms_of(rows) if not task.engine.rounds else np.empty(0)

            def work(worker: int, first: int = first, rows: Any = rows, norms: Any = row_norms,
                     block: Any = block_codes, columns: Any = columns) -> None:  # fmt: skip
                for start in strips[worker::count]:
                    stop = min(start + task.plan.strip, size)
                    if task.engine.rounds:
                        products = self.products[worker](codes[start:stop], block)
                    else:
                        products = self.products[worker][: stop - start, : len(rows)]
                        arguments = (self.queries[start:stop], self.norms[start:stop], rows, norms, products)
                        dots.all_scores(0, stop - start, task.units.metric, *arguments)
                    self._absorb(start, stop, first, products, tuple(side[start:stop] for side in sides), columns)

            task.workers.each(work, range(min(count, len(strips))))
            if task.on_progress is not None:
                task.on_progress(size * len(rows) / task.corpus.n)
        task.workers.rows(bounds_scan.settle, size, self.pairs.wanted, *self.pairs.part(0, size))

    def _absorb(self, start: int, stop: int, first: int, products: Any, sides: Any, columns: Any) -> None:
        """Add the pairs of a strip of products; queries that reach their capacity are resolved and go on."""
        task, pairs = self.task, self.pairs.part(start, stop)
        reached = np.zeros(stop - start, np.int64)
        while True:
            row, caps, above = self.start + start, self.cap_sides[start:stop], self.pairs.above[start:stop]
            wanted = self.pairs.wanted
            arguments = (products, first, row, sides, columns, wanted, task.excluded, caps, reached, above, *pairs)
            bounds_scan.scan(0, stop - start, *arguments)
            full = np.flatnonzero(reached < 0)
            if not len(full):
                return
            reached[full] = -1 - reached[full]
            for part in range(0, len(full), task.plan.at_once):
                self._resolve(full[part : part + task.plan.at_once] + start)

    def _resolve(self, rows: NDArray[np.int64]) -> None:
        """Score all unresolved pairs of these queries exactly and keep the best within the caps, ties by id.

        This bounds the memory where thousands of corpus rows have nearly the same score.
        """
        pairs, wanted = self.pairs, self.pairs.wanted
        counts, ids, above = pairs.counts[rows], pairs.ids[rows], pairs.above[rows]
        scores = self.task.exact.of(self.queries[rows], self.norms[rows], counts, ids)
        bounds_scan.drop_above(0, len(rows), self.caps[rows], above, counts, ids, scores)
        pairs.above[rows] = above
        best, best_scores = np.empty((len(rows), wanted), np.int64), np.empty((len(rows), wanted), np.float32)
        bounds_scan.best(0, len(rows), counts, ids, scores, best, best_scores)
        kept = np.minimum(counts, wanted)
        order = np.argsort(np.where(best < 0, np.iinfo(np.int64).max, best), axis=1)
        pairs.ids[rows, :wanted] = np.take_along_axis(best, order, 1)
        bounds = self.task.units.of_scores(np.take_along_axis(best_scores, order, 1), self.norms[rows, None])
        pairs.uppers[rows, :wanted] = pairs.lowers[rows, :wanted] = bounds
        # The lowest of as many as are wanted; with fewer than that the limit stays.
        pairs.limits[rows] = np.where(kept == wanted, bounds.min(axis=1), pairs.limits[rows])
        pairs.counts[rows] = kept

    def finish(self, ids: NDArray[np.int64], scores: NDArray[np.float32], above: NDArray[np.int64]) -> None:
        """Score what is unresolved and write the best in order."""
        task, size = self.task, len(self.queries)
        _, counts, pair_ids, uppers, _ = self.pairs.part(0, size)
        corpus, whole = task.corpus, task.corpus.whole
        step = corpus.n if whole is not None else task.plan.columns
        for first in range(0, corpus.n, step):
            rows = frozen(whole if whole is not None else floats(corpus.rows(first, first + step)))
            norms = task.exact.norms if task.exact.norms is not None else norms_of(rows)
            arguments = (task.units.metric, self.queries, self.norms, rows, frozen(norms), first, counts, pair_ids)
            task.workers.rows(dots.listed_scores, size, *arguments, uppers)
        task.workers.rows(bounds_scan.drop_above, size, self.caps, self.pairs.above, counts, pair_ids, uppers)
        task.workers.rows(bounds_scan.best, size, counts, pair_ids, uppers, ids, scores)
        above[:] = self.pairs.above[:size]

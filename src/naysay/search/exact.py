"""search: the nearest corpus rows of each query, exact and certified, in a stated memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.checks import check_one_of, check_whole, first_bad, raise_invalid
from naysay.kernels import bounds_scan as opens
from naysay.kernels import dots
from naysay.kernels.threads import threads as usual_threads
from naysay.positives import Positives
from naysay.search._bounds import (
    Rounded,
    Units,
    cap_sides,
    column_sides,
    fits_float32,
    largest_score,
    row_sides,
)
from naysay.search._engines import NAMES, Engine, choose, has_torch, product
from naysay.search._memory_plan import Plan, plan
from naysay.search._survey import Survey, survey
from naysay.search._unresolved_pairs import Exact, OpenPairs, floats, norms_of
from naysay.search._workers import Workers
from naysay.search.found import Found
from naysay.search.vectors import Vectors, open_vectors

METRICS = {"dot": dots.DOT, "cosine": dots.COSINE, "l2": dots.L2}
_SAMPLE = 256  # corpus rows that the choice of an engine looks at


def search(
    queries: Any,
    corpus: Any,
    depth: int,
    *,
    metric: str = "cosine",
    exclude: Positives | None = None,
    engine: str = "auto",
    budget: int | None = None,
    threads: int | None = None,
    tell: Callable[[float], None] | None = None,
    surveys: tuple[Survey, Survey] | None = None,
) -> Found:
    """The `depth` best corpus rows of each query.

    The score of a pair is the float64 sum over the coordinates in order, rounded to float32, and the order is score
    descending, id ascending. An engine multiplies rounded vectors, fast. What its error bound (`bounds`) cannot rule
    out stays open and is scored by the fixed float64 kernel at the end: so the answer is the same bytes for every
    engine, budget and number of threads, and as if all pairs had been scored.

    Cost: O(n_queries n_corpus d) in the engine, O(d) for each open pair (a few times `depth` per query, the more the
    coarser the engine), and one look at all vectors before. Where the budget cannot hold the open pairs of all queries
    at once, the corpus is read once for each part of them.

    Args:
        queries: (n, d): NumPy, torch, Arrow, or a .npy, .safetensors or .parquet path (`open_vectors`).
        corpus: (n, d): NumPy, torch, Arrow, or a .npy, .safetensors or .parquet path (`open_vectors`).
        metric: "cosine", "dot" or "l2"; the score is higher for closer: l2 is minus the distance.
        exclude: Pairs (query row, corpus row) that never come back, ignored ones included.
        engine: "auto", "int8", "bfloat16", "float32" or "float64": how, never what (`engines`).
        budget: Bytes of memory that the call may take, its answer included; 1 GiB if not given.
        threads: Of this call; as `naysay.kernels.threads` says if not given.
        tell: Called as the search goes on, with how many more queries are done; fractions add up to n.
        surveys: What `survey` returned for these queries, or for more of them, and for this corpus. Without it all
            vectors are checked here.

    Example:
        >>> import numpy as np
        >>> found = search(np.eye(2, 3), np.array([[1.0, 1, 0], [2, 0, 0], [0, 0, 1]]), 2)
        >>> found.ids.tolist()
        [[1, 0], [0, 1]]
    """
    options: dict[str, Any] = {"metric": metric, "exclude": exclude, "engine": engine, "surveys": surveys}
    return search_below(queries, corpus, depth, None, **options, budget=budget, threads=threads, tell=tell)[0]


def search_below(
    queries: Any,
    corpus: Any,
    depth: int,
    below: Any,
    *,
    metric: str = "cosine",
    exclude: Positives | None = None,
    engine: str = "auto",
    budget: int | None = None,
    threads: int | None = None,
    tell: Callable[[float], None] | None = None,
    surveys: tuple[Survey, Survey] | None = None,
) -> tuple[Found, NDArray[np.int64]]:
    """The `depth` best of each query whose score is at most below[query], and how many score higher: (n,).

    Ranks among all are `above` plus the place in the row. One pass finds what lies below a line, however many lie above
    it: these are counted by their bounds, and scored only where a bound cannot tell.

    Args:
        below: (n,) float32, a line above which nothing is wanted, or None. The others are those of `search`.
    """
    depth = check_whole("depth", depth, 1)
    check_one_of("metric", metric, tuple(METRICS))
    check_one_of("engine", engine, NAMES)
    count = usual_threads() if threads is None else check_whole("threads", threads, 1)
    asked, given = (
        vectors if isinstance(vectors, Vectors) else open_vectors(name, vectors)
        for name, vectors in (("queries", queries), ("corpus", corpus))
    )
    if asked.width != given.width:
        raise_invalid("queries", f"of width {given.width}, like the corpus", asked.width)
    if given.n >= 1 << 31:
        raise_invalid("corpus", "of fewer than 2^31 rows", given.n, "Search its parts and merge.")
    known, caps = _known(exclude, asked.n, given.n), _caps(below, asked.n)
    kind = METRICS[metric]
    seen = surveys or _surveyed(asked, given, kind, count)
    most = largest_score(kind, seen[0].largest, seen[1].largest)
    if not fits_float32(most):
        advice = "Scale the vectors down."
        raise_invalid("queries", "of norms whose scores float32 holds", f"scores up to {most:.3g}", advice)
    sample = floats(given.take(np.unique(np.linspace(0, given.n - 1, min(_SAMPLE, given.n)).astype(np.int64))))
    chosen = choose(engine, asked.n, given.n, given.width, sample)
    largest = max(seen[0].largest, seen[1].largest)
    units = Units(kind, seen[1].largest or 1.0, largest or 1.0, raw=not chosen.rounds)
    sizes = plan(asked, given, depth, chosen, count, budget)
    found = Found(np.full((asked.n, depth), -1, np.int64), np.full((asked.n, depth), -np.inf, np.float32))
    above = np.zeros(asked.n, np.int64)
    if asked.n == 0 or given.n == 0:
        return found, above
    with Workers(count, torch=chosen.rounds and has_torch()) as workers:
        exact = Exact(units, given, seen[1].norms)
        task = _Task(asked, given, known, caps, chosen, units, sizes, exact, workers, tell)
        task.run(found, above)
    return found, above


def _surveyed(queries: Vectors, corpus: Vectors, kind: int, threads: int) -> tuple[Survey, Survey]:
    """Check all vectors, and measure their norms."""
    with Workers(threads, torch=False) as workers:
        return survey("queries", queries, kind, workers), survey("corpus", corpus, kind, workers)


def _caps(below: Any, n: int) -> NDArray[np.float32]:
    """(n,) the highest score that may come back; infinity without one."""
    if below is None:
        return np.full(n, np.inf, np.float32)
    caps = np.asarray(below)
    if caps.shape != (n,) or caps.dtype.kind != "f":
        raise_invalid("below", f"({n},) numbers, one for each query", f"shape {caps.shape} {caps.dtype}")
    if np.isnan(caps).any():
        raise_invalid("below", "numbers", first_bad(caps, np.isnan(caps)))
    return caps.astype(np.float32)


def _known(exclude: Positives | None, n_queries: int, n_corpus: int) -> tuple[NDArray[Any], ...]:
    """The excluded pairs as the loops take them; a query past the last anchor has none."""
    if exclude is None:
        parts: tuple[Any, ...] = (np.zeros(n_queries + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8))
        return tuple(frozen(part) for part in parts)
    if not isinstance(exclude, Positives):
        raise_invalid("exclude", "a Positives, or None", type(exclude).__name__)
    if exclude.n_anchors > n_queries or exclude.n_items > n_corpus:
        rule = f"of at most {n_queries} anchors and {n_corpus} items, the rows of queries and corpus"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")
    indptr = np.pad(exclude.indptr, (0, n_queries - exclude.n_anchors), mode="edge")
    return frozen(indptr), exclude.indices, exclude.filter


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A search that has been checked and planned."""

    queries: Vectors
    corpus: Vectors
    known: tuple[NDArray[Any], ...]
    caps: NDArray[np.float32]
    engine: Engine
    units: Units
    plan: Plan
    exact: Exact
    workers: Workers
    tell: Callable[[float], None] | None

    def run(self, found: Found, above: NDArray[np.int64]) -> None:
        """Fill `found` and `above`, a block of queries at a time."""
        rows, columns, width = self.plan.rows, self.plan.columns, self.corpus.width
        pairs = OpenPairs(rows, min(found.ids.shape[1], self.corpus.n), self.plan.room)
        asked, given = Rounded.empty(self.engine, rows, width), Rounded.empty(self.engine, columns, width)
        products = [self._product() for _ in range(self.workers.count)]
        for start in range(0, self.queries.n, rows):
            stop = min(start + rows, self.queries.n)
            queries = np.ascontiguousarray(self.queries.rows(start, stop), np.float64)
            norms = norms_of(queries)
            caps = self.caps[start:stop]
            sides = cap_sides(self.units, caps, norms)
            block = _Block(self, start, queries, norms, caps, sides, asked.part(0, stop - start), pairs, products)
            block.scan(given)
            block.finish(found.ids[start:stop], found.scores[start:stop], above[start:stop])

    def _product(self) -> Any:
        size = (self.plan.strip, self.plan.columns)
        return product(self.engine, *size) if self.engine.rounds else np.empty(size, np.float32)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """A block of queries against the whole corpus."""

    task: _Task
    start: int
    queries: NDArray[np.float64]
    norms: NDArray[np.float64]
    caps: NDArray[np.float32]
    cap_sides: NDArray[np.float32]
    asked: Rounded
    pairs: OpenPairs
    products: list[Any]

    def scan(self, given: Rounded) -> None:
        """Leave in `pairs` what the bounds leave open of all corpus rows."""
        task, size, count = self.task, len(self.queries), self.task.workers.count
        self.pairs.reset()
        self._round(frozen(self.queries), self.asked)
        sides = row_sides(task.engine, task.units, self.asked)
        strips = range(0, size, task.plan.strip)
        for first in range(0, task.corpus.n, task.plan.columns):
            rows = frozen(floats(task.corpus.rows(first, first + task.plan.columns)))
            block = given.part(0, len(rows))
            self._round(rows, block)
            columns = column_sides(task.engine, task.units, block)
            row_norms = norms_of(rows) if not task.engine.rounds else np.empty(0)

            def work(
                worker: int,
                first: int = first,
                rows: Any = rows,
                block: Rounded = block,
                columns: Any = columns,
                row_norms: Any = row_norms,
            ) -> None:
                for start in strips[worker::count]:
                    stop = min(start + task.plan.strip, size)
                    if task.engine.rounds:
                        products = self.products[worker](self.asked.codes[start:stop], block.codes)
                    else:
                        products = self.products[worker][: stop - start, : len(rows)]
                        arguments = (self.queries[start:stop], self.norms[start:stop], rows, row_norms, products)
                        dots.all_scores(0, stop - start, task.units.metric, *arguments)
                    self._absorb(start, stop, first, products, tuple(side[start:stop] for side in sides), columns)

            task.workers.each(work, range(count))
            if task.tell is not None:
                task.tell(size * len(rows) / task.corpus.n)
        task.workers.rows(opens.settle, size, self.pairs.wanted, *self.pairs.part(0, size))

    def _round(self, rows: NDArray[Any], to: Rounded) -> None:
        if self.task.engine.rounds:
            self.task.workers.rows(self.task.engine.round, len(rows), rows, to.codes, to.scales, to.sizes, to.errors)

    def _absorb(self, start: int, stop: int, first: int, products: Any, sides: Any, columns: Any) -> None:
        """Take a strip of products in; queries whose open pairs fill their room are resolved and go on."""
        task, pairs = self.task, self.pairs.part(start, stop)
        reached = np.zeros(stop - start, np.int64)
        while True:
            row, caps, above = self.start + start, self.cap_sides[start:stop], self.pairs.above[start:stop]
            known, wanted = task.known, self.pairs.wanted
            arguments = (products, first, row, sides, columns, wanted, known, caps, reached, above, *pairs)
            opens.scan(0, stop - start, *arguments)
            stuck = np.flatnonzero(reached < 0)
            if not len(stuck):
                return
            reached[stuck] = -1 - reached[stuck]
            asked = (self.queries, self.norms, self.caps)
            self.pairs.resolve(stuck + start, task.exact, task.units, *asked, task.plan.at_once)

    def finish(self, ids: NDArray[np.int64], scores: NDArray[np.float32], above: NDArray[np.int64]) -> None:
        """Score what is open and write the best in order."""
        task, size = self.task, len(self.queries)
        _, counts, open_ids, uppers, _ = self.pairs.part(0, size)
        corpus, whole = task.corpus, task.corpus.whole
        step = corpus.n if whole is not None else task.plan.columns
        for first in range(0, corpus.n, step):
            rows = frozen(whole if whole is not None else floats(corpus.rows(first, first + step)))
            norms = task.exact.norms if task.exact.norms is not None else norms_of(rows)
            arguments = (task.units.metric, self.queries, self.norms, rows, frozen(norms), first, counts, open_ids)
            task.workers.rows(dots.listed_scores, size, *arguments, uppers)
        task.workers.rows(opens.drop_above, size, self.caps, self.pairs.above, counts, open_ids, uppers)
        task.workers.rows(opens.best, size, counts, open_ids, uppers, ids, scores)
        above[:] = self.pairs.above[:size]

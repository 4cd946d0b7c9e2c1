"""Exact, certified nearest-neighbour search within a memory budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_device,
    check_kind,
    check_one_of,
    check_whole,
    public,
    raise_invalid,
    shown,
)
from naysay.positives import Positives
from naysay.search import _plain as plain
from naysay.search._multiply import torch_is_loaded
from naysay.search._plan import plan
from naysay.search._products import NAMES, Engine, Rounded, Units, choose, is_small
from naysay.search._scan import Scan, round_rows
from naysay.search._scores import METRICS, ExactScores, Workers, thread_count
from naysay.search._survey import Survey, check_score_range, survey, survey_both
from naysay.search.vectors import Vectors, as_vectors, floats

_SAMPLE = 256  # corpus rows that the choice of an engine is based on


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best corpus rows of each query: score descending, of equal scores id ascending.

    Args:
        ids: (n, m) int64; -1 is an empty slot, at the end of a row.
        scores: (n, m) float32; -inf where the slot is empty.

    Examples:
        >>> found = Found(np.array([[2, 0, -1]]), np.array([[0.5, 0.5, -np.inf]], np.float32))
        >>> len(found), found.filled.tolist()
        (1, [[True, True, False]])
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Check types and shapes."""
        for name, kind in (("ids", np.int64), ("scores", np.float32)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != kind:
                got = f"{array.shape} {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
                raise_invalid(name, f"(n, m) {np.dtype(kind)}", got)
        if self.ids.shape != self.scores.shape:
            raise_invalid("scores", f"of shape {self.ids.shape}, like ids", f"shape {self.scores.shape}")

    @classmethod
    def empty(cls, n: int, m: int) -> Self:
        """Return (n, m) empty slots."""
        try:
            return cls(np.full((n, m), -1, np.int64), np.full((n, m), -np.inf, np.float32))
        except (ValueError, MemoryError):
            raise_invalid("depth", f"such that memory holds {n} rows of that length", m)

    def __len__(self) -> int:
        """n, the number of queries."""
        return len(self.ids)

    @property
    def filled(self) -> NDArray[np.bool_]:
        """(n, m) bool: slots that hold a corpus row."""
        return np.asarray(self.ids >= 0)


@public
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
    on_progress: Callable[[float], None] | None = None,
    device: Any = None,
) -> Found:
    """Find the `depth` best corpus rows of each query, exactly.

    The score of a pair is the float64 sum over the coordinates in order, rounded to float32. The order is score
    descending, id ascending. The engine multiplies rounded vectors, which is fast. Pairs that its error bound cannot
    rule out are scored by the float64 kernel at the end. The result is therefore the same, to the byte, for every
    engine, budget and number of threads, and as if all pairs had been scored.

    Cost: O(n_queries n_corpus d) in the engine, O(d) for each pair that is not ruled out (a few times `depth` per
    query, more with a coarser engine), and one pass over all vectors before. If the budget cannot hold the unresolved
    pairs of all queries at once, the corpus is read once for each block of queries.

    Args:
        queries: (n, d) vectors: `Vectors`, or anything that `open_vectors` takes.
        corpus: (m, d) vectors, likewise.
        depth: How many corpus rows to find for each query.
        metric: "cosine", "dot" or "l2". The score is higher for closer: for l2 it is minus the distance.
        exclude: Pairs (query row, corpus row) that are never returned, including those with the relation "ignore".
        engine: "auto", "int8", "float32" or "float64". It changes the speed, never the result.
        budget: Bytes of memory that the call may take, including its result. 1 GiB by default.
        threads: Threads of this call. `naysay.kernels.threads` by default.
        on_progress: Called during the search with the number of further queries done; the fractions sum to n.
        device: Where torch multiplies the rounded vectors, such as "cuda"; None for the processor. The bounds hold for
            any device, and pairs that they leave are scored on the processor, so the result is the same.

    Returns:
        Ids and scores, (n, depth) each.

    Raises:
        NaysayError: If vectors are not finite, have different widths or no cosine, or if the budget is too small.

    Examples:
        >>> import numpy as np
        >>> found = search(np.eye(2, 3), np.array([[1.0, 1, 0], [2, 0, 0], [0, 0, 1]]), 2)
        >>> found.ids.tolist()
        [[1, 0], [0, 1]]
    """
    how = SearchOptions(metric, exclude, engine, budget, threads, on_progress, device)
    return how.run(queries, corpus, depth)[0]


@public
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
    on_progress: Callable[[float], None] | None = None,
    device: Any = None,
) -> tuple[Found, NDArray[np.int64]]:
    """Find the `depth` best corpus rows of each query that score at most `below`, and count those that score higher.

    The rank of a row among all is the count plus its place in the result. One pass is enough, however many rows score
    higher: they are counted by their bounds, and scored only where a bound cannot decide.

    `below` is (n,) float32, the highest score that is returned for each query; None for no limit. All other arguments
    are those of `search`.

    Returns:
        The rows found, and (n,) how many corpus rows score higher than `below`.

    Examples:
        >>> import numpy as np
        >>> corpus = np.array([[1.0, 0], [0.8, 0.6], [0.0, 1]])
        >>> found, higher = search_below(corpus[:1], corpus, 1, np.array([0.9], np.float32))
        >>> found.ids.tolist(), higher.tolist()
        ([[1]], [1])
    """
    how = SearchOptions(metric, exclude, engine, budget, threads, on_progress, device)
    return how.run(queries, corpus, depth, below)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SearchOptions:
    """The options that both searches have."""

    metric: str = "cosine"
    exclude: Positives | None = None
    engine: str = "auto"
    budget: int | None = None
    threads: int | None = None
    on_progress: Callable[[float], None] | None = None
    device: Any = None
    surveys: tuple[Survey, Survey] | None = None  # of these queries (or more of them) and this corpus, if known

    def run(self, queries: Any, corpus: Any, depth: int, below: Any = None) -> tuple[Found, NDArray[np.int64]]:
        """Check everything, plan the blocks, and scan."""
        depth = check_whole("depth", depth, 1)
        check_one_of("metric", self.metric, tuple(METRICS))
        check_one_of("engine", self.engine, NAMES)
        if self.on_progress is not None and not callable(self.on_progress):
            raise_invalid("on_progress", "a function of a number, or None", shown(self.on_progress))
        if self.device is not None:
            check_device("device", self.device)
        threads = thread_count(self.threads)
        left, right = as_vectors("queries", queries), as_vectors("corpus", corpus)
        if left.width != right.width:
            raise_invalid("queries", f"of width {right.width}, like the corpus", left.width)
        if right.n >= 1 << 31:
            raise_invalid("corpus", "of fewer than 2^31 rows", right.n, "Search its parts and merge.")
        excluded, caps = excluded_rows(self.exclude, left.n, right.n), _caps(below, left.n)
        metric = METRICS[self.metric]
        norms = self.surveys or survey_both(left, right, metric, threads)
        sample = floats(right.take(np.unique(np.linspace(0, right.n - 1, min(_SAMPLE, right.n)).astype(np.int64))))
        total = 0 if norms[0].norms is None else len(norms[0].norms)
        kept = norms[1].rounded
        many = not is_small(left.n, right.n, right.width)
        name = next(iter(kept)) if kept and many and self.engine == "auto" and self.device is None else self.engine
        engine = choose(name, left.n, right.n, right.width, sample, total, self.device)
        largest = max(norms[0].largest, norms[1].largest)
        units = Units(metric, norms[1].largest or 1.0, largest or 1.0, raw=not engine.rounds)
        sizes = plan(left, right, depth, engine, threads, self.budget)
        found, above = Found.empty(left.n, depth), np.zeros(left.n, np.int64)
        if left.n == 0 or right.n == 0:
            return found, above
        if engine.name == "float64" and self.engine == "auto":
            query_rows = floats(left.rows(0, left.n))
            corpus_rows = floats(right.rows(0, right.n))
            corpus_norms = plain.norms(corpus_rows) if norms[1].norms is None else norms[1].norms
            written = found.ids, found.scores, above
            plain.best_rows(metric, query_rows, corpus_rows, corpus_norms, excluded, caps, written, self.on_progress)
            return found, above
        with Workers(threads, torch=engine.rounds and torch_is_loaded()) as workers:
            exact = ExactScores(metric, right, norms[1].norms)
            whole = _rounded(engine, right, workers, kept) if sizes.keeps else None
            parts = left, right, excluded, caps, engine, units, sizes, exact, workers, whole
            scan = Scan(*parts, self.on_progress, self.device)
            scan.run(found.ids, found.scores, above)
        return found, above


@final
@public
class Exact:
    """An exact search over one corpus, whose norms and rounded vectors are kept for the next call.

    Args:
        corpus: (m, d) vectors.
        metric: "cosine", "dot" or "l2".
        engine: "auto", "int8", "float32" or "float64".
        budget: Bytes of memory of a search.
        threads: Threads of a search.
        device: Where torch multiplies.

    Examples:
        >>> import numpy as np
        >>> Exact(np.array([[1.0, 1, 0], [2, 0, 0], [0, 0, 1]])).search(np.eye(1, 3), 2).ids.tolist()
        [[1, 0]]
    """

    def __init__(
        self,
        corpus: Any,
        metric: str = "cosine",
        *,
        engine: str = "auto",
        budget: int | None = None,
        threads: int | None = None,
        device: Any = None,
    ) -> None:
        self.corpus, self.metric = as_vectors("corpus", corpus), metric
        self._limits = engine, budget, threads
        self._device = device
        self._corpus = replace(survey("corpus", self.corpus, METRICS[metric], thread_count(threads)), rounded={})
        self._queries: Survey | None = None

    @property
    def norms(self) -> NDArray[np.float64] | None:
        """(m,) the norms of the corpus, if it is in memory."""
        return self._corpus.norms

    def check(self, queries: Any) -> None:
        """Raise if a query has no score. Later searches of some of these queries do not check them again."""
        metric = METRICS[self.metric]
        self._queries = survey("queries", as_vectors("queries", queries), metric, thread_count(self._limits[2]))
        check_score_range(metric, self._queries.largest, self._corpus.largest)

    def search(
        self,
        queries: Any,
        depth: int,
        *,
        exclude: Positives | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> Found:
        """Find the `depth` best corpus rows of each query, exactly."""
        checked = self._queries
        if checked is None:
            checked = survey("queries", as_vectors("queries", queries), METRICS[self.metric], thread_count(None))
            check_score_range(METRICS[self.metric], checked.largest, self._corpus.largest)
        surveys = checked, self._corpus
        how = SearchOptions(self.metric, exclude, *self._limits, on_progress, self._device, surveys)
        return how.run(queries, self.corpus, depth)[0]

    def release(self) -> None:
        """Free the rounded corpus."""
        if self._corpus.rounded is not None:
            self._corpus.rounded.clear()


def _rounded(engine: Engine, corpus: Vectors, workers: Workers, kept: dict[str, Any] | None) -> Rounded:
    """The whole corpus on the grid of an engine; `kept` is where an earlier search left it, or None."""
    found: Rounded | None = None if kept is None else kept.get(engine.name)
    if found is None:
        found = Rounded.empty(engine, corpus.n, corpus.width)
        round_rows(workers, engine, frozen(corpus.rows(0, corpus.n)), found)
        if kept is not None:
            kept[engine.name] = found
    return found


def _caps(below: Any, n: int) -> NDArray[np.float32]:
    """(n,) the highest score that may be returned, infinity for no limit."""
    if below is None:
        return np.full(n, np.inf, np.float32)
    caps = as_array("below", to_numpy(below))
    if caps.shape != (n,) or caps.dtype.kind != "f":
        raise_invalid("below", f"({n},) numbers, one for each query", f"shape {caps.shape} {caps.dtype}")
    check_all("below", caps, ~np.isnan(caps), "numbers")
    return caps.astype(np.float32)


def excluded_rows(exclude: Positives | None, n_queries: int, n_corpus: int) -> tuple[NDArray[Any], ...]:
    """(indptr, indices, filter) of the excluded pairs; a query past the last anchor has none."""
    if exclude is None:
        parts: tuple[Any, ...] = (np.zeros(n_queries + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8))
        return tuple(frozen(part) for part in parts)
    check_kind("exclude", exclude, Positives, "a Positives, or None")
    if exclude.n_anchors > n_queries or exclude.n_items > n_corpus:
        rule = f"of at most {n_queries} anchors and {n_corpus} items, the rows of queries and corpus"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")
    indptr = np.pad(exclude.indptr, (0, n_queries - exclude.n_anchors), mode="edge")
    return frozen(indptr), exclude.indices, exclude.filter

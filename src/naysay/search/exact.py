"""Exact, certified nearest-neighbour search within a memory budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.checks import check_device, check_kind, check_one_of, check_whole, public, raise_invalid, shown
from naysay.positives import Positives
from naysay.search import _plain as plain
from naysay.search._multiply import torch_is_loaded
from naysay.search._plan import budget_bytes, plan
from naysay.search._products import NAMES, PLAIN, Engine, Rounded, Units, choose, is_small, round_rows
from naysay.search._scan import Scan
from naysay.search._scores import METRICS, Workers, thread_count
from naysay.search._survey import Survey, check_score_range, survey
from naysay.search.vectors import as_vectors, floats

_SAMPLE = 256  # corpus rows that the choice of an engine is based on
_MOST_ROWS = 1 << 31  # of a corpus: ids of open pairs are int32


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


@final
class Exact:
    """A corpus to be searched several times: its vectors are checked once, and rounded once.

    Options are those of `search`. The corpus must not change meanwhile.

    Args:
        corpus: (m, d) vectors.
        metric: "cosine", "dot" or "l2".
        engine: "auto", "int8", "float32" or "float64".
        budget: Bytes of memory that each search may take.
        threads: Threads of each search.
        device: Where torch multiplies.
        measured: The survey of the corpus, where it has been checked already.
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
        measured: Survey | None = None,
    ) -> None:
        check_one_of("metric", metric, tuple(METRICS))
        check_one_of("engine", engine, NAMES)
        budget_bytes(budget)
        if device is not None:
            check_device("device", device)
        self.metric, self.corpus = metric, as_vectors("corpus", corpus)
        if self.corpus.n >= _MOST_ROWS:
            raise_invalid("corpus", "of fewer than 2^31 rows", self.corpus.n, "Search its parts and merge.")
        count = thread_count(threads)
        if measured is None:
            measured = survey("corpus", self.corpus, METRICS[metric], count)
        self.norms, self.largest_norm = measured.norms, measured.largest
        self._engine, self._budget, self._threads, self._device = engine, budget, threads, device
        self._codes: tuple[Engine, Rounded] | None = None  # the rounded corpus, kept for the next search
        self._work = 0  # products of numbers of all searches so far
        self._checked: Survey | None = None  # of all queries, if `check` was called

    def check(self, queries: Any) -> None:
        """Raise if a query has no score. Later searches of some of these queries do not check them again."""
        vectors, metric = as_vectors("queries", queries), METRICS[self.metric]
        largest = survey("queries", vectors, metric, thread_count(self._threads)).largest
        check_score_range(metric, largest, self.largest_norm)
        self._checked = Survey(largest, None)  # its norms are of other rows than those of a search

    def search(
        self,
        queries: Any,
        depth: int,
        *,
        exclude: Positives | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> Found:
        """Find the `depth` best corpus rows of each query, as `search` does."""
        depth = check_whole("depth", depth, 1)
        if on_progress is not None and not callable(on_progress):
            raise_invalid("on_progress", "a function of a number, or None", shown(on_progress))
        vectors = as_vectors("queries", queries)
        if vectors.width != self.corpus.width:
            raise_invalid("queries", f"of width {self.corpus.width}, like the corpus", vectors.width)
        excluded = excluded_rows(exclude, vectors.n, self.corpus.n)
        threads, metric = thread_count(self._threads), METRICS[self.metric]  # the library's setting may have changed
        measured = self._checked
        if measured is None:
            measured = survey("queries", vectors, metric, threads)
            check_score_range(metric, measured.largest, self.largest_norm)
        if vectors.n == 0 or self.corpus.n == 0:
            return Found.empty(vectors.n, depth)
        engine = self._choose(vectors.n)
        sizes = plan(vectors.n, self.corpus, depth, engine, threads, self._budget)
        found = Found.empty(vectors.n, depth)
        if engine is PLAIN:
            sides = vectors, measured.norms, self.corpus, self.norms
            plain.search(metric, *sides, excluded, found.ids, found.scores, on_progress)
            return found
        units = Units(metric, self.largest_norm or 1.0, max(self.largest_norm, measured.largest) or 1.0)
        with Workers(sizes.threads, torch=torch_is_loaded()) as workers:
            codes = self._rounded(engine, workers) if sizes.keeps else None
            scan = Scan(self.corpus, self.norms, engine, units, sizes, workers, codes, self._device)
            scan.run(vectors, measured.norms, excluded, found.ids, found.scores, on_progress)
        return found

    def release(self) -> None:
        """Free the rounded corpus that is kept for the next search; to round it again takes little time."""
        self._codes = None

    def _choose(self, n_queries: int) -> Engine:
        """The engine of a search."""
        work = n_queries * self.corpus.n * self.corpus.width
        self._work += work
        codes = self._codes
        if codes is not None and not is_small(work):
            return codes[0]
        return choose(self._engine, work, self._work, self.corpus.width, lambda: self._sample, self._device)

    @cached_property
    def _sample(self) -> NDArray[Any]:
        """Some corpus rows, evenly spaced."""
        n = self.corpus.n
        return floats(self.corpus.take(np.unique(np.linspace(0, n - 1, min(_SAMPLE, n)).astype(np.int64))))

    def _rounded(self, engine: Engine, workers: Workers) -> Rounded:
        """The whole corpus on the grid of an engine."""
        if self._codes is None:
            rounded = Rounded.empty(engine, self.corpus.n, self.corpus.width)
            workers.rows(round_rows, self.corpus.n, self.corpus.rows(0, self.corpus.n), rounded)
            self._codes = engine, rounded
        return self._codes[1]


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
    descending, id ascending. An engine multiplies rounded vectors, which is fast. Pairs that its error bound cannot
    rule out are scored by the float64 kernel at the end. The result is therefore the same, to the byte, for every
    engine, budget and number of threads, and as if all pairs had been scored.

    Cost: O(n_queries n_corpus d) in the engine, O(d) for each pair that is not ruled out (a few times `depth` per
    query, more with a coarser engine), and one pass over all vectors before. If the budget cannot hold the open pairs
    of all queries at once, the corpus is read once for each block of queries.

    Args:
        queries: (n, d) vectors: `Vectors`, or anything that `open_vectors` takes.
        corpus: (m, d) vectors, likewise.
        depth: How many corpus rows to find for each query.
        metric: "cosine", "dot" or "l2". The score is higher for closer: for l2 it is minus the distance.
        exclude: Pairs (query row, corpus row) that are never returned, including those with the relation "ignore".
        engine: "auto", "int8", "float32" or "float64". It changes the speed, never the result.
        budget: Bytes of memory that the call may take, including its result. 1 GiB by default.
        threads: Threads of this call, or as many as the budget holds. `naysay.kernels.threads` by default.
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
    exact = Exact(corpus, metric, engine=engine, budget=budget, threads=threads, device=device)
    return exact.search(queries, depth, exclude=exclude, on_progress=on_progress)


def excluded_rows(exclude: Positives | None, n_queries: int, n_corpus: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """(indptr, indices) of the excluded pairs; a query past the last anchor has none."""
    if exclude is None:
        return frozen(np.zeros(n_queries + 1, np.int64)), frozen(np.empty(0, np.int32))
    check_kind("exclude", exclude, Positives, "a Positives, or None")
    if exclude.n_anchors > n_queries or exclude.n_items > n_corpus:
        rule = f"of at most {n_queries} anchors and {n_corpus} items, the rows of queries and corpus"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")
    indptr = np.pad(exclude.indptr, (0, n_queries - exclude.n_anchors), mode="edge")
    return frozen(indptr), exclude.indices

"""Exact, certified nearest-neighbour search within a memory budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.checks import at_row, check_device, check_kind, check_one_of, check_whole, public, raise_invalid, shown
from naysay.kernels.dots import COSINE, DOT, L2
from naysay.kernels.threads import check_threads
from naysay.positives import Positives
from naysay.search._products import NAMES, PLAIN, SMALL, Engine, Rounded, Units, choose, round_rows, torch_is_loaded
from naysay.search._scan import Scan, plan
from naysay.search._scores import METRICS, Workers, all_pairs_bytes, check_memory, fill_norms, score_all, thread_count
from naysay.search.vectors import Vectors, as_vectors, floats

_SAMPLE = 256  # corpus rows that the choice of an engine is based on
_MOST_ROWS = 1 << 31  # of a corpus: ids of open pairs are int32
_NUMBERS_AT_ONCE = 1 << 21  # coordinates that are checked at a time
_FEW_NUMBERS = 1 << 18  # coordinates that one thread checks sooner than two
SMALLEST_NORM = 1e-140  # below it, the square of a norm loses digits in float64
_LARGEST_NORM = 1e140  # above it, too
_FLOAT32_MAX = float(np.finfo(np.float32).max)
# Scores below it differ by less than the smallest normal float32, if by anything.
_FLOAT32_LEAST = float(np.finfo(np.float32).tiny) / float(np.finfo(np.float32).eps)


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
    """A corpus to be searched several times: its vectors are checked once, and rounded once. It must not change.

    Other arguments than vectors are not checked here; they are those of `search`.
    """

    def __init__(
        self,
        corpus: Vectors,
        metric: str = "cosine",
        *,
        engine: str = "auto",
        budget: int | None = None,
        threads: int | None = None,
        device: Any = None,
        measured: Survey | None = None,
    ) -> None:
        """`measured` is the survey of the corpus, if it has been checked already."""
        if corpus.n >= _MOST_ROWS:
            raise_invalid("corpus", "of fewer than 2^31 rows", corpus.n, "Search its parts and merge.")
        if measured is None:
            measured = survey("corpus", corpus, METRICS[metric], thread_count(threads))
        self.metric, self.corpus = metric, corpus
        self.norms, self.largest_norm = measured.norms, measured.largest
        self._engine, self._budget, self._threads, self._device = engine, budget, threads, device
        self._codes: tuple[Engine, Rounded] | None = None  # the rounded corpus, kept for the next search
        self._work = 0  # products of numbers of all searches so far
        self._checked: Survey | None = None  # of all queries, if `check` was called

    def check(self, queries: Vectors) -> None:
        """Raise if a query has no score. Later searches of some of these queries do not check them again."""
        self._checked = Survey(self._measure(queries).largest, None)  # its norms are of other rows than a search's

    def _measure(self, queries: Vectors) -> Survey:
        """The norms of queries. Raises if one has no score, or another width than the corpus."""
        if queries.width != self.corpus.width:
            raise_invalid("queries", f"of width {self.corpus.width}, like the corpus", queries.width)
        metric = METRICS[self.metric]
        measured = survey("queries", queries, metric, thread_count(self._threads))
        check_score_range(metric, measured.largest, self.largest_norm)
        return measured

    def search(
        self,
        queries: Vectors,
        depth: int,
        *,
        exclude: Positives | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> Found:
        """Find the `depth` best corpus rows of each query, as `search` does."""
        corpus = self.corpus
        measured = self._measure(queries) if self._checked is None else self._checked
        excluded = _excluded_rows(exclude, queries.n)
        if queries.n == 0 or corpus.n == 0:
            return Found.empty(queries.n, depth)
        engine = self._choose(queries.n)
        metric = METRICS[self.metric]
        if engine is PLAIN:
            check_memory(self._budget, all_pairs_bytes(queries.n, corpus, depth), queries.n, corpus, depth)
            found = Found.empty(queries.n, depth)
            sides = queries, measured.norms, corpus, self.norms
            score_all(metric, *sides, excluded, found.ids, found.scores, on_progress)
            return found
        sizes = plan(queries.n, corpus, depth, engine, thread_count(self._threads), self._budget)
        found = Found.empty(queries.n, depth)
        units = Units(metric, self.largest_norm or 1.0, max(self.largest_norm, measured.largest) or 1.0)
        with Workers(sizes.threads, torch=torch_is_loaded()) as workers:
            codes = self._rounded(engine, workers) if sizes.keeps else None
            scan = Scan(corpus, self.norms, engine, units, sizes, workers, codes, self._device)
            scan.run(queries, measured.norms, excluded, found.ids, found.scores, on_progress)
        return found

    def release(self) -> None:
        """Free the rounded corpus that is kept for the next search; to round it again takes little time."""
        self._codes = None

    def _choose(self, n_queries: int) -> Engine:
        """The engine of a search."""
        work = n_queries * self.corpus.n * self.corpus.width
        self._work += work
        if self._engine == "auto" and self._device is None and work <= SMALL:
            return PLAIN
        if self._codes is not None:
            return self._codes[0]
        return choose(self._engine, self._work, self.corpus.width, lambda: self._sample, self._device)

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


def _excluded_rows(exclude: Positives | None, n_queries: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """(indptr, indices) of the excluded pairs; a query past the last anchor has none."""
    if exclude is None:
        return frozen(np.zeros(n_queries + 1, np.int64)), frozen(np.empty(0, np.int32))
    indptr = np.pad(exclude.indptr, (0, n_queries - exclude.n_anchors), mode="edge")
    return frozen(indptr), exclude.indices


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

    The score of a pair is the float64 sum over the coordinates in order, rounded to float32; the order is score
    descending, id ascending. Fast engines multiply rounded vectors, and pairs that their error bound cannot rule out
    are scored exactly: the bytes are the same for every engine, budget and number of threads. O(n_queries n_corpus d).

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
        device: Where torch multiplies the rounded vectors, such as "cuda"; None for the processor. Same result.

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
    check_one_of("metric", metric, tuple(METRICS))
    check_one_of("engine", engine, NAMES)
    check_whole("depth", depth, 1)
    if budget is not None:
        check_whole("budget", budget, 1)
    if threads is not None:
        check_threads("threads", threads)
    if device is not None:
        check_device("device", device)
    if on_progress is not None and not callable(on_progress):
        raise_invalid("on_progress", "a function of a number, or None", shown(on_progress))
    corpus, queries = as_vectors("corpus", corpus), as_vectors("queries", queries)
    check_exclude(exclude, queries.n, corpus.n)
    exact = Exact(corpus, metric, engine=engine, budget=budget, threads=threads, device=device)
    return exact.search(queries, depth, exclude=exclude, on_progress=on_progress)


def check_exclude(exclude: Any, n_queries: int, n_corpus: int) -> None:
    """Raise unless these are pairs of queries and corpus rows, or None."""
    if exclude is None:
        return
    check_kind("exclude", exclude, Positives, "a Positives, or None")
    if exclude.n_anchors > n_queries or exclude.n_items > n_corpus:
        rule = f"of at most {n_queries} anchors and {n_corpus} items, the rows of queries and corpus"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")


# ---- one pass over vectors before a search: their norms, and whether each has a score --------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What a pass over vectors, or over a part of them, found."""

    largest: float  # norm
    norms: NDArray[np.float64] | None  # of all rows, where the vectors are in memory anyway
    bad: int = 0  # rows that have no score
    first: tuple[int, str, str] | None = None  # of these: its number, the rule that it breaks, what it has instead


def survey_of(vectors: Vectors, metric: int, threads: int) -> Survey:
    """Measure the norms of vectors in one pass, and look for rows that have no score."""
    rows_at_once = max(1, _NUMBERS_AT_ONCE // vectors.width)
    all_norms = None if vectors.whole is None else np.empty(vectors.n)
    largest, bad, first = 0.0, 0, None
    with Workers(threads if vectors.n * vectors.width > _FEW_NUMBERS else 1, torch=False) as workers:
        for start in range(0, vectors.n, rows_at_once):
            rows = floats(vectors.rows(start, start + rows_at_once))
            norms = np.empty(len(rows))
            workers.rows(fill_norms, len(rows), rows, norms)
            if all_norms is not None:
                all_norms[start : start + len(rows)] = norms
            wrong = ~(norms < _LARGEST_NORM)
            if metric == COSINE:
                wrong |= norms < SMALLEST_NORM
            if wrong.any():
                places = np.flatnonzero(wrong)
                bad += len(places)
                if first is None:
                    first = (start + int(places[0]), *_reason(metric, rows[places[0]]))
            largest = max(largest, float(norms[~wrong].max(initial=0.0)))
    return Survey(largest, all_norms, bad, first)


def checked_norm(parameter: str, parts: Sequence[Survey]) -> float:
    """Return the largest norm of all parts; raise if a row has no score: the first bad row and how many there are."""
    first = next((part.first for part in parts if part.first is not None), None)
    if first is not None:
        row, rule, got = first
        raise_invalid(parameter, rule, at_row(got, row, sum(part.bad for part in parts)))
    return max((part.largest for part in parts), default=0.0)


def survey(parameter: str, vectors: Vectors, metric: int, threads: int) -> Survey:
    """Measure the norms of vectors in one pass; raise if a row has no score."""
    found = survey_of(vectors, metric, threads)
    checked_norm(parameter, [found])
    return found


def check_score_range(metric: int, query_norm: float, corpus_norm: float) -> None:
    """Raise if vectors of up to these norms can have scores too large for float32, or only scores too small for it."""
    largest = {DOT: query_norm * corpus_norm, COSINE: 1.0, L2: query_norm + corpus_norm}[metric]
    if not largest < _FLOAT32_MAX:
        advice = "Scale the vectors down."
        raise_invalid("queries", "of norms whose scores float32 holds", f"scores up to {largest:.3g}", advice)
    if 0 < largest < _FLOAT32_LEAST:
        rule = "of norms whose scores float32 can tell apart"
        raise_invalid("queries", rule, f"scores up to {largest:.3g}", "Scale the vectors up, e.g. by 1 / largest norm.")


def _reason(metric: int, row: NDArray[Any]) -> tuple[str, str]:
    """The rule that a row breaks, and what it has instead."""
    not_finite = row[~np.isfinite(row)]
    if len(not_finite):
        return "finite", str(not_finite[0])
    if metric == COSINE and not row.any():
        return "without zero vectors, which have no cosine", "a zero vector"
    return f"of norms between {SMALLEST_NORM} and {_LARGEST_NORM}", f"a largest coordinate of {np.abs(row).max()}"

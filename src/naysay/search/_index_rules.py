"""The stated rules of an index: the space it searches, how many lists, which efforts, how many bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, raise_invalid
from naysay.kernels.dots import COSINE, DOT
from naysay.search._plan import budget_bytes
from naysay.search._scores import norms_of
from naysay.search.vectors import Vectors

Block = NDArray[np.float32]
KINDS = ("auto", "ivf", "hnsw")
MIN_ROWS = 1000
LINKS, BUILD_REACH = 16, 100  # of a graph: links of a row (twice as many at the bottom), candidates while building
TRAINING = 40  # rows per list that k-means uses
ENCODER = 1 << 16  # rows that the ranges of 8-bit codes are taken from
BLOCK = 1 << 21  # numbers of a block of the corpus
WORK = 96 << 20  # bytes beside the index that are enough for every step
_LOWEST = {"ivf": 8, "hnsw": 32}
_SHARE = 32  # reading one list in so many costs as much as an exact search
_ROWS_PER_STEP = 512  # rows of an exact search that cost as much as one candidate of a graph
_GROWTH = 2  # the memory of growing lists, relative to what they hold
_FAR = 1e15  # times the norms of the corpus: the largest queries that float32 can square


@final
@dataclass(frozen=True, slots=True)
class Euclid:
    """The map of rows to float32 vectors whose Euclidean distance ranks as the metric does.

    cosine   x / |x|: |a - b|^2 = 2 - 2 cos
    l2       x / M, M the largest norm of the corpus
    dot      a corpus row becomes (x, sqrt(M^2 - |x|^2)) / M, a query (x, 0) / |x|: then |a - b|^2 = 2 - 2 q.c / (|q| M)

    Bachrach et al. Speeding Up the Xbox Recommender System Using a Euclidean Transformation for Inner-Product Spaces.
    RecSys 2014.
    """

    metric: int
    largest: float  # M

    def width(self, width: int) -> int:
        """The width of a row after the map."""
        return width + (self.metric == DOT)

    def corpus(self, rows: NDArray[Any]) -> Block:
        """(n, width) corpus rows, float32 or float64, after the map."""
        norms = norms_of(rows)
        if self.metric == COSINE:
            return _divided(rows, norms)
        scaled = _divided(rows, np.full(len(rows), self.largest or 1.0))
        if self.metric == DOT:
            rest = np.sqrt(np.maximum(0.0, 1 - (norms / (self.largest or 1.0)) ** 2))
            return np.column_stack([scaled, rest.astype(np.float32)])
        return scaled

    def queries(self, rows: NDArray[np.float64], norms: NDArray[np.float64]) -> Block:
        """(n, width) queries after the map."""
        if self.metric == COSINE:
            return _divided(rows, norms)
        if self.metric == DOT:
            scaled = _divided(rows, np.where(norms > 0, norms, 1.0))
            return np.column_stack([scaled, np.zeros(len(rows), np.float32)])
        return _divided(rows, np.full(len(rows), self.largest or 1.0))

    def check_queries(self, largest: float) -> None:
        """Raise if queries are so far away that float32 cannot distinguish the corpus rows."""
        if self.metric not in (COSINE, DOT) and largest > _FAR * (self.largest or 1.0):
            rule = f"of norms up to {_FAR:g} times those of the corpus"
            raise_invalid("queries", rule, f"{largest:.3g} and {self.largest:.3g}", "Search exactly.")


def _divided(rows: NDArray[Any], by: NDArray[np.float64]) -> Block:
    return np.ascontiguousarray((rows / by[:, None]).astype(np.float32))


def check_kind(kind: str, n: int) -> str:
    """Return the kind of index, "ivf" for "auto"; raise if the corpus is too small for any."""
    check_one_of("kind", kind, KINDS)
    if n < MIN_ROWS:
        advice = "Use an exact search: it is faster there."
        raise_invalid("corpus", f"of at least {MIN_ROWS} rows for an index", n, advice)
    return "ivf" if kind == "auto" else kind


def lists_for(n: int) -> int:
    """4 sqrt(n) lists, at most 65,536."""
    return min(4 * math.isqrt(n), 1 << 16)


def sample_for(kind: str, n: int) -> int:
    """Corpus rows that training uses: 40 per list, or 65,536 for codes alone."""
    return min(n, TRAINING * lists_for(n) if kind == "ivf" else ENCODER)


def efforts(kind: str, n: int) -> list[int]:
    """The settings that `Index.tune` tries, each twice the one before, the last at the cost of an exact search.

    ivf    nprobe from 8, to a 32nd of the lists: reading that share of the codes one by one takes about as long as an
           exact search takes for all rows at once, of wide vectors on a processor with 8-bit products (benchmarks)
    hnsw   efSearch from 32, to n / 512
    """
    last = lists_for(n) // _SHARE if kind == "ivf" else n // _ROWS_PER_STEP
    values = [_LOWEST[kind]]
    while values[-1] < last:
        values.append(min(2 * values[-1], last))
    return values


def fetched(depth: int, excluded: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) how many candidates a query fetches: depth, a quarter more (at least 16), and its excluded rows.

    A quarter more, because 8-bit codes rank a little differently than the vectors. The excluded ones are rounded up to
    a power of two: then few sizes occur, and how deep one query goes does not depend on the others.
    """
    extra = np.where(excluded > 0, 1 << np.ceil(np.log2(np.maximum(excluded, 1))).astype(np.int64), 0)
    return np.asarray(depth + max(16, depth // 4) + extra)


def probes_for(nprobe: int, lists: int, n: int, fetch: int) -> int:
    """nprobe, or as many lists as hold twice what is fetched if they are of one size; all lists at most."""
    return min(lists, max(nprobe, -(-2 * fetch * lists // n)))


def index_bytes(kind: str, n: int, width: int) -> int:
    """The size of an index: codes of a byte per number, and ids and centres, or links."""
    if kind == "ivf":
        return n * (width + 8) + 8 * lists_for(n) * width
    return n * (width + 8 * LINKS + 4 * LINKS // 4 + 16)


def memory_for(kind: str, corpus: Vectors, width: int, budget: int | None, *, building: bool) -> tuple[int, int]:
    """Return the budget, and what it leaves beside the index and its norms; raise if that is less than WORK.

    While it is built, growing lists take up to twice their rows, and training holds its sample four times (the rows,
    their order, and the copies of a search).
    """
    total = budget_bytes(budget)
    norms = 8 * corpus.n if corpus.whole is not None else 0
    size = norms + (_GROWTH if building else 1) * index_bytes(kind, corpus.n, width)
    sample = 4 * 4 * width * sample_for(kind, corpus.n) if building else 0
    needed = max(size, norms + sample) + WORK
    if total < needed:
        advice = f"Pass a `budget` of {needed} or more."
        raise_invalid("budget", f"at least {needed} bytes for an index of {corpus.n} rows", total, advice)
    return total, total - size

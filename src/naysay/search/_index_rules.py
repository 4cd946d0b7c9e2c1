"""The stated rules of an index: how many lists, how much effort, how many bytes. Rows in, numbers out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, check_whole, raise_invalid
from naysay.search._memory_plan import BUDGET
from naysay.search.vectors import Vectors

KINDS = ("auto", "ivf", "hnsw")
LEAST_ROWS = 1000
LINKS, REACH = 16, 100  # of a graph: neighbours of a row (twice as many at the bottom), candidates while building
TRAINING = 40  # rows a list that k-means looks at
ENCODER = 1 << 16  # rows that the ranges of 8-bit codes are taken from
BLOCK = 1 << 21  # numbers of a block of the corpus
WORK = 96 << 20  # bytes beside the index that every step can do with
_LOWEST = {"ivf": 8, "hnsw": 32}
_SHARE = 32  # one list in so many costs as much as an exact search
_ROWS_A_STEP = 512  # rows of an exact search that cost as much as one candidate of a graph
_GROWTH = 2  # what lists that grow may take, to what they hold


def check_kind(kind: str, n: int) -> str:
    """The kind of index, "ivf" for "auto"; a corpus that is too small for any is refused."""
    check_one_of("kind", kind, KINDS)
    if n < LEAST_ROWS:
        advice = "Use an exact search: it is faster there."
        raise_invalid("corpus", f"of at least {LEAST_ROWS} rows for an index", n, advice)
    return "ivf" if kind == "auto" else kind


def lists_for(n: int) -> int:
    """4 sqrt(n) lists, at most 65,536."""
    return min(4 * math.isqrt(n), 1 << 16)


def ladder(kind: str, n: int) -> list[int]:
    """The settings that `Index.tune` tries, each twice the one before, the last at the cost of an exact search.

    ivf    nprobe from 8, to a 32nd of the lists: reading that share of the codes one by one takes about as long as an
           exact search takes for all rows at once, of wide vectors on a processor with 8-bit products (benchmarks)
    hnsw   efSearch from 32, to n / 512
    """
    last = lists_for(n) // _SHARE if kind == "ivf" else n // _ROWS_A_STEP
    found = [_LOWEST[kind]]
    while found[-1] < last:
        found.append(min(2 * found[-1], last))
    return found


def fetched(depth: int, excluded: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) how many candidates a query asks the index for: depth, a quarter more (16 at least), and what is excluded.

    A quarter more, because 8-bit codes rank a little differently than the vectors. The excluded ones are rounded up to
    a power of two: then few sizes occur, and how deep one query goes does not depend on the others.
    """
    extra = np.where(excluded > 0, 1 << np.ceil(np.log2(np.maximum(excluded, 1))).astype(np.int64), 0)
    return np.asarray(depth + max(16, depth // 4) + extra)


def probes_for(nprobe: int, lists: int, n: int, fetch: int) -> int:
    """nprobe, or as many lists as hold twice what is fetched if they are of one size; all at most."""
    return min(lists, max(nprobe, -(-2 * fetch * lists // n)))


def index_bytes(kind: str, n: int, width: int) -> int:
    """What an index holds: codes of a byte a number, and ids and centres, or links."""
    if kind == "ivf":
        return n * (width + 8) + 8 * lists_for(n) * width
    return n * (width + 8 * LINKS + 4 * LINKS // 4 + 16)


@final
@dataclass(frozen=True, slots=True)
class Room:
    """The bytes of an index and its steps.

    Args:
        total: The budget.
        held: What the index and the norms of rows take, once it is there.
    """

    total: int
    held: int

    @property
    def left(self) -> int:
        """What is left for a step."""
        return self.total - self.held


def room_for(kind: str, corpus: Vectors, width: int, budget: int | None, *, building: bool) -> Room:
    """Refuse a budget that does not hold the index and WORK, with what it takes.

    Args:
        building: Lists that grow hold up to twice their rows; training holds its sample four times (the rows, their
            order, and the copies of a search).
    """
    total = BUDGET if budget is None else check_whole("budget", budget, 1)
    norms = 8 * corpus.n if corpus.whole is not None else 0
    size = index_bytes(kind, corpus.n, width)
    held = norms + (_GROWTH if building else 1) * size
    sample = 4 * 4 * width * sample_for(kind, corpus.n) if building else 0
    needed = max(held, norms + sample) + WORK
    if total < needed:
        advice = f"Pass budget={needed} or more."
        raise_invalid("budget", f"at least {needed} bytes for an index of {corpus.n} rows", total, advice)
    return Room(total, held)


def sample_for(kind: str, n: int) -> int:
    """Corpus rows that training looks at: 40 a list, or 65,536 for codes alone."""
    return min(n, TRAINING * lists_for(n) if kind == "ivf" else ENCODER)

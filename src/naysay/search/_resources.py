"""The threads of one search, and the block sizes that fit its memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, final

import numpy as np

from naysay.arrays import need_torch
from naysay.checks import check_whole, raise_invalid
from naysay.kernels.threads import threads as usual_threads
from naysay.search._engines import Engine
from naysay.search._pair_scores import FETCHED
from naysay.search._vector_files import WINDOW
from naysay.search.vectors import Vectors

_BUDGET = 1 << 30
_COLUMNS, _STRIP, _SMALLEST = 4096, 128, 32  # corpus rows of a block, queries of a strip, and the smallest of both
_PAIR = 12  # bytes of an unresolved pair: id, upper and lower bound
_LIBRARIES = 8 << 20  # bytes that the libraries take for themselves


def budget_bytes(budget: int | None) -> int:
    """Return the memory budget in bytes, 1 GiB for None."""
    return _BUDGET if budget is None else check_whole("budget", budget, 1)


def thread_count(threads: int | None) -> int:
    """Return the number of threads, the library's setting for None."""
    return usual_threads() if threads is None else check_whole("threads", threads, 1)


@final
class Workers:
    """Threads inside `with Workers(...)`, each with one thread of torch's.

    A product's own threads would wait for the scan, spinning.

    Args:
        count: How many threads.
        torch: Whether torch multiplies in them; its own number of threads is restored at the end.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.shutdown()
        if self.torch:
            self.torch.set_num_threads(self.before)


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of blocks.

    Args:
        rows: Queries whose unresolved pairs are held at once.
        strip: Queries that one thread multiplies at once.
        columns: Corpus rows of a block.
        capacity: Unresolved pairs of a query.
        at_once: Queries that are scored exactly together when their capacity is reached.
    """

    rows: int
    strip: int
    columns: int
    capacity: int
    at_once: int


def plan(queries: Vectors, corpus: Vectors, depth: int, engine: Engine, threads: int, budget: int | None) -> Plan:
    """Return the largest blocks within the budget; raise with the bytes needed if not even small ones fit."""
    total = budget_bytes(budget)
    wanted, width = min(depth, corpus.n), corpus.width
    capacity = min(corpus.n, 6 * wanted + 256)
    wide = 8 if corpus.dtype == np.float64 else 4
    code = np.dtype(engine.codes).itemsize
    beside = 8 * corpus.n if corpus.whole is not None else threads * WINDOW  # norms, or a part of the file
    fetched = min(capacity, FETCHED) * width * 3 * wide
    fixed = queries.n * depth * 12 + beside + _LIBRARIES + fetched
    per_row = capacity * _PAIR + width * (8 + 8 + code) + 96
    strip, columns = _STRIP, _COLUMNS
    while True:
        block = columns * (width * (corpus.dtype.itemsize + wide + code) + 64)
        strips = threads * strip * (columns * engine.bytes + 64)
        rows = (total - fixed - block - strips) // per_row
        if rows >= min(queries.n, threads * strip) or strip == _SMALLEST:
            break
        strip, columns = strip // 2, columns // 2
    if rows < 1:
        needed = fixed + block + strips + per_row
        advice = f"Pass a `budget` of {needed} or more."
        raise_invalid("budget", f"at least {needed} bytes for this search", total, advice)
    rows = min(rows, max(1, queries.n))
    left = total - fixed - block - strips - rows * per_row
    at_once = max(1, left // threads // max(1, fetched + 32 * capacity))
    return Plan(rows, min(strip, rows), columns, capacity, min(at_once, strip))

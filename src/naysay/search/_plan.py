"""The blocks of an exact search that fit the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.checks import check_whole, raise_invalid
from naysay.kernels.threads import threads as usual_threads
from naysay.search._scores import FETCHED
from naysay.search._vector_files import WINDOW
from naysay.search.vectors import Vectors

_BUDGET = 1 << 30  # bytes by default
_LIBRARIES = 8 << 20  # bytes that torch and others take for themselves
_COLUMNS = 8192  # corpus rows of a block
_STRIP = 128  # queries that a thread multiplies with a block at a time
_NARROWEST = 1024  # corpus rows of a block, at least
_SMALLEST = 32  # queries of a strip, at least
_PAIR = 12  # bytes of an open pair: id, upper and lower bound
# Open pairs for each wanted one. If a query has more, they are scored early: slow where the rows are in a file.
_OPEN, _OPEN_IN_FILE = 6, 10
_OPEN_MORE = 256
_BLOCK = 14 << 20  # bytes of a block of queries without a budget
_PART = 3  # or a third of the corpus, if that is more
_SMALL_BLOCK = 6 << 20  # bytes of a block of queries where the rounded corpus is kept
_KEPT = 4  # a rounded corpus is kept if it takes at most a quarter of the corpus, and of the budget


def budget_bytes(budget: int | None) -> int:
    """Return the memory budget in bytes, 1 GiB for None."""
    return _BUDGET if budget is None else check_whole("budget", budget, 1)


def open_pairs(corpus: Vectors, depth: int) -> int:
    """How many unresolved pairs of a query are held."""
    each = _OPEN if corpus.whole is not None else _OPEN_IN_FILE
    return min(corpus.n, each * min(depth, corpus.n) + _OPEN_MORE)


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of blocks."""

    rows: int  # queries whose unresolved pairs are held at once
    strip: int  # queries that one thread multiplies at once
    columns: int  # corpus rows of a block
    capacity: int  # unresolved pairs of a query
    at_once: int  # queries that are scored exactly together when their capacity is reached
    keeps: bool = False  # whether the whole corpus is rounded once, and not again for each block of queries


def plan(queries: Vectors, corpus: Vectors, depth: int, engine: Any, threads: int, budget: int | None) -> Plan:
    """Return the largest blocks within the budget; raise if not even small ones fit, for the argument to change."""
    total = budget_bytes(budget)
    capacity = open_pairs(corpus, depth)
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
        if rows >= min(queries.n, threads * strip) or columns <= _NARROWEST:
            break
        strip, columns = max(_SMALLEST, strip // 2), columns // 2
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
    rows, keeps = min(rows, max(1, queries.n)), False
    if budget is None and corpus.whole is not None:  # to read it again costs little, if it is rounded
        keeps = engine.rounds and _KEPT * corpus.n * corpus.width * code <= min(total, corpus.whole.nbytes)
        size = _SMALL_BLOCK if keeps else max(_BLOCK, corpus.whole.nbytes // _PART)
        whole = threads * strip  # a strip that is not full takes nearly as long as a full one
        rows = min(rows, -(-size // (per_row * whole)) * whole)
    at_once = max(1, (left - rows * per_row) // threads // max(1, fetched + 32 * capacity))
    return Plan(rows, min(strip, rows), columns, capacity, min(at_once, strip), keeps)

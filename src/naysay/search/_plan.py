"""The blocks of an exact search that fit the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from naysay.checks import check_whole, raise_invalid
from naysay.search import _plain as plain
from naysay.search._products import PLAIN, Engine
from naysay.search._scores import FETCHED
from naysay.search._vector_files import WINDOW
from naysay.search.vectors import Vectors

_BUDGET = 1 << 30  # bytes by default
_LIBRARIES = 8 << 20  # bytes that torch and others take for themselves
# Queries that a thread multiplies at a time, and the corpus rows of the block that they meet: the first that fit.
_SIZES = ((128, 8192), (64, 4096), (32, 2048), (32, 1024))
_PRODUCT = 4  # bytes of a product
_SLOT = 12  # bytes of a slot of a result: id and score; and of an open pair: id, upper and lower bound
# Open pairs for each wanted one. If a query has more, they are scored early: slow where the rows are in a file.
_OPEN, _OPEN_IN_FILE = 6, 10
_OPEN_MORE = 256
_BLOCK = 14 << 20  # bytes of the open pairs of a block of queries where no budget is given
_PART = 3  # or a third of the corpus, if that is more
_SMALL_BLOCK = 6 << 20  # bytes of the same where the rounded corpus is kept, and reading it again costs little
_KEPT_SHARE = 4  # a rounded corpus is kept if it takes at most a quarter of the corpus, and of the budget


def budget_bytes(budget: int | None) -> int:
    """Return the memory budget in bytes, 1 GiB for None."""
    return _BUDGET if budget is None else check_whole("budget", budget, 1)


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
    total = budget_bytes(budget)
    capacity = open_pairs(corpus, depth)
    stored, code = corpus.dtype.itemsize, np.dtype(engine.codes).itemsize
    as_float = max(4, stored)
    fixed = _SLOT * n_queries * depth + 8 * n_queries  # result and norms
    fixed += 8 * corpus.n if corpus.whole is not None else 0
    if engine is PLAIN:
        _check_fits(total, fixed + plain.search_bytes(n_queries, corpus), n_queries, depth, corpus.n)
        return Plan(1, 0, 0, 0, 0, 0, keeps=False)
    fixed += _LIBRARIES
    per_query = capacity * _SLOT + corpus.width * (8 + 8 + code) + 96
    scored_at_once = min(capacity, FETCHED) * corpus.width * 3 * as_float
    for strip, columns in _SIZES:
        block = columns * (corpus.width * (stored + as_float + code) + 64)
        per_thread = strip * (columns * _PRODUCT + 64) + (WINDOW if corpus.whole is None else 0)
        free = total - fixed - scored_at_once - block
        fitting_threads = min(threads, max(1, (free - per_query) // per_thread))
        rows = (free - fitting_threads * per_thread) // per_query
        if fitting_threads == threads and rows >= min(n_queries, threads * strip):
            break
    _check_fits(total, total - free + per_thread + per_query, n_queries, depth, corpus.n)
    rows, keeps = min(rows, max(1, n_queries)), False
    if budget is None and corpus.whole is not None:
        keeps = _KEPT_SHARE * corpus.n * corpus.width * code <= min(total, corpus.whole.nbytes)
        open_bytes = _SMALL_BLOCK if keeps else max(_BLOCK, corpus.whole.nbytes // _PART)
        full_strips = fitting_threads * strip  # a strip that is not full takes nearly as long as a full one
        rows = min(rows, -(-open_bytes // (per_query * full_strips)) * full_strips)
    left = free - fitting_threads * per_thread - rows * per_query
    at_once = max(1, min(strip, left // fitting_threads // (scored_at_once + 48 * capacity)))
    return Plan(fitting_threads, rows, min(strip, rows), columns, capacity, at_once, keeps)


def _check_fits(total: int, needed: int, n_queries: int, depth: int, n_items: int) -> None:
    """Raise for the argument to change: a depth beyond the corpus, or the budget."""
    if needed <= total:
        return
    if depth > n_items and needed - _SLOT * n_queries * (depth - n_items) <= total:
        raise_invalid("depth", f"at most {n_items}, the rows of the corpus, for a memory of {total} bytes", depth)
    raise_invalid("budget", f"at least {needed} bytes for this search", total, f"Pass a `budget` of {needed} or more.")

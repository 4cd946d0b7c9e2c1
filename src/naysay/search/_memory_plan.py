"""How a search fits its budget: block sizes from bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from naysay.checks import check_whole, raise_invalid
from naysay.search._engines import Engine
from naysay.search._unresolved_pairs import FETCHED
from naysay.search._vector_files import WINDOW
from naysay.search.vectors import Vectors

BUDGET = 1 << 30
_COLUMNS, _STRIP, _LEAST = 4096, 128, 32  # corpus rows of a block, queries of a strip, and the smallest of both
_PAIR = 12  # bytes of an open pair: id, upper and lower bound
_OWN = 8 << 20  # what the libraries take for themselves, besides what is planned here


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of blocks.

    Args:
        rows: Queries whose open pairs are held at once.
        strip: Queries that one thread multiplies at once.
        columns: Corpus rows of a block.
        room: Open pairs of a query.
        at_once: Queries that are scored exactly together when their room is full.
    """

    rows: int
    strip: int
    columns: int
    room: int
    at_once: int


def plan(queries: Vectors, corpus: Vectors, depth: int, engine: Engine, threads: int, budget: int | None) -> Plan:
    """The largest blocks within the budget; a budget that holds not even small ones is refused, with what it takes."""
    total = BUDGET if budget is None else check_whole("budget", budget, 1)
    wanted, width = min(depth, corpus.n), corpus.width
    room = min(corpus.n, 6 * wanted + 256)
    wide = 8 if corpus.dtype == np.float64 else 4
    code = np.dtype(engine.codes).itemsize
    beside = 8 * corpus.n if corpus.whole is not None else threads * WINDOW  # norms, or a part of the file
    fetched = min(room, FETCHED) * width * 3 * wide
    fixed = queries.n * depth * 12 + beside + _OWN + fetched
    per_row = room * _PAIR + width * (8 + 8 + code) + 96
    strip, columns = _STRIP, _COLUMNS
    while True:
        block = columns * (width * (corpus.dtype.itemsize + wide + code) + 64)
        strips = threads * strip * (columns * engine.bytes + 64)
        rows = (total - fixed - block - strips) // per_row
        if rows >= min(queries.n, threads * strip) or strip == _LEAST:
            break
        strip, columns = strip // 2, columns // 2
    if rows < 1:
        needed = total - (total - fixed - block - strips) + per_row
        advice = f"Pass budget={needed} or more."
        raise_invalid("budget", f"at least {needed} bytes for this search", total, advice)
    rows = min(rows, max(1, queries.n))
    left = total - fixed - block - strips - rows * per_row
    at_once = max(1, left // threads // max(1, fetched + 32 * room))
    return Plan(rows, min(strip, rows), columns, room, min(at_once, strip))

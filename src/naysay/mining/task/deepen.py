"""Deepen: search further for anchors whose nearest candidates are all above the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.slots import LINE
from naysay.mining.candidates import Candidates
from naysay.mining.files.vectors import Vectors
from naysay.mining.judge import ask
from naysay.mining.known import rows_of
from naysay.mining.searching.found import Found
from naysay.positives import Positives
from naysay.types import Query

FACTOR, DEEPEST = 8, 1 << 14
_SLOTS = 1 << 24  # that are held at a time

# search(queries, depth, exclude) -> Found
Search = Callable[[Any, int, Positives], Found]


def deepened(
    found: Found,
    search: Search,
    queries: Vectors,
    known: Positives,
    detector: Any,
    query: Query,
    wanted: NDArray[np.int64],
    low: Any = None,
    slots: int | None = None,
) -> tuple[Found, NDArray[np.int64]]:
    """The same, with other candidates for anchors that have too few below the line, and how many each one skips.

    found      (n, m) the nearest
    detector   one by scores: what it suspects of a row are the row's first
    wanted     (n,) how many below its line an anchor should have
    low        None, or a score below which candidates are of no use: nothing deeper is searched for
    slots      candidates that are held at a time, some 100 bytes each; 2^24 if not given

    An anchor that is short is searched 8 times as deep, and again, up to 16,384; then its m slots hold what comes after
    the suspected ones, and these are counted: (n,), 0 for anchors that were not short. So memory does not grow with the
    depth. Each round is a search of the corpus for the anchors that are still short.
    """
    width, n_items = found.ids.shape[1], known.n_items
    ids, scores, skipped = found.ids.copy(), found.scores.copy(), np.zeros(len(found), np.int64)
    short = _short(Candidates.of(found), detector, query, wanted, low)
    depth, most = width, min(n_items, max(DEEPEST, width))
    while len(short) and depth < most:
        depth = min(most, FACTOR * depth)
        step, left = max(1, (_SLOTS if slots is None else slots) // depth), [short[:0]]
        for start in range(0, len(short), step):
            rows = short[start : start + step]
            deep = search(queries.take(rows), depth, rows_of(known, rows))
            asked = _rows_of(query, rows)
            candidates = Candidates.of(deep)
            passed = np.count_nonzero(ask("mine", candidates, detector, asked) >= LINE, axis=1)
            left.append(rows[_short(candidates, detector, asked, wanted[rows], low)])
            places = np.minimum(passed, depth - width)[:, None] + np.arange(width)
            ids[rows], scores[rows] = (np.take_along_axis(part, places, 1) for part in (deep.ids, deep.scores))
            skipped[rows] = places[:, 0]
        short = np.concatenate(left)
    return Found(ids, scores), skipped


def _short(
    candidates: Candidates, detector: Any, query: Query, wanted: NDArray[np.int64], low: Any
) -> NDArray[np.int64]:
    """Rows whose list is full and holds fewer below the line than wanted, though deeper ones might be of use."""
    free = np.count_nonzero(candidates.filled & (ask("mine", candidates, detector, query) < LINE), axis=1)
    open_ended = candidates.ids[:, -1] >= 0
    if low is not None:
        open_ended &= candidates.scores[:, -1] >= np.broadcast_to(np.asarray(low, np.float32), len(candidates))
    return np.flatnonzero((free < wanted) & open_ended)


def _rows_of(query: Query, rows: NDArray[np.int64]) -> Query:
    """The query of some rows."""
    positives, vectors = (None if part is None else part[rows] for part in (query.positives, query.vectors))
    return Query(query.anchors[rows], positives=positives, vectors=vectors, step=query.step)

"""Deepen: search further for anchors whose nearest candidates are all above the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._slots import SUSPICION_THRESHOLD, query_rows
from naysay.mining._known import rows_of
from naysay.mining.candidates import Candidates
from naysay.mining.judge import ask, lines_of
from naysay.positives import Positives
from naysay.search.found import Found
from naysay.search.vectors import Vectors
from naysay.types import Query

FACTOR, DEEPEST = 8, 1 << 14
_SLOTS = 1 << 24  # that are held at a time

Ids = NDArray[np.int64]
# search(queries, depth, exclude) -> Found
Search = Callable[[Any, int, Positives], Found]
# below(queries, depth, highest scores, exclude) -> (Found, how many score higher)
Below = Callable[[Any, int, NDArray[np.float32], Positives], tuple[Found, Ids]]


def deepened(
    found: Found,
    search: Search,
    queries: Vectors,
    known: Positives,
    detector: Any,
    query: Query,
    wanted: Ids,
    low: float | None = None,
    slots: int | None = None,
    below: Below | None = None,
) -> tuple[Found, Ids]:
    """The same, with other candidates for anchors that have too few below the line, and how many each one skips.

    An anchor that is short is searched 8 times as deep, and again, up to 16,384; then its m slots hold what comes after
    the suspected ones, and these are counted: (n,), 0 for anchors that were not short. So memory does not grow with the
    depth. Each round is a search of the corpus for the anchors that are still short.

    With `below` one search tells how many are suspected, and so at which depth the rounds would end, and what comes
    after these: the answer is the same. Only where the rounds would end among the last of the suspected, or the
    detector tells no line, is there a deeper search.

    Args:
        found: (n, m) the nearest.
        detector: One by scores: what it suspects of a row are the row's first.
        wanted: (n,) how many below its line an anchor should have.
        low: None, or a score below which candidates are of no use: nothing deeper is searched for.
        slots: Candidates that are held at a time, some 100 bytes each; 2^24 if not given.
        below: A search that counts what is above a line and leaves it out, or None.
    """
    width, held = found.ids.shape[1], _SLOTS if slots is None else slots
    ids, scores, skipped = found.ids.copy(), found.scores.copy(), np.zeros(len(found), np.int64)
    short, depths = _short(Candidates.of(found), detector, query, wanted, low), _depths(width, known.n_items)
    begins = np.full(len(short), depths[0] if depths else 0)  # how deep each is searched first, 0 if it need not be
    if below is not None and depths and len(short):
        lines = _highest(found, detector, query)[short]
        told = np.flatnonzero(~np.isnan(lines) & (low is None or lines >= np.float32(low)))
        for some in _parts(told, held // depths[0]):
            rows, asked = short[some], query_rows(query, short[some])
            left_out = rows_of(known, rows)
            after, above = below(queries.take(rows), width, lines[some], left_out)
            clean = (ask(Candidates.of(after), detector, asked) < SUSPICION_THRESHOLD).all(axis=1)
            ends = _ends(after, above, known.n_items - left_out.count(), wanted[rows], low, depths)
            done = clean & (above <= ends - width)
            ids[rows[done]], scores[rows[done]] = after.ids[done], after.scores[done]
            skipped[rows[done]] = above[done]
            begins[some[clean]] = np.where(done, 0, ends)[clean]
    left = short[:0]
    for depth in depths:
        waiting, left = np.concatenate([left, short[begins == depth]]), short[:0]
        for rows in _parts(waiting, held // depth):
            deep, asked = search(queries.take(rows), depth, rows_of(known, rows)), query_rows(query, rows)
            candidates = Candidates.of(deep)
            passed = np.count_nonzero(ask(candidates, detector, asked) >= SUSPICION_THRESHOLD, axis=1)
            left = np.concatenate([left, rows[_short(candidates, detector, asked, wanted[rows], low)]])
            places = np.minimum(passed, depth - width)[:, None] + np.arange(width)
            ids[rows], scores[rows] = (np.take_along_axis(part, places, 1) for part in (deep.ids, deep.scores))
            skipped[rows] = places[:, 0]
    return Found(ids, scores), skipped


def _depths(width: int, n_items: int) -> list[int]:
    """How deep the rounds search."""
    depths, most = [width], min(n_items, max(DEEPEST, width))
    while depths[-1] < most:
        depths.append(min(most, FACTOR * depths[-1]))
    return depths[1:]


def _parts(rows: Ids, size: int) -> Iterator[Ids]:
    """Some of the rows at a time."""
    for start in range(0, len(rows), max(1, size)):
        yield rows[start : start + max(1, size)]


def _highest(found: Found, detector: Any, query: Query) -> NDArray[np.float32]:
    """(n,) the highest score that is not suspected, told by asking about the three next to the line; NaN if by none."""
    with np.errstate(over="ignore"):  # a line beyond all scores is told by none
        lines = lines_of(detector, query).astype(np.float32)
    highest = np.full(len(lines), np.float32(np.nan))
    low, high = (np.nextafter(lines, np.float32(side)) for side in (-np.inf, np.inf))
    near = np.stack([low, lines, high], axis=1)
    tells = np.isfinite(near).all(axis=1) & (found.ids[:, 0] >= 0)
    slot = np.where(tells, found.ids[:, 0], -1)[:, None]
    over = [
        ask(Candidates.of(Found(slot, np.where(tells, score, 0)[:, None])), detector, query)[:, 0] >= SUSPICION_THRESHOLD
        for score in near.T
    ]
    for place in (0, 1):
        highest = np.where(tells & ~over[0] & ~over[place] & over[place + 1] & over[2], near[:, place], highest)
    return highest


def _ends(after: Found, above: Ids, there: Ids, wanted: Ids, low: float | None, depths: list[int]) -> Ids:
    """(n,) the depth at which the rounds end: the first that holds enough below the line, or all that is of use.

    Where a round holds more of what comes after than `after` does, its last score is not known, and does not matter:
    whether it ends there or later, all slots are filled from what comes after.

    Args:
        after: What comes after the suspected ones, and how many these are.
        above: What comes after the suspected ones, and how many these are.
        there: How many there are in all.
    """
    ends = np.full(len(above), depths[-1])
    for depth in reversed(depths[:-1]):
        free = np.maximum(np.minimum(depth, there) - above, 0)
        goes_on = (free < wanted) & (there >= depth)
        if low is not None:  # the last one of a round that is among the suspected is above the floor, as the line is
            last = np.take_along_axis(after.scores, np.clip(free - 1, 0, after.ids.shape[1] - 1)[:, None], axis=1)[:, 0]
            goes_on &= (free == 0) | (last >= np.float32(low))
        ends[~goes_on] = depth
    return ends


def _short(candidates: Candidates, detector: Any, query: Query, wanted: Ids, low: float | None) -> Ids:
    """Rows whose list is full and holds fewer below the line than wanted, though deeper ones might be of use."""
    free = np.count_nonzero(candidates.filled & (ask(candidates, detector, query) < SUSPICION_THRESHOLD), axis=1)
    open_ended = candidates.ids[:, -1] >= 0
    if low is not None:
        open_ended &= candidates.scores[:, -1] >= np.float32(low)
    return np.flatnonzero((free < wanted) & open_ended)

"""Draws from all items in NumPy, with the same bits as the compiled loops `uniform.draw` and `weighted.draw`.

The compiled loops take seconds to compile the first time, which a few small draws are not worth. So a process begins
with these, and goes over to the compiled loops once it has drawn enough to pay for them.

Slot by slot, a row takes its first candidate, unless that is known or an earlier slot has it; then further candidates,
and after `uniform.TRIES` of them an exact draw from what is left. Here all rows are drawn at once, and then all rows
that still have such a slot are mended together, one slot of each at a time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import lower_bounds, nth_negatives
from naysay._slots import repeated
from naysay.kernels import csr, uniform, weighted
from naysay.kernels.compile import in_python, is_cached
from naysay.pools._numbers import Bits, Ids, below, below_wide, numbers, retries, row_states

# A process does so much work here, and then uses the compiled loop. The unit is one candidate of one slot, about
# 0.2 us. Work is counted, not measured, so that nothing depends on the speed of a machine.
_WORK = 1 << 22  # about a second, where compiling takes several
_WORK_IF_CACHED = 1 << 17  # loading a loop that was compiled before takes half a second, once in a process
_LARGEST_CALL = 1 << 20  # slots; the arrays of more would take hundreds of megabytes
_WORK_OF_A_STEP = 1024  # of one pass over arrays, however short they are
_WORK_OF_A_ROW = 128  # of what is done row by row in Python

_filter_bit, _bit_at = in_python(csr.filter_bit), in_python(csr.bit_at)


class _UsedUpError(Exception):
    """The budget is used up: the compiled loop pays from here on."""


class _Budget:
    """The work that this process may still do here instead of calling a compiled loop."""

    def __init__(self, loop: Callable[..., None]) -> None:
        self.loop = loop
        self.left: int | None = None  # not known until the first draw

    def spend(self, work: int) -> None:
        if self.left is None:
            self.left = _WORK_IF_CACHED if is_cached(self.loop) else _WORK
        self.left -= work
        if self.left < 0:
            raise _UsedUpError


_UNIFORM, _WEIGHTED = _Budget(uniform.draw), _Budget(weighted.draw)


def use_compiled_loops() -> None:
    """Use the compiled loops from now on, for benchmarks and tests."""
    _UNIFORM.left = _WEIGHTED.left = 0


def _within(budget: _Budget) -> Callable[[Callable[..., None]], Callable[..., bool]]:
    """Make a draw return whether it was made; False if it is time for the compiled loop."""

    def decorated(draw: Callable[..., None]) -> Callable[..., bool]:
        @wraps(draw)
        def made(*arguments: Any) -> bool:
            *_, out, _ = arguments
            if out.size > _LARGEST_CALL:
                budget.left = 0  # the loop is compiled for this draw, so that the next ones can use it
            try:
                budget.spend(_WORK_OF_A_STEP + out.size)
                draw(*arguments)
            except _UsedUpError:
                return False
            return True

        return made

    return decorated


@_within(_UNIFORM)
def draw_uniform(how: Any, rows: Any, known: Any, size: int, out: Ids, log_q: NDArray[np.float64]) -> None:
    """What `uniform.draw` does with the same arguments."""
    key, tries, repeat = how
    anchors, counts = rows
    draw = _Uniform(key, tries, anchors, known, size)
    free = draw.n_free
    if repeat:
        log_q[:, 0] = 1.0 / np.maximum(free, 1)
        wanted = np.where(free > 0, counts, 0)
        out[:] = draw.independent(wanted, out.shape[1])
        return
    wanted = np.minimum(counts, free)
    shuffled = 2 * wanted > free  # more than half: a random order of all of them
    out[:], _ = draw.distinct(np.where(shuffled, 0, wanted), out.shape[1])
    out[shuffled] = draw.shuffled(np.flatnonzero(shuffled), wanted[shuffled], out.shape[1])
    if log_q.shape[1]:
        log_q[:] = _distinct_log_q(wanted, free, out.shape[1])


@_within(_WEIGHTED)
def draw_weighted(how: Any, rows: Any, known: Any, tables: Any, out: Ids, chance: NDArray[np.float64]) -> None:
    """What `weighted.draw` does with the same arguments."""
    key, tries, repeat = how
    anchors, counts = rows
    draw = _Weighted(key, tries, anchors, known, tables)
    wanted = np.where(draw.free_weight > 0, counts, 0)
    if repeat:
        out[:] = draw.independent(wanted, out.shape[1])
    else:
        out[:], wanted = draw.distinct(wanted, out.shape[1])
    weights = np.where(out >= 0, draw.weights_of(out), 0)
    left = np.broadcast_to(draw.free_weight[:, None], out.shape)
    if not repeat:
        left = left - (np.cumsum(weights, axis=1) - weights)
    chance[:] = np.where(out >= 0, weights / np.where(out >= 0, left, 1), 1.0)


class _Draw(ABC):
    """One draw: a random state and a row of known ids for each row of the batch."""

    def __init__(self, key: np.uint64, tries: int, anchors: Ids, known: Any, size: int) -> None:
        self.indptr, self.indices, self.filter = known
        self.tries, self.anchors, self.size = tries, anchors, size
        self.states = row_states(key, len(anchors))
        self.starts, self.stops = self.indptr[anchors], self.indptr[anchors + 1]
        self.n_free = size - (self.stops - self.starts)

    budget: ClassVar[_Budget]
    by_rank: NDArray[np.bool_]  # (B,) rows in which most candidates would be known: they are drawn exactly at once

    @abstractmethod
    def candidates(self, bits: Bits) -> Ids:
        """Items from random bits, known or not."""

    @abstractmethod
    def exact(self, rows: Ids, bits: Bits) -> Ids:
        """Items that are not known in their rows, which ascend."""

    @abstractmethod
    def exact_without(self, row: int, taken: Ids, bits: Bits) -> int:
        """An item that is neither known in a row nor taken."""

    @abstractmethod
    def exact_attempt(self, rows: Ids) -> Any:
        """Which of a slot's random numbers `exact` uses, counted from the first of its further candidates."""

    def numbers(self, rows: Ids, slots: Ids) -> Bits:
        """The first random bits of slots."""
        return numbers(self.states[rows], slots)

    def retries(self, rows: Ids, slots: Ids, attempts: Any) -> Bits:
        """Further random bits of slots."""
        self.budget.spend(len(rows) + _WORK_OF_A_STEP)
        return retries(self.states[rows], slots, attempts)

    def is_known(self, rows: Ids, items: Ids) -> NDArray[np.bool_]:
        """Whether each item is known in its row: the filter first, then a binary search."""
        found = np.zeros(len(items), np.bool_)
        places = np.flatnonzero(self.starts[rows] < self.stops[rows])
        for multiplier in (csr.HASH_A, csr.HASH_B):
            starts, stops = self.starts[rows[places]], self.stops[rows[places]]
            bit = _filter_bit(items[places], stops - starts, multiplier)
            places = places[_bit_at(self.filter, starts, bit) > 0]
        starts, stops = self.starts[rows[places]], self.stops[rows[places]]
        at = lower_bounds(self.indices, starts, stops, items[places])
        inside = at < stops
        found[places[inside]] = self.indices[at[inside]] == items[places[inside]]
        return found

    def first(self, wanted: Ids, width: int) -> tuple[Ids, NDArray[np.bool_]]:
        """(B, width) the first candidates, -1 where none is wanted, and whether each is known."""
        line = np.full((len(wanted), width), -1, np.int64)
        known = np.zeros(line.shape, np.bool_)
        rows, slots = np.nonzero(np.arange(width) < wanted[:, None])
        bits = self.numbers(rows, slots)
        exact = self.by_rank[rows]
        line[rows[exact], slots[exact]] = self.exact(rows[exact], bits[exact])
        rows, slots, items = rows[~exact], slots[~exact], self.candidates(bits[~exact])
        line[rows, slots] = items
        known[rows, slots] = self.is_known(rows, items)
        return line, known

    def further(self, rows: Ids, slots: Ids, attempt: int) -> Ids:
        """Items that are not known, from the random numbers of the slots from `attempt` on."""
        items = np.empty(len(rows), np.int64)
        pending = np.flatnonzero(~self.by_rank[rows])
        for i in range(self.tries):
            if not len(pending):
                break
            tried = self.candidates(self.retries(rows[pending], slots[pending], attempt + i))
            items[pending] = tried
            pending = pending[self.is_known(rows[pending], tried)]
        exact = self.by_rank[rows]
        exact[pending] = True
        rows, slots = rows[exact], slots[exact]
        items[exact] = self.exact(rows, self.retries(rows, slots, attempt + self.exact_attempt(rows)))
        return items

    def independent(self, wanted: Ids, width: int) -> Ids:
        """(B, width) draws with replacement."""
        line, known = self.first(wanted, width)
        rows, slots = np.nonzero(known)
        line[rows, slots] = self.further(rows, slots, 0)
        return line

    def distinct(self, wanted: Ids, width: int) -> tuple[Ids, Ids]:
        """(B, width) draws without replacement, and how many each row has."""
        line, wrong = self.first(wanted, width)
        wrong |= repeated(line) & (line >= 0)
        places = np.arange(width)
        while wrong.any():
            self.budget.spend(wrong.size // 32)  # of looking for what is wrong: little for each slot
            rows = np.flatnonzero(wrong.any(axis=1))
            slots = wrong[rows].argmax(axis=1)
            used_up = self.used_up(rows, slots, line)
            for row, slot in zip(rows[used_up], slots[used_up], strict=True):
                wanted[row] = slot
                line[row, slot:] = -1
                wrong[row] = False
            rows, slots = rows[~used_up], slots[~used_up]
            items = self._mended(rows, slots, line)
            line[rows, slots] = items
            wrong[rows, slots] = False
            wrong[rows] |= (line[rows] == items[:, None]) & (places > slots[:, None])
        return line, wanted

    def used_up(self, rows: Ids, slots: Ids, line: Ids) -> NDArray[np.bool_]:
        """Whether nothing is left in a row after its earlier slots."""
        return np.zeros(len(rows), np.bool_)

    def _mended(self, rows: Ids, slots: Ids, line: Ids) -> Ids:
        """New items for one slot of each row, neither known nor in the row's earlier slots."""
        items = np.empty(len(rows), np.int64)
        earlier = np.where(np.arange(line.shape[1]) < slots[:, None], line[rows], -1)
        pending = np.arange(len(rows))
        for i in range(self.tries):
            if not len(pending):
                return items
            items[pending] = self.further(rows[pending], slots[pending], i * (self.tries + 1))
            pending = pending[(earlier[pending] == items[pending, None]).any(axis=1)]
        bits = self.retries(rows[pending], slots[pending], self.tries * (self.tries + 1))
        self.budget.spend(_WORK_OF_A_ROW * len(pending))
        for i, place in enumerate(pending):
            taken = np.sort(line[rows[place], : slots[place]])
            items[place] = self.exact_without(rows[place], taken, bits[i : i + 1])
        return items


@final
class _Uniform(_Draw):
    """All items are as likely."""

    budget = _UNIFORM

    def __init__(self, key: np.uint64, tries: int, anchors: Ids, known: Any, size: int) -> None:
        super().__init__(key, tries, anchors, known, size)
        self.by_rank = 2 * (self.stops - self.starts) > size

    def candidates(self, bits: Bits) -> Ids:
        return below(bits, self.size)

    def exact(self, rows: Ids, bits: Bits) -> Ids:
        return self._unknown(rows, below(bits, self.n_free[rows]))

    def exact_attempt(self, rows: Ids) -> Any:
        return self.tries

    def exact_without(self, row: int, taken: Ids, bits: Bits) -> int:
        start, stop = self.starts[row], self.stops[row]
        ranks_taken = taken - np.searchsorted(self.indices[start:stop], taken)
        rank = below(bits, self.n_free[row] - len(taken))
        for rank_taken in ranks_taken:
            rank += rank_taken <= rank
        return int(self._unknown(np.array([row]), rank)[0])

    def _unknown(self, rows: Ids, ranks: Ids) -> Ids:
        """The items of some ranks among those that are not known."""
        return nth_negatives(self.indptr, self.indices, self.size, self.anchors[rows], ranks)

    def shuffled(self, rows: Ids, wanted: Ids, width: int) -> Ids:
        """(rows, width) the first of a random order of all that is not known (Fisher and Yates)."""
        free = self.n_free[rows]
        order = np.tile(np.arange(free.max(initial=0)), (len(rows), 1))
        line = np.full((len(rows), width), -1, np.int64)
        for slot in range(wanted.max(initial=0)):
            at = np.flatnonzero(slot < wanted)
            self.budget.spend(_WORK_OF_A_STEP)
            bits = self.numbers(rows[at], np.full(len(at), slot))
            other = slot + below(bits, free[at] - slot)
            line[at, slot] = order[at, other]
            order[at, other] = order[at, slot]
        at, slots = np.nonzero(line >= 0)
        line[at, slots] = self._unknown(rows[at], line[at, slots])
        return line


@final
class _Weighted(_Draw):
    """Items by weight, as whole numbers; see `kernels.weighted`."""

    budget = _WEIGHTED

    def __init__(self, key: np.uint64, tries: int, anchors: Ids, known: Any, tables: Any) -> None:
        self.cumulative, self.alias, known_weight = tables
        super().__init__(key, tries, anchors, known, len(self.cumulative) - 1)
        total = self.cumulative[-1]
        self.free_weight = total - known_weight[anchors]
        self.by_rank = self.free_weight < total - self.free_weight

    def weights_of(self, items: Ids) -> Ids:
        """The weights of items."""
        return np.asarray(self.cumulative[items + 1] - self.cumulative[items])

    def candidates(self, bits: Bits) -> Ids:
        cells = below(bits, self.size)
        inside = bits * np.uint64(self.size) < self.alias[2 * cells]
        return np.where(inside, cells, self.alias[2 * cells + 1].astype(np.int64))

    def exact(self, rows: Ids, bits: Bits) -> Ids:
        weights = below_wide(bits, self.free_weight[rows])
        items = np.empty(len(rows), np.int64)
        different, firsts = np.unique(rows, return_index=True)
        self.budget.spend(_WORK_OF_A_ROW * len(different))
        ends = np.searchsorted(rows, different, side="right")
        for row, first, end in zip(different, firsts, ends, strict=True):
            items[first:end] = self._past(self._known_of(row), weights[first:end])
        return items

    def exact_attempt(self, rows: Ids) -> Any:
        return np.where(self.by_rank[rows], 0, self.tries)

    def exact_without(self, row: int, taken: Ids, bits: Bits) -> int:
        left = self.free_weight[row] - self.weights_of(taken).sum()
        skipped = np.sort(np.concatenate([self._known_of(row), taken]))
        return int(self._past(skipped, below_wide(bits, left))[0])

    def used_up(self, rows: Ids, slots: Ids, line: Ids) -> NDArray[np.bool_]:
        earlier = np.arange(line.shape[1]) < slots[:, None]
        weights = np.where(earlier, self.weights_of(line[rows]), 0)
        return np.asarray(self.free_weight[rows] == weights.sum(axis=1))

    def _known_of(self, row: int) -> Ids:
        return np.asarray(self.indices[self.starts[row] : self.stops[row]], np.int64)

    def _past(self, skipped: Ids, weights: Ids) -> Ids:
        """The items at some weights among those that are not skipped; the skipped ones ascend."""
        before = np.concatenate([[0], np.cumsum(self.weights_of(skipped))])
        passed = np.searchsorted(self.cumulative[skipped] - before[:-1], weights, side="right")
        return np.asarray(np.searchsorted(self.cumulative, weights + before[passed], side="right") - 1)


def _distinct_log_q(wanted: Ids, free: Ids, width: int) -> NDArray[np.float64]:
    """(B, width) -log(free - slot), 0 where nothing is wanted, computed like `uniform.fill_log_q`."""
    slots = np.arange(width)
    filled = slots < wanted[:, None]
    y = slots / np.where(filled, 2.0 * free[:, None] - slots, 1.0)
    z = y * y
    series = 2.0 * y * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9)))))
    few = wanted <= 0.1 * free
    log_q = _minus_log(free)[:, None] + series
    log_q[~few] = _minus_log(np.maximum(free[~few, None] - slots, 1))
    return np.where(filled, log_q, 0.0)


def _minus_log(numbers: Ids) -> NDArray[np.float64]:
    """-log of numbers by the C library, as in compiled loops: NumPy's own may differ in the last bit."""
    values, place = np.unique(np.maximum(numbers, 1), return_inverse=True)
    return -np.array([math.log(value) for value in values.tolist()])[place].reshape(numbers.shape)

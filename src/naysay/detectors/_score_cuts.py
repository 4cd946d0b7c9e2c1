"""Counts of scores at or above given values, and the value that leaves a given number of scores at or above it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._score_keys import Keys, rounded, sorted_keys, to_keys
from naysay.detectors.score_sketch import Runs, ScoreSketch

_MANY = 1 << 18  # keys that a second pass gathers before it joins equal ones


@dataclass(frozen=True, slots=True)
class Cut:
    """A value, and how many scores are at or above it."""

    value: float
    at_least: int


def count_at_least(blocks: Iterable[NDArray[Any]], values: NDArray[np.float64]) -> tuple[int, NDArray[np.int64]]:
    """How many scores there are, and how many of them are at or above each value; one pass, exact.

    A value is rounded to the precision of the scores first, as NumPy and torch compare an array with a number.
    """
    total, found = 0, np.zeros(len(values), np.int64)
    for block in blocks:
        keys = sorted_keys(to_keys(block))
        total += len(keys)
        found += len(keys) - np.searchsorted(keys, to_keys(rounded(values, block.dtype)))
    return total, found


def cuts(
    sketch: ScoreSketch, wanted: Sequence[int], blocks: Iterable[NDArray[Any]] | None, start: float
) -> tuple[list[Cut], int]:
    """For each wanted number, the lowest cut that leaves at most that many scores; and how many are at least `start`.

    With equal scores on both sides of the number, all of them stay below the cut: it moves up to the next score there
    is or, above the largest, to the next number of that precision.

    Args:
        sketch: Of all scores.
        wanted: Numbers from 0 to n.
        blocks: A second pass over the scores: then all is exact. Without one, exact up to the sketch's error.
    """
    runs, starts = sketch.runs(), sketch.keys_of([start])
    if blocks is None or not max(sketch.over, sketch.under):
        return [_kept_cut(sketch, runs, number) for number in wanted], int(runs.at_least(starts)[0])
    spans = [_Span(sketch, runs, number + 1) for number in wanted]
    lowest, at_start = min(span.first for span in spans), 0
    for block in blocks:
        keys = to_keys(block)
        at_start += int(np.count_nonzero(keys >= starts[0]))
        keys = keys[keys >= lowest]  # the few that can matter
        for span in spans:
            span.see(keys)
    return [span.cut(sketch, number) for span, number in zip(spans, wanted, strict=True)], at_start


def _end(sketch: ScoreSketch, number: int) -> Cut | None:
    """The cut that leaves all scores, or none: both ends are known exactly."""
    if number == sketch.n:
        return Cut(sketch.smallest, number)
    return None if number else Cut(sketch.score_of(sketch.ends[1] + 1), 0)


def _kept_cut(sketch: ScoreSketch, runs: Runs, number: int) -> Cut:
    """The cut among the keys that a sketch has kept."""
    last = runs.last_reached(number + 1)
    after = runs.after(last)
    key = last + 1 if after is None else after
    return _end(sketch, number) or Cut(sketch.score_of(key), int(runs.at_least(np.array([key], sketch.key_dtype))[0]))


class _Span:
    """The keys among which the score of a rank lies for certain, and what a second pass finds in them.

    They are few: those whose counts the sketch cannot tell from the rank. Equal ones are kept once, with their number.
    """

    def __init__(self, sketch: ScoreSketch, runs: Runs, rank: int) -> None:
        self.first = sketch.key_dtype.type(runs.last_reached(rank + sketch.over))
        self.last = sketch.key_dtype.type(runs.last_reached(rank - sketch.under))
        self.above = 0
        self.next_above: int | None = None
        self.kept: list[tuple[Keys, NDArray[np.int64]]] = []  # distinct keys of some blocks, and how many of each
        self.size = 0

    def see(self, keys: Keys) -> None:
        """Take note of a block."""
        over = keys[keys > self.last]
        if len(over):
            self.above += len(over)
            nearest = int(over.min())
            self.next_above = nearest if self.next_above is None else min(nearest, self.next_above)
        inside = keys[(keys >= self.first) & (keys <= self.last)]
        self.kept.append(np.unique(inside, return_counts=True))
        self.size += len(self.kept[-1][0])
        if self.size > max(_MANY, 2 * len(self.kept[0][0])):
            self.kept = [self.joined()]
            self.size = len(self.kept[0][0])

    def joined(self) -> tuple[Keys, NDArray[np.int64]]:
        """The keys of all blocks so far, each once, and how many of each."""
        keys, place = np.unique(np.concatenate([keys for keys, _ in self.kept]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, place, np.concatenate([counts for _, counts in self.kept]))
        return keys, counts

    def cut(self, sketch: ScoreSketch, number: int) -> Cut:
        """The exact cut, after all blocks."""
        if end := _end(sketch, number):
            return end
        keys, counts = self.joined()
        reached = self.above + np.cumsum(counts[::-1])[::-1]
        last = int(np.count_nonzero(reached > number)) - 1  # the largest key that too many scores reach
        if last + 1 < len(keys):
            return Cut(sketch.score_of(int(keys[last + 1])), int(reached[last + 1]))
        return Cut(sketch.score_of(int(keys[last]) + 1 if self.next_above is None else self.next_above), self.above)

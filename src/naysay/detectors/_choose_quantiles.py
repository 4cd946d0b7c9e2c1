"""Thresholds as quantiles: those that leave a given number of negatives at or above them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors._score_blocks import rounded
from naysay.detectors._score_inputs import open_scores
from naysay.detectors._threshold_tables import NAMED, Choice, budget, check_differ, counted, note_of_ties
from naysay.detectors.score_sketch import Runs, ScoreSketch


@dataclass(frozen=True, slots=True)
class Cut:
    """A value, and how many scores are at or above it."""

    value: float
    at_least: int


def choose_by_quantiles(
    scores: Any, column: str | None, positives: int, false: Fraction, hard: Fraction, start: float
) -> tuple[Choice, float]:
    """The choice and its rank error, which is 0 where the scores could be read twice or fit into the sketch."""
    sketch, blocks = _sketched(scores, column)
    if not sketch.n:
        raise_invalid("scores", "at least one score", "none")
    check_differ(sketch.n, sketch.smallest, sketch.largest)
    pairs = sketch.n + positives
    allowed = [budget(share, pairs) for share in (false, false + hard)]
    if allowed[1] > sketch.n:
        rule = f"at most {sketch.n / pairs:.4g} with `false_share`, as negatives are {sketch.n} of {pairs} pairs"
        raise_invalid("hard_share", rule, f"{float(false + hard):g}")
    (high, low), at_start = cuts(sketch, allowed, blocks, start)
    error = 0.0 if blocks is not None else sketch.rank_error
    by_high = counted([high.value], at_start, high.at_least, sketch.n, positives)
    by_low = counted([low.value], low.at_least, high.at_least, sketch.n, positives)
    notes = []
    if error:
        notes.append(
            f"Thresholds and counts come from a sketch: a count may be wrong by {error:.2g} of the scores. "
            "Counts of a grid, of arrays and of files are exact."
        )
    for name, cut, number in zip(("high", "low"), (high, low), allowed, strict=True):
        if not number:
            notes.append(f"The share is less than one of {pairs} pairs, so no negative is {NAMED[name]}.")
        elif not error and cut.at_least < 0.9 * number:
            notes.append(note_of_ties("", name, cut.at_least, number))
    return Choice(low.value, high.value, by_high, by_low, tuple(notes)), error


def _sketched(scores: Any, column: str | None) -> tuple[ScoreSketch, Any]:
    """A sketch of the scores, and a second pass over them where there can be one."""
    if isinstance(scores, ScoreSketch):
        if column is not None:
            raise_invalid("column", "left out, unless scores is a .parquet file", repr(column))
        return scores, None
    blocks, sketch = open_scores(scores, column), ScoreSketch()
    for block in blocks.flat():
        sketch.add(block)
    return sketch, blocks.flat() if blocks.rereadable else None


def cuts(
    sketch: ScoreSketch, numbers: Sequence[int], blocks: Iterable[NDArray[Any]] | None, start: float
) -> tuple[list[Cut], int]:
    """For each number, the lowest cut that leaves at most that many scores; and how many are at least `start`.

    With equal scores on both sides of the number, all of them stay below the cut: it is the next larger score or, above
    the largest, the next float of that precision.

    Args:
        sketch: A sketch of all scores.
        numbers: Numbers from 0 to n.
        blocks: A second pass over the scores, for an exact result. Without one, it is exact up to the sketch's error.
        start: A value, rounded to the precision of the scores.
    """
    runs, start_value = sketch.runs(), rounded(start, sketch.dtype)
    over, under = (sketch.over, sketch.under) if blocks is not None else (0, 0)
    weighted = ((block, 1) for block in blocks) if blocks is not None and max(over, under) else runs.runs
    spans = [_Span(runs, number, over, under) for number in numbers]
    lowest, at_start = min(span.first for span in spans), 0
    for scores, weight in weighted:
        at_start += weight * int(np.count_nonzero(scores >= start_value))
        near = scores[scores >= lowest] + scores.dtype.type(0)  # -0 + 0 is 0
        for span in spans:
            span.add(near, weight)
    ends = {sketch.n: Cut(sketch.smallest, sketch.n), 0: _next_float(sketch.largest, sketch.dtype)}
    return [ends.get(span.number) or span.cut() for span in spans], at_start


def _next_float(score: float, dtype: np.dtype[Any]) -> Cut:
    """The cut right above the largest score."""
    with np.errstate(over="ignore"):  # above the largest float comes infinity
        return Cut(float(np.nextafter(dtype.type(score), dtype.type(inf))), 0)


class _Span:
    """The range of scores in which the one with a given rank lies for certain, and what a pass finds in it.

    Between the ends of the range are at most 2 (over + under) scores. Equal scores of a block are kept once, with their
    number, so that many scores equal to an end take no memory.
    """

    def __init__(self, runs: Runs, number: int, over: int, under: int) -> None:
        self.number = number
        self.first = runs.largest_reached_by(number + 1 + over)
        self.last = runs.largest_reached_by(number + 1 - under)
        self.above = 0
        self.next_above: Any = None
        self.inside: list[tuple[NDArray[Any], NDArray[np.int64]]] = []  # distinct scores of each block, with counts

    def add(self, scores: NDArray[Any], weight: int) -> None:
        """Count the scores of a block, each with the weight of `weight` scores."""
        larger = scores[scores > self.last]
        if len(larger):
            self.above += weight * len(larger)
            self.next_above = larger.min() if self.next_above is None else min(larger.min(), self.next_above)
        values, counts = np.unique(scores[(scores >= self.first) & (scores <= self.last)], return_counts=True)
        self.inside.append((values, weight * counts))

    def cut(self) -> Cut:
        """The lowest cut that at most `number` scores reach, after all blocks."""
        values, counts = (np.concatenate(parts) for parts in zip(*self.inside, strict=True))
        scores, place = np.unique(values, return_inverse=True)
        reached = self.above + np.cumsum(np.bincount(place, counts)[::-1])[::-1]
        last = int(np.count_nonzero(reached > self.number)) - 1  # the place of the largest score that too many reach
        if last + 1 < len(scores):
            return Cut(float(scores[last + 1]), int(reached[last + 1]))
        if self.next_above is not None:
            return Cut(float(self.next_above), self.above)
        return _next_float(scores[last], scores.dtype)

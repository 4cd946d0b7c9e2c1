"""Thresholds from a grid, by quantiles of all scores, or by quantiles of each anchor's own scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_range, check_whole, first_bad, raise_invalid, whole_numbers
from naysay.detectors._scores import ScoreBlocks, open_scores, rounded
from naysay.detectors._threshold_tables import NAMED, Choice, Counts, budget, check_differ, counted, note_of_ties
from naysay.detectors.score_sketch import Runs, ScoreSketch
from naysay.quantity.separation import Floats


def choose_from_grid(
    blocks: ScoreBlocks, grid: tuple[Floats, Floats], positives: int, false: Fraction, hard: Fraction, start: float
) -> Choice:
    """Count at every value in one pass, then choose."""
    lows, highs = grid
    values = np.concatenate([lows, highs, [start]])
    negatives, smallest, largest, at_least = 0, inf, -inf, np.zeros(len(values), np.int64)
    for block in blocks.flat():
        if block.size:
            ordered = np.sort(block, kind="stable" if block.itemsize == 2 else None)
            at_least += len(block) - np.searchsorted(ordered, rounded(values, block.dtype))
            negatives += len(block)
            smallest, largest = min(smallest, float(ordered[0])), max(largest, float(ordered[-1]))
    if not negatives:
        raise_invalid("scores", "at least one score", "none")
    check_differ(negatives, smallest, largest)
    at_lows, at_highs, at_start = at_least[: len(lows)], at_least[len(lows) : -1], at_least[-1]
    pairs = negatives + positives
    place = _high(highs, at_highs, pairs, false)
    high, at_high = float(highs[place]), int(at_highs[place])
    low = _low(lows, np.maximum(at_lows - at_high, 0), pairs, hard, high)
    notes = []
    if high == highs.min() and len(highs) > 1:
        notes.append(f"high is the smallest value of its grid ({high:g}): a smaller one may fit the false share too.")
    if low == lows.max() and len(lows) > 1:
        notes.append(f"low is the largest value of its grid ({low:g}): a larger one may fit the hard share too.")
    return Choice(
        low,
        high,
        counted(highs, at_start, at_highs, negatives, positives),
        counted(lows, at_lows, at_high, negatives, positives),
        tuple(notes),
    )


def _high(highs: Floats, at_highs: Counts, pairs: int, false: Fraction) -> int:
    """The place of the smallest value with at most the false share."""
    fits = at_highs <= budget(false, pairs)
    if not fits.any():
        best = int(highs.argmax())
        share = f"{at_highs[best] / pairs:.4g}, the share at the largest high value {highs[best]:g}"
        raise_invalid("false_share", f"at least {share}", float(false), "Add higher values to the grid.")
    return int(np.where(fits, highs, np.inf).argmin())


def _low(lows: Floats, hards: Counts, pairs: int, hard: Fraction, high: float) -> float:
    """The largest value with at least the hard share, not above high."""
    below = lows <= high
    if not below.any():
        rule = f"a grid with a low value at or below the chosen high, {high:g}"
        raise_invalid("grid", rule, f"low values from {lows.min():g}")
    fits = below & (hards >= ceil(hard * pairs))
    if not fits.any():
        share = f"{hards[lows.argmin()] / pairs:.4g}, the share at the smallest low value {lows.min():g}"
        raise_invalid("hard_share", f"at most {share}", float(hard), "Add lower values to the grid.")
    return float(lows[fits].max())


@dataclass(frozen=True, slots=True)
class Quantile:
    """A value, and how many scores are at or above it."""

    value: float
    at_least: int


def choose_by_quantiles(
    scores: Any, column: str | None, positives: int, false: Fraction, hard: Fraction, start: float
) -> Choice:
    """By quantiles of all scores, exact where they could be read twice or fit into the sketch."""
    sketch, blocks = _sketched(scores, column)
    if not sketch.n:
        raise_invalid("scores", "at least one score", "none")
    check_differ(sketch.n, sketch.smallest, sketch.largest)
    pairs = sketch.n + positives
    allowed = [budget(share, pairs) for share in (false, false + hard)]
    if allowed[1] > sketch.n:
        rule = f"at most {sketch.n / pairs:.4g} with `false_share`, as negatives are {sketch.n} of {pairs} pairs"
        raise_invalid("hard_share", rule, f"{float(false + hard):g}")
    (high, low), at_start = quantiles(sketch, allowed, blocks, start)
    error = 0.0 if blocks is not None else sketch.rank_error
    by_high = counted([high.value], at_start, high.at_least, sketch.n, positives)
    by_low = counted([low.value], low.at_least, high.at_least, sketch.n, positives)
    notes = []
    if error:
        notes.append(
            f"Thresholds and counts come from a sketch: a count may be wrong by {error:.2g} of the scores. "
            "Counts of a grid, of arrays and of files are exact."
        )
    for name, quantile, number in zip(("high", "low"), (high, low), allowed, strict=True):
        if not number:
            notes.append(f"The share is less than one of {pairs} pairs, so no negative is {NAMED[name]}.")
        elif not error and quantile.at_least < 0.9 * number:
            notes.append(note_of_ties("", name, quantile.at_least, number))
    return Choice(low.value, high.value, by_high, by_low, tuple(notes), error)


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


def quantiles(
    sketch: ScoreSketch, numbers: Sequence[int], blocks: Iterable[NDArray[Any]] | None, start: float
) -> tuple[list[Quantile], int]:
    """For each number, the lowest value that at most that many scores reach; and how many are at least `start`.

    If scores are equal on both sides of the number, the value is the next larger score, or above the largest the next
    float of its precision. `blocks` are a second pass over the scores, for an exact result; without one it is exact up
    to the sketch's error.
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
    ends = {sketch.n: Quantile(sketch.smallest, sketch.n), 0: _next_float(sketch.largest, sketch.dtype)}
    return [ends.get(span.number) or span.quantile() for span in spans], at_start


def _next_float(score: float, dtype: np.dtype[Any]) -> Quantile:
    """The value right above the largest score."""
    with np.errstate(over="ignore"):  # above the largest float comes infinity
        return Quantile(float(np.nextafter(dtype.type(score), dtype.type(inf))), 0)


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

    def quantile(self) -> Quantile:
        """The lowest value that at most `number` scores reach, after all blocks."""
        values, counts = (np.concatenate(parts) for parts in zip(*self.inside, strict=True))
        scores, place = np.unique(values, return_inverse=True)
        reached = self.above + np.cumsum(np.bincount(place, counts)[::-1])[::-1]
        last = int(np.count_nonzero(reached > self.number)) - 1  # the place of the largest score that too many reach
        if last + 1 < len(scores):
            return Quantile(float(scores[last + 1]), int(reached[last + 1]))
        if self.next_above is not None:
            return Quantile(float(self.next_above), self.above)
        return _next_float(scores[last], scores.dtype)


def choose_by_anchor(blocks: ScoreBlocks, n_positives: Any, false: Fraction, hard: Fraction, start: float) -> Choice:
    """A pair of thresholds for each row. `n_positives` is one number, or (n_anchors,). Cost: a sort of each row."""
    known = _known(n_positives, blocks.rows)
    found: list[tuple[NDArray[Any], ...]] = []
    done = 0
    for scores in blocks.arrays():
        if scores.ndim != 2 or not scores.shape[1]:
            rule = "of shape (anchors, n) with n of at least 1, for scope 'anchor'"
            raise_invalid("scores", rule, f"shape {scores.shape}")
        rows, width = scores.shape
        positives = known[done : done + rows] if known.ndim else np.full(rows, known)
        if len(positives) < rows:
            raise_invalid("n_positives", "a number, or one for each row of scores", f"{len(known)} for more rows")
        allowed = [_budgets(share, width + positives) for share in (false, false + hard)]
        if (allowed[1] > width).any():
            rule = f"at most what the {width} negatives of an anchor are of its pairs"
            got = f"a count of {first_bad(allowed[1], allowed[1] > width)}"
            raise_invalid("hard_share", rule, got, "Lower the shares or `n_positives`.")
        ordered = np.sort(scores, axis=1)
        high, at_high = _cut_rows(ordered, allowed[0])
        low, at_low = _cut_rows(ordered, allowed[1])
        at_start = np.count_nonzero(scores >= rounded(start, scores.dtype), axis=1)
        found.append((low, high, at_low, at_high, at_start, np.full(rows, width), positives, *allowed))
        done += rows
    if not done:
        raise_invalid("scores", "at least one score", "none")
    if known.ndim and len(known) != done:
        raise_invalid("n_positives", f"a number, or one for each of {done} rows", f"{len(known)} numbers")
    low, high, at_low, at_high, at_start, width, positives, *allowed = map(np.concatenate, zip(*found, strict=True))
    low, high = low.astype(np.float64), high.astype(np.float64)
    low.flags.writeable = high.flags.writeable = False
    by_high = counted(high, at_start, at_high, width, positives)
    by_low = counted(low, at_low, at_high, width, positives)
    return Choice(low, high, by_high, by_low, tuple(_notes((at_high, at_low), allowed)))


def _known(n_positives: Any, rows: int | None) -> Counts:
    """() or (n_anchors,): how many positives each row has."""
    if np.ndim(n_positives) == 0:
        return np.array(check_whole("n_positives", n_positives, 0))
    known = whole_numbers("n_positives", n_positives, "(n_anchors,)").astype(np.int64)
    check_range("n_positives", known, 1 << 62, "pairs")
    if rows is not None and len(known) != rows:
        raise_invalid("n_positives", f"a number, or one for each of {rows} rows", f"{len(known)} numbers")
    return known


def _budgets(share: Fraction, pairs: Counts) -> Counts:
    """floor(share pairs) for each row; rows with as many pairs are worked out together."""
    sizes, place = np.unique(pairs, return_inverse=True)
    return np.array([budget(share, size) for size in sizes.tolist()], np.int64)[place]


def _cut_rows(ordered: NDArray[Any], number: Counts) -> tuple[NDArray[Any], Counts]:
    """For each row the lowest value that at most `number` of its scores reach, and how many do; see `quantiles`."""
    rows, width = np.arange(len(ordered)), ordered.shape[1]
    last = ordered[rows, np.maximum(width - 1 - number, 0)]  # the largest score that too many reach
    above = np.where(number < width, np.count_nonzero(ordered > last[:, None], axis=1), width)
    with np.errstate(over="ignore"):  # above the largest float comes infinity
        beyond = np.nextafter(last, last.dtype.type(np.inf))
    return np.where(above > 0, ordered[rows, width - np.maximum(above, 1)], beyond), above


def _notes(reach: Sequence[Counts], allowed: Sequence[Counts]) -> list[str]:
    """What makes the choice less certain. Both arguments have an array (n_anchors,) for high and one for low."""
    if not allowed[1].any():
        return ["The shares are less than one pair of any anchor, so all negatives are easy: score more pairs."]
    notes = []
    if not allowed[0].any():
        notes.append("The false share is less than one pair of any anchor, so no negative is false.")
    for name, fewer, limit in zip(("high", "low"), reach, allowed, strict=True):
        tied = np.count_nonzero(fewer < 0.9 * limit)
        if tied:
            notes.append(note_of_ties(f" in {tied} of {len(limit)} anchors", name, int(fewer.sum()), int(limit.sum())))
    return notes

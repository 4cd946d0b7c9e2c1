"""Thresholds from a grid of values for all anchors, and by quantiles of each anchor's own scores."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_range, check_whole, first_bad, raise_invalid, whole_numbers
from naysay.detectors._score_blocks import ScoreBlocks, rounded
from naysay.detectors._threshold_tables import Choice, Counts, budget, check_differ, counted, note_of_ties
from naysay.quantity.separation import Floats


def choose_from_grid(
    blocks: ScoreBlocks,
    grid: tuple[Floats, Floats],
    positives: int,
    false: Fraction,
    hard: Fraction,
    start: float,
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
    """For each row the lowest value that at most `number` of its scores reach, and how many do; see `cuts`."""
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

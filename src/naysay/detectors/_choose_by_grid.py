"""Thresholds from a grid: the smallest high and the largest low whose shares fit, from exact counts of one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors._score_blocks import ScoreBlocks
from naysay.detectors._score_cuts import count_at_least
from naysay.detectors._threshold_rows import Choice, Counts, budget, check_differ, counted
from naysay.quantity._weight import Floats


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
    ends: list[float] = []
    negatives, at_least = count_at_least(_watched(blocks.flat(), ends), np.concatenate([lows, highs, [start]]))
    if not negatives:
        raise_invalid("scores", "at least one score", "none")
    check_differ(negatives, *ends)
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


def _watched(blocks: Iterable[NDArray[Any]], ends: list[float]) -> Iterator[NDArray[Any]]:
    """The same blocks; `ends` becomes the smallest and the largest score of them all."""
    for block in blocks:
        if block.size:
            ends[:] = [min([*ends[:1], float(block.min())]), max([*ends[1:], float(block.max())])]
        yield block


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
        least = float(lows.min())
        share = f"{hards[lows.argmin()] / pairs:.4g}, the share at the smallest low value {least:g}"
        raise_invalid("hard_share", f"at most {share}", float(hard), "Add lower values to the grid.")
    return float(lows[fits].max())

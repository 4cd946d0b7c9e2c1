"""Thresholds of each anchor by its own scores: quantiles of the rows of (anchors, n)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_range, check_whole, first_bad, raise_invalid, whole_numbers
from naysay.detectors._score_blocks import ScoreBlocks
from naysay.detectors._score_keys import rounded
from naysay.detectors._threshold_rows import Choice, Counts, budget, counted, note_of_ties


def choose_by_anchor(blocks: ScoreBlocks, n_positives: Any, false: Fraction, hard: Fraction, start: float) -> Choice:
    """A pair of thresholds for each row; `n_positives` is a number for every row, or one for each.

    Cost: a sort of each row.
    """
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
            rule = f"at most what the {width} negatives of an anchor can be of all its pairs"
            got = f"room for {first_bad(allowed[1], allowed[1] > width)}"
            raise_invalid("hard_share", rule, got, "Lower the shares or n_positives.")
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
    """For each row the lowest value that at most `number` of its scores reach, and how many do; see `scores.cuts`."""
    rows, width = np.arange(len(ordered)), ordered.shape[1]
    last = ordered[rows, np.maximum(width - 1 - number, 0)]  # the largest score that too many reach
    above = np.where(number < width, np.count_nonzero(ordered > last[:, None], axis=1), width)
    with np.errstate(over="ignore"):  # above the largest float comes infinity
        beyond = np.nextafter(last, last.dtype.type(np.inf))
    return np.where(above > 0, ordered[rows, width - np.maximum(above, 1)], beyond), above


def _notes(reach: Sequence[Counts], allowed: Sequence[Counts]) -> list[str]:
    """What makes the choice less sure; both are (n_anchors,) for high and for low."""
    if not allowed[1].any():
        return ["The shares are less than one pair of any anchor, so all negatives are easy: score more pairs."]
    notes = []
    if not allowed[0].any():
        notes.append("The false share is less than one pair of any anchor, so no negative is false.")
    for name, fewer, most in zip(("high", "low"), reach, allowed, strict=True):
        tied = np.count_nonzero(fewer < 0.9 * most)
        if tied:
            notes.append(note_of_ties(f" in {tied} of {len(most)} anchors", name, int(fewer.sum()), int(most.sum())))
    return notes

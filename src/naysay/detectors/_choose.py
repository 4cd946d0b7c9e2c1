"""Thresholds from a grid, by quantiles of all scores, or by quantiles of each anchor's own scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, floor, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats
from naysay.checks import check_range, check_whole, first_bad, raise_invalid, whole_numbers
from naysay.detectors._scores import ScoreBlocks, open_scores, rounded, sorted_scores
from naysay.detectors._threshold_tables import Choice, Counts, counted
from naysay.detectors.score_sketch import ScoreSketch, reached_by

_NAMED = {"high": "false", "low": "false or hard"}  # what a negative is that reaches a threshold


def _check_scores(n: int, smallest: float, largest: float) -> None:
    """Raise if there are no scores, or if all are equal: no threshold separates them."""
    if not n:
        raise_invalid("scores", "at least one score", "none")
    if smallest == largest:
        raise_invalid("scores", "of more than one value", f"{n} times {smallest:g}", "Is the encoder trained?")


def _note_of_ties(where: str, name: str, reach: int, allowed: int) -> str:
    """The note that equal scores keep negatives below `name`, which is high or low."""
    none = "" if reach else f", so no negative is {_NAMED[name]}"
    return f"Equal scores{where}: {reach} negatives reach {name}, where {allowed} were allowed{none}."


# ---- a grid ---------------------------------------------------------------------------------------------


def choose_from_grid(
    blocks: ScoreBlocks, grid: tuple[Floats, Floats], positives: int, false: Fraction, hard: Fraction, start: float
) -> Choice:
    """Count at every value in one pass, then choose."""
    lows, highs = grid
    values = np.concatenate([lows, highs, [start]])
    negatives, smallest, largest, at_least = 0, inf, -inf, np.zeros(len(values), np.int64)
    for block in blocks.flat():
        if block.size:
            ordered = sorted_scores(block)
            at_least += len(block) - np.searchsorted(ordered, rounded(values, block.dtype))
            negatives += len(block)
            smallest, largest = min(smallest, float(ordered[0])), max(largest, float(ordered[-1]))
    _check_scores(negatives, smallest, largest)
    at_lows, at_highs, at_start = at_least[: len(lows)], at_least[len(lows) : -1], at_least[-1]
    pairs = negatives + positives
    fits = at_highs <= floor(false * pairs)
    if not fits.any():
        best = int(highs.argmax())
        share = f"{at_highs[best] / pairs:.4g}, the share at the largest high value {highs[best]:g}"
        raise_invalid("false_share", f"at least {share}", float(false), "Add higher values to the grid.")
    place = int(np.where(fits, highs, np.inf).argmin())
    high, at_high = float(highs[place]), int(at_highs[place])
    low = _low(lows, np.maximum(at_lows - at_high, 0), pairs, hard, high)
    notes = []
    if high == highs.min() and len(highs) > 1:
        notes.append(f"high is the smallest value of its grid ({high:g}): a smaller one may fit the false share too.")
    if low == lows.max() and len(lows) > 1:
        notes.append(f"low is the largest value of its grid ({low:g}): a larger one may fit the hard share too.")
    by_high = counted(highs, at_start, at_highs, negatives, positives)
    return Choice(low, high, by_high, counted(lows, at_lows, at_high, negatives, positives), tuple(notes))


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


# ---- quantiles of all scores ----------------------------------------------------------------------------


def choose_by_quantiles(
    scores: Any, column: str | None, positives: int, false: Fraction, hard: Fraction, start: float
) -> Choice:
    """By quantiles of all scores, exact where they could be read twice or fit into the sketch."""
    blocks = None
    if isinstance(scores, ScoreSketch):
        if column is not None:
            raise_invalid("column", "left out, unless scores is a .parquet file", repr(column))
        sketch = scores
    else:
        blocks, sketch = open_scores(scores, column), ScoreSketch()
        for block in blocks.flat():
            sketch.add(block)
    _check_scores(sketch.n, *((sketch.smallest, sketch.largest) if sketch.n else (inf, -inf)))
    pairs = sketch.n + positives
    allowed = [floor(share * pairs) for share in (false, false + hard)]
    if allowed[1] > sketch.n:
        rule = f"at most {sketch.n / pairs:.4g} with `false_share`, as negatives are {sketch.n} of {pairs} pairs"
        raise_invalid("hard_share", rule, f"{float(false + hard):g}")
    again = blocks.flat() if blocks is not None and blocks.rereadable else None
    error = sketch.rank_error if again is None else 0.0
    if again is not None and sketch.rank_error:
        values, reached, at_start = near_quantiles(sketch, again, allowed, start)
    else:
        (values, reached), at_start = sketch.kept(), int(sketch.at_least(start))
    (high, at_high), (low, at_low) = (quantile(sketch, values, reached, number) for number in allowed)
    notes = []
    if error:
        notes.append(
            f"Thresholds and counts come from a sketch: a count may be wrong by {error:.2g} of the scores. "
            "Counts of a grid, of arrays and of files are exact."
        )
    for name, reach, number in zip(("high", "low"), (at_high, at_low), allowed, strict=True):
        if not number:
            notes.append(f"The share is less than one of {pairs} pairs, so no negative is {_NAMED[name]}.")
        elif not error and reach < 0.9 * number:
            notes.append(_note_of_ties("", name, reach, number))
    by_high = counted([high], at_start, at_high, sketch.n, positives)
    return Choice(low, high, by_high, counted([low], at_low, at_high, sketch.n, positives), tuple(notes), error)


def near_quantiles(
    sketch: ScoreSketch, blocks: Iterable[NDArray[Any]], numbers: Sequence[int], start: float
) -> tuple[NDArray[Any], Counts, int]:
    """The scores of a second pass near each quantile, how many scores reach each of them, and how many reach `start`.

    By the sketch and its error, the score that `number` others exceed lies between two kept scores, with at most
    2 (over + under) scores between them. Those are kept, equal ones of a block once. Of the scores above such a range
    each block gives the smallest and their number.
    """
    values, reached = sketch.kept()
    ends = np.concatenate([[-inf], values, [inf]], dtype=sketch.dtype, casting="same_kind")
    counts = np.concatenate([[inf], reached, [0]])
    limits = [(number + 1 + sketch.over, number + 1 - sketch.under) for number in numbers]
    spans = [[ends[np.count_nonzero(counts >= limit) - 1] for limit in pair] for pair in limits]
    edges = np.unique([edge for first, last in spans for edge in (first, np.nextafter(last, ends[-1]))])
    whole = [any(first <= edge <= last for first, last in spans) for edge in edges]
    start_value, at_start = rounded(start, sketch.dtype), 0
    kept: list[tuple[NDArray[Any], Counts]] = []
    for block in blocks:
        at_start += int(np.count_nonzero(block >= start_value))
        ordered = sorted_scores(block[block >= edges[0]] + block.dtype.type(0))  # -0 + 0 is 0
        for part, every in zip(np.split(ordered, np.searchsorted(ordered, edges[1:])), whole, strict=True):
            if every:
                kept.append(np.unique(part, return_counts=True))
            elif len(part):
                kept.append((part[:1], np.array([len(part)])))
    near, weights = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    return *reached_by(near, weights), at_start


def quantile(sketch: ScoreSketch, values: NDArray[Any], reached: Counts, number: int) -> tuple[float, int]:
    """The lowest value that at most `number` scores reach, and how many do.

    If scores are equal on both sides of the number, it is the next larger score, or the next float of the scores'
    precision after the largest.
    """
    if number == sketch.n:
        return sketch.smallest, sketch.n
    place = int(np.count_nonzero(reached > number))
    if number and place < len(values):
        return float(values[place]), int(reached[place])
    last = values.dtype.type(values[-1] if number else sketch.largest)
    with np.errstate(over="ignore"):  # above the largest float comes infinity
        return float(np.nextafter(last, values.dtype.type(inf))), 0


# ---- quantiles of each anchor ---------------------------------------------------------------------------


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
        sizes, place = np.unique(width + positives, return_inverse=True)
        shares = (false, false + hard)
        allowed = [np.array([floor(share * size) for size in sizes.tolist()], np.int64)[place] for share in shares]
        if (allowed[1] > width).any():
            rule = f"at most what the {width} negatives of an anchor are of its pairs"
            got = f"a count of {first_bad(allowed[1], allowed[1] > width)}"
            raise_invalid("hard_share", rule, got, "Lower the shares or `n_positives`.")
        ordered = np.sort(scores, axis=1)
        (high, at_high), (low, at_low) = (_cut_rows(ordered, number) for number in allowed)
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
    return Choice(low, high, by_high, by_low, tuple(_notes_of_anchors((at_high, at_low), allowed)))


def _known(n_positives: Any, rows: int | None) -> Counts:
    """() or (n_anchors,): how many positives each row has."""
    if np.ndim(n_positives) == 0:
        return np.array(check_whole("n_positives", n_positives, 0))
    known = whole_numbers("n_positives", n_positives, "(n_anchors,)").astype(np.int64)
    check_range("n_positives", known, 1 << 62, "pairs")
    if rows is not None and len(known) != rows:
        raise_invalid("n_positives", f"a number, or one for each of {rows} rows", f"{len(known)} numbers")
    return known


def _cut_rows(ordered: NDArray[Any], number: Counts) -> tuple[NDArray[Any], Counts]:
    """For each row the lowest value that at most `number` of its scores reach, and how many do; see `quantile`."""
    rows, width = np.arange(len(ordered)), ordered.shape[1]
    last = ordered[rows, np.maximum(width - 1 - number, 0)]  # the largest score that too many reach
    above = np.where(number < width, np.count_nonzero(ordered > last[:, None], axis=1), width)
    with np.errstate(over="ignore"):  # above the largest float comes infinity
        beyond = np.nextafter(last, last.dtype.type(np.inf))
    return np.where(above > 0, ordered[rows, width - np.maximum(above, 1)], beyond), above


def _notes_of_anchors(reach: Sequence[Counts], allowed: Sequence[Counts]) -> list[str]:
    """What makes the choice less certain. Both arguments have an array (n_anchors,) for high and one for low."""
    if not allowed[1].any():
        return ["The shares are less than one pair of any anchor, so all negatives are easy: score more pairs."]
    notes = []
    if not allowed[0].any():
        notes.append("The false share is less than one pair of any anchor, so no negative is false.")
    for name, fewer, limit in zip(("high", "low"), reach, allowed, strict=True):
        tied = np.count_nonzero(fewer < 0.9 * limit)
        if tied:
            notes.append(_note_of_ties(f" in {tied} of {len(limit)} anchors", name, int(fewer.sum()), int(limit.sum())))
    return notes

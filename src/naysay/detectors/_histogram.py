"""A histogram of scores from their sketch, and its drawing in characters with the two thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._threshold_text import number
from naysay.detectors.score_sketch import ScoreSketch
from naysay.quantity._terminal import BLOCK, PLAIN, Marks
from naysay.quantity._weight import Floats

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_HALVES = "    ####" + "#"  # ASCII has no part of a bar: from half a cell on it is a whole one


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Scores in bins of equal width: edges (b + 1,) that rise, and counts (b,)."""

    edges: Floats
    counts: NDArray[np.int64]


def histogram(sketch: ScoreSketch, bins: int) -> Histogram:
    """All scores of the sketch in `bins` bins, as exactly as it counts; the last bin includes its upper edge."""
    low, high = sketch.smallest, sketch.largest
    if low == high:
        low, high = low - max(abs(low), 1) / 2, high + max(abs(high), 1) / 2
    edges = np.linspace(low, high, bins + 1)
    at_least = sketch.at_least(edges)
    at_least[0], at_least[-1] = sketch.n, 0
    return Histogram(edges, -np.diff(at_least))


def column_of(shown: Histogram, value: float) -> int:
    """The bin in which a value stands; outside, the nearest."""
    return int(np.clip(np.searchsorted(shown.edges, value, side="right") - 1, 0, len(shown.counts) - 1))


def draw(shown: Histogram, cuts: tuple[float, ...], *, height: int = 9, marks: Marks = BLOCK) -> list[str]:
    """Lines: bars as high as the logarithm of their counts, a line for each cut, the axis, its ends, and the marks."""
    parts = _HALVES if marks is PLAIN else _EIGHTHS
    tall = np.log1p(shown.counts) / np.log1p(max(shown.counts.max(), 1)) * 8 * height
    eighths = np.where(shown.counts > 0, np.maximum(np.round(tall), 4 if marks is PLAIN else 1), 0).astype(int)
    places = [column_of(shown, cut) for cut in cuts]
    labels = [f"{shown.counts.max()}", *[""] * (height - 1)]
    margin = len(labels[0]) + 1
    lines = []
    for row, label in zip(range(height - 1, -1, -1), labels, strict=True):
        cells = [parts[eighth] for eighth in np.clip(eighths - 8 * row, 0, 8).tolist()]
        for place in places:
            cells[place] = marks.side if cells[place] == " " else cells[place]
        lines.append(f"{label:>{margin - 1}} {marks.side}{''.join(cells)}".rstrip())
    left, right = number(float(shown.edges[0])), number(float(shown.edges[-1]))
    below = [" "] * len(shown.counts)
    for place in places:
        below[place] = marks.best
    lines.append(" " * margin + marks.corner + marks.floor * len(shown.counts))
    lines.append(f"{' ' * margin} {left}{right:>{len(shown.counts) - len(left)}}")
    return [*lines, f"{' ' * margin} {''.join(below)}".rstrip()]

"""v over k as characters: braille dots on a log axis, or ASCII where the terminal cannot show them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from naysay.quantity._weight import Floats
from naysay.quantity.estimate import Estimate

# The bit of each dot of a braille character: four rows of two.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters of a plot: its axes and ticks, the best k, and the range where v is flat."""

    side: str
    corner: str
    floor: str
    tick: str
    best: str
    flat: str


BLOCK = Marks("│", "└", "─", "┴", "▲", "━")
PLAIN = Marks("|", "+", "-", "+", "^", "=")


def draw(found: Estimate, width: int, height: int = 12, *, marks: Marks = BLOCK) -> list[str]:
    """Lines of at most `width` characters (30 at the least): the curve, its axes, and marks below them.

    The curve is in braille dots, or in stars if `marks` is PLAIN.
    """
    curve = found.curve
    labels = [f"{curve.max():.3f}", *[""] * (height - 2), f"{curve.min():.3f}"]
    margin = max(map(len, labels)) + 1
    columns = max(width, 30) - margin - 1
    area = _stars(curve, columns, height) if marks is PLAIN else _braille(curve, columns, height)
    lines = [f"{label:>{margin - 1}} {marks.side}{row}".rstrip() for label, row in zip(labels, area, strict=True)]
    floor, names = [marks.floor] * columns, [" "] * columns
    for k in _ticks(len(curve)):
        place, text = _place(k, len(curve), columns), str(k)
        floor[place] = marks.tick
        start = min(place, columns - len(text))
        if not "".join(names[max(start - 1, 0) : start + len(text)]).strip():  # no room for two names in one place
            names[start : start + len(text)] = text
    low, high = (_place(k, len(curve), columns) for k in found.flat)
    below = [" "] * low + [marks.flat] * (high + 1 - low)
    below[_place(found.k, len(curve), columns)] = marks.best
    lines.append(" " * margin + marks.corner + "".join(floor))
    return lines + [(" " * (margin + 1) + "".join(row)).rstrip() for row in (names, below)]


def _ticks(k_max: int) -> list[int]:
    """1, 10, 100 and so on, and the end of the axis first, so that its name has a place."""
    return [k_max, *(10**power for power in range(8) if 10**power < k_max)]


def _place(k: int, k_max: int, columns: int) -> int:
    """The column of k on an axis from log 1 to log k_max."""
    return round((columns - 1) * float(np.log(k)) / float(np.log(k_max))) if k_max > 1 else 0


def _cells(curve: Floats, columns: int, rows: int) -> NDArray[np.bool_]:
    """(rows, columns): where the curve passes; steps between neighbouring columns are filled."""
    k = len(curve) ** np.linspace(0, 1, columns)
    v = np.interp(k, np.arange(1, len(curve) + 1), curve)
    height = float(curve.max() - curve.min())
    depth = np.round((curve.max() - v) / height * (rows - 1)) if height > 0 else np.full(columns, rows // 2)
    before = np.concatenate([depth[:1], depth[:-1]])
    start = np.where(depth > before, before + 1, depth)
    stop = np.where(depth < before, before - 1, depth)
    row = np.arange(rows)[:, None]
    return np.asarray((row >= start) & (row <= stop))


def _braille(curve: Floats, columns: int, height: int) -> list[str]:
    cells = _cells(curve, 2 * columns, 4 * height).reshape(height, 4, columns, 2)
    codes = 0x2800 + (cells * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    return ["".join(map(chr, row)).replace("\u2800", " ") for row in codes.tolist()]


def _stars(curve: Floats, columns: int, height: int) -> list[str]:
    return ["".join("*" if cell else " " for cell in row) for row in _cells(curve, columns, height).tolist()]

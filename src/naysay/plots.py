"""Pictures: a Vega-Lite specification as SVG or PNG, and a curve as characters on a terminal.

vl-convert draws the pictures, without a browser and without the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._urls import Place
from naysay.checks import raise_invalid
from naysay.errors import MissingExtraError, how_to_install

Spec = dict[str, Any]
KINDS = (".svg", ".png")
# The bit of each dot of a braille character: four rows of two.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def check_picture(parameter: str, path: Place) -> None:
    """Raise if the file is neither SVG nor PNG, or if vl-convert is not installed."""
    if path.suffix.lower() not in KINDS:
        raise_invalid(parameter, "a file that ends in .svg or .png", repr(str(path)))
    need_vl_convert()


def as_picture(spec: Spec, kind: str) -> bytes:
    """Return the bytes of an .svg, or of a .png at twice the size."""
    convert = need_vl_convert()
    if kind == ".svg":
        return str(convert.vegalite_to_svg(spec)).encode()
    return bytes(convert.vegalite_to_png(spec, scale=2))


def need_vl_convert() -> Any:
    """Return the vl_convert module, or raise with the pip command that installs it."""
    try:
        import vl_convert
    except ImportError as error:
        message = f"vl-convert-python is not installed. {how_to_install('report')}"
        raise MissingExtraError(message) from error
    return vl_convert


def axis(field: str, **options: Any) -> Spec:
    """Return the encoding of a quantitative field."""
    return {"field": field, "type": "quantitative", **options}


def layer(values: list[Spec], kind: str, encoding: Spec, **mark: Any) -> Spec:
    """Return the part of a Vega-Lite specification that draws some values as marks of one kind."""
    return {"data": {"values": values}, "mark": {"type": kind, **mark}, "encoding": encoding}


def stacked(rows: list[Spec], spacing: int) -> Spec:
    """Return a Vega-Lite specification of rows of panels, one below the other, in the style of all our figures."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "padding": 16,
        "vconcat": rows,
        "spacing": spacing,
        "config": {
            "font": "sans-serif",
            "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "gridColor": "#e6e6e6"},
            "title": {
                "fontSize": 14,
                "anchor": "start",
                "fontWeight": "normal",
                "subtitleFontSize": 12,
                "subtitleColor": "#555",
            },
            "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
            "view": {"stroke": "#cccccc"},
        },
    }


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters of a plot: its axes and ticks, the best place, and a range around it."""

    side: str
    corner: str
    floor: str
    tick: str
    best: str
    flat: str


BLOCK = Marks("│", "└", "─", "┴", "▲", "━")
PLAIN = Marks("|", "+", "-", "+", "^", "=")


def terminal_curve(
    values: NDArray[np.float64],
    best: int,
    around: tuple[int, int],
    width: int,
    height: int = 12,
    *,
    marks: Marks = BLOCK,
) -> list[str]:
    """Draw a curve over 1 to n on a log axis, as lines of at most `width` characters (at least 30).

    Args:
        values: (n,) the curve.
        best: A place from 1 to n, marked below the axis.
        around: The first and last place of a range that is marked too.
        width: Columns of the terminal.
        height: Lines of the curve itself; three more hold the axis, its labels and the marks.
        marks: BLOCK draws the curve in braille dots, PLAIN in stars, for terminals that show ASCII only.
    """
    labels = [f"{values.max():.3f}", *[""] * (height - 2), f"{values.min():.3f}"]
    margin = max(map(len, labels)) + 1
    columns = max(width, 30) - margin - 1
    if marks is PLAIN:
        area = ["".join("*" if cell else " " for cell in row) for row in _cells(values, columns, height).tolist()]
    else:
        area = _braille(values, columns, height)
    lines = [f"{label:>{margin - 1}} {marks.side}{row}".rstrip() for label, row in zip(labels, area, strict=True)]
    axis, names = [marks.floor] * columns, [" "] * columns
    last = len(values)
    for tick in (last, *(10**power for power in range(8) if 10**power < last)):  # the end first: it is always named
        column, text = _column(tick, last, columns), str(tick)
        axis[column] = marks.tick
        start = min(column, columns - len(text))
        if not "".join(names[max(start - 1, 0) : start + len(text)]).strip():  # labels must not overlap
            names[start : start + len(text)] = text
    low, high = (_column(place, last, columns) for place in around)
    below = [" "] * low + [marks.flat] * (high + 1 - low)
    below[_column(best, last, columns)] = marks.best
    lines.append(" " * margin + marks.corner + "".join(axis))
    return lines + [(" " * (margin + 1) + "".join(row)).rstrip() for row in (names, below)]


def _column(place: int, last: int, columns: int) -> int:
    """The column of a place on an axis from log 1 to log last."""
    return round((columns - 1) * float(np.log(place)) / float(np.log(last))) if last > 1 else 0


def _cells(values: NDArray[np.float64], columns: int, rows: int) -> NDArray[np.bool_]:
    """(rows, columns): where the curve passes; steps between neighbouring columns are filled."""
    places = len(values) ** np.linspace(0, 1, columns)
    heights = np.interp(places, np.arange(1, len(values) + 1), values)
    span = float(values.max() - values.min())
    depth = np.round((values.max() - heights) / span * (rows - 1)) if span > 0 else np.full(columns, rows // 2)
    before = np.concatenate([depth[:1], depth[:-1]])
    start = np.where(depth > before, before + 1, depth)
    stop = np.where(depth < before, before - 1, depth)
    row = np.arange(rows)[:, None]
    return np.asarray((row >= start) & (row <= stop))


def _braille(values: NDArray[np.float64], columns: int, height: int) -> list[str]:
    cells = _cells(values, 2 * columns, 4 * height).reshape(height, 4, columns, 2)
    codes = 0x2800 + (cells * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    return ["".join(map(chr, row)).replace("\u2800", " ") for row in codes.tolist()]

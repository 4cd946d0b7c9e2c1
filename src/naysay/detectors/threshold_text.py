"""Thresholds as text: the two tables in the layout of the note, with shares below the counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from naysay.detectors.threshold_rows import KINDS, Rows

_COLUMNS = 8  # values that stand side by side; of a longer grid those around the choice


def as_text(low: Any, high: Any, table: Mapping[str, Rows], *, start_low: float, scope: str) -> str:
    """Both tables, each under a line that says what is held fixed."""
    if scope == "anchor":
        return _anchors(table)
    parts = [f"high, counted at low = {start_low:g}", *_table("high", table["high"], high, "false")]
    parts += ["", f"low, counted at high = {number(high)}", *_table("low", table["low"], low, "hard")]
    return "\n".join(parts)


def number(value: float) -> str:
    """A threshold in six digits."""
    return f"{value:.6g}"


def _table(name: str, rows: Rows, chosen: float, share: str) -> list[str]:
    """A line for each kind of pair, a column for each value; the chosen one has a star."""
    place = int(np.flatnonzero(rows["value"] == chosen)[0])
    start = max(0, min(place - _COLUMNS // 2, len(rows) - _COLUMNS))
    seen = rows[start : start + _COLUMNS]
    lines = [[name, *(f"{number(value)}{'*' if value == chosen else ' '}" for value in seen["value"].tolist())]]
    lines += [[kind, *(f"{count} " for count in seen[kind].tolist())] for kind in KINDS]
    lines += [[f"{share} share", *(f"{100 * part:.4f}%" for part in seen[f"{share}_share"].tolist())]]
    left = len(rows) - len(seen)
    return [*_aligned(lines), *([f"and {left} other values"] if left else [])]


def _anchors(table: Mapping[str, Rows]) -> str:
    """The spread of both thresholds over anchors, and the counts of all of them."""
    rows = table["low"]
    lines = [["of the anchors", "smallest", "median", "largest"]]
    for name in ("high", "low"):
        values = table[name]["value"]
        lines.append([name, *(number(float(value)) for value in (values.min(), np.median(values), values.max()))])
    pairs = sum(int(rows[kind].sum()) for kind in KINDS)
    totals = [[kind, str(int(rows[kind].sum())), f"{100 * rows[kind].sum() / pairs:.4f}%"] for kind in KINDS]
    anchors = f"thresholds of {len(rows)} anchor{'s' if len(rows) > 1 else ''}, each by its own scores"
    return "\n".join([anchors, *_aligned(lines), "", *_aligned([["of all pairs", "pairs", "share"], *totals])])


def _aligned(lines: list[list[str]]) -> list[str]:
    """Columns as wide as they need, the first to the left and the others to the right."""
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            [line[0].ljust(wide[0]), *(cell.rjust(width) for cell, width in zip(line[1:], wide[1:], strict=True))]
        ).rstrip()
        for line in lines
    ]

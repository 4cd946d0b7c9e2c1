"""Thresholds as text: the two tables in the layout of the note, with shares below the counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from naysay.detectors._threshold_rows import KINDS, Rows, chosen

_COLUMNS = 8  # values that stand side by side; of a longer grid those around the choice


def as_text(low: Any, high: Any, table: Mapping[str, Rows], *, start_low: float, scope: str) -> str:
    """Both tables, each under a line that says what is held fixed."""
    if scope == "anchor":
        return _anchors(table)
    false, _, _ = chosen(table["low"], low)
    parts = [f"high, counted at low = {start_low:g}", *_table("high", table["high"], high, "false")]
    parts += ["", f"low, counted at high = {number(high, false)}", *_table("low", table["low"], low, "hard")]
    return "\n".join(parts)


def number(value: float, scores: int = 1) -> str:
    """A threshold in six digits, or in as many as stand before its point.

    Args:
        scores: How many reach it. One that none reaches may be the next float after the largest score: after 1 it
            is 1.0000000000000002, and in six digits 1, which some scores do reach.
    """
    digits = max(6, len(f"{abs(value):.0f}")) if abs(value) < 1e15 else 6
    text = f"{value:.{digits}g}"
    return text if scores or float(text) >= value else f"just above {text}"


def _table(name: str, rows: Rows, choice: float, share: str) -> list[str]:
    """A line for each kind of pair, a column for each value; the chosen one has a star."""
    place = int(np.flatnonzero(rows["value"] == choice)[0])
    start = max(0, min(place - _COLUMNS // 2, len(rows) - _COLUMNS))
    seen = rows[start : start + _COLUMNS]
    reach = seen["false"] + (seen["hard"] if name == "low" else 0)
    heads = zip(seen["value"].tolist(), reach.tolist(), strict=True)
    lines = [[name, *(f"{number(value, scores)}{'*' if value == choice else ' '}" for value, scores in heads)]]
    lines += [[kind, *(f"{count} " for count in seen[kind].tolist())] for kind in KINDS]
    lines += [[f"{share} share", *(f"{100 * part:.4f}%" for part in seen[f"{share}_share"].tolist())]]
    left = len(rows) - len(seen)
    return [*_aligned(lines), *([f"and {left} other values"] if left else [])]


def _anchors(table: Mapping[str, Rows]) -> str:
    """The spread of both thresholds over anchors, and the counts of all of them."""
    rows = table["low"]
    lines = [["of the anchors", "smallest", "median", "largest"]]
    false, hard, _ = chosen(rows, rows["value"])
    for name, scores in (("high", false), ("low", false + hard)):
        values = table[name]["value"]
        spread = (values.min(), np.median(values), values.max())
        lines.append([name, *(number(float(value), scores) for value in spread)])
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

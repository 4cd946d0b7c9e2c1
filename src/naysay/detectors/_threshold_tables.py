"""Thresholds as tables: rows of counts for each value, and their text in the layout of the note."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_COLUMNS = 8  # values side by side; of a longer grid those around the choice
Rows = NDArray[np.void]
Counts = NDArray[np.int64]
KINDS = ("positive", "false", "hard", "easy")
_ROW = np.dtype(
    [("value", np.float64)]
    + [(kind, np.int64) for kind in KINDS]
    + [(f"{kind}_share", np.float64) for kind in KINDS[1:]]
)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Thresholds, the rows of counts by high and by low value, notes on their certainty, and the counts' error."""

    low: Any
    high: Any
    by_high: Rows
    by_low: Rows
    notes: tuple[str, ...] = ()
    rank_error: float = 0.0


def chosen(by_low: Rows, low: Any) -> tuple[int, int, int]:
    """How many negatives are false, hard and easy by the choice; of all anchors, where each has its own."""
    rows = by_low if np.ndim(low) else by_low[by_low["value"] == low][:1]
    false, hard, easy = (int(rows[kind].sum()) for kind in KINDS[1:])
    return false, hard, easy


def counted(values: Any, low: Any, high: Any, negatives: Any, positives: Any) -> Rows:
    """Rows of counts for (r,) values, read-only. `low` and `high` are how many scores reach them.

    All but the values are numbers or (r,). A low above its high counts as that high.
    """
    rows = np.empty(len(values), _ROW)
    rows["value"], rows["positive"], rows["false"] = values, positives, high
    rows["easy"] = negatives - np.maximum(low, high)
    rows["hard"] = negatives - rows["easy"] - rows["false"]
    for kind in KINDS[1:]:
        rows[f"{kind}_share"] = rows[kind] / (np.asarray(negatives) + positives)
    rows.flags.writeable = False
    return rows


def as_text(low: Any, high: Any, table: Mapping[str, Rows], *, start_low: float, scope: str) -> str:
    """Both tables, each with a heading that names the fixed threshold."""
    if scope == "anchor":
        return _anchors(table)
    false, _, _ = chosen(table["low"], low)
    parts = [f"high, counted at low = {start_low:g}", *_table("high", table["high"], high, "false")]
    parts += ["", f"low, counted at high = {number(high, false)}", *_table("low", table["low"], low, "hard")]
    return "\n".join(parts)


def number(value: float, scores: int = 1) -> str:
    """A threshold in six digits, or in as many as it has before the point.

    If none of the scores reaches it, it may be the next float after the largest score: after 1 that is
    1.0000000000000002, and in six digits 1, which some scores do reach.
    """
    digits = max(6, len(f"{abs(value):.0f}")) if abs(value) < 1e15 else 6
    text = f"{value:.{digits}g}"
    return text if scores or float(text) >= value else f"just above {text}"


def _table(name: str, rows: Rows, choice: float, share: str) -> list[str]:
    """A line for each kind of pair, a column for each value; the chosen one has a star."""
    place = int(np.flatnonzero(rows["value"] == choice)[0])
    start = max(0, min(place - _COLUMNS // 2, len(rows) - _COLUMNS))
    shown = rows[start : start + _COLUMNS]
    reach = shown["false"] + (shown["hard"] if name == "low" else 0)
    heads = zip(shown["value"].tolist(), reach.tolist(), strict=True)
    lines = [[name, *(f"{number(value, scores)}{'*' if value == choice else ' '}" for value, scores in heads)]]
    lines += [[kind, *(f"{count} " for count in shown[kind].tolist())] for kind in KINDS]
    lines += [[f"{share} share", *(f"{100 * part:.4f}%" for part in shown[f"{share}_share"].tolist())]]
    left = len(rows) - len(shown)
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
    form = "  ".join(f"{{:{'>' if place else '<'}{width}}}" for place, width in enumerate(wide))
    return [form.format(*line).rstrip() for line in lines]

"""The two tables of the note on threshold selection: counts by the upper line, then by the lower one."""

from __future__ import annotations

import numpy as np

from naysay.checks import public, raise_invalid
from naysay.detectors._threshold_tables import KINDS, Rows, number
from naysay.detectors.thresholds import Thresholds
from naysay.report.contents import Cell, Table

_SHOWN = 15  # rows around the choice


@public
def threshold_tables(choice: Thresholds, *, caption: str = "") -> tuple[Table, ...]:
    """Both tables of `choose_thresholds`, the chosen rows marked; of a long grid the 15 rows around the choice.

    Thresholds of anchors have no such tables; there is one, of their spread.

    Args:
        caption: What the pairs are that are counted.
    """
    if not isinstance(choice, Thresholds):
        raise_invalid("choice", "Thresholds, of choose_thresholds", type(choice).__name__)
    if choice.scope == "anchor":
        return (_of_anchors(choice, caption),)
    notes = " ".join(choice.notes)
    by_high = f"Pairs by the upper line high, counted at low = {choice.start_low:g}."
    high = choice.table["high"]
    reached = int(high["false"][high["value"] == choice.high][0])
    by_low = f"Pairs by the lower line low, counted at high = {number(choice.high, reached)}."
    return (
        _table("The upper line: likely false from here on", high, ("false",), choice.high, by_high, caption, notes),
        _table(
            "The lower line: hard from here on",
            choice.table["low"],
            ("false", "hard"),
            choice.low,
            by_low,
            caption,
            notes,
        ),
    )


def _table(
    title: str, rows: Rows, above: tuple[str, ...], chosen: float, counted: str, caption: str, notes: str
) -> Table:
    """One of the tables; `above` are the kinds of pairs that reach its line."""
    place = int(np.flatnonzero(rows["value"] == chosen)[0])
    start = max(0, min(place - _SHOWN // 2, len(rows) - _SHOWN))
    seen = rows[start : start + _SHOWN]
    columns = ("line", *KINDS, "false share", "hard share")
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (
            number(row["value"], sum(int(row[kind]) for kind in above)),
            *(int(row[kind]) for kind in KINDS),
            *(f"{row[f'{kind}_share']:.4%}" for kind in KINDS[1:3]),
        )
        for row in seen
    )
    left = len(rows) - len(seen)
    more = f"{left} other values of the grid are left out. " if left else ""
    return Table(title, columns, cells, f"{counted} {caption}".strip(), f"{more}{notes}".strip(), (place - start,))


def _of_anchors(choice: Thresholds, caption: str) -> Table:
    rows: list[tuple[str, ...]] = []
    for name in ("high", "low"):
        values = np.asarray(choice.table[name]["value"])
        spread = (values.min(), np.median(values), values.max())
        rows.append((name, *(number(float(value)) for value in spread)))
    counted = f"Each of {len(choice.table['low']):,} anchors has its own lines; this is their spread."
    columns = ("line", "smallest", "median", "largest")
    return Table("Lines of the anchors", columns, tuple(rows), f"{counted} {caption}".strip(), " ".join(choice.notes))

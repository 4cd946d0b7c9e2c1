"""The two tables of the note on threshold selection: counts by the upper threshold, then by the lower one."""

from __future__ import annotations

import numpy as np

from naysay.checks import check_kind, public
from naysay.detectors.thresholds import KINDS, Thresholds, shown_number
from naysay.report.contents import Cell, Table
from naysay.report.scores import check_texts

_SHOWN = 15  # rows around the choice


@public
def threshold_tables(choice: Thresholds, *, caption: str = "") -> tuple[Table, ...]:
    """Return both tables of `choose_thresholds`, the chosen rows marked; of a long grid the 15 rows around the choice.

    Args:
        choice: The thresholds.
        caption: Which pairs are counted.

    Examples:
        >>> import numpy as np
        >>> from naysay.detectors import choose_thresholds
        >>> [table.title for table in threshold_tables(choose_thresholds(np.linspace(0, 1, 2000)))]
        ['Upper threshold: likely false', 'Lower threshold: hard']
    """
    check_kind("choice", choice, Thresholds, "Thresholds, of choose_thresholds")
    check_texts(caption=caption)
    high = choice.table["high"]
    reached = int(high["false"][high["value"] == choice.high][0])
    by_high = f"Pairs by the upper threshold high, counted at low = {choice.start_low:g}. {caption}".strip()
    by_low = (
        f"Pairs by the lower threshold low, counted at high = {shown_number(choice.high, reached)}. {caption}".strip()
    )
    return (
        _table("Upper threshold: likely false", choice, "high", ("false",), by_high),
        _table("Lower threshold: hard", choice, "low", ("false", "hard"), by_low),
    )


def _table(title: str, choice: Thresholds, side: str, above: tuple[str, ...], caption: str) -> Table:
    """Return one of the tables; `above` are the kinds of pairs that reach its threshold."""
    rows = choice.table[side]
    place = int(np.flatnonzero(rows["value"] == getattr(choice, side))[0])
    start = max(0, min(place - _SHOWN // 2, len(rows) - _SHOWN))
    shown = rows[start : start + _SHOWN]
    columns = ("threshold", *KINDS, "false share", "hard share")
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (
            shown_number(row["value"], sum(int(row[kind]) for kind in above)),
            *(int(row[kind]) for kind in KINDS),
            *(f"{row[f'{kind}_share']:.4%}" for kind in KINDS[1:3]),
        )
        for row in shown
    )
    hidden = len(rows) - len(shown)
    more = f"{hidden} other values of the grid are left out. " if hidden else ""
    return Table(title, columns, cells, caption, f"{more}{' '.join(choice.notes)}".strip(), (place - start,))

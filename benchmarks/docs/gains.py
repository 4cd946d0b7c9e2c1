"""The tables of what judging gained in training, with everything that it must be compared with beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]
RIVALS = {"in-batch only": "in-batch", "random": "random", "nearest": "nearest", "share 0.95": "95 % rule"}
IN_README = ("debH, T = 0.02", "deb, T = 0.02", "scifact, T = 0.05")
IN_CHOOSING = (
    *(
        "debH, T = 0.02",
        "debH, T = 0.05",
        "deb, T = 0.02",
        "deb, T = 0.05",
        "dose 20 %, T = 0.02",
        "dose 5 %, T = 0.02",
    ),
    *("tokens, T = 0.05", "scifact, T = 0.05"),
)
OF_BANDS = ("debH, T = 0.02", "debH, T = 0.05", "deb, T = 0.02", "deb, T = 0.05")


def gains(judging: dict[str, Any], names: tuple[str, ...], table: Table, arm: str = "auto") -> str:
    """nDCG@10 of an arm and its rivals by task, and how far it is ahead of the nearest and of the 95 % rule."""
    shown = f"`{arm}`"
    headings = (
        "data",
        "false among the nearest",
        *RIVALS.values(),
        shown,
        f"{shown} - nearest",
        f"{shown} - 95 % rule",
    )
    rows = []
    for name in names:
        arms = judging["tasks"][name]["arms"]
        false = f"{100 * arms['nearest']['false_share']['mean']:.1f} %"
        quality = (f"{100 * arms[one]['ndcg']['mean']:.1f}" for one in (*RIVALS, arm))
        over = (_points(arms[arm][f"over {other}"]) for other in ("nearest", "share 0.95"))
        rows.append((name, false, *quality, *over))
    return table(headings, rows)


def _points(spread: dict[str, float]) -> str:
    """A mean difference and half its 95 % CI, in points."""
    return f"{100 * spread['mean']:+.1f} ± {100 * spread['half']:.1f}"

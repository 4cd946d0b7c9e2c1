"""The part of the page about several processes: what known pairs cost in the memory of worker processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

TEXT = """\
Memory of {n_workers} workers that draw from {pairs:,} known pairs ({pairs_mb:.0f} MB), as the kernel counts it: what a
worker has for itself, what that is above a worker without pairs, and the workers' share of all memory (proportional set
size, which counts a page that five processes share as a fifth in each):
"""


def shared(result: dict[str, Any], table: Table) -> str:
    """A sentence and a table: a row for each way to start workers."""
    ways = result["ways"]
    largest = max(ways.values(), key=lambda way: way["pairs"])
    rows = []
    for name, way in ways.items():
        without = ways["data.loader, no pairs, spawned" if "loader" in name else "no pairs, spawned"]
        above = f"{_unique(way) - _unique(without):+.0f} MB"
        rows.append(
            (
                name.replace("data.loader", "`data.loader`").replace("shared(folder)", "`shared(folder)`"),
                f"{_unique(way):.0f} MB",
                "" if way is without or "forked" in name else above,
                f"{sum(worker['proportional_mb'] for worker in way['workers']):,.0f} MB",
            )
        )
    text = TEXT.format(n_workers=result["n_workers"], pairs=largest["pairs"], pairs_mb=largest["pairs_mb"])
    headings = ("workers", "a worker's own", "above one without pairs", "all workers together")
    return f"{text}\n{table(headings, rows)}"


def _unique(way: dict[str, Any]) -> float:
    """The most that a worker has for itself."""
    return float(max(worker["unique_mb"] for worker in way["workers"]))

"""Greedy choice of pairs when both sides have a limit."""

from __future__ import annotations

from typing import Any

from naysay.kernels.compile import compiled


@compiled
def capped(
    rows: Any, items: Any, wanted: Any, cap: Any, taken_by_row: Any, taken_of_item: Any, passed_over: Any
) -> None:
    """passed_over[p] = whether pair p, in the order given, comes too late: its item has `cap` rows already.

    A pair whose row has `wanted[row]` items is neither taken nor passed over.
    """
    for pair in range(len(rows)):
        row, item = rows[pair], items[pair]
        if taken_by_row[row] >= wanted[row]:
            continue
        if taken_of_item[item] >= cap:
            passed_over[pair] = True
            continue
        taken_by_row[row] += 1
        taken_of_item[item] += 1

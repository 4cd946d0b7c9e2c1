"""The trade: the estimated false share of a set of negatives against its hardness, as the target moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, final

import numpy as np

from naysay.checks import check_kind, check_number, check_whole, public, raise_invalid
from naysay.report.scores import check_texts, hold_tuples, number_or_nan
from naysay.text import number, percent, short_repr, with_interval


@final
@public
@dataclass(frozen=True, slots=True)
class TradePoint:
    """A set of negatives: how many there are, how many are estimated to be false, and how hard they are.

    Args:
        name: The rule that takes it, such as "nearest" or "share 0.95".
        dropped: How many of the nearest are not in it.
        negatives: How many negatives it has.
        empty: How many slots stay empty.
        false_share: The estimated share of false negatives.
        low: The lower end of its 95 % CI.
        high: The upper end of its 95 % CI.
        mean_score: The mean score of the negatives; NaN if there are none.
        target: The largest estimated share that was asked for; NaN if none was.

    Examples:
        >>> TradePoint("nearest", 0, 800, 0, 0.14, 0.11, 0.18, 0.55).false_share
        0.14
    """

    name: str
    dropped: int
    negatives: int
    empty: int
    false_share: float
    low: float
    high: float
    mean_score: float
    target: float = float("nan")

    def __post_init__(self) -> None:
        check_texts(name=self.name)
        for name in ("dropped", "negatives", "empty"):
            check_whole(name, getattr(self, name), 0)
        for name in ("false_share", "low", "high"):
            check_number(name, getattr(self, name), at_least=0, at_most=1)
        for name in ("mean_score", "target"):
            number_or_nan(name, getattr(self, name))


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Trade:
    """What each target would give, beside the negatives of the report and what other rules would take.

    Args:
        curve: A point for each target, ascending.
        chosen: The negatives of the report.
        rules: What other rules would take from the same lists.
        command: What applies a target, with TARGET in place of its value.
        basis: What the estimates rest on, in a sentence or two.

    Examples:
        >>> points = [TradePoint("cut", 9, 80, 0, share, share, share, 0.5, target=share) for share in (0.02, 0.05)]
        >>> Trade(tuple(points), points[1]).start
        1
    """

    curve: tuple[TradePoint, ...]
    chosen: TradePoint
    rules: tuple[TradePoint, ...] = ()
    command: str = ""
    basis: str = ""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        hold_tuples(self, curve=TradePoint, rules=TradePoint)
        check_kind("chosen", self.chosen, TradePoint, "a TradePoint")
        check_texts(command=self.command, basis=self.basis)
        targets = [point.target for point in self.curve]
        if not targets or not all(map(isfinite, targets)) or targets != sorted(set(targets)):
            raise_invalid("curve", "points with ascending targets", f"{len(targets)} points in another order")
        if self.command and "TARGET" not in self.command:
            raise_invalid("command", "a text with TARGET in place of the value", repr(self.command))

    @property
    def start(self) -> int:
        """The place in the curve that is closest to the negatives of the report."""
        wanted = self.chosen.target if isfinite(self.chosen.target) else self.chosen.false_share
        return int(np.argmin([abs(point.target - wanted) for point in self.curve]))


def false_text(point: TradePoint) -> str:
    """The estimated share of false negatives with its interval."""
    return with_interval(point.false_share, point.low, point.high)


def trade_data(trade: Trade) -> dict[str, Any]:
    """What the page's slider moves over: the texts of each target, where it starts, and the command to apply one."""
    return {"rows": [_figures(point) for point in trade.curve], "start": trade.start, "command": trade.command[:300]}


def _figures(point: TradePoint) -> dict[str, str]:
    """What the page shows of a target; `value` is for the command."""
    return {
        "target": percent(point.target),
        "false_share": false_text(point),
        "mean_score": number(point.mean_score) or "none",
        "dropped": number(point.dropped),
        "negatives": number(point.negatives),
        "empty": number(point.empty),
        "value": f"{point.target:.4g}",
    }

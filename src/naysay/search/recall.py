"""Recall: how much of the exact answer an approximate search gives back, measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.checks import check_number, raise_invalid
from naysay.detectors._intervals import CONFIDENCE, exact_interval
from naysay.search.found import Found


@final
@dataclass(frozen=True, slots=True)
class Recall:
    """The mean over queries of the share of the exact best `depth` that came back.

    Args:
        value: The mean, from 0 to 1.
        low: 95 % by Clopper and Pearson, each query one look: what comes back of one query comes and goes together,
            and a share between 0 and 1 varies no more than a yes or no, so the interval is wide enough.
        high: 95 % by Clopper and Pearson, each query one look: what comes back of one query comes and goes
            together, and a share between 0 and 1 varies no more than a yes or no, so the interval is wide enough.
        n: Queries that were looked at.
        depth: How many of the best were asked for.
        setting: Of the index, "nprobe 16" or "efSearch 64".
        note: Why a search for a better setting ended, or "".

    Example:
        >>> print(Recall(0.97, 0.9511, 0.9831, 500, 100, "nprobe 16"))
        recall@100 0.970 (0.951 to 0.983, 500 queries) with nprobe 16
    """

    value: float
    low: float
    high: float
    n: int
    depth: int
    setting: str
    note: str = ""

    def __str__(self) -> str:
        """One line for a report."""
        return f"recall@{self.depth} {self._numbers} with {self.setting}" + (f". {self.note}" if self.note else "")

    @property
    def _numbers(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}, {self.n} queries)"


def recall_of(found: Found, exact: Found, setting: str, note: str = "") -> Recall:
    """The recall of what was found for some queries, against the exact answer to the same.

    A row counts if its score reaches the last of the exact ones: of rows with equal scores one is as good as another.
    Queries without an answer (an empty corpus) are left out. O(n depth).
    """
    wanted = exact.filled.sum(axis=1)
    some = wanted > 0
    least = exact.scores[np.arange(len(exact)), np.maximum(wanted, 1) - 1]
    hits = (found.filled & (found.scores >= least[:, None])).sum(axis=1)
    shares = hits[some] / wanted[some]
    n, value = len(shares), float(shares.mean())
    low, high = exact_interval(value * n, n, CONFIDENCE)
    return Recall(value, low, high, n, exact.ids.shape[1], setting, note)


def check_recall(recall: Recall, least: Any) -> None:
    """Refuse a recall that was measured below `least`, with what was measured.

    Example:
        >>> check_recall("mine", Recall(0.97, 0.951, 0.983, 500, 100, "nprobe 8"), 0.9)
    """
    given = check_number("min_recall", least)
    if not 0 <= given <= 1:
        raise_invalid("min_recall", "between 0 and 1", given)
    if recall.value < given:
        rule = f"at most {recall.value:.3f}, what the index reaches ({recall})"
        raise_invalid("min_recall", rule, given, "Search exactly, or let Index.tune raise the setting.")

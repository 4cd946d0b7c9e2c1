"""The measured recall of an approximate search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from naysay._intervals import CONFIDENCE, exact_interval
from naysay.checks import check_kind, check_number, public, raise_invalid
from naysay.search.exact import Found


@final
@public
@dataclass(frozen=True, slots=True)
class Recall:
    """Recall@depth: the mean over queries of the share of the exact top `depth` that was found.

    The 95 % confidence interval (Clopper and Pearson) treats each query as one observation. It is conservative: a
    share between 0 and 1 varies no more than a yes or no.

    Args:
        value: The mean, from 0 to 1.
        low: The lower end of the 95 % CI.
        high: The upper end of the 95 % CI.
        n: Queries that were measured.
        depth: How many of the best were needed for each query.
        setting: The setting of the index: "nprobe 16" or "efSearch 64".
        note: Why `Index.tune` ended below its target, or "".

    Examples:
        >>> print(Recall(0.97, 0.9511, 0.9831, 500, 100, "nprobe 16"))
        recall@100 0.970 (95 % CI 0.951 to 0.983, 500 queries) with nprobe 16
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
        numbers = f"{self.value:.3f} (95 % CI {self.low:.3f} to {self.high:.3f}, {self.n} queries)"
        return f"recall@{self.depth} {numbers} with {self.setting}" + (f". {self.note}" if self.note else "")


def recall_of(found: Found, exact: Found, setting: str, note: str = "") -> Recall:
    """Return the recall of `found` against the exact result for the same queries. O(n depth).

    A row counts if its score reaches the last of the exact ones: of rows with equal scores one is as good as another.
    Queries without a result (an empty corpus) are left out.
    """
    wanted = exact.filled.sum(axis=1)
    some = wanted > 0
    last = exact.scores[np.arange(len(exact)), np.maximum(wanted, 1) - 1]
    hits = (found.filled & (found.scores >= last[:, None])).sum(axis=1)
    shares = hits[some] / wanted[some]
    n, value = len(shares), float(shares.mean())
    low, high = exact_interval(value * n, n, CONFIDENCE)
    return Recall(value, low, high, n, exact.ids.shape[1], setting, note)


@public
def check_recall(recall: Recall, min_recall: float) -> None:
    """Raise unless the measured recall is at least `min_recall`.

    Args:
        recall: What `Index.measure` or `Index.tune` returned.
        min_recall: From 0 to 1.

    Raises:
        NaysayError: If the recall is lower, with what was measured.

    Examples:
        >>> check_recall(Recall(0.97, 0.951, 0.983, 500, 100, "nprobe 8"), 0.9)
    """
    check_kind("recall", recall, Recall, "a Recall, of Index.measure or Index.tune")
    target = check_number("min_recall", min_recall, at_least=0, at_most=1)
    if recall.value < target:
        rule = f"at most {recall.value:.3f}, what the index reaches ({recall})"
        raise_invalid("min_recall", rule, target, "Search exactly, or let Index.tune raise the setting.")

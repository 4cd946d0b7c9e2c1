"""The anchors of a job whose candidates are kept, for the report and for estimates: evenly spaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.mining._task import SEARCH, Task
from naysay.mining.candidates import Candidates
from naysay.mining.exclude import EXCLUDED
from naysay.mining.judge import SUSPICIOUS
from naysay.mining.select import NOT_SELECTED

MAX_ROWS, _SLOTS = 2000, 1 << 21
_EMPTY = {"ids": -1, "scores": -np.inf, "rank": 0, "source": -1, "suspicion": 0, "why": 0, "kept_by": -1}
# All that can happen to a candidate of a job, in the order of the stages: a number means the same in every part.
_REASONS = ("repeated", *EXCLUDED, "too near", "too far", "too easy", SUSPICIOUS, NOT_SELECTED, "short anchor")
_KEPT = ("relaxed", "random")
Ids = NDArray[np.int64]


def sampled_rows(n: int, width: int) -> Ids:
    """At most 2,000 of n anchors at even distances, fewer where they have very many candidates."""
    count = min(n, MAX_ROWS, max(100, _SLOTS // max(1, width)))
    return np.unique(np.linspace(0, max(0, n - 1), count).astype(np.int64)) if n else np.empty(0, np.int64)


def packed(task: Task, candidates: Candidates, rows: Ids) -> dict[str, NDArray[Any]]:
    """The candidates of some rows as arrays, with numbers for names that hold for all parts."""
    found = {name: getattr(candidates, name)[rows] for name in (*_EMPTY, "positive_scores")}
    reasons = np.array([0, *(_REASONS.index(reason) + 1 for reason in candidates.reasons)], np.int8)
    sources, kept = _names(task)
    found["why"] = reasons[found["why"]]
    for name, own, every in (("source", candidates.source_names, sources), ("kept_by", candidates.kept_names, kept)):
        codes = np.array([*map(every.index, own), -1], np.int8)
        found[name] = codes[found[name]]
    for reason in (*EXCLUDED, SUSPICIOUS):
        counts = candidates.outside.get(reason)
        found[f"outside {reason}"] = np.zeros(len(rows), np.int64) if counts is None else counts[rows]
    return found


def unpacked(task: Task, parts: Sequence[dict[str, NDArray[Any]]]) -> Candidates:
    """What was packed, as one; rows have as many slots as the widest part."""
    width = max((part["ids"].shape[1] for part in parts), default=0)
    found: dict[str, Any] = {}
    for name in (*_EMPTY, "positive_scores"):
        columns = [part[name] for part in parts]
        if name in _EMPTY:
            columns = [_wide(column, width, _EMPTY[name]) for column in columns]
        found[name] = np.concatenate(columns)
    counts = {
        reason: np.concatenate([part[f"outside {reason}"] for part in parts]) for reason in (*EXCLUDED, SUSPICIOUS)
    }
    sources, kept = _names(task)
    if not (found["source"] == len(sources) - 1).any():
        sources = sources[:-1]
    return Candidates(
        **found,
        source_names=sources,
        kept_names=kept,
        reasons=_REASONS,
        outside={reason: given for reason, given in counts.items() if given.any()},
    )


def _names(task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of sources, and of rules that keep, in a job."""
    select = task.options.select
    return (SEARCH, *task.lists, "random"), (select, *(name for name in _KEPT if name != select))


def _wide(values: NDArray[Any], width: int, empty: float) -> NDArray[Any]:
    wide = np.full((len(values), width), empty, values.dtype)
    wide[:, : values.shape[1]] = values
    return wide

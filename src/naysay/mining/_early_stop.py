"""A search that stops where more candidates would not change the negatives, and the rows that need more.

Without a judge the nearest k are enough; with a judge by score the nearest k below its threshold, found in one pass;
with a `Posterior` the lists that it reads, and all of `depth` for the anchors that lose too many to its cut.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.detectors.absolute import Absolute
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.margin import Margin, ShareOfPositive
from naysay.detectors.posterior import Posterior
from naysay.mining._rules import Threshold
from naysay.mining._task import Task
from naysay.mining.candidates import Candidates, listed
from naysay.types import Query, anchor_ids

Ids = NDArray[np.int64]
SLOTS = 1 << 18  # candidates that are judged at a time
LISTED = 1 << 26  # pairs of queries and corpus rows up to which all candidates are listed: that takes no time
_BY_SCORE = (Absolute, Bands, Calibrated, Margin, ShareOfPositive)  # what they suspect of a row are the row's first
_SPARE = 2  # candidates beyond k, for duplicates
_EMPTY = {"ids": -1, "scores": -np.inf, "rank": 0, "source": -1, "suspicion": 0, "why": 0, "kept_by": -1}


def stops_early(task: Task, threshold: Threshold | None = None) -> bool:
    """Whether the negatives are the nearest that are left, so that all other candidates need not be listed.

    Without a threshold: whether that may be so.
    """
    options = task.options
    plain = options.select == "top" and options.quotas is None and options.on_short in ("pad", "drop", "raise")
    one_search = task.may_deepen and not task.lists and task.index is None
    large = task.queries.n * task.corpus.n > LISTED
    return plain and one_search and large and (threshold is None or _is_known(threshold))


def _is_known(threshold: Threshold) -> bool:
    """Whether it is known how deep to search for what this suspects."""
    judge = threshold.detector
    if isinstance(judge, Posterior):
        return True
    return judge is None or (isinstance(judge, _BY_SCORE) and threshold.drop_at == SUSPICION_THRESHOLD)


def first_depth(task: Task, threshold: Threshold) -> int:
    """How deep to search first."""
    depth, judge = max(1, task.width), threshold.detector
    if isinstance(judge, Posterior):
        depth = max(depth, judge.depth) + 1  # it reads a list as a whole, and of each candidate the next one
    return min(task.depth, depth + (_SPARE if judge is not None else 0))


def open_rows(query: Query, wanted: Ids, threshold: Threshold, candidates: Candidates) -> Ids:
    """Rows for which a deeper search may find other negatives; `candidates` are judged, `wanted` is (n,) k of each."""
    kept, low, judge = candidates.kept, threshold.min_score, threshold.detector
    last = np.full(len(candidates), candidates.ids.shape[1] - 1)
    more = candidates.ids[:, -1] >= 0
    if isinstance(judge, Posterior):
        # What was listed last has no next one yet, and where scores are equal, the positive's place is not known.
        inside = listed(candidates)
        last = inside.shape[1] - 1 - np.argmax(inside[:, ::-1], axis=1)
        kept = kept & (np.arange(kept.shape[1]) < last[:, None])
    end = np.take_along_axis(candidates.scores, last[:, None], axis=1)[:, 0]
    enough = np.count_nonzero(kept, axis=1) >= wanted
    if low is not None:
        enough |= end < np.float32(low)
    if isinstance(judge, Posterior):
        enough &= np.count_nonzero(inside, axis=1) > judge.depth
        if judge.positive_scores is not None:
            enough &= end != judge.positive_scores[anchor_ids(query)]
    return np.flatnonzero(more & ~enough)


def stitched(candidates: Candidates, rows: Ids, deep: Candidates) -> Candidates:
    """The candidates with some rows replaced by those of a deeper search."""
    width = max(candidates.ids.shape[1], deep.ids.shape[1])
    one, other = _alike([candidates, deep], width)
    parts: dict[str, Any] = {}
    for name in (*_EMPTY, "positive_scores"):
        parts[name] = getattr(one, name).copy()
        parts[name][rows] = getattr(other, name)
    outside = {reason: counts.copy() for reason, counts in one.outside.items()}
    for reason, counts in outside.items():
        counts[rows] = other.outside[reason]
    return replace(one, **parts, outside=outside)


def stacked(parts: list[Candidates]) -> Candidates:
    """The candidates of several anchors, one part after another."""
    alike = _alike(parts, max(part.ids.shape[1] for part in parts))
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in alike]) for name in (*_EMPTY, "positive_scores")
    }
    outside = {reason: np.concatenate([part.outside[reason] for part in alike]) for reason in alike[0].outside}
    return replace(alike[0], **arrays, outside=outside)


def trimmed(candidates: Candidates, wanted: Ids) -> Candidates:
    """The candidates without the slots behind the negatives of all rows; `wanted` is (n,) how many each may have."""
    enough = np.cumsum(candidates.kept, axis=1) >= wanted[:, None]
    needed = np.where(enough.any(axis=1), np.argmax(enough, axis=1) + 2, enough.shape[1])
    return _alike([candidates], min(int(needed.max(initial=1)), enough.shape[1]))[0]


def _alike(parts: list[Candidates], width: int) -> list[Candidates]:
    """The same with one width, the same numbers for reasons, and counts of the same reasons outside."""
    reasons = tuple(dict.fromkeys(reason for part in parts for reason in part.reasons))
    outside = dict.fromkeys(reason for part in parts for reason in part.outside)
    found = []
    for part in parts:
        codes = np.array([0, *(reasons.index(reason) + 1 for reason in part.reasons)], np.int8)
        arrays: dict[str, Any] = {}
        for name, empty in _EMPTY.items():
            values = getattr(part, name)[:, :width]
            arrays[name] = np.full((len(part), width), empty, values.dtype)
            arrays[name][:, : values.shape[1]] = codes[values] if name == "why" else values
        none = np.zeros(len(part), np.int64)
        counts = {reason: part.outside.get(reason, none) for reason in outside}
        found.append(replace(part, **arrays, reasons=reasons, outside=counts))
    return found

"""Exclude: what can never be a negative, taken out of the candidates and counted by reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.checks import public, raise_invalid, shown
from naysay.detectors._slots import SUSPICION_THRESHOLD
from naysay.mining.candidates import Candidates, check_candidates
from naysay.mining.judge import ask, check_detector
from naysay.positives import Positives
from naysay.types import Query

EXCLUDED = ("positive", "anchor", "ignored", "duplicate")


@public
def exclude(
    candidates: Candidates,
    known: Positives | None = None,
    *,
    same_ids: bool = False,
    duplicates: Any = None,
    query: Query | None = None,
) -> Candidates:
    """Drop what is no negative, whatever it scores.

    Each candidate is dropped for the first of these reasons. Known pairs are what a search leaves out by itself
    if it is told; here they are taken out of lists that were made elsewhere. O(log) a slot, and the detector's cost.

    Args:
        known: Positives, by row and corpus id: "positive" and "ignored" pairs go.
        same_ids: Whether row i is item i of the corpus: then "anchor", the row itself, goes, unless it is a
            positive.
        duplicates: A detector, most likely `Duplicates`: what it suspects at 0.5 or more goes as "duplicate".
        query: What the detector is asked; by default the rows' numbers, without positives: give `Duplicates` those
            itself.

    Example:
        >>> import naysay as ns
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[1, 0, 2, 3]]), scores=np.array([[0.9, 0.8, 0.7, 0.6]]))
        >>> left = exclude(Candidates.of(found), ns.Positives.from_pairs([0], [1], n_items=4), same_ids=True)
        >>> left.ids[left.kept].tolist(), sorted(left.dropped)
        ([2, 3], ['anchor', 'positive'])
    """
    check_candidates(candidates)
    if not isinstance(same_ids, bool | np.bool_):
        raise_invalid("same_ids", "True or False", shown(same_ids))
    rows = np.arange(len(candidates))
    if known is not None:
        if not isinstance(known, Positives):
            raise_invalid("known", "Positives", type(known).__name__)
        if known.n_anchors != len(rows):
            raise_invalid("known", f"of {len(rows)} anchors, like the candidates", known.n_anchors)
        if candidates.ids.max(initial=-1) >= known.n_items:
            raise_invalid("known", f"of more than {candidates.ids.max()} items, like the candidates", known.n_items)
        candidates = candidates.drop(known.contains(rows, candidates.ids), "positive")
    if same_ids:
        candidates = candidates.drop(candidates.ids == rows[:, None], "anchor")
    if known is not None and known.relation is not None:
        candidates = candidates.drop(known.contains(rows, candidates.ids, relation="ignore"), "ignored")
    if duplicates is not None:
        check_detector("duplicates", duplicates)
        candidates = candidates.drop(ask(candidates, duplicates, query) >= SUSPICION_THRESHOLD, "duplicate")
    return candidates

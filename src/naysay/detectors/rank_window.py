"""RankWindow: skip the nearest few of each row."""

from __future__ import annotations

from typing import final

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import check_whole, public
from naysay.detectors._slots import as_suspicion, check_query_and_negatives, filled_slots, slot_scores
from naysay.text import described
from naysay.types import Array, Negatives, Query


@final
@public
class RankWindow:
    """Suspect the `skip` highest scores of each row: Shift-N, `range_min`, or "ranks 10 to 210" of other miners.

    Suspicion is skip / (skip + rank), with ranks from 1: 0.5 at rank `skip`, below it for later ranks. To skip m later,
    use the threshold skip / (skip + m). Equal scores are ranked by id, the lower first.

    Ranks count all slots with an id, whatever other rules suspect: apply every detector to the same negatives and act
    once. In a row with `skip` candidates or fewer all are suspected. The rule does not look at scores, and is meant for
    rows that hold the *nearest* candidates of an anchor.

    Cost: a sort of each row, O(K log K).

    Args:
        skip: The number of nearest candidates that are suspected.

    Examples:
        >>> import naysay as ns
        >>> asked = ns.Negatives(np.array([[3, 4, 5, -1]]), scores=np.array([[0.7, 0.8, 0.1, 0.0]]))
        >>> RankWindow(1).suspicion(ns.Query([0]), asked).round(3).tolist()
        [[0.333, 0.5, 0.25, 0.0]]
    """

    def __init__(self, skip: int) -> None:
        self.skip = check_whole("skip", skip, 0)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 for the nearest `skip` of each row."""
        check_query_and_negatives(query, negatives)
        scores, filled = slot_scores(negatives), filled_slots(negatives)
        ids = np.asarray(to_numpy(negatives.ids))
        order = np.lexsort((ids, np.where(filled, -scores, np.inf)))  # by score, then by id; empty slots last
        ranks = np.argsort(order, axis=1) + 1
        return as_suspicion(self.skip / (self.skip + ranks), negatives)

    __repr__ = described

"""Absolute: one threshold for all anchors."""

from __future__ import annotations

from typing import final

import numpy as np

from naysay.arrays import Floats
from naysay.checks import check_number, public
from naysay.detectors._slots import suspicion_above
from naysay.text import described
from naysay.types import Array, Negatives, Query, check_query


@final
@public
class Absolute:
    """Suspect what scores above `high`, whatever the anchor: TopK-Abs, or `max_score` of other miners.

    Suspicion is 0.5 + 0.5 d / (1 + |d|), d = s - high, and just below 0.5 at d = 0.

    The right number depends on the encoder: cosines of one lie between 0.7 and 1, of another around 0. `Calibrated`
    finds a threshold by labelled positives, `choose_thresholds` by the share of pairs above it.

    Cost: O(1) per slot.

    Moreira et al. NV-Retriever: Improving Text Embedding Models with Effective Hard-Negative Mining. 2024.

    Args:
        high: The highest score that a negative may have. A score of exactly `high` is kept, as in the paper.

    Examples:
        >>> import naysay as ns
        >>> asked = ns.Negatives(np.array([[3, 4, -1]]), scores=np.array([[0.7, 0.8, 0.0]]))
        >>> (Absolute(0.7).suspicion(ns.Query([0]), asked) >= 0.5).tolist()
        [[False, True, False]]
    """

    def __init__(self, high: float) -> None:
        self.high = check_number("high", high, finite=True)

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        check_query(query)
        return np.full(len(query), self.high)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above `high`."""
        return suspicion_above(self.threshold, query, negatives)

    __repr__ = described

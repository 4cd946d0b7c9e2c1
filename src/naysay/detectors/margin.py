"""Margin and ShareOfPositive: a threshold below the score of the anchor's own positive."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from naysay.arrays import Floats
from naysay.checks import check_number, public
from naysay.detectors._slots import suspicion_above
from naysay.detectors.positive_scores import read_positive_scores, scores_of_positives
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query


@final
@public
class Margin(MadeOf):
    """Suspect what scores above s+ - margin, s+ the positive's score (TopK-MarginPos, `absolute_margin`).

    A score equal to the threshold is kept. Suspicion is 0.5 + 0.5 d / (1 + |d|), d = s - (s+ - margin), and just below
    0.5 at d = 0. An anchor without a known positive is an error.

    The right margin depends on the encoder: with one that scores everything between 0.9 and 1, a margin of 0.05 drops
    nearly all negatives.

    Cost: O(1) per slot.

    Moreira et al. NV-Retriever: Improving Text Embedding Models with Effective Hard-Negative Mining. 2024.

    Args:
        margin: How far a negative has to stay below its anchor's positive, in units of the score. With a negative
            margin it may score higher by that much: -0.1 is the mask of Qwen3's batches.
        positive_scores: The scores s+: a function of the query -> (B,), e.g. lambda query: score(query.anchors,
            query.positives); or (n_anchors,) the lowest score of each anchor's positives by id, as `lowest_scores`
            returns it. None: `mine` fills them in; elsewhere that is an error.

    Examples:
        >>> import naysay as ns
        >>> asked = ns.Negatives(np.array([[3, 4, -1]]), scores=np.array([[0.7, 0.8, 0.0]]))
        >>> rule = Margin(0.05, positive_scores=[0.8])
        >>> rule.threshold(ns.Query([0])).tolist(), (rule.suspicion(ns.Query([0]), asked) >= 0.5).tolist()
        ([0.75], [[False, True, False]])
    """

    _made_of = ("positive_scores",)

    def __init__(self, margin: float, positive_scores: Any = None) -> None:
        self.margin = check_number("margin", margin, finite=True)
        self.positive_scores = None if positive_scores is None else read_positive_scores(positive_scores)

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        return scores_of_positives(self.positive_scores, query) - self.margin

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above the row's threshold."""
        return suspicion_above(self.threshold, query, negatives)

    def describe(self) -> str:
        """What is suspected, in a sentence."""
        return f"Suspected: scores of at least that of the anchor's positive minus {self.margin:g}."

    __repr__ = described


@final
@public
class ShareOfPositive(MadeOf):
    """Suspect what scores above a share of the positive's score: s > s+ - |s+| (1 - share) (TopK-PercPos).

    For s+ >= 0 the threshold is share * s+. For s+ < 0 that product would be *above* the positive, and keep candidates
    that are closer than it; with |s+| the threshold is below it for either sign. A score equal to the threshold is
    kept. Suspicion is that of `Margin`.

    In `tests/detectors/test_rules.py`, over five encoders, 95 % misses from none to more than a third of unlabelled
    positives; `Calibrated` keeps its bound on each.

    Cost: O(1) per slot.

    Moreira et al. NV-Retriever: Improving Text Embedding Models with Effective Hard-Negative Mining. 2024.

    Args:
        positive_scores: The scores s+, as for `Margin`.
        share: 0.95 is the default or the advice of every miner that has this rule. 1 is the positive's own score.

    Examples:
        >>> import naysay as ns
        >>> ShareOfPositive([0.8, -0.2]).threshold(ns.Query([0, 1])).round(6).tolist()
        [0.76, -0.21]
    """

    _made_of = ("positive_scores",)

    def __init__(self, positive_scores: Any = None, share: float = 0.95) -> None:
        self.share = check_number("share", share, above=0, at_most=1)
        self.positive_scores = None if positive_scores is None else read_positive_scores(positive_scores)

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        positive = scores_of_positives(self.positive_scores, query)
        return positive - np.abs(positive) * (1 - self.share)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above the row's threshold."""
        return suspicion_above(self.threshold, query, negatives)

    def describe(self) -> str:
        """What is suspected, in a sentence."""
        return f"Suspected: scores of at least {100 * self.share:g} % of that of the anchor's positive."

    __repr__ = described

"""Ecdf: the rank of a score among those of all positives, against the rank of the anchor's own positive."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats
from naysay.checks import as_floats, check_number, public, raise_invalid
from naysay.detectors._slots import as_suspicion, by_share, check_query_and_negatives, finite_scores, slot_scores
from naysay.detectors.positive_scores import read_positive_scores, scores_of_positives
from naysay.text import described
from naysay.types import Array, Negatives, Query


@final
@public
class Ecdf:
    """Suspect what scores above the highest of all positives that ranks max(beta u(s+), floor) or less.

    u(s) is the share of the positives that score below s: 0 for the lowest, 1 for the highest, interpolated linearly.
    So units of the score play no part. The threshold is the positive's score at place floor(p (n - 1)), from 0, of the
    ascending scores, p = max(beta u(s+), floor). A score equal to the threshold is kept. Suspicion is u / (2 p') up to
    p', the threshold's own rank, and 0.5 + 0.5 (u - p') / (1 - p') above it.

    A score right above the threshold is flagged although its own u may be p or less, as in the code below. With fewer
    than 1 + 1 / p positives the threshold is the lowest of all: below 201 of them the default floor has no effect.
    `Calibrated` is similar and has a bound; `floor` corresponds to its alpha.

    Cost: a sort of n scores; O(log n) per slot.

    github.com/jansowa/mine-hard-negatives, 2026, for scores of a cross-encoder: beta, floor and threshold are from it.

    Args:
        scores: (n,) the scores of all labelled positives.
        positive_scores: The scores s+, as for `Margin`.
        beta: How high a negative may rank, as a share of its own positive's rank.
        floor: How high a negative may rank in any case.

    Examples:
        >>> import naysay as ns
        >>> rule = Ecdf(np.arange(101) / 100, positive_scores=[0.9, 0.2], beta=0.1)
        >>> rule.threshold(ns.Query([0, 1])).tolist()
        [0.09, 0.02]
    """

    def __init__(self, scores: Any, positive_scores: Any, beta: float = 0.01, floor: float = 0.005) -> None:
        known = finite_scores("scores", scores)
        if known.min() == known.max():
            advice = "Ranks among equal scores mean nothing."
            raise_invalid("scores", "of more than one value", f"{len(known)} times {known[0]:g}", advice)
        self.beta = check_number("beta", beta, at_least=0, at_most=1)
        self.floor = check_number("floor", floor, at_least=0, at_most=1)
        self.positive_scores = read_positive_scores(positive_scores)
        self._scores, self._ranks = np.sort(known), np.arange(len(known)) / (len(known) - 1)

    def rank(self, scores: Any) -> Floats:
        """The rank u of each score among the positives, from 0 to 1."""
        return np.asarray(np.interp(as_floats("scores", scores), self._scores, self._ranks), np.float64)

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        return np.asarray(self._scores[self._place(query)])

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score ranks above the row's threshold."""
        check_query_and_negatives(query, negatives)
        scores = slot_scores(negatives)
        place = self._place(query)[:, None]
        flagged = scores > self._scores[place]
        return as_suspicion(by_share(self.rank(scores), self._ranks[place], flagged), negatives)

    def _place(self, query: Query) -> NDArray[np.int64]:
        """(B,) the place of each row's threshold among the ascending scores: the last that ranks low enough."""
        own = self.rank(scores_of_positives(self.positive_scores, query))
        return np.searchsorted(self._ranks, np.maximum(self.beta * own, self.floor), side="right") - 1

    def __repr__(self) -> str:
        return described(self, scores=self._scores)

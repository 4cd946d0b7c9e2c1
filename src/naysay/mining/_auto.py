"""The judge that `mine` takes by itself: a line with a bound if labels allow it, else one by shares of all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.thresholds import choose_thresholds
from naysay.positives import Positives
from naysay.search._pair_scores import pair_scores
from naysay.search.vectors import Vectors

ALPHA, FALSE_SHARE, HARD_SHARE = 0.05, 0.001, 0.05
SAMPLE = 1 << 18  # pairs that stand for all


@final
@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Scores of random pairs that are not known, and how many of those drawn were.

    Args:
        scores: (s,) float32.
        n_positives: Known positives among the pairs drawn; they count among all pairs, where shares are concerned.
        whole: Whether these are all pairs that there are.
    """

    scores: NDArray[np.float32]
    n_positives: int
    whole: bool

    @property
    def tells(self) -> bool:
        """Whether there is more than one score, so that shares mean something."""
        return len(self.scores) > 0 and bool(self.scores.min() < self.scores.max())


def background(
    queries: Vectors, corpus: Vectors, known: Positives, metric: str, rng: np.random.Generator
) -> Background:
    """The scores of 2^18 pairs, each as likely, or of all if there are no more."""
    total = queries.n * corpus.n
    whole = total <= SAMPLE
    drawn = np.arange(total) if whole else rng.integers(0, total, SAMPLE)
    anchors, items = drawn // max(1, corpus.n), drawn % max(1, corpus.n)
    free = ~known.contains(anchors, items, relation="any")
    scores = pair_scores(queries, corpus, anchors[free], items[free], metric)
    return Background(scores, int(np.count_nonzero(known.contains(anchors, items))), whole)


def calibrated(alpha: float, scores: NDArray[Any]) -> Calibrated | None:
    """A line through these scores of positives, one of an anchor, or None if they cannot hold the bound."""
    if len(scores) < least_positives(alpha) or scores.min() == scores.max():
        return None
    return Calibrated(alpha).fit(scores)


def by_shares(sample: Background) -> Bands:
    """The bands that leave 0.1 % of all pairs as false and 5 % as hard; all is easy if scores tell nothing apart."""
    if not sample.tells:
        return Bands(np.inf, np.inf)
    chosen = choose_thresholds(
        sample.scores, n_positives=sample.n_positives, false_share=FALSE_SHARE, hard_share=HARD_SHARE
    )
    return Bands(chosen.low, chosen.high)


def shares_sentence(bands: Bands, sample: Background, labelled: int, alpha: float) -> str:
    """What the line by shares rests on, and why it is not one with a bound."""
    if not sample.tells:
        return "Nothing is suspected: the scores of all pairs are equal."
    pairs = len(sample.scores) + sample.n_positives
    of = "pairs" if sample.whole else "random pairs"
    return (
        f"Suspected from {bands.high:.4g} on, so that {FALSE_SHARE:.1%} of {pairs:,} {of} are: a guess about the data, "
        f"because {labelled} anchors with a positive cannot hold a bound of {alpha:.0%} ({least_positives(alpha)} can)."
    )

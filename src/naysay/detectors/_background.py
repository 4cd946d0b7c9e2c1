"""The level of an anchor's scores: their mean and deviation over random candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_range, first_bad, raise_invalid
from naysay.detectors.positive_scores import finite_scores
from naysay.quantity._weight import Floats


@final
@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Two numbers for each anchor, by its id: mean (n_anchors,) and deviation (n_anchors,)."""

    mean: Floats
    deviation: Floats

    def standardised(self, scores: Floats, anchors: NDArray[np.int64]) -> Floats:
        """(s - mean) / deviation of each score, for anchors (B,) and scores (B,) or (B, K)."""
        mean, deviation = self.of(anchors)
        shape = (len(anchors),) + (1,) * (scores.ndim - 1)
        return np.asarray((scores - mean.reshape(shape)) / deviation.reshape(shape))

    def of(self, anchors: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and deviation of these anchors, (B,) each. An anchor without a background is an error."""
        check_range("anchors", anchors, len(self.mean), "anchors with a background")
        return self.mean[anchors], self.deviation[anchors]


def read_background(given: Any, *, standardise: bool) -> Background | None:
    """A table by anchor id, of scores (n_anchors, m) of random candidates, or a tuple (mean, deviation).

    It must be given if and only if scores are standardised. The deviation of m scores divides by m - 1.
    """
    if (given is None) == standardise:
        rule = "given for standardise=True" if standardise else "left out without standardise=True"
        advice = "" if standardise else "Make it Calibrated(alpha, standardise=True) to use it."
        raise_invalid("background", rule, None if given is None else type(given).__name__, advice)
    if given is None:
        return None
    if isinstance(given, tuple):
        if len(given) != 2:
            raise_invalid("background", "a pair (mean, deviation)", f"a tuple of {len(given)}")
        mean, deviation = (finite_scores("background", part, "(n_anchors,)") for part in given)
        if len(mean) != len(deviation):
            got = f"{len(mean)} and {len(deviation)}"
            raise_invalid("background", "a mean and a deviation for each anchor", got)
    else:
        scores = finite_scores("background", given, "(n_anchors, m)")
        if scores.shape[1] < 2:
            raise_invalid("background", "at least 2 scores for each anchor", scores.shape[1], "Score some hundred.")
        mean, deviation = scores.mean(axis=1), scores.std(axis=1, ddof=1)
        flat = scores.max(axis=1) == scores.min(axis=1)
        deviation = np.where(flat, 0.0, deviation)  # equal numbers may leave a rounding error
    if (deviation <= 0).any():
        raise_invalid("background", "of a deviation above 0", first_bad(deviation, deviation <= 0))
    return Background(mean, deviation)

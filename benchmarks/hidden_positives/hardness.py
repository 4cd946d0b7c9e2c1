"""Compares rules at equal hardness: that of a plain rank window.

A rule that selects easier negatives returns fewer hidden positives without being better. So each rule is a curve,
hardness against the share of hidden positives returned, and curves are compared at the same hardness. A curve comes
from varying the rule's parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.rate import CONFIDENCE, effective_size, exact_interval, moments

Floats = NDArray[np.float64]
SAMPLES = 400


@dataclass(frozen=True, eq=False)
class Curve:
    """A rule at each value of its parameter, by anchor; seeds of an anchor are summed.

    settings   (places,) what the parameter was
    returned   (places, anchors) hidden positives among the negatives taken
    hidden     (anchors,) hidden positives there were
    hardness   (places, anchors) sums of the hardness of the negatives taken
    taken      (places, anchors) how many were taken
    """

    settings: list[float]
    returned: Floats
    hidden: Floats
    hardness: Floats
    taken: Floats

    def points(self, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """(places,) mean hardness, and (places,) share of hidden positives returned; anchors may be weighted."""
        w = np.ones(len(self.hidden)) if weights is None else weights
        return (self.hardness @ w) / np.maximum(self.taken @ w, 1), (self.returned @ w) / max(float(self.hidden @ w), 1)


def at_hardness(hardness: Floats, shares: Floats, level: float) -> float:
    """The share at `level`, along straight lines between neighbours in hardness; NaN outside of what was measured.

    Of values with the same hardness the lowest share counts: a user would choose that one.
    """
    order = np.lexsort((shares, hardness))
    hard, share = hardness[order], shares[order]
    first = np.ones(len(hard), bool)
    first[1:] = hard[1:] > hard[:-1]
    hard, share = hard[first], share[first]
    if not hard[0] <= level <= hard[-1]:
        return float("nan")
    return float(np.interp(level, hard, share))


def compared(curves: dict[str, Curve], base: str, levels: Floats, rng: np.random.Generator) -> dict[str, Any]:
    """All rules at all levels: the share returned in per cent, and the difference to `base` with its interval.

    The interval is of 95 %, from samples of the anchors with replacement, the same for both rules. What a rule was
    fitted to, and the levels, stay as they are. None if a rule does not reach the level in 19 of 20 samples.
    """
    n = len(curves[base].hidden)
    samples = rng.multinomial(n, np.full(n, 1 / n), SAMPLES).astype(np.float64)
    drawn = {name: np.array([_shares(curve, levels, one) for one in samples]) for name, curve in curves.items()}
    reference = _shares(curves[base], levels)
    found: dict[str, Any] = {}
    for name, curve in curves.items():
        own = _shares(curve, levels)
        rows: list[dict[str, float] | None] = []
        for place, share in enumerate(own):
            apart = drawn[name][:, place] - drawn[base][:, place]
            reached = ~np.isnan(apart)
            if np.isnan(share) or reached.mean() < 0.95:
                rows.append(None)
                continue
            low, high = np.quantile(apart[reached], [0.025, 0.975])
            differs = {"difference": share - reference[place], "low": low, "high": high}
            rows.append({"percent": rounded(100 * share)} | {key: rounded(100 * v) for key, v in differs.items()})
        found[name] = rows
    return found


def _shares(curve: Curve, levels: Floats, weights: Floats | None = None) -> list[float]:
    hardness, shares = curve.points(weights)
    return [at_hardness(hardness, shares, level) for level in levels.tolist()]


def share_of(part: Floats, whole: Floats, distinct: float) -> dict[str, float]:
    """A share over anchors in per cent, with the Clopper-Pearson interval at the effective number of observations.

    distinct   how many different slots there are at most: seeds look at the same ones again
    """
    sums = moments(part, whole)
    share = float(part.sum() / max(whole.sum(), 1))
    size = effective_size(sums, distinct, (1 - CONFIDENCE) / 2)
    low, high = exact_interval(share * size, size, CONFIDENCE) if size else (0.0, 1.0)
    return {"percent": rounded(100 * share), "low": rounded(100 * low), "high": rounded(100 * high)}


def auc(higher: Floats, lower: Floats) -> float:
    """The chance that one of `higher` is above one of `lower`, ties half; NaN if either is empty."""
    if not len(higher) or not len(lower):
        return float("nan")
    ordered = np.sort(lower)
    below, up_to = (np.searchsorted(ordered, higher, side=side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(lower)))


def rounded(value: float, places: int = 3) -> float:
    """A plain float of few figures, for JSON."""
    return round(float(value), places)

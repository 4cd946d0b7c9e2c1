"""How many negatives: the k at which the mean training effectiveness of a run is largest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.checks import as_floats, check_all, check_number, public, raise_invalid
from naysay.quantity._weight import Floats, check_weight
from naysay.quantity.effectiveness import check_k_max, check_points, run_mean
from naysay.quantity.separation import separation

_FLAT = 0.01  # of the best v: what counts as hardly worse
_EASY = 1.05  # times (1 - weight): what counts as hardly above


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The best k of a run, and how much it matters.

    Args:
        k: The best whole number from 1 to k_max; the smallest, if several are.
        curve: (k_max,) float64: v at k = 1 to k_max, the mean over the run.
        at_edge: Whether k is k_max itself: v may still rise beyond, so k is what you allowed and no optimum.
        flat: (low, high): all k between them give v within 1 % of the best, so take the cheapest.
        separation: Mu of the labels, from the training AUC.
        reached: (T,) mu' of the model, from the validation AUCs.
        weight: W, as given.
        carried_by_easy: Whether v(k) is less than 5 % above 1 - weight, to which v tends for large k whatever the
            data: then good samples hardly outweigh bad ones, and k says little.
        notes: A sentence for each thing that makes the answer less sure.
    """

    k: int
    curve: Floats
    at_edge: bool
    flat: tuple[int, int]
    separation: float
    reached: Floats
    weight: float
    carried_by_easy: bool
    notes: tuple[str, ...]


@public
def estimate(train_auc: float, val_auc: Any, *, weight: float = 0.9, k_max: int = 1000) -> Estimate:
    """The number of negatives per positive that makes the most of noisy labels (Wu, Wu and Huang, Eq. 3 to 7).

    AUCs are over uniform negatives; over hard ones, or from a run with k above 1, they are not what the formulas mean.
    Validation below 0.5 (worse than chance) or above the training AUC (more reliable than the labels; 1 is always
    reliable) is answered as the formulas have it, with a note.

    Cost: that of `mean_effectiveness`.

    Args:
        train_auc: AUC on the training data at convergence, before overfitting, from a run with one uniform negative
            per positive: how reliable the labels are. Above 0.5; 1 means labels without noise, for which every
            negative helps (if weight is above 0.5) and k = k_max.
        val_auc: (T,) AUC on validation data through that run, up to convergence and no further, at even intervals;
            or one number, for one moment.
        weight: W of good and bad samples against easy ones, in (0, 1).
        k_max: All whole numbers from 1 to k_max are tried; at most 10,000,000.

    Example:
        >>> found = estimate(train_auc=0.75, val_auc=[0.52, 0.61, 0.66, 0.7, 0.72])
        >>> found.k, found.flat, found.at_edge
        (4, (3, 5), False)
    """
    trained = check_number("train_auc", train_auc)
    if not 0 <= trained <= 1:
        raise_invalid("train_auc", "between 0 and 1", trained)
    if trained <= 0.5:
        advice = "At 0.5 labels carry no information, and no number of negatives helps."
        raise_invalid("train_auc", "above 0.5", trained, advice)
    values = np.atleast_1d(as_floats("val_auc", val_auc))
    check_all("val_auc", values, (values >= 0) & (values <= 1), "between 0 and 1")
    points = check_points("val_auc", values)
    w, largest = check_weight(weight), check_k_max(k_max)
    mu, reached = separation(trained), separation(points)
    curve = run_mean(mu, reached, w, largest)
    best = int(curve.argmax())
    k, v = best + 1, float(curve[best])
    carried = v < _EASY * (1 - w)
    notes = tuple(_notes(trained, points, k, largest, carried=carried))
    curve.flags.writeable = reached.flags.writeable = False
    return Estimate(k, curve, k == largest, _flat(curve, best), mu, reached, w, carried, notes)


def _flat(curve: Floats, best: int) -> tuple[int, int]:
    """The range of k around the best, without a gap, in which v is within 1 % of it."""
    worse = np.flatnonzero(curve < curve[best] - _FLAT * abs(curve[best]))
    after = int(np.searchsorted(worse, best))
    low = int(worse[after - 1]) + 2 if after else 1
    high = int(worse[after]) if after < len(worse) else len(curve)
    return low, high


def _notes(trained: float, points: Floats, k: int, k_max: int, *, carried: bool) -> list[str]:
    """What makes the answer less sure, a sentence each."""
    notes = []
    if k == k_max and trained == 1:
        notes.append("A training AUC of 1 means labels without noise: every negative helps, and k is k_max.")
    elif k == k_max:
        notes.append(f"The best k is k_max itself ({k_max}), so an optimum may lie beyond: raise k_max to see.")
    if carried:
        notes.append(
            "v is hardly above 1 - weight, if at all, which any data gives for large k: easy samples carry it, "
            "and k says little."
        )
    above, below = int((points > trained).sum()), int((points < 0.5).sum())
    if above:
        notes.append(
            f"{_counted(above, points)} above the training AUC, as if the model were more reliable than its labels: "
            "was the training AUC taken at convergence?"
        )
    if below:
        notes.append(f"{_counted(below, points)} below 0.5, worse than chance.")
    if len(points) == 1:
        notes.append(
            "One validation point is one moment, not a run: the best k of a moment may be far from that of the run."
        )
    return notes


def _counted(count: int, points: Floats) -> str:
    return f"{count} of {len(points)} validation points {'is' if count == 1 else 'are'}"

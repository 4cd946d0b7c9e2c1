"""How many negatives: the k at which the mean training effectiveness of a run is largest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.checks import as_floats, check_all, check_number, check_whole, public
from naysay.quantity.effectiveness import MAX_K_MAX, Floats, check_points, check_weight, run_mean, separation
from naysay.text import short_repr

_FLAT = 0.01  # v within this share of the best counts as equally good
_EASY = 1.05  # v below this times (1 - weight) comes from easy samples


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The best k of a run, and how sharp the optimum is.

    Attributes:
        k: The best whole number from 1 to k_max; the smallest, if several are equally good.
        curve: (k_max,) float64: v at k = 1 to k_max, the mean over the run.
        at_edge: Whether k equals k_max: v may rise further, so k is the limit and not an optimum.
        flat: (low, high): every k between them gives v within 1 % of the best, so take the cheapest.
        separation: mu of the labels, from the training AUC.
        reached: (T,) mu' of the model, from the validation AUCs.
        weight: The weight w that was used.
        carried_by_easy: Whether v(k) is less than 5 % above 1 - weight, to which v tends for large k whatever the
            data: good samples then hardly outweigh bad ones, and k is not informative.
        notes: A sentence for each reason to doubt the result.

    Example: see `estimate`.
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

    __repr__ = short_repr


@public
def estimate(train_auc: float, val_auc: Any, *, weight: float = 0.9, k_max: int = 1000) -> Estimate:
    """Estimate how many negatives per positive are best for noisy labels (Wu, Wu and Huang, Eq. 3 to 7).

    The AUCs must be measured over uniform negatives, in a run with k = 1. A validation AUC below 0.5 or above the
    training AUC is used as it is, with a note. Cost: that of `mean_effectiveness`.

    Args:
        train_auc: AUC on the training data at convergence, before overfitting: the reliability of the labels. Above
            0.5; at 1 every negative helps (if weight is above 0.5), and k = k_max.
        val_auc: (T,) AUC on validation data through that run, up to convergence, at even intervals; or one number.
        weight: w, the weight of good and bad samples against easy ones, in (0, 1).
        k_max: All whole numbers from 1 to k_max are tried; at most 10,000,000.

    Examples:
        >>> found = estimate(train_auc=0.75, val_auc=[0.52, 0.61, 0.66, 0.7, 0.72])
        >>> found.k, found.flat, found.at_edge
        (4, (3, 5), False)
    """
    advice = "At 0.5 labels carry no information, and no number of negatives helps."
    label_auc = check_number("train_auc", train_auc, above=0.5, at_most=1, advice=advice)
    values = np.atleast_1d(as_floats("val_auc", val_auc))
    check_all("val_auc", values, (values >= 0) & (values <= 1), "between 0 and 1")
    points = check_points("val_auc", values)
    w, largest = check_weight(weight), check_whole("k_max", k_max, 1, MAX_K_MAX)
    mu, reached = separation(label_auc), separation(points)
    curve = run_mean(mu, reached, w, largest)
    best = int(curve.argmax())
    k, v = best + 1, float(curve[best])
    carried = v < _EASY * (1 - w)
    notes = tuple(_notes(label_auc, points, k, largest, carried=carried))
    curve.flags.writeable = reached.flags.writeable = False
    return Estimate(k, curve, k == largest, _flat(curve, best), mu, reached, w, carried, notes)


def _flat(curve: Floats, best: int) -> tuple[int, int]:
    """The range of k around the best, without a gap, in which v is within 1 % of it."""
    worse = np.flatnonzero(curve < curve[best] - _FLAT * abs(curve[best]))
    after = int(np.searchsorted(worse, best))
    low = int(worse[after - 1]) + 2 if after else 1
    high = int(worse[after]) if after < len(worse) else len(curve)
    return low, high


def _notes(label_auc: float, points: Floats, k: int, k_max: int, *, carried: bool) -> list[str]:
    """Return a sentence for each reason to doubt the result."""
    notes = []
    if k == k_max and label_auc == 1:
        notes.append("A training AUC of 1 means labels without noise: every negative helps, and k equals k_max.")
    elif k == k_max:
        notes.append(f"The best k equals k_max ({k_max}), so the optimum may lie beyond it: raise k_max.")
    if carried:
        notes.append(
            "v is hardly above 1 - weight, the limit for large k whatever the data: it comes from easy samples, "
            "and k is not informative."
        )
    above, below = int((points > label_auc).sum()), int((points < 0.5).sum())
    if above:
        notes.append(
            f"{_counted(above, points)} above the training AUC, as if the model were more reliable than its labels: "
            "was the training AUC taken at convergence?"
        )
    if below:
        notes.append(f"{_counted(below, points)} below 0.5, worse than chance.")
    if len(points) == 1:
        notes.append("One validation point is one moment: its best k can differ much from that of the whole run.")
    return notes


def _counted(count: int, points: Floats) -> str:
    return f"{count} of {len(points)} validation points {'is' if count == 1 else 'are'}"

"""Where a schedule should turn, by the model: the mean training effectiveness of a simulated run, for each turning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.checks import as_floats, check_all, public
from naysay.quantity._weight import Floats, check_weight
from naysay.quantity.effectiveness import check_points, effectiveness
from naysay.quantity.schedules import adaptive, check_peak
from naysay.quantity.simulated import run_of

TURNINGS = tuple(percent / 100 for percent in (*range(10), *range(10, 101, 5)))


@dataclass(frozen=True, slots=True, eq=False)
class TurningSweep:
    """What `turning_sweep` found.

    Args:
        turning: The best of the turnings; the smallest, if several are.
        turnings: (n,) those that were tried.
        values: (n,) the mean v of a simulated run under each.
        constant: The mean v of the same run with k = peak throughout.
    """

    turning: float
    turnings: Floats
    values: Floats
    constant: float


@public
def turning_sweep(
    peak: float,
    separation: float,
    *,
    turnings: Any = TURNINGS,
    weight: float = 0.9,
    points: int = 301,
    end: float = 3.0,
) -> TurningSweep:
    """The mean v over a simulated run whose k follows adaptive(peak, points, turning), for each turning.

    k is fractional, and `realise` makes floor(k) or ceil(k) of it: v is the mean of the two with the same chances. The
    paper found 10 % by training (its Fig. 12); this asks only what its model of training effectiveness supports.

    Cost: 2 n points integrals.

    Args:
        peak: The largest k, usually that of `estimate`.
        separation: Mu of the labels; the model follows `simulated(separation, points, end)`.
        turnings: (n,) shares of the run in which k rises, each from 0 to 1.
        points: How many moments the run has, at least 2.

    Example:
        >>> turning_sweep(20, 2.4).turning, turning_sweep(4, 1.0).turning
        (0.15, 0.0)
    """
    check_peak(peak)
    shares = check_points("turnings", as_floats("turnings", turnings))
    check_all("turnings", shares, (shares >= 0) & (shares <= 1), "between 0 and 1")
    w = check_weight(weight)
    reached = run_of(separation, points, end)
    schedules = [adaptive(peak, points, float(share)) for share in shares]
    k = np.stack([*(k_at(np.arange(points)) for k_at in schedules), np.full(points, float(peak))])
    below = effectiveness(np.floor(k), separation, reached, weight=w)
    above = effectiveness(np.ceil(k), separation, reached, weight=w)
    *values, constant = (below + (k - np.floor(k)) * (above - below)).mean(axis=1).tolist()
    return TurningSweep(float(shares[np.argmax(values)]), shares, np.array(values), constant)

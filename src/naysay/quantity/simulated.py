"""Simulated runs: the model's separation as a saturating exponential, and which schedule of k suits it best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.checks import as_floats, check_all, check_number, check_whole, public
from naysay.quantity.effectiveness import check_points, check_weight, effectiveness
from naysay.quantity.schedules import adaptive, check_peak
from naysay.quantity.separation import Floats
from naysay.text import short_repr

_MOST = 10_000_000  # points
TURNINGS = tuple(percent / 100 for percent in (*range(10), *range(10, 101, 5)))


@public
def simulated(separation: float, points: int = 60, end: float = 3.0) -> Floats:
    """Simulate a run: mu'(t) = separation (1 - e^-t) at even t from 0 to `end`, both included.

    The paper finds that real curves have this shape, and uses it for its Fig. 5.

    Args:
        separation: mu of the labels, which the model approaches; finite.
        points: At least 2. The mean over a run depends on how it is sampled, and the best k with it: at separation
            2.4, 60 points give 20 and 301 give 21.
        end: The length of the run in time constants of the exponential; above 0. At 3 the model has come 95 % of
            the way.

    Returns:
        (points,) float64.

    Examples:
        >>> simulated(1.0, points=4).round(3).tolist()
        [0.0, 0.632, 0.865, 0.95]
    """
    return _run(separation, points, end)


@dataclass(frozen=True, slots=True, eq=False)
class TurningSweep:
    """The result of `turning_sweep`.

    Attributes:
        turning: The best of the turnings; the smallest, if several are equally good.
        turnings: (n,) the turnings that were tried.
        values: (n,) the mean v of a simulated run under each.
        constant: The mean v of the same run with k = peak throughout.

    Example: see `turning_sweep`.
    """

    turning: float
    turnings: Floats
    values: Floats
    constant: float

    __repr__ = short_repr


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
    """Compute the mean v of a simulated run whose k follows adaptive(peak, points, turning), for each turning.

    k is fractional, and `realise` rounds it to floor(k) or ceil(k): v is the mean of the two with the same chances. The
    paper found 10 % by training (its Fig. 12); this only evaluates its model of training effectiveness.

    Cost: 2 n points integrals.

    Args:
        peak: The largest k, usually that of `estimate`.
        separation: mu of the labels; the model follows `simulated(separation, points, end)`.
        turnings: (n,) shares of the run in which k rises, each from 0 to 1.
        weight: w, the weight of good and bad samples against easy ones, in (0, 1).
        points: The number of moments of the run, at least 2.
        end: The length of the run in time constants, as in `simulated`.

    Examples:
        >>> turning_sweep(20, 2.4).turning, turning_sweep(4, 1.0).turning
        (0.15, 0.0)
    """
    check_peak(peak)
    shares = check_points("turnings", as_floats("turnings", turnings))
    check_all("turnings", shares, (shares >= 0) & (shares <= 1), "between 0 and 1")
    w = check_weight(weight)
    reached = _run(separation, points, end)
    schedules = [adaptive(peak, points, float(share)) for share in shares]
    k = np.stack([*(k_at(np.arange(points)) for k_at in schedules), np.full(points, float(peak))])
    below = effectiveness(np.floor(k), separation, reached, weight=w)
    above = effectiveness(np.ceil(k), separation, reached, weight=w)
    *values, constant = (below + (k - np.floor(k)) * (above - below)).mean(axis=1).tolist()
    return TurningSweep(float(shares[np.argmax(values)]), shares, np.array(values), constant)


def _run(separation: Any, points: Any, end: Any) -> Floats:
    mu = check_number("separation", separation, finite=True)
    last = check_number("end", end, above=0, finite=True)
    return np.asarray(-mu * np.expm1(-np.linspace(0, last, check_whole("points", points, 2, _MOST))))

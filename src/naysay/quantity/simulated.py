"""A training run that was not run: the model's separation as a saturating exponential."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.checks import check_number, check_whole, public, raise_invalid
from naysay.quantity._weight import Floats


@public
def simulated(separation: float, points: int = 60, end: float = 3.0) -> Floats:
    """(points,) mu'(t) = separation (1 - e^-t) at even t from 0 to `end`, both included.

    The paper finds that real curves have this shape, and uses it for its Fig. 5.

    Args:
        separation: Mu of the labels, which the model approaches; finite.
        points: At least 2. The mean over a run depends on how it is sampled, and the best k with it: at separation
            2.4, 60 points give 20 and 301 give 21.
        end: How long the run is, in times of the exponential; above 0. At 3 the model has come 95 % of the way.

    Example:
        >>> simulated(1.0, points=4).round(3).tolist()
        [0.0, 0.632, 0.865, 0.95]
    """
    return run_of(separation, points, end)


def run_of(separation: Any, points: Any, end: Any) -> Floats:
    """`simulated`, for internal callers."""
    mu, last = check_number("separation", separation), check_number("end", end)
    if not np.isfinite(mu):
        raise_invalid("separation", "finite", mu)
    if not 0 < last < np.inf:
        raise_invalid("end", "above 0 and finite", last)
    return np.asarray(-mu * np.expm1(-np.linspace(0, last, check_whole("points", points, 2))))

"""Reliability: whether suspicion can be read as a probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import public
from naysay.detectors._intervals import Floats


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Suspicion against the observed share of false negatives, in bins of equal width from 0 to 1.

    An edge belongs to the bin above it, 1 to the last bin. A detector whose suspicion is a rank or a flag has a large
    calibration error and may still be good at its threshold. The error tells whether suspicion can be used as a
    probability, as `reweight` does.

    Naeini, Cooper and Hauskrecht. Obtaining Well Calibrated Probabilities Using Bayesian Binning. AAAI 2015.

    Args:
        count: (bins,) the number of slots in each bin.
        suspicion: (bins,) their mean suspicion; NaN in an empty bin.
        observed: (bins,) the share of them that are false negatives; NaN in an empty bin.
        error: The expected calibration error: the mean over slots of |observed - suspicion| of their bin.

    Examples:
        >>> print(Reliability(np.array([3, 1]), np.array([0.1, 0.9]), np.array([0.0, 1.0]), 0.1))
        from   to     slots  suspicion  observed
        0.00 0.50         3     0.100     0.000
        0.50 1.00         1     0.900     1.000
    """

    count: NDArray[np.int64]
    suspicion: Floats
    observed: Floats
    error: float

    def __str__(self) -> str:
        """A table of the bins that hold slots."""
        edges = np.linspace(0, 1, len(self.count) + 1)
        lines = ["from   to     slots  suspicion  observed"]
        for place in np.flatnonzero(self.count):
            shares = f"{self.suspicion[place]:>9.3f} {self.observed[place]:>9.3f}"
            lines.append(f"{edges[place]:.2f} {edges[place + 1]:.2f} {self.count[place]:>9,} {shares}")
        return "\n".join(lines)


def bin_sums(suspicion: Floats, false: NDArray[Any], bins: int) -> Floats:
    """(3, bins) slots, suspicion and false negatives summed by bin; sums of batches add up."""
    place = np.minimum((suspicion * bins).astype(np.int64), bins - 1)
    kinds = (None, suspicion, false.astype(np.float64))
    return np.stack([np.bincount(place, weights=kind, minlength=bins) for kind in kinds]).astype(np.float64)


def reliability(sums: Floats) -> Reliability:
    """The curve from the sums of bins."""
    count, suspicion, false = sums
    with np.errstate(invalid="ignore"):
        means, observed = suspicion / count, false / count
    error = float(np.abs(false - suspicion).sum() / count.sum())
    return Reliability(count.astype(np.int64), means, observed, error)

"""Whether suspicion means what it says: that 80 % of the slots suspected at 0.8 are false negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Slots by suspicion, in bins of equal width from 0 to 1; an edge belongs to the bin above it, 1 to the last.

    A detector whose suspicion is a rank or a flag has a large error and may still be a good detector: the line is what
    counts. The error says whether its numbers may be read as probabilities, as a policy that reweights by them does.

    Naeini, Cooper and Hauskrecht. Obtaining Well Calibrated Probabilities Using Bayesian Binning. AAAI 2015.

    Args:
        count: (bins,) slots in each bin.
        suspicion: (bins,) their mean suspicion; NaN in an empty bin.
        observed: (bins,) the share of them that are false negatives; NaN in an empty bin.
        error: The expected calibration error: the mean over slots of |observed - suspicion| of their bin.
    """

    count: NDArray[np.int64]
    suspicion: Floats
    observed: Floats
    error: float

    def __str__(self) -> str:
        """A line for each bin that holds slots."""
        edges = np.linspace(0, 1, len(self.count) + 1)
        lines = ["from   to     slots  suspicion  observed"]
        for place in np.flatnonzero(self.count):
            shares = f"{self.suspicion[place]:>9.3f} {self.observed[place]:>9.3f}"
            lines.append(f"{edges[place]:.2f} {edges[place + 1]:.2f} {self.count[place]:>9,} {shares}")
        return "\n".join(lines)


def bin_sums(suspicion: Floats, false: NDArray[Any], bins: int) -> Floats:
    """(3, bins) slots, suspicion and false negatives summed by bin, of slots (n,); sums of batches add up."""
    place = np.minimum((suspicion * bins).astype(np.int64), bins - 1)
    kinds = (None, suspicion, false.astype(np.float64))
    return np.stack([np.bincount(place, weights=kind, minlength=bins) for kind in kinds]).astype(np.float64)


def reliability(sums: Floats) -> Reliability:
    """The curve of summed bins."""
    count, suspicion, false = sums
    with np.errstate(invalid="ignore"):
        means, observed = suspicion / count, false / count
    error = float(np.abs(false - suspicion).sum() / count.sum())
    return Reliability(count.astype(np.int64), means, observed, error)

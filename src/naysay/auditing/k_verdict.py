"""Whether k is too small or too large for labels that are as noisy as these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from naysay.auditing._corpus_sample import Look
from naysay.quantity._probe import Probe, probe
from naysay.quantity.estimate import estimate
from naysay.quantity.separation import auc, separation
from naysay.quantity.simulated import simulated

K_MAX = 1000
_RESTS_ON = (
    "one AUC, of this model over uniform negatives of the corpus, taken for the labels' own, and a simulated run; "
    "negatives of the batch count too"
)


@final
@dataclass(frozen=True, slots=True)
class Quantity:
    """The verdict on k, the negatives of a row.

    Args:
        k: Negatives of a row: the median over anchors that have some.
        verdict: "too small", "too large", "within" or "cannot be told".
        best: K*, the k at which training is most effective (`quantity.estimate`); None where it cannot be told.
        low: All k between them are within 1 % of the best, for some AUC of the interval; high may be 1000 and more.
        high: All k between them are within 1 % of the best, for some AUC of the interval; high may be 1000 and
            more.
        auc: The AUC of positives against uniform negatives, and its standard error; None without vectors.
        error: The AUC of positives against uniform negatives, and its standard error; None without vectors.
        separation: Of that AUC: `naysay howmany --separation` draws the curve.
        rests_on: What the verdict rests on, or why there is none.
    """

    k: int
    verdict: str
    best: int | None = None
    low: int | None = None
    high: int | None = None
    auc: float | None = None
    error: float | None = None
    separation: float | None = None
    rests_on: str = ""


def enough(k: int, seen: Look | None) -> Quantity:
    """Compare k with K* of the model's AUC (Wu, Wu and Huang; see `quantity.estimate`).

    The AUC must be over uniform negatives: over the set's own, which are mostly hard ones, it is another number. It is
    taken for the labels' AUC, and the run for the paper's simulated one, which ends there. K* is found for five AUCs
    from 2 standard errors below to 2 above, since it falls and rises with the AUC.
    """
    if seen is None:
        why = "it takes vectors: the AUC must be over uniform negatives of the corpus"
        return Quantity(k, "cannot be told", rests_on=why)
    if len(seen.anchors) < 2:
        return Quantity(k, "cannot be told", rests_on="it takes positives of at least 2 anchors")
    found = probe(seen.positives, seen.scores, seen.free)
    middle = _inside(found.auc, found)
    if middle <= 0.5:
        why = "the model ranks positives no higher than uniform negatives"
        return Quantity(k, "cannot be told", auc=found.auc, error=found.error, rests_on=why)
    spread = np.linspace(-2, 2, 5) * found.error
    runs = [_run(_inside(found.auc + step, found)) for step in spread.tolist() if found.auc + step > 0.5]
    best, low, high = _run(middle)[0], min(run[1] for run in runs), max(run[2] for run in runs)
    verdict = "too small" if k < low else "too large" if k > high and high < K_MAX else "within"
    return Quantity(k, verdict, best, low, high, found.auc, found.error, separation(middle), _RESTS_ON)


def _inside(value: float, found: Probe) -> float:
    """An AUC that some comparisons can tell from 1."""
    return min(value, 1 - 0.5 / max(found.comparisons, 1.0))


def _run(reached: float) -> tuple[int, int, int]:
    """(K*, low, high) of a simulated run that ends at an AUC."""
    known = estimate(reached, auc(simulated(separation(reached))), k_max=K_MAX)
    return known.k, *known.flat

"""A probe of a model: the AUC of its scores over uniform negatives, and its effective sample size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, first_bad, raise_invalid
from naysay.quantity.separation import Floats


@dataclass(frozen=True, slots=True)
class Probe:
    """The summary of a probe; the scores are not stored.

    Attributes:
        auc: The mean over rows of the share of a row's negatives below its positive; a tie counts one half.
        error: The standard error of auc: the standard deviation of the rows' shares over sqrt(rows).
        rows: Rows with at least one negative.
        comparisons: The effective number of independent comparisons, auc (1 - auc) / error^2, at least one for each
            row and at most one for each slot.
    """

    auc: float
    error: float
    rows: int
    comparisons: float


def probe(positive: Any, negatives: Any, mask: Any = None) -> Probe:
    """Compute the AUC of n positives, each against the m negatives of its own row.

    Within rows, not pooled: the paper's AUC is P(A) at k = 1, the chance that a positive is above a negative *of the
    same sample*. InfoNCE never compares two anchors, so a score that is shifted for one anchor changes nothing it
    learns, but would change a pooled AUC. Every row has the same weight, however many slots it has.

    Rows are the independent units: negatives of one row share a positive, so 8 of them count less than 8 rows
    (`comparisons`). An AUC of exactly 0 or 1 has no spread, and counts one comparison for each row.

    Cost: O(n m), and 9 bytes a slot while it runs.

    Args:
        positive: (n,) scores, NumPy or torch.
        negatives: (n, m) scores of uniform negatives.
        mask: (n, m) whether a slot holds a negative (`Negatives.mask`); None: all do. Scores of other slots
            are ignored.
    """
    firsts, others, use = _scores(positive, negatives, mask)
    points = (others < firsts[:, None]) + 0.5 * (others == firsts[:, None])
    slots = use.sum(axis=1)
    filled = slots > 0
    rows = int(filled.sum())
    if rows < 2:
        advice = "Score some hundred pairs."
        raise_invalid("negatives", "scores for at least 2 rows", f"{rows} of {len(firsts)} rows", advice)
    shares = np.where(use, points, 0.0).sum(axis=1)[filled] / slots[filled]
    auc, error = float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(rows))
    effective = auc * (1 - auc) / error**2 if error > 0 else float(rows)
    return Probe(auc, error, rows, float(np.clip(effective, rows, slots.sum())))


def _scores(positive: Any, negatives: Any, mask: Any) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Positives (n,), negatives (n, m) and which slots count (n, m), as checked arrays."""
    firsts, others = (
        as_array(name, to_numpy(values)) for name, values in (("positive", positive), ("negatives", negatives))
    )
    for name, array, shape in (("positive", firsts, "(n,)"), ("negatives", others, "(n, m)")):
        if array.ndim != shape.count(",") + shape.count("m"):
            raise_invalid(name, f"of shape {shape}", f"shape {array.shape}")
        if array.dtype.kind not in "iuf":
            raise_invalid(name, "scores", f"dtype {array.dtype}")
    if len(others) != len(firsts):
        raise_invalid("negatives", f"of shape ({len(firsts)}, m), a row for each positive", f"shape {others.shape}")
    use = np.ones(others.shape, bool) if mask is None else as_array("mask", to_numpy(mask))
    if use.dtype.kind != "b":
        raise_invalid("mask", "True or False for each slot", f"dtype {use.dtype}", "Pass ids >= 0.")
    if use.shape != others.shape:
        raise_invalid("mask", f"of shape {others.shape}, like the negatives", f"shape {use.shape}")
    for name, array, bad in (
        ("positive", firsts, ~np.isfinite(firsts) & use.any(axis=1)),
        ("negatives", others, ~np.isfinite(others) & use),
    ):
        if bad.any():
            worst = array if array.ndim == 1 else array[np.arange(len(bad)), bad.argmax(axis=1)]
            raise_invalid(name, "finite scores", first_bad(worst, bad))
    return firsts, others, use

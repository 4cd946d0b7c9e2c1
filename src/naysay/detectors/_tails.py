"""The bound that a tail of the scores puts on the share of positives among candidates.

With pi the share of unlabelled positives among the candidates, their scores follow pi F_pos + (1 - pi) F_neg. For any
set S of scores P_cand(S) >= pi P_pos(S), so pi <= P_cand(S) / P_pos(S). True negatives are fewest at the top of the
scores, so the sets that are tried are tails S = {score >= t}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, raise_invalid
from naysay.detectors._intervals import Floats, effective_size, least_share, moments, most_share
from naysay.detectors._score_blocks import first_slot

# Tails by the share of the positives that they hold. They are fixed beforehand, and the error is divided among them:
# the lowest of many noisy bounds would be too low.
_TAILS = (0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of candidates and of known positives.

    Args:
        candidates: (B, n), or (m, 1) if they were given as (m,).
        filled: (B, n) whether a slot holds a candidate.
        positives: (m,).
        shape: The shape of the candidates as they were given.
        size: The number of candidates.
    """

    candidates: Floats
    filled: NDArray[np.bool_]
    positives: Floats
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Tail:
    """The bound on pi by one tail: the estimate `value`, and its upper confidence limit `most`."""

    most: float
    value: float


def lowest_bound(scores: Scores, error: float, *, representative_anchors: bool) -> Tail:
    """The tail with the lowest bound on pi. All bounds hold at once with probability 1 - error at least."""
    n = len(scores.positives)
    ordered = np.sort(scores.positives)[::-1]
    counts = sorted({round(share * n) for share in _TAILS} - {0})
    each = error / (2 * len(counts))
    whole = scores.filled.sum(axis=1)
    tails = []
    for count in counts:
        part = ((scores.candidates >= ordered[count - 1]) & scores.filled).sum(axis=1)
        sums = moments(part, whole)
        share = float(sums[2] / sums[1])
        size = effective_size(sums, scores.size, each, representative_anchors=representative_anchors)
        most = most_share(share * size, size, each) if size else 1.0
        tails.append(Tail(most / least_share(count, n, each), share * n / count))
    return min(tails, key=lambda tail: tail.most)


def read_scores(candidates: Any, positives: Any, mask: Any) -> Scores:
    """Both kinds of scores as float64. They must be finite, and not all equal."""
    table = _numbers("candidates", candidates, (1, 2))
    known = _numbers("positives", positives, (1,))
    filled = np.ones(table.shape, bool) if mask is None else flags("mask", mask, table.shape)
    for name, values, given in (("candidates", table, filled), ("positives", known, np.ones(len(known), bool))):
        if not given.any():
            raise_invalid(name, "at least one score", "none")
        bad = ~np.isfinite(values) & given
        if bad.any():
            raise_invalid(name, "finite scores", first_slot(values, bad))
    if np.ptp(np.concatenate([table[filled], known])) == 0:
        raise_invalid("candidates", "scores that differ", f"{known[0]:g} everywhere", "Is the encoder trained?")
    rows = (len(table), -1)
    return Scores(table.reshape(rows), filled.reshape(rows), known, table.shape, int(filled.sum()))


def _numbers(parameter: str, values: Any, dimensions: tuple[int, ...]) -> Floats:
    """Scores as float64 of one of these numbers of dimensions."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim not in dimensions:
        rule = "of shape (m,)" if dimensions == (1,) else "of shape (B, n) or (m,)"
        raise_invalid(parameter, rule, f"shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise_invalid(parameter, "scores", f"dtype {array.dtype}")
    return array.astype(np.float64)


def flags(parameter: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """True or False for each, in this shape."""
    array = as_array(parameter, to_numpy(values))
    if array.shape != shape:
        raise_invalid(parameter, f"of shape {shape}, one for each score", f"shape {array.shape}")
    if array.dtype != bool:
        raise_invalid(parameter, "True or False for each score", f"dtype {array.dtype}")
    return array

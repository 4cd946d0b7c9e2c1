"""Additive logistic regression on quadratic B-splines, by Newton's method.

Matrix products run in blocks of rows so small that BLAS uses one thread, and block sums are added in order, so that the
result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
KNOTS = 5
COLUMNS = KNOTS + 1  # of one feature
RIDGE = 10.0  # 1 / C
_ROWS = 256  # of a block
_PART = 1 << 15  # rows whose splines are made at a time
_ITERATIONS, _HALVINGS, _TOLERANCE = 50, 30, 1e-11


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A constant and the splines of some features, one row for each slot.

    Args:
        blocks: (blocks, 256, width) the rows; those behind the last are 0.
        n: The number of rows.
    """

    blocks: Floats
    n: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.blocks.shape[2])

    def padded(self, values: Floats) -> Floats:
        """(blocks, 256) of (n,), 0 behind the last."""
        found = np.zeros(self.blocks.shape[:2])
        found.reshape(-1)[: self.n] = values
        return found

    def times(self, weights: Floats) -> Floats:
        """(n,) the products with weights (width,)."""
        return np.asarray((self.blocks @ weights).reshape(-1)[: self.n])

    def sums(self, factors: Floats) -> Floats:
        """(width,) the sum of factor x row."""
        return np.asarray((self.padded(factors)[:, None] @ self.blocks)[:, 0].sum(axis=0))

    def squares(self, factors: Floats) -> Floats:
        """(width, width) the sum of factor x row x row'. Blocks at both ends whose factors are 0 cost nothing."""
        total, padded = np.zeros((self.width, self.width)), self.padded(factors)
        used = np.flatnonzero(padded.any(axis=1))
        for start in range(int(used[0]) if len(used) else 0, int(used[-1]) + 1 if len(used) else 0, 16):
            part, some = self.blocks[start : start + 16], padded[start : start + 16, :, None]
            total += (part.transpose(0, 2, 1) @ (some * part)).sum(axis=0)
        return total

    def sums_by(self, factors: Floats, starts: NDArray[np.intp]) -> Floats:
        """(s, width) the sums of factor x row over the rows from each start to the next."""
        rows, total = self.blocks.reshape(-1, self.width), np.zeros((len(starts), self.width))
        for first in range(0, len(starts), 100):
            some = starts[first : first + 100]
            stop = int(starts[first + 100]) if first + 100 < len(starts) else self.n
            part = slice(int(some[0]), stop)
            total[first : first + 100] = np.add.reduceat(factors[part, None] * rows[part], some - some[0])
        return total

    def thinned(self, step: int) -> tuple[Design, NDArray[np.intp]]:
        """Every step-th block, and its rows."""
        part = np.ascontiguousarray(self.blocks[::step])
        rows = np.arange(len(self.blocks) * _ROWS).reshape(-1, _ROWS)[::step].reshape(-1)
        rows = rows[rows < self.n]
        return Design(part, len(rows)), rows


def knots_of(features: Sequence[Floats]) -> Floats:
    """(f, 5) quantiles of features at 0, 25, 50, 75 and 100 %; distinct, then NaN if some are equal."""
    knots = np.full((len(features), KNOTS), np.nan)
    for row, values in zip(knots, features, strict=True):
        distinct = np.unique(np.quantile(values, np.linspace(0, 1, KNOTS))) if len(values) else values
        row[: len(distinct)] = distinct
    return knots


def design_of(features: Sequence[Floats], knots: Floats) -> Design:
    """The splines of features, each (n,). Outside of the knots they are constant."""
    n = len(features[0])
    blocks = np.zeros((-(-n // _ROWS), _ROWS, 1 + COLUMNS * len(features)))
    rows = blocks.reshape(-1, blocks.shape[2])[:n]
    rows[:, 0] = 1.0
    for place, (feature, row) in enumerate(zip(features, knots, strict=True)):
        for start in range(0, n, _PART):
            part = slice(start, start + _PART)
            first, values = splines(feature[part], row)
            for column in range(3):
                rows[np.arange(start, start + len(first)), 1 + COLUMNS * place + first + column] = values[column]
    return Design(blocks, n)


def splines(x: Floats, knots: Floats) -> tuple[NDArray[np.intp], list[Floats]]:
    """(n,) the first of three splines that are not 0 at x, and the values of these; 0 with fewer than two knots."""
    if (found := _Intervals.of(knots)) is None:
        return np.zeros(len(x), np.intp), [np.zeros(len(x))] * 3  # a constant feature has no splines
    place, u = found.at(x)
    h, before, after = (part[place] for part in (found.h, found.before, found.after))
    left, right = (h - u) ** 2 / (before * h), u**2 / (after * h)
    return place, [left, 1 - left - right, right]


def additive(features: Sequence[Floats], knots: Floats, weights: Floats) -> Floats:
    """The sum of the constant and of the splines of each feature; features broadcast."""
    total: Floats = np.asarray(weights[0])
    for place, (feature, row) in enumerate(zip(features, knots, strict=True)):
        total = total + spline_sum(feature, row, weights[1 + COLUMNS * place :][:COLUMNS])
    return total


def spline_sum(x: Floats, knots: Floats, weights: Floats) -> Floats:
    """The weighted sum of the splines of a feature, as a quadratic in each interval; 0 with fewer than two knots."""
    if (found := _Intervals.of(knots)) is None:
        return np.zeros(x.shape)
    h, before, after = found.h, found.before, found.after
    left, middle, right = (weights[place : place + len(h)] for place in range(3))
    parts = [
        middle + (left - middle) * h / before,
        -2 * (left - middle) / before,
        ((left - middle) / before + (right - middle) / after) / h,
    ]
    place, u = found.at(x)
    return np.asarray((parts[2][place] * u + parts[1][place]) * u + parts[0][place])


class _Intervals(NamedTuple):
    """The intervals between knots, from 0 to 1: their starts, lengths, and lengths with the one before and after."""

    low: float
    high: float
    t: Floats
    h: Floats
    before: Floats
    after: Floats

    @staticmethod
    def of(knots: Floats) -> _Intervals | None:
        """None with fewer than two knots."""
        distinct = knots[~np.isnan(knots)]
        if len(distinct) < 2:
            return None
        t = (distinct - distinct[0]) / (distinct[-1] - distinct[0])
        h = np.diff(t)
        before, after = np.append(h[0], h[:-1]) + h, h + np.append(h[1:], h[-1])  # one more on each side, as long
        return _Intervals(float(distinct[0]), float(distinct[-1]), t, h, before, after)

    def at(self, x: Floats) -> tuple[NDArray[np.intp], Floats]:
        """The interval of each x, and its distance from the start of it; outside of the knots, that of the last."""
        u = (np.fmax(np.fmin(x, self.high), self.low) - self.low) / (self.high - self.low)  # a number also for NaN
        place = np.zeros(u.shape, np.intp)
        for knot in self.t[1:-1]:
            place += u >= knot
        return place, u - self.t[place]


def fit_logistic(design: Design, labels: Mask, start: Floats | None = None) -> Floats:
    """(width,) the weights of the smallest  - log-likelihood + RIDGE / 2 |weights without the constant|^2.

    Args:
        design: The rows.
        labels: (n,) their labels.
        start: Weights to start from.
    """
    ridge = ridge_of(design)
    share = min(max(float(labels.mean()), 1e-6), 1 - 1e-6)
    weights = np.zeros(design.width) if start is None else start.copy()
    if start is None:
        weights[0] = np.log(share / (1 - share))
    odds, signs = design.times(weights), np.where(labels, -1.0, 1.0)
    value = float(np.logaddexp(0.0, signs * odds).sum() + (ridge * weights**2).sum() / 2)
    for _ in range(_ITERATIONS):
        chance = 0.5 + 0.5 * np.tanh(0.5 * odds)
        slope = design.sums(labels - chance) - ridge * weights
        step = np.linalg.solve(design.squares(chance * (1 - chance)) + np.diag(ridge), slope)
        promised = float((slope * step).sum()) / 2
        if promised <= _TOLERANCE * max(value, 1.0):
            break
        for halving in range(_HALVINGS):
            tried = weights + 0.5**halving * step
            odds = design.times(tried)
            after = float(np.logaddexp(0.0, signs * odds).sum() + (ridge * tried**2).sum() / 2)
            if after <= value - 1e-4 * 0.5**halving * promised:
                break
        else:
            break  # only rounding error is left
        weights, value = tried, after
    return weights


def ridge_of(design: Design) -> Floats:
    """(width,) the penalty of each weight; as good as none for the constant."""
    return np.append(1e-9, np.full(design.width - 1, RIDGE))

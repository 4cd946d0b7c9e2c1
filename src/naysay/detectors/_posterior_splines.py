"""Additive logistic regression on quadratic B-splines, by Newton's method.

All sums are over rows in order, without BLAS, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
KNOTS = 5
COLUMNS = KNOTS + 1  # of one feature
RIDGE = 10.0  # 1 / C
_ITERATIONS, _HALVINGS, _TOLERANCE = 50, 30, 1e-11


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Rows of a sparse matrix: a constant and three neighbouring splines of each feature.

    Args:
        columns: (1 + 3 f, n) the columns that are not 0.
        values: (1 + 3 f, n) their values.
        width: The number of columns.
    """

    columns: NDArray[np.intp]
    values: Floats
    width: int

    def take(self, rows: Mask | NDArray[np.intp]) -> Design:
        """Some rows."""
        return Design(self.columns[:, rows], self.values[:, rows], self.width)

    def times(self, weights: Floats) -> Floats:
        """(n,) the products with weights (width,)."""
        return np.asarray((weights[self.columns] * self.values).sum(axis=0))

    def sums(self, factors: Floats, groups: NDArray[np.intp], n_groups: int) -> Floats:
        """(n_groups, width) the sums of factor x row by group."""
        total = np.zeros(n_groups * self.width)
        for column, values in zip(self.columns, self.values, strict=True):
            total += np.bincount(groups * self.width + column, factors * values, len(total))
        return total.reshape(n_groups, self.width)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The rows of a design sorted by the columns that they have, few kinds of them, so that sums run over slices.

    Args:
        order: (n,) rows of the design in this order.
        values: (1 + 3 f, n) their values.
        slices: The rows of each kind, and their columns.
        width: The number of columns.
    """

    order: NDArray[np.intp]
    values: Floats
    slices: list[tuple[slice, NDArray[np.intp]]]
    width: int

    @staticmethod
    def of(design: Design) -> Cells:
        """Sort the rows of a design."""
        firsts = design.columns[1::3]
        keys = np.zeros(design.values.shape[1], np.intp)
        for first in firsts:
            keys = keys * (design.width + 1) + first
        order = np.argsort(keys, kind="stable")
        _, starts = np.unique(keys[order], return_index=True)
        stops = [*starts[1:].tolist(), len(keys)]
        slices = [
            (slice(start, stop), design.columns[:, order[start]])
            for start, stop in zip(starts.tolist(), stops, strict=True)
        ]
        return Cells(order, np.ascontiguousarray(design.values[:, order]), slices, design.width)

    def times(self, weights: Floats) -> Floats:
        """(n,) the products with weights (width,)."""
        found = np.empty(len(self.order))
        for rows, columns in self.slices:
            np.einsum("i,in->n", weights[columns], self.values[:, rows], out=found[rows])
        return found

    def sums(self, factors: Floats) -> Floats:
        """(width,) the sum of factor x row."""
        total = np.zeros(self.width)
        for rows, columns in self.slices:
            np.add.at(total, columns, np.einsum("in,n->i", self.values[:, rows], factors[rows]))
        return total

    def squares(self, factors: Floats) -> Floats:
        """(width, width) the sum of factor x row x row'."""
        total = np.zeros((self.width, self.width))
        for rows, columns in self.slices:
            values = self.values[:, rows]
            np.add.at(total, (columns[:, None], columns), np.einsum("in,jn->ij", values * factors[rows], values))
        return total


def knots_of(features: Floats) -> Floats:
    """(f, 5) quantiles of features (f, n) at 0, 25, 50, 75 and 100 %; distinct, then NaN if some are equal."""
    knots = np.full((len(features), KNOTS), np.nan)
    for row, values in zip(knots, features, strict=True):
        distinct = np.unique(np.quantile(values, np.linspace(0, 1, KNOTS))) if len(values) else values
        row[: len(distinct)] = distinct
    return knots


def design_of(features: Floats, knots: Floats) -> Design:
    """The splines of features (f, n). Outside of the knots they are constant."""
    n, size = features.shape[1], 1 + 3 * len(features)
    columns, values = np.zeros((size, n), np.intp), np.zeros((size, n))
    values[0] = 1.0
    for place, (feature, row) in enumerate(zip(features, knots, strict=True)):
        distinct = row[~np.isnan(row)]
        if len(distinct) < 2:
            continue  # a constant feature has no splines: columns of value 0
        part = slice(1 + 3 * place, 4 + 3 * place)
        first, values[part] = _splines(feature, distinct)
        columns[part] = 1 + COLUMNS * place + first + np.arange(3)[:, None]
    return Design(columns, values, 1 + COLUMNS * len(features))


def _splines(x: Floats, knots: Floats) -> tuple[NDArray[np.intp], Floats]:
    """(n,) the first of three quadratic B-splines that are not 0 at x, and (3, n) their values, which sum to 1."""
    low, span = knots[0], knots[-1] - knots[0]
    t, u = (knots - low) / span, (np.clip(x, low, knots[-1]) - low) / span
    t = np.concatenate([[2 * t[0] - t[1]], t, [2 * t[-1] - t[-2]]])  # one more on each side, at the same distance
    i = np.clip(np.searchsorted(t, u, side="right") - 1, 1, len(t) - 3)
    left = (t[i + 1] - u) ** 2 / ((t[i + 1] - t[i - 1]) * (t[i + 1] - t[i]))
    right = (u - t[i]) ** 2 / ((t[i + 2] - t[i]) * (t[i + 1] - t[i]))
    return i - 1, np.stack([left, 1 - left - right, right])


def fit_logistic(cells: Cells, labels: Mask, start: Floats | None = None) -> Floats:
    """(width,) the weights of the smallest  - log-likelihood + RIDGE / 2 |weights without the constant|^2.

    Args:
        cells: The rows.
        labels: (n,) in the order of `cells`.
        start: Weights to start from.
    """
    penalties = np.full(cells.width, RIDGE)
    penalties[0] = 0.0
    share = min(max(float(labels.mean()), 1e-6), 1 - 1e-6)
    weights = np.zeros(cells.width) if start is None else start.copy()
    if start is None:
        weights[0] = np.log(share / (1 - share))
    odds, signs = cells.times(weights), np.where(labels, -1.0, 1.0)
    value = float(np.logaddexp(0.0, signs * odds).sum() + (penalties * weights**2).sum() / 2)
    for _ in range(_ITERATIONS):
        chance = 0.5 + 0.5 * np.tanh(0.5 * odds)
        slope = cells.sums(labels - chance) - penalties * weights
        step = np.linalg.solve(curvature(cells, chance), slope)
        promised = float((slope * step).sum()) / 2
        if promised <= _TOLERANCE * max(value, 1.0):
            break
        for halving in range(_HALVINGS):
            tried = weights + 0.5**halving * step
            odds = cells.times(tried)
            after = float(np.logaddexp(0.0, signs * odds).sum() + (penalties * tried**2).sum() / 2)
            if after <= value - 1e-4 * 0.5**halving * promised:
                break
        else:
            break  # only rounding error is left
        weights, value = tried, after
    return weights


def curvature(cells: Cells, chance: Floats) -> Floats:
    """(width, width) the Hessian of the objective."""
    penalties = np.full(cells.width, RIDGE)
    penalties[0] = 1e-9
    return np.asarray(cells.squares(chance * (1 - chance)) + np.diag(penalties))

"""Logistic regression with partial pooling: weights of each group, shrunk towards shared weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats

Whole = NDArray[np.int64]
_ITERATIONS, _HALVINGS = 100, 40
_TOLERANCE = 1e-12  # stop where the next step would lower the objective by less than this share
_FLAT = 1e-12  # a feature that varies by less than this share of its largest value is constant


class GroupedLogistic(NamedTuple):
    """log-odds = (w + u_g) . (1, z), z = (x - centre) / spread; u_g is 0 for a group without labels.

    Args:
        centre: (f,) the mean of each feature over the labels.
        spread: (f,) the standard deviation of each feature over the labels, 1 for a constant feature.
        pooled: (f + 1,) w, the constant first.
        groups: (G,) the groups that have labels, ascending.
        apart: (G, f + 1) u_g, the difference of each group's weights from w.
    """

    centre: Floats
    spread: Floats
    pooled: Floats
    groups: Whole
    apart: Floats

    def log_odds(self, features: Floats, groups: Whole) -> Floats:
        """(n,) of features (n, f) and groups (n,)."""
        weights = np.tile(self.pooled, (len(groups), 1))
        if len(self.groups):
            place = np.minimum(np.searchsorted(self.groups, groups), len(self.groups) - 1)
            known = self.groups[place] == groups
            weights[known] += self.apart[place[known]]
        # Sum each row by itself, so that no row's result depends on the others.
        return np.asarray((weights * _design(features, self.centre, self.spread)).sum(axis=1))


def fit_grouped(features: Floats, true: NDArray[np.bool_], groups: Whole, l2: float) -> GroupedLogistic:
    """Fit the weights by penalised maximum likelihood.

        minimise  - sum of log P(label) + l2 / 2 (|w without its constant|^2 + sum over groups of |u_g|^2)

    features (n, f), true (n,), groups (n,), -1 for none. The objective is strictly convex, so the minimum is unique.
    Newton's method with the groups eliminated: the Hessian has a block for w, a block A_g + l2 for each group, and A_g
    between them, A_g = sum over the group's labels of P (1 - P) z z'. An iteration is O(n f^2 + G f^3) for G groups.
    """
    centre, spread = _scales(features)
    named, groups = np.unique(groups, return_inverse=True)
    groups = groups.reshape(-1)
    if len(named) and named[0] < 0:
        named, groups = named[1:], groups - 1  # -1 is the last row below, which stays 0
    design = _design(features, centre, spread)
    width = design.shape[1]
    penalties = np.full(width, l2)
    penalties[0] = 0.0
    pooled, apart = np.zeros(width), np.zeros((len(named) + 1, width))
    signs = np.where(true, 1.0, -1.0)
    places = np.where(groups < 0, len(named), groups)

    def sums(values: Floats) -> Floats:
        """(G + 1,) the sum of (n,) values in each group."""
        return np.asarray(np.bincount(places, values, len(named) + 1), np.float64)

    def objective(pooled: Floats, apart: Floats) -> float:
        odds = (design * (pooled + apart[groups])).sum(axis=1)
        penalty = (penalties * pooled**2).sum() / 2 + l2 * (apart**2).sum() / 2
        return float(np.logaddexp(0.0, -signs * odds).sum() + penalty)

    value, bends = objective(pooled, apart), np.empty((len(named) + 1, width, width))
    for _ in range(_ITERATIONS):
        odds = (design * (pooled + apart[groups])).sum(axis=1)
        chance = 0.5 + 0.5 * np.tanh(0.5 * odds)
        slopes = np.stack([sums(column) for column in (design * (true - chance)[:, None]).T], axis=1)
        weighted = design * (chance * (1 - chance))[:, None]
        for i, j in zip(*(part.tolist() for part in np.triu_indices(width)), strict=True):
            bends[:, i, j] = bends[:, j, i] = sums(weighted[:, i] * design[:, j])
        down = slopes.sum(axis=0) - penalties * pooled
        own = slopes[:-1] - l2 * apart[:-1]
        solved = np.linalg.solve(bends[:-1] + l2 * np.eye(width), np.concatenate([bends[:-1], own[:, :, None]], axis=2))
        matrix = bends.sum(axis=0) + np.diag(penalties) - (bends[:-1] @ solved[:, :, :-1]).sum(axis=0)
        step = np.linalg.solve(matrix, down - (bends[:-1] @ solved[:, :, -1:]).sum(axis=0)[:, 0])
        steps = np.zeros_like(apart)
        steps[:-1] = solved[:, :, -1] - solved[:, :, :-1] @ step
        promised = float((down * step).sum() + (own * steps[:-1]).sum()) / 2
        if promised <= _TOLERANCE * max(value, 1.0):
            break
        for halving in range(_HALVINGS):
            share = 0.5**halving
            after = objective(pooled + share * step, apart + share * steps)
            if after <= value - 1e-4 * share * promised:
                break
        else:
            break  # only rounding error is left
        pooled, apart, value = pooled + share * step, apart + share * steps, after
    return GroupedLogistic(centre, spread, pooled, named, apart[:-1])


def _scales(features: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature; 1 for a constant one, whose deviation may be rounding error."""
    largest = np.abs(features).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # avoids overflow in the squares of very large or small features
    shares = features / unit
    spread = shares.std(axis=0)
    return unit * shares.mean(axis=0), np.where(spread > _FLAT, unit * spread, 1.0)


def _design(features: Floats, centre: Floats, spread: Floats) -> Floats:
    """(n, f + 1): a one, and the standardised features."""
    return np.concatenate([np.ones((len(features), 1)), (features - centre) / spread], axis=1)

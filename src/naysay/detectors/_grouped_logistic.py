"""Logistic regression whose groups have weights of their own, pulled towards those of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from naysay.quantity.separation import Floats

Whole = NDArray[np.int64]
_ROUNDS, _HALVINGS = 100, 40
_TOLERANCE = 1e-12  # of the objective, by which the next step would still lower it
_FLAT = 1e-12  # of its largest value: a feature that moves by less than that is all one value


@dataclass(frozen=True, slots=True, eq=False)
class GroupedLogistic:
    """log-odds = (w + u_g) . (1, z), z = (x - centre) / spread; u_g is 0 for a group without labels.

    Args:
        centre: (f,) mean and deviation of each feature over the labels; a feature that is all one value has 1.
        spread: (f,) mean and deviation of each feature over the labels; a feature that is all one value has 1.
        pooled: (f + 1,) w, the constant first.
        groups: (G,) the groups that have labels, ascending.
        apart: (G, f + 1) u_g, how far each of them is from the rest.
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
        # A sum over each row alone: no row's answer depends on the others.
        return np.asarray((weights * _design(features, self.centre, self.spread)).sum(axis=1))


def fit_grouped(features: Floats, true: NDArray[np.bool_], groups: Whole, pull: float) -> GroupedLogistic:
    """The weights that make the labels likeliest, less a price for their size.

        minimise  - sum of log P(label) + pull / 2 (|w without its constant|^2 + sum over groups of |u_g|^2)

    features (n, f), true (n,), groups (n,), -1 for none. The objective is strictly convex, so there is one answer.
    Newton's step with the groups eliminated: its matrix has a block for w, a block A_g + pull for each group, and A_g
    between them, A_g = sum over the group's labels of P (1 - P) z z'. A round is O(n f^2 + G f^3), G groups in all.
    """
    centre, spread = _scales(features)
    named, groups = np.unique(groups, return_inverse=True)
    groups = groups.reshape(-1)
    if len(named) and named[0] < 0:
        named, groups = named[1:], groups - 1
    n_groups = len(named)
    design = _design(features, centre, spread)
    width = design.shape[1]
    pulls = np.full(width, pull)
    pulls[0] = 0.0
    pooled, apart = np.zeros(width), np.zeros((n_groups + 1, width))  # the last row is that of group -1, and stays 0
    signs = np.where(true, 1.0, -1.0)

    def objective(pooled: Floats, apart: Floats) -> float:
        odds = (design * (pooled + apart[groups])).sum(axis=1)
        return float(
            np.logaddexp(0.0, -signs * odds).sum() + (pulls * pooled**2).sum() / 2 + pull * (apart**2).sum() / 2
        )

    value = objective(pooled, apart)
    for _ in range(_ROUNDS):
        odds = (design * (pooled + apart[groups])).sum(axis=1)
        chance = 0.5 + 0.5 * np.tanh(0.5 * odds)
        slopes = _sums(design * (true - chance)[:, None], groups, n_groups)
        bends = _squares(design, chance * (1 - chance), groups, n_groups)
        down = slopes.sum(axis=0) - pulls * pooled
        own = slopes[:-1] - pull * apart[:-1]
        solved = np.linalg.solve(
            bends[:-1] + pull * np.eye(width), np.concatenate([bends[:-1], own[:, :, None]], axis=2)
        )
        matrix = bends.sum(axis=0) + np.diag(pulls) - (bends[:-1] @ solved[:, :, :-1]).sum(axis=0)
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
            break  # rounding alone is left
        pooled, apart, value = pooled + share * step, apart + share * steps, after
    return GroupedLogistic(centre, spread, pooled, named, apart[:-1])


def _scales(features: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of each feature; 1 for one that is all one value, whose deviation may be a rounding error."""
    largest = np.abs(features).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of very large or small features would not fit
    shares = features / unit
    spread = shares.std(axis=0)
    return unit * shares.mean(axis=0), np.where(spread > _FLAT, unit * spread, 1.0)


def _design(features: Floats, centre: Floats, spread: Floats) -> Floats:
    """(n, f + 1): a one, and the features in deviations from their mean."""
    return np.concatenate([np.ones((len(features), 1)), (features - centre) / spread], axis=1)


def _sums(values: Floats, groups: Whole, n_groups: int) -> Floats:
    """(n_groups + 1, w) the sums of rows by group, those of group -1 last."""
    places = np.where(groups < 0, n_groups, groups)
    return np.stack([np.bincount(places, column, n_groups + 1) for column in values.T], axis=1)


def _squares(design: Floats, weights: Floats, groups: Whole, n_groups: int) -> Floats:
    """(n_groups + 1, w, w) the sums of weight z z' by group, a column of the upper triangle at a time."""
    width = design.shape[1]
    first, second = np.triu_indices(width)
    found = np.empty((n_groups + 1, width, width))
    weighted = design * weights[:, None]
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        found[:, i, j] = found[:, j, i] = _sums((weighted[:, i] * design[:, j])[:, None], groups, n_groups)[:, 0]
    return found

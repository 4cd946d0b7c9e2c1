"""Fit the posterior: P(slot is the labelled one) by cross-fitting, P(labelled | positive), and samples of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_alike import fit_evidence
from naysay.detectors._posterior_model import WIDTH, Model
from naysay.detectors._posterior_pool import Lists, folds_of, pool_of
from naysay.detectors._posterior_splines import Cells, Design, curvature, design_of, fit_logistic, knots_of
from naysay.detectors.posterior_summary import MIN_LABELLED
from naysay.rng import rng_for

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
FOLDS, DRAWS = 4, 100
_LEAST, _MOST, _PREFIXES, _ERROR = 0.2, 0.9, 200, 0.05
_CLEAR = 2.0  # standard errors of the gain
_LAST = 10  # ranks whose mean holds behind the list


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What was fitted, or why nothing was.

    Args:
        model: The model, or None.
        code: 0, or why there is no model: 1 too few labelled positives, 2 scores do not tell.
        labelled: How many labelled positives are in the lists.
        gain: The mean over anchors of the held-out log-likelihood above that of a constant, in standard errors.
    """

    model: Model | None
    code: int
    labelled: int
    gain: float


def fit_model(lists: Lists, depth: int, seed: int, c: float | None = None) -> Fit:
    """Fit a model to lists.

    Args:
        lists: The candidates of each anchor and its labelled positive.
        depth: Candidates of each list to use.
        seed: Of folds, places among equal scores, and samples.
        c: P(labelled | positive), where it is known. None: estimated.
    """
    pool = pool_of(lists, seed, depth)
    labelled = int((pool.places >= 0).sum())
    if labelled < MIN_LABELLED:
        return Fit(None, 1, labelled, 0.0)
    rows, _ = np.nonzero(pool.filled)
    features, labels = pool.features[:, pool.filled], pool.labelled[pool.filled]
    if labels.all():  # there are no candidates
        return Fit(None, 2, labelled, 0.0)
    knots = knots_of(features)
    design = design_of(features, knots)
    folds = folds_of(lists, pool.places >= 0, FOLDS, seed)[rows]
    log_odds, found = np.empty(len(labels)), np.zeros((FOLDS, WIDTH))
    for fold in range(FOLDS):
        other = folds != fold
        cells = Cells.of(design.take(other))
        found[fold] = fit_logistic(cells, labels[other][cells.order], found[fold - 1] if fold else None)
        log_odds[~other] = design.take(~other).times(found[fold])
    gain = _gain(log_odds, labels, rows, len(lists.scores))
    prefixes = Prefixes.of(log_odds, labels)
    if gain < _CLEAR or prefixes is None:
        return Fit(None, 2, labelled, gain)
    weights = np.asarray(found.mean(axis=0))
    share = prefixes.lower_limit(prefixes.labelled, prefixes.slots) if c is None else c
    none = np.zeros(0)
    unit, no_draws = np.array([0.0, 1, 0, 1]), none.reshape(0, WIDTH + 1)
    model = Model(knots, weights, share, 0.0, depth, unit, none, none, none, 0.0, no_draws)
    draws = _draws(model, design, labels, rows, prefixes, seed, fixed=c is not None)
    model = replace(model, draws=draws)
    alike = None if lists.alike is None else lists.alike[:, : depth + 1]
    part = Lists(lists.scores[:, : depth + 1], lists.positives, alike)  # one more, for the gap behind the last
    if part.alike is not None:
        model = fit_evidence(model, part, depth, seed)
    last = part.nearest(depth) & ~part.nearest(depth - _LAST)
    posterior = model.of_lists(part, seed)
    beyond = float(posterior[last].mean()) if last.any() else float(posterior[part.filled].min(initial=1.0))
    return Fit(replace(model, beyond=beyond), 0, labelled, gain)


def _gain(log_odds: Floats, labels: Mask, rows: NDArray[np.intp], n: int) -> float:
    """Held-out log-likelihood per anchor above that of a constant: its mean in standard errors."""
    share = labels.mean()
    constant = np.where(labels, np.log(share), np.log1p(-share))
    apart = np.bincount(rows, -np.logaddexp(0.0, np.where(labels, -log_odds, log_odds)) - constant, n)
    spread = float(apart.std()) / np.sqrt(max(n, 1))
    return float(apart.mean() / spread) if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """The slots of highest g that hold 20 to 90 % of the labelled, at least 15 of them; equal slots stay together.

    Args:
        limits: (P,) descending: a prefix holds the slots with at least this log-odds.
        labelled: (P,) labelled slots in each.
        slots: (P,) slots in each.
        places: (n,) the first prefix that a slot is in, P if none.
    """

    limits: Floats
    labelled: Floats
    slots: Floats
    places: NDArray[np.intp]

    @staticmethod
    def of(log_odds: Floats, labels: Mask) -> Prefixes | None:
        """At most 200 prefixes, evenly spread; None if there is none."""
        order = np.argsort(-log_odds, kind="stable")
        values, hits = log_odds[order], np.cumsum(labels[order])
        total = hits[-1]
        ends = np.append(values[1:] != values[:-1], True) & _with_labels(values, labels[order])
        good = ends & (hits >= np.maximum(MIN_LABELLED, _LEAST * total)) & (hits <= _MOST * total)
        chosen = np.flatnonzero(good)
        if not len(chosen):
            return None
        if len(chosen) > _PREFIXES:
            chosen = chosen[np.linspace(0, len(chosen) - 1, _PREFIXES).round().astype(np.intp)]
        limits = values[chosen]
        places = np.searchsorted(-limits, -log_odds, side="left")
        return Prefixes(limits, hits[chosen].astype(np.float64), (chosen + 1).astype(np.float64), places)

    def lower_limit(self, labelled: Floats, slots: Floats) -> float:
        """The largest lower limit of Clopper and Pearson (95 %) of the labelled share."""
        from scipy.special import betaincinv

        return float(betaincinv(labelled, slots - labelled + 1, _ERROR).max())


def _with_labels(values: Floats, labels: Mask) -> Mask:
    """(n,) whether the slots of this value contain a labelled one: other ends only lower the share."""
    groups = np.cumsum(np.append(True, values[1:] != values[:-1])) - 1
    return np.asarray(np.bincount(groups, labels)[groups] > 0)


def _draws(
    model: Model, design: Design, labels: Mask, rows: NDArray[np.intp], prefixes: Prefixes, seed: int, *, fixed: bool
) -> Floats:
    """(B, 20) weights and c under Poisson resamples of the anchors, by one Newton step each.

    c of a sample is compared with the mean of all samples, because the largest of several limits is biased upwards.
    """
    n = int(rows.max()) + 1
    chance = 0.5 + 0.5 * np.tanh(0.5 * design.times(model.weights))
    slopes = design.sums(labels - chance, rows, n)
    counts = rng_for(seed, 1).poisson(1.0, (DRAWS, n)).astype(np.float64)
    moved = np.stack([((count - 1)[:, None] * slopes).sum(axis=0) for count in counts])
    cells = Cells.of(design)
    weights = model.weights + np.linalg.solve(curvature(cells, chance[cells.order]), moved.T).T
    size = len(prefixes.limits) + 1
    shares = np.full(DRAWS, model.c)
    if not fixed:
        keys = rows * size + prefixes.places
        tables = [np.bincount(keys, part, n * size).reshape(n, size) for part in (labels, np.ones(len(labels)))]
        sampled = [np.cumsum(counts @ table, axis=1)[:, :-1] for table in tables]
        limits = [prefixes.lower_limit(*pair) for pair in zip(sampled[0], sampled[1], strict=True)]
        odds = np.log(limits) - np.log1p(-np.array(limits))
        centred = odds - odds.mean() + np.log(model.c) - np.log1p(-model.c)
        shares = 1 / (1 + np.exp(-centred))
    return np.concatenate([weights, shares[:, None]], axis=1)

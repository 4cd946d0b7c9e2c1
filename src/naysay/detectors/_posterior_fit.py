"""Fit the posterior: P(slot is the labelled one) by cross-fitting, P(labelled | positive), and samples of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._posterior_groups import Groups, Prefixes
from naysay.detectors._posterior_model import WIDTH, Model, beyond_of
from naysay.detectors._posterior_pool import Lists, folds_of, pool_of
from naysay.detectors._posterior_splines import KNOTS, Design, additive, design_of, fit_logistic, knots_of, ridge_of
from naysay.detectors.posterior_summary import MIN_LABELLED
from naysay.rng import rng_for

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Whole = NDArray[np.intp]
FOLDS, DRAWS = 4, 100
_CLEAR = 2.0  # standard errors of the gain
_ALONE = [0, 3]  # features that do not depend on the other slots of a list
_FEW = 50  # blocks to start a fit from
_REFITTED = 150  # anchors at least in a group with weights of its own


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What was fitted, or why nothing was.

    Args:
        model: The model, or None.
        code: 0, or why there is no model: 1 too few labelled positives, 2 scores do not tell.
        labelled: How many labelled positives are in the lists.
        gain: The mean over anchors of the held-out log-likelihood above that of a constant, in standard errors.
        alone: The weights of score and score above the background alone, and the c that goes with them.
    """

    model: Model | None
    code: int
    labelled: int
    gain: float
    alone: tuple[Floats, float] | None = None


def fit_model(lists: Lists, depth: int, seed: int, c: float | None = None) -> Fit:
    """Fit a model to the scores of lists.

    Args:
        lists: The candidates of each anchor and its labelled positive.
        depth: Candidates of each list to use.
        seed: Of folds, places among equal scores, and samples.
        c: P(labelled | positive), where it is known. None: estimated.
    """
    folds = folds_of(lists, seed, depth, FOLDS)
    order = np.argsort(folds, kind="stable")  # the slots of a fold follow each other
    lists, folds = lists.take(order), folds[order]
    pool = pool_of(lists, seed, depth)
    labelled = int((pool.places >= 0).sum())
    if labelled < MIN_LABELLED:
        return Fit(None, 1, labelled, 0.0)
    rows, _ = np.nonzero(pool.filled)
    features, labels = pool.features[:, pool.filled], pool.labelled[pool.filled]
    if labels.all():  # there are no candidates
        return Fit(None, 2, labelled, 0.0)
    knots = knots_of(list(features))
    del pool
    design = design_of(list(features), knots)
    log_odds, weights, curvature = cross_fitted(design, labels, folds[rows])
    gain = _gain(log_odds, labels, rows, len(lists.scores))
    order = np.argsort(-log_odds, kind="stable")
    whole = Prefixes.of(log_odds, labels, order)
    if gain < _CLEAR or whole is None:
        return Fit(None, 2, labelled, gain)
    richness = lists.levels(depth)[1]
    groups = Groups.of(log_odds, labels, order, rows, richness, whole)
    parts = [_Group.of(design, labels, rows, (log_odds, weights, curvature), whole, seed)]
    if len(groups.limits):
        all_, parts, group = parts[0], [], np.searchsorted(groups.limits, richness, side="right")
        del design
        for place, count in enumerate(np.bincount(group, minlength=len(groups.shares)).tolist()):
            inside = (group == place)[rows]
            if count < _REFITTED:
                own = Prefixes.of(log_odds, labels, order, inside)
                parts.append(all_.shared(own, labels, rows, seed))
                continue
            part, mine = design_of(list(features[:, inside]), knots), labels[inside]
            again = cross_fitted(part, mine, folds[rows][inside])
            own = Prefixes.of(again[0], mine, np.argsort(-again[0], kind="stable"))
            parts.append(_Group.of(part, mine, rows[inside], again, own, seed))
    kept = [part.share for part in parts]
    shares = np.array([groups.shares[place] if share is None else share for place, share in enumerate(kept)])
    draws = np.stack([part.draws for part in parts], axis=1)
    none, first = np.zeros(0), int(groups.inside.argmax()) if len(parts) > 1 else 0
    unlabelled = (groups.inside * (1 / shares - 1)).sum()
    fewest = (groups.inside * (1 / np.array([max(part.most, 1e-9) for part in parts]) - 1)).sum()
    model = Model(
        knots=knots,
        weights=np.stack([part.weights for part in parts]),
        c=float(groups.inside.sum() / (groups.inside / shares).sum()),
        limits=groups.limits,
        shares=shares,
        beyond=0.0,
        depth=depth,
        scale=np.array([0.0, 1, 0, 1]),
        similar=none,
        edges=none,
        ratios=none,
        shift=0.0,
        doubt=1.0,
        least=min(1.0, float(fewest / unlabelled)) if c is None else 1.0,
        rising=parts[first].rising,
        draws=draws,
    )
    if c is not None:
        model = model.raised(c)
        model.draws[:, :, WIDTH] = model.shares  # what is known does not vary
    alone = _alone(features[_ALONE], labels)
    return Fit(replace(model, beyond=beyond_of(model, lists, model.priors(lists, seed))), 0, labelled, gain, alone)


def cross_fitted(design: Design, labels: Mask, folds: Whole) -> tuple[Floats, Floats, Floats]:
    """(n,) log-odds of each fold by a fit to the others, the mean of their weights, and the curvature of all rows.

    Those fits are one Newton step from the fit to all, which is close to them.
    """
    step, start = max(1, len(design.blocks) // _FEW), None
    if step > 1:
        some, rows = design.thinned(step)
        start = fit_logistic(some, labels[rows])
    whole, ridge = fit_logistic(design, labels, start), ridge_of(design)
    chance = 0.5 + 0.5 * np.tanh(0.5 * design.times(whole))
    masks = [folds == fold for fold in range(FOLDS)]
    squares = [design.squares(mask * chance * (1 - chance)) for mask in masks]
    slopes = [design.sums(mask * (labels - chance)) for mask in masks]
    total, slope = sum(squares) + np.diag(ridge), sum(slopes) - ridge * whole
    log_odds, found = np.empty(len(labels)), np.empty((FOLDS, design.width))
    for fold, mask in enumerate(masks):
        found[fold] = whole + np.linalg.solve(total - squares[fold], slope - slopes[fold])
        log_odds[mask] = design.times(found[fold])[mask]
    return log_odds, np.asarray(found.mean(axis=0)), np.asarray(total)


def _alone(features: Floats, labels: Mask) -> tuple[Floats, float] | None:
    """(knots and weights as one array, c) of a fit to features that do not depend on the other slots of a list."""
    knots = knots_of(list(features))
    design = design_of(list(features), knots)
    weights = fit_logistic(design, labels)
    odds = design.times(weights)
    prefixes = Prefixes.of(odds, labels, np.argsort(-odds, kind="stable"))
    if prefixes is None:
        return None
    return np.concatenate([knots.ravel(), weights]), prefixes.lower_limit(prefixes.labelled, prefixes.slots)


def alone_share(alone: tuple[Floats, float] | None, lists: Lists, depth: int, k: int) -> float:
    """The false share of the nearest k by score and score above the background alone; NaN if unknown."""
    if alone is None:
        return np.nan
    split, near = KNOTS * len(_ALONE), lists.nearest(k)
    background = np.broadcast_to(lists.levels(depth)[0][:, None], near.shape)
    features = lists.scores[near], (lists.scores - background)[near]
    odds = additive(features, alone[0][:split].reshape(-1, KNOTS), alone[0][split:])
    return float(np.exp(np.minimum(odds + np.log1p(-alone[1]) - np.log(alone[1]), 0.0)).mean())


def _gain(log_odds: Floats, labels: Mask, rows: NDArray[np.intp], n: int) -> float:
    """Held-out log-likelihood per anchor above that of a constant: its mean in standard errors."""
    share = labels.mean()
    constant = np.where(labels, np.log(share), np.log1p(-share))
    apart = np.bincount(rows, -np.logaddexp(0.0, np.where(labels, -log_odds, log_odds)) - constant, n)
    spread = float(apart.std()) / np.sqrt(max(n, 1))
    return float(apart.mean() / spread) if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The fit to one group of anchors, and samples of it: Poisson resamples of its anchors, by one Newton step each."""

    weights: Floats  # (31,)
    share: float | None  # P(labelled | positive), None if it cannot be estimated here
    most: float  # its upper limit
    rising: float
    draws: Floats  # (B, 32) weights and shares

    @staticmethod
    def of(
        design: Design,
        labels: Mask,
        rows: Whole,
        fit: tuple[Floats, Floats, Floats],
        prefixes: Prefixes | None,
        seed: int,
    ) -> _Group:
        """From what `cross_fitted` returned."""
        _, weights, curvature = fit
        chance = 0.5 + 0.5 * np.tanh(0.5 * design.times(weights))
        present, starts = np.unique(rows, return_index=True)
        slopes = design.sums_by(labels - chance, starts)
        moved = np.stack([((count[present] - 1)[:, None] * slopes).sum(axis=0) for count in _counts(rows, seed)])
        draws = np.full((DRAWS, design.width + 1), 0.5)
        draws[:, :-1] = weights + np.linalg.solve(curvature, moved.T).T
        return _Group(weights, None, 1.0, 1.0, draws).shared(prefixes, labels, rows, seed)

    def shared(self, prefixes: Prefixes | None, labels: Mask, rows: Whole, seed: int) -> _Group:
        """The same with the share by some prefixes.

        The share of a sample is compared with the mean of all samples, because the largest of several limits is biased
        upwards.
        """
        if prefixes is None:
            return replace(self, share=None, most=1.0, rising=1.0)
        share, draws = prefixes.lower_limit(prefixes.labelled, prefixes.slots), self.draws.copy()
        sampled = prefixes.resampled(_counts(rows, seed), labels, rows)
        limits = np.array([prefixes.lower_limit(*pair) for pair in zip(*sampled, strict=True)])
        limits = np.clip(np.nan_to_num(limits), 1e-6, 1 - 1e-6)
        odds = np.log(limits) - np.log1p(-limits)
        draws[:, -1] = 1 / (1 + np.exp(-(odds - odds.mean() + np.log(share) - np.log1p(-share))))
        return replace(self, share=share, most=prefixes.upper_limit(), rising=prefixes.rising(), draws=draws)


def _counts(rows: Whole, seed: int) -> Floats:
    """(B, A) how often each anchor is in each sample."""
    return rng_for(seed, 1).poisson(1.0, (DRAWS, int(rows[-1]) + 1)).astype(np.float64)

"""The fitted posterior as a few small arrays, its state, and the share of false negatives that it estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import most_share
from naysay.checks import check_all, raise_invalid
from naysay.detectors._posterior_pool import FEATURES, Lists, candidate_features
from naysay.detectors._posterior_splines import COLUMNS, KNOTS, additive
from naysay.detectors._states import Entry, read_state
from naysay.detectors.cut import mean_of
from naysay.detectors.posterior_summary import posterior_share
from naysay.detectors.rate import CONFIDENCE
from naysay.detectors.share import Share

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
WIDTH = 1 + COLUMNS * FEATURES
TERMS = 6  # of the regression of similarities
_BLOCK = 1 << 15  # slots at a time
_LEAST = 0.02  # posterior of the most similar candidate at which similarities count
_LAST = 10  # ranks whose mean holds behind the list
_FAR = 1e3  # deviations
_CLOSEST = 1e-150  # of the knots' span: its square is not 0
_MOST = 600.0  # added to log-odds: its exponential is finite
_MODEL_ERROR = 0.15  # of the log-share, where assumptions hold about: benchmarks/results/posterior.json
_SELECTED = 0.4  # more of it, where all of the posterior was left out
_DRAWN_SLOTS = 5_000  # at most, to see how other weights change the estimate
LARGEST = 1 - 2.0**-24  # in 32 bits: a threshold of 1 drops nothing, and log-odds are finite


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted posterior.

        g = sigmoid(weights . splines(features))               P(slot is the labelled one)
        p = min(1, (1 - c) / c g / (1 - g))                    P(an unlabelled candidate is positive)
        logit q = logit p + log ratio(v) + shift               with the evidence v of item vectors

    Groups of anchors of similar richness have weights and a c of their own.

    Args:
        knots: (5, 5) of the splines, NaN after the last.
        weights: (s, 31) of the constant and the splines, in each group.
        c: P(labelled | positive), over all groups.
        limits: (s - 1,) the richness at which the next group of anchors begins, ascending.
        shares: (s,) P(labelled | positive) in each group.
        beyond: The posterior of candidates behind the lists that were fitted.
        depth: The last rank, from 0, that is not behind them.
        scale: (4,) mean and deviation of scores, mean and deviation of positives' scores.
        similar: (6,) the regression of similarities; empty without item vectors.
        edges: (b - 1,) of the bins of v; empty without item vectors.
        ratios: (b,) the log-ratio of densities in each bin, ascending.
        shift: What a check of the labels, or labels of candidates, add to the log-odds.
        doubt: How many times as many false negatives other evidence allows, at least 1.
        least: How many times as many it demands, at most 1.
        rising: How much the labelled share rises towards the highest scores: about 1 if those are positives.
        draws: (B, s, 32) other weights and shares that samples of the anchors would have given.
    """

    knots: Floats
    weights: Floats
    c: float
    limits: Floats
    shares: Floats
    beyond: float
    depth: int
    scale: Floats
    similar: Floats
    edges: Floats
    ratios: Floats
    shift: float
    doubt: float
    least: float
    rising: float
    draws: Floats

    def priors(self, lists: Lists, seed: int) -> Floats:
        """(A, W) p of the first depth + 1 candidates at most; NaN behind the ranks that were fitted."""
        part = lists.cut(self.depth + 2)
        found = np.empty((len(part.scores), min(self.depth + 1, part.scores.shape[1])))
        step = max(1, _BLOCK // max(1, part.scores.shape[1]))
        for start in range(0, len(found), step):
            features, behind = candidate_features(part.take(slice(start, start + step)), seed, self.depth)
            odds = self.log_odds(features, self.weights, self.shares)
            prior = np.exp(np.minimum(odds, 0.0))
            found[start : start + step] = np.where(behind, np.nan, prior)[:, : found.shape[1]]
        return found

    def log_odds(self, features: list[Floats], weights: Floats, shares: Floats) -> Floats:
        """log((1 - c) / c g / (1 - g)) of rows of slots, with the weights and the share of the group of each row."""
        group = np.searchsorted(self.limits, features[-1].reshape(len(features[-1])), side="right")
        found = np.empty(features[0].shape)
        for place, (own, share) in enumerate(zip(weights, shares.tolist(), strict=True)):
            rows = slice(None) if len(weights) == 1 else group == place
            part = additive([feature[rows] for feature in features], self.knots, own)
            found[rows] = part + (np.log1p(-share) - np.log(share))
        return found

    def counts(self, priors: Floats) -> Mask:
        """(A, W): where similarities count: elsewhere not even the most similar candidate is likely to be positive."""
        if not len(self.ratios):
            return np.zeros(priors.shape, bool)
        largest = add_to_log_odds(np.float64(_LEAST), -min(self.ratios[-1] + self.shift, _MOST))
        with np.errstate(invalid="ignore"):
            return np.asarray(priors >= largest)

    def evidence(self, priors: Floats, lists: Lists) -> Floats:
        """(A, W) the log-ratio of densities of each slot, 0 where there is no evidence, or where it does not count."""
        found = np.zeros(priors.shape)
        if lists.alike is None or not len(self.similar):
            return found
        part, alike = lists.cut(priors.shape[1]), lists.alike[:, : priors.shape[1]]
        known = self.counts(priors) & ~np.isnan(alike + part.positives[:, None] + part.scores)
        rows, columns = np.nonzero(known)
        values = part.scores[rows, columns], part.positives[rows]
        v = alike[rows, columns] - predicted(self.similar, self.scale, *values)
        found[rows, columns] = self.ratios[np.searchsorted(self.edges, v, side="right")]
        return found

    def final(self, prior: Floats, evidence: Floats | float) -> Floats:
        """The posterior from p, the log-ratio and the shift, rounded to 32 bits: thresholds mean the same in both."""
        moved = np.clip(evidence + self.shift, -_MOST, _MOST)
        posterior = np.where((moved == 0) | (prior == 0), prior, add_to_log_odds(prior, moved))
        return np.minimum(posterior, LARGEST).astype(np.float32).astype(np.float64)

    def of_priors(self, priors: Floats, lists: Lists) -> Floats:
        """(A, M) the posterior of all candidates from what `priors` returned, 0 where a list has ended."""
        found = np.full(lists.scores.shape, np.float64(np.float32(min(self.beyond, LARGEST))))
        width = priors.shape[1]
        step = max(1, _BLOCK // max(1, width))
        for start in range(0, len(found), step):
            rows = slice(start, start + step)
            posterior = self.final(priors[rows], self.evidence(priors[rows], lists.take(rows)))
            found[rows, :width] = np.where(np.isnan(priors[rows]), found[rows, :width], posterior)
        found[np.isnan(lists.scores)] = 0.0
        return found

    def of_lists(self, lists: Lists, seed: int) -> Floats:
        """`of_priors` of the priors."""
        return self.of_priors(self.priors(lists, seed), lists)

    def raised(self, c: float) -> Model:
        """The same with another c, its odds in each group changed alike."""
        factor = (1 - c) / c * self.c / (1 - self.c)
        return replace(self, c=c, shares=scaled(self.shares, factor), beyond=min(1.0, self.beyond * factor))

    def shifted(self, by: float) -> Model:
        """The same with more added to the log-odds."""
        return replace(self, shift=self.shift + by, beyond=float(add_to_log_odds(self.beyond, by)))

    def state(self) -> dict[str, Any]:
        """All of it: arrays and numbers."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: part.copy() if isinstance(part, np.ndarray) else part for name, part in found.items()}


def scaled(shares: Floats, factor: float) -> Floats:
    """Labelled shares with `factor` times as many positives that are not labelled."""
    return np.asarray(shares / (shares + factor * (1 - shares)))


_STATE = {
    "knots": Entry((FEATURES, KNOTS), missing=True),
    "weights": Entry(("s", WIDTH), at_least=-1e100, at_most=1e100),
    "c": Entry(above=0, below=1),
    "limits": Entry(("s - 1",)),
    "shares": Entry(("s",), above=0, below=1),
    "beyond": Entry(at_least=0, at_most=1),
    "depth": Entry(whole=True, at_least=1),
    "scale": Entry((4,)),
    "similar": Entry(("t",)),
    "edges": Entry(("b - 1",)),
    "ratios": Entry(("b",)),
    "shift": Entry(),
    "doubt": Entry(at_least=1),
    "least": Entry(at_least=0, at_most=1),
    "rising": Entry(at_least=0),
    "draws": Entry(("B", "s", WIDTH + 1), at_least=-1e100, at_most=1e100),
}
MODEL_KEYS = tuple(_STATE)


def model_of_state(state: Mapping[str, Any], others: Iterable[str]) -> Model:
    """The model from its state, which may have other keys. Raises if the state does not fit."""
    parts = read_state(state, _STATE, others)
    knots, scale, bins = parts["knots"], parts["scale"], len(parts["ratios"])
    groups = len(parts["shares"])
    sizes = {"edges": max(0, bins - 1), "similar": TERMS if bins else 0, "limits": max(0, groups - 1)}
    for name, size in sizes.items():
        if len(parts[name]) != size:
            rule = f"numbers of shape ({size},), as there are {bins} ratios and {groups} shares"
            raise_invalid(name, rule, f"shape {parts[name].shape}")
    if not groups:
        raise_invalid("shares", "of at least one group", "none")
    if not all(map(_ascending, knots)):
        raise_invalid("knots", "clearly ascending, then NaN", "another order")
    for name in ("edges", "ratios", "limits"):
        if (np.diff(parts[name]) < 0).any():
            raise_invalid(name, "ascending", "another order")
    check_all("scale", scale[1::2], scale[1::2] > 0, "deviations above 0")
    drawn = parts["draws"][:, :, WIDTH]
    check_all("draws", drawn, (drawn > 0) & (drawn < 1), "weights and shares above 0 and below 1")
    plain: dict[str, Any] = {name: part if part.ndim else part.item() for name, part in parts.items()}
    return Model(**plain)


def _ascending(knots: Floats) -> bool:
    """Whether a row of knots ascends, then has NaN: with the same number twice, splines would divide by 0."""
    distinct = knots[: np.count_nonzero(~np.isnan(knots))]
    with np.errstate(all="ignore"):
        places = (distinct - distinct[:1]) / (distinct[-1:] - distinct[:1])
    return len(distinct) < 2 or bool((np.diff(places) > _CLOSEST).all())


def add_to_log_odds(posterior: Floats | float, by: Floats | float) -> Floats:
    """sigmoid(logit posterior + by)."""
    inside = np.clip(posterior, 0.0, LARGEST)
    odds = inside / (1 - inside) * np.exp(by)
    return np.asarray(odds / (1 + odds))


def terms(scale: Floats, scores: Floats, positives: Floats) -> list[Floats]:
    """1, s, pos, s pos, s^2, pos^2, of standardised scores and positives' scores."""
    parts = (scores - scale[0]) / scale[1], (positives - scale[2]) / scale[3]
    s, pos = np.broadcast_arrays(*(np.clip(part, -_FAR, _FAR) for part in parts))
    return [np.ones(s.shape), s, pos, s * pos, s * s, pos * pos]


def predicted(weights: Floats, scale: Floats, scores: Floats, positives: Floats) -> Floats:
    """The similarity that scores alone predict."""
    parts = [weight * term for weight, term in zip(weights.tolist(), terms(scale, scores, positives), strict=True)]
    return np.asarray(sum(parts[1:], parts[0]))


def beyond_of(model: Model, lists: Lists, priors: Floats) -> float:
    """The mean posterior of the last ten ranks that are fitted."""
    last = lists.nearest(model.depth) & ~lists.nearest(model.depth - _LAST)
    posterior = model.of_priors(priors, lists.cut(priors.shape[1]))
    last = last[:, : priors.shape[1]]
    return float(posterior[last].mean()) if last.any() else float(posterior[~np.isnan(priors)].min(initial=1.0))


def share_of(model: Model, lists: Lists, posterior: Floats, mask: Mask, seed: int) -> Share:
    """The mean posterior of some slots, with a 95 % interval for their share of false negatives.

    Log-normal: the deviation of the log-mean over the model's draws, and that of the outcomes, which counts the
    variance of each slot and that between anchors. To them comes the error of the model itself, which no sample shows,
    and which is larger where slots of high posterior were left out: what is left has those that were estimated too low,
    or as good as none if the posterior is sharper than it says. Where other evidence allows more false negatives, or
    fewer, the interval reaches to that. Where the labelled share still rises towards the highest scores, those may not
    be positives alone, and no lower end is claimed.
    """
    from scipy.special import ndtri

    def share(estimate: float, low: float, high: float, n: int) -> Share:
        return posterior_share(estimate, low, high, n, model.rising)

    n, anchors = int(np.count_nonzero(mask)), int(mask.any(axis=1).sum())
    if n == 0:
        return share(0.0, 0.0, 1.0, 0)
    estimate = mean_of(posterior, mask)
    if estimate == 0:
        return share(0.0, 0.0, most_share(0, anchors, 1 - CONFIDENCE), anchors)
    sums, slots = np.where(mask, posterior, 0.0).sum(axis=1), mask.sum(axis=1)
    variance = float((np.where(mask, posterior * (1 - posterior), 0.0)).sum() + ((sums - estimate * slots) ** 2).sum())
    whole = float(posterior[lists.filled & (np.arange(mask.shape[1]) < slots[:, None])].sum())  # of as many nearest
    left = min(1.0, estimate * n / whole)
    error = _MODEL_ERROR + _SELECTED * (1 - left)
    spread = np.sqrt(_drawn_variance(model, lists, mask, seed) + variance / (n * estimate) ** 2 + error**2)
    factor = float(np.exp(ndtri((1 + CONFIDENCE) / 2) * spread))
    return share(estimate, model.least * left * estimate / factor, min(1.0, estimate * factor * model.doubt), anchors)


def _drawn_variance(model: Model, lists: Lists, mask: Mask, seed: int) -> float:
    """The variance of the log of the mean posterior over the model's draws, by at most 5,000 of the slots."""
    if not len(model.draws):
        return 0.0
    rows = np.flatnonzero(mask.any(axis=1))
    rows = rows[:: max(1, -(-int(np.count_nonzero(mask)) // _DRAWN_SLOTS))]
    part = lists.take(rows).cut(model.depth + 2)
    chosen, behind = mask[rows][:, : model.depth + 2], int(mask[rows][:, model.depth + 2 :].sum())
    features, last = candidate_features(part, seed, model.depth)
    drawn = [np.broadcast_to(feature, chosen.shape)[chosen] for feature in features]
    priors = model.priors(part, seed)
    evidence = np.zeros(chosen.shape)
    evidence[:, : priors.shape[1]] = model.evidence(priors, part)
    evidence, beyond, means = evidence[chosen], last[chosen], []
    for draw in model.draws:
        weights, shares = draw[:, :WIDTH], draw[:, WIDTH]
        odds = model.log_odds(drawn, weights, shares)
        posterior = model.final(np.exp(np.minimum(odds, 0.0)), evidence)
        least = min(LARGEST, model.beyond * float(np.mean((1 - shares) / shares) / np.mean(1 / model.shares - 1)))
        means.append((np.where(beyond, least, posterior).sum() + behind * least) / (len(odds) + behind))
    return float(np.log(np.maximum(means, 1e-12)).var())

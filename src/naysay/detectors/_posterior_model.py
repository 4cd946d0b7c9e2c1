"""The fitted posterior as a few small arrays, its state, and the share of false negatives that it estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_all, raise_invalid
from naysay.detectors._posterior_pool import FEATURES, Lists, pool_of
from naysay.detectors._posterior_splines import COLUMNS, KNOTS, design_of
from naysay.detectors._states import Entry, read_state
from naysay.detectors.cut import mean_of
from naysay.detectors.posterior_summary import ASSUMPTIONS
from naysay.detectors.rate import CONFIDENCE, most_share
from naysay.detectors.share import Share

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
WIDTH = 1 + COLUMNS * FEATURES
TERMS = 6  # of the regression of similarities
_BLOCK = 1 << 16  # slots at a time
_FAR = 1e3  # deviations
_CLOSEST = 1e-150  # of the knots' span: its square is not 0
_MOST = 600.0  # added to log-odds: its exponential is finite
_MODEL_ERROR = 0.15  # of the log-share, where assumptions hold about: benchmarks/results/posterior.json
_DRAWN_SLOTS = 20_000  # at most, to see how other weights change the estimate
LARGEST = 1 - 2.0**-24  # in 32 bits: a threshold of 1 drops nothing, and log-odds are finite


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted posterior.

        g = sigmoid(weights . splines(score, log(1 + rank), gap))        P(slot is the labelled one)
        p = min(1, (1 - c) / c g / (1 - g))                              P(an unlabelled candidate is positive)
        logit q = logit p + log ratio(v) + shift                         with the evidence v of item vectors

    Args:
        knots: (3, 5) of the splines, NaN after the last.
        weights: (19,) of the constant and the splines.
        c: P(labelled | positive).
        beyond: The posterior of candidates behind the lists that were fitted.
        depth: The last rank, from 0, that is not behind them.
        scale: (4,) mean and deviation of scores, mean and deviation of positives' scores.
        similar: (6,) the regression of similarities; empty without item vectors.
        edges: (b - 1,) of the bins of v; empty without item vectors.
        ratios: (b,) the log-ratio of densities in each bin, ascending.
        shift: What a check of the labels, or labels of candidates, add to the log-odds.
        draws: (B, 20) other weights and c that samples of the anchors would have given.
    """

    knots: Floats
    weights: Floats
    c: float
    beyond: float
    depth: int
    scale: Floats
    similar: Floats
    edges: Floats
    ratios: Floats
    shift: float
    draws: Floats

    def prior(self, log_odds: Floats, c: float | None = None) -> Floats:
        """(n,) p from logit g, with another c if given."""
        share = self.c if c is None else c
        return np.asarray(np.exp(np.minimum(log_odds + np.log1p(-share) - np.log(share), 0.0)))

    def evidence(self, scores: Floats, positives: Floats, alike: Floats | None) -> Floats:
        """The log-ratio of densities of each slot, 0 where there is no evidence. Shapes broadcast to that of scores."""
        if alike is None or not len(self.similar):
            return np.zeros(scores.shape)
        known = ~np.isnan(alike) & ~np.isnan(positives + scores)
        v = alike - predicted(self.similar, self.scale, scores, positives)
        return np.where(known, self.ratios[np.searchsorted(self.edges, np.where(known, v, 0.0), side="right")], 0.0)

    def final(self, prior: Floats, evidence: Floats) -> Floats:
        """The posterior from p, the log-ratio and the shift, rounded to 32 bits: thresholds mean the same in both."""
        moved = np.clip(evidence + self.shift, -_MOST, _MOST)
        posterior = np.where((moved == 0) | (prior == 0), prior, add_to_log_odds(prior, moved))
        return np.minimum(posterior, LARGEST).astype(np.float32).astype(np.float64)

    def at(self, scores: Floats, ranks: Floats, gaps: Floats, positives: Floats, alike: Floats | None) -> Floats:
        """The posterior of slots, arrays of one shape; ranks count from 0, the labelled positive included."""
        features = np.stack([scores.ravel(), np.log1p(ranks.ravel()), gaps.ravel()])
        prior = self.prior(design_of(features, self.knots).times(self.weights)).reshape(scores.shape)
        posterior = self.final(prior, self.evidence(scores, positives, alike))
        return np.where(ranks > self.depth, np.float64(np.float32(min(self.beyond, LARGEST))), posterior)

    def of_lists(self, lists: Lists, seed: int) -> Floats:
        """(A, M) the posterior of all candidates, 0 where a list has ended."""
        found = np.zeros(lists.scores.shape)
        step = max(1, _BLOCK // max(1, lists.scores.shape[1]))
        for start in range(0, len(found), step):
            part = lists.take(slice(start, start + step))
            scores, ranks, gaps = listed_features(part, seed)
            posterior = self.at(scores, ranks, gaps, part.positives[:, None], part.alike)
            found[start : start + step] = np.where(part.filled, posterior, 0.0)
        return found

    def raised(self, c: float) -> Model:
        """The same with another c."""
        factor = (1 - c) / c * self.c / (1 - self.c)
        return replace(self, c=c, beyond=min(1.0, self.beyond * factor))

    def shifted(self, by: float) -> Model:
        """The same with more added to the log-odds."""
        return replace(self, shift=self.shift + by, beyond=float(add_to_log_odds(self.beyond, by)))

    def state(self) -> dict[str, Any]:
        """All of it: arrays and numbers."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: part.copy() if isinstance(part, np.ndarray) else part for name, part in found.items()}


_STATE = {
    "knots": Entry((FEATURES, KNOTS), missing=True),
    "weights": Entry((WIDTH,), at_least=-1e100, at_most=1e100),
    "c": Entry(above=0, below=1),
    "beyond": Entry(at_least=0, at_most=1),
    "depth": Entry(whole=True, at_least=1),
    "scale": Entry((4,)),
    "similar": Entry(("t",)),
    "edges": Entry(("b - 1",)),
    "ratios": Entry(("b",)),
    "shift": Entry(),
    "draws": Entry(("B", WIDTH + 1), at_least=-1e100, at_most=1e100),
}
MODEL_KEYS = tuple(_STATE)


def model_of_state(state: Mapping[str, Any], others: Iterable[str]) -> Model:
    """The model from its state, which may have other keys. Raises if the state does not fit."""
    parts = read_state(state, _STATE, others)
    knots, scale, bins = parts["knots"], parts["scale"], len(parts["ratios"])
    for name, size in {"edges": max(0, bins - 1), "similar": TERMS if bins else 0}.items():
        if len(parts[name]) != size:
            raise_invalid(name, f"numbers of shape ({size},), as there are {bins} ratios", f"shape {parts[name].shape}")
    if not all(map(_ascending, knots)):
        raise_invalid("knots", "clearly ascending, then NaN", "another order")
    for name in ("edges", "ratios"):
        if (np.diff(parts[name]) < 0).any():
            raise_invalid(name, "ascending", "another order")
    check_all("scale", scale[1::2], scale[1::2] > 0, "deviations above 0")
    drawn = parts["draws"][:, -1]
    check_all("draws", drawn, (drawn > 0) & (drawn < 1), "weights and a c above 0 and below 1")
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


def listed_features(lists: Lists, seed: int) -> tuple[Floats, Floats, Floats]:
    """(A, M) score, rank from 0 and gap of the candidates, with the labelled positive in its place."""
    pool = pool_of(lists, seed)
    scores, _, gaps = pool.of_candidates(pool.features)
    ranks = np.broadcast_to(np.arange(pool.filled.shape[1], dtype=np.float64), pool.filled.shape)
    return scores, pool.of_candidates(ranks), gaps


def terms(scale: Floats, scores: Floats, positives: Floats) -> list[Floats]:
    """1, s, pos, s pos, s^2, pos^2, of standardised scores and positives' scores."""
    parts = (scores - scale[0]) / scale[1], (positives - scale[2]) / scale[3]
    s, pos = np.broadcast_arrays(*(np.clip(part, -_FAR, _FAR) for part in parts))
    return [np.ones(s.shape), s, pos, s * pos, s * s, pos * pos]


def predicted(weights: Floats, scale: Floats, scores: Floats, positives: Floats) -> Floats:
    """The similarity that scores alone predict."""
    parts = [weight * term for weight, term in zip(weights.tolist(), terms(scale, scores, positives), strict=True)]
    return np.asarray(sum(parts[1:], parts[0]))


def share_of(model: Model, lists: Lists, posterior: Floats, mask: Mask, seed: int) -> Share:
    """The mean posterior of some slots, with a 95 % interval for their share of false negatives.

    Log-normal: the deviation of the log-mean over the model's draws, and that of the outcomes, which counts the
    variance of each slot and that between anchors. To them comes the error of the model itself, which no sample shows.
    """
    from scipy.special import ndtri

    n, anchors = int(np.count_nonzero(mask)), int(mask.any(axis=1).sum())
    what = "false negatives"
    if n == 0:
        return Share(what, 0.0, 0.0, 1.0, CONFIDENCE, 0, ASSUMPTIONS)
    estimate = mean_of(posterior, mask)
    if estimate == 0:
        return Share(what, 0.0, 0.0, most_share(0, anchors, 1 - CONFIDENCE), CONFIDENCE, anchors, ASSUMPTIONS)
    sums, slots = np.where(mask, posterior, 0.0).sum(axis=1), mask.sum(axis=1)
    variance = float((np.where(mask, posterior * (1 - posterior), 0.0)).sum() + ((sums - estimate * slots) ** 2).sum())
    spread = np.sqrt(_drawn_variance(model, lists, mask, seed) + variance / (n * estimate) ** 2 + _MODEL_ERROR**2)
    factor = float(np.exp(ndtri((1 + CONFIDENCE) / 2) * spread))
    return Share(what, estimate, estimate / factor, min(1.0, estimate * factor), CONFIDENCE, anchors, ASSUMPTIONS)


def _drawn_variance(model: Model, lists: Lists, mask: Mask, seed: int) -> float:
    """The variance of the log of the mean posterior over the model's draws, by at most 20,000 of the slots."""
    if not len(model.draws):
        return 0.0
    rows = np.flatnonzero(mask.any(axis=1))
    step = max(1, -(-int(np.count_nonzero(mask)) // _DRAWN_SLOTS))
    rows = rows[::step]
    part, chosen = lists.take(rows), mask[rows]
    scores, ranks, gaps = (values[chosen] for values in listed_features(part, seed))
    evidence = model.evidence(part.scores, part.positives[:, None], part.alike)[chosen]
    beyond = ranks > model.depth
    design = design_of(np.stack([scores, np.log1p(ranks), gaps]), model.knots)
    means = []
    for draw in model.draws:
        weights, c = draw[:WIDTH], float(draw[WIDTH])
        posterior = model.final(model.prior(design.times(weights), c), evidence)
        factor = (1 - c) / c * model.c / (1 - model.c)
        means.append(np.where(beyond, min(LARGEST, model.beyond * factor), posterior).mean())
    return float(np.log(np.maximum(means, 1e-12)).var())

"""The share of false negatives in a training set: what is proven, then the posterior's estimate, or else one bound."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE
from naysay.audits._training_set import SetScores, TrainingSet
from naysay.checks import public
from naysay.detectors.posterior import BIASED, cut_at
from naysay.detectors.rate import RateEstimate, unlabelled_share
from naysay.mining.auto import fit_posterior
from naysay.mining.estimate import basis
from naysay.mining.fit import FittedPosterior, usable
from naysay.mining.problem import Problem
from naysay.text import percent

TARGET = 0.05  # the share of false negatives that needs nothing done, as that of `mine`
_MIN_POSITIVES = 19
_NEAREST_SHARE = 0.9  # of the candidates within reach are in a set that was chosen by score
_REACHED = 0.02  # of the anchors have a negative above their positive, unless something kept those out
_ABOVE, _HIGHEST = 0.05, 0.999  # of the positives score above this quantile of the negatives, unless a judge chose
_WHAT = "false negatives"
_LIKE = (
    "unlabelled positives score like the set's own: whether a pair is labelled does not depend on its score, and the "
    "model was trained on both or on neither",
    "anchors are independent of each other, and similar enough that those of the set show how much they differ",
)
_BY_POSTERIOR = (
    "some candidates of the highest scores are positives almost surely; if none is, the estimate is too high",
    "of candidates with equal scores, false ones became negatives no more often than true ones",
)
_NOT_JUDGED = "no judge chose the negatives: false ones in the set score like the set's positives"
_NO_BOUND = "no upper bound: too few positives, or true negatives score as high as positives; label some by hand"
_COMPARED = "a set that a judge has chosen cannot be compared with this one by scores alone; pass vectors for both"
_HIDDEN = (
    "hardly any negative scores as high as its anchor's positive, or as high as most positives. Either none "
    "is false, or a judge left the false ones out: scores alone cannot tell. Pass vectors to find out"
)

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@final
@public
@dataclass(frozen=True, slots=True)
class Trade:
    """What it would cost to drop the negatives most likely to be false, until their estimated share is within a target.

    Args:
        target: The share of false negatives to come down to.
        dropped: How many negatives would be dropped, 0 if the set is within the target.
        before: The estimated share of false negatives now.
        after: The same of what would be left.
        hardness_before: The mean score of the negatives now.
        hardness_after: The same of what would be left.

    Example: see `audit`.
    """

    target: float
    dropped: int
    before: float
    after: float
    hardness_before: float
    hardness_after: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetPosterior:
    """The posterior of the nearest candidates of some anchors, and where the negatives of the set are among them."""

    fit: FittedPosterior
    probability: Floats  # (b, m) of the listed candidates; empty if nothing was fitted
    places: Ids  # (b, k) where each negative of these anchors is in its list, -1 if it is not

    @property
    def anchors(self) -> Ids:
        """(b,) the anchors whose candidates are listed."""
        return self.fit.lists.anchors

    @property
    def beyond(self) -> float:
        """The probability of candidates behind the lists."""
        return float(self.fit.posterior.state()["beyond"])

    @property
    def nearest_share(self) -> float:
        """The share in the set of the candidates down to the last listed negative of each anchor.

        It is 1 if the set holds the nearest candidates, and less if something else decided.
        """
        within_reach = int((self.places.max(axis=1, initial=-1) + 1).sum())
        return float((self.places >= 0).sum() / within_reach) if within_reach else 0.0

    def are_nearest(self, rest: Mask) -> bool:
        """Whether the nearest candidates became negatives, so that nothing but the score chose them."""
        rows = rest[self.anchors]
        listed = int((rows & (self.places >= 0)).sum())
        return self.nearest_share >= _NEAREST_SHARE and listed >= _NEAREST_SHARE * max(1, int(rows.sum()))

    def share(self, rest: Mask) -> tuple[float, float]:
        """(estimate, high) of the share of false negatives among `rest` (n, k)."""
        rows = rest[self.anchors]
        listed_rows, slots = np.nonzero(rows & (self.places >= 0))
        lists = self.fit.lists
        in_set = np.zeros(lists.ids.shape, np.bool_)
        in_set[listed_rows, self.places[listed_rows, slots]] = True
        behind = int(rows.sum()) - len(slots)
        if not len(slots):
            return self.beyond, self.beyond
        found = self.fit.posterior.share(lists.scores, self.fit.own_scores, in_set, alike=lists.alike, behind=behind)
        return found.estimate, found.high

    def listed(self, beyond: float) -> Floats:
        """(b, k) the probability that each negative of these anchors is false; `beyond` behind the lists."""
        probability = np.take_along_axis(self.probability, np.maximum(self.places, 0), axis=1)
        return np.where(self.places >= 0, probability, beyond)

    def alike(self, ids: Ids) -> Floats | None:
        """(b, k) the cosine of each negative of these anchors to a labelled positive; None without item vectors."""
        cosine = self.fit.posterior.alike
        if cosine is None:
            return None
        of_anchors = ids[self.anchors]
        rows, slots = np.nonzero(of_anchors >= 0)
        values = np.full(of_anchors.shape, np.nan)
        values[rows, slots] = cosine(self.anchors[rows], of_anchors[rows, slots])
        return values

    def slots(self, rest: Mask, estimate: float) -> Floats:
        """(b, k) the probability that each of `rest` is false, scaled to the estimate; NaN for others."""
        rows = rest[self.anchors]
        probability = self.listed(min(estimate, self.beyond))
        mean = float(probability[rows].mean()) if rows.any() else 0.0
        scaled = np.minimum(probability * (estimate / mean if mean else 0.0), 1.0)
        return np.where(rows, scaled, np.nan)


def posterior_of_set(given: TrainingSet, problem: Problem | None) -> SetPosterior | None:
    """Fit the posterior to the nearest candidates of at most 2,000 anchors that have a labelled positive.

    O(anchors N d). None without a problem, for rescored pairs, and where no anchor has a labelled positive.
    """
    if problem is None or problem.options.rescore is not None or not len(given.positives):
        return None
    fit = fit_posterior(problem)
    probability = np.zeros(fit.lists.ids.shape)
    if fit.posterior.fitted:
        probability = fit.posterior.posterior(fit.lists.scores, fit.own_scores, alike=fit.lists.alike)
    return SetPosterior(fit, probability, places_of(fit.lists.ids, given.ids[fit.lists.anchors]))


def places_of(lists: Ids, ids: Ids) -> Ids:
    """(b, k) the place of each id in the list of its row, -1 if it is not there or is -1."""
    if not lists.size or not ids.size:
        return np.full(ids.shape, -1, np.int64)
    rows = np.arange(len(lists))[:, None] * (int(max(lists.max(), ids.max())) + 2)
    keys = (rows + lists + 1).ravel()
    order = np.argsort(keys, kind="stable")
    wanted = (rows + ids + 1).ravel()
    found = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    there = (keys[found] == wanted) & (ids.ravel() >= 0)
    return np.where(there, found % lists.shape[1], -1).reshape(ids.shape)


def false_share(
    scores: SetScores | None, set_posterior: SetPosterior | None, proven: Mask, filled: Mask
) -> RateEstimate:
    """Estimate the share of false negatives, with `low` the proven ones and `high` an upper bound, 95 % confidence.

    Scores can never prove that a negative is false, so the interval starts at what is proven. The estimate is NaN where
    nothing but that is known.

    **By the posterior** of the nearest candidates, where one can be fitted: the mean probability of the negatives, and
    the upper end of its interval. It is right if nothing but score and chance chose among candidates of equal
    probability. If the set does not hold the nearest candidates, false ones may have come in another way, at random in
    the worst case. Then their share is at most the following bound.

    **Else by one bound**: P(negative in S) / P(positive in S), for any upper tail S of the scores
    (`detectors.unlabelled_share`). There is none if the scores look as if a judge had chosen.
    """
    total, proven_share = int(filled.sum()), float(proven.sum() / filled.sum())

    def unknown(note: str) -> RateEstimate:
        return RateEstimate(_WHAT, nan, proven_share, 1.0, CONFIDENCE, total, (), (f"unknown: {note}",), bound=True)

    if proven_share == 1:
        return RateEstimate(_WHAT, 1.0, 1.0, 1.0, CONFIDENCE, total, ())
    count = 0 if scores is None else len(scores.one_each)
    if scores is None or count < _MIN_POSITIVES:
        return unknown(f"{count} anchors have a positive with a score, {_MIN_POSITIVES} are needed")
    unproven = scores.filled & ~proven
    if not unproven.any():
        return RateEstimate(_WHAT, proven_share, proven_share, proven_share, CONFIDENCE, total, ())
    if np.ptp(np.concatenate([scores.negatives[unproven], scores.one_positive_each])) == 0:
        return unknown("all scores are equal")
    bound = True
    assumptions: tuple[str, ...]
    if set_posterior is not None and set_posterior.fit.posterior.fitted:
        posterior = set_posterior.fit.posterior
        if posterior.summary.code == BIASED:
            return unknown(posterior.reason)
        estimate, high = set_posterior.share(unproven)
        if not set_posterior.are_nearest(unproven):
            high = max(high, _bound(scores, unproven)[1])
        bound = not usable(posterior)
        assumptions, notes = (*_LIKE, *_BY_POSTERIOR), _notes(set_posterior, unproven)
    elif _looks_judged(scores, unproven):
        return unknown(_HIDDEN)
    else:
        estimate, high = _bound(scores, unproven)
        assumptions, notes = (*_LIKE, _NOT_JUDGED), (_COMPARED,)
        if set_posterior is not None:
            notes = (f"only an upper bound: {set_posterior.fit.posterior.reason}",)
    estimate, high = (min(1.0, proven_share + (1 - proven_share) * share) for share in (estimate, max(estimate, high)))
    if high >= 1:
        notes = (*notes, _NO_BOUND)
    return RateEstimate(_WHAT, estimate, proven_share, high, CONFIDENCE, count, assumptions, notes, bound=bound)


def _bound(scores: SetScores, rest: Mask) -> tuple[float, float]:
    """(estimate, high) of the largest share of `rest` that can be false, if false ones score like the positives."""
    positives = scores.one_positive_each.astype(np.float64)
    known = unlabelled_share(np.where(rest, scores.negatives, 0), positives, mask=rest, confidence=CONFIDENCE)
    return known.estimate, known.high


def _looks_judged(scores: SetScores, rest: Mask) -> bool:
    """Whether negatives avoid the scores of positives: those of their own anchor, or those of most anchors."""
    own, negatives = scores.one_positive_each, np.where(rest, scores.negatives, -np.inf)
    above = (negatives[scores.anchors[scores.one_each]] > own[:, None]).any(axis=1).mean()
    highest = np.quantile(negatives[rest], _HIGHEST)
    return bool(above < _REACHED or (own > highest).mean() > _ABOVE)


def _notes(set_posterior: SetPosterior, rest: Mask) -> tuple[str, ...]:
    """What to know about an estimate by the posterior."""
    posterior = set_posterior.fit.posterior
    notes = [basis(posterior.summary).removesuffix(".")]
    if posterior.reason:
        notes.append(f"only an upper estimate: {posterior.reason}")
    if not set_posterior.are_nearest(rest):
        notes.append(
            f"something other than nearness chose the negatives: only {percent(set_posterior.nearest_share)} of the "
            "candidates as near as an anchor's negatives are in the set. If it was a judge that knows more than the "
            "scores, fewer are false than estimated. If false negatives were put in at random, more are, up to the "
            "upper end"
        )
    return tuple(notes)


# ---- What follows from the probabilities of the negatives ------------------------------------------------------------


def trade_of(probability: Floats, scores: Floats, estimate: float, negatives: int) -> Trade:
    """What it costs to come within the target, by the probabilities (b, k) of some anchors; NaN where there is none.

    `negatives` is how many there are in the whole set.
    """
    known = ~np.isnan(probability)
    order = np.argsort(np.where(known, -scores, np.inf), axis=1, kind="stable")
    sorted_p, sorted_s = (np.take_along_axis(part, order, axis=1) for part in (probability, scores))
    cut = cut_at(np.where(np.isnan(sorted_p), 2.0, sorted_p), probability.shape[1], TARGET, sorted_s)
    dropped_share = (known.sum() - cut.kept.sum()) / max(1, known.sum())
    after = estimate if cut.tau >= 1 else cut.after
    return Trade(TARGET, round(dropped_share * negatives), estimate, after, cut.hardness_before, cut.hardness_after)


def half_false(probability: Floats, scores: Floats) -> float:
    """The lowest score such that at least half of the negatives from it on are false by estimate; infinity if none."""
    known = ~np.isnan(probability)
    order = np.argsort(-scores[known], kind="stable")
    values = scores[known][order]
    means = np.cumsum(probability[known][order]) / np.arange(1, len(order) + 1)
    is_last_of_equals = np.append(values[1:] != values[:-1], True) if len(values) else np.zeros(0, bool)
    good = np.flatnonzero((means >= 0.5) & is_last_of_equals)
    return float(values[good[-1]]) if len(good) else np.inf

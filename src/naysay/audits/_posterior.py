"""The posterior of an audit: fitted to the nearest candidates of some anchors, and read at the set's negatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.audits._training_set import SetScores, TrainingSet
from naysay.checks import public
from naysay.detectors.posterior import Posterior
from naysay.detectors.posterior_summary import cut_at
from naysay.mining.auto import FIT_ANCHORS, Alike, FitLists, fit_depth, usable
from naysay.mining.candidates import Candidates
from naysay.mining.pipeline import collect
from naysay.mining.problem import FIT_DEPTH, known_rows
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search._scores import taken
from naysay.search.exact import search
from naysay.search.vectors import Vectors

TARGET = 0.05  # the share of false negatives that needs nothing done, as that of `mine`
_BY_SCORE = 0.9  # of the candidates within reach are in a set that was chosen by score
_SAME = 1 - 1e-6  # the cosine of an anchor with itself
_HALF = 0.5

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
class Judged:
    """A posterior, the lists of candidates that it was fitted to, and where the negatives of the set are in them."""

    detector: Posterior
    lists: FitLists  # `free`: candidates that are negatives of the set
    own: Floats  # (b,) the score of one labelled positive of each anchor
    posterior: Floats  # (b, m) of the lists; empty if nothing was fitted
    places: Ids  # (b, k) where each negative of these anchors is in its list, -1 if it is not

    @property
    def fitted(self) -> bool:
        """Whether there is a posterior."""
        return self.detector.fitted

    @property
    def usable(self) -> bool:
        """Whether the posterior is more than an upper bound."""
        return usable(self.detector)

    @property
    def inside(self) -> Mask:
        """(b,) whether the labelled positive scores as high as the candidates listed."""
        full, last = self.lists.ids[:, -1] >= 0, self.lists.scores[:, -1]
        return np.asarray(~(full & (self.own < np.where(full, last, -np.inf))))

    def reached(self) -> float:
        """The share of the candidates within reach, those down to an anchor's last listed negative, in the set.

        It is 1 if the set holds the nearest candidates, and less if something else decided.
        """
        reach = int((self.places.max(axis=1, initial=-1) + 1).sum())
        return float(self.lists.free.sum() / reach) if reach else 0.0

    def by_score(self, rest: Mask) -> bool:
        """Whether the nearest candidates became negatives, so that nothing but the score chose them."""
        rows = rest[self.lists.anchors]
        near = int((rows & (self.places >= 0)).sum())
        return self.reached() >= _BY_SCORE and near >= _BY_SCORE * max(1, int(rows.sum()))

    def share(self, rest: Mask, selected: Floats | None) -> tuple[float, float]:
        """(estimate, high) of the share of false negatives among `rest` (n, k), by the posterior.

        Negatives that are in no list: an anchor has U = sum(posterior) / P(positive is listed) unlabelled positives, of
        which those that are not listed are in the set as often as other candidates of their score. `selected` is (b,)
        how often that is, for the labelled positives; without it the posterior behind the lists is taken.
        """
        rows = rest[self.lists.anchors]
        total, near = int(rows.sum()), int((rows & (self.places >= 0)).sum())
        chosen = np.zeros(self.lists.ids.shape, np.bool_)
        anchor, slot = np.nonzero(rows & (self.places >= 0))
        chosen[anchor, self.places[anchor, slot]] = True
        found = self.detector.share(self.lists.scores, self.own, chosen, alike=self.lists.alike)
        most = (total - near) * float(self.detector.state()["beyond"])
        inside = self.inside
        far = most
        if selected is not None and inside.any():
            far = min(most, float(self.posterior.sum() / inside.mean() * (selected * ~inside).mean()))
        factor = found.high / found.estimate if near and found.estimate else 1.0
        estimate = (near * found.estimate if near else 0.0) + far
        high = (near * found.high if near else 0.0) + far * factor
        return min(1.0, estimate / max(1, total)), min(1.0, high / max(1, total))

    def slots(self, rest: Mask, estimate: float) -> Floats:
        """(b, k) the probability that each of `rest` is false, scaled to the estimate; NaN for others."""
        rows = rest[self.lists.anchors]
        found = np.take_along_axis(self.posterior, np.maximum(self.places, 0), axis=1)
        found = np.where(self.places >= 0, found, min(estimate, float(self.detector.state()["beyond"])))
        mean = float(found[rows].mean()) if rows.any() else 0.0
        scaled = np.minimum(found * (estimate / mean if mean else 0.0), 1.0)
        return np.where(rows, scaled, np.nan)


def judged_by_vectors(
    given: TrainingSet, scores: SetScores, queries: Vectors, corpus: Vectors, known: Positives, metric: str, seed: int
) -> Judged | None:
    """Search the nearest candidates of at most 2,000 anchors that have a labelled positive, and fit the posterior.

    O(anchors N d). A candidate whose vector is that of the anchor is the anchor itself, and left out.
    """
    anchors = _anchors(scores, seed)
    if not len(anchors):
        return None
    alike = Alike(corpus, *known.pairs(), queries.n)
    found = search(
        taken(queries, anchors), corpus, min(FIT_DEPTH, corpus.n), metric=metric, exclude=known_rows(known, anchors)
    )
    candidates = Candidates.of(found)
    inside = candidates.filled & ~((candidates.scores >= _SAME) & (metric == "cosine"))
    return _judged(given, scores, Posterior(_width(given), TARGET, alike=alike, seed=seed), anchors, candidates, inside)


def judged_by_candidates(given: TrainingSet, scores: SetScores, seed: int) -> Judged | None:
    """Fit the posterior to the nearest candidates of what `mine` was given; None for others, and rescored pairs."""
    problem = given.problem
    anchors = _anchors(scores, seed)
    if problem is None or problem.options.rescore is not None or not len(anchors):
        return None
    candidates = collect(problem, anchors, max(problem.first_depth, fit_depth(problem)))
    inside = candidates.eligible & (candidates.source == 0)  # of the search; other lists need not be complete
    if not inside.any():
        return None
    return _judged(given, scores, Posterior(_width(given), TARGET, seed=seed), anchors, candidates, inside)


def _anchors(scores: SetScores, seed: int) -> Ids:
    """Anchors with a scored positive, in order; a random sample of 2,000 if there are more."""
    anchors = np.sort(scores.anchors[scores.one_each])
    if len(anchors) <= FIT_ANCHORS:
        return anchors
    return np.sort(rng_for(seed, step=2).choice(anchors, FIT_ANCHORS, replace=False))


def _width(given: TrainingSet) -> int:
    return max(1, int(np.median(np.count_nonzero(given.ids >= 0, axis=1))))


def _judged(
    given: TrainingSet, scores: SetScores, detector: Posterior, anchors: Ids, candidates: Candidates, inside: Mask
) -> Judged:
    """Fit the detector, and find the negatives of the set in the lists."""
    own = np.full(len(given.ids), np.nan)
    own[scores.anchors[scores.one_each]] = scores.positives[scores.one_each]
    lists = FitLists.of(detector, anchors, candidates, inside, np.zeros_like(inside))
    detector.fit(lists.scores, own[anchors], alike=lists.alike)
    posterior = np.zeros((0, 0))
    if detector.fitted:
        posterior = detector.posterior(lists.scores, own[anchors], alike=lists.alike)
    return placed(Judged(detector, lists, own[anchors], posterior, np.zeros((0, 0), np.int64)), given.ids)


def placed(judged: Judged, ids: Ids) -> Judged:
    """The same posterior, with the negatives (n, k) of a set of all anchors found in the lists."""
    places = places_of(judged.lists.ids, ids[judged.lists.anchors])
    row, slot = np.nonzero(places >= 0)
    free = np.zeros(judged.lists.ids.shape, np.bool_)
    free[row, places[row, slot]] = True
    return replace(judged, lists=replace(judged.lists, free=free), places=places)


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


def trade_of(probability: Floats, scores: Floats, estimate: float, negatives: int) -> Trade:
    """What it costs to come within the target, by the probabilities (b, k) of some anchors; NaN where there is none.

    `negatives` is how many there are in the whole set.
    """
    known = ~np.isnan(probability)
    order = np.argsort(np.where(known, -scores, np.inf), axis=1, kind="stable")
    sorted_p, sorted_s = (np.take_along_axis(part, order, axis=1) for part in (probability, scores))
    cut = cut_at(np.where(np.isnan(sorted_p), 2.0, sorted_p), probability.shape[1], TARGET, sorted_s)
    dropped = round(int(known.sum() - cut.kept.sum()) / max(1, int(known.sum())) * negatives)
    after = estimate if cut.tau >= 1 else cut.after
    return Trade(TARGET, dropped, estimate, after, cut.hardness_before, cut.hardness_after)


def half_false(probability: Floats, scores: Floats) -> float:
    """The lowest score such that at least half of the negatives from it on are false by estimate; infinity if none."""
    known = ~np.isnan(probability)
    order = np.argsort(-scores[known], kind="stable")
    values = scores[known][order]
    means = np.cumsum(probability[known][order]) / np.arange(1, len(order) + 1)
    last = np.append(values[1:] != values[:-1], True) if len(values) else np.zeros(0, bool)
    good = np.flatnonzero((means >= _HALF) & last)
    return float(values[good[-1]]) if len(good) else np.inf

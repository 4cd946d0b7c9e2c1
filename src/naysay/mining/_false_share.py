"""The judge "auto": a `Posterior` fitted to the nearest candidates of a sample of anchors, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.posterior import DEPTH, MIN_DEPTH, Posterior
from naysay.detectors.posterior_summary import OUT_OF_REACH
from naysay.detectors.rate import RateEstimate
from naysay.mining._task import FITTED, Task
from naysay.mining.candidates import Candidates
from naysay.rng import rng_for
from naysay.search._scores import norms_of, pair_scores, taken
from naysay.search._survey import SMALLEST_NORM
from naysay.search.vectors import Vectors

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
LIST = DEPTH + 2  # candidates of an anchor that a fit needs: one behind the last, and a duplicate may go
MOST = 2000  # anchors of a fit: more cost time and memory, and hardly change it
_LEAST, _SLOTS = 500, 1 << 20  # fewer anchors where their lists are very long
_FIT, _LISTED = 700, 80  # bytes of a slot that is fitted, and of one that is listed
_SHORT = 0.02  # of the anchors may be short by the cut
_TIMES = 2  # as many candidates as are returned are in the lists of a fit, at least
_POSITIVES = 16  # of an anchor that candidates are compared with
_PAIRS = 1 << 15  # that are compared at a time


def is_auto(task: Task) -> bool:
    """Whether the judge is a posterior, if one can be fitted."""
    return isinstance(task.options.judge, str) and task.options.judge == "auto" and task.options.rescore is None


def sampled_anchors(task: Task) -> Ids:
    """Anchors with a labelled positive, in order; a random sample of 2,000 by the seed if there are more.

    Anchors of pairs that were reviewed are among them.
    """
    anchors, count = np.sort(task.known.pairs()[0][task.held_out()]), _at_most(task)
    if len(anchors) > count:
        anchors = np.sort(rng_for(task.options.seed, FITTED).choice(anchors, count, replace=False))
    return anchors if task.reviewed is None else np.union1d(anchors, task.reviewed.anchors)


def _at_most(task: Task) -> int:
    return min(MOST, max(_LEAST, _SLOTS // fit_depth(task)))


def fit_bytes(task: Task) -> int:
    """The memory that a fit may need."""
    anchors = min(task.queries.n, _at_most(task))
    slots = fit_depth(task) + sum(ids.shape[1] for ids in task.lists.values())
    return int(anchors * (slots * _LISTED + LIST * _FIT))


def fit_depth(task: Task) -> int:
    """How deep the lists of a fit are: as a posterior reads them, and twice as many as are returned.

    All candidates behind what it reads have one posterior, so that more of them would tell nothing.
    """
    return min(max(_TIMES * task.width, LIST), task.corpus.n)


def read_depth(task: Task) -> int:
    """How many candidates of each list the posterior of a task reads: of those of a fit as of all others."""
    return min(DEPTH, max(MIN_DEPTH, task.depth))


def one_positive(task: Task, scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) the score of one positive of each anchor, NaN without one; `scores` are those of all known pairs."""
    one = task.held_out()
    found = np.full(task.queries.n, np.nan, np.float32)
    found[task.known.pairs()[0][one]] = scores[one]
    return found


def unfitted(task: Task, known_scores: NDArray[np.float32]) -> Posterior:
    """The posterior of a task, to be fitted or restored."""
    options, own = task.options, one_positive(task, known_scores)
    width, depth = max(1, task.width), read_depth(task)
    positive = np.asarray(task.kinds["positive"])
    anchors, items = (part[positive] for part in task.known.pairs())
    norms = None if task.surveys is None else task.surveys[1].norms
    alike = Alike(task.corpus, anchors, items, task.queries.n, norms)
    given: dict[str, Any] = {"labelled_share": options.labelled_share, "seed": options.seed}
    return Posterior(width, options.false_share, depth=depth, positive_scores=own, alike=alike, **given)


@final
class Alike:
    """alike(anchors, ids): the largest cosine of an item to its anchor's labelled positives; NaN without one.

    The labelled positives are pairs (anchors, items), by anchor; the first 16 of an anchor are compared. Cosines are
    exact, as those of a search. With the norms of a corpus in memory, these are not taken again.
    """

    def __init__(
        self, corpus: Vectors, anchors: Ids, items: Ids, n_anchors: int, norms: NDArray[np.float64] | None = None
    ) -> None:
        self.corpus, self.items, self.norms = corpus, items, norms
        self.starts = np.searchsorted(anchors, np.arange(n_anchors + 1))

    def __call__(self, anchors: Ids, ids: Ids) -> Floats:
        """(p,) of pairs."""
        counts = np.minimum(np.diff(self.starts)[anchors], _POSITIVES)
        found = np.full(len(ids), np.nan)
        step = _PAIRS // max(1, counts.max(initial=0))
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            each = counts[part]
            pair = np.repeat(np.arange(len(each)), each)
            place = np.arange(len(pair)) - np.repeat(np.cumsum(each) - each, each)
            own = self.items[self.starts[anchors[part]][pair] + place]
            best = np.full(len(each), -np.inf)
            np.fmax.at(best, pair, self._cosines(own, ids[part][pair]))
            found[part] = np.where(np.isfinite(best), best, np.nan)
        return found

    def _cosines(self, items: Ids, others: Ids) -> Floats:
        """(p,) of pairs of items; NaN for a vector of zeros, which other metrics than cosine allow."""
        try:
            return pair_scores(self.corpus, self.corpus, items, others, "cosine", self.norms).astype(np.float64)
        except ZeroDivisionError:
            long = [norms_of(taken(self.corpus, ids)) >= SMALLEST_NORM for ids in (items, others)]
            good, cosines = long[0] & long[1], np.full(len(items), np.nan)
            cosines[good] = pair_scores(self.corpus, self.corpus, items[good], others[good], "cosine")
            return cosines


@final
@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """The candidates of some anchors, or of all."""

    anchors: Ids  # ascending
    candidates: Candidates
    depth: int  # of their search

    def of(self, anchors: Ids) -> Candidates:
        """The candidates of some of these anchors."""
        if np.array_equal(anchors, self.anchors):
            return self.candidates
        return self.candidates.take(np.searchsorted(self.anchors, anchors))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FitLists:
    """The candidates of some anchors, nearest first."""

    anchors: Ids  # (A,)
    ids: Ids  # (A, M), -1 where a list has ended
    scores: Floats  # (A, M), NaN there
    free: Mask  # (A, M): those that may become negatives
    alike: Floats  # (A, M) see `Alike`; NaN behind the ranks that are fitted

    @staticmethod
    def of(detector: Posterior, anchors: Ids, candidates: Candidates, inside: Mask, free: Mask) -> FitLists:
        """The lists of some anchors: those candidates that are `inside`, and which of these may become negatives."""
        scores = np.where(inside, candidates.scores, np.nan).astype(np.float64)
        order = np.argsort(-scores, axis=1, kind="stable")
        ids = np.where(inside, candidates.ids, -1)
        ids, scores, free = (np.take_along_axis(part, order, axis=1) for part in (ids, scores, free & inside))
        near = (ids >= 0) & (np.arange(ids.shape[1]) <= detector.depth)
        alike = np.full(ids.shape, np.nan)
        if detector.alike is not None:
            alike[near] = detector.alike(anchors[np.nonzero(near)[0]], ids[near])
        return FitLists(anchors, ids, scores, free, alike)

    def cut(self, width: int) -> FitLists:
        """The first candidates of each anchor."""
        ids, scores = self.ids[:, :width], self.scores[:, :width]
        return FitLists(self.anchors, ids, scores, self.free[:, :width], self.alike[:, :width])

    @staticmethod
    def empty() -> FitLists:
        """Of no anchors."""
        numbers, none = np.zeros((0, 1)), np.zeros((0, 1), np.int64)
        return FitLists(none[:, 0], none, numbers, none > 0, numbers)

    @staticmethod
    def joined(parts: list[FitLists]) -> FitLists:
        """Several as one; all have as many slots."""
        names = ("anchors", "ids", "scores", "free", "alike")
        return FitLists(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def fitted(task: Task, detector: Posterior, lists: FitLists) -> Posterior:
    """Fit the posterior, correct it by what was reviewed, and cut it for what the task may return.

    Where the cut leaves anchors short, and candidates behind the lists are above it, too, a deeper search would not
    help: the target is out of reach.
    """
    own, counts = own_positives(detector, lists.anchors), counts_of(task, lists.anchors)
    labelled = np.bincount(task.known.pairs()[0][task.kinds["positive"]], minlength=task.queries.n)
    detector.fit(lists.scores, own, alike=lists.alike, n_labelled=labelled[labelled > 0], anchors=lists.anchors)
    if not detector.fitted:
        return detector
    if task.reviewed is not None:
        truth = task.reviewed.of_lists(lists)
        if (truth >= 0).any():
            detector.correct(lists.scores, own, truth, alike=lists.alike)
    if task.reviewed is not None or not ((counts == detector.k).all() and (lists.free | (lists.ids < 0)).all()):
        detector = recut(task, detector, lists, detector.false_share)
    summary, state = detector.summary, detector.state()
    short = summary.short - int((np.count_nonzero(lists.free, axis=1) < counts).sum())
    if short > _SHORT * len(counts) and state["beyond"] > summary.tau:
        detector.restore({**state, "summary": replace(summary, code=OUT_OF_REACH).state()})
    return detector


def own_positives(detector: Posterior, anchors: Ids) -> Floats:
    """(A,) the score of one labelled positive of each anchor."""
    return np.asarray(detector.positive_scores, np.float64)[anchors]


def counts_of(task: Task, anchors: Ids) -> Ids:
    """(A,) k of some anchors."""
    return np.full(len(anchors), task.width) if task.counts is None else task.counts[anchors]


def recut(task: Task, detector: Posterior, lists: FitLists, false_share: float) -> Posterior:
    """The same posterior, cut so that what the task returns has another estimated share of false negatives."""
    own, counts = own_positives(detector, lists.anchors), counts_of(task, lists.anchors)
    return detector.recut(false_share, lists.scores, own, alike=lists.alike, free=lists.free, counts=counts)


def usable(detector: Posterior) -> bool:
    """Whether a posterior can judge: it was fitted, and there is no reason not to trust its cut."""
    return detector.fitted and not detector.reason


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetEstimate:
    """What a posterior estimates of a set of negatives, on the anchors that it was fitted to."""

    share: RateEstimate | None  # of false negatives
    mean_score: float  # NaN without negatives
    reason: str = ""  # why there is no share


def estimate_set(detector: Posterior, lists: FitLists, ids: Ids, scores: NDArray[np.float32]) -> SetEstimate:
    """Estimate the share of false negatives among the negatives that are returned, whatever chose them.

    Negatives that are in no list, such as random ones, have the posterior of candidates behind the lists.

    Args:
        detector: The posterior.
        lists: The candidates of the anchors that it was fitted to.
        ids: (n, k) the negatives of all anchors, -1 empty.
        scores: (n, k) their scores.
    """
    own_ids, own_scores = ids[lists.anchors], scores[lists.anchors]
    filled = own_ids >= 0
    if not filled.any():
        return SetEstimate(None, np.nan, "there are no negatives")
    mean_score = float(own_scores[filled].mean(dtype=np.float64))
    if not usable(detector):
        return SetEstimate(None, mean_score, detector.reason)
    returned = among(lists, own_ids)
    behind = int(filled.sum() - returned.sum())
    positives = own_positives(detector, lists.anchors)
    share = detector.share(lists.scores, positives, returned, alike=lists.alike, behind=behind)
    return SetEstimate(share, mean_score)


def among(lists: FitLists, ids: Ids) -> Mask:
    """(A, M): which listed candidates are among the ids (A, k) of their anchor. A sort."""
    size = 1 + max(lists.ids.max(initial=0), ids.max(initial=0))
    rows = size * np.arange(len(ids))[:, None]
    wanted = (rows + ids)[ids >= 0]
    return (lists.ids >= 0) & np.isin(rows + lists.ids, wanted)


def as_record(detector: Posterior) -> dict[str, Any]:
    """The state of a posterior as plain lists and numbers."""
    return {name: np.asarray(part).tolist() for name, part in detector.state().items()}

"""The judge of a problem: as it is given, or for "auto" the first of a list of policies that can be used.

The policies of "auto", in `choose_judge`: a posterior fitted to the nearest candidates; a threshold calibrated on known
positives; a threshold by shares of all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.posterior import DEPTH, MIN_DEPTH, Posterior
from naysay.detectors.posterior_summary import OUT_OF_REACH
from naysay.mining.candidates import Candidates, Floats32, Ids, Mask
from naysay.mining.judge import (
    ALPHA,
    Judge,
    anchors_without_positive,
    drops_at,
    is_yet_to_fit,
    judge_of,
    rule_of,
)
from naysay.mining.pipeline import collect, narrowed_by_options
from naysay.mining.problem import FALSE_SHARE, FIT_DEPTH, FITTED, Problem, is_auto
from naysay.rng import rng_for
from naysay.search._scores import norms_of, pair_scores, taken
from naysay.search._survey import SMALLEST_NORM
from naysay.search.exact import Exact
from naysay.search.vectors import Vectors

Floats = NDArray[np.float64]
FIT_ANCHORS = 2000  # anchors of a fit: more cost time and memory, and hardly change it
_FEWEST_ANCHORS, _FIT_SLOTS = 500, 1 << 20  # fewer anchors are fitted to where their lists are very long
_FIT_BYTES, _LIST_BYTES = 700, 80  # of a slot that is fitted, and of one that is listed
_SHORT_SHARE = 0.02  # of the anchors may be short by the cut of a posterior
_LISTS_PER_K = 2  # the lists of a fit hold at least twice as many candidates as are returned
_COMPARED_POSITIVES = 16  # of an anchor that candidates are compared with
_COMPARED_PAIRS = 1 << 15  # at a time


def choose_judge(problem: Problem, fit: Fit | None = None, rescored: Floats32 | None = None) -> Judge:
    """The judge of a problem, with what it does in a sentence.

    Args:
        problem: What is mined.
        fit: The posterior of the problem, if it was fitted before.
        rescored: (n,) the score of one positive of each anchor by the second model, NaN without one, where candidates
            are rescored: only that can be calibrated, since the scores of random pairs are of another kind.
    """
    given = problem.options.judge
    if rescored is not None:
        return judge_by_scores(given, rescored, rescored[~np.isnan(rescored)])
    held_out = problem.known_scores[problem.held_out]
    if not is_auto(problem.options):
        return _as_given(given, problem.detector, problem.positive_scores, held_out, fit)
    fit = fit_posterior(problem) if fit is None else fit
    policies: list[Policy] = [ByPosterior(problem, fit), ByCalibration(held_out), ByShares(problem, len(held_out))]
    return first_usable(policies, fit)


def judge_by_scores(given: Any, lowest: Floats32, held_out: NDArray[Any]) -> Judge:
    """The judge where there is no posterior: as it is given, or calibrated.

    Args:
        given: A judge as `mine` takes it.
        lowest: (n,) the lowest score of each anchor's positives, NaN without one.
        held_out: (p,) the score of one positive of each anchor that has some.
    """
    return _as_given(given, judge_of(given, lowest), lowest, held_out, None)


def _as_given(given: Any, detector: Any, lowest: Floats32, held_out: NDArray[Any], fit: Fit | None) -> Judge:
    """The judge `given`, which is this detector; calibrated here if it has no scores of its own."""
    if is_yet_to_fit(detector):
        policy = ByCalibration(held_out, detector.alpha if isinstance(detector, Calibrated) else ALPHA)
        if not policy.usable():
            raise_invalid("judge", "another, where all positives score the same", f"{len(held_out)} equal scores")
        return first_usable([policy], fit)
    return Judge(detector, rule_of(detector) + anchors_without_positive(given, lowest), drops_at(detector), fit)


class Policy(Protocol):
    """One way to decide what is suspected."""

    def usable(self) -> bool:
        """Whether the data allow it."""

    def why_not(self) -> str:
        """Why it cannot be used, as the beginning of the rule that takes its place; nothing if that goes unsaid."""

    def detector(self) -> Any:
        """The detector."""

    def describe(self) -> str:
        """What it does, in a sentence."""


def first_usable(policies: Sequence[Policy], fit: Fit | None) -> Judge:
    """The judge of the first policy that the data allow; the last one can always be used."""
    reasons = ""
    for policy in policies[:-1]:
        if policy.usable():
            return Judge(policy.detector(), reasons + policy.describe(), drops_at(policy.detector()), fit)
        reasons += policy.why_not()
    last = policies[-1]
    return Judge(last.detector(), reasons + last.describe(), drops_at(last.detector()), fit)


@final
@dataclass(frozen=True, slots=True)
class ByPosterior:
    """Drop what is most likely a false negative, until the estimated share is within the target."""

    problem: Problem
    fit: Fit

    def usable(self) -> bool:
        """Whether the posterior can tell."""
        return usable(self.fit.posterior)

    def why_not(self) -> str:
        """Why it cannot tell, and what was reviewed."""
        reviewed = self.problem.reviewed
        review = "" if reviewed is None else f" {reviewed.describe()}"
        reason = self.fit.posterior.reason
        return f"How many of the nearest are false cannot be told: {reason}.{review} Instead: "

    def detector(self) -> Posterior:
        """The posterior."""
        return self.fit.posterior

    def describe(self) -> str:
        """Its cut."""
        return rule_of(self.fit.posterior)


@final
@dataclass(frozen=True, eq=False)
class ByCalibration:
    """Drop what scores as high as all but a share alpha of the known positives, one of each anchor."""

    scores: NDArray[Any]
    alpha: float = ALPHA

    @cached_property
    def fitted(self) -> Calibrated | None:
        """The threshold, or None if the scores cannot guarantee alpha."""
        return calibrated(self.alpha, self.scores)

    def usable(self) -> bool:
        """Whether there are enough positives, with different scores."""
        return self.fitted is not None

    def why_not(self) -> str:
        """The rule by shares says it."""
        return ""

    def detector(self) -> Calibrated | None:
        """The threshold."""
        return self.fitted

    def describe(self) -> str:
        """The threshold and its guarantee."""
        return rule_of(self.fitted)


@final
@dataclass(frozen=True, slots=True)
class ByShares:
    """Drop the highest 0.1 % of the scores of all pairs: a guess, where there are too few positives."""

    problem: Problem
    labelled: int  # anchors with a positive

    def usable(self) -> bool:
        """Always."""
        return True

    def why_not(self) -> str:
        """Nothing."""
        return ""

    def detector(self) -> Any:
        """Bands by shares."""
        return self.problem.background.bands()

    def describe(self) -> str:
        """The threshold, and that it is a guess."""
        background = self.problem.background
        if not background.varies:
            return "Nothing is suspected: the scores of all pairs are equal."
        pairs = len(background.scores) + background.n_positives
        kind = "pairs" if background.whole else "random pairs"
        return (
            f"Threshold {background.bands().high:.4g}: suspects {FALSE_SHARE:.1%} of {pairs:,} {kind}. This is a guess "
            f"about the data: {self.labelled} anchors with a positive cannot guarantee a miss rate of {ALPHA:.0%} "
            f"({least_positives(ALPHA)} can)."
        )


def calibrated(alpha: float, scores: NDArray[Any]) -> Calibrated | None:
    """Fit `Calibrated` to one positive score of each anchor; None if these cannot guarantee alpha."""
    if len(scores) < least_positives(alpha) or scores.min() == scores.max():
        return None
    return Calibrated(alpha).fit(scores)


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
        read = (ids >= 0) & (np.arange(ids.shape[1]) <= detector.depth)
        alike = np.full(ids.shape, np.nan)
        if detector.alike is not None:
            alike[read] = detector.alike(anchors[np.nonzero(read)[0]], ids[read])
        return FitLists(anchors, ids, scores, free, alike)

    def cut(self, width: int) -> FitLists:
        """The first candidates of each anchor."""
        ids, scores = self.ids[:, :width], self.scores[:, :width]
        return FitLists(self.anchors, ids, scores, self.free[:, :width], self.alike[:, :width])

    @staticmethod
    def joined(parts: Sequence[FitLists]) -> FitLists:
        """Several as one; all have as many slots."""
        names = ("anchors", "ids", "scores", "free", "alike")
        return FitLists(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The posterior of a problem, and the lists of candidates that it was fitted to."""

    posterior: Posterior
    lists: FitLists
    found: Candidates | None = None  # the candidates of all anchors, if all of them were fitted to

    @property
    def own_scores(self) -> Floats:
        """(A,) the score of one labelled positive of each anchor of the lists."""
        return own_scores(self.posterior, self.lists.anchors)


def usable(posterior: Posterior) -> bool:
    """Whether a posterior can judge: it was fitted, and there is no reason not to trust its cut."""
    return posterior.fitted and not posterior.reason


def own_scores(posterior: Posterior, anchors: Ids) -> Floats:
    """(A,) the score of one labelled positive of each anchor."""
    return np.asarray(posterior.positive_scores, np.float64)[anchors]


def fit_posterior(problem: Problem) -> Fit:
    """Fit the posterior of a problem to a sample of its anchors."""
    posterior = unfitted(problem)
    anchors = sampled_anchors(problem)
    depth = max(problem.first_depth, fit_depth(problem))
    parts, found = [], []
    whole = len(anchors) == problem.queries.n and depth == problem.first_depth
    for block in problem.blocks(anchors, depth):
        candidates = collect(problem, block, depth, silent=True)
        parts.append(_lists(problem, posterior, block, candidates, depth))
        found += [candidates] if whole else []
    lists = FitLists.joined(parts)
    return Fit(fitted(problem, posterior, lists), lists, Candidates.stacked(found) if whole else None)


def lists_of(problem: Problem, posterior: Posterior, anchors: Ids) -> FitLists:
    """The lists of some anchors, as a posterior is fitted to them."""
    depth = max(problem.first_depth, fit_depth(problem))
    parts = [
        _lists(problem, posterior, block, collect(problem, block, depth, silent=True), depth)
        for block in problem.blocks(anchors, depth)
    ]
    return FitLists.joined(parts)


def _lists(problem: Problem, posterior: Posterior, anchors: Ids, found: Candidates, depth: int) -> FitLists:
    """The lists of some anchors, whose search was `depth` deep; only the first `fit_depth` of it are listed."""
    width = fit_depth(problem)
    inside, free = found.eligible, narrowed_by_options(problem, found).kept
    inside[:, width:depth] = False
    free[:, problem.deepest : width] = False  # which only the fit searches
    return FitLists.of(posterior, anchors, found, inside, free).cut(found.ids.shape[1] - depth + width)


def sampled_anchors(problem: Problem) -> Ids:
    """Anchors with a labelled positive, in order; a random sample of 2,000 by the seed if there are more.

    Anchors of pairs that were reviewed are among them.
    """
    anchors, count = np.sort(problem.known.pairs()[0][problem.held_out]), _most_anchors(problem)
    if len(anchors) > count:
        anchors = np.sort(rng_for(problem.options.seed, FITTED).choice(anchors, count, replace=False))
    return anchors if problem.reviewed is None else np.union1d(anchors, problem.reviewed.anchors)


def fit_depth(problem: Problem) -> int:
    """How deep the lists of a fit are: as a posterior reads them, and twice as many as are returned.

    All candidates behind what it reads have one posterior, so that more of them would tell nothing.
    """
    return min(max(_LISTS_PER_K * problem.width, FIT_DEPTH), problem.n_items)


def fit_bytes(problem: Problem) -> int:
    """The memory that a fit may need."""
    anchors = min(problem.queries.n, _most_anchors(problem))
    slots = fit_depth(problem) + sum(ids.shape[1] for ids in problem.sources.values())
    return int(anchors * (slots * _LIST_BYTES + FIT_DEPTH * _FIT_BYTES))


def _most_anchors(problem: Problem) -> int:
    return min(FIT_ANCHORS, max(_FEWEST_ANCHORS, _FIT_SLOTS // fit_depth(problem)))


def unfitted(problem: Problem) -> Posterior:
    """The posterior of a problem, to be fitted or restored."""
    options, anchors = problem.options, problem.known.pairs()[0]
    one_positive = np.full(problem.queries.n, np.nan, np.float32)
    one_positive[anchors[problem.held_out]] = problem.known_scores[problem.held_out]
    norms = problem.searcher.norms if isinstance(problem.searcher, Exact) else None
    return Posterior(
        max(1, problem.width),
        options.false_share,
        depth=min(DEPTH, max(MIN_DEPTH, problem.deepest)),
        positive_scores=one_positive,
        alike=Alike(problem.corpus, *problem.positive_pairs, problem.queries.n, norms),
        labelled_share=options.labelled_share,
        seed=options.seed,
    )


def fitted(problem: Problem, posterior: Posterior, lists: FitLists) -> Posterior:
    """Fit the posterior, correct it by what was reviewed, and cut it for what the problem may return.

    Where the cut leaves anchors short, and candidates behind the lists are above it, too, a deeper search would not
    help: the target is out of reach.
    """
    own, counts = own_scores(posterior, lists.anchors), problem.counts_of(lists.anchors)
    labelled = np.bincount(problem.positive_pairs[0], minlength=problem.queries.n)
    posterior.fit(lists.scores, own, alike=lists.alike, n_labelled=labelled[labelled > 0], anchors=lists.anchors)
    if not posterior.fitted:
        return posterior
    if problem.reviewed is not None:
        truth = problem.reviewed.of_lists(lists)
        if (truth >= 0).any():
            posterior.correct(lists.scores, own, truth, alike=lists.alike)
    takes_the_nearest = (counts == posterior.k).all() and (lists.free | (lists.ids < 0)).all()
    if problem.reviewed is not None or not takes_the_nearest:
        posterior = recut(problem, posterior, lists, posterior.false_share)
    summary, state = posterior.summary, posterior.state()
    short_anyway = int((np.count_nonzero(lists.free, axis=1) < counts).sum())
    short_by_cut = summary.short - short_anyway
    if short_by_cut > _SHORT_SHARE * len(counts) and state["beyond"] > summary.tau:
        posterior.restore({**state, "code": OUT_OF_REACH})
    return posterior


def recut(problem: Problem, posterior: Posterior, lists: FitLists, false_share: float) -> Posterior:
    """The same posterior, cut so that what the problem returns has another estimated share of false negatives."""
    own, counts = own_scores(posterior, lists.anchors), problem.counts_of(lists.anchors)
    return posterior.recut(false_share, lists.scores, own, alike=lists.alike, free=lists.free, counts=counts)


@final
class Alike:
    """alike(anchors, ids): the largest cosine of an item to its anchor's labelled positives; NaN without one.

    The labelled positives are pairs (anchors, items), by anchor; the first 16 of an anchor are compared. Cosines are
    exact, as those of a search. With the norms of a corpus in memory, these are not taken again.
    """

    def __init__(self, corpus: Vectors, anchors: Ids, items: Ids, n_anchors: int, norms: Floats | None = None) -> None:
        self.corpus, self.items, self.norms = corpus, items, norms
        self.starts = np.searchsorted(anchors, np.arange(n_anchors + 1))

    def __call__(self, anchors: Ids, ids: Ids) -> Floats:
        """(p,) of pairs."""
        counts = np.minimum(np.diff(self.starts)[anchors], _COMPARED_POSITIVES)
        found = np.full(len(ids), np.nan)
        step = _COMPARED_PAIRS // max(1, counts.max(initial=0))
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            each = counts[part]
            pair = np.repeat(np.arange(len(each)), each)
            place = np.arange(len(pair)) - np.repeat(np.cumsum(each) - each, each)
            positives = self.items[self.starts[anchors[part]][pair] + place]
            best = np.full(len(each), -np.inf)
            np.fmax.at(best, pair, self._cosines(positives, ids[part][pair]))
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

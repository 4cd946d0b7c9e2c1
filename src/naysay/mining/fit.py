"""The posterior of a problem: the lists of candidates that it is fitted to, the fit, and what it says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import final

import numpy as np

from naysay.arrays import Floats
from naysay.detectors._posterior_model import Lists
from naysay.detectors.posterior import DEPTH, MIN_DEPTH, OUT_OF_REACH, Posterior, first_of
from naysay.detectors.rate import RateEstimate
from naysay.mining.candidates import Candidates, Ids, Mask
from naysay.mining.pipeline import collect, within_limits
from naysay.mining.problem import FIT_DEPTH, FITTED, Problem
from naysay.rng import rng_for
from naysay.search._scores import norms_of, pair_scores, taken
from naysay.search.exact import SMALLEST_NORM, Exact
from naysay.search.vectors import Vectors

FIT_ANCHORS = 2000  # anchors of a fit: more cost time and memory, and hardly change it
_FEWEST_ANCHORS, _FIT_SLOTS = 500, 1 << 20  # fewer anchors are fitted to where their lists are very long
_FIT_BYTES, _LIST_BYTES = 700, 80  # of a slot that is fitted, and of one that is listed
_SHORT_SHARE = 0.02  # of the anchors may be short by the cut of a posterior
_LISTS_PER_K = 2  # the lists of a fit hold at least twice as many candidates as are returned
_COMPARED_POSITIVES = 16  # of an anchor that candidates are compared with
_COMPARED_PAIRS = 1 << 15  # at a time
_VAGUE = 5  # times the lower end
_CHANCE = 2.5  # standard errors of a dispersion of 1, above which anchors are said to differ


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
    def of(
        posterior: Posterior, anchors: Ids, candidates: Candidates, listed: Mask, free: Mask, width: int | None = None
    ) -> FitLists:
        """The candidates that are `listed`, and which of them are `free`, in at most `width` slots."""
        scores = np.where(listed, candidates.scores, np.nan).astype(np.float64)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        ids = np.take_along_axis(np.where(listed, candidates.ids, -1), order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        free = np.take_along_axis(free & listed, order, axis=1)
        alike = np.full(ids.shape, np.nan)
        if posterior.alike is not None:
            is_read = (ids >= 0) & (np.arange(ids.shape[1]) <= posterior.depth)
            alike[is_read] = posterior.alike(anchors[np.nonzero(is_read)[0]], ids[is_read])
        return FitLists(anchors, ids, scores, free, alike)

    @staticmethod
    def joined(parts: Sequence[FitLists]) -> FitLists:
        """Several as one; all have as many slots."""
        names = [each.name for each in fields(FitLists)]
        return FitLists(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def for_posterior(self, own: Floats) -> Lists:
        """The lists with the score of one labelled positive of each anchor (A,), as a posterior takes them."""
        return Lists(self.scores, own, self.alike)

    def contain(self, ids: Ids) -> Mask:
        """(A, M): which listed candidates are among the ids (A, k) of their anchor."""
        size = 1 + max(self.ids.max(initial=0), ids.max(initial=0))
        rows = size * np.arange(len(ids))[:, None]
        wanted = (rows + ids)[ids >= 0]
        return (self.ids >= 0) & np.isin(rows + self.ids, wanted)


@final
@dataclass(frozen=True, eq=False)
class FittedPosterior:
    """The posterior of a problem, and the lists that it was fitted to."""

    posterior: Posterior
    lists: FitLists
    found: Candidates | None = None  # the candidates of all anchors, if all of them were fitted to

    @property
    def usable(self) -> bool:
        """Whether the posterior can judge: there is one, and no reason not to trust its cut."""
        return usable(self.posterior)

    @property
    def own_scores(self) -> Floats:
        """(A,) the score of one labelled positive of each anchor of the lists."""
        return own_scores(self.posterior, self.lists.anchors)

    def probabilities(self) -> Floats:
        """(A, M) the probability that each listed candidate is a false negative."""
        return self.posterior.of_lists(self.lists.for_posterior(self.own_scores))

    @property
    def before(self) -> RateEstimate | None:
        """The share of false negatives among the nearest k, or None."""
        before = self.posterior.summary.before
        return None if before is None else self.widened(before)

    @cached_property
    def dispersion(self) -> float:
        """D: the variance by the mean, over anchors, of the number of false negatives among the nearest k.

        At most about 1 if false negatives are spread over the anchors by chance; more if a few anchors have many.
        """
        nearest = first_of(self.lists.free, self.posterior.k)
        per_anchor = (self.probabilities() * nearest).sum(axis=1)
        mean = float(per_anchor.mean())
        return float(per_anchor.var()) / mean if mean else 0.0

    @property
    def is_uneven(self) -> bool:
        """Whether a few anchors have many false negatives, beyond what chance would give."""
        n_anchors = len(self.lists.anchors)
        return bool(self.dispersion * (1 - _CHANCE * np.sqrt(2 / max(1, n_anchors))) > 1)

    def widened(self, rate: RateEstimate) -> RateEstimate:
        """The rate with an interval for what its own does not cover.

        A lower end far below the estimate is 0: the encoder may be weak and all positives labelled. Where anchors are
        uneven, the upper end is at least (1 + D) times the estimate: in generated data of uneven groups that held the
        truth in 95 % of the cases, and the plain end in 52 %.
        """
        low = 0.0 if is_vague(rate) else rate.low
        high = rate.high
        if self.is_uneven:
            high = max(high, min(1.0, rate.estimate * (1 + self.dispersion)))
        return replace(rate, low=low, high=high)


def is_vague(rate: RateEstimate) -> bool:
    """Whether the lower end of an interval is so far below the estimate that it says nothing."""
    return rate.low < rate.estimate / _VAGUE


def usable(posterior: Posterior) -> bool:
    """Whether a posterior can judge: it was fitted, and there is no reason not to trust its cut."""
    return posterior.fitted and not posterior.reason


def own_scores(posterior: Posterior, anchors: Ids) -> Floats:
    """(A,) the score of one labelled positive of each anchor."""
    return np.asarray(posterior.positive_scores, np.float64)[anchors]


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
        largest = np.full(len(ids), np.nan)
        step = _COMPARED_PAIRS // max(1, counts.max(initial=0))
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            n_positives = counts[part]
            pair = np.repeat(np.arange(len(n_positives)), n_positives)
            place = np.arange(len(pair)) - np.repeat(np.cumsum(n_positives) - n_positives, n_positives)
            positives = self.items[self.starts[anchors[part]][pair] + place]
            best = np.full(len(n_positives), -np.inf)
            np.fmax.at(best, pair, self._cosines(positives, ids[part][pair]))
            largest[part] = np.where(np.isfinite(best), best, np.nan)
        return largest

    def _cosines(self, items: Ids, others: Ids) -> Floats:
        """(p,) of pairs of items; NaN for a vector of zeros, which other metrics than cosine allow."""
        try:
            return pair_scores(self.corpus, self.corpus, items, others, "cosine", self.norms).astype(np.float64)
        except ZeroDivisionError:
            has_length = [norms_of(taken(self.corpus, ids)) >= SMALLEST_NORM for ids in (items, others)]
            good = has_length[0] & has_length[1]
            cosines = np.full(len(items), np.nan)
            cosines[good] = pair_scores(self.corpus, self.corpus, items[good], others[good], "cosine")
            return cosines


# ---- the fit --------------------------------------------------------------------------------------------------------


def fit_posterior(problem: Problem) -> FittedPosterior:
    """Fit the posterior of a problem to a sample of its anchors."""
    posterior, anchors = unfitted(problem), sampled_anchors(problem)
    has_all = len(anchors) == problem.queries.n and _search_depth(problem) == problem.first_depth
    lists, found = _searched(problem, posterior, anchors, keep=has_all)
    return FittedPosterior(_fit_and_cut(problem, posterior, lists), lists, Candidates.stacked(found) if found else None)


def lists_of(problem: Problem, posterior: Posterior, anchors: Ids) -> FitLists:
    """The lists of some anchors, as a posterior is fitted to them."""
    return _searched(problem, posterior, anchors, keep=False)[0]


def _searched(problem: Problem, posterior: Posterior, anchors: Ids, *, keep: bool) -> tuple[FitLists, list[Candidates]]:
    """The lists of some anchors, and if they are to be kept all candidates of each block of anchors."""
    depth, width = _search_depth(problem), fit_depth(problem)
    lists, found = [], []
    for block in problem.blocks(anchors, depth):
        candidates = collect(problem, block, depth, silent=True)
        listed, free = candidates.eligible, within_limits(candidates, problem).kept
        listed[:, width:depth] = False
        free[:, problem.deepest : width] = False  # which only the fit searches
        n_of_other_sources = candidates.ids.shape[1] - depth
        lists.append(FitLists.of(posterior, block, candidates, listed, free, width + n_of_other_sources))
        if keep:
            found.append(candidates)
    return FitLists.joined(lists), found


def _search_depth(problem: Problem) -> int:
    """How deep the anchors of a fit are searched; the first `fit_depth` candidates of the search are listed."""
    return max(problem.first_depth, fit_depth(problem))


def sampled_anchors(problem: Problem) -> Ids:
    """Anchors with a labelled positive, in order; a random sample by the seed if there are more than a fit takes.

    Anchors of pairs that were reviewed are among them.
    """
    anchors, count = np.sort(problem.known.pairs()[0][problem.one_positive_each]), _most_anchors(problem)
    if len(anchors) > count:
        anchors = np.sort(rng_for(problem.options.seed, FITTED).choice(anchors, count, replace=False))
    return anchors if problem.reviewed is None else np.union1d(anchors, problem.reviewed.anchors)


def fit_depth(problem: Problem) -> int:
    """How deep the lists of a fit are: as a posterior reads them, and twice as many as are returned.

    All candidates behind what it reads have one posterior, so that more of them would tell nothing.
    """
    return min(max(_LISTS_PER_K * problem.largest_k, problem.judged_depth), problem.n_items)


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
    chosen = problem.one_positive_each
    one_positive = np.full(problem.queries.n, np.nan, np.float32)
    one_positive[anchors[chosen]] = problem.known_scores[chosen]
    norms = problem.searcher.norms if isinstance(problem.searcher, Exact) else None
    return Posterior(
        max(1, problem.largest_k),
        options.false_share,
        depth=min(DEPTH, max(MIN_DEPTH, problem.deepest)),
        positive_scores=one_positive,
        alike=Alike(problem.corpus, *problem.positive_pairs, problem.queries.n, norms),
        labelled_share=options.labelled_share,
        seed=options.seed,
    )


def _fit_and_cut(problem: Problem, posterior: Posterior, lists: FitLists) -> Posterior:
    """Fit the posterior, correct it by what was reviewed, and cut it for what the problem may return.

    Where the cut leaves anchors short, and candidates behind the lists are above it, too, a deeper search would not
    help: the target is out of reach.
    """
    own, counts = own_scores(posterior, lists.anchors), problem.counts_of(lists.anchors)
    labelled = problem.positive_pairs[0]
    mean_labelled = len(labelled) / max(1, len(np.unique(labelled)))
    posterior.fit_lists(lists.for_posterior(own), lists.anchors, mean_labelled)
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

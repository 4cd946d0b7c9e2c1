"""The posterior of a problem and the lists of candidates that it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import final

import numpy as np

from naysay.arrays import Floats
from naysay.detectors._posterior_model import Lists
from naysay.detectors.posterior import Posterior, first_of
from naysay.detectors.rate import RateEstimate
from naysay.mining.candidates import Candidates, Ids, Mask
from naysay.search._scores import norms_of, pair_scores, taken
from naysay.search.exact import SMALLEST_NORM
from naysay.search.vectors import Vectors

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

    def for_posterior(self, positive_scores: Floats) -> Lists:
        """The lists with the score of one labelled positive of each anchor (A,), as a posterior takes them."""
        return Lists(self.scores, positive_scores, self.alike)

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
    candidates: Candidates | None = None  # of all anchors, if all of them were fitted to

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
        """The rate with a wider interval, where its own is too narrow.

        A lower end far below the estimate is 0: the encoder may be weak and all positives labelled. Where anchors are
        uneven, the upper end is at least (1 + D) times the estimate: in generated data of uneven groups such intervals
        contained the truth in 95 % of the cases, the original ones in 52 %.
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
            row = np.repeat(np.arange(len(n_positives)), n_positives)  # a row for each positive of each pair
            turn = np.arange(len(row)) - np.repeat(np.cumsum(n_positives) - n_positives, n_positives)
            positives = self.items[self.starts[anchors[part]][row] + turn]
            best = np.full(len(n_positives), -np.inf)
            np.fmax.at(best, row, self._cosines(positives, ids[part][row]))
            largest[part] = np.where(np.isfinite(best), best, np.nan)
        return largest

    def _cosines(self, items: Ids, others: Ids) -> Floats:
        """(p,) of pairs of items; NaN for a vector of zeros, which other metrics than cosine allow."""
        try:
            return pair_scores(self.corpus, self.corpus, items, others, "cosine", self.norms).astype(np.float64)
        except ZeroDivisionError:
            item_norms, other_norms = (norms_of(taken(self.corpus, ids)) for ids in (items, others))
            has_cosine = (item_norms >= SMALLEST_NORM) & (other_norms >= SMALLEST_NORM)
            cosines = np.full(len(items), np.nan)
            cosines[has_cosine] = pair_scores(self.corpus, self.corpus, items[has_cosine], others[has_cosine], "cosine")
            return cosines

"""Posterior: the probability that a candidate is an unlabelled positive, and the cut that bounds their share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_number, check_whole, public, raise_invalid
from naysay.detectors._pairs import OfPairs, numbers_of, slot_pairs
from naysay.detectors._posterior_check import check_labels, corrected
from naysay.detectors._posterior_fit import alone_share, fit_model
from naysay.detectors._posterior_model import MODEL_KEYS, Model, model_of_state, share_of
from naysay.detectors._posterior_pool import Lists, in_place, read_lists, sorted_by
from naysay.detectors._slots import as_suspicion, check_query_and_negatives, filled_slots, slot_scores
from naysay.detectors.cut import cut_at, mean_of
from naysay.detectors.posterior_summary import PosteriorSummary, summary_of, summary_of_state
from naysay.detectors.share import Share
from naysay.text import described
from naysay.types import Array, Negatives, Query, anchor_ids

Floats = NDArray[np.float64]
DEPTH, MIN_DEPTH = 50, 20
MAX_ANCHORS = 4_000  # more than these are thinned evenly


@final
@public
class Posterior:
    """The probability that a candidate is a false negative, learned from labelled positives alone.

    Suspicion **is** that probability, so its sum over a set is the estimated number of false negatives in it. `fit`
    also finds `tau`: the k nearest candidates with a suspicion of at most tau have an estimated share of false
    negatives of `false_share`. Where the nearest have less than that anyway, tau is 1 and nothing is dropped.

    1. Each anchor's nearest candidates form a list, and one of its labelled positives is inserted by score.
    2. g = P(slot is the labelled one), by logistic regression on splines of the score, its rank, its gap to the next,
       its height above the last 40 % of the list, and the mean height of the ten nearest (the richness of the anchor).
    3. c = P(labelled | positive) is at least the largest g. It is estimated from the slots of highest g, in groups of
       anchors by richness where these differ: an anchor with many positives has a smaller share of them labelled.
    4. p = min(1, (1 - c) / c  g / (1 - g)). Behind the lists, the mean of the last ten ranks.
    5. With `alike`: a candidate closer to its anchor's labelled positives than its score predicts has higher odds.
       This also checks whether the labels are a random part of the positives, and corrects p where they are not.
    6. tau is one number for all anchors.

    It assumes that labels are random among an anchor's positives, and that the highest scores are positives almost
    surely. Labels that are the easiest or hardest positives break the first: the estimate is too low unless `alike` or
    `correct` mends it. A second estimate, by scores without ranks (`summary.by_scores`), is higher then, and also where
    scores of one anchor mean something else than those of another; the interval reaches up to it. A weak encoder breaks
    the second: the estimate is too high. If the labelled share still rises towards the highest scores, the interval has
    no lower end. Where it cannot tell, `fitted` is False and `reason` says why.

    Cost: about a second for 4,000 anchors with 50 candidates, the most that are fitted to, and O(1) per slot.

    Elkan and Noto. Learning Classifiers from Only Positive and Unlabeled Data. KDD 2008. Efron. Large-Scale Inference.
    2010 (a threshold by the mean of local false discovery rates).

    Args:
        k: Negatives per anchor.
        false_share: The largest estimated share of false negatives among those.
        depth: How many candidates of each list are fitted to, at least 20.
        labelled_share: The share of all positives that are labelled, if it is known. None: estimated.
        positive_scores: (n_anchors,) the score of one labelled positive of each anchor by id, NaN without one, for
            `suspicion`. None: `suspicion` ranks candidates without it.
        alike: alike(anchors (n,), ids (n,)) -> (n,) the largest cosine of an item to its anchor's labelled positives,
            for `suspicion`.
        seed: Of folds, samples and ties.

    Examples:
        >>> import naysay as ns
        >>> from naysay.detectors import compact, drop
        >>> rng = np.random.default_rng(0)
        >>> scores, own = rng.normal(0, 1, (800, 200)), rng.normal(4, 1, 800)
        >>> scores[:, :2] += 4                                    # two unlabelled positives of each anchor
        >>> ids = np.argsort(-scores, axis=1)[:, :60]
        >>> negatives = ns.Negatives(ids, scores=np.take_along_axis(scores, ids, axis=1))
        >>> detector = Posterior(k=10, positive_scores=own).fit(negatives.scores, own)
        >>> round(detector.summary.before.estimate, 3), round(float((ids[:, :10] < 2).mean()), 3)  # and in truth
        (0.177, 0.198)
        >>> suspicion = detector.suspicion(ns.Query(np.arange(800)), negatives)
        >>> kept = compact(drop(negatives, suspicion, threshold=detector.threshold)).ids[:, :10]
        >>> round(detector.summary.after.estimate, 3), round(float((kept < 2).mean()), 3)
        (0.05, 0.046)
    """

    def __init__(
        self,
        k: int = 10,
        false_share: float = 0.05,
        *,
        depth: int = DEPTH,
        labelled_share: float | None = None,
        positive_scores: Any = None,
        alike: OfPairs | None = None,
        seed: int = 0,
    ) -> None:
        self.k = check_whole("k", k, 1)
        self.false_share = check_number("false_share", false_share, above=0, below=1)
        self.depth = check_whole("depth", depth, MIN_DEPTH)
        if labelled_share is not None:
            labelled_share = check_number("labelled_share", labelled_share, above=0, below=1)
        self.labelled_share = labelled_share
        self.seed = check_whole("seed", seed, 0)
        if alike is not None and not callable(alike):
            raise_invalid("alike", "a function alike(anchors, ids)", type(alike).__name__)
        self.alike, self.positive_scores = alike, None
        if positive_scores is not None:
            table = as_array("positive_scores", to_numpy(positive_scores))
            if table.ndim != 1 or table.dtype.kind not in "iuf":
                raise_invalid("positive_scores", "numbers of shape (n_anchors,)", f"{table.dtype} {table.shape}")
            self.positive_scores = table.astype(np.float64)
        self._learnt: tuple[Model | None, PosteriorSummary | None] = None, None  # replaced as one, for other threads

    def fit(self, scores: Any, positive_scores: Any, *, alike: Any = None, n_labelled: Any = 1) -> Posterior:
        """Fit to the nearest candidates of some anchors, find tau, and return self.

        Args:
            scores: (A, M) the nearest candidates of each anchor without its labelled positives; -inf or NaN where a
                slot is empty. A list must be complete from the nearest on, best one longer than `depth`.
            positive_scores: (A,) the score of one labelled positive of each anchor, drawn at random; NaN without one.
            alike: (A, M) the largest cosine of each candidate to its anchor's labelled positives; NaN if unknown.
            n_labelled: (A,) how many labelled positives each anchor has. Only `labelled_share` needs it.
        """
        self._learnt = self._found(read_lists(scores, positive_scores, alike)[0], n_labelled)
        return self

    def update(self, scores: Any, positive_scores: Any, *, alike: Any = None, n_labelled: Any = 1) -> Posterior:
        """Fit again, e.g. once an epoch. Where these lists cannot tell, the last model stays, and `reason` says so."""
        model, said = self._found(read_lists(scores, positive_scores, alike)[0], n_labelled)
        last, before = self._learnt
        if model is None and last is not None and before is not None:
            model, said = last, replace(before, code=said.code, labelled=said.labelled)
        self._learnt = model, said
        return self

    def correct(self, scores: Any, positive_scores: Any, truth: Any, *, alike: Any = None) -> Posterior:
        """Correct the posterior by labelled candidates, about 100 drawn at random among the k nearest; return self.

        Args:
            scores: (A, M) as for `fit`.
            positive_scores: (A,) as for `fit`.
            truth: (A, M) whole numbers: 1 for a false negative, 0 for a true one, -1 for a candidate without a label.
            alike: (A, M) as for `fit`.
        """
        lists, order = read_lists(scores, positive_scores, alike)
        known = as_array("truth", to_numpy(truth))
        if known.shape != lists.scores.shape or known.dtype.kind not in "iu" or not np.isin(known, (-1, 0, 1)).all():
            raise_invalid("truth", f"1, 0 or -1 of shape {lists.scores.shape}", f"{known.dtype} of shape {known.shape}")
        known = sorted_by(known, order)
        asked = (known >= 0) & lists.filled
        if not asked.any():
            raise_invalid("truth", "of at least one labelled candidate", "none")
        before, said = self._fitted()
        model = replace(corrected(before, lists, self.seed, asked, known == 1), doubt=1.0, least=1.0)
        self._learnt = model, self._cut(model, lists, said, model.of_lists(lists, self.seed))
        return self

    def _found(self, lists: Lists, n_labelled: Any) -> tuple[Model | None, PosteriorSummary]:
        """The model of lists, or None, and what to say about it."""
        c = None
        if self.labelled_share is not None:
            mean = float(np.mean(np.asarray(to_numpy(n_labelled), np.float64)))
            c = 1 / (1 + mean * (1 - self.labelled_share) / self.labelled_share)  # all but one are left out
        lists = lists.take(slice(None, None, -(-len(lists.scores) // MAX_ANCHORS) or 1))
        found = fit_model(lists, self.depth, self.seed, c)
        summary = PosteriorSummary(found.code, found.labelled, found.gain)
        if found.model is None:
            return None, summary
        priors = found.model.priors(lists, self.seed)
        if self.labelled_share is not None:
            lists = replace(lists, alike=None)
        by_scores = alone_share(found.alone, lists, self.depth, self.k) if self.labelled_share is None else np.nan
        model, posterior, check = check_labels(
            found.model, lists, priors, self.k, self.false_share, float(np.nan_to_num(by_scores))
        )
        summary = replace(summary, check=check, by_scores=by_scores, rising=model.rising)
        doubt, least = summary.doubts(mean_of(posterior, lists.nearest(self.k)))
        model = replace(model, doubt=doubt, least=least * model.least)
        return model, self._cut(model, lists, summary, posterior)

    def _cut(self, model: Model, lists: Lists, summary: PosteriorSummary, posterior: Floats) -> PosteriorSummary:
        """The summary with tau and what it does to these lists."""
        found = cut_at(np.where(lists.filled, posterior, 2.0), self.k, self.false_share, lists.scores)
        shares = [share_of(model, lists, posterior, mask, self.seed) for mask in (lists.nearest(self.k), found.kept)]
        return summary_of(summary, model.c, found, shares[0], shares[1])

    def posterior(self, scores: Any, positive_scores: Any = None, *, alike: Any = None) -> Floats:
        """(A, M) the posterior of lists as `fit` takes them, in their order; 0 where a slot is empty."""
        lists, order = read_lists(scores, positive_scores, alike)
        return in_place(self._fitted()[0].of_lists(lists, self.seed), order)

    def share(self, scores: Any, positive_scores: Any, mask: Any, *, alike: Any = None, behind: int = 0) -> Share:
        """Estimate the share of false negatives in a set of candidates, with a 95 % confidence interval.

        Of candidates alike in score and rank, false ones must be in the set no more often than others: the estimate is
        too low for a set that another model chose.

        Args:
            scores: (A, M) as for `fit`.
            positive_scores: (A,) as for `fit`.
            mask: (A, M) bool: the candidates in the set.
            alike: (A, M) as for `fit`.
            behind: How many more are in the set and in no list.
        """
        lists, order = read_lists(scores, positive_scores, alike)
        chosen = as_array("mask", to_numpy(mask))
        if chosen.shape != lists.scores.shape or chosen.dtype != bool:
            raise_invalid("mask", f"bool of shape {lists.scores.shape}", f"{chosen.dtype} of shape {chosen.shape}")
        chosen = sorted_by(chosen, order) & lists.filled
        model, more = self._fitted()[0], check_whole("behind", behind, 0)
        found = share_of(model, lists, model.of_lists(lists, self.seed), chosen, self.seed)
        if not more:
            return found
        n, names = int(chosen.sum()), ("estimate", "low", "high")
        parts = {name: (n * getattr(found, name) + more * model.beyond) / (n + more) for name in names}
        return replace(found, **parts)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) the posterior. A row holds the anchor's nearest candidates, complete from the nearest on."""
        check_query_and_negatives(query, negatives)
        model, filled = self._fitted()[0], filled_slots(negatives)
        lists, order = read_lists(np.where(filled, slot_scores(negatives), np.nan), self._own_scores(query), None)
        priors = model.priors(lists, self.seed)
        near = np.zeros(filled.shape, bool)
        near[:, : priors.shape[1]] = model.counts(priors)
        rows, slots = np.nonzero(in_place(near, order) & filled)
        if self.alike is not None and len(rows):
            sides, rule = slot_pairs(query, negatives, rows, slots), f"a function that returns ({len(rows)},) numbers"
            values = numbers_of("alike", self.alike, query, sides, rule)
            if values.shape != (len(rows),):
                raise_invalid("alike", rule, f"shape {values.shape}")
            similar = np.full(filled.shape, np.nan)
            similar[rows, slots] = np.where(np.isfinite(values), values, np.nan)
            lists = replace(lists, alike=sorted_by(similar, order))
        return as_suspicion(in_place(model.of_priors(priors, lists), order), negatives)

    def _own_scores(self, query: Query) -> Floats | None:
        """(B,) the score of each anchor's labelled positive, or None."""
        if self.positive_scores is None:
            return None
        anchors, table = anchor_ids(query), self.positive_scores
        if anchors.ndim != 1 or (len(anchors) and not (anchors.min() >= 0 and anchors.max() < len(table))):
            raise_invalid("query.anchors", f"among the {len(table)} of `positive_scores`", f"shape {anchors.shape}")
        return table[anchors]

    @property
    def fitted(self) -> bool:
        """Whether there is a posterior."""
        return self._learnt[0] is not None

    @property
    def reason(self) -> str:
        """Why there is no posterior, or why not to trust it; empty if all is well."""
        return self.summary.reason

    @property
    def summary(self) -> PosteriorSummary:
        """What the last fit found: the estimates before and after the cut, tau, c, and the check of labels."""
        if self._learnt[1] is None:
            raise_invalid("scores", "fitted first", "none", "Call fit(scores, positive_scores).")
        return self._learnt[1]

    @property
    def threshold(self) -> float:
        """The smallest suspicion that is dropped, for `drop` and `judge`: just above tau."""
        return self.summary.threshold

    def describe(self) -> str:
        """The estimates and the cut in a sentence, or the reason why there is none."""
        return self.summary.describe(self.k, self.false_share)

    def state(self) -> dict[str, Any]:
        """The model and the summary, arrays and numbers; empty before `fit`. Settings are not included."""
        model, summary = self._learnt
        parts = {} if model is None else model.state()
        return parts if summary is None else {**parts, "summary": summary.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, or the same as lists. Raises NaysayError, with nothing changed, otherwise."""
        empty = isinstance(state, Mapping) and not state
        summary = None if empty else summary_of_state(state, MODEL_KEYS)
        model = model_of_state(state, ("summary",)) if len(state) > 1 else None
        self._learnt = model, summary

    def _fitted(self) -> tuple[Model, PosteriorSummary]:
        """The model and its summary, or an error."""
        model, summary = self._learnt
        if model is None or summary is None:
            got = "none" if summary is None else f"lists that cannot tell ({summary.reason})"
            raise_invalid("scores", "fitted first", got, "Call fit(scores, positive_scores), or use another detector.")
        return model, summary

    def __repr__(self) -> str:
        model, summary = self._learnt
        known = None if model is None or summary is None else f"c={model.c:.3g}, tau={summary.tau:.3g}"
        return described(self, known or "not fitted")

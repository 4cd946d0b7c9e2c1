"""Posterior: the probability that a candidate is an unlabelled positive, and the cut that bounds their share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import read_state
from naysay.arrays import Floats, for_checkpoints, to_numpy
from naysay.checks import (
    as_array,
    as_floats,
    check_all,
    check_lengths,
    check_number,
    check_whole,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.detectors._pairs import OfPairs, numbers_of, slot_pairs
from naysay.detectors._posterior_fit import Lists, fit_scores, in_place, numbers, read_lists, read_mask, sorted_by
from naysay.detectors._posterior_model import (
    MODEL_STATE,
    Model,
    balance_of,
    check_labels,
    corrected,
    model_of_state,
    rate_of,
)
from naysay.detectors._slots import as_suspicion, check_query_and_negatives, filled_slots, slot_scores
from naysay.detectors.posterior_summary import (
    EMPTY,
    SUMMARY_STATE,
    PosteriorSummary,
    cut_at,
    first_of,
    summary_of_state,
    with_cut,
)
from naysay.detectors.rate import RateEstimate
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query, anchor_ids

DEPTH, MIN_DEPTH = 50, 20  # candidates of each list that are fitted to


@final
@public
class Posterior(MadeOf):
    """The probability that a candidate is a false negative, learned from labelled positives alone.

    Suspicion **is** that probability, so its sum over a set is the estimated number of false negatives in it. `fit`
    also finds `tau`: the k nearest candidates with a suspicion of at most tau have an estimated share of false
    negatives of `false_share`. Where the nearest have less than that anyway, tau is 1 and nothing is dropped.

    It assumes that labels are random among an anchor's positives, that the highest scores are positives almost surely,
    and that scores mean about the same for all anchors. Labels that are the easiest positives break the first:
    `reason` says so where it is clear, and `alike`, `correct` or `labelled_share` mend it. Where labels cannot tell,
    `fitted` is False and `reason` says why.

    Elkan and Noto. Learning Classifiers from Only Positive and Unlabeled Data. KDD 2008. Efron. Large-Scale Inference.
    2010 (a threshold by the mean of local false discovery rates).

    Args:
        k: Negatives per anchor.
        false_share: The largest estimated share of false negatives among those.
        depth: How many candidates of each list are fitted to, at least 20.
        labelled_share: The share of all positives that are labelled, if it is known. With it, `alike` is not used.
            None: estimated.
        positive_scores: (n_anchors,) the score of one labelled positive of each anchor by id, NaN without one, for
            `suspicion`, which needs it for `alike` only.
        alike: alike(anchors (n,), ids (n,)) -> (n,) the largest cosine of an item to its anchor's labelled positives,
            for `suspicion`.
        seed: Of the draws behind the intervals.

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
        (0.182, 0.198)
        >>> suspicion = detector.suspicion(ns.Query(np.arange(800)), negatives)
        >>> kept = compact(drop(negatives, suspicion, threshold=detector.threshold)).ids[:, :10]
        >>> round(detector.summary.after.estimate, 3), round(float((kept < 2).mean()), 3)
        (0.05, 0.062)
    """

    _made_of = ("alike",)

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
        self.alike = alike
        self.positive_scores = None if positive_scores is None else numbers("positive_scores", positive_scores, 1)
        self._learnt: tuple[Model | None, PosteriorSummary | None] = None, None  # replaced as one, for other threads

    def fit(
        self, scores: Any, positive_scores: Any, *, alike: Any = None, n_labelled: Any = 1, anchors: Any = None
    ) -> Posterior:
        """Fit to the nearest candidates of some anchors, find tau, and return self.

        Args:
            scores: (A, M) the nearest candidates of each anchor without its labelled positives; -inf or NaN where a
                slot is empty. A list must be complete from the nearest on, best one longer than `depth`.
            positive_scores: (A,) the score of one labelled positive of each anchor, drawn at random; NaN without one.
            alike: (A, M) the largest cosine of each candidate to its anchor's labelled positives; NaN if unknown.
            n_labelled: (A,) how many labelled positives each anchor has. Only `labelled_share` needs it.
            anchors: (A,) the ids of the anchors, each once: `suspicion` then knows the background of each. By default 0
                to A - 1 if `positive_scores` are those of the constructor, which are by id; else unknown.
        """
        self._learnt = self._fitted_to(read_lists(scores, positive_scores, alike)[0], n_labelled, anchors)
        return self

    def correct(self, scores: Any, positive_scores: Any, truth: Any, *, alike: Any = None) -> Posterior:
        """Correct the posterior by labelled candidates, about 100 drawn at random among the k nearest; return self.

        Args:
            scores: (A, M) as for `fit`, like `positive_scores` and `alike`.
            positive_scores: (A,)
            truth: (A, M) whole numbers: 1 for a false negative, 0 for a true one, -1 for a candidate without a label.
            alike: (A, M)
        """
        lists, order = read_lists(scores, positive_scores, alike)
        labels = as_array("truth", to_numpy(truth))
        is_label = labels.dtype.kind in "iu" and np.isin(labels, (-1, 0, 1)).all()
        if labels.shape != lists.scores.shape or not is_label:
            rule = f"1, 0 or -1 of shape {lists.scores.shape}"
            raise_invalid("truth", rule, f"{labels.dtype} of shape {labels.shape}")
        labels = sorted_by(labels, order)
        labelled = (labels >= 0) & lists.filled
        if not labelled.any():
            raise_invalid("truth", "of at least one labelled candidate", "none")
        before, summary = self._model_and_summary()
        model = corrected(before, before.of_lists(lists)[labelled], labels[labelled] == 1, self.seed)
        summary = replace(summary, balance=np.nan, balance_error=np.nan)
        summary = _with_cut(model, lists, summary, self.false_share, model.of_lists(lists), lists.filled, self.k)
        self._learnt = model, summary
        return self

    def recut(
        self, to: float, scores: Any, positive_scores: Any, *, alike: Any = None, free: Any = None, counts: Any = None
    ) -> Posterior:
        """Return the same posterior, cut for another target, or for a part of the candidates.

        Args:
            to: The largest estimated share of false negatives.
            scores: (A, M) as for `fit`, like `positive_scores` and `alike`.
            positive_scores: (A,)
            alike: (A, M)
            free: (A, M) bool: candidates that may become negatives; by default all.
            counts: (A,) how many negatives each anchor gets; by default k.
        """
        lists, order = read_lists(scores, positive_scores, alike)
        eligible = lists.filled if free is None else read_mask("free", free, lists, order)
        k_of_anchors = self.k if counts is None else _checked_counts(counts, len(lists.scores))
        model, summary = self._model_and_summary()
        other = copy(self)
        other.false_share = check_number("to", to, above=0, below=1)
        posterior = model.of_lists(lists)
        other._learnt = model, _with_cut(model, lists, summary, other.false_share, posterior, eligible, k_of_anchors)
        return other

    def _fitted_to(self, lists: Lists, n_labelled: Any, anchors: Any) -> tuple[Model | None, PosteriorSummary]:
        """The model of lists, or None, and what to say about it."""
        ids = None if anchors is None else _checked_anchors(anchors, len(lists.scores))
        if anchors is None and self.positive_scores is not None:
            lists_are_all_anchors = np.array_equal(self.positive_scores, lists.positives, equal_nan=True)
            ids = np.arange(len(lists.scores)) if lists_are_all_anchors else None
        c = None
        if self.labelled_share is not None:
            mean_labelled = _mean_labelled(n_labelled)
            # Of an anchor's labelled positives all but one are left out of its list.
            c = 1 / (1 + mean_labelled * (1 - self.labelled_share) / self.labelled_share)
            lists = replace(lists, alike=None)
        fit = fit_scores(lists, self.depth, self.seed, c)
        summary = PosteriorSummary(fit.code, fit.labelled, fit.gain)
        if fit.code:
            return None, summary
        model = Model.of(fit, lists, self.depth, ids)
        model, posterior, check = check_labels(model, lists, model.log_odds(lists), self.k, self.false_share)
        summary = replace(summary, check=check)
        if self.labelled_share is None:
            balance, error = balance_of(lists, posterior, self.depth)
            summary = replace(summary, balance=balance, balance_error=error)
            model = replace(model, reach=model.reach * summary.reach)
        return model, _with_cut(model, lists, summary, self.false_share, posterior, lists.filled, self.k)

    def posterior(self, scores: Any, positive_scores: Any = None, *, alike: Any = None) -> Floats:
        """(A, M) the posterior of lists as `fit` takes them, in their order; 0 where a slot is empty."""
        lists, order = read_lists(scores, positive_scores, alike)
        return in_place(self._model_and_summary()[0].of_lists(lists), order)

    def share(
        self, scores: Any, positive_scores: Any, mask: Any, *, alike: Any = None, behind: int = 0
    ) -> RateEstimate:
        """Estimate the share of false negatives in a set of candidates, with a 95 % confidence interval.

        Of candidates alike in score, false ones must be in the set no more often than others: the estimate is too low
        for a set that another model chose.

        Args:
            scores: (A, M) as for `fit`, like `positive_scores` and `alike`.
            positive_scores: (A,)
            mask: (A, M) bool: the candidates in the set.
            alike: (A, M)
            behind: How many more are in the set and in no list.
        """
        n_behind = check_whole("behind", behind, 0)
        lists, order = read_lists(scores, positive_scores, alike)
        chosen = read_mask("mask", mask, lists, order)
        model = self._model_and_summary()[0]
        rate = rate_of(model, lists, model.of_lists(lists), chosen)
        if not n_behind:
            return rate
        n = int(np.count_nonzero(chosen))
        estimate, low, high = (
            (n * end + n_behind * model.beyond) / (n + n_behind) for end in (rate.estimate, rate.low, rate.high)
        )
        return replace(rate, estimate=estimate, low=low, high=high)

    def shares(
        self, scores: Any, positive_scores: Any, masks: Sequence[Any], *, alike: Any = None
    ) -> list[RateEstimate]:
        """The shares of several sets of the same candidates, as `share` gives them."""
        lists, order = read_lists(scores, positive_scores, alike)
        model = self._model_and_summary()[0]
        posterior = model.of_lists(lists)
        return [rate_of(model, lists, posterior, read_mask("mask", mask, lists, order)) for mask in masks]

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) the posterior of each candidate.

        A candidate's height is measured above its anchor's background, as `fit` found it for that anchor: what else is
        in its row does not matter, but all candidates behind the `depth` nearest of a row have the same posterior. Of
        an anchor that `fit` was not told of (`anchors`), a row about as long as the fitted lists shows the background
        itself, and must then hold the anchor's nearest candidates, complete from the nearest on. A shorter row has the
        typical one.
        """
        check_query_and_negatives(query, negatives)
        model, _ = self._model_and_summary()
        filled, anchors = filled_slots(negatives), anchor_ids(query)
        own, table = None, self.positive_scores
        if table is not None:
            if anchors.ndim != 1 or (len(anchors) and not (anchors.min() >= 0 and anchors.max() < len(table))):
                raise_invalid("query.anchors", f"among the {len(table)} of `positive_scores`", f"shape {anchors.shape}")
            own = table[anchors]
        lists, order = read_lists(np.where(filled, slot_scores(negatives), np.nan), own)
        odds = model.log_odds(lists, model.learnt_levels(anchors, lists))
        if self.alike is not None:
            vectors_count = np.zeros(filled.shape, bool)
            vectors_count[:, : odds.shape[1]] = model.vectors_count(odds)
            similar = self._similar(query, negatives, in_place(vectors_count, order) & filled)
            lists = replace(lists, alike=sorted_by(similar, order))
        return as_suspicion(in_place(model.of_odds(odds, lists), order), negatives)

    def _similar(self, query: Query, negatives: Negatives, chosen: NDArray[np.bool_]) -> Floats:
        """(B, K) what `alike` says of some slots, NaN elsewhere."""
        similar = np.full(chosen.shape, np.nan)
        rows, slots = np.nonzero(chosen)
        if self.alike is None or not len(rows):
            return similar
        rule = f"a function that returns ({len(rows)},) numbers"
        values = numbers_of("alike", self.alike, query, slot_pairs(query, negatives, rows, slots), rule)
        if values.shape != (len(rows),):
            raise_invalid("alike", rule, f"shape {values.shape}")
        similar[rows, slots] = np.where(np.isfinite(values), values, np.nan)
        return similar

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

    @property
    def suspicion_threshold(self) -> float:
        """The same, as everything that acts on a detector's suspicion asks for it."""
        return self.threshold

    def describe(self) -> str:
        """The estimates and the cut in a sentence, or the reason why there is none."""
        return self.summary.describe(self.k, self.false_share)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The model and the summary, arrays and numbers; empty before `fit`. Settings are not included."""
        model, summary = self._learnt
        return {**(model.state() if model else {}), **(summary.state() if summary else {})}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, or the same as lists. Raises NaysayError, with nothing changed, otherwise."""
        if isinstance(state, Mapping) and not state:
            self._learnt = None, None
            return
        model = None
        parts = read_state(state, SUMMARY_STATE, MODEL_STATE)
        if len(state) > len(SUMMARY_STATE):
            model = model_of_state(read_state(state, MODEL_STATE, SUMMARY_STATE))
        self._learnt = model, summary_of_state(parts, np.nan if model is None else model.c)

    def _model_and_summary(self) -> tuple[Model, PosteriorSummary]:
        """The model and its summary, or an error."""
        model, summary = self._learnt
        if model is None or summary is None:
            got = "none" if summary is None else f"lists that cannot tell ({summary.reason})"
            raise_invalid("scores", "fitted first", got, "Call fit(scores, positive_scores), or use another detector.")
        return model, summary

    def __repr__(self) -> str:
        model, summary = self._learnt
        return described(self, f"c={summary.c:.3g}, tau={summary.tau:.3g}" if model and summary else "not fitted")


def _with_cut(
    model: Model,
    lists: Lists,
    summary: PosteriorSummary,
    target: float,
    posterior: Floats,
    eligible: NDArray[np.bool_],
    k: int | NDArray[np.int64],
) -> PosteriorSummary:
    """The summary with tau, and with the rates before and after: of the k nearest that are eligible."""
    cut = cut_at(np.where(eligible, posterior, EMPTY), k, target, lists.scores)
    before = rate_of(model, lists, posterior, first_of(eligible, k))
    after = rate_of(model, lists, posterior, cut.kept)
    return with_cut(summary, model.c, cut, before, after)


def _checked_anchors(anchors: Any, rows: int) -> NDArray[np.int64]:
    """(rows,) the ids of anchors, each once."""
    ids = whole_numbers("anchors", to_numpy(anchors)).astype(np.int64)
    check_lengths(anchors=len(ids), scores=rows)
    check_all("anchors", ids, ids >= 0, "at least 0")
    if len(np.unique(ids)) < rows:
        raise_invalid("anchors", "given once each", "the same id twice", "Pass one list for each anchor.")
    return ids


def _checked_counts(counts: Any, rows: int) -> NDArray[np.int64]:
    """(rows,) how many negatives each anchor gets."""
    k_of_anchors = whole_numbers("counts", to_numpy(counts), "(A,)").astype(np.int64)
    check_lengths(counts=len(k_of_anchors), scores=rows)
    check_all("counts", k_of_anchors, k_of_anchors >= 0, "at least 0")
    return k_of_anchors


def _mean_labelled(n_labelled: Any) -> float:
    """The mean number of labelled positives of an anchor, above 0."""
    counts = as_floats("n_labelled", n_labelled)
    check_all("n_labelled", counts, np.isfinite(counts) & (counts >= 0), "at least 0")
    if not counts.any():
        raise_invalid("n_labelled", "above 0 for at least one anchor", shown(n_labelled))
    return float(counts.mean())

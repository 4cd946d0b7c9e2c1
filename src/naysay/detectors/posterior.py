"""Posterior: the probability that a candidate is an unlabelled positive, and the cut that bounds their share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import astuple, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import Floats, for_checkpoints, to_numpy
from naysay.checks import (
    as_array,
    as_floats,
    check_all,
    check_lengths,
    check_number,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.detectors._posterior_model import (
    FINE,
    MIN_LABELLED,
    MODEL_STATE,
    LabelCheck,
    Lists,
    Mask,
    Model,
    Whole,
    balance_of,
    corrected,
    fit_scores,
    lists_of,
    mean_of,
    model_of_state,
    posterior_rate,
    rate_of,
    read_lists,
    read_numbers,
    with_item_vectors,
)
from naysay.detectors._suspicion import as_suspicion, check_scored, filled_slots, numbers_of, slot_pairs, slot_scores
from naysay.detectors.rate import RateEstimate
from naysay.text import described, percent, with_interval
from naysay.types import Array, MadeOf, Negatives, Query, anchor_ids

DEPTH, MIN_DEPTH = 50, 20  # candidates of each list that are fitted to
EMPTY = 2.0  # stands for the posterior of an empty slot: above any threshold
OUT_OF_REACH, WEAK, BIASED = 3, 4, 5  # codes of `PosteriorSummary.reason`, after those of a fit

_MOST_SHORT = 0.5  # of the anchors: with more that are short of k, the cut is out of reach
_MOST_FALSE = 0.5  # an estimate above it says more about the encoder than about the candidates
_MOST_FALSE_IF_VAGUE = 0.38  # the same, where the interval reaches below half the estimate
_EASIEST, _HARDEST = 0.6, 1.4  # of the balance: beyond them, labels are clearly not a random part of the positives
_EASY = 0.9  # of the balance: below it, the interval is widened
_AGREE = 1.3  # times: two estimates that differ by less agree


# ---- the cut --------------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The largest threshold of the posterior at which the returned set has the wanted share of false negatives.

    Args:
        tau: Candidates with a posterior of at most tau are kept. 1 if nothing need be dropped.
        kept: (A, M): the k nearest candidates of each anchor with a posterior of at most tau.
        before: The mean posterior of the k nearest.
        after: The mean posterior of the kept.
        hardness_before: The mean score of the k nearest; NaN without scores.
        hardness_after: The mean score of the kept; NaN without scores.
        dropped: How many of the k nearest have a posterior above tau.
        short: How many anchors have fewer than k kept.
    """

    tau: float
    kept: Mask
    before: float
    after: float
    hardness_before: float
    hardness_after: float
    dropped: int
    short: int


@public
def cut(posterior: Any, k: int, false_share: float, *, scores: Any = None) -> Cut:
    """Find the largest tau such that the mean posterior of "the k nearest with posterior <= tau" is at most a target.

    One tau for all anchors. The mean never falls with tau: what a larger tau adds has a larger posterior than all that
    is kept, and replaces something smaller. So a bisection over the posteriors is exact.

    Args:
        posterior: (A, M) from 0 to 1, nearest first; NaN where a slot is empty.
        k: Negatives per anchor.
        false_share: The target.
        scores: (A, M) scores of the slots, to report hardness.

    Returns:
        The cut. If even the smallest posterior is above the target, tau is 0 and nothing is kept.

    Examples:
        >>> found = cut([[0.5, 0.1, 0.0], [0.25, 0.0, 0.0]], k=2, false_share=0.1)
        >>> found.tau, round(found.before, 4), round(found.after, 4), found.kept.tolist()
        (0.25, 0.2125, 0.0875, [[False, True, True], [True, True, False]])
    """
    chances = read_numbers("posterior", posterior, 2)
    filled = ~np.isnan(chances)
    bad = filled & ~((chances >= 0) & (chances <= 1))
    if bad.any():
        raise_invalid("posterior", "from 0 to 1, or NaN where a slot is empty", first_bad(chances, bad))
    count = check_whole("k", k, 1)
    target = check_number("false_share", false_share, at_least=0, at_most=1)
    values = None if scores is None else read_numbers("scores", scores, 2)
    if values is not None and values.shape != chances.shape:
        raise_invalid("scores", f"of shape {chances.shape}, like `posterior`", f"shape {values.shape}")
    return cut_at(np.where(filled, chances, EMPTY), count, target, values)


def cut_at(posterior: Floats, k: int | Whole, target: float, scores: Floats | None) -> Cut:
    """The cut of (A, M) posteriors, 2 where a slot is empty; k is one number, or (A,) one for each row."""
    nearest = nearest_below(posterior, k, 1.0)
    levels = np.unique(posterior[posterior <= 1])
    tau, kept = 1.0, nearest
    if mean_of(posterior, nearest) > target:
        # Bisection: the mean at levels[fits] is at most the target, that at levels[exceeds] is not.
        fits, exceeds = -1, len(levels) - 1
        while exceeds - fits > 1:
            middle = (fits + exceeds) // 2
            if mean_of(posterior, nearest_below(posterior, k, levels[middle])) <= target:
                fits = middle
            else:
                exceeds = middle
        if fits >= 0:
            tau = float(levels[fits])
            kept = nearest_below(posterior, k, tau)
        else:
            tau = 0.0
            kept = np.zeros(posterior.shape, bool)
    hardness = [mean_of(scores, mask) if scores is not None else np.nan for mask in (nearest, kept)]
    return Cut(
        tau=tau,
        kept=kept,
        before=mean_of(posterior, nearest),
        after=mean_of(posterior, kept),
        hardness_before=hardness[0],
        hardness_after=hardness[1],
        dropped=int((nearest & (posterior > tau)).sum()),
        short=int((kept.sum(axis=1) < k).sum()),
    )


def nearest_below(posterior: Floats, k: int | Whole, tau: float) -> Mask:
    """(A, M): the first k slots of each row with a posterior of at most tau."""
    return first_of(posterior <= tau, k)


def first_of(mask: Mask, k: int | Whole) -> Mask:
    """(A, M): the first k slots of each row that are in a mask; k is one number, or (A,) one for each row."""
    return np.asarray(mask & (np.cumsum(mask, axis=1) <= np.reshape(k, (-1, 1))))


# ---- the summary ----------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, slots=True)
class PosteriorSummary:
    """The result of `Posterior.fit`.

    Args:
        code: Which `reason`, 0 for none.
        labelled: How many labelled positives are in the lists.
        gain: The log-likelihood of the labels above that of a constant, in standard errors of what chance gives.
        c: P(labelled | positive).
        tau: Candidates with a posterior of at most tau are kept.
        hardness_before: The mean score of the k nearest.
        hardness_after: The mean score of the kept.
        dropped: How many of the k nearest have a posterior above tau.
        short: How many anchors have fewer than k kept.
        before: The estimated share of false negatives among the k nearest, or None.
        after: That among the k nearest that are kept, or None.
        check: The check of the labels by item vectors, or None.
        balance: How much of the posterior is above the labelled positives, as a share of a half: 1 if they are a random
            part of all positives, less if they are the easiest. NaN if it does not matter.
        balance_error: Its standard error.
    """

    code: int = FINE
    labelled: int = 0
    gain: float = 0.0
    c: float = np.nan
    tau: float = 1.0
    hardness_before: float = np.nan
    hardness_after: float = np.nan
    dropped: int = 0
    short: int = 0
    before: RateEstimate | None = None
    after: RateEstimate | None = None
    check: LabelCheck | None = None
    balance: float = np.nan
    balance_error: float = np.nan

    @property
    def biased(self) -> bool:
        """Whether labels are clearly not a random part of the positives, and item vectors do not set the level."""
        check = self.check
        looks_easiest = self.balance + 2 * self.balance_error < _EASIEST
        if looks_easiest and check is not None and not np.isnan(check.by_vectors):
            looks_easiest = not check.shift and check.by_vectors > _AGREE * check.by_labels
        looks_hardest = self.balance - 2 * self.balance_error > _HARDEST
        return bool(looks_easiest or looks_hardest)

    @property
    def reach(self) -> tuple[float, float]:
        """By what the ends of the intervals are multiplied.

        Labels that look easier may be easier, so that more candidates are false; or the others are no positives.
        """
        looks_easy = self.balance + 2 * self.balance_error < _EASY
        return (0.0, 1 / max(self.balance, 0.1)) if looks_easy else (1.0, 1.0)

    @property
    def reason(self) -> str:
        """Why there is no posterior, or why not to trust the cut; empty if all is well."""
        return (
            "",
            f"only {self.labelled} labelled positives are among the nearest candidates, and {MIN_LABELLED} are needed",
            "scores do not tell labelled positives from other candidates",
            "no cut reaches the target: candidates far down the lists look as likely to be positives",
            "the encoder hardly separates positives, so these estimates are upper bounds and the cut is too strict",
            f"the labelled positives look like the {'easiest' if self.balance < 1 else 'hardest'} of their anchors, so "
            "more candidates are false than can be estimated: label about 100 of them, or state the labelled share",
        )[self.code]

    @property
    def threshold(self) -> float:
        """The smallest suspicion, in 32 bits, that is dropped. No suspicion is 1, so 1 drops nothing."""
        return min(1.0, float(np.nextafter(np.float32(self.tau), np.float32(2))))

    def describe(self, k: int, target: float) -> str:
        """The estimates and the cut in a sentence, or the reason why there is none."""
        if self.before is None or self.after is None:
            return f"Cannot estimate false negatives: {self.reason}."
        share = with_interval(self.before.estimate, self.before.low, self.before.high)
        text = f"Estimated false negatives among the {k} nearest: {share}"
        if self.tau >= 1:
            text = f"{text}, within the target of {100 * target:g} %: nothing is dropped."
        else:
            after = f"{percent(self.after.estimate)} of the {k} nearest that are kept"
            text = f"{text}. Posteriors above {self.tau:.3g} are dropped: {after}."
        return f"{text} Note: {self.reason}." if self.reason else text

    def state(self) -> dict[str, Any]:
        """All of it but c, which is the model's: numbers by name, and arrays for the parts; NaN for what is None."""
        numbers = {name: getattr(self, name) for name in SUMMARY_STATE}
        for name in ("before", "after"):
            rate = numbers[name]
            numbers[name] = np.array([np.nan] * 4 if rate is None else [rate.estimate, rate.low, rate.high, rate.n])
        numbers["check"] = np.array([np.nan] * 5 if self.check is None else astuple(self.check))
        return numbers


SUMMARY_STATE = {
    **dict.fromkeys(("code", "labelled", "dropped", "short"), Entry(whole=True)),
    **dict.fromkeys(("gain", "tau", "hardness_before", "hardness_after", "balance", "balance_error"), Entry()),
    **dict.fromkeys(("before", "after"), Entry((4,))),
    "check": Entry((5,)),
}


def _summary_of_state(parts: dict[str, NDArray[Any]], c: float) -> PosteriorSummary:
    """The summary from the entries of its state."""
    values: dict[str, Any] = {name: part.tolist() for name, part in parts.items()}
    for name in ("before", "after"):
        estimate, low, high, n = values[name]
        values[name] = None if np.isnan(estimate) else posterior_rate(estimate, low, high, int(n))
    values["check"] = None if np.isnan(values["check"][0]) else LabelCheck(*values["check"])
    return PosteriorSummary(**values, c=c)


# ---- the detector ---------------------------------------------------------------------------------------


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
        >>> kept = compact(drop(negatives, suspicion, threshold=detector.suspicion_threshold)).ids[:, :10]
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
        alike: Any = None,
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
        self.positive_scores = None if positive_scores is None else read_numbers("positive_scores", positive_scores)
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
        lists = read_lists(scores, positive_scores, alike)
        ids = None if anchors is None else _checked_anchors(anchors, len(lists.scores))
        mean_labelled = 1.0 if self.labelled_share is None else _mean_labelled(n_labelled)
        return self.fit_lists(lists, ids, mean_labelled)

    def fit_lists(self, lists: Lists, anchors: Whole | None = None, mean_labelled: float = 1.0) -> Posterior:
        """`fit` without checks, for lists that naysay made."""
        if anchors is None and self.positive_scores is not None:
            lists_are_all_anchors = np.array_equal(self.positive_scores, lists.positives, equal_nan=True)
            anchors = np.arange(len(lists.scores)) if lists_are_all_anchors else None
        known_c = None
        if self.labelled_share is not None:
            mean_unlabelled = mean_labelled * (1 - self.labelled_share) / self.labelled_share
            known_c = 1 / (1 + mean_unlabelled)  # one labelled positive of each anchor counts; its list has no others
            lists = replace(lists, alike=None)
        fit = fit_scores(lists, self.depth, self.seed, known_c)
        summary = PosteriorSummary(fit.code, fit.labelled, fit.gain)
        if fit.code:
            self._learnt = None, summary
            return self
        by_scores = Model.of(fit, lists, self.depth, anchors)
        model, posterior, check = with_item_vectors(by_scores, lists, self.k, self.false_share)
        summary = replace(summary, check=check)
        if self.labelled_share is None:
            balance, error = balance_of(lists, posterior, self.depth)
            summary = replace(summary, balance=balance, balance_error=error)
            model = replace(model, reach=model.reach * summary.reach)
        self._learnt = model, _with_cut(summary, model, lists, posterior, self.false_share, self.k)
        return self

    def correct(self, scores: Any, positive_scores: Any, truth: Any, *, alike: Any = None) -> Posterior:
        """Correct the posterior by labelled candidates, about 100 drawn at random among the k nearest; return self.

        Args:
            scores: (A, M) as for `fit`, like `positive_scores` and `alike`.
            positive_scores: (A,)
            truth: (A, M) whole numbers: 1 for a false negative, 0 for a true one, -1 for a candidate without a label.
            alike: (A, M)
        """
        lists = read_lists(scores, positive_scores, alike)
        labels = as_array("truth", to_numpy(truth))
        is_label = labels.dtype.kind in "iu" and np.isin(labels, (-1, 0, 1)).all()
        if labels.shape != lists.scores.shape or not is_label:
            rule = f"1, 0 or -1 of shape {lists.scores.shape}"
            raise_invalid("truth", rule, f"{labels.dtype} of shape {labels.shape}")
        labels = lists.sorted(labels)
        labelled = (labels >= 0) & lists.filled
        if not labelled.any():
            raise_invalid("truth", "of at least one labelled candidate", "none")
        before, summary = self._model_and_summary()
        model = corrected(before, before.of_lists(lists)[labelled], labels[labelled] == 1, self.seed)
        summary = replace(summary, balance=np.nan, balance_error=np.nan)
        self._learnt = model, _with_cut(summary, model, lists, model.of_lists(lists), self.false_share, self.k)
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
        lists = read_lists(scores, positive_scores, alike)
        eligible = lists.filled if free is None else lists.read_mask("free", free)
        k_of_anchors = self.k if counts is None else _checked_counts(counts, len(lists.scores))
        model, summary = self._model_and_summary()
        other = copy(self)
        other.false_share = check_number("to", to, above=0, below=1)
        posterior = model.of_lists(lists)
        summary = _with_cut(summary, model, lists, posterior, other.false_share, k_of_anchors, eligible)
        other._learnt = model, summary
        return other

    def posterior(self, scores: Any, positive_scores: Any = None, *, alike: Any = None) -> Floats:
        """(A, M) the posterior of lists as `fit` takes them, in their order; 0 where a slot is empty."""
        lists = read_lists(scores, positive_scores, alike)
        return lists.in_place(self.of_lists(lists))

    def of_lists(self, lists: Lists) -> Floats:
        """`posterior` without checks, for lists that naysay made."""
        return self._model_and_summary()[0].of_lists(lists)

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
        rate = self.shares(scores, positive_scores, [mask], alike=alike)[0]
        if not n_behind:
            return rate
        n = int(np.count_nonzero(read_lists(scores, positive_scores).read_mask("mask", mask)))
        estimate, low, high = (
            (n * end + n_behind * self.beyond) / (n + n_behind) for end in (rate.estimate, rate.low, rate.high)
        )
        return replace(rate, estimate=estimate, low=low, high=high)

    def shares(
        self, scores: Any, positive_scores: Any, masks: Sequence[Any], *, alike: Any = None
    ) -> list[RateEstimate]:
        """The shares of several sets of the same candidates, as `share` gives them."""
        lists = read_lists(scores, positive_scores, alike)
        chosen = [lists.read_mask("mask", mask) for mask in masks]
        model = self._model_and_summary()[0]
        posterior = model.of_lists(lists)
        return [rate_of(model, lists, posterior, mask) for mask in chosen]

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) the posterior of each candidate.

        The score is compared with the anchor's background, as `fit` found it. All candidates behind the `depth` nearest
        of a row have the same posterior. A row of an anchor that `fit` was not told of (`anchors`) shows its background
        if it is about as long as the fitted lists, and must then hold the nearest candidates, complete from the nearest
        on; a shorter one has the typical background.
        """
        check_scored(query, negatives)
        anchors, table = anchor_ids(query), self.positive_scores
        if table is not None and (
            anchors.ndim != 1 or (len(anchors) and not (anchors.min() >= 0 and anchors.max() < len(table)))
        ):
            raise_invalid("query.anchors", f"among the {len(table)} of `positive_scores`", f"shape {anchors.shape}")
        return as_suspicion(self.unchecked_suspicion(query, negatives), negatives)

    def unchecked_suspicion(self, query: Query, negatives: Negatives) -> Floats:
        """`suspicion` without checks, for a query and negatives that naysay made."""
        model, _ = self._model_and_summary()
        filled, anchors = filled_slots(negatives), anchor_ids(query)
        own = np.full(len(query), np.nan) if self.positive_scores is None else self.positive_scores[anchors]
        lists = lists_of(np.where(filled, slot_scores(negatives), np.nan), own)
        odds = model.log_odds(lists, model.learnt_levels(anchors, lists))
        if self.alike is not None:
            vectors_count = np.zeros(filled.shape, bool)
            vectors_count[:, : odds.shape[1]] = model.vectors_count(odds)
            asked = lists.in_place(vectors_count) & filled
            lists = replace(lists, alike=lists.sorted(self._similar(query, negatives, asked)))
        return lists.in_place(model.of_odds(odds, lists))

    def _similar(self, query: Query, negatives: Negatives, asked: Mask) -> Floats:
        """(B, K) what `alike` says of some slots, NaN elsewhere."""
        similar = np.full(asked.shape, np.nan)
        rows, slots = np.nonzero(asked)
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
    def beyond(self) -> float:
        """The posterior of all candidates behind the lists that were fitted."""
        return self._model_and_summary()[0].beyond

    @property
    def suspicion_threshold(self) -> float:
        """The smallest suspicion that is dropped: just above tau."""
        return self.summary.threshold

    @property
    def threshold(self) -> float:
        """An older name of `suspicion_threshold`. It is a suspicion; the `threshold` of other detectors is a score."""
        return self.suspicion_threshold

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
        self._learnt = model, _summary_of_state(parts, np.nan if model is None else model.c)

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
    summary: PosteriorSummary,
    model: Model,
    lists: Lists,
    posterior: Floats,
    target: float,
    k: int | Whole,
    eligible: Mask | None = None,
) -> PosteriorSummary:
    """The summary with tau, with the rates before and after of the k nearest that are eligible, and what to trust."""
    if eligible is None:
        eligible = lists.filled
    best = cut_at(np.where(eligible, posterior, EMPTY), k, target, lists.scores)
    before = rate_of(model, lists, posterior, first_of(eligible, k))
    is_vague = before.low < 0.5 * before.estimate
    is_weak = before.estimate > (_MOST_FALSE_IF_VAGUE if is_vague else _MOST_FALSE)
    code = BIASED if summary.biased else WEAK if is_weak else FINE
    if best.short > _MOST_SHORT * len(best.kept):
        code = OUT_OF_REACH
    return replace(
        summary,
        code=code,
        c=model.c,
        tau=best.tau,
        hardness_before=best.hardness_before,
        hardness_after=best.hardness_after,
        dropped=best.dropped,
        short=best.short,
        before=before,
        after=rate_of(model, lists, posterior, best.kept),
    )


def _checked_anchors(anchors: Any, rows: int) -> Whole:
    """(rows,) the ids of anchors, each once."""
    ids = whole_numbers("anchors", to_numpy(anchors)).astype(np.int64)
    check_lengths(anchors=len(ids), scores=rows)
    check_all("anchors", ids, ids >= 0, "at least 0")
    if len(np.unique(ids)) < rows:
        raise_invalid("anchors", "given once each", "the same id twice", "Pass one list for each anchor.")
    return ids


def _checked_counts(counts: Any, rows: int) -> Whole:
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

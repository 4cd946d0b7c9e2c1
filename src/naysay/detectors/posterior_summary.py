"""What a fit of the posterior found: estimates before and after the cut, the check of labels, or why there is none."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE
from naysay._state import Entry
from naysay.arrays import Floats, to_numpy
from naysay.checks import as_array, check_number, check_whole, first_bad, public, raise_invalid
from naysay.detectors.rate import RateEstimate
from naysay.text import percent, with_interval

Mask = NDArray[np.bool_]
FINE, TOO_FEW, NOT_TOLD_APART, OUT_OF_REACH, WEAK, BIASED = range(6)  # codes of `PosteriorSummary.reason`
MIN_LABELLED = 15  # positives among the first slots, to estimate the labelled share

_MOST_SHORT = 0.5  # of the anchors: with more that are short of k, the cut is out of reach
_MOST_FALSE = 0.5  # an estimate above it says more about the encoder than about the candidates
_MOST_FALSE_IF_VAGUE = 0.38  # the same, where the interval reaches below half the estimate
_VAGUE = 3.0  # times the lower end: from here on, an estimate has a note
_EASIEST, _HARDEST = 0.6, 1.4  # of the balance: beyond them, labels are clearly not a random part of the positives
_EASY = 0.9  # of the balance: below it, the interval is widened
_AGREE = 1.3  # times: two estimates that differ by less agree
EMPTY = 2.0  # stands for the posterior of an empty slot: above any threshold
_IMPURE = "even the highest scores may not be positives alone, so the share may be far lower"
ASSUMPTIONS = (
    "labelled positives were labelled at random among the positives of their anchor, whatever their score",
    "some candidates of the highest scores are positives almost surely, and scores mean about the same for all anchors",
)


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

    Examples:
        >>> found = cut([[0.5, 0.1, 0.0], [0.25, 0.0, 0.0]], k=2, false_share=0.1)
        >>> found.tau, round(found.before, 4), round(found.after, 4), found.kept.tolist()
        (0.25, 0.2125, 0.0875, [[False, True, True], [True, True, False]])
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

    Raises:
        NaysayError: If an argument is invalid.

    Examples:
        >>> cut([[0.5, 0.125, 0.0]], k=2, false_share=0.0625).tau
        0.125
    """
    chances = as_array("posterior", to_numpy(posterior))
    if chances.ndim != 2 or chances.dtype.kind not in "iuf":
        raise_invalid("posterior", "numbers of shape (A, M)", f"{chances.dtype} of shape {chances.shape}")
    chances = chances.astype(np.float64)
    filled = ~np.isnan(chances)
    bad = filled & ~((chances >= 0) & (chances <= 1))
    if bad.any():
        raise_invalid("posterior", "from 0 to 1, or NaN where a slot is empty", first_bad(chances, bad))
    count = check_whole("k", k, 1)
    target = check_number("false_share", false_share, at_least=0, at_most=1)
    values = None
    if scores is not None:
        values = as_array("scores", to_numpy(scores))
        if values.shape != chances.shape or values.dtype.kind not in "iuf":
            rule = f"numbers of shape {chances.shape}, like `posterior`"
            raise_invalid("scores", rule, f"{values.dtype} of shape {values.shape}")
        values = values.astype(np.float64)
    return cut_at(np.where(filled, chances, EMPTY), count, target, values)


def cut_at(posterior: Floats, k: int | NDArray[np.int64], target: float, scores: Floats | None) -> Cut:
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


def nearest_below(posterior: Floats, k: int | NDArray[np.int64], tau: float) -> Mask:
    """(A, M): the first k slots of each row with a posterior of at most tau."""
    return first_of(posterior <= tau, k)


def first_of(mask: Mask, k: int | NDArray[np.int64]) -> Mask:
    """(A, M): the first k slots of each row that are in a mask; k is one number, or (A,) one for each row."""
    return np.asarray(mask & (np.cumsum(mask, axis=1) <= np.reshape(k, (-1, 1))))


def mean_of(values: Floats, mask: Mask) -> float:
    """The mean over a mask; 0 if it is empty."""
    return float(values[mask].sum() / max(1, np.count_nonzero(mask)))


# ---- the summary ----------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, slots=True)
class LabelCheck:
    """Whether labelled positives look like a random part of all positives, by item vectors.

    Args:
        by_labels: The false share of the nearest k by the posterior as fitted.
        by_vectors: The same by candidates that are unusually similar to a labelled positive. NaN: cannot be told.
        excess: The share of unusually similar candidates among the nearest k, above that at ranks 31 to 50.
        low: The 95 % lower limit of the excess over anchors.
        shift: What was added to the log-odds of the posterior, 0 if nothing.

    Examples:
        >>> LabelCheck(0.05, 0.13, 0.05, 0.04, 1.5).verdict
        'corrected: labels are not random, by item vectors'
    """

    by_labels: float
    by_vectors: float
    excess: float
    low: float
    shift: float

    @property
    def verdict(self) -> str:
        """The result in words."""
        if np.isnan(self.by_vectors):
            return "labels could not be checked"
        if self.shift:
            return "corrected: labels are not random, by item vectors"
        if self.by_vectors > self.by_labels and self.low > 0:
            return "not corrected, but item vectors show more: label about 100 candidates to be sure"
        return "labels agree with item vectors"


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

    Examples:
        >>> PosteriorSummary(code=1, labelled=3).reason
        'only 3 labelled positives are among the nearest candidates, and 15 are needed'
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
    "code": Entry(whole=True),
    "labelled": Entry(whole=True),
    "gain": Entry(),
    "tau": Entry(),
    "hardness_before": Entry(),
    "hardness_after": Entry(),
    "dropped": Entry(whole=True),
    "short": Entry(whole=True),
    "before": Entry((4,)),
    "after": Entry((4,)),
    "check": Entry((5,)),
    "balance": Entry(),
    "balance_error": Entry(),
}


def summary_of_state(parts: dict[str, NDArray[Any]], c: float) -> PosteriorSummary:
    """The summary from the entries of its state."""
    values: dict[str, Any] = {name: part.tolist() for name, part in parts.items()}
    for name in ("before", "after"):
        estimate, low, high, n = values[name]
        values[name] = None if np.isnan(estimate) else posterior_rate(estimate, low, high, int(n))
    values["check"] = None if np.isnan(values["check"][0]) else LabelCheck(*values["check"])
    return PosteriorSummary(**values, c=c)


def posterior_rate(estimate: float, low: float, high: float, n: int) -> RateEstimate:
    """A rate by the posterior. A lower end far below the estimate has a note."""
    notes = (_IMPURE,) if low * _VAGUE < estimate else ()
    return RateEstimate("false negatives", estimate, low, high, CONFIDENCE, n, ASSUMPTIONS, notes)


def with_cut(
    summary: PosteriorSummary, c: float, cut: Cut, before: RateEstimate, after: RateEstimate
) -> PosteriorSummary:
    """The summary with a cut, and whether to trust it."""
    is_vague = before.low < 0.5 * before.estimate
    is_weak = before.estimate > (_MOST_FALSE_IF_VAGUE if is_vague else _MOST_FALSE)
    code = BIASED if summary.biased else WEAK if is_weak else FINE
    if cut.short > _MOST_SHORT * len(cut.kept):
        code = OUT_OF_REACH
    return replace(
        summary,
        code=code,
        c=c,
        tau=cut.tau,
        hardness_before=cut.hardness_before,
        hardness_after=cut.hardness_after,
        dropped=cut.dropped,
        short=cut.short,
        before=before,
        after=after,
    )

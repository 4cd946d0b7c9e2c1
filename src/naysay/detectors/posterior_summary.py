"""What a fit of the posterior found: estimates before and after the cut, the check of labels, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.checks import public, raise_invalid
from naysay.detectors.cut import Cut
from naysay.detectors.rate import CONFIDENCE
from naysay.detectors.share import Share
from naysay.text import percent, with_interval

FINE, TOO_FEW, ALIKE, OUT_OF_REACH, WEAK, BIASED = range(6)
MIN_LABELLED = 15  # positives among the first slots, to estimate the labelled share
_HALF, _HIGH = 0.5, 0.38  # an estimate above it says more about the encoder; so does a vague one above the second
_VAGUE = 3.0  # times the lower end
_EASIEST, _HARDEST, _EASY, _AGREE = 0.6, 1.4, 0.9, 1.3  # of the balance; of two estimates that agree
_NUMBERS, _SHARE, _CHECK = 11, 4, 5  # in the state
_GIVEN = (0, 1, 2, 4, 7, 8)  # of the numbers that no fit leaves out
_STATE = {"summary": Entry((_NUMBERS + 2 * _SHARE + _CHECK,))}
_WHAT = "false negatives"
_IMPURE = "even the highest scores may not be positives alone, so the share may be far lower"
ASSUMPTIONS = (
    "labelled positives were labelled at random among the positives of their anchor, whatever their score",
    "some candidates of the highest scores are positives almost surely, and scores mean about the same for all anchors",
)


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
    before: Share | None = None
    after: Share | None = None
    check: LabelCheck | None = None
    balance: float = np.nan
    balance_error: float = np.nan

    @property
    def biased(self) -> bool:
        """Whether labels are clearly not a random part of the positives, and item vectors do not set the level."""
        check, easiest = self.check, self.balance + 2 * self.balance_error < _EASIEST
        if easiest and check is not None and not np.isnan(check.by_vectors):
            easiest = not check.shift and check.by_vectors > _AGREE * check.by_labels
        return bool(easiest or self.balance - 2 * self.balance_error > _HARDEST)

    @property
    def reach(self) -> tuple[float, float]:
        """By what the ends of the intervals are multiplied.

        Labels that look easier than other positives are, and more are false, or those others are no positives.
        """
        easy = self.balance + 2 * self.balance_error < _EASY
        return (0.0, 1 / max(self.balance, 0.1)) if easy else (1.0, 1.0)

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

    def state(self) -> NDArray[np.float64]:
        """All of it as numbers, NaN for what is None."""
        first = [self.code, self.labelled, self.gain, self.c, self.tau, self.hardness_before, self.hardness_after]
        first += [self.dropped, self.short, self.balance, self.balance_error]
        for share in (self.before, self.after):
            first += [np.nan] * _SHARE if share is None else [share.estimate, share.low, share.high, share.n]
        return np.array(first + ([np.nan] * _CHECK if self.check is None else list(astuple(self.check))), np.float64)


def summary_of_state(state: Mapping[str, Any], others: Iterable[str]) -> PosteriorSummary:
    """The summary from the numbers under "summary"."""
    numbers = read_state(state, _STATE, others)["summary"]
    counts, shares_of = numbers[[0, 1, 7, 8]], numbers[_NUMBERS : _NUMBERS + 2 * _SHARE].reshape(2, _SHARE)
    known = shares_of[~np.isnan(shares_of[:, 0])]
    good = numbers[0] <= BIASED and 0 <= numbers[4] <= 1 and not np.isnan(numbers[list(_GIVEN)]).any()
    for count in (counts, known[:, 3]):
        good &= bool(((count >= 0) & (count < 2**53) & (count == np.floor(count))).all())
    if not (good and ((known[:, :3] >= 0) & (known[:, :3] <= 1)).all()):
        raise_invalid("summary", "what `state` returned", "numbers that no fit gives")
    code, labelled, gain, c, tau, before, after, dropped, short, balance, error = numbers[:_NUMBERS].tolist()
    shares = [
        None if np.isnan(estimate) else posterior_share(estimate, low, high, int(n))
        for estimate, low, high, n in shares_of.tolist()
    ]
    last = numbers[-_CHECK:].tolist()
    return PosteriorSummary(
        *(int(code), int(labelled), gain, c, tau, before, after, int(dropped), int(short)),
        before=shares[0],
        after=shares[1],
        check=None if np.isnan(last[0]) else LabelCheck(*last),
        balance=balance,
        balance_error=error,
    )


def posterior_share(estimate: float, low: float, high: float, n: int) -> Share:
    """A share by the posterior. A lower end far below the estimate has a note."""
    notes = (_IMPURE,) if low * _VAGUE < estimate else ()
    return Share(_WHAT, estimate, low, high, CONFIDENCE, n, ASSUMPTIONS, notes)


def summary_of(summary: PosteriorSummary, c: float, found: Cut, before: Share, after: Share) -> PosteriorSummary:
    """The summary with a cut. A cut that leaves most anchors short is out of reach."""
    weak = before.estimate > (_HIGH if before.low < _HALF * before.estimate else _HALF)
    code = BIASED if summary.biased else WEAK if weak else FINE
    if found.short > _HALF * len(found.kept):
        code = OUT_OF_REACH
    return replace(
        summary,
        code=code,
        c=c,
        tau=found.tau,
        hardness_before=found.hardness_before,
        hardness_after=found.hardness_after,
        dropped=found.dropped,
        short=found.short,
        before=before,
        after=after,
    )

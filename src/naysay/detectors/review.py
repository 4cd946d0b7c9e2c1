"""The statistics of a review: what about 100 answers say of all candidates, and of what is returned.

The steps, in order: how far the reviewer can be trusted (`sensitivity_of`), who is asked (`Region`, `inclusion`), what
the checks of yes answers stand for (`Answers.of_round`), the probability of each candidate after the answers
(`recalibrate`), the cut (`cut_at`), the interval of what is left (`interval_of`). `conduct` runs them and stops.

y is an answer: 1 if the reviewer, and whoever checked it, says that the candidate is a positive. A reviewer finds a
share `sensitivity` of the positives, so P(y = 1) = sensitivity * P(positive).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE, exact_interval
from naysay.arrays import Floats
from naysay.detectors._posterior_model import Logistic, chance
from naysay.detectors.posterior import EMPTY, cut_at, first_of, nearest_below
from naysay.errors import raise_invalid

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Ask = Callable[[Ids, Ids], Floats]  # ask(rows, slots) -> (n,) from 0 to 1, NaN for pairs without an answer

YES = 0.5  # an answer from here on says that the candidate is a positive
ROUND = 50  # answers of a round; after each pair of rounds, the review may stop
FEWEST = 100  # answers before it stops
CHECKS = 50  # yes answers that a second reviewer checks, over all rounds
LEAST_SENSITIVITY = 0.3  # a reviewer that finds fewer of the labelled positives raises an error
TRUSTED_ERROR = 0.05  # of the yes answers, granted to a trusted reviewer
TOLERANCE = 0.02  # stop where the interval reaches this far above the target, or has this half-width
_LOGIT_LIMIT = 8.0  # of the probability by labels
_MOST_WEIGHT = 6.0  # of an answer in the fit, where the mean is 1
_CONSTANT_SD, _SLOPE_SD, _OTHER_SD = 3.0, 0.5, 0.5  # of the priors of the fit
_FIT_TOLERANCE = 1e-12
_STANDARD_ANCHORS = 2000  # on which features are standardised
_FEATURE_ROWS = 4096  # anchors whose features are in memory at a time
_FEWEST_IN_INTERVAL = 3  # effective answers
_EFFECTIVE_RANGE = (0.25, 1.5)  # of the effective answers: limits of the answers that the variance is worth


# ---- Trust -----------------------------------------------------------------------------------------------------------


class Sensitivity(NamedTuple):
    """The share of positives that a reviewer finds, with its 95 % CI."""

    estimate: float
    low: float
    high: float


CERTAIN = Sensitivity(1.0, 1.0, 1.0)  # of a person


def positives_to_ask(budget: int) -> int:
    """How many labelled positives a reviewer is asked about, to learn how many it finds."""
    return max(15, budget // 10)


def sensitivity_of(found: int, asked: int) -> Sensitivity:
    """The sensitivity of a reviewer that said yes to `found` of `asked` labelled positives. Raises if it is too low."""
    estimate = (found + 0.5) / (asked + 1)
    if estimate < LEAST_SENSITIVITY:
        rule = f"one that says yes to at least {LEAST_SENSITIVITY:.0%} of labelled positives"
        raise_invalid("reviewer", rule, f"{found} of {asked}", "Are its prompt, its threshold and its texts right?")
    low, high = exact_interval(found, asked, CONFIDENCE)
    return Sensitivity(estimate, low, high)


# ---- Who is asked ----------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReviewLists:
    """The candidates of the anchors, nearest first."""

    probability: Floats  # (A, M) of a false negative, by labels alone
    scores: Floats  # (A, M), NaN where a list has ended
    positive_scores: Floats  # (A,) of one labelled positive, NaN without one
    free: Mask  # (A, M): those that may become negatives
    counts: Ids  # (A,) k of each anchor
    alike: Floats | None = None  # (A, M) the largest cosine to a labelled positive of the anchor

    def take(self, rows: Ids | slice) -> ReviewLists:
        """The lists of some anchors."""
        return ReviewLists(
            probability=self.probability[rows],
            scores=self.scores[rows],
            positive_scores=self.positive_scores[rows],
            free=self.free[rows],
            counts=self.counts[rows],
            alike=None if self.alike is None else self.alike[rows],
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Where a round draws: some random anchors, and one random slot of each among the slots of its mask."""

    mask: Mask  # (A, M)
    n: int  # anchors that are drawn

    def draw(self, rows: Ids, rng: np.random.Generator) -> Ids:
        """(n,) a random slot of each of these rows, -1 for a row without one."""
        mask = self.mask[rows]
        number = np.count_nonzero(mask, axis=1)
        chosen = np.floor(rng.random(len(rows)) * number) + 1
        slots = np.argmax(np.cumsum(mask, axis=1) == chosen[:, None], axis=1)
        return np.where(number > 0, slots, -1)


def inclusion(regions: Sequence[Region], n_anchors: int, rows: Ids, slots: Ids) -> Floats:
    """(n,) the probability with which each pair is asked in any of the rounds: 1 - prod (1 - n / (A |region|))."""
    missed = np.ones(len(rows))
    for region in regions:
        mask = region.mask[rows]
        drawn = region.n / (n_anchors * np.maximum(np.count_nonzero(mask, axis=1), 1))
        missed *= 1 - np.where(mask[np.arange(len(rows)), slots], drawn, 0.0)
    return np.asarray(1 - missed)


# ---- Answers ---------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Pairs that were asked about."""

    rows: Ids
    slots: Ids
    said_yes: Mask  # by the first reviewer
    y: Floats  # 1 for a false negative, 0 for a true one; NaN for a yes that was not checked
    weight: Floats  # how many candidates the answer stands for; 1 until the probability of being asked is known

    @staticmethod
    def of_round(rows: Ids, slots: Ids, said_yes: Mask, checked: Floats) -> Answers:
        """The answers of a round; `checked` (n,) are those of the second reviewer, NaN where there is none.

        A yes that was checked stands for those of its round that were not.
        """
        is_checked = said_yes & ~np.isnan(checked)
        y = np.where(said_yes, np.where(is_checked, checked >= YES, np.nan), 0.0)
        per_check = said_yes.sum() / max(1, is_checked.sum())
        return Answers(rows, slots, said_yes, y, np.where(said_yes, per_check, 1.0))

    @staticmethod
    def joined(rounds: Sequence[Answers]) -> Answers:
        """Several rounds as one."""
        columns = zip(*(one.columns for one in rounds), strict=True)
        return Answers(*(np.concatenate(column) for column in columns))

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All of it."""
        return self.rows, self.slots, self.said_yes, self.y, self.weight

    def where(self, mask: Mask) -> Answers:
        """Some of the answers."""
        return Answers(*(column[mask] for column in self.columns))

    @property
    def is_known(self) -> Mask:
        """(n,) whether the truth is known: not for a yes that was not checked."""
        return ~np.isnan(self.y)


# ---- Recalibration ---------------------------------------------------------------------------------------------------


def features_of(lists: ReviewLists) -> Floats:
    """(A, M, 7) what tells false negatives from true ones beside the probability by labels; NaN where unknown.

    score above the positive's; log(1 + rank); cosine to the labelled positive above that of ranks 31 to 50;
    log(1 + how many of the first 40 are above the positive); score above that of ranks 49 to 60; and the anchor's means
    of the third and the fifth over its k nearest.
    """
    n, width = lists.scores.shape
    scores, own = lists.scores, lists.positive_scores[:, None]
    log_rank = np.broadcast_to(np.log1p(np.arange(1, width + 1)), (n, width))
    above_own = np.where(np.isnan(own[:, 0]), np.nan, np.count_nonzero(scores[:, :40] > own, axis=1))
    closeness = np.full((n, width), np.nan)
    if lists.alike is not None:
        closeness = lists.alike - _mean_of_ranks(lists.alike, 31, 50)
    height = scores - _mean_of_ranks(scores, 49, 60)
    nearest = first_of(~np.isnan(scores), lists.counts)
    means = [_mean_where(part, nearest) for part in (closeness, height)]
    of_anchor = [np.broadcast_to(part[:, None], (n, width)) for part in (np.log1p(above_own), *means)]
    parts = [scores - own, log_rank, closeness, of_anchor[0], height, *of_anchor[1:]]
    return np.stack(parts, axis=2)


def _mean_of_ranks(values: Floats, first: int, last: int) -> Floats:
    """(A, 1) the mean over some ranks; over the last as many if lists are shorter."""
    stop = min(last, values.shape[1])
    ranks = np.zeros(values.shape, np.bool_)
    ranks[:, max(0, stop - (last - first + 1)) : stop] = True
    return _mean_where(values, ranks)[:, None]


def _mean_where(values: Floats, mask: Mask) -> Floats:
    """(A,) the mean of the known values of a mask; NaN without one."""
    known = mask & ~np.isnan(values)
    number = np.count_nonzero(known, axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Recalibration:
    """P(positive) = sigma(b0 + b1 (logit p - base) + b2 x1 + ...), with standardised features x."""

    base: float  # mean logit of the probability by labels, over the pairs that were asked about
    mean: Floats  # (F,) of the features
    scale: Floats  # (F,)
    weights: Floats  # (F + 2,)

    def design(self, lists: ReviewLists) -> Floats:
        """(A, M, F + 2) the inputs; an unknown feature has its mean."""
        features = (features_of(lists) - self.mean) / self.scale
        logit = _logit(lists.probability)[..., None] - self.base
        return np.concatenate([np.ones_like(logit), logit, np.nan_to_num(features)], axis=2)

    def of(self, lists: ReviewLists) -> Floats:
        """(A, M) the probability of a false negative; 2 where a candidate cannot be returned."""
        found = np.empty(lists.scores.shape)
        for start in range(0, len(found), _FEATURE_ROWS):
            part = slice(start, start + _FEATURE_ROWS)
            # A product of NumPy's own loops: those of a BLAS depend on its threads.
            found[part] = chance(np.einsum("amf,f->am", self.design(lists.take(part)), self.weights))
        return np.where(lists.free, found, EMPTY)


def _logit(probability: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        odds = np.log(probability) - np.log1p(-probability)
    return np.asarray(np.clip(odds, -_LOGIT_LIMIT, _LOGIT_LIMIT))


def uncalibrated(lists: ReviewLists) -> Recalibration:
    """The probability by labels as it is, with features standardised over the first 3 k ranks of some anchors."""
    rows = np.linspace(0, len(lists.scores) - 1, min(len(lists.scores), _STANDARD_ANCHORS)).astype(np.int64)
    features = features_of(lists.take(rows))[:, : 3 * int(lists.counts.max(initial=1))]
    known = np.isfinite(features)
    number = np.maximum(known.sum(axis=(0, 1)), 1)
    mean = np.where(known, features, 0.0).sum(axis=(0, 1)) / number
    scale = np.sqrt((np.where(known, features - mean, 0.0) ** 2).sum(axis=(0, 1)) / number)
    scale[scale < 1e-12] = 1.0
    weights = np.zeros(len(mean) + 2)
    weights[1] = 1.0
    return Recalibration(0.0, mean, scale, weights)


def recalibrate(before: Recalibration, lists: ReviewLists, answers: Answers, se: float) -> Recalibration:
    """Fit P(y = 1) = se sigma(x b) to the answers, by weighted likelihood with priors: slope 1, other features 0."""
    asked = lists.take(answers.rows)
    each = np.arange(len(answers.slots))
    base = float(_logit(asked.probability)[each, answers.slots].mean())
    inputs = replace(before, base=base).design(asked)[each, answers.slots]
    weights = np.minimum(answers.weight / answers.weight.mean(), _MOST_WEIGHT)
    centre = np.zeros(inputs.shape[1])
    centre[:2] = base, 1.0
    deviation = np.full(len(centre), _OTHER_SD)
    deviation[:2] = _CONSTANT_SD, _SLOPE_SD
    logistic = Logistic(
        inputs, weights * answers.y, weights * (1 - answers.y), precision=np.diag(deviation**-2), centre=centre
    )
    fitted = logistic.fit(centre, tolerance=_FIT_TOLERANCE, c=se)
    return replace(before, base=base, weights=fitted)


# ---- The interval of what is returned --------------------------------------------------------------------------------


class Share(NamedTuple):
    """A share of false negatives with its 95 % CI."""

    estimate: float
    low: float
    high: float


def interval_of(
    y: Floats,
    weights: Floats,
    expected: Floats,
    said_yes: Mask,
    *,
    unreviewed_mean: float,
    unreviewed_share: float,
    sensitivity: Sensitivity,
) -> Share | None:
    """The share of false negatives in what is returned; None from fewer than three effective answers.

    The mean probability is corrected by the weighted mean residual of the answers (a difference estimator), with limits
    of Clopper and Pearson at the number of answers that its variance is worth, and the error of the sensitivity.

    Args:
        y: (n,) answers about pairs of the returned set, or that would be in it if they were not found to be false.
        weights: (n,) v / pi: how many candidates each answer stands for.
        expected: (n,) the probabilities after recalibration.
        said_yes: (n,) the first answers.
        unreviewed_mean: Mean probability of returned candidates that were not reviewed.
        unreviewed_share: Their share of the returned set.
        sensitivity: That of the reviewer.
    """
    se = sensitivity.estimate
    w = weights - 1  # the pair itself is not among those that it stands for
    if w.sum() <= 0:
        return None
    w = w / w.sum()
    size = 1 / (w**2).sum()
    if size < _FEWEST_IN_INTERVAL:
        return None
    residuals = y - se * expected
    mean = (w * residuals).sum()
    share_of_yes = se * unreviewed_mean + mean
    variance = (w**2 * (residuals - mean) ** 2).sum() * size / (size - 1)
    effective = size
    if share_of_yes > 0:
        share_of_yes = min(share_of_yes, 1.0)
        worth = share_of_yes * (1 - share_of_yes) / max(variance, 1e-300)
        effective = np.clip(worth, *(limit * size for limit in _EFFECTIVE_RANGE))
    share_of_yes = max(share_of_yes, 0.0)
    yes_low, yes_high = exact_interval(share_of_yes * effective, effective, CONFIDENCE)
    theta = min(share_of_yes / se, 1.0)
    below = np.hypot(theta - yes_low / se, theta * (sensitivity.high - se) / se)
    above = np.hypot(yes_high / se - theta, theta * (se - sensitivity.low) / se)
    missed = theta * (1 - se) / (theta * (1 - se) + 1 - theta) if theta < 1 else 1.0  # P(positive | answered no)
    low, estimate, high = (
        unreviewed_share * value + (1 - unreviewed_share) * missed for value in (theta - below, theta, theta + above)
    )
    low -= TRUSTED_ERROR * said_yes.mean()
    if share_of_yes * effective < 1:  # less than one answer shows nothing above 0
        low = 0.0
    return Share(float(estimate), float(np.clip(low, 0.0, estimate)), float(np.clip(high, estimate, 1.0)))


# ---- All steps -------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Review:
    """What a review found in the lists that it was given."""

    answers: Answers
    model: Recalibration
    probability: Floats  # (A, M) of a false negative after the answers; 2 for what cannot be returned
    tau: float  # candidates above it are dropped
    kept: Mask  # (A, M) what is returned
    before: float  # mean probability of the nearest k
    sensitivity: Sensitivity  # of the first reviewer
    share: Share | None  # of false negatives in what is returned


def conduct(
    lists: ReviewLists,
    ask: Ask,
    *,
    budget: int,
    false_share: float,
    rng: np.random.Generator,
    sensitivity: Sensitivity = CERTAIN,
    check: Ask | None = None,
    at_once: bool = False,
    is_fixed: bool = False,
) -> Review:
    """Ask in rounds, recalibrate and cut after each, and stop where the interval is short or the budget is spent.

    Odd rounds draw among the k nearest, even rounds among what would be returned by then. Each anchor is asked about
    once at most.

    Args:
        lists: The candidates of all anchors, or of a random sample of them.
        ask: The first reviewer.
        budget: The largest number of answers.
        false_share: The largest share of false negatives that is aimed at.
        rng: The generator of all draws.
        sensitivity: The first reviewer's.
        check: A trusted reviewer, who is asked about yes answers. Without one they are believed.
        at_once: Whether all pairs are drawn in one round, for a person who answers later.
        is_fixed: Whether the share of the k nearest is wanted, not of what is returned: all rounds draw among them, and
            the whole budget is spent.
    """
    order = rng.permutation(np.flatnonzero(lists.free.any(axis=1)))
    to_ask = order[:budget]
    size = len(to_ask) if at_once else min(ROUND, -(-budget // 2))
    starts = range(0, len(to_ask), max(1, size))
    nearest = first_of(lists.free, lists.counts)
    start = uncalibrated(lists)
    review = _evaluated(lists, [], [], start, false_share, sensitivity)
    regions: list[Region] = []
    rounds: list[Answers] = []
    for first in starts:
        rows = to_ask[first : first + size]
        region = Region(nearest if is_fixed or len(regions) % 2 == 0 else review.kept, len(rows))
        slots = region.draw(rows, rng)
        has_slot = slots >= 0
        regions.append(region)
        rounds.append(_asked(rows[has_slot], slots[has_slot], ask, check, -(-CHECKS // len(starts)), rng))
        review = _evaluated(lists, regions, rounds, start, false_share, sensitivity)
        may_stop = not is_fixed and len(regions) % 2 == 0 and first + len(rows) >= FEWEST
        if may_stop and _is_enough(review.share, false_share):
            break
    return review


def _asked(rows: Ids, slots: Ids, ask: Ask, check: Ask | None, most_checks: int, rng: np.random.Generator) -> Answers:
    """The answers of a round. Pairs without one leave it."""
    answers = ask(rows, slots)
    answered = ~np.isnan(answers)
    rows, slots, answers = rows[answered], slots[answered], answers[answered]
    said_yes = answers >= YES
    if check is None:
        return Answers.of_round(rows, slots, said_yes, answers)
    to_check = rng.permutation(np.flatnonzero(said_yes))[:most_checks]
    checked = np.full(len(rows), np.nan)
    checked[to_check] = check(rows[to_check], slots[to_check])
    return Answers.of_round(rows, slots, said_yes, checked)


def _evaluated(
    lists: ReviewLists,
    regions: Sequence[Region],
    rounds: Sequence[Answers],
    before: Recalibration,
    false_share: float,
    sensitivity: Sensitivity,
) -> Review:
    """Recalibrate, cut, and estimate what is left, by all answers so far."""
    answers = Answers.joined([*rounds, _NO_ANSWERS])
    n_anchors = int(np.count_nonzero(lists.free.any(axis=1)))  # that can be drawn
    asked = inclusion(regions, n_anchors, answers.rows, answers.slots)
    answers = replace(answers, weight=answers.weight / asked)
    known = answers.where(answers.is_known)
    model = before
    if len(known.y):
        model = recalibrate(before, lists, known, sensitivity.estimate)
    probability = model.of(lists)
    # False ones that were found are never returned, nor is a yes that was not checked.
    left_out = answers.where(answers.y != 0)
    returnable = probability.copy()
    returnable[left_out.rows, left_out.slots] = EMPTY
    found = cut_at(returnable, lists.counts, false_share, None)
    tau, kept = found.tau, found.kept
    if not kept.any():  # no candidate is within the target: the nearest are taken, and the share says what they are
        tau, kept = 1.0, nearest_below(returnable, lists.counts, 1.0)
    would_be_kept = nearest_below(probability, lists.counts, tau)
    in_set = known.where(would_be_kept[known.rows, known.slots])
    share = share_of_set(
        in_set, probability[in_set.rows, in_set.slots], probability[kept].sum(), kept.sum(), sensitivity
    )
    return Review(answers, model, probability, tau, kept, found.before, sensitivity, share)


def share_of_set(
    in_set: Answers, expected: Floats, sum_of_set: float, size_of_set: int, sensitivity: Sensitivity
) -> Share | None:
    """The interval of a returned set.

    Args:
        in_set: Answers about pairs of the set, and about false ones that would be in it if they were not found.
        expected: (n,) their probabilities after recalibration.
        sum_of_set: The sum of the probabilities of the set.
        size_of_set: How many pairs it has.
        sensitivity: That of the reviewer.
    """
    reviewed = in_set.y == 0  # the others are not returned
    unreviewed = size_of_set - reviewed.sum()
    if not unreviewed:
        return None
    return interval_of(
        in_set.y,
        in_set.weight,
        expected,
        in_set.said_yes,
        unreviewed_mean=(sum_of_set - expected[reviewed].sum()) / unreviewed,
        unreviewed_share=unreviewed / size_of_set,
        sensitivity=sensitivity,
    )


def _is_enough(share: Share | None, false_share: float) -> bool:
    """Whether more answers would hardly change what is done."""
    if share is None:
        return False
    return share.high <= false_share + TOLERANCE or (share.high - share.low) / 2 <= TOLERANCE


_NO_IDS, _NO_NUMBERS = np.empty(0, np.int64), np.empty(0)
_NO_ANSWERS = Answers(_NO_IDS, _NO_IDS, np.empty(0, np.bool_), _NO_NUMBERS, _NO_NUMBERS)

"""Bound the share of false negatives from above by the scores of known positives, without labels of negatives.

With pi the share of unlabelled positives among the candidates, their scores follow pi F_pos + (1 - pi) F_neg. For any
set S of scores P_cand(S) >= pi P_pos(S), so pi <= P_cand(S) / P_pos(S). True negatives are fewest at the top of the
scores, so the sets that are tried are tails S = {score >= t}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE as CONFIDENCE
from naysay._intervals import exact_interval as exact_interval
from naysay._intervals import least_share, most_share
from naysay.arrays import Floats, to_numpy
from naysay.checks import as_array, check_bool, check_number, public, raise_invalid, shown
from naysay.detectors._slots import as_flags, finite_scores, masked_scores
from naysay.text import percent

_ASSUMPTIONS = (
    "unlabelled positives score like the positives given: which pairs are known does not depend on the score",
    "the encoder was not trained on the positives given, and each belongs to another anchor",
    "anchors are independent of each other",
)
# Tails by the share of the positives that they hold. They are fixed beforehand, and the error is divided among them:
# the lowest of many noisy bounds would be too low.
_TAILS = (0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)
_INCONCLUSIVE = (
    "inconclusive: the positives are too few, or score too little above the candidates, to show that fewer than half "
    "of the candidates are positives"
)
_REPRESENTATIVE = "these anchors are representative: they differ as much as all anchors do"


@final
@public
@dataclass(frozen=True, slots=True)
class RateEstimate:
    """An estimated share, its confidence interval, and what it assumes.

    Args:
        what: What the share is of, in words.
        estimate: The share, from 0 to 1; NaN if it is unknown.
        low: The lower end of the interval, which contains the true share with this confidence if the assumptions hold.
        high: The upper end of the interval.
        confidence: The confidence of the interval.
        n: The number of independent observations.
        assumptions: One sentence for each assumption.
        notes: One sentence for each limitation.
        bound: Whether only the upper bound `high` is claimed. `estimate` is then the bound without sampling error.

    Examples:
        >>> print(RateEstimate("false negatives", 0.02, 0.01, 0.04, 0.95, 300, ("the judge is right",)))
        false negatives: 2.0 % (95% CI 1.0 to 4.0, n = 300)
        assumes: the judge is right
    """

    what: str
    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    bound: bool = False

    def __str__(self) -> str:
        """The share and its interval, then the assumptions and notes, one a line."""
        level, n = f"{self.confidence:.0%}", f"n = {self.n:,}"
        if self.bound:
            estimate = f"{percent(self.estimate)} without sampling error"
            lines = [f"{self.what}: at most {percent(self.high)} ({level} confidence, {n}; {estimate})"]
        else:
            interval = f"{level} CI {percent(self.low, sign='')} to {percent(self.high, sign='')}, {n}"
            lines = [f"{self.what}: {percent(self.estimate)} ({interval})"]
        lines += [f"assumes: {sentence}" for sentence in self.assumptions]
        return "\n".join(lines + [f"note: {sentence}" for sentence in self.notes])


@public
def unlabelled_share(
    candidates: Any,
    positives: Any,
    *,
    mask: Any = None,
    confidence: float = CONFIDENCE,
    representative_anchors: bool = True,
) -> RateEstimate:
    """Estimate an upper bound on pi, the share of unlabelled positives among the candidates (the class prior).

    `estimate` is P_cand(S) / P_pos(S) at the tail S of the scores whose bound is lowest, and `high` is that bound with
    sampling error (Clopper and Pearson, the error divided among the tails tried). Both exceed pi if true negatives
    reach the top scores too; if none do, the estimate is as often below pi as above, so quote `high`. `low` is 0: all
    candidates might be negatives with just these scores. `losses.debiased` takes this prior. O(B n) for each of about
    ten tails.

    Blanchard, Lee and Scott. Semi-Supervised Novelty Detection. JMLR 2010: the mixture and its bound. Elkan and Noto.
    Learning Classifiers from Only Positive and Unlabeled Data. KDD 2008: the assumption that labels are random.

    Args:
        candidates: (B, n) scores of all candidates that were searched, one anchor a row; (m,) if each belongs to
            another anchor. If only the best n of a search are available, use only positives found among them.
        positives: (m,) scores of known positives that the encoder was not trained on, one per anchor.
        mask: (B, n) whether a slot holds a candidate. None: all do.
        confidence: The probability with which pi is below `high`.
        representative_anchors: Whether the spread among these anchors is that among all anchors. If a few of many
            anchors hold most positives, a sample may contain none of them. False treats each anchor as one observation,
            which holds for any anchors with about as many candidates each, and cannot show a share below about 6 / B.

    Returns:
        The share, of which only `high` is claimed.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 5                                      # 2 % of them are unlabelled positives
        >>> share = unlabelled_share(candidates, rng.normal(5, 1, 500))
        >>> round(share.estimate, 3), round(share.high, 3)
        (0.021, 0.023)
    """
    scores = _read_scores(candidates, positives, mask, confidence, representative_anchors)
    best = _lowest_bound(scores, 1 - scores.confidence)
    return _at_most("unlabelled positives among the candidates", scores, best, best.value, best.most)


@public
def false_negative_rate(
    candidates: Any,
    positives: Any,
    kept: Any,
    *,
    kept_positives: Any = None,
    mask: Any = None,
    confidence: float = CONFIDENCE,
    representative_anchors: bool = True,
) -> RateEstimate:
    """Estimate an upper bound on the share of false negatives among the kept: pi P_pos(kept) / P_cand(kept).

    `high` bounds the rate for anchors like these, `estimate` is its value without sampling error, `low` is 0: see
    `unlabelled_share`. The error is divided into three parts: P_pos(kept), and both sides of P_cand(S) / P_pos(S). The
    threshold may have been chosen from the same positives, as `Calibrated` does: Clopper and Pearson's bound also holds
    at an order statistic.

    Without `kept_positives` it is a bound for a set that scores chose, whatever the rule: of equal scores, false ones
    were kept no more often than others. It says nothing about a set that another model chose.

    Args:
        candidates: (B, n) scores of all candidates that were searched, kept or not; as for `unlabelled_share`.
        positives: (m,) scores of known positives that the encoder was not trained on, one per anchor.
        kept: Which candidates became negatives: a number t (all that score below t), or (B, n) bool.
        kept_positives: (m,) bool: which positives the same selection would have kept as candidates. None: all that
            score no higher than the highest score kept. That is exact for a number, and too many (so still a bound) if
            more than one threshold selects, as with the k best below a threshold.
        mask: (B, n) whether a slot holds a candidate. None: all do.
        confidence: The probability with which the rate is below `high`.
        representative_anchors: Whether the spread among these anchors is that among all: see `unlabelled_share`.

    Returns:
        The share, of which only `high` is claimed.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 3                                      # 2 % of them are unlabelled positives
        >>> rate = false_negative_rate(candidates, rng.normal(3, 1, 500), 2.0)
        >>> low = candidates < 2.0
        >>> round(float(low[:, :2].sum() / low.sum()), 4), round(rate.estimate, 4), round(rate.high, 4)
        (0.0031, 0.0035, 0.0061)
    """
    scores = _read_scores(candidates, positives, mask, confidence, representative_anchors)
    chosen, passed = _kept(scores, kept, kept_positives)
    error = (1 - scores.confidence) / 3
    n, hits = len(scores.positives), int(passed.sum())
    best = _lowest_bound(scores, 2 * error)
    per_kept = int(scores.filled.sum()) / int(chosen.sum())
    high = best.most * most_share(hits, n, error) * per_kept
    return _at_most("false negatives among the kept", scores, best, best.value * hits / n * per_kept, high)


class _Scores(NamedTuple):
    """Scores of candidates (B, n), (m, 1) if given as (m,), which slots are filled, and positives (m,)."""

    candidates: Floats
    filled: NDArray[np.bool_]
    positives: Floats
    shape: tuple[int, ...]  # of the candidates as they were given
    confidence: float
    representative: bool


class _Tail(NamedTuple):
    """The bound on pi by one tail: the upper confidence limit `most`, and the estimate `value`."""

    most: float
    value: float


def _read_scores(candidates: Any, positives: Any, mask: Any, confidence: Any, representative_anchors: Any) -> _Scores:
    """Both kinds of scores, which must be finite and not all equal, and the options."""
    table, filled = masked_scores("candidates", candidates, mask, 1, 2)
    if not filled.any():
        raise_invalid("candidates", "at least one score", "none")
    known = finite_scores("positives", positives)
    if np.ptp(np.concatenate([table[filled], known])) == 0:
        raise_invalid("candidates", "scores that differ", f"{known[0]:g} everywhere", "Is the encoder trained?")
    level, representative = check_confidence(confidence), check_bool("representative_anchors", representative_anchors)
    rows = (len(table), -1)
    return _Scores(table.reshape(rows), filled.reshape(rows), known, table.shape, level, representative)


def _lowest_bound(scores: _Scores, error: float) -> _Tail:
    """The tail with the lowest bound on pi. All bounds hold at once with probability 1 - error at least."""
    n, ordered = len(scores.positives), np.sort(scores.positives)[::-1]
    counts = sorted({round(share * n) for share in _TAILS} - {0})
    each = error / (2 * len(counts))
    whole = scores.filled.sum(axis=1)
    tails = []
    for count in counts:
        sums = moments(((scores.candidates >= ordered[count - 1]) & scores.filled).sum(axis=1), whole)
        share = float(sums[2] / sums[1])
        size = effective_size(sums, int(whole.sum()), each, representative_anchors=scores.representative)
        most = most_share(share * size, size, each) if size else 1.0
        tails.append(_Tail(most / least_share(count, n, each), share * n / count))
    return min(tails, key=lambda tail: tail.most)


def _at_most(what: str, scores: _Scores, best: _Tail, estimate: float, high: float) -> RateEstimate:
    """A share with an upper bound only, and why the bound may be useless."""
    assumed = _ASSUMPTIONS + (_REPRESENTATIVE,) * scores.representative
    notes: tuple[str, ...] = ()
    if best.most >= 0.5:
        notes = (_INCONCLUSIVE,)
    elif high >= 1:
        notes = ("inconclusive: true negatives may score as high as positives; label some with spot_check",)
    n = len(scores.positives)
    return RateEstimate(what, min(estimate, 1.0), 0.0, min(high, 1.0), scores.confidence, n, assumed, notes, bound=True)


def _kept(scores: _Scores, kept: Any, kept_positives: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which candidates became negatives (B, n), and which positives would have (m,)."""
    if as_array("kept", to_numpy(kept)).ndim:
        chosen = as_flags("kept", kept, scores.shape).reshape(scores.candidates.shape) & scores.filled
    else:
        threshold = check_number("kept", kept)
        chosen = (scores.candidates < threshold) & scores.filled
        if kept_positives is not None:
            raise_invalid("kept_positives", "left out if `kept` is a number", shown(kept_positives))
        kept_positives = scores.positives < threshold
    if not chosen.any():
        raise_invalid("kept", "at least one candidate", "none")
    if kept_positives is None:
        return chosen, scores.positives <= scores.candidates[chosen].max()
    return chosen, as_flags("kept_positives", kept_positives, scores.positives.shape)


# ---- intervals of shares ----------------------------------------------------------------------------------


def check_confidence(confidence: Any) -> float:
    """A number between 0 and 1, both excluded."""
    return check_number("confidence", confidence, above=0, below=1)


def moments(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """(..., 6) sums over anchors, of which `part` of `whole` (..., B) slots are hits. Sums of batches add up.

    They are the number of rows with slots, then the sums of whole, part, whole^2, whole part and part^2.
    """
    p, w = part.astype(np.float64), whole.astype(np.float64)
    return np.stack([(w > 0).sum(-1), w.sum(-1), p.sum(-1), (w * w).sum(-1), (w * p).sum(-1), (p * p).sum(-1)], axis=-1)


def effective_size(sums: Floats, slots: float, error: float, *, representative_anchors: bool = True) -> float:
    """The number of independent observations that the share sum(part) / sum(whole) of these `moments` is worth.

    Slots of one anchor tend to be hit or missed together, so B anchors with K slots are worth less than B K
    observations. The linearised variance of the share R over n anchors is
    n / (n - 1) sum (part - R whole)^2 / (sum whole)^2. The size is R (1 - R) over it, at most one observation for each
    of the `slots`, and at least (sum whole)^2 / sum whole^2, where all slots of an anchor agree. Few anchors estimate
    their variance badly, so the size is multiplied by (z / t)^2, the quantiles of Normal and Student at a tail of
    `error`. One anchor is worth 0.

    If one anchor in a hundred is unlike the others, a hundred anchors may hold none of its kind, and the interval is
    too short. representative_anchors=False treats each anchor as one observation: no distribution of shares from 0 to 1
    spreads more than hit or miss. That holds for anchors of one weight; where weights differ, a heavy one may be
    missing too.

    Korn and Graubard. Confidence Intervals for Proportions with Small Expected Number of Positive Counts. 1998.
    """
    from scipy.special import ndtri, stdtrit

    rows, whole, part, squares, products, parts = sums.tolist()
    fewest = whole * whole / squares if rows else 0.0
    if not representative_anchors or rows < 2:
        return 0.0 if representative_anchors else float(fewest)
    share = part / whole
    spread = max(parts - 2 * share * products + share * share * squares, 0.0) * rows / (rows - 1)
    size = share * (1 - share) * whole * whole / spread if spread > 0 else slots if 0 < share < 1 else fewest
    return float(np.clip(size, fewest, max(slots, fewest)) * (ndtri(error) / stdtrit(rows - 1, error)) ** 2)

"""Bound the share of false negatives from above by the scores of known positives, without labels of negatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_number, public, raise_invalid, shown
from naysay.detectors._intervals import CONFIDENCE, check_confidence, check_representative, most_share
from naysay.detectors._tails import Scores, Tail, flags, lowest_bound, read_scores
from naysay.detectors.share import Share

_ASSUMPTIONS = (
    "unlabelled positives score like the positives given: which pairs are known does not depend on the score",
    "the encoder was not trained on the positives given, and each belongs to another anchor",
    "anchors are independent of each other",
)
_REPRESENTATIVE = "these anchors are representative: they differ as much as all anchors do"


@public
def unlabelled_share(
    candidates: Any,
    positives: Any,
    *,
    mask: Any = None,
    confidence: float = CONFIDENCE,
    representative_anchors: bool = True,
) -> Share:
    """Estimate an upper bound on pi, the share of unlabelled positives among the candidates (the class prior).

    `estimate` is P_cand(S) / P_pos(S) at the tail S of the scores whose bound is lowest, and `high` is that bound with
    sampling error. Both exceed pi if true negatives reach the top scores too; if none do, the estimate is as often
    below pi as above, so quote `high`. `low` is 0, because scores alone never exclude pi = 0: all candidates
    might be negatives with just these scores.

    P_pos(S) is bounded by Clopper and Pearson, which is exact although S is a quantile of the same positives;
    P_cand(S) likewise, at the effective number of independent observations. The error is divided among the tails tried.
    `losses.debiased` takes this prior. O(B n) for each of about ten tails.

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

    Raises:
        NaysayError: If scores are not finite, empty, or all equal.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 5                                      # 2 % of them are unlabelled positives
        >>> share = unlabelled_share(candidates, rng.normal(5, 1, 500))
        >>> round(share.estimate, 3), round(share.high, 3)
        (0.021, 0.023)
    """
    scores, level = read_scores(candidates, positives, mask), check_confidence(confidence)
    best = lowest_bound(scores, 1 - level, representative_anchors=check_representative(representative_anchors))
    what, n = "unlabelled positives among the candidates", len(scores.positives)
    return _at_most(
        what, best.value, best.most, level, n, _notes(best, best.most), representative_anchors=representative_anchors
    )


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
) -> Share:
    """Estimate an upper bound on the share of false negatives among the kept: pi P_pos(kept) / P_cand(kept).

    `high` is an upper bound on the rate for anchors like these, `estimate` its value without sampling error, and `low`
    is 0: see `unlabelled_share`. The share in these very rows varies randomly around the rate. The error is divided
    into three parts: P_pos(kept), and both sides of P_cand(S) / P_pos(S). The threshold may have been chosen from the
    same positives, as `Calibrated` does: Clopper and Pearson's bound also holds at an order statistic.

    Args:
        candidates: (B, n) scores of all candidates that were searched, kept or not; see `unlabelled_share`.
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

    Raises:
        NaysayError: If nothing is kept, or scores are not finite, empty, or all equal.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 3                                      # 2 % of them are unlabelled positives
        >>> positives = rng.normal(3, 1, 500)
        >>> rate = false_negative_rate(candidates, positives, 2.0)
        >>> low = candidates < 2.0
        >>> round(float(low[:, :2].sum() / low.sum()), 4), round(rate.estimate, 4), round(rate.high, 4)
        (0.0031, 0.0035, 0.0061)
    """
    scores, level = read_scores(candidates, positives, mask), check_confidence(confidence)
    chosen, passed = _kept(scores, kept, kept_positives)
    error = (1 - level) / 3
    n, hits = len(scores.positives), int(passed.sum())
    best = lowest_bound(scores, 2 * error, representative_anchors=check_representative(representative_anchors))
    per_kept = scores.size / int(chosen.sum())
    high = best.most * most_share(hits, n, error) * per_kept
    estimate = best.value * hits / n * per_kept
    return _at_most(
        "false negatives among the kept",
        estimate,
        high,
        level,
        n,
        _notes(best, high),
        representative_anchors=representative_anchors,
    )


def _at_most(
    what: str,
    estimate: float,
    high: float,
    level: float,
    n: int,
    notes: tuple[str, ...],
    *,
    representative_anchors: bool,
) -> Share:
    """A share with an upper bound only."""
    assumed = (*_ASSUMPTIONS, _REPRESENTATIVE) if representative_anchors else _ASSUMPTIONS
    return Share(what, min(estimate, 1.0), 0.0, min(high, 1.0), level, n, assumed, notes, bound=True)


def _kept(scores: Scores, kept: Any, kept_positives: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which candidates became negatives (B, n), and which positives would have (m,)."""
    if as_array("kept", to_numpy(kept)).ndim:
        chosen = flags("kept", kept, scores.shape).reshape(scores.candidates.shape) & scores.filled
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
    return chosen, flags("kept_positives", kept_positives, scores.positives.shape)


def _notes(best: Tail, high: float) -> tuple[str, ...]:
    """Why the bound may be useless."""
    notes = []
    if best.most >= 0.5:
        notes.append(
            "inconclusive: the positives are too few, or score too little above the candidates, to show that fewer "
            "than half of the candidates are positives"
        )
    elif high >= 1:
        notes.append("inconclusive: true negatives may score as high as positives; label some with spot_check")
    return tuple(notes)

"""How many false negatives are left in a set, without labels: the scores of known positives bound it from above."""

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
    "the encoder was not trained on the positives given, and each is of another anchor",
    "anchors are independent of each other",
)
_REPRESENTATIVE = "anchors are alike enough that those at hand show how much they differ"


@public
def unlabelled_share(
    candidates: Any,
    positives: Any,
    *,
    mask: Any = None,
    confidence: float = CONFIDENCE,
    representative_anchors: bool = True,
) -> Share:
    """At most how many of the candidates are unlabelled positives: an upper bound on pi, the class prior.

    `estimate` is P_cand(S) / P_pos(S) at the tail S of the scores whose bound is lowest, and `high` that bound, with
    an allowance for chance. Both are above pi where true negatives reach the top scores too, and where none do the
    estimate is as often below pi as above: `high` is the figure to quote. From scores alone pi = 0 can never be
    excluded, since all candidates might be negatives of just these scores, so `low` is 0.

    P_pos(S) is bounded by Clopper and Pearson, which is exact although S is a quantile of the same positives;
    P_cand(S) likewise, at the number of independent looks that the anchors are worth. The error is divided among the
    tails tried. This is the prior that `losses.debiased` asks for. O(B n) for each of some ten tails.

    Blanchard, Lee and Scott. Semi-Supervised Novelty Detection. JMLR 2010: the mixture and its bound. Elkan and Noto.
    Learning Classifiers from Only Positive and Unlabeled Data. KDD 2008: the assumption that labels are chance.

    Args:
        candidates: (B, n) scores of all that was searched, those of an anchor in its row; (m,) if each is of
            another anchor. Where only the best n of a search are at hand, the positives must be those found among
            them.
        positives: (m,) scores of known positives that the encoder was not trained on, one of each anchor.
        mask: (B, n) whether a slot holds a candidate; None: all do.
        confidence: With which pi is below `high`.
        representative_anchors: Whether the anchors at hand show how much anchors differ. Where a few of many hold most
            positives, a sample may have none of them: False treats each anchor as one observation, which holds for any
            anchors with about as many candidates each, and cannot show a share below some 6 / B.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 5                                      # 2 % of them are positives that nobody labelled
        >>> found = unlabelled_share(candidates, rng.normal(5, 1, 500))
        >>> round(found.estimate, 3), round(found.high, 3)
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
    """At most how many of the negatives that were kept are false: pi P_pos(kept) / P_cand(kept), and its bound.

    `high` is an upper bound on the rate among anchors like these, `estimate` the value without an allowance for
    chance, and `low` is 0: see `unlabelled_share`. The share in these very rows strays around the rate by
    chance. The error is spent in three parts, on P_pos(kept), and on both sides of P_cand(S) / P_pos(S). The line may
    have been chosen by the same positives, as `Calibrated` does: Clopper and Pearson's bound holds at an order
    statistic too.

    Args:
        candidates: (B, n) scores of all that was searched, kept or not; see `unlabelled_share`.
        positives: (m,) scores of known positives that the encoder was not trained on, one of each anchor.
        kept: What became negatives: a number t (all that score below t), or (B, n) bool.
        kept_positives: (m,) bool: which of the positives the same selection would have kept, had they been
            candidates. None: all that score no higher than the highest score kept. That is exact for a number, and
            too many (so a bound still) where more than one line selects, as with the k best below a line.
        mask: (B, n) whether a slot holds a candidate; None: all do.
        confidence: With which the rate is below `high`.
        representative_anchors: Whether the anchors at hand show how much anchors differ: see `unlabelled_share`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 3                                      # 2 % of them are positives that nobody labelled
        >>> positives = rng.normal(3, 1, 500)
        >>> found = false_negative_rate(candidates, positives, 2.0)
        >>> low = candidates < 2.0
        >>> round(float(low[:, :2].sum() / low.sum()), 4), round(found.estimate, 4), round(found.high, 4)
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
    """A share of which only the upper bound is claimed."""
    assumed = (*_ASSUMPTIONS, _REPRESENTATIVE) if representative_anchors else _ASSUMPTIONS
    return Share(what, min(estimate, 1.0), 0.0, min(high, 1.0), level, n, assumed, notes, bound=True)


def _kept(scores: Scores, kept: Any, kept_positives: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which candidates became negatives (B, n), and which positives would have (m,)."""
    if as_array("kept", to_numpy(kept)).ndim:
        chosen = flags("kept", kept, scores.shape).reshape(scores.candidates.shape) & scores.filled
    else:
        line = check_number("kept", kept)
        chosen = (scores.candidates < line) & scores.filled
        if kept_positives is not None:
            raise_invalid("kept_positives", "None where kept is a number", shown(kept_positives))
        kept_positives = scores.positives < line
    if not chosen.any():
        raise_invalid("kept", "at least one candidate", "none")
    if kept_positives is None:
        return chosen, scores.positives <= scores.candidates[chosen].max()
    return chosen, flags("kept_positives", kept_positives, scores.positives.shape)


def _notes(best: Tail, high: float) -> tuple[str, ...]:
    """What cannot be told."""
    notes = []
    if best.most >= 0.5:
        notes.append(
            "it cannot tell: the positives do not score above the candidates by enough, or are too few, to say that "
            "fewer than half of the candidates are positives"
        )
    elif high >= 1:
        notes.append("it cannot tell: true negatives may score as high as positives; judge some by spot_check")
    return tuple(notes)

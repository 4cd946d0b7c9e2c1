"""How many negatives are false: what is proven, and at most how many more the scores leave room for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.auditing._corpus_sample import Look
from naysay.auditing._scored import Scored
from naysay.detectors._intervals import most_share
from naysay.detectors.rate import unlabelled_share
from naysay.detectors.share import Share

CONFIDENCE = 0.95
_LEAST = 19  # positives below which a bound says nothing
_NEIGHBOURS = 32  # candidates on either side of a score that tell how many of its kind were taken
_WHAT = "false negatives"
_LIKE = (
    "unlabelled positives score like the set's own: which pairs are labelled does not depend on the score, and the "
    "model was trained on neither, or on both alike",
    "anchors are independent of each other, and alike enough that those of the set show how much they differ",
)
_UNCUT = "what kept candidates out of the set, if anything did, was one line for all anchors, or a rank"
_BY_SCORE = "of candidates with equal scores, false ones became negatives no more often than true ones"

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def false_share(scored: Scored | None, seen: Look | None, proven: Mask, filled: Mask) -> Share:
    """The share of false negatives: `low` is what is proven, `estimate` and `high` are at most so many.

    From scores alone it can never be excluded that all other negatives are true: just these may score so high. So the
    interval begins at what is proven. Its end, with a confidence of 95 %, and `estimate`, the value that the end is a
    bound of, rest on the scores of the set's positives, one of each anchor.

    With a look at the corpus: let an anchor have M unlabelled positives in the corpus, and let sel(s) be the share of
    candidates of score s that are in the set. An unlabelled positive scores like a labelled one, so that of M of them
    M E[sel(score of a positive)] are in the set. M is at most N P(candidate in S) / P(positive in S) for any tail S of
    the scores (`detectors.unlabelled_share`). sel is counted among the 64 candidates that are nearest in score.

    With scores alone: a false negative of the set scores like a positive below c, the highest score of a negative,
    since a line at c may have kept the others out. So their share is at most P(negative in S) / P(positive in S |
    below c). Fewer than 19 positives below c say nothing.

    Args:
        scored: Scores of the set, or None.
        seen: A `Look` at the corpus, where there are vectors.
        proven: (n, k): false without a doubt.
        filled: (n, k): slots with a negative.
    """
    total, sure = int(filled.sum()), float(proven.sum() / filled.sum())
    notes: tuple[str, ...] = ()
    if scored is None or len(scored.one) < _LEAST:
        count = 0 if scored is None else len(scored.one)
        notes = (f"it cannot tell: {count} anchors have a positive with a score, and {_LEAST} are needed",)
        return Share(_WHAT, sure, sure, 1.0, CONFIDENCE, total, (), notes)
    rest = scored.filled & ~proven
    positives = scored.positives[scored.one].astype(np.float64)
    if not rest.any() or np.ptp(np.concatenate([scored.negatives[rest], positives])) == 0:
        left = 1.0 if rest.any() else sure
        notes = ("it cannot tell: all scores are equal",) if rest.any() else ()
        return Share(_WHAT, sure, sure, left, CONFIDENCE, total, (), notes)
    if seen is not None:
        part, n, assumed = _by_look(scored, seen, rest, positives), len(positives), (*_LIKE, _BY_SCORE)
    else:
        below = positives[positives <= scored.negatives[rest].max()]
        if len(below) < _LEAST:
            notes = (
                f"it cannot tell: {len(below)} of {len(positives)} positives score no higher than the highest "
                "negative, so either none is false or a line kept such out; vectors would tell",
            )
            return Share(_WHAT, sure, sure, 1.0, CONFIDENCE, total, (), notes)
        known = unlabelled_share(np.where(rest, scored.negatives, 0), below, mask=rest, confidence=CONFIDENCE)
        part, n, assumed = (known.estimate, known.high), len(below), (*_LIKE, _UNCUT)
    if part[1] >= 1:
        notes = ("it cannot tell: positives are few, or true negatives score as high; judge some by hand",)
    estimate, high = (min(1.0, float(sure + (1 - sure) * share)) for share in part)
    return Share(_WHAT, estimate, sure, high, CONFIDENCE, n, assumed, notes)


def _by_look(scored: Scored, seen: Look, rest: Mask, positives: Floats) -> tuple[float, float]:
    """(estimate, high) of the share of `rest` that is false, by what the corpus holds."""
    error = (1 - CONFIDENCE) / 3
    prior = unlabelled_share(seen.scores, positives, mask=seen.free, confidence=1 - 2 * error)
    chosen = rest[seen.anchors]
    if not chosen.any():
        return 0.0, 1.0
    ordered = np.sort(seen.scores[seen.free].astype(np.float64))
    taken = np.sort(scored.negatives[seen.anchors][chosen].astype(np.float64))
    place = np.searchsorted(ordered, positives)
    first, last = (ordered[np.clip(place + step, 0, len(ordered) - 1)] for step in (-_NEIGHBOURS, _NEIGHBOURS))
    there = np.searchsorted(ordered, last, side="right") - np.searchsorted(ordered, first)
    inside = np.searchsorted(taken, last, side="right") - np.searchsorted(taken, first)
    selected = np.minimum(1.0, inside * seen.share / there)
    each = int(seen.free.sum()) / seen.share / int(chosen.sum())  # candidates of the corpus for each negative
    most = most_share(float(selected.sum()), len(selected), error)
    return min(1.0, prior.estimate * each * float(selected.mean())), min(1.0, prior.high * each * most)

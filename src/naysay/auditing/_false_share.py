"""The share of false negatives: what is proven, and an upper bound from the scores of a sample of the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.auditing._training_set import SetScores
from naysay.detectors.rate import most_share, unlabelled_share
from naysay.detectors.share import Share
from naysay.kernels import dots
from naysay.kernels.threads import in_rows
from naysay.positives import Positives
from naysay.search._scores import METRICS, taken
from naysay.search.vectors import Vectors

CONFIDENCE = 0.95
_PAIRS, _ROWS, _ANCHORS = 1 << 22, 1 << 14, 2048  # at most: pairs, documents per anchor, anchors
_MIN_POSITIVES = 19
_NEIGHBOURS = 32  # candidates on either side of a score that estimate how often its like was selected
_WHAT = "false negatives"
_LIKE = (
    "unlabelled positives score like the set's own: whether a pair is labelled does not depend on its score, and the "
    "model was trained on both or on neither",
    "anchors are independent of each other, and similar enough that those of the set show how much they differ",
)
_UNCUT = "if anything kept candidates out of the set, it was one threshold for all anchors, or a rank"
_BY_SCORE = "of candidates with equal scores, false ones became negatives no more often than true ones"

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CorpusSample:
    """Scores of some anchors with uniformly drawn documents."""

    anchors: NDArray[np.int64]  # (b,) ascending: anchors with a scored positive, drawn without replacement
    scores: NDArray[np.float32]  # (b, m) float32 of the same m documents for all anchors
    is_candidate: Mask  # (b, m): False for known positives
    positives: NDArray[np.float32]  # (b,) the score of one positive of each anchor
    documents: int  # N, the documents in the corpus

    @property
    def share(self) -> float:
        """The share of the corpus that was sampled, m / N."""
        return float(self.scores.shape[1]) / self.documents


def sample_corpus(
    queries: Vectors, corpus: Vectors, known: Positives, scores: SetScores, metric: str, rng: np.random.Generator
) -> CorpusSample | None:
    """Score at most 2^22 pairs: up to 2,048 anchors with up to 16,384 documents.

    Anchors of which all documents are known are left out. None if no anchor is left.
    """
    if len(scores.one_each) == 0:
        return None
    size = min(corpus.n, _ROWS)
    count = min(len(scores.one_each), _ANCHORS, max(1, _PAIRS // size))
    chosen = scores.one_each[np.sort(rng.choice(len(scores.one_each), count, replace=False))]
    anchors = scores.anchors[chosen]
    items = np.arange(corpus.n) if size == corpus.n else np.sort(rng.choice(corpus.n, size, replace=False))
    sides = [frozen(taken(side, ids)) for side, ids in ((queries, anchors), (corpus, items))]
    with_norms = []
    for side in sides:
        length = np.empty(len(side))
        in_rows(dots.norms, len(side), side.size, side, length)
        with_norms += [side, frozen(length)]
    table = np.empty((count, size), np.float32)
    in_rows(dots.all_scores, count, sides[0].size * size, METRICS[metric], *with_norms, table)
    free = ~known.contains(np.repeat(anchors, size), np.tile(items, count)).reshape(count, size)
    kept = free.any(axis=1)
    if not kept.any():
        return None
    return CorpusSample(anchors[kept], table[kept], free[kept], scores.positives[chosen][kept], corpus.n)


def false_share(scores: SetScores | None, sample: CorpusSample | None, proven: Mask, filled: Mask) -> Share:
    """Estimate the share of false negatives: `low` is proven, `estimate` and `high` are upper bounds.

    Scores alone can never exclude that all other negatives are true and just score high, so the interval starts at
    what is proven. Its end, with 95 % confidence, rests on the scores of the set's positives, one per anchor;
    `estimate` is that bound without the allowance for chance.

    With a corpus sample: let an anchor have M unlabelled positives in the corpus, and let sel(s) be the share of
    candidates of score s that are in the set. Unlabelled positives score like labelled ones, so M E[sel(score of a
    positive)] of them are in the set. M is at most N P(candidate in S) / P(positive in S) for any upper tail S of the
    scores (`detectors.unlabelled_share`). sel is counted over the 64 candidates nearest in score.

    With scores alone: a false negative of the set scores like a positive below c, the highest score of a negative,
    since a threshold at c may have kept the others out. So their share is at most P(negative in S) / P(positive in S |
    below c). At least 19 positives below c are needed.
    """
    total, sure = int(filled.sum()), float(proven.sum() / filled.sum())

    def unknown(note: str) -> Share:
        return Share(_WHAT, sure, sure, 1.0, CONFIDENCE, total, (), (note,))

    if scores is None or len(scores.one_each) < _MIN_POSITIVES:
        count = 0 if scores is None else len(scores.one_each)
        return unknown(f"unknown: {count} anchors have a positive with a score, {_MIN_POSITIVES} are needed")
    rest = scores.filled & ~proven
    positives = scores.positives[scores.one_each].astype(np.float64)
    if not rest.any():
        return Share(_WHAT, sure, sure, sure, CONFIDENCE, total, ())
    if np.ptp(np.concatenate([scores.negatives[rest], positives])) == 0:
        return unknown("unknown: all scores are equal")
    if sample is not None:
        part, n, assumed = _by_sample(scores, sample, rest, positives), len(positives), (*_LIKE, _BY_SCORE)
    else:
        below = positives[positives <= scores.negatives[rest].max()]
        if len(below) < _MIN_POSITIVES:
            return unknown(
                f"unknown: only {len(below)} of {len(positives)} positives score as low as a negative, so either no "
                "negative is false or a threshold kept the false ones out; pass vectors to find out"
            )
        known = unlabelled_share(np.where(rest, scores.negatives, 0), below, mask=rest, confidence=CONFIDENCE)
        part, n, assumed = (known.estimate, known.high), len(below), (*_LIKE, _UNCUT)
    few = "no upper bound: too few positives, or true negatives score as high as positives; label some by hand"
    estimate, high = (min(1.0, float(sure + (1 - sure) * share)) for share in part)
    return Share(_WHAT, estimate, sure, high, CONFIDENCE, n, assumed, (few,) if part[1] >= 1 else ())


def _by_sample(scores: SetScores, sample: CorpusSample, rest: Mask, positives: Floats) -> tuple[float, float]:
    """Return (estimate, high) of the share of `rest` that is false, by a sample of the corpus."""
    error = (1 - CONFIDENCE) / 3
    prior = unlabelled_share(sample.scores, positives, mask=sample.is_candidate, confidence=1 - 2 * error)
    chosen = rest[sample.anchors]
    if not chosen.any():
        return 0.0, 1.0
    ordered = np.sort(sample.scores[sample.is_candidate].astype(np.float64))
    negatives = np.sort(scores.negatives[sample.anchors][chosen].astype(np.float64))
    place = np.searchsorted(ordered, positives)
    first, last = (ordered[np.clip(place + step, 0, len(ordered) - 1)] for step in (-_NEIGHBOURS, _NEIGHBOURS))
    near = np.searchsorted(ordered, last, side="right") - np.searchsorted(ordered, first)
    inside = np.searchsorted(negatives, last, side="right") - np.searchsorted(negatives, first)
    selected = np.minimum(1.0, inside * sample.share / near)
    per_negative = int(sample.is_candidate.sum()) / sample.share / int(chosen.sum())  # candidates of the whole corpus
    most = most_share(float(selected.sum()), len(selected), error)
    estimate = min(1.0, prior.estimate * per_negative * float(selected.mean()))
    return estimate, min(1.0, prior.high * per_negative * most)

"""The share of false negatives: what is proven, an estimate by the posterior, and upper bounds by scores."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import most_share
from naysay.audits._posterior import Judged
from naysay.audits._training_set import SetScores
from naysay.detectors.posterior_summary import BIASED
from naysay.detectors.rate import RateEstimate, unlabelled_share
from naysay.mining.estimate import basis
from naysay.positives import Positives
from naysay.search._scores import METRICS, listed_scores, norms_of, taken
from naysay.search.vectors import Vectors, as_vectors
from naysay.text import percent

CONFIDENCE = 0.95
_PAIRS, _ROWS, _ANCHORS = 1 << 22, 1 << 14, 2048  # at most: pairs, documents per anchor, anchors
_MIN_POSITIVES = 19
_NEIGHBOURS = 32  # candidates on either side of a score that estimate how often its like was selected
_REACHED = 0.02  # of the anchors have a negative above their positive, unless something kept those out
_ABOVE, _HIGHEST = 0.05, 0.999  # of the positives score above this quantile of the negatives, unless a judge chose
_WHAT = "false negatives"
_LIKE = (
    "unlabelled positives score like the set's own: whether a pair is labelled does not depend on its score, and the "
    "model was trained on both or on neither",
    "anchors are independent of each other, and similar enough that those of the set show how much they differ",
)
_TOP = "some candidates of the highest scores are positives almost surely; if none is, the estimate is too high"
_BY_SCORE = "of candidates with equal scores, false ones became negatives no more often than true ones"
_NOT_JUDGED = "no judge chose the negatives: false ones in the set score like the set's positives"
_FEW = "no upper bound: too few positives, or true negatives score as high as positives; label some by hand"
_COMPARED = "a set that a judge has chosen cannot be compared with this one by scores alone; pass vectors for both"
_HIDDEN = (
    "unknown: hardly any negative scores as high as its anchor's positive, or as high as most positives. Either none "
    "is false, or a judge left the false ones out: scores alone cannot tell. Pass vectors to find out"
)

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
    left, right = taken(queries, anchors), taken(corpus, items)
    every = np.tile(np.arange(size, dtype=np.int32), (count, 1))
    table = listed_scores(
        METRICS[metric], left, norms_of(left), as_vectors("corpus", right), norms_of(right), np.full(count, size), every
    )
    free = ~known.contains(np.repeat(anchors, size), np.tile(items, count)).reshape(count, size)
    kept = free.any(axis=1)
    if not kept.any():
        return None
    return CorpusSample(anchors[kept], table[kept], free[kept], scores.positives[chosen][kept], corpus.n)


def false_share(
    scores: SetScores | None, sample: CorpusSample | None, judged: Judged | None, proven: Mask, filled: Mask
) -> RateEstimate:
    """Estimate the share of false negatives, with `low` the proven ones and `high` an upper bound, 95 % confidence.

    Scores can never prove that a negative is false, so the interval starts at what is proven. The estimate is NaN where
    nothing but that is known.

    **By the posterior** of the nearest candidates, where they are known: the mean probability of the negatives, and the
    upper end of its interval. It is right if nothing but score and chance chose among candidates of equal probability.
    If the set does not hold the nearest candidates, false ones may have come in another way, at random in the worst
    case. Then their share is at most P(negative in S) / P(positive in S), for any upper tail S of the scores.

    **By a sample of the corpus**, where no posterior can be fitted: of an anchor's M unlabelled positives among N
    documents, M E[sel(score of a positive)] are in the set, with sel(s) the share of documents of score s in it. M is
    at most N P(document in S) / P(positive in S) (`detectors.unlabelled_share`).

    **By scores alone** there is only the last bound, and none if the scores look as if a judge had chosen.
    """
    total, sure = int(filled.sum()), float(proven.sum() / filled.sum())

    def unknown(note: str) -> RateEstimate:
        return RateEstimate(_WHAT, nan, sure, 1.0, CONFIDENCE, total, (), (note,), bound=True)

    if sure == 1:
        return RateEstimate(_WHAT, 1.0, 1.0, 1.0, CONFIDENCE, total, ())
    if scores is None or len(scores.one_each) < _MIN_POSITIVES:
        count = 0 if scores is None else len(scores.one_each)
        return unknown(f"unknown: {count} anchors have a positive with a score, {_MIN_POSITIVES} are needed")
    rest = scores.filled & ~proven
    positives = scores.positives[scores.one_each].astype(np.float64)
    if not rest.any():
        return RateEstimate(_WHAT, sure, sure, sure, CONFIDENCE, total, ())
    if np.ptp(np.concatenate([scores.negatives[rest], positives])) == 0:
        return unknown("unknown: all scores are equal")
    assumed: tuple[str, ...]
    notes: tuple[str, ...] = ()
    bound = True
    if judged is not None and judged.fitted and judged.detector.summary.code == BIASED:
        return unknown(f"unknown: {judged.detector.reason}")
    if judged is not None and judged.fitted:
        part, bound = _by_posterior(scores, sample, judged, rest), not judged.usable
        assumed = (*_LIKE, _TOP, _BY_SCORE)
        notes = _notes(judged, rest)
    elif sample is not None:
        part, assumed = _by_sample(scores, sample, rest, positives), (*_LIKE, _BY_SCORE)
        notes = () if judged is None else (f"only an upper bound: {judged.detector.reason}",)
    elif _looks_judged(scores, rest):
        return unknown(_HIDDEN)
    else:
        part, assumed, notes = _by_own_scores(scores, rest, positives), (*_LIKE, _NOT_JUDGED), (_COMPARED,)
    estimate, high = (min(1.0, float(sure + (1 - sure) * share)) for share in part)
    if high >= 1:
        notes = (*notes, _FEW)
    return RateEstimate(
        _WHAT, estimate, sure, max(estimate, high), CONFIDENCE, len(positives), assumed, notes, bound=bound
    )


def _looks_judged(scores: SetScores, rest: Mask) -> bool:
    """Whether negatives avoid the scores of positives: those of their own anchor, or those of most anchors."""
    one = scores.one_each
    own, negatives = scores.positives[one], np.where(rest, scores.negatives, -np.inf)
    above = (negatives[scores.anchors[one]] > own[:, None]).any(axis=1).mean()
    highest = np.quantile(negatives[rest], _HIGHEST)
    return bool(above < _REACHED or (own > highest).mean() > _ABOVE)


def _notes(judged: Judged, rest: Mask) -> tuple[str, ...]:
    """What to know about an estimate by the posterior."""
    notes = [basis(judged.detector.summary).removesuffix(".")]
    if judged.detector.reason:
        notes.append(f"only an upper estimate: {judged.detector.reason}")
    if not judged.by_score(rest):
        notes.append(
            f"something other than nearness chose the negatives: only {percent(judged.reached())} of the candidates as "
            "near as an anchor's negatives are in the set. If it was a judge that knows more than the scores, fewer "
            "are false than estimated. If false negatives were put in at random, more are, up to the upper end"
        )
    return tuple(notes)


def _by_posterior(scores: SetScores, sample: CorpusSample | None, judged: Judged, rest: Mask) -> tuple[float, float]:
    """(estimate, high) of the share of `rest` that is false."""
    selected = None if sample is None else _selected(scores, sample, rest, judged.own)
    estimate, high = judged.share(rest, selected)
    if not judged.by_score(rest):
        positives = scores.positives[scores.one_each].astype(np.float64)
        high = max(high, _by_own_scores(scores, rest, positives)[1])
    return estimate, max(estimate, high)


def _by_own_scores(scores: SetScores, rest: Mask, positives: Floats) -> tuple[float, float]:
    """(estimate, high) of the share of `rest` that is false, if false ones score like the positives."""
    known = unlabelled_share(np.where(rest, scores.negatives, 0), positives, mask=rest, confidence=CONFIDENCE)
    return known.estimate, known.high


def _by_sample(scores: SetScores, sample: CorpusSample, rest: Mask, positives: Floats) -> tuple[float, float]:
    """(estimate, high) of the share of `rest` that is false, by a sample of the corpus."""
    error = (1 - CONFIDENCE) / 3
    prior = unlabelled_share(sample.scores, positives, mask=sample.is_candidate, confidence=1 - 2 * error)
    chosen = rest[sample.anchors]
    if not chosen.any():
        return 0.0, 1.0
    selected = _selected(scores, sample, rest, positives)
    per_negative = int(sample.is_candidate.sum()) / sample.share / int(chosen.sum())  # candidates of the whole corpus
    most = most_share(float(selected.sum()), len(selected), error)
    estimate = min(1.0, prior.estimate * per_negative * float(selected.mean()))
    return estimate, min(1.0, prior.high * per_negative * most)


def _selected(scores: SetScores, sample: CorpusSample, rest: Mask, values: Floats) -> Floats:
    """How often candidates of these scores are in the set, by the 64 candidates nearest in score."""
    ordered = np.sort(sample.scores[sample.is_candidate].astype(np.float64))
    negatives = np.sort(scores.negatives[sample.anchors][rest[sample.anchors]].astype(np.float64))
    place = np.searchsorted(ordered, values)
    first, last = (ordered[np.clip(place + step, 0, len(ordered) - 1)] for step in (-_NEIGHBOURS, _NEIGHBOURS))
    near = np.searchsorted(ordered, last, side="right") - np.searchsorted(ordered, first)
    inside = np.searchsorted(negatives, last, side="right") - np.searchsorted(negatives, first)
    return np.asarray(np.minimum(1.0, inside * sample.share / near))

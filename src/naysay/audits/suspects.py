"""Suspected negatives: copies of a positive or the anchor, scores above a threshold, and the rows to review first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.audits._training_set import SetScores, TrainingSet
from naysay.audits.findings import RandomScores
from naysay.checks import public
from naysay.detectors.duplicates import REASONS, Duplicates
from naysay.detectors.thresholds import Thresholds, choose_thresholds
from naysay.mining.auto import calibrated
from naysay.mining.problem import FALSE_BAND, HARD_BAND
from naysay.search._scores import pair_scores
from naysay.search.vectors import Vectors
from naysay.types import Negatives, Query

Reasons = NDArray[np.int8]  # places in KINDS
# Why a negative is suspected, one reason each. "unchecked": the second reviewer was not asked about a yes.
KINDS = (*REASONS, "reviewed", "unchecked", "score")
REVIEWED = KINDS.index("reviewed")
UNCHECKED = KINDS.index("unchecked")
BY_SCORE = KINDS.index("score")
# False without doubt: the set itself calls the pair positive, or the texts are equal.
PROVEN = ("positive", "anchor", "same text")
NEAR = ("near text", "near vector")
COPIES = (*NEAR, "transitive")
_COSINE = 0.98  # the default threshold of `Duplicates`
_SIGNATURE = 64  # hash functions for near texts: 264 bytes per text
_SLOTS = 1 << 20  # slots in a block
_ORDER = tuple(KINDS.index(name) for name in (*PROVEN, "reviewed", *COPIES, "unchecked", "score"))  # the surest first


def copies(given: TrainingSet) -> Reasons:
    """Return (n, k) int8: the reason in `REASONS` that makes a slot a copy, 0 for none; see `detectors.Duplicates`.

    "positive": the set calls it a positive of the same anchor. "anchor", "same text": its folded text is that of the
    anchor, or of a positive. "near text": nearly so. "transitive": a positive of another anchor that shares a positive
    with this one. Cost: a pass over the texts, then blocks of rows.
    """
    duplicates = Duplicates(
        item_texts=given.corpus_texts,
        anchor_texts=given.query_texts if given.corpus_texts is not None else None,
        positives=given.positives,
        transitive=0.5,
        signature=_SIGNATURE,
    )
    reasons = np.zeros(given.ids.shape, np.int8)
    step = max(1, _SLOTS // max(1, given.ids.shape[1]))
    for start in range(0, len(reasons), step):
        part = slice(start, start + step)
        query = Query(np.arange(len(reasons))[part])
        negatives = Negatives(given.ids[part])
        suspected = duplicates.suspicion(query, negatives) >= 0.5
        reasons[part] = np.where(suspected, duplicates.reasons(query, negatives), np.int8(0))
    return reasons


def with_near_vectors(reasons: Reasons, given: TrainingSet, scores: SetScores, corpus: Vectors) -> Reasons:
    """Add "near vector" to slots without a reason whose vector has a cosine of 0.98 or more with a positive's.

    The cosine scores of two such vectors differ by at most |x - y| = sqrt(2 - 2 * 0.98) = 0.2 for any anchor, so most
    pairs need no check. Cost: O(d) for each of the others.
    """
    anchors, items = given.positives.pairs()
    result = reasons.copy()
    step = max(1, _SLOTS // max(1, reasons.shape[1]))
    for start in range(0, len(anchors), step):
        part = slice(start, start + step)
        rows = anchors[part]
        gap = np.abs(scores.negatives[rows] - scores.positives[part, None])  # NaN where there is no negative
        pair, slot = np.nonzero((gap <= np.sqrt(2 - 2 * _COSINE) + 1e-5) & (result[rows] == 0))
        negatives = given.ids[rows[pair], slot]
        is_near = pair_scores(corpus, corpus, items[part][pair], negatives, "cosine") >= _COSINE
        result[rows[pair[is_near]], slot[is_near]] = REASONS.index("near vector")
    return result


def count_reasons(reasons: Reasons) -> dict[str, int]:
    """Return {reason: slots}, without reasons that do not occur."""
    counts = np.bincount(reasons.ravel(), minlength=len(KINDS)).tolist()
    return {name: count for name, count in zip(KINDS[1:], counts[1:], strict=True) if count}


def is_proven(reasons: Reasons) -> NDArray[np.bool_]:
    """(n, k): slots that are false without doubt."""
    return np.isin(reasons, [REASONS.index(name) for name in PROVEN])


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreThreshold:
    """The score from which a negative is suspected."""

    value: float  # infinity if none is
    rule: str  # the same in a sentence
    suggested: Mapping[str, float]  # {"half false", "calibrated", "low", "high"}, those that are known
    bands: Thresholds | None  # the choice of "low" and "high", by shares of random pairs


def score_threshold(
    scores: SetScores | None, random: RandomScores | None, alpha: float, half: float | None
) -> ScoreThreshold:
    """A negative is suspected from `half` on, where half of the negatives are false by estimate; None if unknown.

    A calibrated threshold bounds the recall of a filter, and is only suggested: most negatives above it may be true.
    """
    if scores is None:
        return ScoreThreshold(np.inf, "No negative is suspected by its score: there are no scores.", {}, None)
    suggested, bands = {}, None
    if half is not None and np.isfinite(half):
        suggested["half false"] = half
    detector: Any = calibrated(alpha, scores.one_positive_each.astype(np.float64))
    if detector is not None:
        suggested["calibrated"] = float(detector.high)
    if random is not None and np.ptp(random.scores[random.filled]) > 0:
        bands = choose_thresholds(random.scores[random.filled], false_share=FALSE_BAND, hard_share=HARD_BAND)
        suggested |= {"low": float(bands.low), "high": float(bands.high)}
    if half is None:
        rule = "No negative is suspected by its score: how many are false cannot be told."
    elif np.isfinite(half):
        rule = f"Score {half:.4g} or higher: at least half of these negatives are false by estimate."
    else:
        rule = "No negative is suspected by its score: at no score are half of them false by estimate."
    return ScoreThreshold(np.inf if half is None else half, rule, suggested, bands)


@final
@public
@dataclass(frozen=True, slots=True)
class Worst:
    """A negative to review: it is likely false.

    Args:
        anchor: Row of the anchor.
        positive: Row of the anchor's first positive, -1 if it has none.
        negative: Row of the negative.
        score: Score of the negative, NaN if there is none.
        positive_score: Score of the positive, NaN if there is none.
        reason: One of `Duplicates.reason_names`, "reviewed", "unchecked", "score", "none".
        anchor_text: Text, or else name, or else row number, of the anchor.
        positive_text: The same of the positive; empty if there is none.
        negative_text: The same of the negative.

    Example: see `audit`.
    """

    anchor: int
    positive: int
    negative: int
    score: float
    positive_score: float
    reason: str
    anchor_text: str
    positive_text: str
    negative_text: str


def worst_rows(given: TrainingSet, scores: SetScores | None, reasons: Reasons, top: int) -> tuple[Worst, ...]:
    """Return at most one negative per anchor, and as many of each kind as there is place for.

    Kinds are the reasons: proven ones first, then reviewed ones, copies, and by score. They take turns, each with its
    highest score, then the lowest anchor; slots without a reason come in only if there are fewer others. O(slots) per
    kind.
    """
    values = np.full(given.ids.shape, -np.inf) if scores is None else np.nan_to_num(scores.negatives, nan=-np.inf)
    filled = given.ids >= 0
    unsuspected = filled & (reasons == 0) & (values > -np.inf)
    masks = [filled & (reasons == kind) for kind in _ORDER]
    chosen = _in_turns([_best_slots(values, mask, 2 * top) for mask in masks], top)
    if len(chosen) < top:
        taken = {row for row, _ in chosen}
        others = [place for place in _best_slots(values, unsuspected, 2 * top) if place[0] not in taken]
        chosen += others[: top - len(chosen)]
    return tuple(_worst(given, scores, reasons, row, slot) for row, slot in chosen)


def _best_slots(values: NDArray[np.floating[Any]], mask: NDArray[np.bool_], most: int) -> list[tuple[int, int]]:
    """(anchor, slot) of the highest value of each anchor in a mask, the highest first; at most so many."""
    rows = np.flatnonzero(mask.any(axis=1))
    own = np.where(mask[rows], values[rows], -np.inf)
    slots = np.where(np.isneginf(own).all(axis=1), mask[rows].argmax(axis=1), own.argmax(axis=1))
    best = values[rows, slots]
    order = np.lexsort((rows, -best))[:most]  # half of them may be anchors that another kind has taken
    return list(zip(rows[order].tolist(), slots[order].tolist(), strict=True))


def _in_turns(kinds: list[list[tuple[int, int]]], top: int) -> list[tuple[int, int]]:
    """At most `top` (anchor, slot) of several kinds, one of each at a time, grouped by kind; no anchor twice."""
    found: list[list[tuple[int, int]]] = [[] for _ in kinds]
    queues = [iter(kind) for kind in kinds]
    used: set[int] = set()
    open_kinds = list(range(len(kinds)))
    while open_kinds and len(used) < top:
        for kind in list(open_kinds):
            place = next((place for place in queues[kind] if place[0] not in used), None)
            if place is None:
                open_kinds.remove(kind)
            elif len(used) < top:
                used.add(place[0])
                found[kind].append(place)
    return [place for kind in found for place in kind]


def _worst(given: TrainingSet, scores: SetScores | None, reasons: Reasons, row: int, slot: int) -> Worst:
    first, last = given.positives.indptr[row], given.positives.indptr[row + 1]
    positive = int(given.positives.indices[first]) if last > first else -1
    negative = int(given.ids[row, slot])
    score = float("nan") if scores is None else float(scores.negatives[row, slot])
    return Worst(
        anchor=row,
        positive=positive,
        negative=negative,
        score=score,
        positive_score=float("nan") if scores is None or positive < 0 else float(scores.positives[first]),
        reason=KINDS[reasons[row, slot]],
        anchor_text=given.query_label(row),
        positive_text=given.corpus_label(positive) if positive >= 0 else "",
        negative_text=given.corpus_label(negative),
    )

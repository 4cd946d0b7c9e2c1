"""Negatives that are the positive, or the anchor, under another id: what needs no score to be doubted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.auditing._scored import Scored
from naysay.auditing._training_set import TrainingSet
from naysay.detectors.duplicates import REASONS, Duplicates
from naysay.search._pair_scores import pair_scores
from naysay.search.vectors import Vectors
from naysay.types import Negatives, Query

Reasons = NDArray[np.int8]
NAMES = REASONS
# Without a doubt: the set itself calls the pair positive, or it is the anchor or the positive word for word.
PROVEN = tuple(REASONS.index(name) for name in ("positive", "anchor", "same text"))
_NEAR = REASONS.index("near vector")
_COSINE = 0.98  # the line of `Duplicates`
_SIGNATURE = 64  # hash functions for near texts: 264 bytes a text
_SLOTS = 1 << 20


def copies(found: TrainingSet) -> Reasons:
    """(n, k) int8: which of `NAMES` a slot is doubted for, 0 for none; see `detectors.Duplicates`.

    "positive": the set calls it a positive of the same anchor. "anchor", "same text": once folded, its text is that of
    the anchor, or of a positive. "near text": nearly so. "transitive": a positive of another anchor that shares a
    positive with this one. Cost: a pass over the texts; a block of rows at a time after that.
    """
    duplicates = Duplicates(
        item_texts=found.corpus_texts,
        anchor_texts=found.query_texts if found.corpus_texts is not None else None,
        positives=found.positives,
        transitive=0.5,
        signature=_SIGNATURE,
    )
    reasons = np.zeros(found.ids.shape, np.int8)
    step = max(1, _SLOTS // max(1, found.ids.shape[1]))
    for start in range(0, len(reasons), step):
        part = slice(start, start + step)
        query = Query(np.arange(len(reasons))[part])
        negatives = Negatives(found.ids[part])
        doubted = duplicates.suspicion(query, negatives) >= 0.5
        reasons[part] = np.where(doubted, duplicates.reasons(query, negatives), np.int8(0))
    return reasons


def with_near_vectors(reasons: Reasons, found: TrainingSet, scored: Scored, corpus: Vectors) -> Reasons:
    """The same, with slots that have no reason yet and whose vector has a cosine of 0.98 or more with a positive's.

    Args:
        scored: By cosine: the scores of two such vectors differ by at most |x - y| = sqrt(2 - 2 * 0.98) = 0.2 for
            any anchor, so that most pairs need no look. Cost: O(d) for each of the others.
    """
    whose, which = found.positives.pairs()
    result = reasons.copy()
    step = max(1, _SLOTS // max(1, reasons.shape[1]))
    for start in range(0, len(whose), step):
        part = slice(start, start + step)
        rows = whose[part]
        gap = np.abs(scored.negatives[rows] - scored.positives[part, None])  # NaN where there is no negative
        pair, slot = np.nonzero((gap <= np.sqrt(2 - 2 * _COSINE) + 1e-5) & (result[rows] == 0))
        items = found.ids[rows[pair], slot]
        near = pair_scores(corpus, corpus, which[part][pair], items, "cosine") >= _COSINE
        result[rows[pair[near]], slot[near]] = _NEAR
    return result


def counted(reasons: Reasons) -> dict[str, int]:
    """{reason: slots}, of reasons that there are."""
    counts = np.bincount(reasons.ravel(), minlength=len(NAMES)).tolist()
    return {name: count for name, count in zip(NAMES[1:], counts[1:], strict=True) if count}


def proven(reasons: Reasons) -> NDArray[np.bool_]:
    """(n, k): slots that are false without a doubt."""
    return np.isin(reasons, PROVEN)

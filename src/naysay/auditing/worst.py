"""The negatives that most deserve a look: at most one of an anchor, with the texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.auditing._copies import NAMES, Reasons, proven
from naysay.auditing._scored import Scored
from naysay.auditing._training_set import TrainingSet


@final
@dataclass(frozen=True, slots=True)
class Worst:
    """A negative that is likely false.

    Args:
        anchor: Rows; positive is the anchor's first, -1 if it has none.
        positive: Rows; positive is the anchor's first, -1 if it has none.
        negative: Rows; positive is the anchor's first, -1 if it has none.
        score: NaN where there is none.
        positive_score: NaN where there is none.
        reason: Why it is doubted: one of `Duplicates.reason_names`, "score", or "none".
        anchor_text: Their texts, or else their names, or else their row numbers.
        positive_text: Their texts, or else their names, or else their row numbers.
        negative_text: Their texts, or else their names, or else their row numbers.
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


def worst(found: TrainingSet, scored: Scored | None, reasons: Reasons, high: float, top: int) -> tuple[Worst, ...]:
    """The `top` worst: proven ones first, then copies, then by score; of equal ones the lower anchor.

    Args:
        high: The score from which on one is suspected; inf without scores. O(slots), and a sort of the anchors.
    """
    level = np.where(proven(reasons), 2, 1) * (reasons > 0)
    scores = np.full(found.ids.shape, -np.inf) if scored is None else np.nan_to_num(scored.negatives, nan=-np.inf)
    highest = level.max(axis=1, initial=0)
    slot = np.where(level == highest[:, None], scores, -np.inf).argmax(axis=1)
    rows = np.arange(len(slot))
    unscored = level[rows, slot] != highest  # where no slot of the highest level has a score
    slot = np.where(unscored, (level == highest[:, None]).argmax(axis=1), slot)
    best = scores[rows, slot]
    doubted = np.flatnonzero((found.ids[rows, slot] >= 0) & ((highest > 0) | (best > -np.inf)))
    order = doubted[np.lexsort((doubted, -best[doubted], -highest[doubted]))][:top]
    return tuple(_worst(found, scored, reasons, high, int(row), int(slot[row])) for row in order.tolist())


def _worst(found: TrainingSet, scored: Scored | None, reasons: Reasons, high: float, row: int, slot: int) -> Worst:
    first, last = found.positives.indptr[row], found.positives.indptr[row + 1]
    positive = int(found.positives.indices[first]) if last > first else -1
    negative = int(found.ids[row, slot])
    score = float("nan") if scored is None else float(scored.negatives[row, slot])
    known = float("nan") if scored is None or positive < 0 else float(scored.positives[first])
    reason = NAMES[reasons[row, slot]]
    if reason == "none" and score >= high:
        reason = "score"
    corpus = (found.corpus_texts, found.corpus_names)
    return Worst(
        row,
        positive,
        negative,
        score,
        known,
        reason,
        called(row, found.query_texts, found.query_names),
        called(positive, *corpus) if positive >= 0 else "",
        called(negative, *corpus),
    )


def called(row: int, texts: Any, names: Any) -> str:
    """What to show for a row: its text, its name, or its number."""
    for kind in (texts, names):
        if kind is not None:
            return str(kind[row])
    return f"row {row}"

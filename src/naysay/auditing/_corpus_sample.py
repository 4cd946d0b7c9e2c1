"""A look at the corpus: some anchors against all of it, or against an even part, as uniform negatives score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.auditing._scored import Scored
from naysay.kernels import dots
from naysay.kernels.threads import in_rows
from naysay.positives import Positives
from naysay.search._pair_scores import METRICS, taken
from naysay.search.vectors import Vectors

_PAIRS, _ROWS, _ANCHORS = 1 << 22, 1 << 14, 2048  # at most: pairs, documents for an anchor, anchors


@final
@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Scores of uniform candidates that are not known of their anchor.

    Args:
        anchors: (b,) ascending: anchors with a scored positive, drawn without replacement.
        scores: (b, m) float32 of the same m documents for all.
        free: (b, m): candidates; the others are known positives.
        positives: (b,) the score of one positive of each anchor.
        corpus: N, the documents there are.
    """

    anchors: NDArray[np.int64]
    scores: NDArray[np.float32]
    free: NDArray[np.bool_]
    positives: NDArray[np.float32]
    corpus: int

    @property
    def share(self) -> float:
        """The part of the corpus that was looked at, m / N."""
        return float(self.scores.shape[1]) / self.corpus


def look(
    queries: Vectors, corpus: Vectors, known: Positives, scored: Scored, metric: str, rng: np.random.Generator
) -> Look | None:
    """Score at most 2^22 pairs: up to 2,048 anchors with up to 16,384 documents; None where nothing can be compared.

    Args:
        known: Positives as `Positives` of the size of the corpus. An anchor of which all documents are known is
            left out.
    """
    if len(scored.one) == 0:
        return None
    size = min(corpus.n, _ROWS)
    count = min(len(scored.one), _ANCHORS, max(1, _PAIRS // size))
    chosen = scored.one[np.sort(rng.choice(len(scored.one), count, replace=False))]
    anchors = scored.anchors[chosen]
    items = np.arange(corpus.n) if size == corpus.n else np.sort(rng.choice(corpus.n, size, replace=False))
    sides = [frozen(taken(side, ids)) for side, ids in ((queries, anchors), (corpus, items))]
    norms = []
    for side in sides:
        length = np.empty(len(side))
        in_rows(dots.norms, len(side), side.size, side, length)
        norms.append(frozen(length))
    scores = np.empty((count, size), np.float32)
    code = METRICS[metric]
    in_rows(dots.all_scores, count, sides[0].size * size, code, sides[0], norms[0], sides[1], norms[1], scores)
    free = ~known.contains(np.repeat(anchors, size), np.tile(items, count)).reshape(count, size)
    open_ones = free.any(axis=1)
    if not open_ones.any():
        return None
    own = scored.positives[chosen]
    return Look(anchors[open_ones], scores[open_ones], free[open_ones], own[open_ones], corpus.n)

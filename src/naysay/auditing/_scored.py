"""The scores of a training set: of each negative, and of each positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.auditing._training_set import Ids, TrainingSet
from naysay.checks import as_array, first_bad, raise_invalid
from naysay.detectors.hold_out import one_per_anchor
from naysay.search._pair_scores import pair_scores
from naysay.search.vectors import Vectors

Scores = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scores beside the ids of a `TrainingSet`.

    Args:
        negatives: (n, k) float32; NaN where the slot is empty or has no score.
        positives: (pairs,) float32 beside positives.pairs(); NaN where there is none.
        anchors: (pairs,) whose positives these are.
        one: Places of one scored positive of each anchor that has some, taken at random.
    """

    negatives: Scores
    positives: Scores
    anchors: Ids
    one: Ids

    @property
    def filled(self) -> NDArray[np.bool_]:
        """(n, k): slots with a score."""
        return ~np.isnan(self.negatives)


def by_vectors(found: TrainingSet, queries: Vectors, corpus: Vectors, metric: str, rng: np.random.Generator) -> Scored:
    """All pairs of the set, by the kernel that scores everything. O(d) a pair."""
    anchors, slots = np.nonzero(found.ids >= 0)
    negatives = np.full(found.ids.shape, np.nan, np.float32)
    negatives[anchors, slots] = pair_scores(queries, corpus, anchors, found.ids[anchors, slots], metric)
    whose, which = found.positives.pairs()
    return _scored(negatives, pair_scores(queries, corpus, whose, which, metric), whose, rng)


def as_given(found: TrainingSet, scores: Any, positive_scores: Any, rng: np.random.Generator) -> Scored | None:
    """The scores that the caller hands in, or else those of the set; None where there are none of negatives."""
    whose, _ = found.positives.pairs()
    if scores is None:
        negatives, positives = found.scores, found.positive_scores
        if positive_scores is not None:
            raise_invalid("positive_scores", "given along with scores", "no scores")
    else:
        negatives = _read("scores", scores, found.ids.shape, found.ids >= 0)
        kept = np.ones(len(whose), np.bool_)
        positives = None if positive_scores is None else _read("positive_scores", positive_scores, whose.shape, kept)
    if negatives is None:
        return None
    negatives = np.where(found.ids >= 0, negatives, np.float32(np.nan))
    for name, values in (("scores", negatives), ("positive_scores", positives)):
        if values is not None and np.isinf(values).any():
            raise_invalid(name, "finite", first_bad(values, np.isinf(values)))
    if np.isnan(negatives).all():
        return None
    empty = np.full(len(whose), np.nan, np.float32)
    return _scored(negatives, empty if positives is None else positives, whose, rng)


def _read(parameter: str, values: Any, shape: tuple[int, ...], filled: NDArray[np.bool_]) -> Scores:
    """Scores (shape) of users, float32; what is not finite where there is a pair is refused."""
    array = as_array(parameter, to_numpy(values))
    if array.shape != shape:
        raise_invalid(parameter, f"of shape {shape}, like the set", f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    bad = ~np.isfinite(array.astype(np.float64)) & filled
    if bad.any():
        worst = array if array.ndim == 1 else array[np.arange(len(bad)), bad.argmax(axis=1)]
        raise_invalid(parameter, "finite", first_bad(worst, bad))
    return array.astype(np.float32)


def _scored(negatives: Scores, positives: Scores, anchors: Ids, rng: np.random.Generator) -> Scored:
    scored = np.flatnonzero(~np.isnan(positives))
    one = scored[one_per_anchor(anchors[scored], rng=rng)] if len(scored) else scored
    return Scored(negatives, positives, anchors, one)

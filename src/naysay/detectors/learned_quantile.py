"""LearnedQuantile: a threshold for each anchor that follows a quantile of its negatives during training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._state import Entry, read_state
from naysay.arrays import Floats, for_checkpoints
from naysay.checks import MOST_ROWS, check_all, check_number, check_whole, public, raise_invalid, shown
from naysay.detectors._suspicion import (
    as_suspicion,
    by_distance,
    check_bounds,
    check_scored,
    filled_slots,
    query_anchors,
    slot_scores,
)
from naysay.text import described
from naysay.types import Array, Negatives, Query, check_query

_SLACK = 0.01  # of the width of the bounds: cosines of half precision are off by this much


@final
@public
class LearnedQuantile:
    """Suspect the top `alpha` of each anchor's negatives over the whole run: GloFND.

    Once a step `observe` moves the threshold c of each anchor of the batch by Adam on the pinball loss, whose minimum
    is the (1 - alpha)-quantile:

        g = alpha - share of the anchor's slots with s > c
        m = decay_1 m + (1 - decay_1) g,  v = decay_2 v + (1 - decay_2) g^2
        c = c - rate * (m / (1 - decay_1^t)) / (sqrt(v / (1 - decay_2^t)) + 1e-8), then clipped to the bounds

    t is the number of steps with this anchor. Rows of one anchor are one observation. Suspicion is that of `Margin`,
    with the threshold c. Pass `observe` what the sampler returned, before a policy drops suspects. alpha is a guess:
    every anchor loses that share.

    Balmaseda, Wang, Lin and Yang. Discovering Global False Negatives On the Fly for Self-supervised Contrastive
    Learning. ICML 2025. Its code puts the epoch in place of t, and of rows of one anchor the last one counts.

    Args:
        n_anchors: The number of anchors. Each has its own threshold.
        alpha: The share of an anchor's negatives that is taken to be false.
        rate: The step size of the thresholds.
        decay: The decay of the two running means of Adam.
        bounds: The range of the scores and thresholds. Thresholds start at the upper end, where nothing is suspected.
        start: The first step at which it learns. Before, suspicion is 0.

    Examples:
        >>> import naysay as ns
        >>> learned, rng = LearnedQuantile(1, alpha=0.1), np.random.default_rng(0)
        >>> for step in range(300):
        ...     seen = ns.Negatives(np.arange(100)[None], scores=rng.uniform(-0.5, 0.5, (1, 100)))
        ...     learned.observe(ns.Query([0], step=step), seen)
        >>> bool(abs(learned.thresholds[0] - 0.4) < 0.1)
        True
    """

    def __init__(
        self,
        n_anchors: int,
        alpha: float = 0.01,
        *,
        rate: float = 0.05,
        decay: tuple[float, float] = (0.9, 0.98),
        bounds: tuple[float, float] = (-1.0, 1.0),
        start: int = 0,
    ) -> None:
        self.n_anchors = check_whole("n_anchors", n_anchors, 1, MOST_ROWS)
        self.alpha = check_number("alpha", alpha, above=0, below=1)
        self.rate = check_number("rate", rate, above=0, finite=True)
        if not isinstance(decay, tuple | list) or len(decay) != 2:
            raise_invalid("decay", "two numbers", shown(decay))
        self.decay = tuple(check_number("decay", one, at_least=0, below=1) for one in decay)
        self.bounds = check_bounds(bounds)
        self.start = check_whole("start", start, 0)
        self._lock = Lock()
        self._thresholds = np.full(self.n_anchors, self.bounds[1])
        self._first, self._second = np.zeros(self.n_anchors), np.zeros(self.n_anchors)
        self._seen = np.zeros(self.n_anchors, np.int64)

    @property
    def thresholds(self) -> Floats:
        """(n_anchors,) the threshold of each anchor."""
        with self._lock:
            return self._thresholds.copy()

    @property
    def seen(self) -> NDArray[np.int64]:
        """(n_anchors,) the number of observations of each anchor."""
        with self._lock:
            return self._seen.copy()

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        check_query(query)
        with self._lock:
            return self._thresholds[self._anchors(query)]

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above its anchor's threshold; 0 before `start`."""
        check_scored(query, negatives)
        anchors, scores = self._anchors(query), self._scores(negatives)
        with self._lock:
            thresholds = self._thresholds[anchors]
        return as_suspicion(by_distance(scores, thresholds[:, None]) * (query.step >= self.start), negatives)

    def observe(self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Move the thresholds of the query's anchors by the scores of their negatives, once a step.

        Args:
            query: The query of the batch.
            negatives: What the sampler returned, with scores.
            positive_scores: Ignored, like `vectors`. Every part that learns takes both.
            vectors: Ignored.
        """
        check_scored(query, negatives)
        anchors, scores = self._anchors(query), self._scores(negatives)
        if query.step < self.start:
            return
        filled = filled_slots(negatives)
        rows = filled.any(axis=1)
        distinct, place = np.unique(anchors[rows], return_inverse=True)
        n_slots = np.bincount(place, filled[rows].sum(axis=1), len(distinct))
        with self._lock:
            above = ((scores > self._thresholds[anchors][:, None]) & filled)[rows].sum(axis=1)
            self._adam_step(distinct, self.alpha - np.bincount(place, above, len(distinct)) / n_slots)

    def _adam_step(self, anchors: NDArray[np.int64], gradient: Floats) -> None:
        """One step of Adam for the thresholds of these anchors, each of them once."""
        first_decay, second_decay = self.decay
        self._seen[anchors] += 1
        self._first[anchors] = first_decay * self._first[anchors] + (1 - first_decay) * gradient
        self._second[anchors] = second_decay * self._second[anchors] + (1 - second_decay) * gradient**2
        times = self._seen[anchors]
        mean = self._first[anchors] / (1 - first_decay**times)
        spread = np.sqrt(self._second[anchors] / (1 - second_decay**times))
        moved = self._thresholds[anchors] - self.rate * mean / (spread + 1e-8)
        self._thresholds[anchors] = np.clip(moved, *self.bounds)

    def _anchors(self, query: Query) -> NDArray[np.int64]:
        return query_anchors(query, self.n_anchors, advice="Number the triples, and pass that.")

    def _scores(self, negatives: Negatives) -> Floats:
        """(B, K) scores clipped to the bounds, 0 where a slot is empty. More than rounding outside is an error."""
        low, high = self.bounds
        slack = _SLACK * (high - low)
        scores = slot_scores(negatives)
        good = ((scores >= low - slack) & (scores <= high + slack)) | ~filled_slots(negatives)
        advice = "Pass `bounds`, (lowest, highest), for scores that are no cosines."
        check_all("negatives.scores", scores, good, f"between {low:g} and {high:g}", advice)
        return np.clip(scores, low, high)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that was learnt. Settings are not in it."""
        with self._lock:
            return {name: getattr(self, f"_{name}").copy() for name in ("thresholds", "first", "second", "seen")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if it does not fit."""
        shape = (self.n_anchors,)
        entries = {"thresholds": Entry(shape), "first": Entry(shape)}
        entries |= {"second": Entry(shape), "seen": Entry(shape, whole=True)}
        parts = read_state(state, entries).values()
        with self._lock:
            self._thresholds, self._first, self._second, self._seen = parts

    def __repr__(self) -> str:
        return described(self, f"{np.count_nonzero(self._seen):,} anchors seen")

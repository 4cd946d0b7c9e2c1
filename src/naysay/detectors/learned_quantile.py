"""LearnedQuantile: a threshold for each anchor that follows a quantile of its negatives during training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_number,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.detectors._slots import as_suspicion, by_distance, check_asked, filled_slots, slot_scores
from naysay.quantity.separation import Floats
from naysay.types import Array, Negatives, Query, anchor_ids, check_query

_PARTS = ("thresholds", "first", "second")
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

    t is the number of steps with this anchor. Rows of one anchor are one observation; rows without a negative are
    skipped. A score equal to the threshold is kept. Suspicion is 0.5 + 0.5 d / (1 + |d|), d = s - c, and just below 0.5
    at d = 0.

    Pass `observe` what the sampler returned, before a policy drops suspects: the quantile of what is left would keep
    falling (`Judged.observe` does it right). alpha is a guess: every anchor loses that share, whether it has false
    negatives or not. With K slots per row, shares below 1 / K take many steps to learn. A threshold moves by about
    `rate` per step, so it needs (distance / rate) observations of its anchor to come down, and then varies by as much.

    Cost: O(B K) per step, whatever the number of anchors; four numbers for each anchor.

    Balmaseda, Wang, Lin and Yang. Discovering Global False Negatives On the Fly for Self-supervised Contrastive
    Learning. ICML 2025. alpha, rate, decay and bounds are those of its script for images. Its code puts the epoch in
    place of t, which makes first steps larger or smaller by when an anchor comes, and of rows of one anchor the last
    one counts.

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
        self.n_anchors = check_whole("n_anchors", n_anchors, 1)
        self.alpha = check_number("alpha", alpha, above=0, below=1)
        self.rate = check_number("rate", rate, above=0, finite=True)
        self.decay, self.bounds = _pair("decay", decay), _pair("bounds", bounds)
        if not all(0 <= one < 1 for one in self.decay):
            raise_invalid("decay", "two numbers of at least 0 and below 1", shown(decay))
        if not (np.isfinite(self.bounds).all() and self.bounds[0] < self.bounds[1]):
            raise_invalid("bounds", "finite, the lower first", shown(bounds))
        self.start = check_whole("start", start, 0)
        self._thresholds = np.full(self.n_anchors, self.bounds[1])
        self._first, self._second = np.zeros(self.n_anchors), np.zeros(self.n_anchors)
        self._seen = np.zeros(self.n_anchors, np.int64)

    @property
    def thresholds(self) -> Floats:
        """(n_anchors,) the threshold of each anchor."""
        return self._thresholds.copy()

    @property
    def seen(self) -> NDArray[np.int64]:
        """(n_anchors,) the number of observations of each anchor."""
        return self._seen.copy()

    def threshold(self, query: Query) -> Floats:
        """(B,) the highest score that a negative of each row may have."""
        check_query(query)
        return self._thresholds[self._anchors(query)]

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 where a score is above its anchor's threshold; 0 before `start`."""
        check_asked(query, negatives)
        anchors, scores = self._anchors(query), self._scores(negatives)
        found = by_distance(scores, self._thresholds[anchors][:, None])
        return as_suspicion(found if query.step >= self.start else np.zeros(scores.shape), negatives)

    def observe(self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Move the thresholds of the query's anchors by the scores of their negatives, once a step.

        Args:
            query: The query of the batch.
            negatives: What the sampler returned, with scores.
            positive_scores: Ignored. Every part that learns takes it.
            vectors: Ignored, likewise.

        Raises:
            NaysayError: If scores are missing or outside the bounds, or an anchor is out of range.
        """
        check_asked(query, negatives)
        anchors, scores = self._anchors(query), self._scores(negatives)
        if query.step < self.start:
            return
        filled = filled_slots(negatives)
        rows = filled.any(axis=1)
        above = ((scores > self._thresholds[anchors][:, None]) & filled)[rows].sum(axis=1)
        who, place = np.unique(anchors[rows], return_inverse=True)
        slots = np.bincount(place, filled[rows].sum(axis=1), len(who))
        self._step(who, self.alpha - np.bincount(place, above, len(who)) / slots)

    def _step(self, who: NDArray[np.int64], slope: Floats) -> None:
        """One step of Adam for the thresholds of these anchors, each of them once."""
        one, two = self.decay
        self._seen[who] += 1
        self._first[who] = one * self._first[who] + (1 - one) * slope
        self._second[who] = two * self._second[who] + (1 - two) * slope**2
        times = self._seen[who]
        mean, spread = self._first[who] / (1 - one**times), np.sqrt(self._second[who] / (1 - two**times))
        self._thresholds[who] = np.clip(self._thresholds[who] - self.rate * mean / (spread + 1e-8), *self.bounds)

    def _anchors(self, query: Query) -> NDArray[np.int64]:
        anchors = anchor_ids(query)
        if anchors.ndim != 1:
            raise_invalid(
                "query.anchors", "of shape (B,)", f"shape {anchors.shape}", "Number the triples, and pass that."
            )
        check_range("query.anchors", anchors, self.n_anchors, "anchors")
        return anchors

    def _scores(self, negatives: Negatives) -> Floats:
        """(B, K) scores clipped to the bounds, 0 where a slot is empty. More than rounding outside is an error."""
        low, high = self.bounds
        slack = _SLACK * (high - low)
        scores = slot_scores(negatives)
        bad = ((scores < low - slack) | (scores > high + slack)) & filled_slots(negatives)
        if bad.any():
            worst = scores[np.arange(len(bad)), bad.argmax(axis=1)]
            advice = "Pass `bounds`, (lowest, highest), for scores that are no cosines."
            raise_invalid("negatives.scores", f"between {low:g} and {high:g}", first_bad(worst, bad), advice)
        return np.clip(scores, low, high)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that was learnt. Settings are not in it."""
        parts = (self._thresholds, self._first, self._second)
        return {**{name: part.copy() for name, part in zip(_PARTS, parts, strict=True)}, "seen": self._seen.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if it does not fit."""
        if not isinstance(state, Mapping) or not {*_PARTS, "seen"} <= set(state):
            raise_invalid("state", "what LearnedQuantile.state returned", shown(state))
        parts = [as_array(name, to_numpy(state[name])) for name in _PARTS]
        seen = whole_numbers("seen", to_numpy(state["seen"]))
        for name, part in zip((*_PARTS, "seen"), (*parts, seen), strict=True):
            if part.shape != (self.n_anchors,) or part.dtype.kind not in "iuf":
                raise_invalid(name, f"numbers of shape ({self.n_anchors},)", f"{part.dtype} of shape {part.shape}")
        low, high = self.bounds
        for name, part, good, rule in (
            ("thresholds", parts[0], (parts[0] >= low) & (parts[0] <= high), f"between {low:g} and {high:g}"),
            ("first", parts[1], np.isfinite(parts[1]), "finite"),
            ("second", parts[2], np.isfinite(parts[2]) & (parts[2] >= 0), "finite and at least 0"),
            ("seen", seen, seen >= 0, "at least 0"),
        ):
            if not good.all():
                raise_invalid(name, rule, first_bad(part, ~good))
        self._thresholds, self._first, self._second = (part.astype(np.float64) for part in parts)
        self._seen = seen.astype(np.int64)

    def __repr__(self) -> str:
        seen = f"{np.count_nonzero(self._seen):,} of {self.n_anchors:,} anchors seen"
        return f"LearnedQuantile({seen}, alpha={self.alpha:g}, rate={self.rate:g}, start={self.start})"


def _pair(name: str, values: Any) -> tuple[float, float]:
    """Two numbers."""
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise_invalid(name, "two numbers", shown(values))
    first, second = (check_number(name, value) for value in values)
    return first, second

"""Guide: a second, more expensive model that rescores the slots where it matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._slots import partners
from naysay._state import Entry, joined_states, read_state, split_states
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    check_all,
    check_bool,
    check_number,
    check_one_of,
    check_whole,
    is_number,
    public,
    raise_invalid,
    shown,
)
from naysay.detectors._pairs import STATE as CACHE_STATE
from naysay.detectors._pairs import (
    Floats,
    OfPairs,
    Pairs,
    ScoreCache,
    check_each,
    numbers_of,
    pair_name,
    read_cache,
    slot_pairs,
)
from naysay.detectors._slots import (
    SUSPICION_THRESHOLD,
    as_suspicion,
    by_log_odds,
    by_probability,
    check_query_and_negatives,
    filled_slots,
    is_detector,
    on_its_side,
    slot_scores,
    suspicion_of,
    threshold_of,
)
from naysay.text import described
from naysay.types import Array, Detector, Negatives, Query, Stateful

OUTPUTS = ("scores", "probabilities")
_COUNTS = {name: Entry(whole=True) for name in ("n_scored", "n_changed")}


@final
@public
class Guide:
    """Rescore candidates with a better model: a cross-encoder, a reranker, a person.

    Slots that are not rescored keep the first suspicion: that of the detector `first`, or 1 / (1 + exp(first - score))
    if `first` is a number. If `score_pairs` fails, the error names the pairs, and scores of earlier batches are kept.

    Cost: that of `score_pairs`, one call per `batch_size` pairs; a sort of the slots; with a cache, a sort of it too.

    Solatorio. GISTEmbed: Guided In-sample Selection of Training Negatives for Text Embedding Fine-tuning. 2024, which
    keeps a pair exactly at the threshold, as `margin` does.

    Args:
        score_pairs: score_pairs(anchors (n,), ids (n,)) -> (n,), higher is closer. It gets the array type of the
            query, runs without gradients, and never gets -1 or the same pair twice in a call. For triples it gets
            (n, 3) and (n, 3): the triples and the corrupted triples.
        threshold: A pair whose guide score is at least this is a false negative.
        margin: Used in place of `threshold`: a pair is a false negative if its guide score is above that of the row's
            positive less `margin`, or less margin * |score| if `relative`. The query must have positives. This is
            GIST's rule.
        relative: Whether the margin is relative.
        output: What score_pairs returns. "scores": any numbers; suspicion = 1 / (1 + exp(-(g - threshold) / scale)).
            "probabilities": from 0 to 1; logit suspicion = logit g - logit threshold, so g itself at threshold 0.5.
        scale: For scores, above 0: a score this far above the threshold has suspicion 0.73.
        first: The first suspicion: a threshold on `negatives.scores`, or another detector. Update a detector that
            learns by its own `observe`.
        max_distance: Rescore only slots within this distance of the first threshold: |score - first|, or
            |suspicion - 0.5| of a detector. None: any distance.
        budget: The largest number of pairs to score in one call, nearest to the first threshold first. None: no limit.
        total_budget: The largest number of pairs to score over all calls. None: no limit.
        batch_size: How many pairs score_pairs gets at once. A batch may span several rows.
        cache_size: How many scores to keep for later calls, newest first. Use 0 if the guide itself is in training.

    Attributes:
        n_scored: How many pairs were scored, including positives for a margin.
        n_changed: How many slots the guide moved across the threshold.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> guide = Guide(lambda anchors, ids: np.where(ids == 7, 3.0, -3.0), threshold=0.0, first=0.5, budget=2)
        >>> negatives = ns.Negatives(np.array([[7, 4, 9, -1]]), scores=np.array([[0.45, 0.6, 0.1, 0.0]]))
        >>> guide.suspicion(ns.Query([0]), negatives).round(2), guide.n_scored, guide.n_changed
        (array([[0.95, 0.05, 0.4 , 0.  ]]), 2, 2)
    """

    needs_main_process = True  # a copy would have a budget and a cache of its own

    def __init__(
        self,
        score_pairs: OfPairs,
        threshold: float | None = None,
        *,
        margin: float | None = None,
        relative: bool = False,
        output: str = "scores",
        scale: float = 1.0,
        first: float | Detector | None = None,
        max_distance: float | None = None,
        budget: int | None = None,
        total_budget: int | None = None,
        batch_size: int = 256,
        cache_size: int = 0,
    ) -> None:
        if not callable(score_pairs):
            raise_invalid("score_pairs", "a function score_pairs(anchors, ids)", type(score_pairs).__name__)
        check_one_of("output", output, OUTPUTS)
        if (threshold is None) == (margin is None):
            raise_invalid("threshold", "given, or `margin` in its place", "neither" if threshold is None else "both")
        self.relative = check_bool("relative", relative)
        if threshold is not None:
            low, high = (0, 1) if output == "probabilities" else (None, None)
            check_number("threshold", threshold, above=low, below=high, finite=output == "scores")
        if margin is not None:
            check_number("margin", margin, at_least=0, finite=True)
            if output != "scores":
                raise_invalid("output", "'scores' with a margin", output, "Probabilities are scores, too.")
        elif relative:
            raise_invalid("relative", "False without a margin", relative)
        if is_number(first):
            check_number("first", first, finite=True)
        elif first is not None and not is_detector(first):
            raise_invalid("first", "a finite number, or a detector", shown(first))
        for name, value in {"max_distance": max_distance, "budget": budget, "total_budget": total_budget}.items():
            if value is not None:
                if first is None:
                    raise_invalid("first", f"given with `{name}`, for the slots that are not rescored", None)
                check_number(name, value, at_least=0) if name == "max_distance" else check_whole(name, value, 0)
        self.score_pairs, self.output, self.first = score_pairs, output, first
        self.threshold, self.margin = threshold, margin
        self.scale = check_number("scale", scale, above=0, finite=True)
        self.max_distance, self.budget, self.total_budget = max_distance, budget, total_budget
        self.batch_size = check_whole("batch_size", batch_size, 1)
        self.cache_size = check_whole("cache_size", cache_size, 0)
        self.n_scored = self.n_changed = 0
        self._cache, self._lock = ScoreCache(), Lock()
        self._stateful: dict[str, Stateful] = {"first": first} if isinstance(first, Stateful) else {}

    @property
    def remaining(self) -> int | None:
        """How many pairs may still be scored; None without a total budget."""
        return None if self.total_budget is None else max(self.total_budget - self.n_scored, 0)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) in [0, 1]: the guide's suspicion where it scored the pair, else the first suspicion."""
        check_query_and_negatives(query, negatives)
        suspicion, distance = self._first_suspicion(query, negatives)
        limit = np.inf if self.max_distance is None else self.max_distance
        rows, slots = np.nonzero(filled_slots(negatives) & (distance <= limit))
        order = np.argsort(distance[rows, slots], kind="stable")
        rows, slots = rows[order], slots[order]
        pairs, places = self._needed(query, negatives, rows, slots)
        with self._lock:  # the budget is taken here, and what is not scored is given back
            scores = self._cache.look_up(pairs)
            wanted = self._affordable(places, ~np.isnan(scores))
            self.n_scored += len(wanted)
        scores[wanted] = self._score(query, pairs[wanted])
        scored = ~np.isnan(scores[places]).any(axis=1)  # includes slots beyond the budget whose scores are cached
        rows, slots = rows[scored], slots[scored]
        guided = self._guided(*scores[places[scored]].T)
        moved = (guided >= SUSPICION_THRESHOLD) != (suspicion[rows, slots] >= SUSPICION_THRESHOLD)
        suspicion[rows, slots] = guided
        with self._lock:
            self.n_changed += int(np.count_nonzero(moved)) if self.first is not None else 0
            self._cache.trim(self.cache_size)
        return as_suspicion(suspicion, negatives)

    def _first_suspicion(self, query: Query, negatives: Negatives) -> tuple[Floats, Floats]:
        """(B, K) the suspicion before rescoring, and the distance of each slot from the first threshold."""
        if self.first is None:
            return np.zeros(negatives.shape), np.zeros(negatives.shape)
        if isinstance(self.first, Detector):
            suspicion = suspicion_of("first", self.first, query, negatives)
            own = threshold_of(self.first)
            if own != SUSPICION_THRESHOLD:
                suspicion = by_probability(suspicion, own)
            return suspicion, np.abs(suspicion - SUSPICION_THRESHOLD)
        scores = slot_scores(negatives)
        return _logistic(scores, self.first), np.abs(scores - self.first)

    def _needed(
        self, query: Query, negatives: Negatives, rows: NDArray[Any], slots: NDArray[Any]
    ) -> tuple[Pairs, NDArray[np.int64]]:
        """The distinct pairs that slots need, and their indices: (S, 1) the slot's own, (S, 2) with its positive."""
        anchors, ids = slot_pairs(query, negatives, rows, slots)
        items = [ids]
        if self.margin is not None:
            items.append(anchors if anchors.ndim == 2 else np.asarray(to_numpy(partners(query)))[rows])
        needed = np.stack([np.stack([anchors, item], axis=1) for item in items], axis=1)  # (S, 1 or 2, 2, 1 or 3)
        width = 2 if anchors.ndim == 1 else 6
        pairs, places = np.unique(needed.reshape(-1, width), axis=0, return_inverse=True)
        return pairs, places.reshape(len(ids), len(items))

    def _affordable(self, places: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The pairs to score, in order: of the slots that the budgets allow. Cached and repeated ones are free."""
        flat = places.reshape(-1)
        first = np.sort(np.unique(flat, return_index=True)[1])
        first = first[~known[flat[first]]]  # where each pair that costs something comes first
        limits = [limit for limit in (self.budget, self.remaining) if limit is not None]
        if limits and places.size:
            fresh = np.zeros(len(flat), np.int64)
            fresh[first] = 1
            cost = np.cumsum(fresh).reshape(places.shape)[:, -1]
            first = first[first < np.searchsorted(cost, min(limits), side="right") * places.shape[1]]
        return flat[first]

    def _score(self, query: Query, pairs: Pairs) -> Floats:
        """Score pairs in batches. If one fails, scores of earlier ones stay cached, and the others are not counted."""
        batches: list[Floats] = [np.empty(0)]
        try:
            for start in range(0, len(pairs), self.batch_size):
                batches.append(self._score_batch(query, pairs[start : start + self.batch_size]))
        finally:
            scores = np.concatenate(batches)
            with self._lock:
                self.n_scored -= len(pairs) - len(scores)
                self._cache.add(pairs[: len(scores)], scores)
        return scores

    def _score_batch(self, query: Query, pairs: Pairs) -> Floats:
        """(n,) the checked scores of one batch."""
        n, half = len(pairs), pairs.shape[1] // 2
        kind = "finite numbers" if self.output == "scores" else "probabilities"
        rule = f"a function that returns {n} {kind} for {n} pairs"
        sides = (pairs[:, 0], pairs[:, 1]) if half == 1 else (pairs[:, :half], pairs[:, half:])
        scores = numbers_of("score_pairs", self.score_pairs, query, sides, rule)
        if scores.shape not in ((n,), (n, 1)):
            raise_invalid("score_pairs", rule, f"shape {scores.shape}, from {pair_name(sides, 0)} on")
        scores = scores.reshape(-1)
        good = np.isfinite(scores) if self.output == "scores" else (scores >= 0) & (scores <= 1)
        check_each("score_pairs", sides, scores, good, rule)
        return scores

    def _guided(self, scores: Floats, positives: Floats | None = None) -> Floats:
        """Suspicion from the guide's scores, and those of the positives if there is a margin."""
        if positives is not None:
            thresholds = positives - (self.margin or 0.0) * (np.abs(positives) if self.relative else 1.0)
            return on_its_side(_logistic(scores, thresholds, self.scale), scores > thresholds)
        threshold = self.threshold or 0.0
        if self.output == "scores":
            return _logistic(scores, threshold, self.scale)
        return by_probability(scores, threshold)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return the counts, the cached scores, and under "first/key" the state of the first detector."""
        first = joined_states(self._stateful)
        with self._lock:
            return {"n_scored": self.n_scored, "n_changed": self.n_changed, **self._cache.state(), **first}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Nothing changes if it does not fit."""
        first = [key for key in state if str(key).startswith("first/")] if isinstance(state, Mapping) else []
        counts = read_state(state, _COUNTS, (*CACHE_STATE, *first))
        cache = read_cache(state, (*_COUNTS, *first))
        if self.output == "probabilities":
            check_all("scores", cache.scores, (cache.scores >= 0) & (cache.scores <= 1), "from 0 to 1")
        states = split_states({key: state[key] for key in first}, self._stateful)
        for name, part in self._stateful.items():
            part.restore(states[name])
        with self._lock:
            self.n_scored, self.n_changed = (int(count) for count in counts.values())
            self._cache = cache

    def __repr__(self) -> str:
        return described(self, f"n_scored={self.n_scored}, n_changed={self.n_changed}")


def _logistic(scores: Floats, thresholds: Any, scale: float = 1.0) -> Floats:
    """1 / (1 + exp(-(score - threshold) / scale)), kept on the right side of 0.5."""
    with np.errstate(over="ignore"):
        return by_log_odds((scores - thresholds) / scale, scores >= thresholds)

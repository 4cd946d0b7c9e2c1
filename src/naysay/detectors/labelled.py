"""Labelled: a logistic regression fitted to candidates that were labelled by people or a judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import Floats, for_checkpoints
from naysay.checks import check_bool, check_number, public, raise_invalid
from naysay.detectors._posterior_model import Logistic
from naysay.detectors._suspicion import (
    OfPairs,
    Truth,
    as_suspicion,
    by_log_odds,
    check_each,
    check_function,
    check_query_and_negatives,
    check_scored,
    filled_slots,
    numbers_of,
    pair_name,
    slot_pairs,
    slot_scores,
    slot_truth,
)
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query

MIN_LABELS = 10  # of each kind
_MIN_L2 = 1e-6  # with less, collinear features have no unique weights
_TOLERANCE = 1e-12
_CONSTANT = 1e-12  # a feature that varies by less than this share of its largest value is constant
_STATE = {
    "centre": Entry(("features",)),
    "spread": Entry(("features",)),
    "weights": Entry(("weights",)),
    "labels": Entry((2,), whole=True),
}


@final
@public
class Labelled(MadeOf):
    """The probability that a candidate is a false negative, learned from labelled candidates.

    `fit` takes labelled slots and fits a logistic regression with an L2 penalty on the weights of the features:

        log P / (1 - P) = w . (1, z)                z the standardised features
        logit suspicion = log P / (1 - P) + log cost (+ logit false_share - logit of the share among the labels)

    At least 10 labels of each kind are required; `judge_some` returns both kinds.

    Platt. Probabilistic Outputs for Support Vector Machines. 1999 (a score made a probability by a logistic fit).

    Args:
        features: features(anchors (n,), ids (n,)) -> (n,) or (n, f) numbers: another model's scores, counts, lengths.
            It gets the array type of the query, runs without gradients and never gets -1. For triples it gets (n, 3)
            and (n, 3): the triples and the corrupted triples. None: scores only.
        scores: Whether `negatives.scores` is the first feature.
        l2: The L2 penalty, at least 1e-6.
        cost: Above 0: how many dropped true negatives are as bad as one false negative kept. Suspicion is 0.5 where
            the probability is 1 / (1 + cost): 0.5 for cost 1, 0.1 for cost 9.
        false_share: The share of false negatives among the candidates that will be judged, if the labelled sample
            was chosen to contain more of them. None: as in the labels.

    Examples:
        >>> import naysay as ns
        >>> rng = ns.rng_for(0)
        >>> labelled = ns.Negatives(rng.integers(0, 50, (40, 5)), scores=rng.normal(0, 1, (40, 5)))
        >>> detector = Labelled().fit(ns.Query(np.arange(40)), labelled, labelled.scores > 0.5)
        >>> negatives = ns.Negatives(np.array([[3, 7, -1]]), scores=np.array([[0.0, 0.9, 0.0]]))
        >>> detector.suspicion(ns.Query([0]), negatives).round(2)
        array([[0.07, 0.83, 0.  ]])
    """

    _made_of = ("features",)

    def __init__(
        self,
        *,
        features: OfPairs | None = None,
        scores: bool = True,
        l2: float = 1.0,
        cost: float = 1.0,
        false_share: float | None = None,
    ) -> None:
        check_function("features", features, "a function features(anchors, ids)")
        self.features, self.scores = features, check_bool("scores", scores)
        if not scores and features is None:
            raise_invalid("features", "given if `scores` is False", None, "There is nothing to learn from.")
        self.l2 = check_number("l2", l2, at_least=_MIN_L2, finite=True)
        self.cost = check_number("cost", cost, above=0, finite=True)
        self.false_share = None
        if false_share is not None:
            self.false_share = check_number("false_share", false_share, above=0, below=1)
        self._learnt: _Fit | None = None

    def fit(self, query: Query, negatives: Negatives, truth: Truth) -> Labelled:
        """Fit the weights to labelled slots, and return self.

        Args:
            query: The rows that were labelled.
            negatives: Their slots. Empty slots have no label.
            truth: (B, K) bool, whether a slot holds a false negative; or another form of it, as for `evaluate`.
        """
        check_query_and_negatives(query, negatives)
        known = slot_truth(query, negatives, truth)
        rows, slots = np.nonzero(known.known)
        labels = known.false[rows, slots]
        n_false = int(labels.sum())
        if min(n_false, len(labels) - n_false) < MIN_LABELS:
            got = f"{n_false} false negatives among {len(labels)} labelled slots"
            raise_invalid("truth", f"labels of at least {MIN_LABELS} slots of each kind", got, "Label more.")
        features = self._features(query, negatives, rows, slots)
        centre, spread = _scales(features)
        design = _design(features, centre, spread)
        no_weights = np.zeros(design.shape[1])
        penalty = self.l2 * np.eye(len(no_weights))
        penalty[0, 0] = 0.0  # the constant is free
        fit = Logistic(design, labels.astype(np.float64), (~labels).astype(np.float64), penalty, no_weights)
        weights = fit.fit(no_weights, tolerance=_TOLERANCE)
        self._learnt = _Fit(centre, spread, weights, np.array([n_false, len(labels)]))
        return self

    @property
    def n(self) -> int:
        """The number of labels, 0 before `fit`."""
        return 0 if self._learnt is None else int(self._learnt.labels[1])

    @property
    def weights(self) -> Floats:
        """(f + 1,) the weights, of the constant first, then of each standardised feature."""
        return self._fitted().weights.copy()

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): the probability of a false negative, shifted by `cost` and `false_share`."""
        check_query_and_negatives(query, negatives)
        fit = self._fitted()
        rows, slots = np.nonzero(filled_slots(negatives))
        suspicion = np.zeros(negatives.shape)
        if len(rows):
            features = self._features(query, negatives, rows, slots)
            if features.shape[1] != len(fit.centre):
                rule = f"a function that returns {len(fit.centre) - self.scores} numbers a pair, as in `fit`"
                raise_invalid("features", rule, features.shape[1] - self.scores)
            shift = math.log(self.cost)
            if self.false_share is not None:
                n_false, n = fit.labels.tolist()
                shift += math.log(self.false_share / (1 - self.false_share)) - math.log(n_false / (n - n_false))
            # Each row is summed by itself, so that no row's result depends on the others.
            log_odds = (_design(features, fit.centre, fit.spread) * fit.weights).sum(axis=1) + shift
            suspicion[rows, slots] = by_log_odds(log_odds, log_odds >= 0)
        return as_suspicion(suspicion, negatives)

    def _features(self, query: Query, negatives: Negatives, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> Floats:
        """(S, f) the features of some slots, the score first."""
        parts = []
        if self.scores:
            check_scored(query, negatives)
            parts.append(slot_scores(negatives)[rows, slots][:, None])
        if self.features is not None:
            sides, n = slot_pairs(query, negatives, rows, slots), len(rows)
            rule = f"a function that returns finite numbers of shape ({n},) or ({n}, f) for {n} pairs"
            values = numbers_of("features", self.features, query, sides, rule)
            if values.ndim not in (1, 2) or len(values) != n or (values.ndim == 2 and values.shape[1] == 0):
                raise_invalid("features", rule, f"shape {values.shape}, from {pair_name(sides, 0)} on")
            check_each("features", sides, values, np.isfinite(values), rule)
            parts.append(values.reshape(n, -1))
        return np.concatenate(parts, axis=1)

    def _fitted(self) -> _Fit:
        if self._learnt is None:
            raise_invalid("truth", "fitted before", "no labels", "Call fit(query, negatives, truth).")
        return self._learnt

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The fitted weights; empty before `fit`. Settings and features are not included."""
        return {} if self._learnt is None else {name: part.copy() for name, part in self._learnt._asdict().items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Nothing changes if it does not fit."""
        if isinstance(state, Mapping) and not state:
            self._learnt = None
            return
        fit = _Fit(**read_state(state, _STATE))
        if len(fit.weights) != len(fit.centre) + 1:
            raise_invalid("weights", f"of shape ({len(fit.centre) + 1},), like centre", f"shape {fit.weights.shape}")
        self._learnt = fit

    def __repr__(self) -> str:
        learnt = "not fitted" if self._learnt is None else "{1:,} labels, {0:,} false".format(*self._learnt.labels)
        return described(self, learnt)


class _Fit(NamedTuple):
    """The result of `fit`. It is replaced as a whole, so that other threads never see parts of two fits."""

    centre: Floats  # (f,) the mean of each feature over the labels
    spread: Floats  # (f,) their standard deviation, 1 for a constant feature
    weights: Floats  # (f + 1,) the constant first
    labels: NDArray[np.int64]  # (2,) how many labels are of false negatives, and how many there are


def _scales(features: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature; 1 for a constant one, whose deviation may be rounding error."""
    largest = np.abs(features).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # avoids overflow in the squares of very large or small features
    shares = features / unit
    spread = shares.std(axis=0)
    return unit * shares.mean(axis=0), np.where(spread > _CONSTANT, unit * spread, 1.0)


def _design(features: Floats, centre: Floats, spread: Floats) -> Floats:
    """(n, f + 1): a one, and the standardised features."""
    return np.concatenate([np.ones((len(features), 1)), (features - centre) / spread], axis=1)

"""Labelled: a logistic regression fitted to candidates that were labelled by people or a judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import Floats, for_checkpoints, to_numpy
from naysay.checks import check_all, check_bool, check_number, check_range, public, raise_invalid, whole_numbers
from naysay.detectors._grouped_logistic import GroupedLogistic, fit_grouped
from naysay.detectors._pairs import OfPairs, check_each, check_function, numbers_of, pair_name, slot_pairs
from naysay.detectors._slots import (
    Truth,
    as_suspicion,
    by_log_odds,
    check_query_and_negatives,
    filled_slots,
    slot_scores,
    slot_truth,
)
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query, anchor_ids

MIN_LABELS = 10  # of each kind
_STATE = {
    "centre": Entry(("f",)),
    "spread": Entry(("f",)),
    "pooled": Entry(("f + 1",)),
    "groups": Entry(("G",), whole=True),
    "apart": Entry(("G", "f + 1")),
    "labels": Entry((2,), whole=True),
}
_MIN_L2 = 1e-6  # with less, collinear features have no unique weights


@final
@public
class Labelled(MadeOf):
    """The probability that a candidate is a false negative, learned from labelled candidates.

    `fit` takes labelled slots and fits

        log P / (1 - P) = (w + u_g) . (1, z)        z the standardised features, g the anchor's group
        logit suspicion = log P / (1 - P) + log cost (+ logit false_share - logit of the share among the labels)

    by logistic regression with an L2 penalty on each u_g, and on w without its constant. A group without labels uses
    the shared weights w. At least 10 labels of each kind are required; `judge_some` returns both kinds.

    Cost: O(n f^2 + G f^3) per iteration of `fit`, for n labels in G groups; O(f) per slot, plus the features.

    Gelman and Hill. Data Analysis Using Regression and Multilevel/Hierarchical Models. 2007 (partial pooling). Platt.
    Probabilistic Outputs for Support Vector Machines. 1999 (a score made a probability by a logistic fit).

    Args:
        groups: (n_anchors,) whole numbers from 0: the group of each anchor, e.g. its language or category, -1 for
            none. For triples, (n_relations,) the group of each relation. None: no groups.
        features: features(anchors (n,), ids (n,)) -> (n,) or (n, f) numbers: another model's scores, counts, lengths.
            It gets the array type of the query, runs without gradients and never gets -1. For triples it gets (n, 3)
            and (n, 3): the triples and the corrupted triples. None: scores only.
        scores: Whether `negatives.scores` is the first feature.
        l2: The L2 penalty, at least 1e-6. A group with about 4 l2 labels near the threshold moves half the way from
            the shared weights to its own.
        cost: Above 0: how many dropped true negatives are as bad as one false negative kept. Suspicion is 0.5 where
            the probability is 1 / (1 + cost): 0.5 for cost 1, 0.1 for cost 9.
        false_share: The share of false negatives among the candidates that will be judged, if the labelled sample
            was chosen to contain more of them. None: as in the labels.

    Examples:
        >>> import naysay as ns
        >>> rng = ns.rng_for(0)
        >>> labelled = ns.Negatives(rng.integers(0, 50, (40, 5)), scores=rng.normal(0, 1, (40, 5)))
        >>> truth = labelled.scores + np.where(np.arange(40) < 20, 0.0, 1.0)[:, None] > 0.5      # two kinds of anchors
        >>> detector = Labelled(groups=np.arange(40) // 20).fit(ns.Query(np.arange(40)), labelled, truth)
        >>> negatives = ns.Negatives(np.array([[3, 7, -1], [3, 7, -1]]), scores=np.array([[0.0, 0.9, 0.0]] * 2))
        >>> detector.suspicion(ns.Query([0, 39]), negatives).round(2)
        array([[0.11, 0.82, 0.  ],
               [0.9 , 1.  , 0.  ]])
    """

    _made_of = ("features",)

    def __init__(
        self,
        *,
        groups: Any = None,
        features: OfPairs | None = None,
        scores: bool = True,
        l2: float = 1.0,
        cost: float = 1.0,
        false_share: float | None = None,
    ) -> None:
        self.groups = None if groups is None else whole_numbers("groups", to_numpy(groups)).astype(np.int64)
        if self.groups is not None:
            check_all("groups", self.groups, self.groups >= -1, "whole numbers from 0, or -1")
        check_function("features", features, "a function features(anchors, ids)")
        self.features, self.scores = features, check_bool("scores", scores)
        if not scores and features is None:
            raise_invalid("features", "given if `scores` is False", None, "There is nothing to learn from.")
        self.l2 = check_number("l2", l2, at_least=_MIN_L2, finite=True)
        self.cost = check_number("cost", cost, above=0, finite=True)
        given = false_share is not None
        self.false_share = check_number("false_share", false_share, above=0, below=1) if given else None
        # The weights, the number of false negatives among the labels, and of labels. Replaced as a whole, so that
        # other threads never see parts of two fits.
        self._learnt: tuple[GroupedLogistic, int, int] | None = None

    def fit(self, query: Query, negatives: Negatives, truth: Truth) -> Labelled:
        """Fit the weights to labelled slots.

        Args:
            query: The rows that were labelled.
            negatives: Their slots. Empty slots have no label.
            truth: (B, K) bool, whether a slot holds a false negative; or a function truth(anchors, ids) -> (B, K)
                bool; or (n_samples,) classes, -1 for no class. As for `evaluate`.

        Returns:
            The detector itself.
        """
        check_query_and_negatives(query, negatives)
        known = slot_truth(query, negatives, truth)
        rows, slots = np.nonzero(known.known)
        labels = known.false[rows, slots]
        counts = {"false negatives": int(labels.sum()), "true negatives": int((~labels).sum())}
        for name, count in counts.items():
            if count < MIN_LABELS:
                got = f"{count} {name} among {len(labels)} labelled slots"
                raise_invalid("truth", f"labels of at least {MIN_LABELS} slots of each kind", got, "Label more.")
        features = self._features(query, negatives, rows, slots)
        model = fit_grouped(features, labels, self._groups(query, rows), self.l2)
        self._learnt = model, counts["false negatives"], len(labels)
        return self

    @property
    def n(self) -> int:
        """The number of labels, 0 before `fit`."""
        return 0 if self._learnt is None else self._learnt[2]

    @property
    def weights(self) -> Floats:
        """(f + 1,) the shared weights, of the constant first, then of each standardised feature."""
        return self._fitted()[0].pooled.copy()

    @property
    def group_weights(self) -> dict[int, Floats]:
        """{group: (f + 1,)} the weights of each group that has labels."""
        model = self._fitted()[0]
        return dict(zip(model.groups.tolist(), model.pooled + model.apart, strict=True))

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K): the probability of a false negative, shifted by `cost` and `false_share`."""
        check_query_and_negatives(query, negatives)
        model, false, labels = self._fitted()
        rows, slots = np.nonzero(filled_slots(negatives))
        suspicion = np.zeros(negatives.shape)
        if len(rows):
            features = self._features(query, negatives, rows, slots)
            if features.shape[1] != len(model.centre):
                rule = f"a function that returns {len(model.centre) - self.scores} numbers a pair, as in `fit`"
                raise_invalid("features", rule, features.shape[1] - self.scores)
            shift = math.log(self.cost)
            if self.false_share is not None:
                shift += math.log(self.false_share / (1 - self.false_share)) - math.log(false / (labels - false))
            log_odds = model.log_odds(features, self._groups(query, rows)) + shift
            suspicion[rows, slots] = by_log_odds(log_odds, log_odds >= 0)
        return as_suspicion(suspicion, negatives)

    def _features(self, query: Query, negatives: Negatives, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> Floats:
        """(S, f) the features of some slots, the score first."""
        parts = [slot_scores(negatives)[rows, slots][:, None]] if self.scores else []
        if self.features is not None:
            sides, n = slot_pairs(query, negatives, rows, slots), len(rows)
            rule = f"a function that returns finite numbers of shape ({n},) or ({n}, f) for {n} pairs"
            values = numbers_of("features", self.features, query, sides, rule)
            if values.ndim not in (1, 2) or len(values) != n or (values.ndim == 2 and values.shape[1] == 0):
                raise_invalid("features", rule, f"shape {values.shape}, from {pair_name(sides, 0)} on")
            check_each("features", sides, values, np.isfinite(values), rule)
            parts.append(values.reshape(n, -1))
        return np.concatenate(parts, axis=1)

    def _groups(self, query: Query, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """(S,) the group of each slot's anchor, or of its relation; -1 without groups."""
        if self.groups is None:
            return np.full(len(rows), -1)
        anchors = anchor_ids(query)
        keys, what = (anchors, "anchors") if anchors.ndim == 1 else (anchors[:, 1], "relations")
        check_range("query.anchors", keys, len(self.groups), f"{what} of `groups`")
        return self.groups[keys][rows]

    def _fitted(self) -> tuple[GroupedLogistic, int, int]:
        if self._learnt is None:
            raise_invalid("truth", "fitted before", "no labels", "Call fit(query, negatives, truth).")
        return self._learnt

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return the fitted weights; empty before `fit`. Settings, groups and features are not included."""
        if (learnt := self._learnt) is None:
            return {}
        fitted = {name: getattr(learnt[0], name).copy() for name in _STATE if name != "labels"}
        return {**fitted, "labels": np.array(learnt[1:])}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Nothing changes if it does not fit."""
        if isinstance(state, Mapping) and not state:
            self._learnt = None
            return
        parts = read_state(state, _STATE)
        if len(parts["pooled"]) != len(parts["centre"]) + 1:
            raise_invalid("pooled", f"of shape ({len(parts['centre']) + 1},), like centre", parts["pooled"].shape)
        if (np.diff(parts["groups"]) <= 0).any():
            raise_invalid("groups", "ascending", parts["groups"].tolist())
        false, labels = parts.pop("labels").tolist()
        if false >= labels:
            raise_invalid("labels", "the number of false negatives and of all labels", (false, labels))
        self._learnt = GroupedLogistic(**parts), false, labels

    def __repr__(self) -> str:
        learnt = self._learnt
        return described(self, "not fitted" if learnt is None else f"{learnt[2]:,} labels, {learnt[1]:,} false")

"""Labelled: what people said of some candidates, carried over to all others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, first_bad, public, raise_invalid, shown, whole_numbers
from naysay.detectors._asked_pairs import OfPairs, answers_of, pair_named, slot_pairs
from naysay.detectors._grouped_logistic import GroupedLogistic, fit_grouped
from naysay.detectors._slot_truth import Truth, slot_truth
from naysay.detectors._slots import as_suspicion, check_asked, filled_slots, slot_scores
from naysay.detectors._threshold import on_its_side
from naysay.quantity._weight import Floats
from naysay.samplers._numbers import check_number
from naysay.types import Array, Negatives, Query, anchor_ids

LEAST = 10  # labels of each kind
_PARTS = ("centre", "spread", "pooled", "groups", "apart", "labels")
_LEAST_PULL = 1e-6  # below it two features that say the same thing could share any weights


@final
@public
class Labelled:
    """The chance that a candidate is a false negative, learned from candidates that somebody has judged.

    `fit` takes the slots that were judged, and finds

        log P / (1 - P) = (w + u_g) . (1, z)        z the features in deviations from their mean, g the group
        logit suspicion = log P / (1 - P) + log cost (+ logit share - logit of the share among the labels)

    by logistic regression with sum |u_g|^2, and |w|^2 but for its constant, kept small. A group without labels has the
    weights of all, and one with many its own: no group needs a line of its own to be fitted by hand, and none is lost
    for lack of labels.

    The other detectors know positives alone, or nothing; this one must be told of both kinds, LEAST = 10 of each. Known
    positives make good labels of the one kind, if the model was not trained on them; `judge_some` gives both. A score
    that is high for true and false alike has no line that tells them apart; group and features are what is left then.
    Hold some labels back for `evaluate`: on those it was fitted to it looks better than it is.

    `weights` and `group_weights` say what was learned. Cost: O(n f^2 + G f^3) a round of the fit, for n labels in G
    groups; O(f) a slot, and what the features cost.

    Gelman and Hill. Data Analysis Using Regression and Multilevel/Hierarchical Models. 2007, for groups that lend each
    other strength; a score made a probability by a fitted logistic is Platt. Probabilistic Outputs for Support Vector
    Machines. 1999.

    Args:
        groups: None, or (n_anchors,) whole numbers from 0 on: the group of each anchor, -1 for none. Of triples: of
            each relation. A language, a category, a relation: whatever moves the line.
        features: None, or features(anchors (n,), ids (n,)) -> (n,) or (n, f) numbers that tell more than scores:
            another model's, counts, lengths. It gets the query's array type, runs without gradients and never sees
            -1. Of triples it gets (n, 3) and (n, 3), as they are and as they are corrupted.
        scores: Whether `negatives.scores` is a feature, the first one.
        pull: At least 1e-6: how strongly weights are pulled to 0, and those of a group to those of all. A group of
            some 4 pull labels, near the line, goes half its own way.
        cost: Above 0: how many negatives lost are as bad as one false negative kept. The line is at the chance 1 /
            (1 + cost): 0.5 for 1, 0.1 for 9.
        share: None, or the share of false negatives where it will be asked, if labels were picked to have more of
            them.

    Example:
        >>> import naysay as ns
        >>> rng = ns.rng_for(0)
        >>> judged = ns.Negatives(rng.integers(0, 50, (40, 5)), scores=rng.normal(0, 1, (40, 5)))
        >>> verdict = judged.scores + np.where(np.arange(40) < 20, 0.0, 1.0)[:, None] > 0.5      # two kinds of anchors
        >>> found = Labelled(groups=np.arange(40) // 20).fit(ns.Query(np.arange(40)), judged, verdict)
        >>> asked = ns.Negatives(np.array([[3, 7, -1], [3, 7, -1]]), scores=np.array([[0.0, 0.9, 0.0]] * 2))
        >>> found.suspicion(ns.Query([0, 39]), asked).round(2)
        array([[0.11, 0.82, 0.  ],
               [0.9 , 1.  , 0.  ]])
    """

    def __init__(
        self,
        *,
        groups: Any = None,
        features: OfPairs | None = None,
        scores: bool = True,
        pull: float = 1.0,
        cost: float = 1.0,
        share: float | None = None,
    ) -> None:
        """Nothing is fitted yet."""
        self.groups = None if groups is None else whole_numbers("groups", to_numpy(groups)).astype(np.int64)
        if self.groups is not None and (self.groups < -1).any():
            raise_invalid("groups", "numbers from 0 on, or -1", first_bad(self.groups, self.groups < -1))
        if features is not None and not callable(features):
            raise_invalid("features", "a function features(anchors, ids)", type(features).__name__)
        if not isinstance(scores, bool | np.bool_):
            raise_invalid("scores", "True or False", shown(scores))
        if not scores and features is None:
            raise_invalid("features", "given without scores", None, "There is nothing to learn from.")
        self.features, self.scores = features, bool(scores)
        rule = f"a finite number of at least {_LEAST_PULL:g}"
        check_number("pull", pull, rule, lambda number: _LEAST_PULL <= number < math.inf)
        check_number("cost", cost, "a finite number above 0", lambda number: 0 < number < math.inf)
        if share is not None:
            check_number("share", share, "above 0 and below 1", lambda number: 0 < number < 1)
        self.pull, self.cost, self.share = float(pull), float(cost), share
        self._found: GroupedLogistic | None = None
        self._labels = (0, 0)  # false negatives among the labels, and labels

    def fit(self, query: Query, negatives: Negatives, truth: Truth) -> Labelled:
        """Learn from judged slots, and return self.

        Args:
            query: What was judged, as a detector is asked about it; an empty slot was not.
            negatives: What was judged, as a detector is asked about it; an empty slot was not.
            truth: As for `evaluate`: (B, K) bool, whether a slot holds a false negative; or a function
                truth(anchors, ids) -> (B, K) bool; or (n_samples,) classes, -1 for no class.
        """
        check_asked(query, negatives)
        known = slot_truth(query, negatives, truth)
        rows, slots = np.nonzero(known.known)
        labels = known.false[rows, slots]
        counts = {"false negatives": int(labels.sum()), "true negatives": int((~labels).sum())}
        for name, count in counts.items():
            if count < LEAST:
                got = f"{count} {name} among {len(labels)} judged slots"
                raise_invalid("truth", f"of at least {LEAST} slots of each kind", got, "Judge more.")
        features = self._features(query, negatives, rows, slots)
        self._found = fit_grouped(features, labels, self._groups(query, rows), self.pull)
        self._labels = (counts["false negatives"], len(labels))
        return self

    @property
    def n(self) -> int:
        """How many labels it rests on, 0 before `fit`."""
        return self._labels[1]

    @property
    def weights(self) -> Floats:
        """(f + 1,) how the log-odds rise with a deviation of each feature; the constant first."""
        return self._fitted().pooled.copy()

    @property
    def group_weights(self) -> dict[int, Floats]:
        """{group: (f + 1,)} the same in each group that has labels."""
        found = self._fitted()
        return dict(zip(found.groups.tolist(), found.pooled + found.apart, strict=True))

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): the chance that a slot is a false negative, moved so that the line is at 0.5."""
        check_asked(query, negatives)
        found = self._fitted()
        rows, slots = np.nonzero(filled_slots(negatives))
        answer = np.zeros(negatives.shape)
        if len(rows):
            features = self._features(query, negatives, rows, slots)
            if features.shape[1] != len(found.centre):
                rule = f"a function that answers with {len(found.centre) - self.scores} numbers a pair, as in fit"
                raise_invalid("features", rule, features.shape[1] - self.scores)
            odds = found.log_odds(features, self._groups(query, rows)) + self._shift()
            answer[rows, slots] = on_its_side(0.5 + 0.5 * np.tanh(0.5 * odds), odds >= 0)
        return as_suspicion(answer, negatives)

    def _shift(self) -> float:
        """What cost and share add to the log-odds."""
        false, labels = self._labels
        moved = math.log(self.cost)
        if self.share is not None:
            moved += math.log(self.share / (1 - self.share)) - math.log(false / (labels - false))
        return moved

    def _features(self, query: Query, negatives: Negatives, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> Floats:
        """(S, f) of some slots: the score, if it is one, and what the function says."""
        parts = [slot_scores(negatives)[rows, slots][:, None]] if self.scores else []
        if self.features is not None:
            sides, n = slot_pairs(query, negatives, rows, slots), len(rows)
            rule = f"a function that answers with finite numbers of shape ({n},) or ({n}, f) for {n} pairs"
            given = answers_of("features", self.features, query, sides, rule)
            if given.ndim not in (1, 2) or len(given) != n or (given.ndim == 2 and given.shape[1] == 0):
                raise_invalid("features", rule, f"shape {given.shape}, from {pair_named(sides, 0)} on")
            given = given.reshape(n, -1)
            bad = ~np.isfinite(given).all(axis=1)
            if bad.any():
                first = int(bad.argmax())
                got = f"{given[first][~np.isfinite(given[first])][0]} for {pair_named(sides, first)} ({bad.sum()} such)"
                raise_invalid("features", rule, got)
            parts.append(given)
        return np.concatenate(parts, axis=1)

    def _groups(self, query: Query, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """(S,) the group of each slot's anchor, or of its relation; -1 without groups."""
        if self.groups is None:
            return np.full(len(rows), -1)
        anchors = anchor_ids(query)
        keys = anchors if anchors.ndim == 1 else anchors[:, 1]
        bad = (keys < 0) | (keys >= len(self.groups))
        if bad.any():
            what = "anchors" if anchors.ndim == 1 else "relations"
            raise_invalid("query.anchors", f"among the {len(self.groups)} {what} of groups", first_bad(keys, bad))
        return self.groups[keys][rows]

    def _fitted(self) -> GroupedLogistic:
        if self._found is None:
            raise_invalid("truth", "fitted before", "no labels", "Call fit(query, negatives, truth).")
        return self._found

    def state(self) -> dict[str, NDArray[Any]]:
        """All that was learned; empty before `fit`. Settings, groups and features are not in it."""
        if self._found is None:
            return {}
        learned = {name: getattr(self._found, name).copy() for name in _PARTS[:-1]}
        return {**learned, "labels": np.array(self._labels)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; refused, with nothing changed, if it does not fit."""
        if isinstance(state, Mapping) and not state:
            self._found, self._labels = None, (0, 0)
            return
        if not isinstance(state, Mapping) or set(state) != set(_PARTS):
            got = shown(sorted(map(str, state))) if isinstance(state, Mapping) else type(state).__name__
            raise_invalid("state", f"{sorted(_PARTS)}, as Labelled.state gave", got)
        parts = {name: as_array(name, to_numpy(state[name])) for name in _PARTS}
        width, n_groups = max(2, parts["pooled"].size), parts["groups"].size
        sizes = {"centre": width - 1, "spread": width - 1, "pooled": width, "groups": n_groups, "labels": 2}
        for name, shape in {**{name: (size,) for name, size in sizes.items()}, "apart": (n_groups, width)}.items():
            kinds = "iu" if name in ("groups", "labels") else "iuf"
            if parts[name].shape != shape or parts[name].dtype.kind not in kinds or not np.isfinite(parts[name]).all():
                rule = f"{'whole' if kinds == 'iu' else 'finite'} numbers of shape {shape}"
                raise_invalid(name, rule, f"{parts[name].dtype} of shape {parts[name].shape}")
        false, labels = (int(count) for count in parts["labels"])
        if not 0 < false < labels:
            raise_invalid("labels", "how many are false negatives, and how many there are", (false, labels))
        groups = parts.pop("groups").astype(np.int64)
        if (np.diff(groups) <= 0).any() or not (parts["spread"] > 0).all():
            raise_invalid("state", "what Labelled.state gave", "groups out of order, or a deviation of 0")
        centre, spread, pooled, apart = (parts[name].astype(np.float64) for name in parts if name != "labels")
        self._found = GroupedLogistic(centre, spread, pooled, groups, apart)
        self._labels = (false, labels)

    def __repr__(self) -> str:
        """The settings, and what it rests on."""
        labels = f"{self._labels[1]:,} labels, {self._labels[0]:,} false" if self.n else "not fitted"
        return f"Labelled(pull={self.pull:g}, cost={self.cost:g}, share={self.share}; {labels})"

"""A reviewer in an audit: it is asked about a few negatives of the set, and what follows for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE
from naysay.audits._training_set import SetScores, TrainingSet
from naysay.audits.false_share import TARGET, SetPosterior
from naysay.checks import check_whole, public, raise_invalid, with_parameter
from naysay.detectors.asking import Asked, Asking, review_notes
from naysay.detectors.by_reviewer import check_reviewers, read_reviewers
from naysay.detectors.rate import RateEstimate
from naysay.detectors.review import CERTAIN, ReviewLists, Sensitivity, Share, share_of_set
from naysay.detectors.reviewer import AnswerFile, Pairs, Reviewer
from naysay.rng import rng_for

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_ASKED = 2  # the step of the seed: 0 draws positives, 1 random documents
_ASSUMED = (
    "the reviewer finds unlabelled positives as often as labelled ones",
    "a yes of the last reviewer is right",
)
_CHECK = "only an upper end: a person who checks the yes answers of the model would give both ends"


@final
@public
@dataclass(frozen=True, slots=True)
class AuditReview:
    """What a reviewer found in a training set.

    Args:
        reviewed: Negatives of the set with an answer.
        false: How many of them are false: they are positives of their anchor.
        sensitivity: The share of labelled positives that the reviewer finds; 1 for people.
        after: The share of false negatives in what `Audit.fix` leaves, with its 95 % CI; None from too few answers.

    Example: see `audit`.
    """

    reviewed: int
    false: int
    sensitivity: float
    after: RateEstimate | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReviewPlan:
    """Who is asked about how many negatives, checked before anything is searched."""

    first: Reviewer
    trusted: Reviewer | None
    budget: int
    file: AnswerFile | None

    @staticmethod
    def of(reviewer: Any, review: int, answers: str | Path | None) -> ReviewPlan | None:
        """The options of `audit`; None without a reviewer."""
        if reviewer is None:
            for name, value in {"review": review, "answers": answers}.items():
                if value:
                    raise_invalid(name, "left out without `reviewer`", repr(value))
            return None
        budget = check_whole("review", review, 1)
        first, trusted = read_reviewers(reviewer)
        with with_parameter("answers", instead_of="path"):
            file = None if answers is None else AnswerFile(answers)
        return ReviewPlan(first, trusted, budget, file)

    def check(self, given: TrainingSet) -> None:
        """Raise if a reviewer cannot be asked about this set: texts are missing, or its server does not answer."""
        has_texts = given.query_texts is not None and given.corpus_texts is not None
        check_reviewers((self.first, self.trusted), has_texts=has_texts)

    def notes(self) -> tuple[str, ...]:
        """What it cost, and what people have yet to answer."""
        return review_notes((self.first, self.trusted), "audit again")


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetReview:
    """The review of a set: lists of the negatives of some anchors by score, and the answers about them."""

    anchors: Ids  # (b,)
    order: Ids  # (b, k) the slot of the set at each place of a list
    free: Mask  # (b, k) of the lists: negatives that can be asked about
    asked: Asked
    sensitivity: Sensitivity

    def slots(self, answer: float) -> tuple[Ids, Ids]:
        """(anchors, slots) with an answer: 1 is false, 0 a true negative, NaN a yes that was not checked."""
        answers = self.asked.review.answers
        chosen = answers.where(np.isnan(answers.y) if np.isnan(answer) else answers.y == answer)
        return self.anchors[chosen.rows], self.order[chosen.rows, chosen.slots]

    def probability(self) -> Floats:
        """(b, k) of a false negative by slot of the set; NaN for slots that cannot be asked about."""
        by_slot = np.empty(self.order.shape)
        np.put_along_axis(by_slot, self.order, np.where(self.free, self.asked.review.probability, np.nan), axis=1)
        return by_slot

    def rate(self, in_set: Mask, proven: float, *, fixed: bool) -> RateEstimate | None:
        """The share of false negatives among the slots `in_set` (n, k), of which a share is proven to be false.

        Args:
            in_set: The set, or a part of it.
            proven: The share of the slots that are false without doubt, which are not in `in_set`.
            fixed: Whether what a reviewer called positive has left the set.
        """
        chosen = np.take_along_axis(in_set[self.anchors], self.order, axis=1) & self.free
        answers = self.asked.review.answers
        known = answers.where(answers.is_known & chosen[answers.rows, answers.slots])
        is_left = chosen.copy()
        gone = answers.where(answers.y != 0 if fixed else answers.y == 1)
        is_left[gone.rows, gone.slots] = False
        expected = np.where(self.free, self.asked.review.probability, 0.0)
        of_answers = expected[known.rows, known.slots]
        n_left = int(is_left.sum())
        share = share_of_set(known, of_answers, float(expected[is_left].sum()), n_left, self.sensitivity)
        if share is None and n_left == (known.y == 0).sum():
            share = Share(0.0, 0.0, 0.0)  # all were reviewed
        if share is None:
            return None
        found_share = 0.0 if fixed else 1 - n_left / max(1, int(chosen.sum()))
        estimate, low, high = (proven + (1 - proven) * (found_share + (1 - found_share) * end) for end in share)
        is_bound = self.asked.is_bound
        return RateEstimate(
            "false negatives",
            estimate,
            proven if is_bound else low,
            high,
            CONFIDENCE,
            len(answers.y),
            _ASSUMED,
            (_CHECK,) if is_bound else (),
            bound=is_bound,
        )

    def summary(self, after: RateEstimate | None) -> AuditReview:
        """The numbers of the review."""
        answers = self.asked.review.answers
        return AuditReview(len(answers.y), int((answers.y == 1).sum()), self.sensitivity.estimate, after)


def review_set(
    plan: ReviewPlan,
    given: TrainingSet,
    scores: SetScores | None,
    set_posterior: SetPosterior | None,
    proven: Mask,
    seed: int,
) -> SetReview:
    """Ask about negatives of the set that are not proven to be false, by the posterior of labels if there is one."""
    rest = (given.ids >= 0) & ~proven
    if set_posterior is not None and set_posterior.fit.posterior.fitted:
        anchors = set_posterior.anchors
        probability = set_posterior.listed(set_posterior.beyond)
        alike = set_posterior.alike(given.ids)
    else:
        anchors = np.flatnonzero(rest.any(axis=1))
        probability = np.full((len(anchors), given.ids.shape[1]), TARGET)
        alike = None
    negatives = np.full(rest.shape, np.nan) if scores is None else scores.negatives.astype(np.float64)
    order = np.argsort(-negatives[anchors], axis=1, kind="stable")

    def in_order(values: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(values, order, axis=1)

    positive_scores = np.full(len(given.ids), np.nan)
    if scores is not None:
        positive_scores[scores.anchors[scores.one_each]] = scores.one_positive_each
    lists = ReviewLists(
        probability=in_order(probability),
        scores=in_order(negatives[anchors]),
        positive_scores=positive_scores[anchors],
        free=in_order(rest[anchors]),
        counts=np.full(len(anchors), given.ids.shape[1]),
        alike=None if alike is None else in_order(alike),
    )
    asking = Asking(
        plan.first, plan.trusted, partial(_pairs_of, given), given.positives, plan.file, rng_for(seed, _ASKED)
    )
    sensitivity = CERTAIN
    if len(given.positives):
        sensitivity = asking.trust(*_one_each(given), plan.budget)
    asked = asking.review(
        lists,
        anchors,
        in_order(given.ids[anchors]),
        budget=plan.budget,
        false_share=TARGET,
        sensitivity=sensitivity,
        is_fixed=True,
    )
    asking.write_for_people(lambda rows, items: _scores_of(given, negatives, rows, items))
    return SetReview(anchors, order, lists.free, asked, sensitivity)


def _one_each(given: TrainingSet) -> tuple[Ids, Ids]:
    """The first positive of each anchor that has some."""
    anchors, items = given.positives.pairs()
    first = np.unique(anchors, return_index=True)[1]
    return anchors[first], items[first]


def _scores_of(given: TrainingSet, scores: Floats, anchors: Ids, items: Ids) -> Floats:
    """(n,) the scores of negatives of the set."""
    slots = (given.ids[anchors] == items[:, None]).argmax(axis=1)
    return np.asarray(scores[anchors, slots])


def _pairs_of(given: TrainingSet, anchors: Ids, items: Ids) -> Pairs:
    """Pairs of the set. Where it has no ids, rows are named by their number."""

    def rows_of(column: list[str] | None, rows: Ids) -> list[str] | None:
        return None if column is None else [column[row] for row in rows.tolist()]

    query_ids = None if given.query_names is given.query_texts else given.query_names
    document_ids = None if given.corpus_names is given.corpus_texts else given.corpus_names
    return Pairs(
        anchors,
        items,
        rows_of(given.query_texts, anchors),
        rows_of(given.corpus_texts, items),
        query_ids=rows_of(query_ids, anchors),
        document_ids=rows_of(document_ids, items),
    )

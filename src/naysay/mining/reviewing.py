"""A reviewer in mining: it is asked about a few candidates, and the judge is recalibrated by its answers.

The review is done on lists of at most 5,000 random anchors, before anything is mined. What it leaves is a judge like
any other: a detector with a threshold, and pairs that were found to be false. The interval is that of the negatives
that are returned in the end, whatever chose them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.asking import Asking, ReviewedPairs, rate_of
from naysay.detectors.posterior import Posterior
from naysay.detectors.review import (
    CERTAIN,
    Answers,
    Recalibration,
    ReviewLists,
    Sensitivity,
    Share,
    share_of_set,
)
from naysay.detectors.reviewer import AnswerFile, Pairs
from naysay.mining.auto import choose_judge, fit_posterior, lists_of
from naysay.mining.candidates import Floats32, Ids
from naysay.mining.estimate import SetEstimate, nearest, stated
from naysay.mining.fit import FitLists, FittedPosterior, own_scores
from naysay.mining.judge import Judge
from naysay.mining.problem import REVIEW_DEPTH, Problem
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.search._scores import taken
from naysay.types import Negatives, Query

Floats = NDArray[np.float64]
REVIEW_ANCHORS = 5000  # whose lists are reviewed and cut; more would hardly change the threshold
_ASKED = 6  # the step of the seed: see `mining.problem`


def pairs_of(problem: Problem, anchors: Ids, items: Ids) -> Pairs:
    """Pairs of a problem, with their texts and names where it has some."""
    queries, documents = problem.texts or (None, None)
    query_ids, document_ids = problem.names or (None, None)

    def rows_of(column: Any, rows: Ids) -> list[str] | None:
        return None if column is None else [column[row] for row in rows.tolist()]

    return Pairs(
        anchors,
        items,
        rows_of(queries, anchors),
        rows_of(documents, items),
        taken(problem.queries, anchors),
        taken(problem.corpus, items),
        rows_of(query_ids, anchors),
        rows_of(document_ids, items),
    )


# ---- the review -----------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class MiningReview:
    """What a review found, for a problem: the lists it was done on, the answers, and the recalibration."""

    lists: FitLists
    answers: Answers  # rows and slots of the lists
    model: Recalibration
    probability: Floats  # (A, M) of a false negative; 2 for what cannot be returned
    tau: float
    before: float  # mean probability of the nearest k
    sensitivity: Sensitivity
    asked: ReviewedPairs
    is_bound: bool  # whether only the upper end is claimed: yes answers are a model's own

    @property
    def left_out(self) -> tuple[Ids, Ids]:
        """(anchors, items) that are never returned: found to be false, or a yes that was not checked."""
        out = self.answers.where(self.answers.y != 0)
        return self.lists.anchors[out.rows], self.lists.ids[out.rows, out.slots]

    @property
    def found(self) -> tuple[Ids, Ids]:
        """(anchors, items) that were found to be false negatives."""
        out = self.answers.where(self.answers.y == 1)
        return self.lists.anchors[out.rows], self.lists.ids[out.rows, out.slots]

    def share(self, ids: Ids, scores: Floats32) -> Share | None:
        """The share of false negatives among the negatives (n, k) of all anchors, whatever chose them."""
        listed_ids, listed_scores = ids[self.lists.anchors], scores[self.lists.anchors]
        is_returned = self.lists.contain(listed_ids)
        expected = np.where(self.probability <= 1, self.probability, 0.0)
        filled = listed_ids >= 0
        behind = int(filled.sum() - is_returned.sum())  # in no list: as likely as the last candidates of the lists
        last = expected[:, -10:].mean() if expected.size else 0.0
        known = self.answers.where(self.answers.is_known)
        lowest = np.where(filled, listed_scores, np.inf).min(axis=1, initial=np.inf)
        would_be = (expected <= self.tau) & (self.lists.scores >= lowest[:, None])
        place = known.rows, known.slots
        in_set = known.where(is_returned[place] | ((known.y == 1) & would_be[place]))
        total = float(expected[is_returned].sum() + behind * last)
        return share_of_set(in_set, expected[in_set.rows, in_set.slots], total, int(filled.sum()), self.sensitivity)


def review(problem: Problem, fitted: FittedPosterior) -> MiningReview:
    """Ask the reviewers of a problem about some of its candidates."""
    options = problem.options
    rng = rng_for(options.seed, _ASKED)
    anchors = np.sort(rng.permutation(problem.queries.n)[: max(REVIEW_ANCHORS, options.review)])
    lists = fitted.lists
    if not np.array_equal(anchors, lists.anchors):
        lists = lists_of(problem, fitted.posterior, anchors)
    first, trusted = problem.reviewers
    if first is None:
        raise ValueError
    asking = Asking(
        first,
        trusted,
        partial(pairs_of, problem),
        problem.known,
        None if options.answers is None else AnswerFile(options.answers),
        rng,
    )
    pair_anchors, pair_items = problem.known.pairs()
    one_each = problem.one_positive_each
    sensitivity = asking.trust(pair_anchors[one_each], pair_items[one_each], options.review)
    asked = asking.review(
        review_lists(problem, fitted.posterior, lists),
        lists.anchors,
        lists.ids,
        budget=options.review,
        false_share=options.false_share,
        sensitivity=sensitivity,
    )
    asking.write_for_people(lambda anchors, items: problem.score(anchors, items).astype(np.float64))
    done = asked.review
    return MiningReview(
        lists,
        done.answers,
        done.model,
        done.probability,
        done.tau,
        done.before,
        sensitivity,
        asked.pairs,
        asked.is_bound,
    )


def review_lists(problem: Problem, posterior: Posterior, lists: FitLists) -> ReviewLists:
    """The lists as the statistics take them. Without a posterior, all candidates are as likely as the target."""
    own = own_scores(posterior, lists.anchors)
    probability = np.full(lists.scores.shape, posterior.false_share)
    if posterior.fitted:
        probability = posterior.posterior(lists.scores, own, alike=lists.alike)
    return ReviewLists(probability, lists.scores, own, lists.free, problem.counts_of(lists.anchors), lists.alike)


# ---- the judge ------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReviewedPosterior:
    """The posterior of labels, recalibrated by a review. Its suspicion is the probability of a false negative."""

    problem: Problem
    posterior: Posterior
    model: Recalibration
    tau: float

    reads = REVIEW_DEPTH - 2  # candidates of a list that its features are made of

    @property
    def suspicion_threshold(self) -> float:
        """The smallest suspicion, in 32 bits, that is dropped; 1 drops nothing."""
        return min(1.0, float(np.nextafter(np.float32(self.tau), np.float32(2))))

    def suspicion(self, query: Query, negatives: Negatives) -> Floats:
        """(B, K) the probability of a false negative, by the whole list of each row."""
        anchors = np.asarray(query.anchors)
        filled = np.asarray(negatives.ids) >= 0
        scores = np.where(filled, np.asarray(negatives.scores), np.nan)
        order = np.argsort(-scores, axis=1, kind="stable")
        candidates: Any = negatives  # of which ids and scores are read
        lists = FitLists.of(self.posterior, anchors, candidates, filled, filled)
        found = self.model.of(review_lists(self.problem, self.posterior, lists))
        suspicion = np.empty(filled.shape)
        np.put_along_axis(suspicion, order, np.where(lists.ids >= 0, found, 0.0), axis=1)
        return np.minimum(suspicion, np.nextafter(1.0, 0.0))

    def __repr__(self) -> str:
        return f"ReviewedPosterior(tau={self.tau:.3g})"

    def describe(self) -> str:
        """The threshold."""
        return f"Candidates whose probability of being false negatives is above {min(self.tau, 0.999):.3g} are dropped."


@final
@dataclass(frozen=True, slots=True)
class ByReview:
    """Drop what a review found, and what is most likely false by it, until the share is within the target."""

    problem: Problem
    fitted: FittedPosterior
    review: MiningReview

    def usable(self) -> bool:
        """Whether there are answers."""
        return len(self.review.answers.y) > 0

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no cut leaves enough candidates with so few false negatives."""
        return self.review.tau >= 1 and self.review.before > self.problem.options.false_share

    def judge(self) -> Judge:
        """The recalibrated posterior, or what labels say where no cut reaches the target; and what is left out."""
        if self.is_out_of_reach:
            judge = choose_judge(self.problem, self.fitted)
        else:
            detector = ReviewedPosterior(self.problem, self.fitted.posterior, self.review.model, self.review.tau)
            judge = Judge.by(detector, fitted=self.fitted)
        left_out = None
        if self.problem.options.false_negatives != "keep":
            left_out = Positives.from_pairs(*self.review.left_out, self.problem.queries.n, self.problem.n_items)
        return replace(judge, left_out=left_out, policy=self)

    def estimate(self, ids: Ids, scores: Floats32) -> SetEstimate:
        """The share of false negatives in what is returned, with its interval."""
        filled = ids >= 0
        if not filled.any():
            return SetEstimate(None, np.nan, "there are no negatives")
        mean_score = float(scores[filled].mean(dtype=np.float64))
        share = self.review.share(ids, scores)
        if share is None:
            return SetEstimate(None, mean_score, "too few of the negatives were reviewed")
        rate = rate_of(share, len(self.review.answers.y), is_bound=self.review.is_bound)
        return SetEstimate(rate, mean_score)

    def describe(self, judge: Judge, ids: Ids, scores: Floats32) -> str:
        """What was reviewed, what is dropped, and the share that is left."""
        review, problem = self.review, self.problem
        estimate = self.estimate(ids, scores)
        found, n = int((review.answers.y == 1).sum()), len(review.answers.y)
        left = stated(estimate.share)
        fate = "" if problem.options.false_negatives == "keep" else " and left out"
        dropped = "Nothing else is dropped"
        if self.is_out_of_reach:
            dropped = "No cut reaches the target, so candidates are dropped by labels alone"
        elif judge.drop_at < 1:
            dropped = f"Candidates with a probability above {min(review.tau, 0.999):.3g} are dropped"
        trust = ""
        if review.sensitivity != CERTAIN:
            trust = f" The reviewer finds {100 * review.sensitivity.estimate:.0f} % of labelled positives."
        advice = ""
        if review.is_bound and problem.reviewers[1] is None:
            advice = " A person who checks the yes answers would give both ends: reviewer=[model, People(file)]."
        return (
            f"By {n:,} reviewed pairs, of which {found:,} are false{fate}, an estimated "
            f"{100 * review.before:.1f} % of {nearest(problem)} are false. {dropped}, which leaves {left} for a "
            f"target of {100 * problem.options.false_share:g} %. The mean score of the negatives is "
            f"{estimate.mean_score:.3f}.{trust}{advice}"
        )


def choose_reviewed_judge(
    problem: Problem, fitted: FittedPosterior | None = None, done: MiningReview | None = None
) -> Judge:
    """The judge by a review, if the reviewer has answered; else that of labels."""
    if fitted is None:
        fitted = fit_posterior(problem)
    policy = ByReview(problem, fitted, review(problem, fitted) if done is None else done)
    return policy.judge() if policy.usable() else choose_judge(problem, fitted)


def found_positives(judge: Judge) -> tuple[Ids, Ids]:
    """(anchors, items) that a reviewer found to be positives."""
    none = np.empty(0, np.int64)
    return judge.policy.review.found if isinstance(judge.policy, ByReview) else (none, none)


def positives_to_write(problem: Problem, judge: Judge) -> tuple[Positives, Floats32]:
    """The known pairs and those that a reviewer found, with their scores: for false_negatives="positive"."""
    found = Positives.from_pairs(*found_positives(judge), problem.queries.n, problem.n_items)
    known = problem.known.union(found)
    return known, problem.score(*known.pairs())


# ---- what a job keeps -----------------------------------------------------------------------------------------------


def review_state(done: MiningReview) -> dict[str, NDArray[Any]]:
    """All of a review as arrays."""
    parts: dict[str, Any] = {"lists": done.lists, "answers": done.answers, "model": done.model, "asked": done.asked}
    state = {
        f"{name}/{each.name}": np.asarray(getattr(part, each.name))
        for name, part in parts.items()
        for each in fields(part)
    }
    numbers = [done.tau, done.before, *done.sensitivity, float(done.is_bound)]
    return state | {"probability": done.probability, "numbers": np.array(numbers)}


def review_of_state(state: dict[str, NDArray[Any]]) -> MiningReview:
    """The review from its arrays."""

    def part(kind: Any, name: str) -> Any:
        return kind(**{each.name: state[f"{name}/{each.name}"] for each in fields(kind)})

    tau, before, *sensitivity, is_bound = state["numbers"].tolist()
    model = replace(part(Recalibration, "model"), base=float(state["model/base"]))
    return MiningReview(
        part(FitLists, "lists"),
        part(Answers, "answers"),
        model,
        state["probability"],
        tau,
        before,
        Sensitivity(*sensitivity),
        part(ReviewedPairs, "asked"),
        bool(is_bound),
    )

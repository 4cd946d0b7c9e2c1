"""What is estimated of the negatives that are returned, in numbers and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from naysay.detectors.posterior import PosteriorSummary
from naysay.detectors.rate import RateEstimate
from naysay.mining.candidates import Floats32, Ids
from naysay.mining.fit import FittedPosterior
from naysay.mining.problem import Problem
from naysay.text import percent, with_interval


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetEstimate:
    """What a posterior estimates of a set of negatives, on the anchors that it was fitted to."""

    share: RateEstimate | None  # of false negatives
    mean_score: float  # NaN without negatives
    reason: str = ""  # why there is no share


def estimate_set(fitted: FittedPosterior, ids: Ids, scores: Floats32) -> SetEstimate:
    """Estimate the share of false negatives among the negatives (n, k) of all anchors, whatever chose them.

    Negatives that are in no list, such as random ones, have the posterior of candidates behind the lists.
    """
    posterior, lists = fitted.posterior, fitted.lists
    listed_ids, listed_scores = ids[lists.anchors], scores[lists.anchors]
    filled = listed_ids >= 0
    if not filled.any():
        return SetEstimate(None, np.nan, "there are no negatives")
    mean_score = float(listed_scores[filled].mean(dtype=np.float64))
    if not fitted.usable:
        return SetEstimate(None, mean_score, posterior.reason)
    is_returned = lists.contain(listed_ids)
    behind = int(filled.sum() - is_returned.sum())
    share = posterior.share(lists.scores, fitted.own_scores, is_returned, alike=lists.alike, behind=behind)
    return SetEstimate(fitted.widened(share), mean_score)


def trade_of_set(problem: Problem, fitted: FittedPosterior, estimate: SetEstimate) -> str:
    """What another judge than "auto" leaves of false negatives, or none, and what that costs."""
    kept = stated(estimate.share)
    if problem.options.judge is None:
        text = f"{by_labels(problem)}, an estimated {kept} of the negatives are false. "
        text += f"Their mean score is {estimate.mean_score:.3f}."
    else:
        text = (
            f"{by_labels(problem)}, an estimated {stated(fitted.before)} of {nearest(problem)} are false. The judge "
            f"leaves {kept}. This changes the mean score of the negatives from "
            f"{fitted.posterior.summary.hardness_before:.3f} to {estimate.mean_score:.3f}."
        )
    return f"{text} {basis(fitted.posterior.summary, problem)}{settled_by(problem)}"


def by_labels(problem: Problem) -> str:
    """How a sentence begins that says what an estimate is by."""
    if problem.reviewed is not None:
        return f"By labels and {len(problem.reviewed.false):,} reviewed pairs"
    if problem.options.labelled_share is not None:
        return "By labels and the stated labelled share"
    return "By labels alone"


def settled_by(problem: Problem) -> str:
    """How a sentence ends that rests on labels alone: with the command that would settle it."""
    return "" if problem.reviewed is not None else f" A review would settle it: {problem.review_command}"


def nearest(problem: Problem) -> str:
    """What the estimate before the judge is about: known positives and duplicates are no candidates any more."""
    same_k = problem.counts is not None and (problem.counts == problem.largest_k).all()
    if same_k and not problem.options.limits_candidates:
        return f"the {problem.largest_k} nearest after duplicates are dropped"
    return "the nearest candidates that may be taken after duplicates are dropped"


def stated(share: RateEstimate | None) -> str:
    """A share with its interval, or with its upper end if no other is claimed."""
    if share is None:
        return "unknown share"
    if share.bound:
        return f"at most {percent(share.high)}"
    return with_interval(share.estimate, share.low, share.high)


def basis(summary: PosteriorSummary, problem: Problem | None = None) -> str:
    """What the estimate rests on."""
    labels = f"The estimate rests on {summary.labelled:,} labelled positives"
    if problem is not None and problem.reviewed is not None:
        return f"{labels}. It is corrected: {problem.reviewed.describe()}"
    if problem is not None and problem.options.labelled_share is not None:
        return f"{labels}, which are {100 * problem.options.labelled_share:g} % of all positives, as stated."
    check = summary.check
    if check is not None and check.shift:
        return f"{labels}. Item vectors show that these are easier than other positives; this is corrected."
    if check is not None and check.verdict.startswith("not corrected"):
        return f"{labels}. Item vectors suggest more false negatives."
    if summary.reach[0] < 1:
        return f"{labels}. These may be the easy ones."
    agree = "; item vectors agree" if check is not None and not np.isnan(check.by_vectors) else ""
    return f"{labels}, which score like a random part of all positives{agree}."

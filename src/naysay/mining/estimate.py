"""What is estimated of the negatives that are returned, and the rule of a result in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from naysay.detectors.posterior import Posterior
from naysay.detectors.posterior_summary import PosteriorSummary
from naysay.detectors.rate import RateEstimate
from naysay.mining.auto import Fit, FitLists, usable
from naysay.mining.candidates import Floats32, Ids, Mask
from naysay.mining.judge import Judge
from naysay.mining.problem import Problem, is_auto
from naysay.text import with_interval


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetEstimate:
    """What a posterior estimates of a set of negatives, on the anchors that it was fitted to."""

    share: RateEstimate | None  # of false negatives
    mean_score: float  # NaN without negatives
    reason: str = ""  # why there is no share


def estimate_set(fit: Fit, ids: Ids, scores: Floats32) -> SetEstimate:
    """Estimate the share of false negatives among the negatives that are returned, whatever chose them.

    Negatives that are in no list, such as random ones, have the posterior of candidates behind the lists.

    Args:
        fit: The posterior and its lists.
        ids: (n, k) the negatives of all anchors, -1 empty.
        scores: (n, k) their scores.
    """
    fitted_ids, fitted_scores = ids[fit.lists.anchors], scores[fit.lists.anchors]
    filled = fitted_ids >= 0
    if not filled.any():
        return SetEstimate(None, np.nan, "there are no negatives")
    mean_score = float(fitted_scores[filled].mean(dtype=np.float64))
    if not usable(fit.posterior):
        return SetEstimate(None, mean_score, fit.posterior.reason)
    listed = among(fit.lists, fitted_ids)
    behind = int(filled.sum() - listed.sum())
    share = fit.posterior.share(fit.lists.scores, fit.own_scores, listed, alike=fit.lists.alike, behind=behind)
    return SetEstimate(share, mean_score)


def among(lists: FitLists, ids: Ids) -> Mask:
    """(A, M): which listed candidates are among the ids (A, k) of their anchor. A sort."""
    size = 1 + max(lists.ids.max(initial=0), ids.max(initial=0))
    rows = size * np.arange(len(ids))[:, None]
    wanted = (rows + ids)[ids >= 0]
    return (lists.ids >= 0) & np.isin(rows + lists.ids, wanted)


def rule_of_set(problem: Problem, judge: Judge, ids: Ids, scores: Floats32) -> str:
    """`Mined.rule`: what the judge does, and with "auto" what it leaves of false negatives in the ids returned.

    A judge other than the posterior of "auto" says what it does, and no share.
    """
    if judge.fit is None or not isinstance(judge.detector, Posterior) or not is_auto(problem.options):
        return judge.describe()
    fit = Fit(judge.detector, judge.fit.lists)
    return _rule_of_posterior(problem, judge, estimate_set(fit, ids, scores))


def _rule_of_posterior(problem: Problem, judge: Judge, estimate: SetEstimate) -> str:
    """What the posterior estimates and drops, what is left of it in the negatives, and what the estimate rests on."""
    posterior: Posterior = judge.detector
    summary, target = posterior.summary, f"{100 * posterior.false_share:g} %"
    is_own_cut = judge.drop_at == posterior.threshold
    text = f"Estimated false negatives among {_nearest(problem)}: {_shown(summary.before)}"
    if is_own_cut and summary.tau >= 1:
        text = f"{text}. This is within the target of {target}, so nothing is dropped."
        if not _is_nearest(summary, estimate):
            text = f"{text} Among the negatives that are returned it is {_shown(estimate.share)}."
    else:
        tau = summary.tau if is_own_cut else judge.drop_at
        aim = f" for a target of {target}" if is_own_cut else ""
        text = (
            f"{text}. Candidates with a probability above {min(tau, 0.999):.3g} are dropped, which leaves "
            f"{_shown(estimate.share)}{aim}. This lowers the mean score of the negatives from "
            f"{summary.hardness_before:.3f} to {estimate.mean_score:.3f}."
        )
    note = f" Note: {summary.reason}." if summary.reason else ""
    without = problem.queries.n - len(problem.held_out)
    if without:
        note = f" {without:,} anchors have no positive: they are judged by score and rank alone.{note}"
    return f"{text} {basis(summary, problem)}{note}"


def trade_of_set(problem: Problem, fit: Fit, estimate: SetEstimate) -> str:
    """What another judge than "auto" leaves of false negatives, or none, and what that costs."""
    summary, kept = fit.posterior.summary, _shown(estimate.share)
    if problem.options.judge is None:
        text = f"Estimated false negatives: {kept}. The mean score of the negatives is {estimate.mean_score:.3f}."
    else:
        text = (
            f"Estimated false negatives among {_nearest(problem)}: {_shown(summary.before)}. The judge leaves {kept}. "
            f"This changes the mean score of the negatives from {summary.hardness_before:.3f} to "
            f"{estimate.mean_score:.3f}."
        )
    return f"{text} {basis(summary, problem)}"


def _is_nearest(summary: PosteriorSummary, estimate: SetEstimate) -> bool:
    """Whether the negatives that are returned are the nearest, by their estimate."""
    if summary.before is None or estimate.share is None:
        return summary.before is estimate.share
    return bool(np.isclose(summary.before.estimate, estimate.share.estimate))


def _nearest(problem: Problem) -> str:
    """What the estimate before the cut is about: known positives and duplicates are no candidates any more."""
    same_k = problem.counts is not None and (problem.counts == problem.width).all()
    options = problem.options
    if same_k and options.rank_range is None and options.min_score is None:
        return f"the {problem.width} nearest after duplicates are dropped"
    return "the nearest candidates that may be taken after duplicates are dropped"


def _shown(share: RateEstimate | None) -> str:
    return "unknown" if share is None else with_interval(share.estimate, share.low, share.high)


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
        return f"{labels}. Item vectors suggest more false negatives: label about 100 candidates to be sure."
    if summary.reach[0] < 1:
        return f"{labels}. These may be the easy ones: label about 100 candidates to correct the estimate."
    agree = "; item vectors agree" if check is not None and not np.isnan(check.by_vectors) else ""
    return f"{labels}, which score like a random part of all positives{agree}."

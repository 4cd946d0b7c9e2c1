"""What the estimate of false negatives says, in sentences."""

from __future__ import annotations

import numpy as np

from naysay.detectors.posterior import Posterior
from naysay.detectors.posterior_summary import PosteriorSummary
from naysay.detectors.rate import RateEstimate
from naysay.mining._false_share import SetEstimate
from naysay.mining._task import Task
from naysay.text import with_interval


def sentence(task: Task, detector: Posterior, drop_at: float, estimate: SetEstimate) -> str:
    """What the posterior estimates and drops, what is left of it in the negatives, and what the estimate rests on.

    `drop_at` is the suspicion at which candidates are dropped, `estimate` that of the negatives that are returned.
    """
    summary, target = detector.summary, f"{100 * detector.false_share:g} %"
    is_own_cut = drop_at == detector.threshold
    text = f"Estimated false negatives among {_nearest(task)}: {_share(summary.before)}"
    if is_own_cut and summary.tau >= 1:
        text = f"{text}. This is within the target of {target}, so nothing is dropped."
        if not _is_nearest(summary, estimate):
            text = f"{text} Among the negatives that are returned it is {_share(estimate.share)}."
    else:
        tau = summary.tau if is_own_cut else drop_at
        aim = f" for a target of {target}" if is_own_cut else ""
        text = (
            f"{text}. Candidates with a probability above {min(tau, 0.999):.3g} are dropped, which leaves "
            f"{_share(estimate.share)}{aim}. This lowers the mean score of the negatives from "
            f"{summary.hardness_before:.3f} to {estimate.mean_score:.3f}."
        )
    note = f" Note: {summary.reason}." if summary.reason else ""
    without = task.queries.n - len(task.held_out())
    if without:
        note = f" {without:,} anchors have no positive: they are judged by score and rank alone.{note}"
    return f"{text} {basis(summary, task)}{note}"


def trade(task: Task, detector: Posterior, estimate: SetEstimate) -> str:
    """The same for what another judge kept, or none."""
    summary, hardness = detector.summary, estimate.mean_score
    kept = _share(estimate.share)
    if task.options.judge is None:
        text = f"Estimated false negatives: {kept}. The mean score of the negatives is {hardness:.3f}."
    else:
        text = (
            f"Estimated false negatives among {_nearest(task)}: {_share(summary.before)}. The judge leaves {kept}. "
            f"This changes the mean score of the negatives from {summary.hardness_before:.3f} to {hardness:.3f}."
        )
    return f"{text} {basis(summary, task)}"


def _is_nearest(summary: PosteriorSummary, estimate: SetEstimate) -> bool:
    """Whether the negatives that are returned are the nearest, by their estimate."""
    if summary.before is None or estimate.share is None:
        return summary.before is estimate.share
    return bool(np.isclose(summary.before.estimate, estimate.share.estimate))


def _nearest(task: Task) -> str:
    """What the estimate before the cut is about: known positives and duplicates are no candidates any more."""
    one = task.counts is not None and (task.counts == task.width).all()
    plain = one and task.options.rank_range is None and task.options.min_score is None
    candidates = f"the {task.width} nearest" if plain else "the nearest candidates that may be taken"
    return f"{candidates} after duplicates are dropped"


def _share(share: RateEstimate | None) -> str:
    if share is None:
        return "unknown"
    return with_interval(share.estimate, share.low, share.high)


def basis(summary: PosteriorSummary, task: Task | None = None) -> str:
    """What the estimate rests on."""
    stated, reviewed = (None, None) if task is None else (task.options.labelled_share, task.reviewed)
    labels = f"The estimate rests on {summary.labelled:,} labelled positives"
    if reviewed is not None:
        return f"{labels}. It is corrected: {reviewed.describe()}"
    if stated is not None:
        return f"{labels}, which are {100 * stated:g} % of all positives, as stated."
    check = summary.check
    known = check is not None and not np.isnan(check.by_vectors)
    if check is not None and check.shift:
        return f"{labels}, which item vectors show to be easier than others; this is corrected."
    if check is not None and check.verdict.startswith("not corrected"):
        return f"{labels}; item vectors suggest more false negatives: label about 100 candidates to be sure."
    if summary.reach[0] < 1:
        return f"{labels}, which look easier than other positives, or those are none: label about 100 candidates."
    return f"{labels}, which score like a random part of all positives{'; item vectors agree' if known else ''}."

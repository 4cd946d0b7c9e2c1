"""What the estimate of false negatives says, in sentences."""

from __future__ import annotations

import numpy as np

from naysay.detectors.posterior import Posterior
from naysay.detectors.posterior_summary import PosteriorSummary
from naysay.detectors.share import Share
from naysay.mining._task import Task
from naysay.text import with_interval


def sentence(task: Task, detector: Posterior) -> str:
    """What the posterior estimates and drops, what that costs, and what it rests on."""
    summary, target = detector.summary, f"{100 * detector.false_share:g} %"
    text = f"Estimated false negatives among {_nearest(task)}: {_share(summary.before)}"
    if summary.tau >= 1:
        text = f"{text}. This is within the target of {target}, so nothing is dropped."
    else:
        text = (
            f"{text}. Candidates with a probability above {min(summary.tau, 0.999):.3g} are dropped, which leaves "
            f"{_share(summary.after)} for a target of {target}. This lowers the mean score of the negatives from "
            f"{summary.hardness_before:.3f} to {summary.hardness_after:.3f}."
        )
    note, without = f" Note: {summary.reason}." if summary.reason else "", task.queries.n - len(task.held_out())
    if without:
        note = f" {without:,} anchors have no positive: they are judged by score and rank alone.{note}"
    return f"{text} {basis(summary, task)}{note}"


def trade(task: Task, detector: Posterior, kept: Share, hardness: float) -> str:
    """The same for what another judge kept, or none: `kept` is its share, `hardness` its mean score."""
    summary = detector.summary
    if task.options.judge is None:
        text = f"Estimated false negatives: {_share(kept)}. The mean score of the negatives is {hardness:.3f}."
    else:
        text = (
            f"Estimated false negatives among {_nearest(task)}: {_share(summary.before)}. The judge leaves "
            f"{_share(kept)}. This changes the mean score of the negatives from {summary.hardness_before:.3f} to "
            f"{hardness:.3f}."
        )
    return f"{text} {basis(summary, task)}"


def _nearest(task: Task) -> str:
    """What the estimate before the cut is about."""
    one = task.counts is not None and (task.counts == task.width).all()
    plain = one and task.options.rank_range is None and task.options.min_score is None
    return f"the {task.width} nearest" if plain else "the nearest candidates that may be taken"


def _share(share: Share | None) -> str:
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

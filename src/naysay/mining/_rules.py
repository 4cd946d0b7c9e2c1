"""What a task decides before its anchors are mined: the scores of known and of random pairs, and what is suspected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.posterior import Posterior
from naysay.detectors.thresholds import choose_thresholds
from naysay.mining._false_share import FitLists, estimate_set, is_auto, usable
from naysay.mining._false_share_text import sentence
from naysay.mining._task import SAMPLED, Task
from naysay.mining.judge import ALPHA, Threshold, drop_at, is_fitted_here, judge_of, score_thresholds, without_positive
from naysay.rng import rng_for
from naysay.search._scores import lowest_of, pair_scores

FALSE_SHARE, HARD_SHARE = 0.001, 0.05
SAMPLE = 1 << 18  # pairs in the background sample
Floats32 = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Scores of random pairs that are not known."""

    scores: Floats32
    n_positives: int  # known positives among the pairs drawn; they count where shares of all pairs are taken
    whole: bool  # whether these are all pairs

    @property
    def varies(self) -> bool:
        """Whether there is more than one score, so that shares mean something."""
        return len(self.scores) > 0 and bool(self.scores.min() < self.scores.max())


def score_known(task: Task) -> Floats32:
    """The scores of all known pairs, in the order of `known.pairs()`."""
    return pair_scores(task.queries, task.corpus, *task.known.pairs(), task.options.metric)


def sample_of(task: Task) -> Background:
    """Score 2^18 random pairs, drawn by the seed, or all pairs if there are no more."""
    n, known = task.corpus.n, task.known
    total = task.queries.n * n
    whole = total <= SAMPLE
    drawn = np.arange(total) if whole else rng_for(task.options.seed, SAMPLED).integers(0, total, SAMPLE)
    anchors, items = drawn // max(1, n), drawn % max(1, n)
    free = ~known.contains(anchors, items, relation="any")
    scores = pair_scores(task.queries, task.corpus, anchors[free], items[free], task.options.metric)
    return Background(scores, int(np.count_nonzero(known.contains(anchors, items))), whole)


def threshold_of(
    task: Task, known_scores: Floats32, sample: Callable[[], Background], posterior: Posterior | None = None
) -> Threshold:
    """Decide what is suspected and what is too easy.

    `sample` returns the scores of random pairs; it is called only if they are needed. `posterior` is that of the task,
    if the judge is "auto": where it cannot tell, the rule says why, and another takes its place.
    """
    options, positive, sample = task.options, task.kinds["positive"], cache(sample)
    lowest = lowest_of(task.known.pairs()[0][positive], known_scores[positive], task.queries.n)
    given = judge_of(options.judge, lowest)
    if given is not None and not is_fitted_here(given):
        score_thresholds(given, task.query(np.arange(task.queries.n), task.queries))  # raises if an anchor has none
    low = lowest_score(task, given, sample)
    if options.rescore is not None:
        return Threshold(None, "", low)
    if is_auto(task) and posterior is not None and usable(posterior):
        return Threshold(posterior, rule_of(posterior), low, drop_at(posterior))
    detector, rule = decide(given, known_scores[task.held_out()], sample)
    if is_auto(task) and posterior is not None:
        review = "" if task.reviewed is None else f" {task.reviewed.describe()}"
        rule = f"How many of the nearest are false cannot be told: {posterior.reason}.{review} Instead: {rule}"
    rule += without_positive(options.judge, lowest)
    return Threshold(detector, rule, low, drop_at(detector))


def rule_of_set(
    task: Task, threshold: Threshold, lists: FitLists | None, ids: NDArray[np.int64], scores: Floats32
) -> str:
    """`Mined.rule`: what the judge does, and what it leaves of false negatives among the ids that are returned.

    `lists` are those that the posterior of "auto" was fitted to. Any other judge says what it does, and no share.
    """
    if lists is None or not isinstance(threshold.detector, Posterior):
        return threshold.rule
    estimate = estimate_set(threshold.detector, lists, ids, scores)
    return sentence(task, threshold.detector, threshold.drop_at, estimate)


def decide(judge: Any, scores: Floats32, sample: Callable[[], Background] | None) -> tuple[Any, str]:
    """Return the detector and what it does, in a sentence; for "auto", what takes the place of a posterior.

    `scores` are those of one known positive of each anchor that has some. `sample` scores random pairs; it is called
    only if the threshold is set by shares of all pairs, and None if that is not possible.
    """
    if judge is None or not is_fitted_here(judge):
        return judge, rule_of(judge)
    alpha = judge.alpha if isinstance(judge, Calibrated) else ALPHA
    fitted = calibrated(alpha, scores)
    if fitted is not None:
        return fitted, fitted.describe()
    if sample is None or isinstance(judge, Calibrated):
        raise_invalid("judge", "another, where all positives score the same", f"{len(scores)} equal scores")
    drawn = sample()
    bands = by_shares(drawn)
    return bands, _shares_sentence(bands, drawn, len(scores), alpha)


def rule_of(judge: Any) -> str:
    """What a detector does, in a sentence; None suspects nothing."""
    if judge is None:
        return "Nothing is suspected: the nearest are taken."
    if isinstance(judge, Posterior):  # `describe` is about the lists that it was fitted to, not about these negatives
        tau = min(judge.summary.tau, 0.999)
        return f"Candidates whose probability of being false negatives is above {tau:.3g} are dropped, by a posterior."
    describe = getattr(judge, "describe", None)
    return str(describe()) if callable(describe) else f"Suspected by {judge!r}."


def lowest_score(task: Task, judge: Any, sample: Callable[[], Background]) -> float | None:
    """Return the lowest score of a negative, or None. Where k is "auto", there always is one."""
    if task.options.min_score is not None or task.counts is not None:
        return task.options.min_score
    return float(judge.low) if isinstance(judge, Bands) else by_shares(sample()).low


def calibrated(alpha: float, scores: NDArray[Any]) -> Calibrated | None:
    """Fit `Calibrated` to one positive score of each anchor; None if these cannot guarantee alpha."""
    if len(scores) < least_positives(alpha) or scores.min() == scores.max():
        return None
    return Calibrated(alpha).fit(scores)


def by_shares(sample: Background) -> Bands:
    """Return the bands with 0.1 % of all pairs as false and 5 % as hard. If all scores are equal, all are easy."""
    if not sample.varies:
        return Bands(np.inf, np.inf)
    chosen = choose_thresholds(
        sample.scores, n_positives=sample.n_positives, false_share=FALSE_SHARE, hard_share=HARD_SHARE
    )
    return Bands(chosen.low, chosen.high)


def _shares_sentence(bands: Bands, sample: Background, labelled: int, alpha: float) -> str:
    if not sample.varies:
        return "Nothing is suspected: the scores of all pairs are equal."
    pairs = len(sample.scores) + sample.n_positives
    kind = "pairs" if sample.whole else "random pairs"
    return (
        f"Threshold {bands.high:.4g}: suspects {FALSE_SHARE:.1%} of {pairs:,} {kind}. This is a guess about the data: "
        f"{labelled} anchors with a positive cannot guarantee a miss rate of {alpha:.0%} "
        f"({least_positives(alpha)} can)."
    )

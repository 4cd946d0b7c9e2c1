"""The judge of a problem: as it is given, or for "auto" that of the first policy in a list that the data allow.

WeakEncoder          missing labels cannot be told from a weak encoder: the nearest, nothing is dropped
PosteriorAndShare    the posterior's cut and the 95 % rule together
ShareAlone           the 95 % rule, where there is no posterior
BandsOfPairs         a threshold by shares of all pairs, where there are no positives
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors.calibrated import Calibrated, least_positives
from naysay.detectors.posterior import DEPTH, MIN_DEPTH, OUT_OF_REACH, Posterior
from naysay.mining.candidates import Candidates, Floats32, Ids
from naysay.mining.estimate import basis, by_labels, estimate_set, nearest, settled_by, stated
from naysay.mining.fit import Alike, FitLists, FittedPosterior, is_vague, own_scores
from naysay.mining.judge import Judge, Policy, anchors_without_positive, is_yet_to_fit, judge_of, rule_of
from naysay.mining.pipeline import collect, within_limits
from naysay.mining.problem import FALSE_BAND, FIT_DEPTH, FITTED, Problem, is_auto
from naysay.rng import rng_for
from naysay.search.exact import Exact

FIT_ANCHORS = 2000  # anchors of a fit: more cost time and memory, and hardly change it
_FEWEST_ANCHORS, _FIT_SLOTS = 500, 1 << 20  # fewer anchors are fitted to where their lists are very long
_FIT_BYTES, _LIST_BYTES = 700, 80  # of a slot that is fitted, and of one that is listed
_SHORT_SHARE = 0.02  # of the anchors may be short by the cut of a posterior
_LISTS_PER_K = 2  # the lists of a fit hold at least twice as many candidates as are returned
RULE_95 = "share:0.95"  # of the score of the anchor's positive: the rule that others use most
_ENOUGH_ANCHORS = 200  # below them, an interval is wide for lack of anchors
_SHOWN = 3  # pairs that score above their positive


# ---- the judge ------------------------------------------------------------------------------------------------------


def choose_judge(problem: Problem, fitted: FittedPosterior | None = None, rescored: Floats32 | None = None) -> Judge:
    """The judge of a problem: as it is given, or for "auto" that of the first policy that the data allow.

    Args:
        problem: What is mined.
        fitted: The posterior of the problem, if it was fitted before.
        rescored: (n,) the score of one positive of each anchor by the second model, NaN without one, where candidates
            are rescored. Such scores have no posterior.
    """
    given = problem.options.judge
    if rescored is not None:
        return judge_by_scores(given, rescored, rescored[~np.isnan(rescored)])
    if not is_auto(problem.options):
        one_each = problem.known_scores[problem.one_positive_each]
        return judge_by_scores(given, problem.positive_scores, one_each, fitted)
    if fitted is None:
        fitted = fit_posterior(problem)
    policies: list[Policy] = [
        WeakEncoder(problem, fitted),
        PosteriorAndShare(problem, fitted),
        ShareAlone(problem, fitted),
        BandsOfPairs(problem, fitted),
    ]
    return next(policy for policy in policies if policy.usable()).judge()


def judge_by_scores(
    given: Any, lowest: Floats32, one_each: NDArray[Any], fitted: FittedPosterior | None = None
) -> Judge:
    """The judge as it is given; "auto" is the 95 % rule, and a `Calibrated` without scores is fitted here.

    `lowest` is (n,) the lowest score of each anchor's positives, NaN without one, and `one_each` (p,) the score of one
    positive of each anchor that has some.
    """
    detector = judge_of(given, lowest)
    if isinstance(detector, str):
        given = RULE_95
        detector = judge_of(given, lowest)
    elif is_yet_to_fit(detector):
        detector = calibrated(detector.alpha, one_each)
        if detector is None:
            raise_invalid("judge", "another, where all positives score the same", f"{len(one_each)} equal scores")
    return Judge.by(detector, anchors_without_positive(given, lowest), fitted)


def calibrated(alpha: float, scores: NDArray[Any]) -> Calibrated | None:
    """Fit `Calibrated` to one positive score of each anchor; None if these cannot guarantee alpha."""
    if len(scores) < least_positives(alpha) or scores.min() == scores.max():
        return None
    return Calibrated(alpha).fit(scores)


# ---- the policies of "auto" -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class WeakEncoder:
    """Take the nearest where missing labels cannot be told from a weak encoder.

    A weak encoder ranks true negatives above the positive, which looks like false negatives: P(labelled | score) =
    P(labelled | positive) P(positive | score). The interval shows it, by a lower end far below the estimate.
    """

    problem: Problem
    fitted: FittedPosterior

    def usable(self) -> bool:
        """Whether the nearest are above the target by the estimate, and may be far below by its interval."""
        before, summary = self.fitted.before, self.fitted.posterior.summary
        labels_look_easy = summary.reach[0] < 1  # then the lower end is 0 for another reason, and more may be false
        has_few_anchors = len(self.fitted.lists.anchors) < _ENOUGH_ANCHORS  # which make any interval wide
        is_known_otherwise = self.problem.reviewed is not None or self.problem.options.labelled_share is not None
        if before is None or is_known_otherwise or has_few_anchors or labels_look_easy or summary.biased:
            return False
        return before.estimate > self.problem.options.false_share and is_vague(before)

    def judge(self) -> Judge:
        """Nothing is suspected."""
        return Judge(None, rule_of(None), fitted=self.fitted, policy=self)

    def describe(self, judge: Judge, ids: Ids, scores: Floats32) -> str:
        """The estimate, why it is not acted on, and some candidates to look at."""
        problem = self.problem
        return (
            f"{by_labels(problem)}, how many of {nearest(problem)} are false cannot be told: the estimate is "
            f"{stated(self.fitted.before)}, and an encoder that ranks true negatives above positives would give the "
            f"same with all positives labelled. Nothing is dropped.{_above_positives(problem, ids, scores)}"
            f"{settled_by(problem)}"
        )


@final
@dataclass(frozen=True, slots=True)
class PosteriorAndShare:
    """Drop what is most likely a false negative, until the estimated share is within the target; and by the 95 % rule.

    The rule of the field costs little where the posterior is right, and helps where labels mislead it.
    """

    problem: Problem
    fitted: FittedPosterior

    def usable(self) -> bool:
        """Whether there is a posterior with a cut that leaves negatives."""
        posterior = self.fitted.posterior
        return posterior.fitted and posterior.summary.code != OUT_OF_REACH

    def judge(self) -> Judge:
        """The posterior, and the scores above which candidates are dropped, too."""
        posterior = self.fitted.posterior
        limit = judge_of(RULE_95, self.problem.positive_scores)
        return Judge(posterior, rule_of(posterior), posterior.suspicion_threshold, limit, self.fitted, self)

    def describe(self, judge: Judge, ids: Ids, scores: Floats32) -> str:
        """The estimate before and after, what is dropped, what that costs, and what the estimate rests on."""
        problem, fitted = self.problem, self.fitted
        summary, estimate = fitted.posterior.summary, estimate_set(fitted, ids, scores)
        has_own_cut = judge.drop_at == fitted.posterior.suspicion_threshold
        tau = min(summary.tau if has_own_cut else judge.drop_at, 0.999)
        dropped = "Candidates with a score above 95 % of their positive's are dropped"
        if not has_own_cut or summary.tau < 1:
            dropped = (
                f"Candidates with a probability above {tau:.3g} or a score above 95 % of their positive's are dropped"
            )
        cost = (
            f"This changes the mean score of the negatives from {summary.hardness_before:.3f} to "
            f"{estimate.mean_score:.3f}."
        )
        end = f"{_without_positive(problem)}{settled_by(problem)}"
        if not fitted.usable:
            return f"{by_labels(problem)}, {summary.reason}. {dropped}. {cost}{end}"
        target = f" for a target of {100 * fitted.posterior.false_share:g} %" if has_own_cut else ""
        uneven = " A few anchors have many of them, so the upper end is wide." if fitted.is_uneven else ""
        return (
            f"{by_labels(problem)}, an estimated {stated(fitted.before)} of {nearest(problem)} are false. {dropped}, "
            f"which leaves {stated(estimate.share)}{target}. {cost}{uneven} {basis(summary, problem)}{end}"
        )


@final
@dataclass(frozen=True, slots=True)
class ShareAlone:
    """Drop what scores above 95 % of the anchor's positive, where there is no posterior."""

    problem: Problem
    fitted: FittedPosterior

    def usable(self) -> bool:
        """Whether there are positives, and scores that differ."""
        return len(self.problem.one_positive_each) > 0 and self.problem.background.varies

    def judge(self) -> Judge:
        """The 95 % rule."""
        detector = judge_of(RULE_95, self.problem.positive_scores)
        return replace(Judge.by(detector, fitted=self.fitted), policy=self)

    def describe(self, judge: Judge, ids: Ids, scores: Floats32) -> str:
        """Why there is no estimate, and the rule."""
        end = f"{_without_positive(self.problem)}{settled_by(self.problem)}"
        return f"{_untold(self.problem, self.fitted)} {judge.rule}{judge.own_threshold}{end}"


@final
@dataclass(frozen=True, slots=True)
class BandsOfPairs:
    """Drop the highest 0.1 % of the scores of all pairs: a guess, where there are no positives."""

    problem: Problem
    fitted: FittedPosterior

    def usable(self) -> bool:
        """Always."""
        return True

    def judge(self) -> Judge:
        """Bands by shares of all pairs."""
        return replace(Judge.by(self.problem.background.bands(), fitted=self.fitted), policy=self)

    def describe(self, judge: Judge, ids: Ids, scores: Floats32) -> str:
        """The threshold, and that it is a guess."""
        background = self.problem.background
        rule = "Nothing is suspected: the scores of all pairs are equal."
        if background.varies:
            pairs = len(background.scores) + background.n_positives
            kind = "pairs" if background.whole else "random pairs"
            rule = (
                f"Threshold {background.bands().high:.4g}: suspects {FALSE_BAND:.1%} of {pairs:,} {kind}, which is a "
                "guess about the data."
            )
        return f"{_untold(self.problem, self.fitted)} {rule}{judge.own_threshold}{settled_by(self.problem)}"


def _untold(problem: Problem, fitted: FittedPosterior) -> str:
    """Why there is no estimate, and what was reviewed."""
    review = "" if problem.reviewed is None else f" {problem.reviewed.describe()}"
    return f"{by_labels(problem)}, how many of the nearest are false cannot be told: {fitted.posterior.reason}.{review}"


def _without_positive(problem: Problem) -> str:
    """What is done about anchors without a positive."""
    count = problem.queries.n - len(problem.one_positive_each)
    return f" {count:,} anchors have no positive, to which the 95 % rule does not apply." if count else ""


def _above_positives(problem: Problem, ids: Ids, scores: Floats32) -> str:
    """Three of the negatives that score above their anchor's positive, the farthest above; or nothing."""
    excess = np.where(ids >= 0, scores - problem.positive_scores[:, None], -np.inf)
    excess = np.where(np.isnan(excess), -np.inf, excess)
    order = np.argsort(-excess, axis=None, kind="stable")[:_SHOWN]
    shown = []
    for row, slot in zip(*np.unravel_index(order, ids.shape), strict=True):
        if excess[row, slot] > 0:
            positive = problem.positive_scores[row]
            shown.append(f"{ids[row, slot]} for anchor {row} ({scores[row, slot]:.3f}, positive {positive:.3f})")
    return f" Some that score above the positive: {'; '.join(shown)}." if shown else ""


# ---- the posterior --------------------------------------------------------------------------------------------------


def fit_posterior(problem: Problem) -> FittedPosterior:
    """Fit the posterior of a problem to a sample of its anchors."""
    posterior, anchors = unfitted(problem), sampled_anchors(problem)
    has_all = len(anchors) == problem.queries.n and _search_depth(problem) == problem.first_depth
    lists, blocks = _searched(problem, posterior, anchors, keep=has_all)
    candidates = Candidates.stacked(blocks) if has_all else None
    return FittedPosterior(_fit_and_cut(problem, posterior, lists), lists, candidates)


def lists_of(problem: Problem, posterior: Posterior, anchors: Ids) -> FitLists:
    """The lists of some anchors, as a posterior is fitted to them."""
    return _searched(problem, posterior, anchors, keep=False)[0]


def _searched(problem: Problem, posterior: Posterior, anchors: Ids, *, keep: bool) -> tuple[FitLists, list[Candidates]]:
    """The lists of some anchors, and if they are to be kept all candidates of each block of anchors."""
    depth, width = _search_depth(problem), fit_depth(problem)
    lists, blocks = [], []
    for block in problem.blocks(anchors, depth):
        candidates = collect(problem, block, depth, silent=True)
        listed, free = candidates.eligible, within_limits(candidates, problem).kept
        listed[:, width:depth] = False
        free[:, problem.deepest : width] = False  # which only the fit searches
        n_of_other_sources = candidates.ids.shape[1] - depth
        lists.append(FitLists.of(posterior, block, candidates, listed, free, width + n_of_other_sources))
        if keep:
            blocks.append(candidates)
    return FitLists.joined(lists), blocks


def _search_depth(problem: Problem) -> int:
    """How deep the anchors of a fit are searched; the first `fit_depth` candidates of the search are listed."""
    return max(problem.first_depth, fit_depth(problem))


def sampled_anchors(problem: Problem) -> Ids:
    """Anchors with a labelled positive, in order; a random sample by the seed if there are more than a fit takes.

    Anchors of pairs that were reviewed are among them.
    """
    anchors, count = np.sort(problem.known.pairs()[0][problem.one_positive_each]), _most_anchors(problem)
    if len(anchors) > count:
        anchors = np.sort(rng_for(problem.options.seed, FITTED).choice(anchors, count, replace=False))
    return anchors if problem.reviewed is None else np.union1d(anchors, problem.reviewed.anchors)


def fit_depth(problem: Problem) -> int:
    """How deep the lists of a fit are: as a posterior reads them, and twice as many as are returned.

    All candidates behind what it reads have one posterior, so that more of them would tell nothing.
    """
    return min(max(_LISTS_PER_K * problem.largest_k, problem.judged_depth), problem.n_items)


def fit_bytes(problem: Problem) -> int:
    """The memory that a fit may need."""
    anchors = min(problem.queries.n, _most_anchors(problem))
    slots = fit_depth(problem) + sum(ids.shape[1] for ids in problem.sources.values())
    return int(anchors * (slots * _LIST_BYTES + FIT_DEPTH * _FIT_BYTES))


def _most_anchors(problem: Problem) -> int:
    return min(FIT_ANCHORS, max(_FEWEST_ANCHORS, _FIT_SLOTS // fit_depth(problem)))


def unfitted(problem: Problem) -> Posterior:
    """The posterior of a problem, to be fitted or restored."""
    options, anchors = problem.options, problem.known.pairs()[0]
    chosen = problem.one_positive_each
    one_positive = np.full(problem.queries.n, np.nan, np.float32)
    one_positive[anchors[chosen]] = problem.known_scores[chosen]
    norms = problem.searcher.norms if isinstance(problem.searcher, Exact) else None
    return Posterior(
        max(1, problem.largest_k),
        options.false_share,
        depth=min(DEPTH, max(MIN_DEPTH, problem.deepest)),
        positive_scores=one_positive,
        alike=Alike(problem.corpus, *problem.positive_pairs, problem.queries.n, norms),
        labelled_share=options.labelled_share,
        seed=options.seed,
    )


def _fit_and_cut(problem: Problem, posterior: Posterior, lists: FitLists) -> Posterior:
    """Fit the posterior, correct it by what was reviewed, and cut it for what the problem may return.

    Where the cut leaves anchors short, and candidates behind the lists are above it, too, a deeper search would not
    help: the target is out of reach.
    """
    positive_scores, counts = own_scores(posterior, lists.anchors), problem.counts_of(lists.anchors)
    labelled = problem.positive_pairs[0]
    mean_labelled = len(labelled) / max(1, len(np.unique(labelled)))
    posterior.fit_lists(lists.for_posterior(positive_scores), lists.anchors, mean_labelled)
    if not posterior.fitted:
        return posterior
    if problem.reviewed is not None:
        truth = problem.reviewed.of_lists(lists)
        if (truth >= 0).any():
            posterior.correct(lists.scores, positive_scores, truth, alike=lists.alike)
    takes_the_nearest = (counts == posterior.k).all() and (lists.free | (lists.ids < 0)).all()
    if problem.reviewed is not None or not takes_the_nearest:
        posterior = recut(problem, posterior, lists, posterior.false_share)
    summary, state = posterior.summary, posterior.state()
    short_anyway = int((np.count_nonzero(lists.free, axis=1) < counts).sum())
    short_by_cut = summary.short - short_anyway
    if short_by_cut > _SHORT_SHARE * len(counts) and state["beyond"] > summary.tau:
        posterior.restore({**state, "code": OUT_OF_REACH})
    return posterior


def recut(problem: Problem, posterior: Posterior, lists: FitLists, false_share: float) -> Posterior:
    """The same posterior, cut so that what the problem returns has another estimated share of false negatives."""
    positive_scores, counts = own_scores(posterior, lists.anchors), problem.counts_of(lists.anchors)
    return posterior.recut(
        false_share, lists.scores, positive_scores, alike=lists.alike, free=lists.free, counts=counts
    )

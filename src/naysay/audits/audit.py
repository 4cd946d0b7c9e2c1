"""audit: how good are the negatives of an existing training set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from naysay.audits._training_set import (
    SetScores,
    TrainingSet,
    problem_of,
    scores_as_given,
    scores_by_problem,
    training_set,
)
from naysay.audits.advice import advice_on, commands_for, notes_on
from naysay.audits.false_share import Mask, SetPosterior, Trade, false_share, half_false, posterior_of_set, trade_of
from naysay.audits.findings import RandomScores, gradient_share, k_verdict, random_scores, repeats
from naysay.audits.result import Audit
from naysay.audits.review import ReviewPlan, SetReview, review_set
from naysay.audits.suspects import (
    BY_SCORE,
    REVIEWED,
    UNCHECKED,
    Reasons,
    copies,
    count_reasons,
    is_proven,
    score_threshold,
    with_near_vectors,
    worst_rows,
)
from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid, with_parameter
from naysay.detectors.rate import RateEstimate
from naysay.mining.problem import Problem
from naysay.rng import rng_for
from naysay.search._scores import METRICS

_TRAINED_ON = (
    "The estimate and the thresholds rest on the set's own positives. If the model was trained on them, they score "
    "higher than unlabelled ones, and more negatives are false than estimated. Use vectors of a model that has not "
    "seen them."
)
_SMALL_CORPUS = "The corpus is the set itself: documents that are in no row were not sampled."


@public
def audit(
    negatives: Any,
    *,
    format: str | None = None,
    query_vectors: Any = None,
    corpus_vectors: Any = None,
    query_ids: Any = None,
    corpus_ids: Any = None,
    scores: Any = None,
    positive_scores: Any = None,
    metric: str = "cosine",
    temperature: float = 0.05,
    alpha: float = 0.05,
    top: int = 10,
    seed: int = 0,
    reviewer: Any = None,
    review: int = 0,
    answers: str | Path | None = None,
) -> Audit:
    """Audit the negatives of a training set: false, too easy, copied or repeated ones, whether k fits, what to do.

    Vectors allow all checks: a `detectors.Posterior` is fitted to the nearest candidates of at most 2,000 anchors with
    a labelled positive, and the mean posterior of the negatives is the estimated share of false ones. For `Mined` the
    same is done with what it was mined from. With scores alone there is at most an upper bound, and no check of
    k. With neither, copies, duplicates and repeated documents are found. A reviewer is asked about some negatives; its
    answers give the share of false ones, with or without vectors. `Audit.fix` writes the set without what was found.
    Cost: O(d) per pair of the set, a search for 2,000 anchors, a pass over the texts, and at most 2^19 random
    pairs; about 40 bytes per slot and 264 per text.

    Args:
        negatives: A training file in any format of `formats.read_negatives`, a `TrainingFile`, or `Mined`.
        format: The format of the file; None detects it by the columns.
        query_vectors: (n, d), or a file, as for `mine`. Row i belongs to query i of the set, by row number or else in
            the order of `read_negatives`.
        corpus_vectors: (N, d), or a file, the same for documents.
        query_ids: Names of the rows of `query_vectors`, if the set has ids or texts and the vectors are in another
            order, or more: a list, or a file (.txt with one name per line, or a table of one column).
        corpus_ids: Names of the rows of `corpus_vectors`.
        scores: (n, k) scores of the negatives, instead of vectors. None: those of the set, if it has any.
        positive_scores: (pairs,) scores beside positives.pairs(); only with `scores`.
        metric: "cosine", "dot" or "l2"; higher scores are closer.
        temperature: The temperature of InfoNCE, for the gradient share.
        alpha: The miss rate of the suggested threshold "calibrated": the share of unlabelled positives below it
            (`detectors.Calibrated`).
        top: How many of the worst rows to keep.
        seed: Seed for the positive drawn per anchor, the random documents, the fit, and the pairs to review.
        reviewer: Who can answer whether a document answers a query: a function of pairs (.anchors, .items, .queries,
            .documents) -> (n,) from 0 to 1, a reviewer such as `CrossEncoder`, `LLM` or `People`, a text such as
            "cross-encoder:PATH", or a list [cheap, trusted]: the second checks the yes answers of the first.
        review: The largest number of answers about negatives, at most one for each anchor. Beside them, a reviewer
            other than people is asked about max(15, review / 10) labelled positives, to know how many it finds.
        answers: A file that keeps the answers, so that no pair is asked about twice.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(200, 400, per_anchor=6, noise=0.3)
        >>> mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 4, judge=None)
        >>> result = ns.audit(mined, query_vectors=world.anchor_vectors, corpus_vectors=world.item_vectors)
        >>> share = result.false_share
        >>> result.negatives, result.proven, share.low <= share.estimate <= share.high
        (800, 0, True)
        >>> result = ns.audit(mined, reviewer=lambda pairs: world.truth.contains(pairs.anchors, pairs.items), review=80)
        >>> 0 < result.review.false == result.suspected_by["reviewed"] < result.review.reviewed <= 80
        True
    """
    check_one_of("metric", metric, tuple(METRICS))
    settings: dict[str, Any] = {
        "metric": metric,
        "temperature": check_number("temperature", temperature, above=0, finite=True),
        "alpha": check_number("alpha", alpha, above=0, below=1),
        "seed": check_whole("seed", seed, 0),
    }
    check_whole("top", top, 0)
    inputs = {
        "query_vectors": query_vectors,
        "corpus_vectors": corpus_vectors,
        "query_ids": query_ids,
        "corpus_ids": corpus_ids,
    }
    _check_one_source(inputs, scores)
    plan = ReviewPlan.of(reviewer, review, answers)
    with with_parameter("negatives", instead_of="path"):
        given = training_set(negatives, format)
    if plan is not None:
        plan.check(given)
    evidence = _evidence_of(given, inputs, scores, positive_scores, metric, seed)
    known_scores, set_posterior = evidence.scores, evidence.set_posterior
    reasons = _copies_of(given, evidence, metric)
    filled, proven = given.ids >= 0, is_proven(reasons)
    unproven, proven_share = filled & ~proven, float(proven.sum() / filled.sum())
    share = false_share(known_scores, set_posterior, proven, filled)
    reviewed, by_review = None, None
    if plan is not None:
        reviewed = review_set(plan, given, known_scores, set_posterior, proven, seed)
        by_review = reviewed.rate(unproven, proven_share, fixed=False)
        share = by_review or share
    decides = reviewed if by_review is not None else None  # too few answers decide nothing about other negatives
    trade, half_false_from = _trade(evidence, decides, unproven, proven_share, share)
    threshold = score_threshold(known_scores, evidence.random, settings["alpha"], half_false_from)
    if known_scores is not None:
        reasons[(known_scores.negatives >= threshold.value) & (reasons == 0)] = BY_SCORE
    after_fix = None
    if reviewed is not None:
        after_fix = reviewed.rate(filled & (reasons == 0), 0.0, fixed=True)
        reasons[reviewed.slots(0)] = 0
        reasons[reviewed.slots(1)] = REVIEWED
        reasons[reviewed.slots(nan)] = UNCHECKED
    suspected = reasons > 0
    n_documents = given.positives.n_items if evidence.problem is None else evidence.problem.n_items
    verdict = k_verdict(given.k, evidence.random, known_scores)
    gradient, notes = None, [*notes_on(share), *(() if plan is None else plan.notes())]
    if evidence.problem is not None and n_documents == given.positives.n_items and given.corpus_names is not None:
        notes.append(_SMALL_CORPUS)
    if known_scores is not None and len(known_scores.one_each):
        gradient = gradient_share(known_scores, suspected, settings["temperature"])
        notes.append(_TRAINED_ON)
    result = Audit(
        name=given.name,
        anchors=int(filled.any(axis=1).sum()),
        negatives=int(filled.sum()),
        documents=n_documents,
        proven=int(proven.sum()),
        duplicates=given.duplicates,
        suspected_by=count_reasons(reasons),
        suspected=int(suspected.sum()),
        false_share=share,
        review=None if reviewed is None else reviewed.summary(after_fix),
        trade=trade,
        rule=threshold.rule,
        gradient_share=gradient,
        repeats=repeats(given.ids, n_documents, given.corpus_label),
        k_verdict=verdict,
        thresholds=threshold.suggested,
        worst=worst_rows(given, known_scores, reasons, top),
        advice=(),
        commands=commands_for(given, metric, inputs, verdict),
        notes=tuple(notes),
        settings=settings,
        _set=given,
        _threshold=threshold.value,
        _bands=threshold.bands,
        _scores=known_scores,
        _reasons=reasons,
    )
    return replace(result, advice=advice_on(result))


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """What is known about a set beside its ids and texts."""

    problem: Problem | None  # its vectors
    scores: SetScores | None
    set_posterior: SetPosterior | None  # the posterior of the nearest candidates
    random: RandomScores | None  # scores of random documents


def _evidence_of(
    given: TrainingSet, inputs: dict[str, Any], scores: Any, positive_scores: Any, metric: str, seed: int
) -> _Evidence:
    """By vectors, or else by scores: those of the caller, or of the set."""
    if inputs["query_vectors"] is None:
        known_scores = scores_as_given(given, scores, positive_scores, rng_for(seed))
        has_own_scores = scores is None and known_scores is not None
        return _Evidence(None, known_scores, posterior_of_set(given, given.problem) if has_own_scores else None, None)
    problem = problem_of(given, **inputs, metric=metric, seed=seed)
    known_scores = scores_by_problem(given, problem, rng_for(seed))
    random = random_scores(problem, known_scores, rng_for(seed, step=1))
    return _Evidence(problem, known_scores, posterior_of_set(given, problem), random)


def _copies_of(given: TrainingSet, evidence: _Evidence, metric: str) -> Reasons:
    """(n, k) why each slot is a copy, by texts, ids and vectors; 0 if it is none."""
    reasons = copies(given)
    if evidence.problem is None or evidence.scores is None or metric != "cosine":
        return reasons
    return with_near_vectors(reasons, given, evidence.scores, evidence.problem.corpus)


def _trade(
    evidence: _Evidence, reviewed: SetReview | None, unproven: Mask, proven_share: float, share: RateEstimate
) -> tuple[Trade | None, float | None]:
    """What dropping would cost, and from which score on half are false; None where that cannot be estimated.

    `unproven` (n, k) are the negatives that are not proven to be false; `proven_share` of all are.
    """
    scores, set_posterior = evidence.scores, evidence.set_posterior
    if scores is None or not (scores.filled & unproven).any():
        return None, None
    unproven = scores.filled & unproven
    estimate = (share.estimate - proven_share) / (1 - proven_share)
    if reviewed is not None:
        anchors, probability = reviewed.anchors, reviewed.probability()
    elif set_posterior is not None and not share.bound:
        anchors, probability = set_posterior.anchors, set_posterior.slots(unproven, estimate)
    else:
        return None, None
    own = scores.negatives[anchors].astype(np.float64)
    trade = None if share.bound else trade_of(probability, own, estimate, int(unproven.sum()))
    return trade, half_false(probability, own)


def _check_one_source(inputs: dict[str, Any], scores: Any) -> None:
    """Raise for half of the vectors, names without vectors, and scores beside vectors."""
    given = [name for name, value in inputs.items() if value is not None]
    vectors = ("query_vectors", "corpus_vectors")
    missing = [name for name in vectors if name not in given]
    if len(missing) == 1:
        raise_invalid(missing[0], "given along with the other vectors", "nothing")
    if not missing and scores is not None:
        raise_invalid("scores", "left out with vectors", "both", "Pass one of them.")
    if missing and given:
        raise_invalid(given[0], "left out without vectors", "names")

"""audit: how good are the negatives of an existing training set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from naysay.audits._advice import advice_on, commands_for, notes_on
from naysay.audits._false_share import CorpusSample, false_share, sample_corpus
from naysay.audits._posterior import Judged, half_false, judged_by_candidates, judged_by_vectors, trade_of
from naysay.audits._training_set import (
    SetScores,
    TrainingSet,
    scores_as_given,
    scores_by_vectors,
    training_set,
    vectors_of,
)
from naysay.audits.findings import gradient_share, k_verdict, repeats
from naysay.audits.result import Audit
from naysay.audits.suspects import (
    Reasons,
    copies,
    count_reasons,
    is_proven,
    score_threshold,
    with_near_vectors,
    worst_rows,
)
from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid, with_parameter
from naysay.mining.problem import read_known
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
) -> Audit:
    """Audit the negatives of a training set: false, too easy, copied or repeated ones, whether k fits, what to do.

    Vectors allow all checks: a `detectors.Posterior` is fitted to the nearest candidates of at most 2,000 anchors with
    a labelled positive, and the mean posterior of the negatives is the estimated share of false ones. For `Mined` the
    same is done with the candidates that it holds. With scores alone there is at most an upper bound, and no check of
    k. With neither, copies, duplicates and repeated documents are found. Cost: O(d) per pair of the set, a search for
    2,000 anchors, a pass over the texts, and at most 2^22 sampled pairs; about 40 bytes per slot and 264 per text.

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
        seed: Seed for the positive drawn per anchor and for the corpus sample.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(200, 400, per_anchor=6, noise=0.3)
        >>> mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 4, judge=None)
        >>> result = ns.audit(mined, query_vectors=world.anchor_vectors, corpus_vectors=world.item_vectors)
        >>> share = result.false_share
        >>> result.negatives, result.proven, share.low <= share.estimate <= share.high
        (800, 0, True)
    """
    check_one_of("metric", metric, tuple(METRICS))
    settings = {
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
    with with_parameter("negatives", instead_of="path"):
        given = training_set(negatives, format)
    sample: CorpusSample | None = None
    judged: Judged | None = None
    known: SetScores | None
    documents, notes = given.positives.n_items, []
    if query_vectors is None:
        known = scores_as_given(given, scores, positive_scores, rng_for(seed))
        reasons = copies(given)
        judged = None if known is None or scores is not None else judged_by_candidates(given, known, seed)
    else:
        queries, corpus = vectors_of(given, query_vectors, corpus_vectors, query_ids, corpus_ids, metric)
        known = scores_by_vectors(given, queries, corpus, metric, rng_for(seed))
        positives = read_known("negatives", given.positives, queries.n, corpus.n)
        sample = sample_corpus(queries, corpus, positives, known, metric, rng_for(seed, step=1))
        judged = judged_by_vectors(given, known, queries, corpus, positives, metric, seed)
        reasons = copies(given)
        if metric == "cosine":
            reasons = with_near_vectors(reasons, given, known, corpus)
        if corpus.n == documents and given.corpus_names is not None:
            notes.append(_SMALL_CORPUS)
        documents = corpus.n
    if known is not None and len(known.one_each):
        notes.append(_TRAINED_ON)
    result = _findings(given, known, (sample, judged), reasons, documents, top, settings)
    commands = commands_for(given, metric, inputs, result.k_verdict)
    return replace(result, commands=commands, notes=(*result.notes, *notes))


def _findings(
    given: TrainingSet,
    scores: SetScores | None,
    corpus: tuple[CorpusSample | None, Judged | None],
    reasons: Reasons,
    documents: int,
    top: int,
    settings: dict[str, Any],
) -> Audit:
    """Return all findings, once everything is scored."""
    (sample, judged), filled, proven = corpus, given.ids >= 0, is_proven(reasons)
    false, trade, half = false_share(scores, sample, judged, proven, filled), None, None
    if scores is not None and judged is not None and not false.bound and (scores.filled & ~proven).any():
        rest, sure = scores.filled & ~proven, false.low
        estimate = (false.estimate - sure) / (1 - sure) if sure < 1 else 0.0
        own = scores.negatives[judged.lists.anchors].astype(np.float64)
        probability = judged.slots(rest, estimate)
        trade, half = trade_of(probability, own, estimate, int(rest.sum())), half_false(probability, own)
    threshold = None if scores is None else score_threshold(scores, sample, settings["alpha"], half)
    value = np.inf if threshold is None else threshold.value
    by_score = np.zeros_like(filled) if scores is None else scores.negatives >= value
    suspected = by_score | (reasons > 0)
    counts = count_reasons(reasons) | {"score": int((by_score & (reasons == 0)).sum())}
    share = None
    if scores is not None and len(scores.one_each):
        share = gradient_share(scores, suspected, settings["temperature"])
    per_anchor = np.count_nonzero(filled, axis=1)
    result = Audit(
        name=given.name,
        anchors=int((per_anchor > 0).sum()),
        negatives=int(filled.sum()),
        documents=documents,
        proven=int(proven.sum()),
        duplicates=given.duplicates,
        suspected_by={name: count for name, count in counts.items() if count},
        suspected=int(suspected.sum()),
        false_share=false,
        trade=trade,
        rule="No negative is suspected by its score: there are no scores." if threshold is None else threshold.rule,
        gradient_share=share,
        repeats=repeats(given.ids, documents, lambda row: given.label("corpus", row)),
        k_verdict=k_verdict(int(np.median(per_anchor[per_anchor > 0])), sample, scores),
        thresholds={} if threshold is None else threshold.suggested,
        worst=worst_rows(given, scores, reasons, value, top),
        advice=(),
        commands=(),
        notes=notes_on(false),
        settings=settings,
        _threshold=value,
        _bands=None if threshold is None else threshold.bands,
        _scores=scores,
        _reasons=reasons,
    )
    return replace(result, advice=advice_on(result))


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

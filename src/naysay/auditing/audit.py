"""audit: how good are the negatives of a training set that exists already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from naysay.auditing import _copies as copies
from naysay.auditing._advice import Inputs, advice, commands
from naysay.auditing._corpus_sample import Look, look
from naysay.auditing._false_share import false_share
from naysay.auditing._given_vectors import moved, opened, rows_of
from naysay.auditing._scored import Scored, as_given, by_vectors
from naysay.auditing._threshold import Line, line
from naysay.auditing._training_set import TrainingSet, training_set
from naysay.auditing.gradient_share import by_band, pulls
from naysay.auditing.k_verdict import enough
from naysay.auditing.repeats import repeats
from naysay.auditing.result import Audit
from naysay.auditing.worst import called, worst
from naysay.checks import check_number, check_one_of, check_whole, raise_invalid
from naysay.mining._known import read_known
from naysay.rng import rng_for
from naysay.search._pair_scores import METRICS
from naysay.search.vectors import Vectors

_TRAINED = (
    "The line and the share rest on the set's own positives: if the model was trained on them they score higher than "
    "unlabelled ones, and both come out too hopeful. Vectors of a model that has not seen them say more."
)
_IN_THE_SET = "The corpus is what the set itself holds: documents that are in no row were not looked at."


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
    """Say how many negatives of a training set are false, too easy, copies or repeated, whether k fits, and what to do.

    Vectors say most. Scores alone give no verdict on k and a weaker share of false negatives; without either, what is
    found is copies, duplicates and repetitions. Cost: O(d) a pair, a pass over the texts, and a look at 2^22 pairs at
    most; some 40 bytes a slot, 264 a text, and blocks.

    Args:
        negatives: A training file in any format of `mining.read_negatives`; what that answered; or `Mined`.
        format: Of the file; None tells it by the columns.
        query_vectors: (n, d) and (N, d), or files of them, as `mine` takes them. Row i is query, or document, i of
            the set: its row numbers, or else the order in which `read_negatives` gives them.
        corpus_vectors: (n, d) and (N, d), or files of them, as `mine` takes them. Row i is query, or document, i of
            the set: its row numbers, or else the order in which `read_negatives` gives them.
        query_ids: What the vectors' rows are called, where the set has ids or texts and the vectors stand in
            another order, or are more: lists, or files, .txt with one a line or tables of one column.
        corpus_ids: What the vectors' rows are called, where the set has ids or texts and the vectors stand in
            another order, or are more: lists, or files, .txt with one a line or tables of one column.
        scores: (n, k) of the negatives, and positive_scores (pairs,) beside positives.pairs(), in place of vectors.
            None: those of the set, if it has any.
        metric: "cosine", "dot" or "l2"; higher scores are closer.
        temperature: T of InfoNCE, at which the pull of a negative is measured.
        alpha: How many unlabelled positives may pass the line, as a share (`detectors.Calibrated`).
        top: How many of the worst rows to keep.
        seed: Of what is drawn: one positive of each anchor, and the look at the corpus.

    Example:
        >>> import naysay as ns
        >>> world = ns.planted_world(200, 400, per_anchor=6, noise=0.3)
        >>> mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 4, judge=None)
        >>> found = audit(mined, query_vectors=world.anchor_vectors, corpus_vectors=world.item_vectors)
        >>> found.negatives, found.proven, found.false.low <= found.false.estimate <= found.false.high
        (800, 0, True)
    """
    check_one_of("metric", metric, tuple(METRICS))
    sharpness, share = check_number("temperature", temperature), check_number("alpha", alpha)
    if not 0 < sharpness < np.inf:
        raise_invalid("temperature", "above 0 and finite", sharpness)
    if not 0 < share < 1:
        raise_invalid("alpha", "above 0 and below 1", share)
    check_whole("top", top, 0)
    check_whole("seed", seed, 0)
    _check_one_source(query_vectors, corpus_vectors, query_ids, corpus_ids, scores)
    found = training_set(negatives, format)
    notes = []
    sides: tuple[Vectors, Vectors] | None = None
    scored: Scored | None
    seen: Look | None = None
    if query_vectors is not None:
        sides = _sides(found, query_vectors, corpus_vectors, query_ids, corpus_ids, metric)
        scored = by_vectors(found, *sides, metric, rng_for(seed))
        known = read_known("negatives", found.positives, sides[0].n, sides[1].n)
        seen = look(*sides, known, scored, metric, rng_for(seed, step=1))
        if sides[1].n == found.positives.n_items and found.corpus_names is not None:
            notes.append(_IN_THE_SET)
    else:
        scored = as_given(found, scores, positive_scores, rng_for(seed))
    reasons = copies.copies(found)
    if sides is not None and scored is not None and metric == "cosine":
        reasons = copies.with_near_vectors(reasons, found, scored, sides[1])
    judged = None if scored is None else line(scored, seen, share)
    if scored is not None and len(scored.one):
        notes.append(_TRAINED)
    settings = {"metric": metric, "temperature": sharpness, "alpha": share, "seed": seed}
    documents = found.positives.n_items if sides is None else sides[1].n
    inputs = Inputs(
        path=found.path,
        format=found.format,
        named=found.corpus_names is not None,
        queries=_file(query_vectors),
        corpus=_file(corpus_vectors),
        query_names=_file(query_ids),
        corpus_names=_file(corpus_ids),
        metric=metric,
    )
    return _judged(found, scored, seen, reasons, judged, documents, inputs, top, tuple(notes), settings)


def _judged(
    found: TrainingSet,
    scored: Scored | None,
    seen: Look | None,
    reasons: copies.Reasons,
    judged: Line | None,
    documents: int,
    inputs: Inputs,
    top: int,
    notes: tuple[str, ...],
    settings: dict[str, Any],
) -> Audit:
    """All findings, once everything is scored."""
    filled, sure = found.ids >= 0, copies.proven(reasons)
    slots = int(filled.sum())
    high = np.inf if judged is None else judged.high
    by_score = np.zeros_like(filled) if scored is None else scored.negatives >= high
    suspected = by_score | (reasons > 0)
    by = copies.counted(reasons) | {"score": int((by_score & (reasons == 0)).sum())}
    pulled = None
    if scored is not None and len(scored.one):
        pulled = by_band(*pulls(scored, settings["temperature"]), suspected, settings["temperature"])
    counts = np.count_nonzero(filled, axis=1)
    share = false_share(scored, seen, sure, filled)
    often = repeats(found.ids, documents, lambda row: called(row, found.corpus_texts, found.corpus_names))
    quantity = enough(int(np.median(counts[counts > 0])), seen)
    numbers = (int(sure.sum()), int(suspected.sum()), high, pulled, found.duplicates, often, quantity)
    return Audit(
        name=found.name,
        anchors=int((counts > 0).sum()),
        negatives=slots,
        documents=documents,
        false=share,
        suspected=int(suspected.sum()),
        suspected_by={name: count for name, count in by.items() if count},
        proven=int(sure.sum()),
        rule="Nothing is suspected by its score: there are none." if judged is None else judged.rule,
        pulls=pulled,
        duplicates=found.duplicates,
        repeats=often,
        quantity=quantity,
        thresholds={} if judged is None else judged.suggested,
        worst=worst(found, scored, reasons, high, top),
        advice=advice(slots, share, *numbers),
        commands=commands(inputs, quantity),
        notes=(*(f"Assumed: {each}." for each in share.assumptions), *map(_sentence, share.notes), *notes),
        settings=settings,
        _shares=None if judged is None else judged.shares,
        _scored=scored,
        _reasons=reasons,
    )


def _file(given: Any) -> Path | None:
    return Path(given) if isinstance(given, str | Path) else None


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."


def _check_one_source(queries: Any, corpus: Any, query_ids: Any, corpus_ids: Any, scores: Any) -> None:
    """Refuse half of the vectors, names without vectors, and scores beside vectors."""
    if (queries is None) != (corpus is None):
        missing = "query_vectors" if queries is None else "corpus_vectors"
        raise_invalid(missing, "given along with the other vectors", None)
    if queries is not None and scores is not None:
        raise_invalid("scores", "None where there are vectors", "both", "Pass what the audit should go by.")
    for name, given in (("query_ids", query_ids), ("corpus_ids", corpus_ids)):
        if given is not None and queries is None:
            raise_invalid(name, "left out without vectors", "names")


def _sides(
    found: TrainingSet, queries: Any, corpus: Any, query_ids: Any, corpus_ids: Any, metric: str
) -> tuple[Vectors, Vectors]:
    """The vectors of both sides, in the order of the set."""
    asked, held = opened("query_vectors", queries, metric), opened("corpus_vectors", corpus, metric)
    if asked.width != held.width:
        raise_invalid("query_vectors", f"of width {held.width}, like `corpus_vectors`", asked.width)
    rows = rows_of("query", found.positives.n_anchors, found.query_names, query_ids, asked)
    places = rows_of("corpus", found.positives.n_items, found.corpus_names, corpus_ids, held)
    return moved(asked, rows), moved(held, places)

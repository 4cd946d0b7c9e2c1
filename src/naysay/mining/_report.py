"""Mined negatives as a report: what to do, the scores, a threshold to move, counts, and examples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._options import takes_options
from naysay.checks import check_whole, public, raise_invalid, shown
from naysay.detectors.share import Share
from naysay.files import as_path, check_page
from naysay.mining._report_parts import (
    Labels,
    charts_of,
    examples_of,
    floats_of,
    one_positive_each,
    outcomes,
    positive_scores,
    thresholds_of,
)
from naysay.mining.candidates import Candidates
from naysay.mining.explain import MinedArrays
from naysay.mining.judge import was_suspicious
from naysay.mining.select import NOT_SELECTED
from naysay.quantity.estimate import Estimate
from naysay.report.contents import Contents
from naysay.report.html import write_report
from naysay.report.scores import Sample, Scores
from naysay.report.threshold import Decided, rate_of, sample_of, share_of
from naysay.rng import rng_for
from naysay.text import percent, versions

_SLOTS = 1 << 22  # candidates in the report, in whole anchors
_HIGH_RATE = 0.05  # a false-negative rate to review before training


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportOptions:
    """What a report of mined negatives shows beside them.

    Args:
        title: The title of the page.
        numbers: {what: figure} for the headline, beside the report's own; the same name replaces it.
        query_texts: The texts of queries: an object with len() and [row]; only rows that are shown are read.
        corpus_texts: The texts of the corpus, the same.
        query_ids: The ids of queries, the same.
        corpus_ids: The ids of the corpus, the same.
        provenance: {what: value} beside versions and settings: arguments, seed, hashes of the input.
        background: (s,) scores of random pairs that are not known. With them the threshold tables are about all pairs,
            and the number of negatives can be estimated; without, the tables are about what was found.
        run: What `quantity.estimate` returned for the AUCs of a run: its k is shown in place of one from the
            background.
        one_positive: (n,) the score of one known positive of each anchor, NaN without one. By default it is drawn by
            the seed. All estimates of false negatives rest on it.
        of_anchors: How many anchors there are, if `mined` holds a part of them.
        seed: Seed of the anchors, if there are many, and of the examples.
    """

    title: str = ""
    numbers: Mapping[str, str] | None = None
    query_texts: Any = None
    corpus_texts: Any = None
    query_ids: Any = None
    corpus_ids: Any = None
    provenance: Mapping[str, str] | None = None
    background: Any = None
    run: Estimate | None = None
    one_positive: Any = None
    of_anchors: int | None = None
    seed: int = 0


@public
@takes_options(ReportOptions)
def report_mined(mined: MinedArrays, path: str | Path, options: ReportOptions) -> Path:
    """Write what was mined as one HTML file; see `write_report`.

    With more than 4,194,304 candidates, distributions and examples are of a sample of anchors, as a note
    says. Counts are of all.

    Args:
        mined: A `Mined`.
        path: The file, which ends in .html.
        options: What the report shows beside them.

    Returns:
        The path.
    """
    if not isinstance(mined, MinedArrays):
        raise_invalid("mined", "a Mined", type(mined).__name__)
    check_page("path", as_path("path", path))
    if not isinstance(options.run, Estimate | None):
        raise_invalid("run", "an Estimate, of quantity.estimate, or None", type(options.run).__name__)
    kinds = {"title": (str, "a text"), "numbers": (Mapping, "a dictionary"), "provenance": (Mapping, "a dictionary")}
    for name, (kind, rule) in kinds.items():
        if getattr(options, name) is not None and not isinstance(getattr(options, name), kind):
            raise_invalid(name, rule, shown(getattr(options, name)))
    n, depth = mined.candidates.ids.shape
    total = n if options.of_anchors is None else check_whole("of_anchors", options.of_anchors, n)
    queries = Labels("query", options.query_texts, options.query_ids, n)
    corpus = Labels("corpus", options.corpus_texts, options.corpus_ids, mined.known.n_items)
    rng = rng_for(options.seed)  # step 0, which chose the positives of the judge for the same seed
    if options.one_positive is None:
        positives = one_positive_each(mined, rng)
    else:
        positives = floats_of("one_positive", options.one_positive).astype(np.float32)
    if positives.shape != (n,):
        raise_invalid("one_positive", f"of shape ({n},), one for each anchor", f"shape {positives.shape}")
    rows = np.sort(rng.permutation(n)[: max(1, _SLOTS // max(1, depth))])
    part = _rows(mined.candidates, rows)
    sample, rate, notes = _sample(mined, part, rows, positives, total, rng_for(options.seed, 1))
    if len(rows) < n:
        notes += (f"Distributions, difficulty and examples are of {len(rows):,} random anchors.",)
    random_scores = None
    if options.background is not None:
        random_scores = floats_of("background", getattr(options.background, "scores", options.background))
    charts, chart_notes = charts_of(mined, part, positives, random_scores, options.run)
    given = {str(name): str(value) for name, value in (options.numbers or {}).items()}
    own = _numbers(mined, rate, total, given)
    if total > n:
        notes = (f"This page shows {n:,} of {total:,} anchors; the counts of outcomes are of these.", *notes)
    contents = Contents(
        title=options.title or "Mined negatives",
        advice=_advice(mined, rate, given.get("negatives", "") if total > n else f"{int(mined.mask.sum()):,}"),
        numbers=given | {name: text for name, text in own.items() if name not in given} if total > n else own | given,
        scores=_scores(mined, part, sample),
        tables=(*outcomes(mined), *thresholds_of(mined, part, random_scores)),
        charts=charts,
        examples=examples_of(mined, part, rows, queries, corpus, rng_for(options.seed, 2)),
        provenance=_provenance(mined) | dict(options.provenance or {}),
        notes=(*mined.notes, *notes, *chart_notes),
    )
    return write_report(path, contents)


def _rows(candidates: Candidates, rows: NDArray[np.int64]) -> Candidates:
    """The candidates of some anchors, without what was counted outside of them."""
    names = ("ids", "scores", "rank", "source", "suspicion", "why", "kept_by", "positive_scores")
    return replace(candidates, **{name: getattr(candidates, name)[rows] for name in names}, outside={})


def _sample(
    mined: MinedArrays,
    part: Candidates,
    rows: NDArray[np.int64],
    positives: NDArray[np.float32],
    total: int,
    rng: np.random.Generator,
) -> tuple[Sample | None, Share | None, tuple[str, ...]]:
    """The sample on which the threshold can be moved, the false-negative rate at the threshold, and notes on both."""
    decided = part.filled & (part.rank > 0)
    decided &= (part.why == 0) | was_suspicious(part) | part.dropped_for([NOT_SELECTED, "short anchor"])
    holes = np.zeros(len(rows), np.bool_)
    for reason, counts in mined.candidates.outside.items():
        if reason.startswith("suspicious"):
            holes |= counts[rows] > 0
    notes: tuple[str, ...] = ()
    if holes.any():
        notes = (
            f"The search skipped suspected candidates of {int(holes.sum()):,} anchors. The threshold cannot be moved "
            "for these, and their part of the figures is estimated from the others.",
        )
    ways = [name for place, name in enumerate(mined.kept_names) if name != "top" and (mined.kept_by == place).any()]
    if ways:
        notes += (
            f"Some negatives were taken by other rules than the highest score: {', '.join(ways)}. The figures beside "
            "the threshold, and the false-negative rate, are of the highest scores below it.",
        )
    threshold = _threshold(mined, part, decided)
    lowest = np.where(part.filled, part.scores, np.inf).min(axis=1, initial=np.inf)
    there = ~holes
    given = Decided(
        part.scores[there],
        decided[there],
        mined.counts[rows][there],
        positives[rows][there],
        (positives[rows] >= lowest)[there],
        suspicion=part.suspicion[there] if threshold is None else None,
    )
    at, all_of = (mined.suspicion_threshold if threshold is None else threshold), share_of(given)
    bands = "mined.rethreshold(judge=naysay.detectors.Bands(THRESHOLD, THRESHOLD))"
    command = "mined.rethreshold(THRESHOLD)" if threshold is None else bands
    sample = sample_of(
        given,
        at,
        rng=rng,
        share=np.nan if all_of is None else all_of.estimate,
        of_anchors=total,
        command=command if total == len(mined.ids) else "",  # a part of a job cannot be judged again
    )
    if sample is None:
        notes += ("The threshold cannot be moved in this page: there are no candidates that it decides about.",)
    return sample, rate_of(given, at), notes


def _threshold(mined: MinedArrays, part: Candidates, decided: NDArray[np.bool_]) -> float | None:
    """The score at or above which candidates were suspected; infinity if none was, None if there is no such score."""
    if mined.judge is None:
        return float(np.inf)
    scores = part.scores[decided].astype(np.float64)
    flagged = part.suspicion[decided] >= np.float32(mined.suspicion_threshold)
    thresholds = mined.thresholds
    if len(thresholds) and np.isfinite(thresholds).all() and np.ptp(thresholds) == 0:
        near = np.float32(thresholds[0])  # judges differ in their precision, and in what they do at the threshold
        tried = [float(thresholds[0]), float(near), float(np.nextafter(near, np.float32(np.inf)))]
    else:
        tried = [float(scores[flagged].min(initial=np.inf))]  # a threshold that was moved, if it separates the scores
    return next((score for score in tried if np.array_equal(scores >= score, flagged)), None)


def _scores(mined: MinedArrays, part: Candidates, sample: Sample | None) -> Scores:
    """The scores of positives, negatives and dropped candidates; thresholds only if all anchors share them."""
    lost = part.filled & (part.why != 0)
    thresholds = mined.thresholds[np.isfinite(mined.thresholds)]
    low = getattr(mined.judge, "low", np.nan)
    return Scores(
        positives=positive_scores(mined),
        kept=mined.scores[mined.mask],
        dropped=part.scores[lost],
        why=part.why[lost] - 1,
        reasons=part.reasons,
        low=float(low) if np.ndim(low) == 0 and np.isfinite(low) else np.nan,
        high=float(thresholds[0]) if len(thresholds) and np.ptp(thresholds) == 0 else np.nan,
        sample=sample,
    )


def _advice(mined: MinedArrays, rate: Share | None, count: str) -> tuple[str, ...]:
    """What to do first, by how many of the negatives may be false; then why. `count`: of all negatives, if known."""
    these = f"these {count} negatives" if count else "these negatives"
    if not mined.mask.any():
        first = "There is nothing to train on: no negatives were found. The counts below show why."
    elif mined.judge is None:
        first = "Do not train on these yet: no candidate was judged, so the nearest are taken whatever they are."
        if rate is not None:
            first += f" Up to {percent(rate.estimate)} of them may be unlabelled positives."
        first += " Move the threshold below to see what a judge would do, or mine again with judge='auto'."
    elif rate is None or (rate.notes and rate.estimate <= _HIGH_RATE):
        first = (
            f"Review the most suspicious examples before you train on {these}: the false-negative rate cannot be "
            "estimated from the scores."
        )
    elif rate.estimate > _HIGH_RATE:
        first = (
            f"Review examples before you train: up to {percent(rate.estimate)} of {these} may be unlabelled "
            "positives. Lower the threshold to see what that costs."
        )
    else:
        first = f"Train on {these}: at most {percent(rate.estimate)} of them are estimated to be false."
    others = [mined.rule]
    if rate is not None:
        others.append(
            f"With {rate.confidence:.0%} confidence at most {percent(rate.high)} of the negatives are false, if "
            + ", and ".join(rate.assumptions)
            + "."
        )
        others += [f"About that share: {note}." for note in rate.notes]
    if mined.short.any():
        part = f"{int(mined.short.sum()) / int(mined.counts.sum()):.1%} of the slots"
        rows = f"{(mined.short > 0).mean():.1%} of the anchors"
        others.append(f"{part} are empty, in {rows}: search deeper, or raise the threshold.")
    return (first, *others)


def _numbers(mined: MinedArrays, rate: Share | None, total: int, given: Mapping[str, str]) -> dict[str, str]:
    """The headline numbers; counts only if all anchors are here; no second figure for one that was given."""
    kept = mined.scores[mined.mask]
    whole = total == len(mined.ids)
    found = {"anchors": f"{total:,}"} | ({"negatives": f"{len(kept):,}"} if whole else {})
    if not any("false negatives" in name for name in given):
        found["false negatives, upper estimate"] = "unknown" if rate is None else percent(rate.estimate)
    found["mean score of the negatives"] = f"{kept.mean(dtype=np.float64):.4g}" if len(kept) else "none"
    if not whole:
        return found
    suspected = sum(int(each.sum()) for reason, each in mined.dropped.items() if reason.startswith("suspicious"))
    return found | {"suspected candidates": f"{suspected:,}", "empty slots": f"{int(mined.short.sum()):,}"}


def _provenance(mined: MinedArrays) -> dict[str, str]:
    """Versions, what was searched and how, and a hash of the answer."""
    return versions("naysay", "numpy", "numba", "vl-convert-python") | {
        "metric": mined.metric,
        "depth": f"{mined.depth:,}",
        "judge": repr(mined.judge),
        "rule": mined.rule,
        "suspicion threshold": f"{mined.suspicion_threshold:g}",
        "anchors x corpus": f"{len(mined.ids):,} x {mined.known.n_items:,}",
        "known pairs": f"{len(mined.known.indices):,}",
        "negatives, sha256 of the ids": hashlib.sha256(np.ascontiguousarray(mined.ids).tobytes()).hexdigest(),
    }

"""Mined negatives as a report: the trade of false negatives and hardness, examples, pairs to label, and scores."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._options import takes_options
from naysay.checks import check_whole, public, raise_invalid, shown
from naysay.detectors.posterior import Posterior
from naysay.mining._false_share import FitLists
from naysay.mining._report_parts import (
    Labels,
    charts_of,
    examples_of,
    floats_of,
    one_positive_each,
    outcomes,
    positive_scores,
    review_of,
    thresholds_of,
)
from naysay.mining._weigh import Weighed, weighed
from naysay.mining.candidates import Candidates
from naysay.mining.explain import MinedArrays
from naysay.places import Place, as_place, check_page
from naysay.quantity.estimate import Estimate
from naysay.report.contents import Contents
from naysay.report.html import write_report
from naysay.report.scores import Scores
from naysay.report.trade import Trade, false_text
from naysay.rng import rng_for
from naysay.text import versions

_SLOTS = 1 << 22  # candidates in the report, in whole anchors
_HIGH_RATE, _ABOVE = 0.05, 1.2  # a false share to look into before training, if it is clearly above


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
        of_anchors: How many anchors there are, if `mined` holds a part of them.
        fit: The posterior that estimates false negatives, and the lists of some anchors. Without it there is no trade.
        anchors: (n,) the anchor of each row in these lists, ascending. By default the row numbers.
        command: What mines again with another target, with TARGET in place of its value.
        seed: Seed of the anchors, if there are many, of the examples and of the pairs to label.
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
    of_anchors: int | None = None
    fit: tuple[Posterior, FitLists] | None = None
    anchors: Any = None
    command: str = "mined.rethreshold(false_share=TARGET)"
    seed: int = 0


@public
@takes_options(ReportOptions)
def report_mined(mined: MinedArrays, path: str | Place, options: ReportOptions) -> Place:
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
    check_page("path", as_place("path", path))
    if not isinstance(options.run, Estimate | None):
        raise_invalid("run", "an Estimate, of quantity.estimate, or None", type(options.run).__name__)
    kinds = {"title": (str, "a text"), "numbers": (Mapping, "a dictionary"), "provenance": (Mapping, "a dictionary")}
    kinds |= {"command": (str, "a text")}
    for name, (kind, rule) in kinds.items():
        if getattr(options, name) is not None and not isinstance(getattr(options, name), kind):
            raise_invalid(name, rule, shown(getattr(options, name)))
    n, depth = mined.candidates.ids.shape
    total = n if options.of_anchors is None else check_whole("of_anchors", options.of_anchors, n)
    queries = Labels("query", options.query_texts, options.query_ids, n)
    corpus = Labels("corpus", options.corpus_texts, options.corpus_ids, mined.known.n_items)
    rng = rng_for(options.seed)  # step 0, which chose the positives of the judge for the same seed
    positives = one_positive_each(mined, rng)
    rows = np.sort(rng.permutation(n)[: max(1, _SLOTS // max(1, depth))])
    part = _rows(mined.candidates, rows)
    found = _weighed(mined, options, total)
    notes: tuple[str, ...] = ()
    if len(rows) < n:
        notes = (f"Distributions, difficulty and examples are of {len(rows):,} random anchors.",)
    random_scores = None
    if options.background is not None:
        random_scores = floats_of("background", getattr(options.background, "scores", options.background))
    charts, chart_notes = charts_of(mined, part, positives, random_scores, options.run)
    given = {str(name): str(value) for name, value in (options.numbers or {}).items()}
    own = _numbers(mined, found.trade, total)
    if total > n:
        notes = (f"This page shows {n:,} of {total:,} anchors; the counts of outcomes are of these.", *notes)
    contents = Contents(
        title=options.title or "Mined negatives",
        advice=_advice(mined, found, given.get("negatives", "") if total > n else f"{int(mined.mask.sum()):,}"),
        numbers=given | {name: text for name, text in own.items() if name not in given} if total > n else own | given,
        scores=_scores(mined, part),
        tables=(*outcomes(mined), *thresholds_of(mined, part, random_scores)),
        charts=charts,
        examples=examples_of(mined, part, rows, queries, corpus),
        provenance=_provenance(mined) | dict(options.provenance or {}),
        notes=(*mined.notes, *notes, *chart_notes),
        trade=found.trade,
        review=review_of(found, queries, corpus),
    )
    return write_report(path, contents)


def _weighed(mined: MinedArrays, options: ReportOptions, total: int) -> Weighed:
    """The trade and pairs to label, or why there are none."""
    if options.fit is None:
        reason = "these scores have no posterior: pairs were rescored, or none was given"
        return Weighed(reason=reason)
    fit = options.fit
    if not (isinstance(fit, tuple) and list(map(type, fit)) == [Posterior, FitLists]):
        raise_invalid("fit", "a posterior and its lists, as `Mined.report` passes them", shown(fit))
    anchors = np.arange(len(mined.ids))
    if options.anchors is not None:
        anchors = floats_of("anchors", options.anchors).astype(np.int64)
        if anchors.shape != mined.counts.shape or not np.isin(fit[1].anchors, anchors).all():
            raise_invalid("anchors", "the anchor of each row, and among them those of `fit`", f"shape {anchors.shape}")
    command = options.command or ""
    if not isinstance(mined.judge, Posterior) and "rethreshold" in command:
        command = ""  # the target is that of a Posterior
    return weighed(mined, anchors, *fit, mined.false_share, total=total, seed=options.seed, command=command)


def _rows(candidates: Candidates, rows: NDArray[np.int64]) -> Candidates:
    """The candidates of some anchors, without what was counted outside of them."""
    names = ("ids", "scores", "rank", "source", "suspicion", "why", "kept_by", "positive_scores")
    return replace(candidates, **{name: getattr(candidates, name)[rows] for name in names}, outside={})


def _scores(mined: MinedArrays, part: Candidates) -> Scores:
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
    )


def _advice(mined: MinedArrays, found: Weighed, count: str) -> tuple[str, ...]:
    """How many of the negatives are false, before and after judging; then why, and what to do."""
    these, trade = f"these {count} negatives" if count else "these negatives", found.trade
    others = [mined.rule]
    if not mined.mask.any():
        first = "There is nothing to train on: no negatives were found. The counts below show why."
    elif trade is None:
        first = f"How many of {these} are false cannot be told: {found.reason}."
        others.insert(0, "Read the examples before you train, or label the pairs below.")
    else:
        now, nearest = trade.chosen, trade.rules[0]
        first = f"An estimated {false_text(now)} of {these} are false"
        if now.dropped:
            first += (
                f"; of the nearest after duplicates are dropped, without a judge, it would be {false_text(nearest)}."
            )
        else:
            first += ": they are the nearest, and none was dropped."
        wanted = now.target if np.isfinite(now.target) else _HIGH_RATE
        if now.false_share > _ABOVE * wanted:
            others.insert(0, "Too many may be false to train on: move the target to see what fewer would cost.")
        else:
            others.insert(0, "Train on them.")
    if mined.short:
        part = f"{int(mined.missing.sum()) / int(mined.counts.sum()):.1%} of the slots"
        rows = f"{mined.short / len(mined.ids):.1%} of the anchors"
        others.append(f"{part} are empty, in {rows}: search deeper, or raise the target.")
    return (first, *others)


def _numbers(mined: MinedArrays, trade: Trade | None, total: int) -> dict[str, str]:
    """The headline numbers; counts only if all anchors are here."""
    kept = mined.scores[mined.mask]
    whole = total == len(mined.ids)
    found = {"anchors": f"{total:,}"} | ({"negatives": f"{len(kept):,}"} if whole else {})
    found["mean score of the negatives"] = f"{kept.mean(dtype=np.float64):.4g}" if len(kept) else "none"
    if trade is not None:
        found["mean score of the nearest"] = f"{trade.rules[0].mean_score:.4g}"
    return found | ({"empty slots": f"{int(mined.missing.sum()):,}"} if whole else {})


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

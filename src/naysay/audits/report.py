"""An audit as one HTML file: what to do, where the scores lie, tables, the curve over k, and the worst rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from naysay.audits.findings import K_MAX
from naysay.audits.result import Audit, k_text, repeats_text
from naysay.audits.suspects import COPIES, KINDS
from naysay.checks import check_kind, public
from naysay.files import digest_of
from naysay.places import Place, Url, as_place, check_page
from naysay.quantity.effectiveness import auc, simulated
from naysay.quantity.estimate import estimate
from naysay.report.charts import effectiveness
from naysay.report.contents import Contents, Example, Examples, Table
from naysay.report.html import write_report
from naysay.report.scores import Scores, check_texts
from naysay.report.threshold_tables import threshold_tables
from naysay.text import percent, versions

_MEANING = {
    "reviewed": "A reviewer says that it is a positive.",
    "unchecked": "A reviewer says that it is a positive; the second reviewer was not asked.",
    "score": "From its score on, at least half of the negatives are false by estimate.",
    "positive": "The set calls it a positive of the same anchor.",
    "anchor": "It is the anchor, or has the text of the anchor.",
    "same text": "It has the text of a positive.",
    "near text": "Its text is nearly that of a positive, or of the anchor.",
    "near vector": "Its vector is nearly that of a positive.",
    "transitive": "It is a positive of another anchor that shares a positive with this one.",
    "none": "It is not suspected, and scores highest of those.",
}


@public
def report_audit(
    audit: Audit, path: str | Place, *, title: str = "", files: Mapping[str, str | Place] | None = None
) -> Place:
    """Write an audit as one HTML file; see `report.write_report`.

    Args:
        audit: The audit.
        path: The file, ending in .html.
        title: The title of the page; the name of the set without it.
        files: {what: file} of other inputs, such as vectors. Their hashes are shown.

    Examples:
        >>> import tempfile
        >>> import naysay as ns
        >>> world = ns.planted_world(50, 100)
        >>> mined = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report_audit(ns.audit(mined), Path(folder) / "audit.html").name
        'audit.html'
    """
    check_kind("audit", audit, Audit, "an Audit")
    check_kind("files", files, Mapping | None, "{what: file}, or None")
    check_texts(title=title)
    check_page("path", as_place("path", path))  # before the files are read
    return write_report(path, contents_of(audit, title, files or {}))


def contents_of(audit: Audit, title: str = "", files: Mapping[str, str | Place] = MappingProxyType({})) -> Contents:
    """Return the contents of the page."""
    share, k, run = audit.false_share, audit.k_verdict, None
    if k.best is not None and k.separation is not None:
        run = estimate(auc(k.separation), auc(simulated(k.separation)), k_max=K_MAX)
    false = "unknown" if share.bound else f"{round(share.estimate * audit.negatives):,} ({percent(share.estimate)})"
    numbers = {
        "negatives": f"{audit.negatives:,}",
        "anchors": f"{audit.anchors:,}",
        "certainly false": f"{audit.proven:,}",
        "copies": f"{sum(audit.suspected_by.get(name, 0) for name in COPIES):,}",
        "false, estimated": false,
        f"false, {100 * share.confidence:.0f} % CI": f"{percent(share.low)} to {percent(share.high)}",
        "k": f"{k.k}" if k.verdict == "unknown" else f"{k.k}: {k.verdict}",
    }
    if audit.gradient_share is not None:
        numbers["too easy"] = percent(audit.gradient_share.easy_share)
    return Contents(
        title=title or f"Audit of {audit.name}",
        advice=(audit.summary, *audit.advice, *(f"Run: {command}" for command in audit.commands)),
        numbers=numbers,
        scores=_scores(audit),
        tables=_tables(audit),
        charts=() if run is None else (effectiveness(run, caption=f"Based on {k.basis}.", k=k.k),),
        examples=_examples(audit),
        provenance=_provenance(audit, files),
        notes=(audit.rule, f"k = {k_text(k)}.", *audit.notes),
    )


def _scores(audit: Audit) -> Scores | None:
    """Return the scores of positives, negatives and suspected negatives by reason; None without scores."""
    scores = audit._scores
    if scores is None:
        return None
    threshold = audit._threshold
    low = audit.thresholds.get("low", np.nan)
    is_suspected = audit._reasons > 0
    kept, suspected = scores.filled & ~is_suspected, scores.filled & is_suspected
    return Scores(
        scores.positives[scores.one_each],
        scores.negatives[kept],
        scores.negatives[suspected],
        audit._reasons[suspected].astype(np.int64) - 1,
        KINDS[1:],
        low=low if low < threshold else np.nan,
        high=threshold if np.isfinite(threshold) else np.nan,
    )


def _tables(audit: Audit) -> tuple[Table, ...]:
    tables = []
    if audit.suspected_by:
        rows = tuple((name, _MEANING[name], count) for name, count in audit.suspected_by.items())
        caption = "Suspected negatives, one reason each."
        tables.append(Table("Suspected", ("reason", "meaning", "negatives"), rows, caption))
    share = audit.gradient_share
    if share is not None:
        slots = sum(share.counts.values())
        bands = tuple(
            (band, count, percent(count / slots), percent(share.shares[band])) for band, count in share.counts.items()
        )
        caption = f"Where the gradient of InfoNCE comes from at temperature {share.temperature:g}."
        note = "The gradient of a negative is its softmax weight over the temperature. Easy: a weight below 0.001."
        columns = ("band", "negatives", "share of the negatives", "share of the gradient")
        tables.append(Table("Gradient share", columns, bands, caption, note))
    frequent = tuple((name, count) for _, count, name in audit.repeats.most_frequent)
    caption = repeats_text(audit.repeats).capitalize() + "."
    tables.append(Table("Repeated", ("document", "anchors"), frequent, caption))
    if audit._bands is not None:
        tables += threshold_tables(audit._bands, caption="Uniform pairs of anchors and documents.")
    return tuple(tables)


def _examples(audit: Audit) -> tuple[Examples, ...]:
    rows = tuple(
        Example(
            anchor=each.anchor_text,
            positive=each.positive_text,
            candidate=each.negative_text,
            score=each.score,
            suspicion=float("nan"),
            rank=0,
            outcome="in the set" if each.reason == "none" else f"suspected: {each.reason}",
            explanation=f"{_MEANING[each.reason]} Its positive scores {each.positive_score:.4g}.",
        )
        for each in audit.worst
    )
    note = "Some of each kind, at most one per anchor: proven ones first, then reviewed ones, copies, and by score."
    return (Examples("The worst rows", "suspect", rows, note),) if rows else ()


def _provenance(audit: Audit, files: Mapping[str, str | Place]) -> dict[str, str]:
    """Return versions, settings, and hashes of the files that exist on this machine; of others their URL."""
    given = {"the set": audit.name, **files}
    paths = {name: as_place(f"files[{name!r}]", file) for name, file in given.items()}
    here = {name: path for name, path in paths.items() if isinstance(path, Path) and path.is_file()}
    hashes = {f"SHA-256 of {name}": digest_of(path) for name, path in here.items()}
    hashes |= {name: str(url) for name, url in paths.items() if isinstance(url, Url)}
    settings = {name: str(value) for name, value in audit.settings.items()}
    return {**versions("naysay", "numpy", "scipy"), "set": audit.name, **settings, **hashes}

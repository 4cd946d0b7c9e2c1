"""An audit as one HTML file: what to do, where the scores lie, tables, the curve over k, and the worst rows."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from naysay.auditing import _text as text
from naysay.auditing._copies import NAMES
from naysay.auditing.k_verdict import K_MAX
from naysay.auditing.result import Audit
from naysay.checks import public, raise_invalid
from naysay.quantity.estimate import estimate
from naysay.quantity.separation import auc
from naysay.quantity.simulated import simulated
from naysay.report.contents import Chart, Contents, Example, Examples, Table
from naysay.report.effectiveness import effectiveness
from naysay.report.html import write_report
from naysay.report.scores import Scores
from naysay.report.threshold_tables import threshold_tables

_BLOCK = 1 << 20
_WHY = {
    "score": "It scores like a positive.",
    "positive": "The set calls it a positive of the same anchor.",
    "anchor": "It is the anchor itself, or has its text.",
    "same text": "It has the text of a positive.",
    "near text": "It has nearly the text of a positive, or of the anchor.",
    "near vector": "Its vector is nearly that of a positive.",
    "transitive": "It is a positive of another anchor that shares a positive with this one.",
    "none": "Of those that nothing speaks against it scores highest.",
}


@public
def report_audit(
    found: Audit, path: str | Path, *, title: str = "", files: Mapping[str, str | Path] | None = None
) -> Path:
    """Write an audit as one HTML file; see `report.write_report`.

    Args:
        files: {what: file} that the audit also rests on: vectors, names. Their hashes are shown.
    """
    if not isinstance(found, Audit):
        raise_invalid("found", "an Audit", type(found).__name__)
    return write_report(path, contents_of(found, title, files or {}))


def contents_of(found: Audit, title: str = "", files: Mapping[str, str | Path] = MappingProxyType({})) -> Contents:
    """What the report says."""
    low, high = text.percent(found.false.low), text.percent(found.false.high)
    numbers = {
        "negatives": f"{found.negatives:,}",
        "anchors": f"{found.anchors:,}",
        "false, at most about": text.percent(found.false.estimate),
        f"false, with {found.false.confidence:.0%}": f"{low} to {high}",
        "suspected": text.percent(found.suspected / found.negatives),
        f"k = {found.quantity.k}": found.quantity.verdict,
    }
    if found.pulls is not None:
        numbers["too easy"] = text.percent(found.pulls.counts["easy"] / sum(found.pulls.counts.values()))
    return Contents(
        title=title or f"Audit of {found.name}",
        advice=(*found.advice, *(f"Run: {command}" for command in found.commands)),
        numbers=numbers,
        scores=_scores(found),
        tables=_tables(found),
        charts=_charts(found),
        examples=_examples(found),
        provenance=_provenance(found, files),
        notes=(found.rule, f"k = {text.quantity_text(found.quantity)}.", *found.notes),
    )


def _scores(found: Audit) -> Scores | None:
    """Positives, negatives, and those of them that are suspected, by reason; None without scores."""
    scored = found._scored
    if scored is None:
        return None
    line = found.thresholds.get("calibrated", found.thresholds.get("high", np.inf))
    low, filled = found.thresholds.get("low", np.nan), scored.filled
    why = np.where(found._reasons > 0, found._reasons, np.int8(len(NAMES)) * (scored.negatives >= line))
    kept, lost = filled & (why == 0), filled & (why > 0)
    return Scores(
        scored.positives[scored.one],
        scored.negatives[kept],
        scored.negatives[lost],
        why[lost].astype(np.int64) - 1,
        (*NAMES[1:], "score"),
        low=low if low < line else np.nan,
        high=line if np.isfinite(line) else np.nan,
    )


def _tables(found: Audit) -> tuple[Table, ...]:
    tables = []
    if found.suspected_by:
        rows = tuple((name, _WHY[name], count) for name, count in found.suspected_by.items())
        caption = "Negatives that are suspected, each by one reason."
        tables.append(Table("Suspected", ("reason", "what it means", "negatives"), rows, caption))
    if found.pulls is not None:
        whole = sum(found.pulls.counts.values())
        bands = tuple(
            (band, count, text.percent(count / whole), text.percent(found.pulls.masses[band]))
            for band, count in found.pulls.counts.items()
        )
        caption = f"What negatives pull under InfoNCE at temperature {found.pulls.temperature:g}."
        note = "The pull of a negative is its softmax weight; easy ones pull less than 0.001."
        tables.append(Table("Pull", ("band", "negatives", "of all", "of the pull"), bands, caption, note))
    often = tuple((name, count) for _, count, name in found.repeats.most)
    tables.append(
        Table("Repeated", ("document", "anchors"), often, text.repeats_text(found.repeats).capitalize() + ".")
    )
    if found._shares is not None:
        tables += threshold_tables(found._shares, caption="Uniform pairs of anchors and documents.")
    return tuple(tables)


def _charts(found: Audit) -> tuple[Chart, ...]:
    quantity = found.quantity
    if quantity.best is None or quantity.separation is None:
        return ()
    run = estimate(auc(quantity.separation), auc(simulated(quantity.separation)), k_max=K_MAX)
    return (effectiveness(run, caption=f"It rests on {quantity.rests_on}.", k=quantity.k),)


def _examples(found: Audit) -> tuple[Examples, ...]:
    rows = tuple(
        Example(
            each.anchor_text,
            each.positive_text,
            each.negative_text,
            each.score,
            float("nan"),
            0,
            "in the set" if each.reason == "none" else f"suspected: {each.reason}",
            f"{_WHY[each.reason]} Its positive scores {each.positive_score:.4g}.",
        )
        for each in found.worst
    )
    note = "At most one of an anchor: proven ones first, then copies, then by score."
    return (Examples("The worst rows", "suspect", rows, note),) if rows else ()


def _provenance(found: Audit, files: Mapping[str, str | Path]) -> dict[str, str]:
    """Versions, settings, and the hashes of the files, where there are some."""
    known: dict[str, Any] = {"Python": platform.python_version()}
    for package in ("naysay", "numpy", "scipy"):
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            known[package] = "not installed"
    known |= {"set": found.name, **found.settings}
    for name, file in {"the set": Path(found.name), **{name: Path(file) for name, file in files.items()}}.items():
        if file.is_file():
            known[f"SHA-256 of {name}"] = _sha256(file)
    return {name: str(value) for name, value in known.items()}


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()

"""What an audit found: frozen, as text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, final

from naysay.auditing import _text as text
from naysay.auditing._copies import Reasons
from naysay.auditing._scored import Scored
from naysay.auditing.gradient_share import Pulls
from naysay.auditing.k_verdict import Quantity
from naysay.auditing.repeats import Repeats
from naysay.auditing.worst import Worst
from naysay.checks import public
from naysay.detectors.share import Share
from naysay.detectors.thresholds import Thresholds
from naysay.files import check_target, write_whole


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """How good the negatives of a training set are.

    suspected_by {reason: slots}: "score", or one of `detectors.Duplicates.reason_names`; a slot has one reason

    Scores and reasons of all slots stay with it, for `report_audit`.

    Args:
        name: Of the set.
        anchors: That have a negative.
        negatives: Slots.
        documents: There are.
        false: The share of false negatives: `low` is proven, `estimate` and `high` are at most so many, with 95 %.
        suspected: Slots that score like a positive, or are a copy of one.
        proven: Slots of them that are false without a doubt: "positive", "anchor", "same text".
        rule: From which score on, in a sentence.
        pulls: What each band pulls under InfoNCE; None without scores of positives and negatives.
        duplicates: Slots that repeat a negative of the same anchor and positive; None where the set no longer shows
            it.
        repeats: Documents that come again and again.
        quantity: The verdict on k.
        thresholds: {"calibrated", "low", "high"}: those that the data suggest.
        worst: The negatives that most deserve a look.
        advice: What to do, the most pressing first.
        commands: The same for a shell.
        notes: What to know.
        settings: Metric, temperature, alpha, seed.
    """

    name: str
    anchors: int
    negatives: int
    documents: int
    false: Share
    suspected: int
    suspected_by: Mapping[str, int]
    proven: int
    rule: str
    pulls: Pulls | None
    duplicates: int | None
    repeats: Repeats
    quantity: Quantity
    thresholds: Mapping[str, float]
    worst: tuple[Worst, ...]
    advice: tuple[str, ...]
    commands: tuple[str, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    _shares: Thresholds | None = field(repr=False)
    _scored: Scored | None = field(repr=False)
    _reasons: Reasons = field(repr=False)

    def to_json(self) -> str:
        """All of it, as JSON; numbers that JSON does not have become null."""
        names = [each.name for each in fields(self) if not each.name.startswith("_")]
        whole = {name: getattr(self, name) for name in names}
        whole |= {name: _asdict(getattr(self, name)) for name in _PARTS}
        whole["worst"] = [asdict(each) for each in self.worst]
        return json.dumps(_plain(whole), indent=1, allow_nan=False) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write the JSON, whole or not at all."""
        target = Path(path)
        check_target("path", target)
        write_whole("path", target, self.to_json().encode("utf-8"))
        return target

    def __str__(self) -> str:
        """A line for each finding, then what to do."""
        easy, masses = text.pulls_texts(self.pulls)
        one, other = text.counted(self.negatives, "negative"), text.counted(self.anchors, "anchor")
        lines = [
            ", ".join((f"{one} of {other}", text.counted(self.documents, "document"))),
            text.entry("false", text.false_text(self.false, self.negatives)),
            text.entry("suspected", text.suspected_text(self.suspected, self.negatives, self.suspected_by)),
            text.entry("too easy", easy),
            text.entry("pull", masses),
            text.entry("duplicates", "not known" if self.duplicates is None else f"{self.duplicates:,}"),
            text.entry("repeated", text.repeats_text(self.repeats)),
            text.entry("k", text.quantity_text(self.quantity)),
            text.entry("thresholds", text.thresholds_text(self.thresholds)),
        ]
        return "\n".join([*lines, *self.advice])


_PARTS = ("false", "pulls", "repeats", "quantity")


def _asdict(part: Any) -> Any:
    return None if part is None else asdict(part)


def _plain(value: Any) -> Any:
    """Only what JSON has: no NaN and no infinity."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value

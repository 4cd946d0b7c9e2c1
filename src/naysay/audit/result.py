"""What an audit found: frozen, as text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, final

from naysay.audit import text
from naysay.audit.copies import Reasons
from naysay.audit.enough import Quantity
from naysay.audit.pulls import Pulls
from naysay.audit.repeats import Repeats
from naysay.audit.scored import Scored
from naysay.audit.worst import Worst
from naysay.detectors.quality.share import Share
from naysay.detectors.thresholds import Thresholds
from naysay.quantity.outputs import check_target, write_whole


@final
@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """How good the negatives of a training set are.

    name         of the set;  anchors  that have a negative;  negatives  slots;  documents  there are
    false        the share of false negatives: `low` is proven, `estimate` and `high` are at most so many, with 95 %
    suspected    slots that score like a positive, or are a copy of one
    suspected_by {reason: slots}: "score", or one of `detectors.Twins.reason_names`; a slot has one reason
    proven       slots of them that are false without a doubt: "positive", "anchor", "same text"
    rule         from which score on, in a sentence
    pulls        what each band pulls under InfoNCE; None without scores of positives and negatives
    duplicates   slots that repeat a negative of the same anchor and positive; None where the set no longer shows it
    repeats      documents that come again and again
    quantity     the verdict on k
    thresholds   {"calibrated", "low", "high"}: those that the data suggest
    worst        the negatives that most deserve a look
    advice       what to do, the most pressing first;  commands  the same for a shell
    notes        what to know;  settings  metric, temperature, alpha, seed

    Scores and reasons of all slots stay with it, for `report_audit`.
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
        check_target("Audit.write", "path", target)
        write_whole("Audit.write", "path", target, self.to_json().encode("utf-8"))
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

"""A training file without the negatives that an audit would drop, each with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from naysay.audits._training_set import SetScores, TrainingSet
from naysay.audits.suspects import KINDS, Reasons
from naysay.checks import check_one_of, public, raise_invalid
from naysay.files import as_path, check_target, draft_of
from naysay.formats._formats import Read, ReadRow
from naysay.formats._rewriting import check_rewritable, check_several_positives, json_as_read, rewrite
from naysay.places import check_apart, local
from naysay.rng import rng_for

REPEATED = "repeated"
REVIEWED = "reviewed"
# {finding of an audit: the reason for which a negative goes}
CHANGES = {
    "anchor": "own text",
    "positive": "known elsewhere",
    "same text": "duplicate",
    "near text": "duplicate",
    "near vector": "duplicate",
    "transitive": "transitive",
    "reviewed": REVIEWED,
    "unchecked": "suspected",
    "score": "suspected",
}
CHANGE_REASONS = tuple(dict.fromkeys((*CHANGES.values(), REPEATED)))
_TRIES = 20  # random documents that are tried in the place of a negative


@final
@public
@dataclass(frozen=True, slots=True)
class Fixed:
    """What `Audit.fix` wrote.

    Args:
        path: The new training file, in the format of the old one.
        changes_path: JSON lines beside it: the row, anchor, negative, reason and score of each negative that went, and
            "now": "positive" for one that became a positive.
        rows: The rows of the old file.
        kept: The rows of the new one. A row whose only negatives went is left out.
        changes: {reason: negatives that went}.
        filled: Negatives in whose place there is a random document of the set, because each row must have k of them.

    Example: see `Audit.fix`.
    """

    path: Path
    changes_path: Path
    rows: int
    kept: int
    changes: Mapping[str, int]
    filled: int


@final
class Slot(NamedTuple):
    """A negative that would go."""

    reason: str
    score: float


def slots_to_drop(given: TrainingSet, scores: SetScores | None, reasons: Reasons) -> dict[tuple[int, int], Slot]:
    """{(anchor, document): why it would go}."""
    slots = {}
    for row, slot in zip(*np.nonzero(reasons), strict=True):
        score = float("nan") if scores is None else float(scores.negatives[row, slot])
        slots[int(row), int(given.ids[row, slot])] = Slot(CHANGES[KINDS[reasons[row, slot]]], score)
    return slots


def fix_file(
    given: TrainingSet,
    slots: Mapping[tuple[int, int], Slot],
    path: Any,
    reasons: Collection[str] | None,
    seed: int,
    false_negatives: str,
) -> Fixed:
    """Write the set without some of its negatives, and the list of changes."""
    check_one_of("false_negatives", false_negatives, ("drop", "positive"))
    if given.path is None:
        raise_invalid("negatives", "a training file to be fixed", given.name, "Write it first.")
    reasons = CHANGE_REASONS if reasons is None else reasons
    check_reasons(reasons)
    target = as_path("path", path)
    changes_path = changes_beside(target)
    for written in (target, changes_path):
        check_apart({"path": written}, {"negatives": given.path})
    check_target("path", changes_path)
    with local("negatives", given.path) as source:
        check_rewritable(source, target)
        if false_negatives == "positive":
            check_several_positives(source, given.format)
        with draft_of(changes_path, "path") as draft, draft.open("wb") as stream:
            fixer = _Fixer(given, slots, reasons, seed, stream, relabels=false_negatives == "positive")
            done = rewrite(source, target, given.format, fixer.choose, fixer.other_document)
    return Fixed(target, changes_path, done.rows, done.kept, dict(fixer.changes), done.filled)


def check_reasons(reasons: Collection[str]) -> None:
    """Raise for a word that is no reason of a change."""
    for reason in reasons:
        check_one_of("reasons", reason, CHANGE_REASONS)


def changes_beside(target: Path) -> Path:
    """The list of changes that belongs to a new training file."""
    return target.with_name(f"{target.stem}.changes.jsonl")


@final
class _Fixer:
    """Which negatives of a row go, and what takes their place in rows of fixed length."""

    def __init__(
        self,
        given: TrainingSet,
        slots: Mapping[tuple[int, int], Slot],
        reasons: Collection[str],
        seed: int,
        stream: Any,
        *,
        relabels: bool,
    ) -> None:
        self.given, self.slots, self.reasons, self.seed, self.stream = given, slots, reasons, seed, stream
        self.relabels = relabels  # whether reviewed ones become positives
        self.query_rows = _rows(given.query_names)
        self.corpus_rows = _rows(given.corpus_names)
        self.negatives = np.unique(given.ids[given.ids >= 0])
        self.seen: set[tuple[int, int, int]] = set()  # (anchor, positive, negative)
        self.changes = Counter[str]()
        self.fills: set[tuple[int, int]] = set()  # (number of a row, document)

    def choose(self, number: int, row: ReadRow) -> dict[int, bool]:
        """{place of a negative that goes: whether it becomes a positive}; each is written down."""
        anchor = _row(self.query_rows, row.query)
        positive = _row(self.corpus_rows, row.positives[0]) if row.positives else -1
        chosen = {}
        for place, negative in enumerate(row.negatives):
            item = _row(self.corpus_rows, negative)
            slot = self.slots.get((anchor, item))
            if REPEATED in self.reasons and (anchor, positive, item) in self.seen:
                slot = Slot(REPEATED, negative.score if slot is None else slot.score)
            self.seen.add((anchor, positive, item))
            if slot is not None and slot.reason in self.reasons:
                chosen[place] = self.relabels and slot.reason == REVIEWED
                self._write(number, anchor, item, slot, is_positive=chosen[place])
        return chosen

    def _write(self, number: int, anchor: int, item: int, slot: Slot, *, is_positive: bool) -> None:
        self.changes[slot.reason] += 1
        change = {
            "row": number,
            "anchor": self.given.query_label(anchor),
            "negative": self.given.corpus_label(item),
            "reason": slot.reason,
            "score": None if np.isnan(slot.score) else slot.score,
        }
        if is_positive:
            change["now"] = "positive"
        self.stream.write(json_as_read(change) + b"\n")

    def other_document(self, number: int, row: ReadRow) -> str | int | None:
        """A random negative of another anchor that may stand in this row; None if there is none."""
        anchor = _row(self.query_rows, row.query)
        taken = {_row(self.corpus_rows, each) for each in (*row.positives, *row.negatives)}
        rng = rng_for(self.seed, number)
        for item in map(int, rng.choice(self.negatives, _TRIES)):
            is_known = bool(self.given.positives.contains([anchor], [item])[0])
            is_free = (anchor, item) not in self.slots and (number, item) not in self.fills
            if item not in taken and not is_known and is_free:
                self.fills.add((number, item))
                return item if self.given.corpus_names is None else self.given.corpus_names[item]
        return None


def _rows(names: list[str] | None) -> dict[str, int] | None:
    return None if names is None else {name: row for row, name in enumerate(names)}


def _row(rows: dict[str, int] | None, read: Read) -> int:
    """The row of a query or document; a whole number is its row."""
    return read.key if isinstance(read.key, int) else (rows or {})[read.key]

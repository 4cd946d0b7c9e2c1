"""What a report says: sentences, figures, tables, charts and examples, as plain data; `write_report` draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from naysay.checks import refuse, shown
from naysay.report.scores import Scores

Cell = str | float | int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows under headings. Numbers stand to the right, texts to the left.

    title     above it
    columns   the headings
    rows      each as long as `columns`; texts, or numbers. NaN shows as an empty cell
    caption   what is counted, in a sentence
    note      below it: what to know before reading it
    mark      rows (by place) that were chosen; they are set off

    The page shows the first 200 rows, and says how many more there are.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    note: str = ""
    mark: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rows of another length than the headings."""
        _check_texts("Table", {"title": self.title, "caption": self.caption, "note": self.note})
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(map(tuple, self.rows)))
        _check_texts("Table", {f"columns[{place}]": name for place, name in enumerate(self.columns)})
        lengths = np.array([len(row) for row in self.rows], np.int64)
        wrong = np.flatnonzero(lengths != len(self.columns))
        if len(wrong):
            got = f"{lengths[wrong[0]]} at row {wrong[0]} ({len(wrong)} such row{'s' if len(wrong) > 1 else ''})"
            refuse("Table", "rows", f"of {len(self.columns)} cells, like columns", got)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A picture by Vega-Lite, and what it shows in words.

    spec          a Vega-Lite specification with its data in it: nothing is fetched. Colours may be those of the page,
                  "var(--positive)" or "var(--ink)", which fit a light and a dark page
    description   what is to be seen, for those who do not see it
    table         the same as text, shown beside it
    caption       what it rests on
    """

    title: str
    spec: Mapping[str, Any]
    description: str
    table: Table | None = None
    caption: str = ""

    def __post_init__(self) -> None:
        """Refuse a chart without words."""
        _check_texts("Chart", {"title": self.title, "description": self.description, "caption": self.caption})
        if not isinstance(self.spec, Mapping):
            refuse("Chart", "spec", "a Vega-Lite specification, a dict", shown(self.spec))
        if not self.description.strip():
            refuse("Chart", "description", "what is to be seen", "nothing", "It is read aloud where nobody looks.")


@final
@dataclass(frozen=True, slots=True)
class Example:
    """A candidate of an anchor and what became of it.

    anchor, positive, candidate   their texts, or their ids; a report cuts them at 400 characters and says so
    score, suspicion              of the candidate; NaN where there is none
    rank                          in the list it was found in, from 1; 0 where there is none
    fate                          "kept: top", "dropped: suspicious"
    explanation                   why, in a sentence
    """

    anchor: str
    positive: str
    candidate: str
    score: float
    suspicion: float
    rank: int
    fate: str
    explanation: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Examples of one kind, in the order in which they are to be read.

    kind   one word for it, which the page's search offers: "hardest", "suspect", "dropped"
    note   how they were chosen
    """

    title: str
    kind: str
    rows: tuple[Example, ...]
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no Example."""
        _check_texts("Examples", {"title": self.title, "kind": self.kind, "note": self.note})
        object.__setattr__(self, "rows", tuple(self.rows))
        _check_all("Examples", "rows", self.rows, Example)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All that a report says, in the order of the page.

    title        of the page
    advice       the sentence to act on first; the others follow as a list
    numbers      {what: figure}, the headline
    scores       of positives, kept and dropped negatives, with the line to move; None: no such part
    tables, charts, examples   see there
    notes        a sentence for each thing to know
    provenance   {what: value}: versions, arguments, seed, hashes of the input
    """

    title: str
    advice: tuple[str, ...]
    numbers: Mapping[str, str] = field(default_factory=dict)
    scores: Scores | None = None
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    examples: tuple[Examples, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a report that says nothing to act on, and parts of another kind."""
        _check_texts("Contents", {"title": self.title})
        for name, kind in (("advice", str), ("notes", str), ("tables", Table), ("charts", Chart)):
            object.__setattr__(self, name, tuple(_several(name, getattr(self, name))))
            _check_all("Contents", name, getattr(self, name), kind)
        object.__setattr__(self, "examples", tuple(_several("examples", self.examples)))
        _check_all("Contents", "examples", self.examples, Examples)
        if not self.advice:
            refuse("Contents", "advice", "at least one sentence", "none", "Say first what to do.")
        if not isinstance(self.scores, Scores | None):
            refuse("Contents", "scores", "Scores, or None", type(self.scores).__name__)
        for name in ("numbers", "provenance"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                refuse("Contents", name, "{what: figure}", type(given).__name__)
            object.__setattr__(self, name, {str(what): str(value) for what, value in given.items()})


def _several(name: str, given: Any) -> Any:
    """Parts in a row; one text is not a row of letters."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        refuse("Contents", name, "a tuple", shown(given))
    return given


def _check_texts(owner: str, texts: Mapping[str, object]) -> None:
    """Refuse what is no text."""
    for name, text in texts.items():
        if not isinstance(text, str):
            refuse(owner, name, "a text", shown(text))


def _check_all(owner: str, name: str, parts: tuple[Any, ...], kind: type) -> None:
    """Refuse the first part of another kind."""
    for place, part in enumerate(parts):
        if not isinstance(part, kind):
            refuse(owner, f"{name}[{place}]", f"of type {kind.__name__}", type(part).__name__)

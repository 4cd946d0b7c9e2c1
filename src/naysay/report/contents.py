"""What a report says: sentences, figures, tables, charts and examples, as plain data; `write_report` draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from naysay.checks import public, raise_invalid, shown
from naysay.report.scores import Scores

Cell = str | float | int


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows under headings. Numbers stand to the right, texts to the left.

    The page shows the first 200 rows, and says how many more there are.

    Args:
        title: Above it.
        columns: The headings.
        rows: Each as long as `columns`; texts, or numbers. NaN shows as an empty cell.
        caption: What is counted, in a sentence.
        note: Below it: what to know before reading it.
        mark: Rows (by place) that were chosen; they are set off.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    note: str = ""
    mark: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rows of another length than the headings."""
        _check_texts({"title": self.title, "caption": self.caption, "note": self.note})
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(map(tuple, self.rows)))
        _check_texts({f"columns[{place}]": name for place, name in enumerate(self.columns)})
        lengths = np.array([len(row) for row in self.rows], np.int64)
        wrong = np.flatnonzero(lengths != len(self.columns))
        if len(wrong):
            got = f"{lengths[wrong[0]]} at row {wrong[0]} ({len(wrong)} such row{'s' if len(wrong) > 1 else ''})"
            raise_invalid("rows", f"of {len(self.columns)} cells, like columns", got)


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A picture by Vega-Lite, and what it shows in words.

    Args:
        spec: A Vega-Lite specification with its data in it: nothing is fetched. Colours may be those of the page,
            "var(--positive)" or "var(--ink)", which fit a light and a dark page.
        description: What is to be seen, for those who do not see it.
        table: The same as text, shown beside it.
        caption: What it rests on.
    """

    title: str
    spec: Mapping[str, Any]
    description: str
    table: Table | None = None
    caption: str = ""

    def __post_init__(self) -> None:
        """Refuse a chart without words."""
        _check_texts({"title": self.title, "description": self.description, "caption": self.caption})
        if not isinstance(self.spec, Mapping):
            raise_invalid("spec", "a Vega-Lite specification, a dict", shown(self.spec))
        if not self.description.strip():
            raise_invalid("description", "what is to be seen", "nothing", "It is read aloud where nobody looks.")


@final
@dataclass(frozen=True, slots=True)
class Example:
    """A candidate of an anchor and what became of it.

    Args:
        anchor: Their texts, or their ids; a report cuts them at 400 characters and says so.
        positive: Their texts, or their ids; a report cuts them at 400 characters and says so.
        candidate: Their texts, or their ids; a report cuts them at 400 characters and says so.
        score: Of the candidate; NaN where there is none.
        suspicion: Of the candidate; NaN where there is none.
        rank: In the list it was found in, from 1; 0 where there is none.
        fate: "kept: top", "dropped: suspicious".
        explanation: Why, in a sentence.
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
@public
@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Examples of one kind, in the order in which they are to be read.

    Args:
        kind: One word for it, which the page's search offers: "hardest", "suspect", "dropped".
        note: How they were chosen.
    """

    title: str
    kind: str
    rows: tuple[Example, ...]
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no Example."""
        _check_texts({"title": self.title, "kind": self.kind, "note": self.note})
        object.__setattr__(self, "rows", tuple(self.rows))
        _check_all("rows", self.rows, Example)


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All that a report says, in the order of the page.

    Args:
        title: Of the page.
        advice: The sentence to act on first; the others follow as a list.
        numbers: {what: figure}, the headline.
        scores: Of positives, kept and dropped negatives, with the line to move; None: no such part.
        tables: See there.
        charts: See there.
        examples: See there.
        notes: A sentence for each thing to know.
        provenance: {what: value}: versions, arguments, seed, hashes of the input.
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
        _check_texts({"title": self.title})
        for name, kind in (("advice", str), ("notes", str), ("tables", Table), ("charts", Chart)):
            object.__setattr__(self, name, tuple(_several(name, getattr(self, name))))
            _check_all(name, getattr(self, name), kind)
        object.__setattr__(self, "examples", tuple(_several("examples", self.examples)))
        _check_all("examples", self.examples, Examples)
        if not self.advice:
            raise_invalid("advice", "at least one sentence", "none", "Say first what to do.")
        if not isinstance(self.scores, Scores | None):
            raise_invalid("scores", "Scores, or None", type(self.scores).__name__)
        for name in ("numbers", "provenance"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise_invalid(name, "{what: figure}", type(given).__name__)
            object.__setattr__(self, name, {str(what): str(value) for what, value in given.items()})


def _several(name: str, given: Any) -> Any:
    """Parts in a row; one text is not a row of letters."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise_invalid(name, "a tuple", shown(given))
    return given


def _check_texts(texts: Mapping[str, object]) -> None:
    """Refuse what is no text."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise_invalid(name, "a text", shown(text))


def _check_all(name: str, parts: tuple[Any, ...], kind: type) -> None:
    """Refuse the first part of another kind."""
    for place, part in enumerate(parts):
        if not isinstance(part, kind):
            raise_invalid(f"{name}[{place}]", f"of type {kind.__name__}", type(part).__name__)

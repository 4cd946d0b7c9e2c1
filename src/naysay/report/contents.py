"""The contents of a report as plain data: sentences, figures, tables, charts and examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, final

import numpy as np

from naysay.checks import check_all, check_kind, public, raise_invalid
from naysay.report.scores import Scores, check_texts, hold_tuples, number_or_nan
from naysay.report.trade import Trade
from naysay.text import short_repr

Cell = str | float | int


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table. Numbers are aligned to the right, texts to the left.

    The page shows the first 200 rows and how many more there are.

    Args:
        title: The heading above it.
        columns: The column headings.
        rows: Texts or numbers, as many per row as `columns`. NaN is an empty cell.
        caption: What is counted, in a sentence.
        note: What to know before reading it, below the table.
        mark: Places of the chosen rows, which are highlighted.

    Examples:
        >>> Table("Encoders", ("name", "mean score"), (("first", 0.41), ("second", 0.52))).columns
        ('name', 'mean score')
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    note: str = ""
    mark: tuple[int, ...] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_texts(title=self.title, caption=self.caption, note=self.note)
        hold_tuples(self, columns=str, rows=Iterable, mark=Integral)
        object.__setattr__(self, "rows", tuple(map(tuple, self.rows)))
        lengths = np.array([len(row) for row in self.rows], np.int64)
        check_all("rows", lengths, lengths == len(self.columns), f"of {len(self.columns)} cells, like columns")


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A Vega-Lite chart with a description in words.

    Args:
        title: The heading above it.
        spec: A Vega-Lite specification with its data inline. Colours may be variables of the page, such as
            "var(--positive)" or "var(--ink)", which fit a light and a dark page.
        description: What the chart shows, for screen readers.
        table: The same as numbers, shown below it.
        caption: What the chart is based on.

    Examples:
        >>> Chart("Means", {"data": {"values": [{"x": 1}]}, "mark": "point"}, "A point at 1.").title
        'Means'
    """

    title: str
    spec: Mapping[str, Any]
    description: str
    table: Table | None = None
    caption: str = ""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_texts(title=self.title, description=self.description, caption=self.caption)
        check_kind("spec", self.spec, Mapping, "a Vega-Lite specification, a dict")
        check_kind("table", self.table, Table | None, "a Table, or None")
        try:
            json.dumps(dict(self.spec), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise_invalid("spec", "plain data that JSON can hold", str(error))
        if not self.description.strip():
            raise_invalid("description", "a text", "nothing", "Screen readers read it.")


@final
@public
@dataclass(frozen=True, slots=True)
class Example:
    """A candidate of an anchor and its outcome.

    Args:
        anchor: Text or id of the anchor; the page shows 400 characters and how many more there are.
        positive: Text or id of a positive of the anchor.
        candidate: Text or id of the candidate.
        score: Score of the candidate; NaN if there is none.
        suspicion: Suspicion of the candidate; NaN if there is none.
        rank: Rank in the list it was found in, from 1; 0 if there is none.
        outcome: What became of it, such as "kept: top" or "dropped: suspicious".
        explanation: Why, in a sentence.

    Examples:
        >>> Example("q", "p", "c", 0.5, 0.1, 3, "kept: top", "Found at rank 3.").outcome
        'kept: top'
    """

    anchor: str
    positive: str
    candidate: str
    score: float
    suspicion: float
    rank: int
    outcome: str
    explanation: str

    def __post_init__(self) -> None:
        texts = ("anchor", "positive", "candidate", "outcome", "explanation")
        check_texts(**{name: getattr(self, name) for name in texts})
        for name in ("score", "suspicion", "rank"):
            number_or_nan(name, getattr(self, name))


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Examples of one kind, in reading order.

    Args:
        title: The heading above them.
        kind: One word for the page's filter, such as "hardest", "suspect" or "dropped".
        rows: The examples.
        note: How they were chosen.

    Examples:
        >>> row = Example("q", "p", "c", 0.5, 0.1, 3, "kept: top", "Found at rank 3.")
        >>> len(Examples("The hardest", "hardest", (row,)).rows)
        1
    """

    title: str
    kind: str
    rows: tuple[Example, ...]
    note: str = ""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_texts(title=self.title, kind=self.kind, note=self.note)
        hold_tuples(self, rows=Example)


@final
@public
@dataclass(frozen=True, slots=True)
class ReviewPair:
    """A query and a candidate that a person can label in the page, as a row of the file that `naysay mine` reads.

    Args:
        query_id: The id of the query, or its row number.
        query_text: Its text; empty if there is none.
        document_id: The id of the candidate, or its row number.
        document_text: Its text; empty if there is none.
        score: The score of the pair.
        posterior: The probability that the candidate is a false negative; NaN if it cannot be told.

    Examples:
        >>> ReviewPair("q7", "a query", "d3", "a document", 0.71, 0.2).document_id
        'd3'
    """

    query_id: str
    query_text: str
    document_id: str
    document_text: str
    score: float
    posterior: float

    def __post_init__(self) -> None:
        texts = ("query_id", "query_text", "document_id", "document_text")
        check_texts(**{name: getattr(self, name) for name in texts})
        for name in ("score", "posterior"):
            number_or_nan(name, getattr(self, name))


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The contents of a report.

    Args:
        title: The title of the page.
        advice: Sentences; the first is the lead, the others follow as a list.
        numbers: {what: figure}, the headline figures.
        scores: Scores of positives, kept and dropped negatives; None: no such section.
        tables: Tables, folded.
        charts: Charts, after those of `trade` and `scores`.
        examples: Groups of examples.
        provenance: {what: value}: versions, arguments, seed, hashes of the input.
        notes: Sentences at the end.
        trade: The false share against hardness, with a target to move; None: no such section.
        review: Pairs that can be labelled in the page, and downloaded with their labels.
        result: The main table, which is not folded and comes first; None: no such section.

    Examples:
        >>> Contents("Two encoders", ("Use the second: its negatives are harder.",), {"k": "8"}).numbers
        {'k': '8'}
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
    trade: Trade | None = None
    review: tuple[ReviewPair, ...] = ()
    result: Table | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_texts(title=self.title)
        hold_tuples(self, advice=str, notes=str, tables=Table, charts=Chart, examples=Examples, review=ReviewPair)
        if not self.advice:
            raise_invalid("advice", "at least one sentence", "none", "Begin with what to do.")
        check_kind("scores", self.scores, Scores | None, "Scores, or None")
        check_kind("trade", self.trade, Trade | None, "a Trade, or None")
        check_kind("result", self.result, Table | None, "a Table, or None")
        for name in ("numbers", "provenance"):
            check_kind(name, given := getattr(self, name), Mapping, "{what: figure}")
            object.__setattr__(self, name, {str(what): str(value) for what, value in given.items()})

"""The parts of the page as HTML. Every text of a user passes through `plain_text`; nothing else reaches the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isnan

from naysay.report._plain_text import attribute, boxed, number
from naysay.report.contents import Cell, Chart, Example, Examples, Table

_FIGURE = re.compile(r"-?[\d,.]{1,20} ?%?")
_ROWS, _CELL = 200, 200  # rows of a table, and characters of a cell, that are shown


def sentences(advice: tuple[str, ...]) -> str:
    """The first sentence by itself, the others as a list."""
    first = f'<p class="lead">{boxed(advice[0])}</p>'
    return first + listed(advice[1:])


def listed(texts: tuple[str, ...]) -> str:
    """Sentences as a list, or nothing."""
    return "<ul>" + "".join(f"<li>{boxed(text)}</li>" for text in texts) + "</ul>" if texts else ""


def figures(numbers: Mapping[str, str]) -> str:
    """The headline figures, each under its name."""
    cells = (f"<div><dt>{boxed(name, 80)}</dt><dd>{boxed(value, 120)}</dd></div>" for name, value in numbers.items())
    return f'<dl class="figures">{"".join(cells)}</dl>' if numbers else ""


def table(given: Table) -> str:
    """A table with its caption, rows that were chosen set off, and what is left out counted."""
    first = given.rows[0] if given.rows else ("",) * len(given.columns)
    heads = "".join(
        f'<th scope="col"{_side(cell)}>{boxed(name, 80)}</th>' for name, cell in zip(given.columns, first, strict=True)
    )
    rows = "".join(_row(row, chosen=place in given.mark) for place, row in enumerate(given.rows[:_ROWS]))
    left = len(given.rows) - _ROWS
    note = " ".join(part for part in (given.note, f"{left:,} more rows are not shown." if left > 0 else "") if part)
    below = f'<p class="note">{boxed(note)}</p>' if note else ""
    caption = f"<caption>{boxed(given.caption or given.title)}</caption>"
    # A wide table scrolls by itself, by keyboard too.
    whole = f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="wide" tabindex="0" role="group" aria-label="{attribute(given.title, 80)}">{whole}</div>{below}'


def _row(row: tuple[Cell, ...], *, chosen: bool) -> str:
    cells = "".join(_cell(cell, "chosen" if chosen and not place else "") for place, cell in enumerate(row))
    return f'<tr class="chosen">{cells}</tr>' if chosen else f"<tr>{cells}</tr>"


def _cell(cell: Cell, mark: str) -> str:
    """A cell, and the word that says that its row was chosen: colour alone would not reach everybody."""
    word = f' <span class="mark">{mark}</span>' if mark else ""
    text = boxed(cell, _CELL) if isinstance(cell, str) else number(cell)
    return f"<td{_side(cell)}>{text}{word}</td>"


def _side(cell: Cell) -> str:
    """Figures stand to the right, written out or not."""
    return "" if isinstance(cell, str) and not _FIGURE.fullmatch(cell) else ' class="n"'


def chart(given: Chart, place: int, *, drawn: bool) -> str:
    """A figure: the drawing, which the page's script fills in, what it shows in words, and the same as a table."""
    words = f"<figcaption>{boxed(given.caption)}</figcaption>" if given.caption else ""
    area = (
        f'<div class="drawing" role="img" aria-label="{attribute(given.description)}" data-chart="{place}"></div>'
        if drawn
        else f"<p>{boxed(given.description)}</p>"
    )
    if given.table is None:
        return f"<figure>{area}{words}</figure>"
    opened = "" if drawn else " open"
    beside = f"<details{opened}><summary>The same as a table</summary>{table(given.table)}</details>"
    return f"<figure>{area}{words}{beside}</figure>"


def examples(given: Examples) -> str:
    """Examples of one kind, one below the other."""
    note = f'<p class="note">{boxed(given.note)}</p>' if given.note else ""
    rows = "".join(_example(row) for row in given.rows)
    kind = attribute(given.kind, 40)
    return f'<section class="kind" data-kind="{kind}"><h3>{boxed(given.title)}</h3>{note}<ol>{rows}</ol></section>'


def _example(row: Example) -> str:
    parts = [
        "" if isnan(row.score) else f"score {number(row.score)}",
        "" if isnan(row.suspicion) else f"suspicion {row.suspicion:.2f}",
        f"rank {row.rank:,}" if row.rank else "",
    ]
    head = f'<p class="fate"><strong>{boxed(row.fate, 80)}</strong> {" · ".join(filter(None, parts))}</p>'
    texts = (("Anchor", row.anchor), ("Positive", row.positive), ("Candidate", row.candidate))
    shown = "".join(f"<div><dt>{name}</dt><dd>{boxed(text)}</dd></div>" for name, text in texts if text)
    return f'<li class="example">{head}<dl>{shown}</dl><p class="why">{boxed(row.explanation)}</p></li>'


def search(kinds: list[str]) -> str:
    """The box that finds examples, and the choice of their kind."""
    options = "".join(f'<option value="{attribute(kind, 40)}">{attribute(kind, 40)}</option>' for kind in kinds)
    return (
        '<form class="search" role="search"><label>Find <input type="search" id="find" autocomplete="off"></label>'
        f'<label>Kind <select id="kind"><option value="">all</option>{options}</select></label>'
        '<output id="found" aria-live="polite"></output></form>'
    )

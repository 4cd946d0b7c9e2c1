"""The parts of the page as HTML, and the data of its script.

Every text of a user is displayed as text, never interpreted: markup is escaped, characters without a glyph are
replaced, long texts are cut, and each is in a `bdi` element of its own, so that right-to-left marks end with the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from math import isnan
from typing import Any

from naysay.report.contents import Cell, Chart, Example, Examples, ReviewPair, Table
from naysay.report.trade import Trade, false_text
from naysay.text import number, percent, spreadsheet_cell

MAX_LENGTH = 400  # characters of a text that are shown
_MAX_BYTES = 1200  # once escaped, so that a page stays small whatever it shows
# Control characters but tab and newline, halves of surrogate pairs, and code points that no text has.
_NO_GLYPH = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# What could end a script element or a line of JavaScript: JSON may write all of them as \uXXXX.
_IN_SCRIPT = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff]")
_FIGURE = re.compile(r"[+-]?[\d,.]{1,20} ?%?( ± [\d.]{1,20})?( \(\d{1,9} of \d{1,9}\))?")
_ROWS, _CELL = 200, 200  # rows of a table, and characters of a cell, that are shown
_FIGURES = {
    "target": "target",
    "false_share": "false negatives, estimated",
    "mean_score": "hardness: mean score",
    "dropped": "dropped of the nearest",
    "negatives": "negatives",
    "empty": "empty slots",
}


def shown_text(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return a text as HTML: cut, with a note of how much is missing, cleaned and escaped."""
    head = _NO_GLYPH.sub("\ufffd", text[:max_length])
    safe = escape(head)
    while len(safe.encode()) > max(_MAX_BYTES, 3 * max_length):
        head = head[: max(1, len(head) * 3 // 4)]
        safe = escape(head)
    missing = len(text) - len(head)
    if not missing:
        return safe
    return f'{safe}<span class="more"> … {missing:,} more character{"s" if missing > 1 else ""}</span>'


def attribute(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return a text for an attribute or a title, without markup: cut with an ellipsis, cleaned and escaped."""
    head = _NO_GLYPH.sub("\ufffd", text[:max_length])
    return escape(head + ("…" if len(text) > max_length else ""))


def boxed(text: str, max_length: int = MAX_LENGTH) -> str:
    """Return a text of unknown direction in an element of its own."""
    return f'<bdi dir="auto">{shown_text(text, max_length)}</bdi>'


def script_data(data: Any) -> str:
    """Return JSON for a script element, in ASCII where it matters: it cannot end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _IN_SCRIPT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def sentences(advice: tuple[str, ...]) -> str:
    """Return the first sentence as the lead, the others as a list."""
    first = f'<p class="lead">{boxed(advice[0])}</p>'
    return first + listed(advice[1:])


def listed(texts: tuple[str, ...]) -> str:
    """Return sentences as a list, or nothing."""
    return "<ul>" + "".join(f"<li>{boxed(text)}</li>" for text in texts) + "</ul>" if texts else ""


def figures(numbers: Mapping[str, str]) -> str:
    """Return the headline figures, each under its name."""
    cells = [(boxed(name, 80), boxed(value, 120)) for name, value in numbers.items()]
    return f'<dl class="figures">{_terms(cells)}</dl>' if numbers else ""


def _terms(cells: Iterable[tuple[str, str]]) -> str:
    """Return the entries of a list of (name, value), which are HTML."""
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in cells)


def folded(given: Table) -> str:
    """Return a table that opens at a click."""
    return f"<details><summary>{boxed(given.title, 200)}</summary>{table(given)}</details>"


def table(given: Table) -> str:
    """Return a table with its caption, chosen rows marked, and a count of rows left out."""
    first = given.rows[0] if given.rows else ("",) * len(given.columns)
    heads = "".join(
        f'<th scope="col"{_side(cell)}>{boxed(name, 80)}</th>' for name, cell in zip(given.columns, first, strict=True)
    )
    rows = "".join(_row(row, chosen=place in given.mark) for place, row in enumerate(given.rows[:_ROWS]))
    hidden = len(given.rows) - _ROWS
    note = " ".join(part for part in (given.note, f"{hidden:,} more rows are not shown." if hidden > 0 else "") if part)
    below = f'<p class="note">{boxed(note)}</p>' if note else ""
    caption = f"<caption>{boxed(given.caption or given.title)}</caption>"
    # A wide table scrolls by itself, also by keyboard.
    whole = f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="wide" tabindex="0" role="group" aria-label="{attribute(given.title, 80)}">{whole}</div>{below}'


def _row(row: tuple[Cell, ...], *, chosen: bool) -> str:
    cells = "".join(_cell(cell, "chosen" if chosen and not place else "") for place, cell in enumerate(row))
    return f'<tr class="chosen">{cells}</tr>' if chosen else f"<tr>{cells}</tr>"


def _cell(cell: Cell, mark: str) -> str:
    """Return a cell; a chosen row is marked by a word, because colour alone is not accessible."""
    word = f' <span class="mark">{mark}</span>' if mark else ""
    text = boxed(cell, _CELL) if isinstance(cell, str) else number(cell)
    return f"<td{_side(cell)}>{text}{word}</td>"


def _side(cell: Cell) -> str:
    """Align figures to the right, written out or not."""
    return "" if isinstance(cell, str) and not _FIGURE.fullmatch(cell) else ' class="n"'


def chart(given: Chart, place: int, *, drawn: bool) -> str:
    """Return a figure: a drawing for the page's script to fill in, its description, and the same as a table."""
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
    """Return examples of one kind."""
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
    head = f'<p class="outcome"><strong>{boxed(row.outcome, 80)}</strong> {" · ".join(filter(None, parts))}</p>'
    texts = (("Anchor", row.anchor), ("Positive", row.positive), ("Candidate", row.candidate))
    shown = _terms((name, boxed(text)) for name, text in texts if text)
    return f'<li class="example">{head}<dl>{shown}</dl><p class="why">{boxed(row.explanation)}</p></li>'


def search(kinds: list[str]) -> str:
    """Return the search box for examples, and the choice of their kind."""
    options = "".join(f'<option value="{attribute(kind, 40)}">{attribute(kind, 40)}</option>' for kind in kinds)
    return (
        '<form class="search" role="search"><label>Find <input type="search" id="find" autocomplete="off"></label>'
        f'<label>Kind <select id="kind"><option value="">all</option>{options}</select></label>'
        '<output id="matches" aria-live="polite"></output></form>'
    )


def slider(trade: Trade) -> str:
    """Return the slider over the targets, and the figures, which the script updates."""
    now = trade.curve[trade.start]
    figures = {
        name: percent(now.target) if name == "target" else number(getattr(now, name)) or "none" for name in _FIGURES
    }
    figures["false_share"] = false_text(now)
    cells = "".join(
        f'<div><dt>{_FIGURES[name]}</dt><dd data-figure="{name}">{text}</dd></div>' for name, text in figures.items()
    )
    command = shown_text(trade.command[:300].replace("TARGET", f"{now.target:.4g}"))
    apply = f'<p class="command">To apply it: <code id="command">{command}</code></p>'
    return (
        '<form class="target"><label for="target">Move the target: the largest estimated false share</label>'
        f'<input type="range" id="target" min="0" max="{len(trade.curve) - 1}" step="1" value="{trade.start}" '
        f'aria-valuetext="{percent(now.target)}"><button type="button" id="reset">Reset</button></form>'
        f'<dl class="figures">{cells}</dl>'
        '<p class="visually-hidden" id="announced" aria-live="polite"></p>'
        f"{apply if trade.command else ''}"
        f'<p class="note">{shown_text(trade.basis, 2000)}</p>'
    )


def review(pairs: tuple[ReviewPair, ...]) -> str:
    """Return the pairs with their choices, folded, and a button that downloads the labels."""
    rows = "".join(_pair(pair, place) for place, pair in enumerate(pairs))
    return (
        f"<p>These {len(pairs):,} pairs were drawn at random among the nearest candidates. Is the candidate a right "
        "answer that was not labelled? Then it is a false negative: yes. Pairs without an answer stay blank. Labels "
        "stay in this page until you download them; give the file to <code>naysay mine --reviewed labels.csv</code>, "
        "which corrects the estimates by it.</p>"
        f"<details><summary>Label {len(pairs):,} pairs</summary><ol>{rows}</ol></details>"
        '<p><button type="button" id="download">Download labels.csv</button> '
        f'<output id="labelled" aria-live="polite">0 of {len(pairs):,} labelled</output></p>'
    )


def _pair(pair: ReviewPair, place: int) -> str:
    posterior = "" if isnan(pair.posterior) else f" · probability {pair.posterior:.2f}"
    texts = (("Query", pair.query_text or pair.query_id), ("Candidate", pair.document_text or pair.document_id))
    shown = _terms((name, boxed(text)) for name, text in texts)
    choices = "".join(
        f'<label><input type="radio" name="pair{place}" value="{value}"{" checked" if not value else ""}> '
        f"{value or 'blank'}</label>"
        for value in ("yes", "no", "")
    )
    legend = f"<legend>Pair {place + 1}: a false negative?</legend>"
    head = f'<p class="outcome">score {number(pair.score)}{posterior}</p>'
    return f'<li class="pair">{head}<dl>{shown}</dl><fieldset>{legend}{choices}</fieldset></li>'


def review_data(pairs: tuple[ReviewPair, ...]) -> list[list[str]]:
    """Return the cells of the CSV file, without the labels; texts are cut as in the page, ids are whole."""
    rows = []
    for pair in pairs:
        query, document = (_NO_GLYPH.sub("\ufffd", text[:MAX_LENGTH]) for text in (pair.query_text, pair.document_text))
        posterior = "" if isnan(pair.posterior) else f"{pair.posterior:.4g}"
        texts = map(spreadsheet_cell, (pair.query_id, query, pair.document_id, document))
        rows.append([*texts, f"{pair.score:.6g}", posterior])
    return rows

"""The parts of the page as HTML, and the slider's data.

Every text of a user is displayed as text, never interpreted: markup is escaped, characters without a glyph are
replaced, long texts are cut, and each is in a `bdi` element of its own, so that right-to-left marks end with the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from math import isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.report.contents import Cell, Chart, Example, Examples, Table
from naysay.report.scores import Sample
from naysay.report.threshold import AtThreshold, at_threshold
from naysay.text import number, percent

MAX_LENGTH = 400  # characters of a text that are shown
_MAX_BYTES = 1200  # once escaped, so that a page stays small whatever it shows
# Control characters but tab and newline, halves of surrogate pairs, and code points that no text has.
_NO_GLYPH = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# What could end a script element or a line of JavaScript: JSON may write all of them as \uXXXX.
_IN_SCRIPT = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff]")
_FIGURE = re.compile(r"-?[\d,.]{1,20} ?%?")
_ROWS, _CELL = 200, 200  # rows of a table, and characters of a cell, that are shown
STEPS = 1000  # of the slider
_FIGURES = {
    "suspected": "suspected candidates",
    "negatives": "negatives",
    "empty": "empty slots",
    "mean_score": "hardness: mean score",
    "mean_percentile": "hardness: mean percentile",
    "miss_rate": "known positives below the threshold",
    "false_rate": "false negatives, upper estimate",
}
_COUNTS = ("suspected", "negatives", "empty")
_SHARES = ("mean_percentile", "miss_rate", "false_rate")


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
    cells = (f"<div><dt>{boxed(name, 80)}</dt><dd>{boxed(value, 120)}</dd></div>" for name, value in numbers.items())
    return f'<dl class="figures">{"".join(cells)}</dl>' if numbers else ""


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
    shown = "".join(f"<div><dt>{name}</dt><dd>{boxed(text)}</dd></div>" for name, text in texts if text)
    return f'<li class="example">{head}<dl>{shown}</dl><p class="why">{boxed(row.explanation)}</p></li>'


def search(kinds: list[str]) -> str:
    """Return the search box for examples, and the choice of their kind."""
    options = "".join(f'<option value="{attribute(kind, 40)}">{attribute(kind, 40)}</option>' for kind in kinds)
    return (
        '<form class="search" role="search"><label>Find <input type="search" id="find" autocomplete="off"></label>'
        f'<label>Kind <select id="kind"><option value="">all</option>{options}</select></label>'
        '<output id="matches" aria-live="polite"></output></form>'
    )


def slider_ends(sample: Sample) -> tuple[float, float]:
    """Return the lowest and the highest threshold: everything suspected, and nothing suspected."""
    if sample.by == "suspicion":
        return 0.0, 1.0
    known = np.concatenate([sample.values, sample.positives]).astype(np.float64)
    low, high = float(known.min()), float(known.max())
    high += max(high - low, 1e-6) / 100
    return (min(low, sample.threshold), max(high, sample.threshold)) if isfinite(sample.threshold) else (low, high)


def slider_start(sample: Sample) -> float:
    """Return the threshold in use; the highest of the slider if nothing is suspected."""
    low, high = slider_ends(sample)
    return min(max(sample.threshold, low), high)


def slider_data(sample: Sample) -> dict[str, Any]:
    """Return the numbers that the page's script needs. Scores are written so that they read as the same float32."""
    low, high = slider_ends(sample)
    return {
        "sizes": np.bincount(sample.anchors, minlength=len(sample.k)).tolist(),
        "scores": _short(sample.scores),
        "values": None if sample.by == "score" else _short(sample.values),
        "k": sample.k.tolist(),
        "positives": _short(sample.positives),
        "positiveAnchors": sample.positive_anchors.tolist(),
        "retrieved": sample.retrieved.astype(int).tolist(),
        "share": sample.share if isfinite(sample.share) else None,
        "scale": sample.of_anchors / len(sample.k),
        "threshold": slider_start(sample),
        "low": low,
        "high": high,
        "steps": STEPS,
        "byScore": sample.by == "score",
        "command": sample.command,
    }


def _short(values: NDArray[np.float32]) -> list[float]:
    """Return the shortest decimals that identify each float32."""
    short: list[float] = values.astype("U24").astype(np.float64).tolist()
    return short


def slider(sample: Sample) -> str:
    """Return the slider, a box for its exact value, a reset button, and the figures, which the script updates."""
    (low, high), start = slider_ends(sample), slider_start(sample)
    place = round(STEPS * (start - low) / (high - low))
    now = at_threshold(sample, start)
    cells = "".join(_figure(name, now) for name in _FIGURES)
    command = shown_text(sample.command.replace("THRESHOLD", f"{start:.6g}"), 300)
    apply = f'<p class="command">To apply it: <code id="command">{command}</code></p>'
    return (
        f'<form class="threshold"><label for="threshold">Threshold ({sample.by})</label>'
        f'<input type="range" id="threshold" min="0" max="{STEPS}" step="1" value="{place}" '
        f'aria-valuetext="{number(start)}"><label for="exact">exact value</label>'
        f'<input type="number" id="exact" step="any" value="{start:.6g}">'
        f'<button type="button" id="reset">Reset to {number(start)}</button></form>'
        f'<dl class="figures">{cells}</dl>'
        '<p class="visually-hidden" id="announced" aria-live="polite"></p>'
        f"{apply if sample.command else ''}{_basis(sample)}"
    )


def _figure(name: str, now: AtThreshold) -> str:
    value = getattr(now, name)
    text = percent(value) if name in _SHARES else number(float(round(value)) if name in _COUNTS else value)
    exact = repr(float(value)) if isfinite(value) else ""
    return f'<div><dt>{_FIGURES[name]}</dt><dd data-figure="{name}" data-value="{exact}">{text or "none"}</dd></div>'


def _basis(sample: Sample) -> str:
    """Return what the figures rest on."""
    part = len(sample.k) < sample.of_anchors
    anchors = f"{len(sample.k):,} of {sample.of_anchors:,} anchors" if part else f"all {sample.of_anchors:,} anchors"
    sentences = [
        f"Computed in this page from {len(sample.scores):,} candidates of {anchors}"
        + ("; counts are scaled to all." if part else "."),
        "The negatives at a threshold are the highest scores below it, k per anchor. The percentile of a negative is "
        "the share of its anchor's candidates that score lower.",
    ]
    if sample.by == "suspicion":
        sentences.append("The threshold is one of suspicion, so the scores of positives do not give a miss rate.")
    elif not len(sample.positives):
        sentences.append("No positives are known, so the miss rate is unknown.")
    else:
        sentences.append(
            f"Known positives: {len(sample.positives):,}, one per anchor, of which the search would have found "
            f"{int(np.count_nonzero(sample.retrieved)):,}. Their share below the threshold is the share of unlabelled "
            "positives that are missed, if these score like labelled ones."
        )
        sentences.append(
            f"False negatives, upper estimate: at most {percent(sample.share)} of the candidates are positives; times "
            "the share of the retrieved known positives that the same rule would take, divided by the share of the "
            "candidates that it takes. It is the estimate of detectors.false_negative_rate, without its interval."
            if isfinite(sample.share)
            else "The share of false negatives could not be estimated from these scores."
        )
    return f'<p class="note">{shown_text(" ".join(sentences), 2000)}</p>'

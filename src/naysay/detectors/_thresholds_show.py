"""Thresholds on a terminal, as JSON and as a figure: the choice, how to use it, and a histogram of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from naysay.detectors._threshold_tables import chosen, number
from naysay.detectors.bands import NAMES
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import Thresholds
from naysay.plots import BLOCK, PLAIN, Marks
from naysay.quantity.separation import Floats
from naysay.text import json_file

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_HALVES = "    ####" + "#"  # ASCII has no part of a bar: from half a cell on it is a whole one
_BINS, _POINTS = 120, 240  # of the figure
_COLOURS = ["#999999", "#0072B2", "#D55E00"]  # Okabe and Ito's, which colour-blind readers can tell apart
_BAND = {"field": "band", "type": "nominal", "scale": {"domain": [*NAMES], "range": _COLOURS}}
Spec = dict[str, Any]
_GUESS = (
    "The shares are a guess about the data: scores alone do not show how many negatives are false. Where scores of "
    "known positives are available, use naysay.detectors.Calibrated instead."
)


def print_thresholds(name: str, found: Thresholds, sketch: ScoreSketch, console: Console) -> None:
    """Print all that the command reports about the scores called `name`."""
    marks = BLOCK if console.encoding.startswith("utf") else PLAIN
    safe = name.encode(console.encoding, "replace").decode(console.encoding)  # what the terminal can show
    low, high = middle(found)
    low_text, high_text = in_words(found)
    kind = " at the median anchor" if found.scope == "anchor" else ""
    console.print(
        Text(f"low = {low_text}, high = {high_text}{kind}", style="bold"), Text(f"for {safe}"), soft_wrap=True
    )
    use = "naysay.detectors.Bands(low, high) with the two arrays that --json writes"
    if found.scope == "all":
        use = f"naysay.detectors.Bands({low!r}, {high!r}), or naysay mine --judge bands:{low!r},{high!r}"
    console.print(Text(f"Use: {use}"), soft_wrap=True)
    console.print()
    for line in str(found).splitlines():
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text(meaning(found)))
    console.print()
    console.print(Text("Scores, with bars as high as the logarithm of the count:"))
    columns = max(console.width, 40) - len(str(sketch.n)) - 4
    shown = histogram(sketch, columns)
    for line in draw(shown, (low, high), marks=marks):
        bars = Text(line, no_wrap=True, overflow="ignore")
        if marks.side in line:  # not the axis
            start = line.index(marks.side) + 1
            for cut, style in ((low, "yellow"), (high, "red")):
                if cut <= sketch.largest:
                    bars.stylize(style, start + column_of(shown, cut))
        console.print(bars, crop=False)
    console.print(Text(f"{marks.best} low = {low_text}   {marks.best} high = {high_text}"))
    console.print()
    for note in (*found.notes, _GUESS):
        console.print(Text(f"Note: {note}"))


def meaning(found: Thresholds) -> str:
    """How many pairs are in each band, a sentence each."""
    own = found.scope == "anchor"
    low, high = ("its anchor's low", "its anchor's high") if own else in_words(found)
    pairs = found.n_negatives + found.n_positives
    false, hard, easy = chosen(found.table["low"], found.low)
    first = f"{false} ({100 * false / pairs:.3g} %) score at or above {high}: likely false negatives, to drop or"
    second = f"{hard} ({100 * hard / pairs:.3g} %) score from {low} {'up to there' if false else 'on'}: hard negatives."
    return " ".join(
        [
            f"Of {pairs} pairs,",
            f"{first} to check." if false else "none reaches high, so none is a likely false negative.",
            second if hard else "None is a hard negative.",
            f"The other {easy} negatives are easy." if false or hard else f"All {easy} negatives are easy.",
        ]
    )


def as_json(name: str, found: Thresholds) -> bytes:
    """The thresholds and tables as JSON; infinity, which JSON does not have, as a string."""
    whole = {
        "scores": name,
        "scope": found.scope,
        "low": found.low,
        "high": found.high,
        "n_negatives": found.n_negatives,
        "n_positives": found.n_positives,
        "false_share": found.false_share,
        "hard_share": found.hard_share,
        "start_low": found.start_low,
        "rank_error": found.rank_error,
        "notes": found.notes,
        "table": {
            side: [dict(zip(rows.dtype.names or (), row, strict=True)) for row in rows.tolist()]
            for side, rows in found.table.items()
        },
    }
    return json_file(whole, non_finite=str)


def middle(found: Thresholds) -> tuple[float, float]:
    """The low and high to draw: the medians where each anchor has its own."""
    return float(np.median(found.low)), float(np.median(found.high))


def in_words(found: Thresholds) -> tuple[str, str]:
    """The low and high to draw, as text."""
    (low, high), (false, hard, _) = middle(found), chosen(found.table["low"], found.low)
    return number(low, false + hard), number(high, false)


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Scores in bins of equal width: edges (b + 1,) that rise, and counts (b,)."""

    edges: Floats
    counts: NDArray[np.int64]


def histogram(sketch: ScoreSketch, bins: int) -> Histogram:
    """All scores of the sketch in `bins` bins, as exactly as it counts; the last bin includes its upper edge."""
    low, high = sketch.smallest, sketch.largest
    if low == high:
        low, high = low - max(abs(low), 1) / 2, high + max(abs(high), 1) / 2
    edges = np.linspace(low, high, bins + 1)
    at_least = sketch.at_least(edges)
    at_least[0], at_least[-1] = sketch.n, 0
    return Histogram(edges, -np.diff(at_least))


def column_of(shown: Histogram, value: float) -> int:
    """The bin of a value, or the nearest bin if it is outside."""
    return int(np.clip(np.searchsorted(shown.edges, value, side="right") - 1, 0, len(shown.counts) - 1))


def draw(shown: Histogram, cuts: tuple[float, ...], *, height: int = 9, marks: Marks = BLOCK) -> list[str]:
    """Rows of text: bars as high as the logarithm of the counts, a column at each cut, the axis, its ends and marks."""
    parts = _HALVES if marks is PLAIN else _EIGHTHS
    tall = np.log1p(shown.counts) / np.log1p(max(shown.counts.max(), 1)) * 8 * height
    eighths = np.where(shown.counts > 0, np.maximum(np.round(tall), 4 if marks is PLAIN else 1), 0).astype(int)
    places = [column_of(shown, cut) for cut in cuts]
    labels = [f"{shown.counts.max()}", *[""] * (height - 1)]
    margin = len(labels[0]) + 1
    lines = []
    for row, label in zip(range(height - 1, -1, -1), labels, strict=True):
        cells = [parts[eighth] for eighth in np.clip(eighths - 8 * row, 0, 8).tolist()]
        for place in places:
            cells[place] = marks.side if cells[place] == " " else cells[place]
        lines.append(f"{label:>{margin - 1}} {marks.side}{''.join(cells)}".rstrip())
    left, right = number(float(shown.edges[0])), number(float(shown.edges[-1]))
    below = [" "] * len(shown.counts)
    for place in places:
        below[place] = marks.best
    lines.append(" " * margin + marks.corner + marks.floor * len(shown.counts))
    lines.append(f"{' ' * margin} {left}{right:>{len(shown.counts) - len(left)}}")
    return [*lines, f"{' ' * margin} {''.join(below)}".rstrip()]


def figure(name: str, found: Thresholds, sketch: ScoreSketch) -> Spec:
    """A Vega-Lite figure: the scores in their bands, and the share of pairs above any score.

    Thresholds of anchors are shown by their median. A name that is not UTF-8 gets question marks.
    """
    cuts = middle(found)
    name = name.encode("utf-8", "replace").decode()
    low, high = in_words(found)
    heading = f"low = {low}, high = {high}" + ", the median anchor's" * (found.scope == "anchor")
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "padding": 16,
        "title": {"text": heading, "subtitle": name, "fontSize": 17, "anchor": "start", "offset": 12, "limit": 980},
        "hconcat": [_scores(sketch, cuts), _shares(found, sketch, cuts)],
        "spacing": 60,
        "config": {
            "font": "sans-serif",
            "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "gridColor": "#e6e6e6"},
            "title": {"fontSize": 14, "fontWeight": "normal", "subtitleFontSize": 12, "subtitleColor": "#555"},
            "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
            "view": {"stroke": "#cccccc"},
        },
    }


def _axis(sketch: ScoreSketch) -> Spec:
    edges = histogram(sketch, 1).edges.tolist()
    return {"type": "quantitative", "title": "score", "scale": {"domain": edges, "nice": False, "zero": False}}


def _scores(sketch: ScoreSketch, cuts: tuple[float, float]) -> Spec:
    """Bars over the score, coloured by band."""
    shown = histogram(sketch, _BINS)
    ends = shown.edges.tolist()
    values = [
        {"from": start, "to": stop, "pairs": count, "band": NAMES[sum((start + stop) / 2 >= cut for cut in cuts)]}
        for start, stop, count in zip(ends[:-1], ends[1:], shown.counts.tolist(), strict=True)
    ]
    x = {"field": "from", "bin": {"binned": True}, **_axis(sketch)}
    y = {
        "field": "pairs",
        "type": "quantitative",
        "title": "negatives, on a log scale",
        "scale": {"type": "symlog"},
        "axis": {"values": [0, *(10**power for power in range(13))], "format": ","},
    }
    mark = {"type": "bar", "binSpacing": 0, "clip": True}
    bars = _layer(values, mark, x=x, x2={"field": "to"}, y=y, color=_BAND)
    return {"title": "Scores of the negatives", "width": 420, "height": 260, "layer": [bars, _rules(cuts)]}


def _shares(found: Thresholds, sketch: ScoreSketch, cuts: tuple[float, float]) -> Spec:
    """The share of pairs at or above a score, with the two given shares as rules."""
    pairs = found.n_negatives + found.n_positives
    places = np.linspace(sketch.smallest, sketch.largest, _POINTS)
    values = [
        {"score": score, "share": count / pairs}
        for score, count in zip(places.tolist(), sketch.at_least(places).tolist(), strict=True)
        if count
    ]
    shares = (found.false_share, round(found.false_share + found.hard_share, 12))
    y = {"field": "share", "type": "quantitative", "title": "share of all pairs", "scale": {"type": "log"}}
    y["axis"] = {"values": [10.0**-power for power in range(13)], "format": "~%"}
    mark = {"type": "line", "strokeWidth": 2, "color": "#000000", "clip": True}
    line = _layer(values, mark, x={"field": "score", **_axis(sketch)}, y=y)
    given = [{"share": share} for share in shares if share > 0]
    mark = {"type": "rule", "strokeDash": [5, 4], "color": "#767676"}
    budgets = _layer(given, mark, y={"field": "share", "type": "quantitative"})
    title = {"text": "Pairs at or above a score", "subtitle": "dashed: the given shares, false and false + hard"}
    return {"title": title, "width": 380, "height": 260, "layer": [line, budgets, _rules(cuts)]}


def _rules(cuts: tuple[float, float]) -> Spec:
    values = [{"score": cut, "band": band} for cut, band in zip(cuts, NAMES[1:], strict=True) if np.isfinite(cut)]
    mark = {"type": "rule", "strokeWidth": 1.5, "clip": True}
    return _layer(values, mark, x={"field": "score", "type": "quantitative"}, color=_BAND)


def _layer(values: list[Spec], mark: Spec, **encoding: Spec) -> Spec:
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}
